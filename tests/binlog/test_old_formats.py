"""Logs of old servers: which version they are of is in the message; hidden columns that some wrote
are told from the others."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from applier.binlog import wire
from applier.binlog.images.matching import match
from applier.binlog.listing import Listing
from applier.binlog.table_map import SourceColumn, TableMap
from applier.errors import InputError, ReplicationError
from lookup.table import Column, Key, KeyPart, TableDefinition
from tests.applier.logs import replay_log
from tests.binlog.build import event, log, query, table_map, write

INT, BIG, TEXT = (
    SourceColumn(wire.LONG, 0, True),
    SourceColumn(wire.LONGLONG, 0, True),
    SourceColumn(wire.BLOB, 2, True),
)


def refused(folder: Path, content: bytes) -> str:
    with pytest.raises(InputError) as caught:
        list(Listing([str(write(folder, content))]))
    assert caught.value.code == "BL108"
    with pytest.raises(InputError) as again:
        replay_log(folder, content)
    assert again.value.message == caught.value.message
    return caught.value.message


def test_a_log_of_4_1(tmp_path: Path) -> None:
    start = struct.pack("<H50sI", 3, b"4.1.24-log", 1_200_000_000)
    content = (
        b"\xfebin"
        + event(1, start, at=4, checksum=False)
        + event(2, query(b"BEGIN")[1], at=79, checksum=False)
    )
    assert refused(tmp_path, content) == (
        "the log has version 3 of the format, of MySQL 4.1.24-log; it is readable from version 4 "
        "on (MySQL 5.0)"
    )


def test_a_table_map_without_metadata(tmp_path: Path) -> None:
    number, body = table_map()
    said = refused(tmp_path, log((number, body[:-2]), version="5.0.96"))
    assert said.startswith("a table map of 5.0.96 says nothing of its columns but their types")


@pytest.mark.parametrize(("number", "name"), [(1, "LOST_EVENTS"), (66, "UNKNOWN")])
def test_an_incident_has_one_name(tmp_path: Path, number: int, name: str) -> None:
    content = log((26, struct.pack("<HB", number, 2) + b"hi"))
    (listed,) = list(Listing([str(write(tmp_path, content))]))[1:]
    assert listed.info == f"#{number} ({name}): hi"
    _, result = replay_log(tmp_path, content)
    assert result.error is not None
    assert result.error.message == f"The incident {name} occurred on the source. Message: hi"


def functional(*columns: Column, parts: int = 1) -> TableDefinition:
    keys = tuple(Key(f"i{at}", (KeyPart(None, expression="a + 1"),)) for at in range(parts))
    return TableDefinition("d", "t", columns, keys)


A_INT, B_TEXT, B_INT = Column("a", "int"), Column("b", "text"), Column("b", "int")


@pytest.mark.parametrize(
    ("sources", "definition", "version", "places"),
    [
        ((INT, BIG, TEXT), functional(A_INT, B_TEXT), 80017, (0, None, 1)),
        ((INT, TEXT, BIG), functional(A_INT, B_TEXT), 80014, (0, 1, None)),
        ((INT, BIG, TEXT, BIG), functional(A_INT, B_TEXT, parts=2), 80017, (0, None, 1, None)),
        ((INT, TEXT), functional(A_INT, B_TEXT), 80018, (0, 1)),
        ((INT, TEXT), functional(A_INT, B_TEXT), 80017, (0, 1)),
        (
            (INT, SourceColumn(wire.LONG, 0, True, name="!hidden!i!0!0"), INT),
            functional(A_INT, B_INT), 80017, (0, None, 1),
        ),
    ],
)  # fmt: skip
def test_hidden_columns_of_functional_indexes(
    sources: tuple[SourceColumn, ...],
    definition: TableDefinition,
    version: int,
    places: tuple[int | None, ...],
) -> None:
    matching = match(TableMap(1, 0, "d", "t", sources, ()), definition, source_version=version)
    assert tuple(target.column for target in matching.targets) == places


def test_hidden_columns_that_could_be_others_are_refused() -> None:
    with pytest.raises(ReplicationError) as stopped:
        match(
            TableMap(1, 0, "d", "t", (INT, INT, INT), ()),
            functional(A_INT, B_INT),
            source_version=80017,
        )
    assert stopped.value.number == 1235


@pytest.mark.parametrize(
    ("sources", "version"), [((INT, BIG, TEXT), 80018), ((TEXT, BIG, TEXT), 80017)]
)
def test_what_does_not_fit_is_1677(sources: tuple[SourceColumn, ...], version: int) -> None:
    with pytest.raises(ReplicationError) as stopped:
        match(
            TableMap(1, 0, "d", "t", sources, ()), functional(A_INT, B_TEXT), source_version=version
        )
    assert stopped.value.number == 1677
