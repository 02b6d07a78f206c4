# binlag itself: `docker build -f docker/binlag.Dockerfile -t binlag .`, then
# `docker run --rm -v "$PWD:/logs:ro" binlag events /logs/binlog.000001`. Where no registry can be
# reached, `python docker/build.py binlag` makes BASE from Debian packages and brings the wheels
# beforehand.
ARG BASE=python:3.12-slim
FROM ${BASE}
ARG PIP_OPTIONS=
COPY pyproject.toml README.md /src/
COPY applier /src/applier
COPY checkpoints /src/checkpoints
COPY lookup /src/lookup
COPY demo /src/demo
COPY docker /src/docker
RUN python3 -m venv /opt/binlag \
 && cd /src && /opt/binlag/bin/python -m pip install --no-cache-dir --disable-pip-version-check ${PIP_OPTIONS} '.[mysql]' \
 && rm -rf /src
ENV PATH=/opt/binlag/bin:/usr/local/bin:/usr/bin:/bin PYTHONUNBUFFERED=1
USER 65534:65534
WORKDIR /tmp
ENTRYPOINT ["binlag"]
CMD ["--help"]
