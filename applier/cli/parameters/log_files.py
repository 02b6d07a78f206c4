"""Logs as somebody names them, and as they are read: plain files, in order.

A pattern that the shell left alone is expanded; the index that stands beside its logs (`binlog.*`)
is passed over. What comes through a pipe can be read once only: it is copied into a temporary file,
which goes when the command ends. What is compressed or on a store stays where it is: the reader
unpacks and fetches it piece by piece.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from applier.binlog.reader import open_log
from applier.errors import InputError
from applier.remote import address_of
from applier.sources import INDEX_SUFFIX, STANDARD_INPUT, expanded, log_name, open_source

COPY_BYTES = 1 << 20


def plain_files(files: Sequence[str]) -> list[str]:
    """The logs that are meant, each as a file that can be read again. Raises InputError for what
    cannot be read."""
    names = [name for file in files for name in expanded(file)]
    logs = [name for name in names if not name.endswith(INDEX_SUFFIX)]
    return [str(_plain(name)) for name in logs]


def _plain(name: str) -> Path:
    path = Path(name)
    if address_of(name) is not None:
        return path
    if name != STANDARD_INPUT and (not path.exists() or stat.S_ISREG(path.stat().st_mode)):
        return path  # where it is not there, the reader says so
    folder = click.get_current_context().with_resource(TemporaryDirectory(prefix="binlag-log-"))
    own = log_name(path)
    copy = Path(folder) / {"-": "stdin", "": "stdin"}.get(own, own)
    with open_source(name) as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target, COPY_BYTES)
    try:
        open_log(copy)
    except InputError as error:
        error.file = name
        raise
    return copy
