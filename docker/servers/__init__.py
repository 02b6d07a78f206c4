"""Real servers of several versions in a private folder: brought, initialised once, started in a
second or two.

No Docker engine, no root and no change to the system's packages are needed: a server is unpacked
into a cache folder and run through the dynamic loader and the C library that were unpacked beside
it. What differs between the servers is one table, `servers.table`.

The folder above this one must be on the module path (`pythonpath = ["docker"]` for pytest).
`docker` itself must never become a package: it would hide the Docker client library of the same
name.
"""
