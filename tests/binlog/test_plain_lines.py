"""The lines that the kernel writes beside those of the slow listing: byte for byte, for every log
that is here or can be made."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import struct
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.binlog import plain_lines, wire
from applier.binlog.columnar.text import text_lines
from applier.binlog.columnar.text.text_lines import STATUS_VARIABLES, Lines
from applier.binlog.listing import Listing
from applier.binlog.status_vars import VARIABLES, parse_status_variables
from applier.cli.main import main
from tests.binlog.build import gtid, log, mariadb_gtid, query, rows, table_map, write, xid
from tests.forecast.test_bulk_loads import MAP, image, transactions

CAPTURES = Path(__file__).resolve().parents[1] / "captures"
BEGIN = query(b"BEGIN")


class Counted(text_lines.LineWriter):
    """Counts the lines that the kernel writes, and the texts that they come in."""

    taken = texts = 0

    def run(self, position: int, limit: int, state: int) -> Iterator[Lines]:
        for lines in super().run(position, limit, state):
            Counted.taken += lines.text.count("\n")
            Counted.texts += 1
            yield lines


def shown(arguments: list[str], *, compiled: bool) -> tuple[bytes, str, object]:
    """Output, what is said, and exit code of `binlag events`."""
    raw, err = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(raw, encoding="utf-8")
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(plain_lines, "SMALLEST_LOG_BYTES", 0 if compiled else 1 << 60)
        patch.setattr(plain_lines, "WORTH_COMPILING_BYTES", 0)
        patch.setattr(text_lines, "LineWriter", Counted)
        with pytest.raises(SystemExit) as ended:
            main(["events", *arguments])
        out.flush()
        return raw.getvalue(), err.getvalue(), ended.value.code


def taken(path: Path, *options: str) -> int:
    """Both ways show the same; how many lines the kernel wrote."""
    before = Counted.taken
    for rows_option in ([], ["--rows"]):
        arguments = [str(path), *rows_option, *options]
        assert shown(arguments, compiled=True) == shown(arguments, compiled=False)
    return Counted.taken - before


def logs_below(folder: Path) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in files if path.read_bytes()[:4] == b"\xfebin")


@pytest.mark.parametrize("server", ["my_", "my56_", "my57_", "ma_"])
def test_open_captures_show_the_same(server: str) -> None:
    found = [
        path
        for folder in sorted((CAPTURES / "open").glob(f"{server}*"))
        for path in logs_below(folder)
    ]
    assert len(found) >= 1
    assert sum(map(taken, found)) > 100


@pytest.mark.parametrize("name", ["lookup", "sbm"])
def test_packed_captures_show_the_same(name: str, tmp_path: Path) -> None:
    """Logs of sources and relay logs, whole ones and what a crash has left."""
    with lzma.open(CAPTURES / f"{name}.tar.xz") as packed, tarfile.open(fileobj=packed) as archive:
        archive.extractall(tmp_path, filter="data")
    assert sum(map(taken, logs_below(tmp_path))) > 100


@settings(max_examples=100, deadline=None)
@given(
    parts=st.lists(transactions(), min_size=1, max_size=8), checksum=st.booleans(),
    damage=st.one_of(st.none(), st.tuples(st.floats(0, 1), st.integers(1, 255))),
    stop=st.one_of(st.none(), st.floats(0, 1)),
)  # fmt: skip
def test_any_log_shows_the_same(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[tuple[int, bytes]]], checksum: bool,
    damage: tuple[float, int] | None, stop: float | None,
) -> None:  # fmt: skip
    content = bytearray(log(*(event for part in parts for event in part), checksum=checksum))
    if damage is not None:
        content[125 + int(damage[0] * (len(content) - 126))] ^= damage[1]
    path = write(tmp_path_factory.mktemp("log"), bytes(content))
    taken(
        path,
        *([] if stop is None else ["--stop-position", str(4 + int(stop * (len(content) - 4)))]),
    )


COLUMNS: dict[str, tuple[int, bytes, int]] = {
    "tiny": (wire.TINY, b"", 1), "short": (wire.SHORT, b"", 2), "int24": (wire.INT24, b"", 3),
    "long": (wire.LONG, b"", 4), "longlong": (wire.LONGLONG, b"", 8), "year": (wire.YEAR, b"", 1),
    "date": (wire.DATE, b"", 3), "float": (wire.FLOAT, b"\4", 4),
    "double": (wire.DOUBLE, b"\x08", 8), "bit": (wire.BIT, b"\4\1", 2),
    "enum": (wire.STRING, b"\xf7\1", 1), "old time": (wire.TIME, b"", 3),
    "old datetime": (wire.DATETIME, b"", 8), "old timestamp": (wire.TIMESTAMP, b"", 4),
    **{f"{name} {digits}": (code, bytes([digits]), size + (digits + 1) // 2)
       for name, code,
       size in (("datetime", wire.DATETIME2, 5), ("timestamp", wire.TIMESTAMP2, 4),
                ("time", wire.TIME2, 3))
       for digits in range(7)},
    **{f"decimal {precision} {scale}": (wire.NEWDECIMAL, bytes([precision, scale]),
                                        wire.decimal_bytes(precision, scale))
       for precision,
       scale in ((1, 0), (5, 5), (9, 0), (9, 9), (10, 1), (12, 2), (18, 9), (20, 6), (65, 30),
                 (65, 0))},
}  # fmt: skip
"""Type code, metadata and bytes of a value."""


@settings(max_examples=100, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(COLUMNS)))
def test_any_bytes_of_any_fixed_type_show_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str
) -> None:
    """Values that no server would write, too: the function for a single value is the same one, or a
    hole is left for it."""
    code, metadata, size = COLUMNS[name]
    byte = st.one_of(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]), st.integers(0, 255))
    values = data.draw(
        st.lists(st.lists(byte, min_size=size, max_size=size).map(bytes), min_size=1, max_size=20)
    )
    one = [gtid(1), BEGIN, table_map(types=bytes([code]), metadata=metadata)]
    events = [
        *one,
        *(rows(30, b"\0" + value) for value in values),
        rows(31, (b"\0" + values[0]) * 2),
        xid(),
    ]
    path = write(tmp_path_factory.mktemp("log"), log(*events * 2))
    assert taken(path) >= 2 * len(events) if name not in HOLE_ERRORS else True


HOLE_ERRORS = {"old time", "old datetime", "float", "double"}
"""Bytes of these may be no value at all, which ends the listing."""
TEXTS = [
    b"",
    b"a",
    b"it's",
    b"0x",
    b"0x41",
    b"'",
    b"''''",
    b"\n",
    "é€😀".encode(),
    b"\xff\xfe",
    b"\x7f",
    b" ",
    b"x" * 7 + b"'" + b"y" * 9,
]


@settings(max_examples=50, deadline=None)
@given(
    texts=st.lists(
        st.one_of(
            st.sampled_from(TEXTS), st.binary(max_size=40), st.text(max_size=40).map(str.encode)
        ),
        max_size=12,
    )
)
def test_any_text_shows_the_same(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes]
) -> None:
    varchar = table_map(types=bytes([wire.VARCHAR]), metadata=struct.pack("<H", 300))
    images = b"".join(b"\0" + struct.pack("<H", len(text)) + text for text in texts)
    one = [gtid(1), BEGIN, varchar, rows(30, images), xid()]
    path = write(tmp_path_factory.mktemp("log"), log(*one * 3))
    assert taken(path) >= 8


def test_the_kernel_goes_on_inside_a_transaction(tmp_path: Path) -> None:
    """Behind a savepoint and behind a table map that it has not met."""
    change = rows(32, image((1, b"a", 1)), width=3)
    one = [gtid(1), BEGIN, MAP, change, xid()]
    long = [
        gtid(2),
        BEGIN,
        MAP,
        *[change] * 50,
        query(b"SAVEPOINT a"),
        table_map(9, table=b"n"),
        *[change] * 50,
        xid(),
    ]
    path = write(tmp_path, log(*one, *long, *one * 10))
    assert taken(path) > 100 + 100 + 100


def test_a_table_map_counts_in_its_transaction_only(tmp_path: Path) -> None:
    """The rows of the last transaction stand behind no table map of theirs: they can be listed, not
    decoded."""
    change = rows(32, image((1, b"a", 1)), width=3)
    one = [gtid(1), BEGIN, MAP, change, xid()]
    path = write(tmp_path, log(*one * 3, gtid(2), BEGIN, change, xid()))
    assert taken(path) > 10
    assert shown([str(path), "--rows"], compiled=True)[2] == 2


def test_more_text_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In many texts; an event that does not fit alone is the listing's."""
    monkeypatch.setattr(text_lines, "TEXT_BYTES", 2000)
    monkeypatch.setattr(text_lines, "HOLES", 3)
    change, wide = (
        rows(32, image((1, b"a", 1)), width=3),
        rows(32, image((1, b"\xc3\xa9", 1)) * 3 + image((1, b"z" * 290, 1)), width=3),
    )
    many = rows(32, image((1, b"\xc3\xa9", 1)) * 4, width=3)
    path = write(
        tmp_path,
        log(
            *[
                gtid(1),
                BEGIN,
                MAP,
                change,
                many,
                wide,
                rows(32, image((1, b"y" * 290, 1)) * 9, width=3),
                xid(),
            ]
            * 40
        ),
    )
    before = Counted.texts
    assert taken(path) > 300
    assert Counted.texts - before > 40


def test_a_mariadb_log_with_commit_ids_and_statements(tmp_path: Path) -> None:
    change = rows(32, image((1, b"a", 1)), width=3)
    statement = (160, b"UPDATE d.t SET a = 1")
    odd = [(160, text) for text in (b"UPDATE d.t\nSET a = 1 ", "SELECT 'é'".encode(), b" ", b"")]
    one = [
        mariadb_gtid(1 << 63, 2, domain=7, rest=struct.pack("<Q", 99)),
        statement,
        MAP,
        change,
        *odd,
        xid(1 << 63),
    ]
    assert taken(write(tmp_path, log(*one * 5, version="10.11.6-MariaDB"))) > 20


def test_the_kernel_passes_over_status_variables_as_the_reader_does() -> None:
    """A BEGIN with any of them is plain, or Python's; none has another length than the reader
    takes."""
    for code, size in STATUS_VARIABLES.items():
        value = b"\3abc" if size == text_lines.LENGTH_FIRST else bytes(size)
        assert code in VARIABLES
        read = parse_status_variables(bytes([code]) + value + b"\1" + struct.pack("<Q", 77))
        assert (read.sql_mode, read.ddl_xid, read.unknown) == (77, None, None)


def test_begin_with_variables(tmp_path: Path) -> None:
    """Microseconds differ from one BEGIN to the next; a database without the flag is shown, a
    number of a DDL's transaction as well."""
    change = rows(32, image((1, b"a", 1)), width=3)
    variables = [
        b"\x0d\1\2\3",
        b"\0\0\0\0\0\1" + bytes(8) + b"\6\3std\4" + bytes(6) + b"\x0c\1d\0",
        b"\x11" + bytes(8),
        b"\xee",
        b"",
    ]
    begins = [(*query(b"BEGIN", variables=one), flags) for one in variables for flags in (0, 8)]
    events: list[Any] = [
        event for begin in begins for event in (gtid(1), begin, MAP, change, xid())
    ]
    assert taken(write(tmp_path, log(*events * 3))) > 100
    cut = (*query(b"BEGIN", variables=b"\x0d\1"), 8)
    path = write(tmp_path, log(*events, gtid(1), cut, MAP, change, xid()))
    assert taken(path) > 30
    assert shown([str(path)], compiled=True)[2] == 2


def test_a_packed_log_is_written_as_it_comes(tmp_path: Path) -> None:
    one = [gtid(1), BEGIN, MAP, rows(32, image((1, b"a", 1)), width=3), xid()]
    path = tmp_path / "binlog.000001.gz"
    path.write_bytes(gzip.compress(log(*one * 500)))
    assert taken(path) > 4000


def test_positions_and_filters(tmp_path: Path) -> None:
    """A start in the middle of a transaction; filters leave all to the listing."""
    one = [gtid(1), BEGIN, MAP, rows(32, image((1, b"a", 1)), width=3), xid()]
    content = log(*one * 20)
    path, places = write(tmp_path, content), []
    at = 4
    while at < len(content):
        places.append(at)
        at += int.from_bytes(content[at + 9 : at + 13], "little")
    assert (
        sum(
            taken(path, "--start-position", str(place), "--stop-position", str(places[-8]))
            for place in places[1:12]
        )
        > 100
    )
    assert taken(path, "--table", "d.t") == 0
    assert taken(path, "--start-datetime", "2020-01-01") == 0
    assert taken(path, "--no-verify") > 100


def test_a_log_that_is_not_worth_the_compilation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without compiled kernels on disk a small log is left to the listing."""
    one = [gtid(1), BEGIN, MAP, rows(32, image((1, b"a", 1)), width=3), xid()]
    path = write(tmp_path, log(*one * 50))
    monkeypatch.setattr(plain_lines, "SMALLEST_LOG_BYTES", 0)
    monkeypatch.setattr(text_lines, "LineWriter", Counted)
    before, reader = Counted.taken, Listing([str(path)])
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "nothing"))
    assert all(not isinstance(part, str) for part in reader.with_lines(20))
    assert Counted.taken == before
