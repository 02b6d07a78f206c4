"""Logs and schemas that cannot be used: each is an error that names the file, the position, the
table and the next step."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import applier
from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.result import ExecutedGtids
from tests.applier.logs import BEGIN, INT_TABLE, insert, ints, replay_log, transaction
from tests.binlog.build import (
    MAGIC,
    format_description,
    gtid,
    log,
    packed,
    query,
    rows,
    table_map,
    write,
    xid,
)
from tests.captures_support import captures, logs


def refused(folder: Path, content: bytes, schema: str = INT_TABLE, **options: object) -> InputError:
    """The error of a log that cannot be read. Half a transaction never stays behind."""
    tables = applier.load_schema(schema)
    before = [table.rows() for table in tables]
    with pytest.raises(InputError) as caught:
        applier.replay([write(folder, content)], into=tables, **options)
    assert [table.rows() for table in tables] == before
    assert caught.value.file is not None
    assert "binlog.000001" in caught.value.file
    return caught.value


def stopped(
    folder: Path, content: bytes, schema: str = INT_TABLE, **options: object
) -> ReplicationError:
    """The error that stopped the applier."""
    _, result = replay_log(folder, content, schema, **options)
    assert result.error is not None
    return result.error


# files


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"\xfe", "ends after 1 bytes of a log's first 4"),
        (b"\xfebi", "ends after 3 bytes of a log's first 4"),
        (b"-- MySQL dump 10.13\n", "does not start with"),
        (b"\x7fELF" + bytes(200), "does not start with"),
        (b"\xfdbin" + bytes(600), "encrypted"),
        (MAGIC + b"\0" * 10, "middle of an event header"),
        (MAGIC + b"\0" * 200, "length of 0 bytes"),
        (MAGIC + b"\xff" * 200, "middle of a"),
    ],
)
def test_no_binary_log(tmp_path: Path, content: bytes, says: str) -> None:
    assert says in refused(tmp_path, content).message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file") as caught:
        applier.replay([tmp_path / "binlog.000009"])
    assert str(caught.value.file).endswith("binlog.000009")


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no index of logs"):
        applier.replay([tmp_path])


def test_nothing_but_the_magic_number_holds_nothing(tmp_path: Path) -> None:
    """A server that dies at once leaves such a file; there is nothing in it to lose."""
    tables, result = replay_log(tmp_path, MAGIC)
    assert (result.transactions, result.error, tables["d.t"].rows()) == (0, None, [])


def test_events_before_the_format_description(tmp_path: Path) -> None:
    content = log(*insert(1, 5), checksum=False)
    start = len(MAGIC) + len(format_description(checksum=False))
    error = refused(tmp_path, MAGIC + content[start:])
    assert error.position == 4
    assert "format description" in error.message


@pytest.mark.parametrize("checksum", [True, False])
def test_a_log_cut_anywhere(tmp_path: Path, checksum: bool) -> None:
    """Every cut inside an event is an error at that event; a cut between events leaves out the
    transaction that it splits."""
    content = log(*insert(1, 1, 2), *insert(2, 3), checksum=checksum)
    starts = [4]
    while starts[-1] < len(content):
        starts.append(
            starts[-1] + int.from_bytes(content[starts[-1] + 9 : starts[-1] + 13], "little")
        )
    ends_of_transactions = {starts[6]: 2, starts[11]: 3}
    for size in range(5, len(content)):
        tables = applier.load_schema(INT_TABLE)
        path = write(tmp_path, content[:size])
        rows_of_whole = max(
            (count for end, count in ends_of_transactions.items() if end <= size), default=0
        )
        if size in starts:
            result = applier.replay([path], into=tables)
            assert result.error is None
            assert (result.incomplete_transaction is None) == (size in (*starts[:2], starts[6]))
        else:
            with pytest.raises(InputError) as caught:
                applier.replay([path], into=tables)
            assert caught.value.position == max(start for start in starts if start < size)
            assert caught.value.hint
        assert len(tables["d.t"]) == rows_of_whole


def test_a_wrong_checksum(tmp_path: Path) -> None:
    content = bytearray(log(*insert(1, 5)))
    content[-6] ^= 1
    error = refused(tmp_path, bytes(content))
    assert "checksum of a Xid event is wrong" in error.message
    assert error.position == len(content) - 31
    tables, result = replay_log(tmp_path, bytes(content), verify_checksum=False)
    assert result.error is None
    assert tables["d.t"].rows() == [(5,)]


def test_what_stands_before_the_damage_is_kept(tmp_path: Path) -> None:
    content = log(*insert(1, 5), *insert(2, 6))[:-1]
    tables = applier.load_schema(INT_TABLE)
    with pytest.raises(InputError):
        applier.replay([write(tmp_path, content)], into=tables)
    assert tables["d.t"].rows() == [(5,)]


def test_a_relay_log_cut_inside_an_event(tmp_path: Path) -> None:
    """Relay logs hold the source's format description behind their own, and end where the receiver
    died."""
    relay = log(
        (15, format_description("8.0.36")[19:-4], 0), *insert(1, 5), *insert(2, 6), server_id=2
    )
    tables = applier.load_schema(INT_TABLE)
    with pytest.raises(InputError, match="ends in the middle of a Xid event") as caught:
        applier.replay([write(tmp_path, relay[:-3], "relay.000001")], into=tables)
    assert caught.value.hint is not None
    assert "--stop-position" in caught.value.hint
    assert tables["d.t"].rows() == [(5,)]
    result = applier.replay(
        [tmp_path / "relay.000001"],
        into=applier.load_schema(INT_TABLE),
        stop_position=caught.value.position,
    )
    assert result.transactions == 1
    assert result.incomplete_transaction is not None


# rows events


def test_rows_without_their_table_map(tmp_path: Path) -> None:
    error = refused(tmp_path, log(gtid(1), BEGIN, rows(30, ints(5), table_id=7), xid()))
    assert "table id 7, which no table map" in error.message
    assert error.hint is not None
    assert "beginning of a transaction" in error.hint


def test_rows_that_start_behind_their_table_map(tmp_path: Path) -> None:
    content = log(*insert(1, 5))
    position = len(content) - 31 - len(log(rows(30, ints(5)))) + len(log())
    with pytest.raises(InputError, match="no table map"):
        applier.replay(
            [write(tmp_path, content)], into=applier.load_schema(INT_TABLE), start_position=position
        )


def test_the_end_of_a_statement_for_no_table_is_no_loss(tmp_path: Path) -> None:
    _, result = replay_log(tmp_path, log(*transaction(1, rows(30, b"", table_id=0xFFFFFF))))
    assert result.error is None


@pytest.mark.parametrize("images", [ints(5)[:-1], ints(5) + b"\0", ints(5) + b"\0\1\2"])
def test_images_that_do_not_end_with_the_event(tmp_path: Path, images: bytes) -> None:
    error = refused(tmp_path, log(*transaction(1, table_map(), rows(30, images))))
    assert "runs past the end" in error.message
    assert error.table == "d.t"
    assert error.position is not None


def test_a_string_longer_than_the_event(tmp_path: Path) -> None:
    content = log(
        *transaction(1, table_map(types=b"\x0f", metadata=b"\x64\0"), rows(30, b"\0\x50abc"))
    )
    assert (
        "runs past the end"
        in refused(tmp_path, content, "CREATE TABLE d.t (v VARBINARY(100));").message
    )


def test_a_width_that_is_not_the_table_maps(tmp_path: Path) -> None:
    error = refused(tmp_path, log(*transaction(1, table_map(), rows(30, ints(5), width=3))))
    assert "3 columns where its table map has 1" in error.message
    assert error.table == "d.t"


@pytest.mark.parametrize(
    ("types", "metadata", "says"),
    [
        (b"\x6f", b"", "column type 111"),
        (b"\xf6", b"\x42\x00", "DECIMAL"),
        (b"\xf6", b"\x05\x09", "DECIMAL"),
        (b"\xfc", b"\x09", "BLOB"),
        (b"\x12", b"\x07", "fractional seconds"),
        (b"\xfe", b"\xf7\x09", "ENUM or SET"),
        (b"\x14" * 2000, b"\x14" * 2000, "array of arrays"),
    ],
)
def test_columns_that_no_server_has(
    tmp_path: Path, types: bytes, metadata: bytes, says: str
) -> None:
    """In a column that the local table does not have, so that no rule of conversion refuses it
    first."""
    plain = (
        packed(1 + len(types))
        + b"\x03"
        + types
        + packed(len(metadata))
        + metadata
        + bytes((8 + len(types)) // 8)
    )
    mapped = table_map()[1][:8] + b"\1d\0\1t\0" + plain
    width = 1 + len(types)
    body = rows(30, b"")[1][:10] + packed(width) + b"\xff" * ((width + 7) // 8) + bytes(40)
    error = refused(tmp_path, log(*transaction(1, (19, mapped), (30, body))))
    assert says in error.message
    assert error.position is not None


# the schema


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    error = stopped(tmp_path, log(*insert(1, 5)), "CREATE TABLE d.other (a INT);")
    assert (error.number, error.table) == (1146, "d.t")
    assert error.position is not None
    assert error.hint is not None
    assert "--schema" in error.hint


def test_a_type_that_does_not_match(tmp_path: Path) -> None:
    error = stopped(
        tmp_path, log(*insert(1, 5)), "CREATE TABLE d.t (a VARCHAR(10) CHARSET utf8mb4);"
    )
    assert error.number == 1677
    assert error.table == "d.t"
    assert error.message == (
        "Column 0 of table 'd.t' cannot be converted from type 'int' to type 'varchar(40) utf8mb4'"
    )
    assert error.position is not None
    assert error.hint is not None


def test_skipping_1677_passes_over_the_event(tmp_path: Path) -> None:
    tables, result = replay_log(
        tmp_path, log(*insert(1, 5)), "CREATE TABLE d.t (a DATE);", skip_errors="1677"
    )
    assert result.error is None
    assert tables["d.t"].rows() == []
    assert list(result.notes) == [
        (
            "skipped by --skip-errors: Column 0 of table 'd.t' cannot be converted from type 'int' "
            "to type 'date'"
        )
    ]


@pytest.mark.parametrize(
    ("sql", "number"),
    [
        (b"CREATE TABLE u (a INTT)", 1064),
        (b"CREATE TABLE u (a INT", 1064),
        (b"CREATE TABLE u (a VARCHAR(x))", 1064),
        (b"CREATE TABLE u (a ENUM(1))", 1064),
        (b"CREATE TABLE u (KEY k (a('1')), a INT)", 1064),
        (b"ALTER TABLE t ADD COLUMN", 1064),
        (b"DROP INDEX", 1064),
        (b"CREATE INDEX", 1064),
        (b"CREATE INDEX i ON t", 1064),
        (b"ALTER TABLE gone ADD b INT", 1146),
        (b"DROP TABLE gone", 1051),
        (b"CREATE TABLE t (a INT)", 1050),
        (b"CREATE TABLE u (a INT, KEY k (b))", 1072),
        (b"GIBBERISH", 1235),
        (b"ALTER TABLE t DROP PARTITION p0", 1235),
    ],
)
def test_statements_that_cannot_be_carried_out(tmp_path: Path, sql: bytes, number: int) -> None:
    error = stopped(tmp_path, log(*insert(1, 5), gtid(2), query(sql)))
    assert error.number == number
    assert error.file == "binlog.000001"
    assert error.position is not None
    assert error.position > 4
    if number in (1064, 1235):
        assert error.hint is not None
        assert f"--skip-errors {number}" in error.hint
        assert sql.decode()[:11] in error.message or number == 1235


def test_skip_errors_passes_over_a_statement(tmp_path: Path) -> None:
    content = log(gtid(1), query(b"CREATE TABLE u (a INTT)"), *insert(2, 5))
    tables, result = replay_log(tmp_path, content, skip_errors="1064")
    assert result.error is None
    assert tables["d.t"].rows() == [(5,)]
    assert sum(result.notes.values()) == 1


REFUSED_UPDATE = query(b"UPDATE u SET a = SLEEP(1)", b"d")


@pytest.mark.parametrize(
    ("statements", "inexact"),
    [
        ((), {"d.u"}),
        ((b"TRUNCATE TABLE u",), {"d.u"}),
        ((b"RENAME TABLE u TO v",), {"d.u", "d.v"}),
        ((b"DROP TABLE u",), set()),
        ((b"DROP TABLE IF EXISTS u, x", b"CREATE TABLE u (a INT)"), set()),
        ((b"CREATE TABLE v LIKE u", b"DROP TABLE u"), {"d.v"}),
        ((b"DROP DATABASE d",), set()),
        ((b"DROP DATABASE e",), {"d.u"}),
        ((b"CREATE TEMPORARY TABLE u (a INT)", b"DROP TABLE u"), {"d.u"}),
        ((b"CREATE TABLE bus (u_type INT COMMENT 'much')",), {"d.u"}),
        ((b"CREATE TABLE v LIKE`u`",), {"d.u", "d.v"}),
    ],
)
def test_a_table_of_a_skipped_statement_is_not_exact_until_it_is_dropped(
    tmp_path: Path, statements: tuple[bytes, ...], inexact: set[str]
) -> None:
    start = (gtid(1), query(b"CREATE TABLE u (a INT)", b"d"), gtid(2), REFUSED_UPDATE)
    rest = [
        event
        for number, sql in enumerate(statements, 3)
        for event in (gtid(number), query(sql, b"d"))
    ]
    first = [gtid(9), query(b"CREATE DATABASE e", b"e")] if b"DROP DATABASE e" in statements else []
    _, result = replay_log(tmp_path, log(*first, *start, *rest), skip_errors="1235")
    assert result.error is None, result.error
    assert set(result.inexact) == inexact


def test_a_copy_of_a_table_with_a_backtick_in_its_name_is_not_exact_either(tmp_path: Path) -> None:
    statements = (
        b"CREATE TABLE `a``b` (a INT)",
        b"UPDATE `a``b` SET a = SLEEP(1)",
        b"CREATE TABLE v LIKE `a``b`",
    )
    events = [
        event
        for number, sql in enumerate(statements, 1)
        for event in (gtid(number), query(sql, b"d"))
    ]
    _, result = replay_log(tmp_path, log(*events), skip_errors="1235")
    assert set(result.inexact) == {"d.a`b", "d.v"}


@pytest.mark.parametrize(
    ("action", "body", "inexact"),
    [
        (b"ON DELETE CASCADE", None, {"d.p", "d.c"}), (b"ON UPDATE SET NULL", None, {"d.p", "d.c"}),
        (b"ON DELETE RESTRICT", None, {"d.p"}),
        (b"", b"INSERT INTO w VALUES (1)", {"d.p", "d.w", "d.wc"}),
        (b"", b"BEGIN CALL q(1); END", {"d.p", ""}), (b"", b"SET @a = f(NEW.a)", {"d.p", ""}),
        (b"", b"BEGIN IF (NEW.a) THEN SET @a = ABS(NEW.a); END IF; END", {"d.p"}),
    ],
)  # fmt: skip
def test_what_follows_a_skipped_statement_is_not_exact_either(
    tmp_path: Path, action: bytes, body: bytes | None, inexact: set[str]
) -> None:
    """By foreign keys and by triggers."""
    statements = [
        b"CREATE TABLE p (a INT PRIMARY KEY)",
        b"CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (a) " + action + b")",
        b"CREATE TABLE w (a INT PRIMARY KEY)",
        b"CREATE TABLE wc (a INT, FOREIGN KEY (a) REFERENCES w (a) ON DELETE CASCADE)",
        b"UPDATE p SET a = SLEEP(1)",
    ]
    if body is not None:
        statements.insert(4, b"CREATE TRIGGER g AFTER UPDATE ON p FOR EACH ROW " + body)
    events = [
        event
        for number, sql in enumerate(statements, 1)
        for event in (gtid(number), query(sql, b"d"))
    ]
    _, result = replay_log(tmp_path, log(*events), skip_errors="1235")
    assert result.error is None, result.error
    assert set(result.inexact) == inexact


# compressed content


# XA


def test_rows_of_a_prepared_transaction_that_another_changed(tmp_path: Path) -> None:
    """The locks of a server would not let it happen; taking back the first would damage the
    second."""
    prepared = (38, struct.pack("<BIII", 0, 1, 1, 0) + b"x")
    content = log(
        gtid(1), query(b"XA START X'78',X'',1"), table_map(), rows(30, ints(5)),
        query(b"XA END X'78',X'',1"), prepared,
        *transaction(2, table_map(), rows(32, ints(5))),
        gtid(3), query(b"XA ROLLBACK X'78',X'',1"),
    )  # fmt: skip
    error = stopped(tmp_path, content)
    assert (error.number, error.table) == (1205, "d.t")
    assert error.position is not None
    error = stopped(
        tmp_path, content[: -len(log(gtid(3), query(b"XA ROLLBACK X'78',X'',1"))) + len(log())]
    )
    assert error.number == 1205


def test_a_prepared_transaction_is_left_out_of_what_a_damaged_log_gives(tmp_path: Path) -> None:
    prepared = (38, struct.pack("<BIII", 0, 1, 1, 0) + b"x")
    content = log(
        gtid(1),
        query(b"XA START X'78',X'',1"),
        table_map(),
        rows(30, ints(5)),
        prepared,
        *insert(2, 6),
        *insert(3, 7),
    )
    tables = applier.load_schema(INT_TABLE)
    with pytest.raises(InputError):
        applier.replay([write(tmp_path, content[:-1])], into=tables)
    assert tables["d.t"].rows() == [(6,)]


# real logs


@pytest.mark.parametrize(
    "capture", [path for path in captures() if len(logs(path)) > 2][:5], ids=lambda path: path.name
)
def test_a_gap_between_files(capture: Path) -> None:
    files = logs(capture)
    with pytest.raises(InputError) as caught:
        applier.replay([files[0], files[2]], into=applier.load_schema(capture / "before.sql"))
    assert caught.value.file is not None
    assert caught.value.hint is not None
    assert "in order" in caught.value.hint


def test_an_error_is_one_line_without_control_characters() -> None:
    """Whatever the names in a log are: they go to a terminal."""
    error = InputError(
        "a table `a\nb`", code=Code.BAD_ROWS, file="x\x1b[2J", table="d.\r\udcff", hint="do\tit"
    )
    assert (
        str(error)
        == "error BL111: a table `a\\nb` (file x\\x1b[2J, table d.\\r\\udcff). Next: do\\tit"
    )


@pytest.mark.parametrize("number", [0, -1, -(1 << 63), (1 << 63) - 1])
def test_a_transaction_number_that_is_none(number: int, tmp_path: Path) -> None:
    error = refused(tmp_path, log(gtid(number), BEGIN, table_map(), rows(30, ints(6)), xid()))
    assert "transaction number" in error.message
    assert error.position is not None


def test_gtids_of_two_sources_in_turn_are_gathered() -> None:
    """Each is a run of its own; a log of any length keeps a bounded number of them."""
    executed = ExecutedGtids()
    uuids = (bytes(16), bytes(15) + b"\1")
    for number in range(1, 25_001):
        for uuid in uuids:
            executed.add_plain(uuid, number)
    assert len(executed._runs) <= 10_000
    zero = "00000000-0000-0000-0000-00000000000"
    assert str(executed) == f"{zero}0:1-25000,{zero}1:1-25000"
