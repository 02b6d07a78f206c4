"""A script's log replayed into a second server of the same version: the tables of both servers, and
what `verify` says of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pymysql

import applier
from applier.errors import NOT_SUPPORTED
from applier.mysql.client.connection import connect
from applier.mysql.contents.verify import verify
from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.options import parse_options
from tests.peers.contents import ServerTable, server_differences, server_tables
from tests.peers.exceptions import EQUAL
from tests.peers.replaying import guarded
from tests.peers.session import PeerServer, ServerGone

NOT_COMPARABLE = "not comparable"
"""The servers agree; memory, which `verify` asks, refuses a statement of the log."""


def into_outcome(
    target: PeerServer, files: list[Path], tables: list[ServerTable], apply: str
) -> tuple[str, str]:
    """(outcome, cause) of a log that is replayed into `target`, which is emptied before. `tables`
    are what the source holds. Raises ServerGone."""
    try:
        target.empty()
    except pymysql.err.MySQLError as error:
        raise ServerGone(repr(error)) from None
    return guarded(lambda: _into(target, files, tables, apply))


def _into(
    target: PeerServer, files: list[Path], tables: list[ServerTable], apply: str
) -> tuple[str, str]:
    logs = [str(file) for file in files]
    error = replay_into(logs, target.endpoint, parse_options(), IntoOptions(apply=apply)).error
    if error is not None:
        return f"refused {error.number}", error.message
    found = server_differences(tables, server_tables(target.query))
    if found:
        return "difference", "; ".join(found)
    return _verified(target, files)


def _verified(target: PeerServer, files: list[Path]) -> tuple[str, str]:
    ours = applier.Tables()
    error = applier.replay(files, into=ours).error
    if error is not None:
        unknown = error.number == NOT_SUPPORTED
        return NOT_COMPARABLE if unknown else f"refused {error.number}", error.message
    with closing(connect(target.endpoint)) as server:
        reports = [table for table in verify(server, ours).tables if not table.equal]
    told = "; ".join(f"{one.table}: {one.as_dict()}" for one in reports)
    if any(one.differs for one in reports):
        return "difference", f"verify: {told}"
    return (NOT_COMPARABLE, told) if reports else (EQUAL, "")
