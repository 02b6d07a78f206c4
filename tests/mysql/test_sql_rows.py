"""Which statements the rows of an event become, and what their answers mean."""

from __future__ import annotations

from typing import Any

import pytest

import applier
from applier.binlog.header import Event, EventType
from applier.binlog.rows import RowsHead
from applier.binlog.types import json
from applier.errors import ReplicationError
from applier.mysql.client.pipeline import PipelineStatement
from applier.mysql.statements.event_sql import NOT_FOUND_GUARD, NOTHING, EventRows, Notes
from applier.mysql.statements.row_sql import RowSql
from applier.options import parse_options
from lookup.table import TableDefinition

KEYED = "CREATE TABLE t (a INT PRIMARY KEY, b INT)"
KEYLESS = "CREATE TABLE t (a INT, b INT)"
INDEXED = "CREATE TABLE t (a INT, b INT, KEY k (a))"


def definition_of(sql: str) -> TableDefinition:
    (table,) = applier.load_schema(f"CREATE DATABASE d; USE d; {sql};")
    return table.definition


def row_sql(
    sql: str,
    kind: str,
    before: tuple[int, ...] = (0, 1),
    after: tuple[int, ...] = (0, 1),
    search: str | None = None,
) -> RowSql:
    options = parse_options(row_search=search)
    return RowSql(definition_of(sql), kind, before, after, "9.7", options.row_search)


def made(
    sql: RowSql, rows: list[Any], *, one_by_one: bool = False, **options: Any
) -> tuple[list[PipelineStatement], list[str]]:
    """The statements of an event, and the list that its notes go to."""
    notes: list[str] = []
    event = Event("log.1", 100, (0, EventType.UPDATE_ROWS, 1, 50, 150, 0), bytes(200), 19, 100)
    head = RowsHead(EventType.UPDATE_ROWS, 1, 1, sql.kind, False, b"", 0)
    told = Notes(parse_options(**options), lambda text, place=None: notes.append(text))
    return EventRows(event, head, sql, told, "source", one_by_one=one_by_one).statements(
        rows
    ), notes


def texts(statements: list[PipelineStatement]) -> list[str]:
    return [statement.sql.decode() for statement in statements]


def answer(statements: list[PipelineStatement], *counts: int) -> None:
    """What the pipeline does with the rows matched."""
    for statement, count in zip(statements, counts, strict=True):
        if statement.check is not None:
            statement.check(count)


def test_by_a_unique_key_the_whole_image_first() -> None:
    statements, _ = made(row_sql(KEYED, "update"), [((1, 2), (1, 3))])
    assert texts(statements) == [
        (
            "UPDATE `d`.`t` FORCE INDEX (`PRIMARY`) SET `a` = 1, `b` = 3 WHERE `a` = 1 AND `b` = 2 "
            "LIMIT 1"
        ),
        (
            "UPDATE `d`.`t` FORCE INDEX (`PRIMARY`) SET `a` = 1, `b` = 3 WHERE ROW_COUNT() "
            "= 0 AND `a` = 1 LIMIT 1"
        ),
    ]


def test_a_row_that_differs_is_changed_and_told() -> None:
    statements, notes = made(row_sql(KEYED, "delete"), [(1, 2)])
    answer(statements, 1, 0)
    assert notes == []
    answer(statements, 0, 1)
    assert notes == [
        "rows of d.t differed from their before images and were changed by their key",
        "differed: d.t, log.1, end_log_pos 150; row 1 of the event: a='1', b='2'",
    ]


def test_a_missing_row_stops_and_shows_the_image() -> None:
    statements, _ = made(row_sql(KEYED, "delete"), [(1, None)])
    with pytest.raises(ReplicationError) as raised:
        answer(statements, 0, 0)
    assert raised.value.number == 1032
    assert raised.value.message == (
        "Could not execute Delete_rows event on table d.t; Can't find record in 't', Error_code: "
        "1032; "
        "the event's source log log.1, end_log_pos 150; row 1 of the event: a='1', b=NULL"
    )


def test_a_missing_row_is_forgiven_and_counted() -> None:
    statements, notes = made(row_sql(KEYED, "delete"), [(1, None)], exec_mode="idempotent")
    answer(statements, 0, 0)
    assert notes == ["let pass by --exec-mode idempotent: error 1032 on table d.t"]


def test_by_another_index_the_whole_image() -> None:
    statements, _ = made(row_sql(INDEXED, "delete"), [(1, None), (1, None), (2, 2)])
    assert texts(statements) == [
        "DELETE FROM `d`.`t` WHERE `a` = 1 AND `b` IS NULL LIMIT 2",
        "DELETE FROM `d`.`t` WHERE `a` = 2 AND `b` = 2 LIMIT 1",
    ]
    answer(statements, 2, 1)
    with pytest.raises(ReplicationError):
        answer(statements, 1, 1)


def test_without_an_index_one_scan_that_counts_and_one_that_changes() -> None:
    statements, _ = made(row_sql(KEYLESS, "delete"), [(1, 1), (2, 2), (1, 1)])
    images = "CASE WHEN `a` = 1 AND `b` = 1 THEN 0 WHEN `a` = 2 AND `b` = 2 THEN 1 END"
    counted = (
        f"SELECT {images} AS `image`, COUNT(*) AS `found` FROM `d`.`t` WHERE `a` IN (1, 2) "
        "GROUP BY 1"
    )
    needed = "CASE `image` WHEN 0 THEN 2 WHEN 1 THEN 1 END"
    assert texts(statements) == [
        (
            f"SET @binlag_found = (SELECT COUNT(*) FROM ({counted}) AS `counted` WHERE `found` = "
            f"{needed})"
        ),
        (
            "DELETE FROM `d`.`t` WHERE @binlag_found = 2 AND `a` IN (1, 2) AND ((`a` = 1 AND `b` = "
            "1) OR (`a` = 2 AND `b` = 2))"
        ),
        "DELETE FROM `d`.`t` WHERE @binlag_found <> 2 AND `a` = 1 AND `b` = 1 LIMIT 1",
        "DELETE FROM `d`.`t` WHERE @binlag_found <> 2 AND `a` = 2 AND `b` = 2 LIMIT 1",
        "DELETE FROM `d`.`t` WHERE @binlag_found <> 2 AND `a` = 1 AND `b` = 1 LIMIT 1",
    ]
    answer(statements, 0, 3, 0, 0, 0)
    answer(statements, 0, 0, 1, 1, 1)
    with pytest.raises(ReplicationError, match="row 2 of the event"):
        answer(statements, 0, 0, 1, 0, 1)


def test_an_update_in_one_scan_sees_no_value_that_it_has_set() -> None:
    statements, _ = made(row_sql(KEYLESS, "update"), [((1, 1), (2, 2)), ((2, 2), (3, None))])
    assert texts(statements)[1] == (
        "UPDATE `d`.`t` STRAIGHT_JOIN (SELECT 0 AS `image` UNION ALL SELECT 1) AS `binlag` "
        "ON `binlag`.`image` = CASE WHEN `a` = 1 AND `b` = 1 THEN 0 WHEN `a` = 2 AND `b` = 2 THEN "
        "1 END "
        "SET `a` = CASE `binlag`.`image` WHEN 0 THEN 2 WHEN 1 THEN 3 END, `b` = CASE "
        "`binlag`.`image` WHEN 0 THEN 2 WHEN 1 THEN NULL END "
        "WHERE @binlag_found = 2 AND `a` IN (1, 2)"
    )


def test_one_before_image_with_two_futures_is_changed_one_by_one() -> None:
    statements, _ = made(row_sql(KEYLESS, "update"), [((1, 1), (2, 2)), ((1, 1), (3, 3))])
    assert [text.partition(" SET ")[0] for text in texts(statements)] == ["UPDATE `d`.`t`"] * 2
    assert all(text.endswith("LIMIT 1") for text in texts(statements))


def test_a_key_of_several_columns_filters_by_all_of_them() -> None:
    """The first column alone may lead to half of the table."""
    table = "CREATE TABLE t (a INT, b INT, c INT, PRIMARY KEY (a, b))"
    rows = [((1, 1, 5), (1, 1, 6)), ((1, 2, 5), (1, 2, 7))]
    (statement,) = texts(made(row_sql(table, "update", (0, 1, 2), (0, 1, 2)), rows)[0])
    assert statement.endswith(" WHERE TRUE AND ((`a` = 1 AND `b` = 1) OR (`a` = 1 AND `b` = 2))")


def test_of_equal_documents_the_same_one_goes_first() -> None:
    table = "CREATE TABLE t (a INT, j JSON)"
    sql = row_sql(table, "delete")
    (statement,) = texts(made(sql, [(1, json.encode(1.0))])[0])
    assert statement.endswith(
        f" ORDER BY CAST(`j` AS CHAR) = _utf8mb4 X'{b'1.0'.hex()}' DESC LIMIT 1"
    )
    assert "ORDER BY" not in texts(made(sql, [(1, None)])[0])[0]


def test_a_table_scan_is_chosen_by_its_option() -> None:
    statements, _ = made(row_sql(INDEXED, "delete", search="TABLE_SCAN"), [(1, 1), (2, 2)])
    assert len(statements) == 2
    assert row_sql(KEYED, "delete", search="TABLE_SCAN").decision.algorithm == "table scan"


def test_an_image_without_a_local_column_names_no_row() -> None:
    statements, _ = made(row_sql(KEYLESS, "delete", before=()), [()])
    assert texts(statements) == ["DELETE FROM `d`.`t` WHERE FALSE LIMIT 1"]


def test_generated_columns_are_never_set_and_virtual_ones_not_compared() -> None:
    table = "CREATE TABLE t (a INT, v INT AS (a + 1) VIRTUAL, s INT AS (a + 2) STORED)"
    columns = (0, 1, 2)
    statements, _ = made(row_sql(table, "update", columns, columns), [((1, 2, 3), (2, 3, 4))])
    assert texts(statements) == ["UPDATE `d`.`t` SET `a` = 2 WHERE `a` = 1 AND `s` = 3 LIMIT 1"]
    statements, _ = made(row_sql(table, "write", columns, columns), [(1, 2, 3)])
    assert texts(statements) == ["INSERT INTO `d`.`t` (`a`) VALUES (1)"]


def test_a_time_that_the_log_did_not_change_stays() -> None:
    table = "CREATE TABLE t (a INT PRIMARY KEY, c TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP)"
    statements, _ = made(row_sql(table, "update", (0,), (0,)), [((1,), (2,))])
    assert (
        texts(statements)[0]
        == "UPDATE `d`.`t` FORCE INDEX (`PRIMARY`) SET `c` = `c`, `a` = 2 WHERE `a` = 1 LIMIT 1"
    )


def test_text_is_found_by_its_key_and_compared_byte_for_byte() -> None:
    table = "CREATE TABLE t (a VARCHAR(9) CHARACTER SET utf8mb4 PRIMARY KEY)"
    statements, _ = made(row_sql(table, "delete", (0,), (0,)), [(b"x",)])
    assert texts(statements)[0] == (
        "DELETE FROM `d`.`t` WHERE `a` = _utf8mb4 X'78' AND CAST(`a` AS BINARY) "
        "= _binary X'78' LIMIT 1"
    )
    assert (
        texts(statements)[1]
        == "DELETE FROM `d`.`t` WHERE ROW_COUNT() = 0 AND `a` = _utf8mb4 X'78' LIMIT 1"
    )


@pytest.mark.parametrize(("one_by_one", "count"), [(False, 1), (True, 3)])
def test_rows_are_inserted_together_unless_a_failure_must_be_named(
    one_by_one: bool, count: int
) -> None:
    statements, _ = made(
        row_sql(KEYED, "write"), [(1, 1), (2, 2), (3, None)], one_by_one=one_by_one
    )
    assert len(statements) == count
    if not one_by_one:
        assert texts(statements) == [
            "INSERT INTO `d`.`t` (`a`, `b`) VALUES (1, 1),(2, 2),(3, NULL)"
        ]


def test_what_a_refused_row_was_is_said() -> None:
    statements, _ = made(row_sql(KEYED, "write"), [(1, 1)], one_by_one=True)
    error = ReplicationError(1062, "Duplicate entry '1' for key 't.PRIMARY'")
    assert statements[0].explain is not None
    statements[0].explain(error)
    assert error.message.endswith(
        "Error_code: 1062; the event's source log log.1, end_log_pos 150; row 1 of the event: "
        "a='1', b='1'"
    )
    assert error.hint is not None


@pytest.mark.parametrize(
    ("columns", "first", "behind"),
    [
        (
            (0, 1),
            "INSERT INTO `d`.`t` (`a`, `b`) VALUES (1, 1)",
            "REPLACE INTO `d`.`t` (`a`, `b`) VALUES (1, 1)",
        ),
        (
            (0,),
            "INSERT INTO `d`.`t` (`a`) VALUES (1)",
            "INSERT INTO `d`.`t` (`a`) VALUES (1) ON DUPLICATE KEY UPDATE `a` = VALUES(`a`)",
        ),
    ],
)
def test_idempotent_inserts_overwrite_what_is_in_their_way(
    columns: tuple[int, ...], first: str, behind: str
) -> None:
    rows = [(1, 1)[: len(columns)], (2, 2)[: len(columns)]]
    statements, notes = made(
        row_sql(KEYED, "write", columns, columns), rows, exec_mode="idempotent"
    )
    assert texts(statements)[:2] == [first, "DO 0"]
    assert statements[0].on_error is not None
    statements[0].on_error(ReplicationError(1062, "Duplicate entry"))
    assert texts(statements)[:2] == [first, behind]
    assert texts(statements)[3] == "DO 0"
    assert notes == ["let pass by --exec-mode idempotent: error 1062 on table d.t"]


def test_a_skipped_miss_ends_its_event() -> None:
    statements, notes = made(row_sql(KEYED, "delete"), [(1, 1), (2, 2)], skip_errors="1032")
    assert [statement.sql for statement in statements[1::2]] == [NOT_FOUND_GUARD] * 2
    assert statements[1].allowed == {1242}
    assert statements[1].on_error is not None
    statements[1].on_error(ReplicationError(1242, "Subquery returns more than 1 row"))
    assert [statement.sql for statement in statements[2:]] == [NOTHING] * 2
    assert notes == ["let pass by --skip-errors: error 1032 on table d.t"]


def test_a_skipped_miss_of_a_hash_scan_has_no_row_behind_it() -> None:
    statements, notes = made(row_sql(KEYLESS, "delete"), [(1, 1), (2, 2)], skip_errors="1032")
    answer(statements, 0, 0, 0, 1)
    assert notes == ["let pass by --skip-errors: error 1032 on table d.t"]


def test_a_skipped_duplicate_ends_its_event() -> None:
    statements, notes = made(row_sql(KEYED, "write"), [(1, 1), (2, 2)], skip_errors="1062")
    assert statements[0].allowed == {1062}
    assert statements[0].on_error is not None
    statements[0].on_error(ReplicationError(1062, "Duplicate entry"))
    assert statements[1].sql == NOTHING
    assert notes == ["let pass by --skip-errors: error 1062 on table d.t"]
