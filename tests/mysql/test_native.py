"""Rows events as BINLOG statements: what is in the literals, byte by byte. No server is needed."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode
from pathlib import Path

import pytest

from applier.binlog.header import ROWS_TYPES
from applier.errors import InputError
from applier.mysql.client.dialect import ACCEPTED, TargetDialect
from applier.mysql.client.pipeline import PipelineStatement
from applier.mysql.feed import Feed
from applier.mysql.statements.native import NativeRows
from applier.options import parse_options
from tests.binlog.build import (
    compressed,
    event,
    gtid,
    int_image,
    log,
    mariadb_gtid,
    payload,
    query,
    rows,
    table_map,
    write,
    xid,
)

Shipped = list[tuple[int, bytes]]
"""(type, body) of each event of a literal."""


def shipped(statement: PipelineStatement, *, checksum: bool = True) -> Shipped:
    """The server does not verify the checksums of rows events, whose flags are changed; it does
    know that they have one."""
    assert statement.sql.startswith(b"BINLOG '")
    data, found = b64decode(statement.sql[8:-1], validate=True), []
    while data:
        length = struct.unpack_from("<I", data, 9)[0]
        raw, data = data[:length], data[length:]
        if checksum and raw[4] not in ROWS_TYPES:
            assert struct.unpack("<I", raw[-4:])[0] == zlib.crc32(raw[:-4])
        found.append((raw[4], raw[19:-4] if checksum else raw[19:]))
    return found


def literals(
    tmp_path: Path,
    content: bytes,
    *,
    server: str = "9.7",
    limit: int = 1 << 20,
    one_by_one: bool = False,
    **options: object,
) -> list[PipelineStatement]:
    """All rows of a log, without the format description."""
    parsed = parse_options(**options)
    writer = NativeRows(TargetDialect(ACCEPTED[server], {}, {}, False), parsed, limit)
    writer.one_by_one = one_by_one
    statements: list[PipelineStatement] = []
    for source in Feed([str(write(tmp_path, content))], parsed):
        writer.describe(source.format)
        for one in source.events:
            if writer.add(one, source.format):
                statements += writer.flush()
    return statements + writer.flush()


ONE, TWO = table_map(), table_map(2, table=b"u")


def transaction(number: int, *events: tuple[int, bytes]) -> tuple[tuple[int, bytes], ...]:
    return (gtid(number), query(b"BEGIN"), *events, xid())


def test_transactions_travel_as_one_statement(tmp_path: Path) -> None:
    """All table maps, then all rows, of which the last ends it."""
    first = transaction(1, ONE, rows(30, int_image(1)))
    second = transaction(2, TWO, rows(32, int_image(2), 2))
    third = transaction(3, ONE, rows(31, int_image(1) + int_image(3)))
    (statement,) = literals(tmp_path, log(*first, *second, *third))
    assert shipped(statement) == [
        ONE,
        TWO,
        rows(30, int_image(1), flags=0),
        rows(32, int_image(2), 2, flags=0),
        rows(31, int_image(1) + int_image(3)),
    ]


def test_what_is_carried_out_differently_does_not_travel_together(tmp_path: Path) -> None:
    """Other flags (here: no foreign key checks), a table that has changed, a table under another
    number."""
    changed, renumbered = table_map(table=b"v"), table_map(3)
    unchecked = rows(30, int_image(2), flags=0x03)
    first = transaction(
        1,
        ONE,
        rows(30, int_image(1)),
        ONE,
        unchecked,
        ONE,
        unchecked,
        changed,
        rows(30, int_image(3)),
    )
    second = transaction(2, renumbered, rows(30, int_image(4), 3), ONE, rows(30, int_image(5)))
    (statement,) = literals(tmp_path, log(*first, *second))
    assert shipped(statement) == [
        *(ONE, rows(30, int_image(1))),
        *(ONE, rows(30, int_image(2), flags=0x02), unchecked),
        *(changed, renumbered, rows(30, int_image(3), flags=0), rows(30, int_image(4), 3)),
        *(ONE, rows(30, int_image(5))),
    ]


def test_the_description_is_sent_once_per_format(tmp_path: Path) -> None:
    source = next(iter(Feed([str(write(tmp_path, log(query(b"BEGIN"), xid())))], parse_options())))
    writer = NativeRows(
        TargetDialect(ACCEPTED["9.7"], {"gtid_next": "AUTOMATIC"}, {}, False),
        parse_options(),
        1 << 20,
    )
    description, automatic = writer.describe(source.format)
    ((kind, body),) = shipped(description)
    assert (kind, body[2:8]) == (15, b"8.0.36")
    assert automatic.sql == b"SET @@session.gtid_next=_latin1'AUTOMATIC'"
    assert writer.describe(source.format) == []
    writer.forget()
    assert len(writer.describe(source.format)) == 2


def test_events_of_a_compressed_transaction_get_headers_and_checksums(tmp_path: Path) -> None:
    inner = (query(b"BEGIN"), table_map(), rows(30, int_image(1)), xid())
    packed = payload(b"".join(event(kind, body, checksum=False) for kind, body in inner))
    (statement,) = literals(tmp_path, log(gtid(1), packed))
    assert shipped(statement) == [inner[1], inner[2]]


def test_compressed_events_of_mariadb_are_shipped_plain(tmp_path: Path) -> None:
    whole = rows(23, int_image(1))[1]
    head = len(whole) - len(int_image(1))
    squeezed = 166, whole[:head] + compressed(whole[head:])
    content = log(mariadb_gtid(1), table_map(), squeezed, xid(), version="10.11.6-MariaDB")
    (statement,) = literals(tmp_path, content, server="mariadb")
    assert shipped(statement) == [table_map(), (23, whole)]


def test_rows_of_version_1_become_version_2_where_they_must(tmp_path: Path) -> None:
    content = log(
        query(b"BEGIN"),
        table_map(),
        rows(23, int_image(1), flags=0),
        rows(24, int_image(1) + int_image(2)),
        xid(),
        version="5.7.29",
    )
    (new,) = literals(tmp_path, content)
    assert shipped(new) == [
        table_map(),
        rows(30, int_image(1), flags=0),
        rows(31, int_image(1) + int_image(2)),
    ]
    (old,) = literals(tmp_path, content, server="5.7")
    assert [kind for kind, _ in shipped(old)] == [19, 23, 24]


def test_a_log_without_checksums_is_shipped_without(tmp_path: Path) -> None:
    (statement,) = literals(
        tmp_path, log(query(b"BEGIN"), table_map(), rows(30, int_image(1)), xid(), checksum=False)
    )
    assert shipped(statement, checksum=False) == [table_map(), rows(30, int_image(1))]


def test_a_long_statement_goes_on_with_its_table_maps(tmp_path: Path) -> None:
    """Each literal ends with an event that ends the statement: the server forgets the table maps
    then."""
    events = [rows(30, int_image(number), flags=0) for number in range(4)]
    content = log(
        query(b"BEGIN"),
        table_map(),
        table_map(2, table=b"u"),
        *events,
        rows(30, int_image(4)),
        xid(),
    )
    first, second, third = literals(tmp_path, content, limit=150)
    maps = [table_map(), table_map(2, table=b"u")]
    assert shipped(first) == [*maps, events[0], rows(30, int_image(1))]
    assert shipped(second) == [*maps, events[2], rows(30, int_image(3))]
    assert shipped(third) == [*maps, rows(30, int_image(4))]


def test_a_table_that_is_not_wanted_is_left_out_and_the_statement_still_ends(
    tmp_path: Path,
) -> None:
    content = log(
        query(b"BEGIN"),
        table_map(),
        table_map(2, table=b"u"),
        rows(30, int_image(1), flags=0),
        rows(30, int_image(2), 2),
        xid(),
    )
    (statement,) = literals(tmp_path, content, table="d.t")
    assert shipped(statement) == [table_map(), rows(30, int_image(1))]


def test_a_database_gets_its_new_name(tmp_path: Path) -> None:
    content = log(query(b"BEGIN"), table_map(), rows(30, int_image(1)), xid())
    (statement,) = literals(tmp_path, content, rewrite_db="d:longer")
    assert shipped(statement) == [table_map(database=b"longer"), rows(30, int_image(1))]


def test_one_by_one_names_event_and_table(tmp_path: Path) -> None:
    content = log(
        query(b"BEGIN"), table_map(), rows(30, int_image(1), flags=0), rows(30, int_image(2)), xid()
    )
    first, second = literals(tmp_path, content, one_by_one=True)
    assert (first.table, second.table) == ("d.t", "d.t")
    assert first.event is not None
    assert second.event is not None
    assert (first.event.type, second.event.type) == (30, 30)
    assert first.event.position < second.event.position


def test_an_unknown_table_id_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="table id 9") as caught:
        literals(tmp_path, log(query(b"BEGIN"), table_map(), rows(30, int_image(1), 9), xid()))
    assert caught.value.position is not None
