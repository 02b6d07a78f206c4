"""Other people's test suites, run on real servers, and their logs replayed: binlag must leave the
rows that the server has.

The suites of MySQL and MariaDB (mtr) come as Debian packages, which `docker/servers/bring.py peers`
fetches; none of their text is in this repository. A script's SQL is taken out of it (`language`,
`statements`), carried out on a server (`session`), and the server's log is replayed in memory; both
sides are compared table by table (`contents`), and the outcome is held against the known exceptions
(`exceptions`). `into` replays the log into a second server (`target`). `python -m tests.peers
--help` has the commands.
"""
