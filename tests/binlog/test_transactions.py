"""Events into transactions: every way a group can begin and end."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from applier.binlog.boundaries import Boundaries, query_text
from applier.binlog.reader import LogReader
from applier.binlog.transactions import (
    Transaction,
    TransactionKind,
    TransactionTracker,
    group,
    with_formats,
)
from applier.errors import InputError
from tests.binlog.build import (
    UUID_TEXT,
    event,
    gtid,
    int_image,
    log,
    mariadb_gtid,
    packed,
    payload,
    query,
    rows,
    table_map,
    write,
    xid,
)
from tests.captures_support import captures, logs

BEGIN, COMMIT, ROLLBACK = query(b"BEGIN"), query(b"COMMIT"), query(b"ROLLBACK")
INSERT, DDL = query(b"INSERT INTO t VALUES (1)"), query(b"CREATE TABLE t (a INT)")
ROWS = (table_map(), rows(30, int_image(1)))
INTVAR = (5, b"\x02" + struct.pack("<Q", 12))
PREPARE = struct.pack("<BIII", 0, 1, 1, 0) + b"x"
XA = b"X'78',X'',1"
MARIADB = "10.11.6-MariaDB"


def grouped(folder: Path, *events: tuple[int, bytes], version: str = "8.0.36") -> list[Transaction]:
    return list(group(LogReader([write(folder, log(*events, version=version))]), keep_events=True))


def shapes(transactions: list[Transaction]) -> list[tuple[str, bool, list[int]]]:
    return [
        (found.kind.value, found.complete, [event.type for event in found.events])
        for found in transactions
    ]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([gtid(1), BEGIN, *ROWS, xid()], [("transaction", True, [33, 2, 19, 30, 16])]),
        ([BEGIN, INTVAR, INSERT, xid()], [("transaction", True, [2, 5, 2, 16])]),
        ([gtid(1), BEGIN, INSERT, COMMIT, gtid(2), BEGIN],
         [("transaction", True, [33, 2, 2, 2]), ("transaction", False, [33, 2])]),
        ([gtid(1), BEGIN, INSERT, ROLLBACK], [("rolled back", True, [33, 2, 2, 2])]),
        ([gtid(1), BEGIN, query(b"rollback work to `s`"), xid()],
         [("transaction", True, [33, 2, 2, 16])]),
        ([gtid(1), COMMIT, gtid(2), ROLLBACK],
         [("transaction", True, [33, 2]), ("rolled back", True, [33, 2])]),
        ([COMMIT, ROLLBACK], [("transaction", True, [2]), ("rolled back", True, [2])]),
        ([gtid(1), BEGIN, query(b"ROLLBACK TO `s`"), query(b"SAVEPOINT s"), xid()],
         [("transaction", True, [33, 2, 2, 2, 16])]),
        ([gtid(1), DDL, gtid(2), DDL],
         [("statement", True, [33, 2]), ("statement", True, [33, 2])]),
        ([DDL, INTVAR, INSERT], [("statement", True, [2]), ("statement", True, [5, 2])]),
        ([gtid(1, anonymous=True), DDL], [("statement", True, [34, 2])]),
        ([gtid(1), gtid(2), DDL], [("transaction", False, [33]), ("statement", True, [33, 2])]),
        ([gtid(1), BEGIN, *ROWS, gtid(2), DDL],
         [("transaction", False, [33, 2, 19, 30]), ("statement", True, [33, 2])]),
        ([BEGIN, INSERT, BEGIN, xid()],
         [("transaction", False, [2, 2]), ("transaction", True, [2, 16])]),
        ([gtid(1), INTVAR], [("transaction", False, [33, 5])]),
        ([*ROWS, xid()], [("transaction", True, [19, 30, 16])]),
        ([xid(), DDL], [("transaction", True, [16]), ("statement", True, [2])]),
        ([gtid(1), query(b"XA START " + XA), *ROWS, query(b"XA END " + XA), (38, PREPARE)],
         [("XA prepare", True, [33, 2, 19, 30, 2, 38])]),
        ([gtid(1), query(b"XA START " + XA), (38, b"\x01" + PREPARE[1:])],
         [("XA commit in one phase", True, [33, 2, 38])]),
        ([gtid(1), query(b"XA COMMIT " + XA), query(b"XA ROLLBACK " + XA)],
         [("XA commit", True, [33, 2]), ("XA rollback", True, [2])]),
        (
            [(17, bytes(4)), (9, bytes(4)), query(b"x"), (18, query(b"LOAD")[1])],
            [("statement", True, [17, 9, 2]), ("statement", True, [18])],
        ),
        ([gtid(1), (17, bytes(4)), (18, bytes(40))], [("statement", True, [33, 17, 18])]),
        ([gtid(1), BEGIN, (17, bytes(4)), (18, bytes(40)), xid()],
         [("transaction", True, [33, 2, 17, 18, 16])]),
        ([gtid(1), (26, b"\x01\0\0")], [("incident", True, [33, 26])]),
        ([gtid(1), BEGIN, (37, bytes(52)), COMMIT], [("transaction", True, [33, 2, 37, 2])]),
        ([gtid(1), (29, b"\0x"), BEGIN, xid()], [("transaction", True, [33, 29, 2, 16])]),
        ([(35, bytes(8)), (27, b"f"), (3, b"")], []),
        ([query(b"")], [("statement", True, [2])]),
    ],
)  # fmt: skip
def test_groups_of_mysql(
    tmp_path: Path, events: list[tuple[int, bytes]], expected: list[tuple[str, bool, list[int]]]
) -> None:
    assert shapes(grouped(tmp_path, *events)) == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([mariadb_gtid(1, 4), *ROWS, xid()], [("transaction", True, [162, 19, 30, 16])]),
        ([mariadb_gtid(1, 4), (160, b"x"), INSERT, COMMIT],
         [("transaction", True, [162, 160, 2, 2])]),
        ([mariadb_gtid(1, 4), BEGIN, INSERT, COMMIT], [("transaction", True, [162, 2, 2, 2])]),
        ([mariadb_gtid(1, 1), INTVAR, DDL, mariadb_gtid(2, 1)],
         [("statement", True, [162, 5, 2]), ("transaction", False, [162])]),
        (
            [
                mariadb_gtid(1, 0x40, rest=PREPARE[1:5] + b"\x01\0x"),
                *ROWS,
                query(b"XA END " + XA),
                (38, PREPARE),
            ],
            [("XA prepare", True, [162, 19, 30, 2, 38])],
        ),
        ([mariadb_gtid(1, 0x81, rest=PREPARE[1:5] + b"\x01\0x"), query(b"XA COMMIT " + XA)],
         [("XA commit", True, [162, 2])]),
        ([mariadb_gtid(1, 0x80, rest=PREPARE[1:5] + b"\x01\0x"), query(b"XA ROLLBACK " + XA)],
         [("XA rollback", True, [162, 2])]),
    ],
)  # fmt: skip
def test_groups_of_mariadb(
    tmp_path: Path, events: list[tuple[int, bytes]], expected: list[tuple[str, bool, list[int]]]
) -> None:
    assert shapes(grouped(tmp_path, *events, version=MARIADB)) == expected


def test_what_is_known_of_a_transaction(tmp_path: Path) -> None:
    micros = 1_700_000_000_123_456
    rest = struct.pack("<Q", micros | 1 << 55)[:7] + struct.pack("<Q", micros - 5)[:7] + packed(200)
    found, cut = grouped(
        tmp_path,
        (35, bytes(8)),
        gtid(7, last=3, sequence=5, rest=rest),
        BEGIN,
        xid(),
        gtid(8),
        BEGIN,
    )
    end = len(log((35, bytes(8)), gtid(7, rest=rest), BEGIN, xid()))
    assert (found.file, found.start, found.end_file, found.end, found.log_pos) == (
        "binlog.000001",
        len(log((35, bytes(8)))),
        found.file,
        end,
        end,
    )
    assert (found.gtid, found.last_committed, found.sequence_number) == (f"{UUID_TEXT}:7", 3, 5)
    assert (
        found.immediate_commit_timestamp,
        found.original_commit_timestamp,
        found.transaction_length,
    ) == (micros, micros - 5, 200)
    assert (found.server_id, found.timestamp, found.begin, found.compressed) == (
        1,
        1_700_000_000,
        True,
        False,
    )
    assert (cut.start, cut.complete, cut.gtid) == (end, False, f"{UUID_TEXT}:8")
    assert cut.end == len(log((35, bytes(8)), gtid(7, rest=rest), BEGIN, xid(), gtid(8), BEGIN))


def test_compressed_transaction_ends_where_its_payload_ends(tmp_path: Path) -> None:
    inner = b"".join(event(kind, body, checksum=False) for kind, body in (BEGIN, *ROWS, xid()))
    first, second = grouped(tmp_path, gtid(1), payload(inner), gtid(2), BEGIN, xid())
    assert (first.end, first.compressed, first.complete) == (second.start, True, True)
    assert [event.type for event in first.events] == [33, 40, 2, 19, 30, 16]
    assert not second.compressed


@pytest.mark.parametrize("last", [COMMIT, ROLLBACK, xid(), (38, PREPARE)])
def test_log_that_is_entered_before_the_end_of_a_transaction(
    tmp_path: Path, last: tuple[int, bytes]
) -> None:
    cut, whole = grouped(tmp_path, last, DDL)
    assert (cut.begin, cut.complete, whole.begin) == (False, True, True)
    (both,) = grouped(tmp_path, query(b"XA END " + XA), last)
    assert (both.begin, both.complete) == (False, True)


def test_plain_gtid_is_read_when_somebody_asks(tmp_path: Path) -> None:
    kind, body = gtid(1)
    found, fde = list(with_formats(LogReader([write(tmp_path, log((kind, body[:9])))])))[-1]
    boundaries = Boundaries()
    boundaries.start(found, fde)
    assert boundaries.first is found
    with pytest.raises(InputError):
        assert boundaries.identity
    with pytest.raises(InputError):
        assert boundaries.gtid


def test_xa_names(tmp_path: Path) -> None:
    made = [
        gtid(1),
        query(b"XA START " + XA),
        (38, PREPARE),
        gtid(2),
        query(b"XA COMMIT " + XA),
        query(b"xa rollback 'a' ;"),
    ]
    assert [found.xid for found in grouped(tmp_path, *made)] == [
        "X'78',X'',1",
        "X'78',X'',1",
        "'a'",
    ]
    assert TransactionKind("XA prepare") is TransactionKind.XA_PREPARE


def test_transaction_over_two_relay_logs(tmp_path: Path) -> None:
    paths = [
        write(
            tmp_path,
            log(gtid(1), BEGIN, ROWS[0], (4, struct.pack("<Q", 4) + b"relay.000002")),
            "relay.000001",
        ),
        write(tmp_path, log((35, bytes(8)), ROWS[1], xid(), created=0), "relay.000002"),
    ]
    (found,) = group(LogReader(paths))
    assert (found.file, found.end_file, found.complete, found.start) == (
        "relay.000001",
        "relay.000002",
        True,
        len(log()),
    )


def test_a_source_that_was_started_anew_cuts_off_what_was_open(tmp_path: Path) -> None:
    """Without GTIDs, a statement behind it would else be a part of the open transaction."""
    paths = [write(tmp_path, log(BEGIN, *ROWS)), write(tmp_path, log(DDL), "binlog.000002")]
    cut, whole = group(LogReader(paths))
    assert (cut.complete, cut.end_file, cut.end) == (False, "binlog.000001", len(log(BEGIN, *ROWS)))
    assert (whole.kind, whole.start) == (TransactionKind.STATEMENT, len(log()))


def test_a_payload_that_is_not_unpacked_is_all_of_its_transaction(tmp_path: Path) -> None:
    inner = b"".join(event(kind, body, checksum=False) for kind, body in (BEGIN, *ROWS, xid()))
    path = write(tmp_path, log(gtid(1), payload(inner), gtid(2), BEGIN, xid()))
    tracker, ends = TransactionTracker(unpacked=False), []
    for found, fde in with_formats(LogReader([path])):
        if found.inner_index < 0 and (boundary := tracker.feed(found, fde)) is not None:
            ends += [boundary.ended] if boundary.ended is not None else []
    first, second = ends
    assert (first.gtid, first.compressed, first.complete) == (f"{UUID_TEXT}:1", True, True)
    assert first.end == second.start


def test_quiet_events_need_not_be_fed(tmp_path: Path) -> None:
    path = write(tmp_path, log(gtid(1), BEGIN, *ROWS, xid()))
    tracker, seen = TransactionTracker(), []
    for found, fde in with_formats(LogReader([path])):
        if found.type not in (19, 30):
            boundary = tracker.feed(found, fde)
            seen.append((tracker.in_transaction, tracker.before_begin, boundary is not None))
    assert seen == [
        (False, False, False),
        (True, True, True),
        (True, False, False),
        (False, False, True),
    ]
    assert tracker.finish() is None


@pytest.mark.parametrize(
    "body",
    [
        b"short",
        struct.pack("<IIBHH", 1, 0, 5, 0, 0) + b"ab",
        struct.pack("<IIBHH", 1, 0, 0, 0, 400),
    ],
)
def test_query_event_that_is_cut(tmp_path: Path, body: bytes) -> None:
    reader = LogReader([write(tmp_path, log((2, body)))])
    with pytest.raises(InputError, match="Query event"):
        [query_text(found) for found in reader if found.type == 2]


@pytest.mark.parametrize("capture", captures(), ids=lambda path: path.name)
def test_transactions_of_real_logs_are_complete(capture: Path) -> None:
    """The source says how long its transactions are; here every group must agree, and every byte
    belongs to one."""
    transactions = list(group(LogReader(logs(capture))))
    assert transactions
    assert all(found.complete and found.begin for found in transactions)
    for found in transactions:
        if found.transaction_length:
            assert found.end - found.start == found.transaction_length
