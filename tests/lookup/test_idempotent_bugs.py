"""Surprises of the servers in IDEMPOTENT mode, and behind skipped errors."""

from __future__ import annotations

import pytest

from lookup.handler import Row
from lookup.table import Key, KeyPart
from lookup.versions import RULES
from tests.lookup.test_server_bugs import NEW, OLD, PRIMARY, A, ints, run


@pytest.mark.parametrize("version", (*OLD, *NEW))
def test_idempotent_scans_again_from_the_entry_that_matched_last(version: str) -> None:
    """The missing row ends the scan; what stands behind the last match in the event is hashed and
    scanned for once more."""
    done = run(version, [(1,), (2,), (3,)], "delete", [(1,), (9,), (3,)], idempotent=True)
    assert (done.error, done.rows) == (None, [(2,)])
    assert done.reads == {"read_first": 1, "read_key": 1, "read_rnd_next": 4, "delete": 2}
    done = run(version, [(1,), (2,), (3,)], "delete", [(3,), (1,), (9,)], idempotent=True)
    assert (done.error, done.rows) == (None, [(2,)])
    assert done.reads == {"read_first": 2, "read_key": 2, "read_rnd_next": 6, "delete": 2}
    done = run(version, [(1,), (2,), (3,)], "delete", [(1,), (9,), (8,)], idempotent=True)
    assert (done.error, done.rows) == (None, [(2,), (3,)])
    assert done.reads == {"read_first": 2, "read_key": 2, "read_rnd_next": 7, "delete": 1}


@pytest.mark.parametrize("version", (*OLD, *NEW))
def test_a_skipped_error_ends_a_hash_over_the_table(version: str) -> None:
    done = run(version, [(1,), (2,)], "delete", [(9,), (2,)], skip=frozenset({1032}))
    assert (done.error, done.rows) == (None, [(1,)])


@pytest.mark.parametrize("version", (*OLD, *NEW))
def test_idempotent_over_an_index_counts_one_failing_read_an_error(version: str) -> None:
    done = run(
        version, [(1, 0), (2, 0)], "delete", [(1, 0), (1, 8), (1, 9), (2, 0)], A, idempotent=True
    )
    assert (done.error, done.rows) == (None, [])
    assert done.reads == {"read_key": 2, "read_next": 3, "delete": 2}


@pytest.mark.parametrize("version", list(RULES))
def test_a_skipped_error_leaves_the_rest_of_the_event_undone(version: str) -> None:
    columns = ints(2, nullable=False)
    images = [(1, 0), (9, 0), (2, 0)]
    done = run(
        version,
        [(1, 0), (2, 0)],
        "delete",
        images,
        PRIMARY,
        columns=columns,
        skip=frozenset({1032}),
    )
    assert (done.error, done.rows) == (None, [(2, 0)])
    done = run(
        version, [(1, 0), (2, 0)], "delete", images, PRIMARY, columns=columns, idempotent=True
    )
    assert (done.error, done.rows) == (None, [])
    done = run(version, [(1, 0), (2, 0)], "delete", images, PRIMARY, columns=columns)
    assert (done.error, done.row, done.rows) == (1032, 1, [(2, 0)])


@pytest.mark.parametrize("version", list(RULES))
def test_idempotent_does_not_replace_by_an_update(version: str) -> None:
    done = run(
        version,
        [(1, 0), (2, 0)],
        "update",
        [((1, 0), (2, 9))],
        PRIMARY,
        columns=ints(2, nullable=False),
        idempotent=True,
    )
    assert (done.error, done.rows) == (None, [(1, 0), (2, 0)])
    assert done.reads["update"] == 1


@pytest.mark.parametrize("version", list(RULES))
def test_idempotent_insert_updates_the_row_in_the_way_of_the_last_unique_key(version: str) -> None:
    columns = ints(2, nullable=False)
    done = run(version, [(1, 5)], "write", [(1, 6)], PRIMARY, columns=columns, idempotent=True)
    assert (done.error, done.rows) == (None, [(1, 6)])
    assert done.reads == {"write": 1, "read_key": 1, "update": 1}
    done = run(
        version,
        [(1, 5)],
        "write",
        [(1, 6)],
        PRIMARY,
        Key("b", (KeyPart(1),), unique=True),
        columns=columns,
        idempotent=True,
    )
    assert (done.error, done.rows) == (None, [(1, 6)])
    assert done.reads == {"write": 2, "read_key": 1, "delete": 1}
    assert run(version, [(1, 5)], "write", [(1, 6)], PRIMARY, columns=columns).error == 1062


@pytest.mark.parametrize("version", list(RULES))
def test_idempotent_insert_gives_up_when_the_update_is_refused(version: str) -> None:
    """An image without column b is laid over the row in the way, (1,5,9); the new row would be
    (2,5,9), and (2,5) is taken."""
    keys = (Key("ab", (KeyPart(0), KeyPart(1)), unique=True), Key("c", (KeyPart(2),), unique=True))
    rows: list[Row] = [(1, 5, 9), (2, 5, 8)]
    done = run(version, rows, "write", [(2, 9)], *keys, image_columns=(0, 2), idempotent=True)
    assert (done.error, done.rows) == (None, rows)
    assert done.reads == {"write": 1, "read_key": 1, "update": 1}
