# A database server as it lies in the cache folder of docker/servers, with its own loader and C
# library; busybox is all the rest. Nothing is pulled. docker/build.py makes the build context:
# `python docker/build.py 9.7`.
FROM scratch
COPY busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
RUN mkdir -p /tmp && chmod 1777 /tmp && mkdir -p /etc /docker-entrypoint-initdb.d \
 && echo 'root:x:0:0:root:/:/bin/sh' > /etc/passwd && echo 'mysql:x:999:999:mysql:/var/lib/mysql:/bin/sh' >> /etc/passwd \
 && echo 'root:x:0:' > /etc/group && echo 'mysql:x:999:' >> /etc/group
COPY server /opt/server
# Initialised when the image was built, so that a container needs a second or two and no temporary
# server.
COPY --chown=999:999 data /var/lib/mysql
COPY my.cnf accounts.sh entrypoint.sh /opt/server/
ENV PATH=/bin TZ=UTC
USER 999:999
EXPOSE 3306
STOPSIGNAL SIGTERM
ENTRYPOINT ["/bin/sh", "/opt/server/entrypoint.sh"]
