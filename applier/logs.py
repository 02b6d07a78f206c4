"""Who speaks while a long command runs: `logging.getLogger("applier.receive")`, `applier.replay`,
`applier.measure`, `applier.crashtest`.

A record's message says what happened; what a program wants to know of it are attributes of the
record (`extra=`): file, position, gtid, seconds … Nothing is printed unless somebody asks for it:
the command line with --log-level or --log-json, a program with a handler of its own. Passwords are
in no record.
"""

from __future__ import annotations

import logging

ROOT = "applier"
logging.getLogger(ROOT).addHandler(logging.NullHandler())


def logger(name: str) -> logging.Logger:
    """The logger `applier.<name>`."""
    return logging.getLogger(f"{ROOT}.{name}")
