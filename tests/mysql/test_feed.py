"""Where the transactions that a server gets end: at --until-gtid."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier.binlog.transactions import TransactionKind
from applier.errors import UsageError
from applier.mysql.feed import Feed, check_own_gtid
from applier.options import parse_options
from tests.applier.logs import insert
from tests.binlog.build import UUID_TEXT, log, query, write


def taken(folder: Path, until: str) -> list[int]:
    path = write(folder, log(*insert(1, 5), *insert(2, 6), *insert(3, 7)))
    feed = Feed([str(path)], parse_options(), until_gtid=until)
    return [int((source.gtid or "").rpartition(":")[2]) for source in feed]


@pytest.mark.parametrize("uuid", [UUID_TEXT, UUID_TEXT.upper()])
def test_it_is_the_last_one(uuid: str, tmp_path: Path) -> None:
    assert taken(tmp_path, f"{uuid}:2") == [1, 2]


def test_one_of_the_other_kind_of_server_is_refused(tmp_path: Path) -> None:
    """The log would be replayed to its end."""
    with pytest.raises(
        UsageError, match="0-1-2 names transactions of MariaDB, and the log is one of MySQL"
    ):
        taken(tmp_path, "0-1-2")


def test_what_is_no_gtid_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--until-gtid: "):
        taken(tmp_path, "2")


def test_a_target_takes_no_gtid_of_the_other_kind_of_server(tmp_path: Path) -> None:
    (source,) = Feed([str(write(tmp_path, log(*insert(1, 5))))], parse_options())
    check_own_gtid(source.transaction, is_mariadb=False)
    with pytest.raises(
        UsageError, match=f"--gtid: {UUID_TEXT}:1 is a GTID of MySQL, and the target is MariaDB"
    ):
        check_own_gtid(source.transaction, is_mariadb=True)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"start_datetime": "2100-01-01"}, "no event lies in these times: the log ends at "),
        ({"stop_datetime": "1970-01-02"}, "no event lies in these times: the log begins at "),
        ({"start_datetime": "1970-01-02"}, None),
        ({}, None),
    ],
)
def test_times_that_the_log_does_not_have_are_said(
    times: dict[str, str], said: str | None, tmp_path: Path
) -> None:
    feed = Feed([str(write(tmp_path, log(*insert(1, 5))))], parse_options(**times))
    assert any(source.wanted for source in feed) is (said is None)
    assert feed.outside is None if said is None else (feed.outside or "").startswith(said)


def test_a_statement_that_ends_in_begin_is_no_begin(tmp_path: Path) -> None:
    """In a log without GTIDs."""
    (source,) = Feed([str(write(tmp_path, log(query(b"CREATE DATABASE begin"))))], parse_options())
    assert (len(source.events), source.opening) == (1, None)


def test_what_a_crashed_source_left_open_is_no_part_of_what_follows(tmp_path: Path) -> None:
    """Rows without an end, then the first log of the next run, which begins with a statement."""
    _, *rows, _ = insert(1, 5)
    files = [
        write(tmp_path, log(*rows)),
        write(tmp_path, log(query(b"CREATE TABLE n (a INT)")), "binlog.000002"),
    ]
    (source,) = Feed([str(file) for file in files], parse_options())
    assert (source.kind, len(source.events)) == (TransactionKind.STATEMENT, 1)
