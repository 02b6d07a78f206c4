"""The compiled reading of plain transactions beside the slow one: the same loads, the same notes,
the same errors."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import applier
from applier.binlog import wire
from applier.errors import InputError
from applier.forecast.inventory.facts import facts_of_tables
from applier.forecast.workload import bulk_loads, loads
from applier.forecast.workload.loads import LoadReader
from applier.forecast.workload.schema import Schema
from applier.forecast.workload.transaction_load import TransactionLoad
from lookup.versions import rules_for
from tests.binlog.build import gtid, log, mariadb_gtid, packed, query, rows, table_map, write, xid

CAPTURES = Path(__file__).resolve().parents[1] / "captures/open"
BEGIN = query(b"BEGIN")
SCHEMA = (
    "CREATE DATABASE d; CREATE TABLE d.t (a INT, b VARCHAR(300), c INT, KEY k (a, b), KEY c (c));"
)


class Counted(bulk_loads.BulkLoads):
    """Counts the transactions that the kernel takes."""

    taken = 0

    def run(self, position: int, limit: int) -> Iterator[bulk_loads.Stretch]:
        for stretch in super().run(position, limit):
            Counted.taken += len(stretch.transactions)
            yield stretch


def shown(load: TransactionLoad) -> tuple[Any, ...]:
    parts = [
        (target.table, target.kind, target.columns, target.before, target.after, target.key,
         one.events, one.rows,
         one.row_bytes, one.statements, one.distinct_values, one.sizes)
        for target, one in load.applied.items()
    ]  # fmt: skip
    return (
        load.as_dict(),
        load.kind,
        load.server_id,
        load.end_file,
        load.complete,
        load.statement,
        parts,
    )


def read(
    path: Path, schema: Schema | None, *, compiled: bool, stop: int | None = None
) -> list[Any]:
    found: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loads, "smallest_log_bytes", lambda: 0)
        patch.setattr(loads, "MOST_FRUITLESS", 0)
        patch.setattr(loads, "compiled_loads", Counted if compiled else lambda: None)
        reader = LoadReader([path], schema=schema, stop_position=stop)
        try:
            found.extend(shown(load) for load in reader)
        except InputError as error:
            found.append((str(error), error.file, error.position))
        return [*found, reader.notes, reader.server_version]


def taken(path: Path, schema: Schema | None = None, stop: int | None = None) -> int:
    """Both readings are the same; how many transactions the kernel took."""
    before = Counted.taken
    assert read(path, schema, compiled=True, stop=stop) == read(
        path, schema, compiled=False, stop=stop
    )
    return Counted.taken - before


def schema_of(text: str | Path) -> Schema:
    return Schema(facts_of_tables(applier.load_schema(text)), rules_for("5.7.29"))


@pytest.mark.parametrize("server", ["my_", "my56_", "my57_", "ma_"])
def test_captures_give_the_same_loads(server: str) -> None:
    count = 0
    for folder in sorted(CAPTURES.glob(f"{server}*")):
        for path in sorted(folder.glob("*binlog.0*")):
            if path.suffix[1:].isdigit():
                count += taken(path, schema_of(folder / "before.sql"))
    assert count >= 10


def image(values: tuple[int | None, bytes | None, int | None]) -> bytes:
    number, text, last = values
    bits = sum((value is None) << at for at, value in enumerate(values))
    body = b"" if number is None else struct.pack("<i", number)
    body += b"" if text is None else struct.pack("<H", len(text)) + text
    return bytes([bits]) + body + (b"" if last is None else struct.pack("<i", last))


TYPES = bytes([wire.LONG, wire.VARCHAR, wire.LONG])
MAP = table_map(types=TYPES, metadata=struct.pack("<H", 300))
SHORT_MAP = table_map(2, table=b"s")
NUMBERS = st.one_of(st.none(), st.integers(0, 3))
ROW = st.tuples(
    NUMBERS,
    st.one_of(st.none(), st.sampled_from([b"", b"a", b"\0", b"b" * 9, b"c" * 260])),
    NUMBERS,
)


@st.composite
def rows_events(draw: st.DrawFn) -> tuple[int, bytes]:
    kind = draw(st.sampled_from([23, 24, 25, 30, 31, 32]))
    halves = 2 if kind in (24, 31) else 1
    images = draw(st.lists(ROW, min_size=halves, max_size=4 * halves))
    images = images[: len(images) // halves * halves]
    return rows(kind, b"".join(map(image, images)), width=3, flags=draw(st.integers(0, 1)))


PLAIN = st.lists(st.one_of(rows_events(), st.just(MAP), st.just((29, b"\x05hello"))), max_size=4)
SHORT = st.integers(1, 4).map(
    lambda count: [SHORT_MAP, rows(30, b"\0\1\2\3\4" * count, table_id=2)]
)
ODD = st.sampled_from([
    [query(b"INSERT INTO d.t VALUES (1)")], [query(b"SAVEPOINT a")], [query(b"BEGIN")],
    [rows(30, b"", 0xFFFFFF)], [rows(30, b"\0\1", table_id=2)], [(5, b"\2" + bytes(8))],
])  # fmt: skip
STAMPS = st.sampled_from([
    b"", bytes(7), b"\1\2\3\4\5\6\0", bytes(6) + b"\x80" + bytes(7), bytes(6) + b"\x80",
    bytes(7) + packed(300), bytes(7) + packed(9) + struct.pack("<I", 80036),
    bytes(7) + packed(9) + struct.pack("<I", 1 << 31), bytes(7) + b"\xff",
])  # fmt: skip


@st.composite
def transactions(draw: st.DrawFn) -> list[tuple[int, bytes]]:
    body = [MAP, *draw(st.one_of(PLAIN, PLAIN, PLAIN, SHORT, ODD))]
    number, rest = draw(st.integers(1, 9)), draw(STAMPS)
    head = draw(st.sampled_from(["gtid", "gtid", "anonymous", "none", "mariadb", "bare"]))
    first = {
        "gtid": [gtid(number, last=number - 1, sequence=number, rest=rest), BEGIN],
        "anonymous": [gtid(0, last=1, sequence=2, anonymous=True, rest=rest), BEGIN],
        "none": [BEGIN],
        "mariadb": [mariadb_gtid(number, draw(st.sampled_from([0, 2, 12])), domain=3)], "bare": [],
    }[head]  # fmt: skip
    last = draw(
        st.sampled_from([[xid(number)], [xid(number)], [xid(number)], [query(b"COMMIT")], []])
    )
    return [*first, *body, *last]


@settings(max_examples=300, deadline=None)
@given(
    parts=st.lists(transactions(), min_size=1, max_size=8), keyed=st.booleans(),
    checksum=st.booleans(),
    damage=st.one_of(st.none(), st.tuples(st.floats(0, 1), st.integers(1, 255))),
    stop=st.one_of(st.none(), st.floats(0, 1)),
)  # fmt: skip
def test_any_log_gives_the_same_loads(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[tuple[int, bytes]]], keyed: bool,
    checksum: bool,
    damage: tuple[float, int] | None, stop: float | None,
) -> None:  # fmt: skip
    content = bytearray(log(*(event for part in parts for event in part), checksum=checksum))
    if damage is not None:
        content[125 + int(damage[0] * (len(content) - 126))] ^= damage[1]
    path = write(tmp_path_factory.mktemp("log"), bytes(content))
    taken(
        path,
        schema_of(SCHEMA) if keyed else None,
        None if stop is None else 4 + int(stop * (len(content) - 4)),
    )


def test_the_kernel_takes_what_is_plain(tmp_path: Path) -> None:
    """All but the first transaction, which teaches it, and a statement; distinct values are counted
    as such."""
    values = [(1, b"a", 1), (1, b"a", 2), (None, b"a", 3), (None, b"", 3)]
    plain = [gtid(7), BEGIN, MAP, rows(32, b"".join(map(image, values)), width=3), xid()]
    path = write(
        tmp_path, log(*plain * 3, gtid(8), query(b"CREATE TABLE d.u (a INT)"), *plain * 300)
    )
    assert taken(path, schema_of(SCHEMA)) == 302
    assert {one[6][0][10] for one in read(path, schema_of(SCHEMA), compiled=True)[:3]} == {3}


def test_a_log_of_many_small_files_is_worth_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the file on with which so many bytes have come that compiling pays."""
    paths = [tmp_path / f"binlog.{at:06}" for at in (1, 2, 3)]
    for path in paths:
        path.write_bytes(
            log(*[gtid(7), BEGIN, MAP, rows(32, image((1, b"a", 1)), width=3), xid()] * 40)
        )
    size = paths[0].stat().st_size
    monkeypatch.setattr(loads, "smallest_log_bytes", lambda: size + 1)
    monkeypatch.setattr(loads, "compiled_loads", Counted)
    monkeypatch.setattr(loads, "MOST_FRUITLESS", 0)
    found = {}
    for worth in (4 * size, 3 * size, 2 * size):
        monkeypatch.setattr(loads, "WORTH_COMPILING_BYTES", worth)
        before, count = Counted.taken, sum(1 for _ in LoadReader(paths))
        found[worth // size] = Counted.taken - before
        assert count == 120
    assert found[4] == 0 and found[2] == 2 * found[3] > 60


def test_many_tables_and_many_heads(tmp_path: Path) -> None:
    """More table ids, table maps and heads than there was room for at first."""
    heads = [
        [
            gtid(1),
            BEGIN,
            table_map(number, table=b"t%d" % number),
            rows(30, b"\0\1\2\3\4", number, flags=flags),
            xid(),
        ]
        for number in range(1, 400)
        for flags in (0, 1)
    ]
    path = write(tmp_path, log(*(event for one in heads * 2 for event in one)))
    assert taken(path) == len(heads)


def test_a_long_transaction_and_many_values(tmp_path: Path) -> None:
    """More rows events, and more key values in one, than the kernel has room for: the slow reader
    takes them."""
    one = [gtid(1), BEGIN, MAP, rows(32, image((1, None, 1)), width=3), xid()]
    many = rows(32, b"".join(image((number, None, 1)) for number in range(40_000)), width=3)
    long = [
        gtid(2),
        BEGIN,
        MAP,
        *[rows(32, image((1, None, 1)), width=3)] * (bulk_loads.EVENTS + 1),
        xid(),
    ]
    path = write(tmp_path, log(*one, gtid(1), BEGIN, MAP, many, xid(), *one * 5, *long, *one * 5))
    assert taken(path, schema_of(SCHEMA)) == 10


def test_a_packed_log_is_read_in_bulk_as_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Piece by piece; the kernel begins where enough of it is there."""
    one = [gtid(1), BEGIN, MAP, rows(32, image((1, b"a", 1)), width=3), xid()]
    content = log(*one * 2000)
    plain, packed_log = write(tmp_path, content), tmp_path / "binlog.000001.gz"
    packed_log.write_bytes(gzip.compress(content))
    expected = read(plain, None, compiled=False)
    before = Counted.taken
    monkeypatch.setattr(loads, "compiled_loads", Counted)
    monkeypatch.setattr(loads, "smallest_log_bytes", lambda: len(content) // 2)
    found = [shown(load) for load in LoadReader([packed_log])]
    assert [one[0] | {"file": ""} for one in found] == [
        one[0] | {"file": ""} for one in expected[:-2]
    ]
    assert 100 < Counted.taken - before < 1999


def test_a_kernel_that_no_folder_keeps_serves_short_logs_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An executor of Spark may have no home folder: what it compiled once is there all the same."""
    monkeypatch.setattr("applier.binlog.columnar.cache.cached_file", lambda name: None)
    bulk_loads.kernel.cache_clear()
    assert bulk_loads.smallest_log_bytes() == bulk_loads.WORTH_COMPILING_BYTES
    bulk_loads.compiled_loads()
    assert bulk_loads.smallest_log_bytes() == bulk_loads.SMALLEST_LOG_BYTES
