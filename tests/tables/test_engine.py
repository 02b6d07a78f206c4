"""Tables in memory: scan order, duplicates, rollback, savepoints, MyISAM, foreign keys, the order
of collations, dumps."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import applier
from applier.tables.collations.collation import is_exact, sort_key
from applier.tables.dml.row_writer import StatementSession
from applier.tables.dml.statements import execute_statement
from applier.tables.dump import dump_lines, file_name
from applier.tables.engine import MemoryTable
from applier.tables.expressions.operands import Dialect
from lookup.handler import DuplicateKey, NoReferencedRow, RowIsReferenced
from lookup.table import Column


def ref_of(table: MemoryTable, **wanted: Any) -> Any:
    positions = table.definition.positions
    return next(
        ref
        for ref, row in table.scan()
        if all(row[positions[name]] == value for name, value in wanted.items())
    )


# order


@pytest.mark.parametrize(
    ("definition", "order"),
    [
        ("(a int PRIMARY KEY, b int)", [1, 2, 3]),
        ("(a int, b int NOT NULL UNIQUE)", [3, 2, 1]),
        ("(a int, b int UNIQUE)", [2, 3, 1]),
        ("(a int, b int)", [2, 3, 1]),
        ("(a int, b int, PRIMARY KEY (a DESC))", [3, 2, 1]),
        ("(a int, b int PRIMARY KEY) ENGINE=MyISAM", [2, 3, 1]),
    ],
)
def test_rows_are_read_in_the_order_of_the_clustered_key(definition: str, order: list[int]) -> None:
    tables = applier.load_schema(
        f"CREATE TABLE d.t {definition}; INSERT INTO d.t VALUES (2, 20), (3, 10), (1, 30);"
    )
    assert [row[0] for row in tables["d.t"].rows()] == order


def test_tables_in_another_process() -> None:
    """Their rows and keys are there; what is changed on one side is not on the other."""
    tables = applier.load_schema(
        "CREATE TABLE d.t (a varchar(9) PRIMARY KEY, b varchar(9) UNIQUE, KEY ((lower(b))));"
        " INSERT INTO d.t VALUES ('x', 'One'), ('B', 'two');"
        " CREATE TABLE d.part (a int) ENGINE=MyISAM; INSERT INTO d.part VALUES (3);"
        " CREATE TABLE d.whole (a int) ENGINE=MERGE UNION=(part);"
    )
    assert tables["d.whole"].rows() == [(3,)]
    there = pickle.loads(pickle.dumps(tables))
    assert {t.definition.name: t.rows() for t in there} == {
        "t": [("B", "two"), ("x", "One")], "part": [(3,)], "whole": [(3,)],
    }  # fmt: skip
    with pytest.raises(DuplicateKey):
        there["d.t"].insert(tables["d.t"].get(ref_of(tables["d.t"], a=b"x")))
    there["d.part"].insert(there["d.part"].stored_rows()[0])
    assert (len(there["d.whole"].rows()), len(tables["d.whole"].rows())) == (2, 1)


def test_slots_of_myisam_are_taken_again() -> None:
    tables = applier.load_schema(
        "CREATE TABLE d.t (a int) ENGINE=MyISAM; INSERT INTO d.t VALUES (1), (2), (3);"
    )
    table = tables["d.t"]
    table.delete(0)
    table.delete(1)
    table.insert((9,))
    assert [row[0] for row in table.rows()] == [9, 3]
    assert table.insert((8,)) == 0
    assert table.reads_to(2) == 3


# duplicates


def keyed() -> MemoryTable:
    tables = applier.load_schema(
        "CREATE TABLE d.t (id int PRIMARY KEY, a int, b varchar(9), c int, UNIQUE u (a, c), "
        "UNIQUE p (b(2)), UNIQUE f ((a * 10)));"
        "INSERT INTO d.t VALUES (1, 1, 'abc', 1), (2, NULL, NULL, NULL);"
    )
    return tables["d.t"]


@pytest.mark.parametrize(
    ("row", "key", "text"),
    [
        ((1, 9, b"zz", 9), "PRIMARY", "1"),
        ((9, 1, b"zz", 1), "u", "1-1"),
        ((9, 9, b"ABx", 9), "p", "AB"),
        ((9, 1, b"zz", 5), "f", "?"),
    ],
)
def test_duplicates_on_every_unique_key(row: tuple[Any, ...], key: str, text: str) -> None:
    """Prefixes by the column's collation, expressions by their value."""
    table = keyed()
    with pytest.raises(DuplicateKey) as caught:
        table.insert(row)
    assert caught.value.key.name == key
    assert f"Duplicate entry '{text}' for key" in str(caught.value)
    assert len(table) == 2


def test_nulls_never_collide() -> None:
    table = keyed()
    table.insert((3, None, None, None))
    table.insert((4, None, None, 1))
    assert len(table) == 4


def test_an_update_into_a_duplicate_changes_nothing() -> None:
    table = keyed()
    table.insert((3, 3, b"cd", 3))
    before = table.rows()
    for row in ((1, 3, b"cd", 3), (3, 1, b"cd", 1), (3, 3, b"ab", 3)):
        with pytest.raises(DuplicateKey):
            table.update(ref_of(table, id=3), row)
        assert table.rows() == before
    table.update(ref_of(table, id=3), (3, 3, b"CD", 3))
    table.update(ref_of(table, id=3), (30, 3, b"CD", 3))
    assert [row[0] for row in table.rows()] == [1, 2, 30]


def test_auto_increment_follows_what_is_inserted() -> None:
    tables = applier.load_schema("CREATE TABLE d.t (a int AUTO_INCREMENT PRIMARY KEY);")
    table = tables["d.t"]
    for value in (5, 3, 9):
        table.insert((value,))
    assert table.auto_increment == 10


# transactions


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update", "delete"]), st.integers(0, 9), st.integers(0, 9)
    ),
    max_size=30,
)


@given(
    OPERATIONS,
    OPERATIONS,
    OPERATIONS,
    st.sampled_from(["PRIMARY KEY (id), UNIQUE u (a)", "KEY k (a)", "UNIQUE u (a)"]),
)
def test_rollback_gives_everything_back(first: Any, second: Any, third: Any, keys: str) -> None:
    """Rows, views over them, and what a unique key holds."""
    tables = applier.load_schema(f"CREATE TABLE d.t (id int NOT NULL, a int, {keys});")
    table = tables["d.t"]
    change(table, first)
    tables.commit()
    whole = snapshot(table)
    change(table, second)
    tables.savepoint("s")
    half = snapshot(table)
    change(table, third)
    tables.rollback_to("S")
    assert snapshot(table) == half
    tables.rollback()
    assert snapshot(table) == whole
    assert tables.changes == 0
    again = table.copy()
    assert again.rows() == table.rows()


def change(table: MemoryTable, operations: list[tuple[str, int, int]]) -> None:
    for kind, one, two in operations:
        refs = table.refs()
        try:
            if kind == "insert":
                table.insert((one, two))
            elif refs and kind == "update":
                table.update(refs[one % len(refs)], (two, one))
            elif refs:
                table.delete(refs[one % len(refs)])
        except DuplicateKey:
            continue


def snapshot(table: MemoryTable) -> Any:
    """The rows in scan order, and what lookups by content and by key say."""
    contents = sorted((row, sorted(table.matches((0, 1), row))) for row in set(table.stored_rows()))
    uniques = [key for key in table.definition.keys if key.unique and not key.is_primary]
    lookups = [
        [table.unique_lookup(key, (1,))((value,)) for value in range(10)]
        for key in uniques
        if key is not table.definition.primary
    ]
    return table.rows(), contents, lookups, [table.reads_to(ref) for ref in table.refs()]


def test_myisam_is_not_rolled_back() -> None:
    tables = applier.load_schema(
        "CREATE TABLE d.m (a int) ENGINE=MyISAM; CREATE TABLE d.i (a int);"
    )
    tables["d.m"].insert((1,))
    tables["d.i"].insert((1,))
    tables.rollback()
    assert (len(tables["d.m"]), len(tables["d.i"])) == (1, 0)


def test_a_savepoint_that_is_not_there() -> None:
    tables = applier.load_schema("CREATE TABLE d.t (a int);")
    with pytest.raises(KeyError):
        tables.rollback_to("s")
    tables.savepoint("s")
    tables.commit()
    with pytest.raises(KeyError):
        tables.rollback_to("s")


def test_detached_changes_stay_until_they_are_rolled_back() -> None:
    tables = applier.load_schema("CREATE TABLE d.t (a int PRIMARY KEY);")
    tables["d.t"].insert((1,))
    changes = tables.detach()
    tables["d.t"].insert((2,))
    tables.rollback()
    assert tables["d.t"].rows() == [(1,)]
    tables.roll_back_detached(changes)
    assert tables["d.t"].rows() == []


# foreign keys


def family(actions: str = "") -> applier.Tables:
    return applier.load_schema(
        f"""CREATE TABLE d.p (id int PRIMARY KEY, v int);
        CREATE TABLE d.c (id int PRIMARY KEY, p int,
            CONSTRAINT fk FOREIGN KEY (p) REFERENCES p (id) {actions});
        CREATE TABLE d.g (id int PRIMARY KEY, c int,
            CONSTRAINT fg FOREIGN KEY (c) REFERENCES c (id) ON DELETE CASCADE);
        INSERT INTO d.p VALUES (1, 0), (2, 0); INSERT INTO d.c VALUES (10, 1), (11, 1), (12, NULL);
        INSERT INTO d.g VALUES (100, 10),
        (101, 12);"""
    )


def run(tables: applier.Tables, sql: str) -> None:
    execute_statement(tables, sql, "d", StatementSession())


def test_a_child_without_a_parent() -> None:
    tables = family()
    with pytest.raises(NoReferencedRow, match="CONSTRAINT `fk` FOREIGN KEY"):
        tables["d.c"].insert((13, 9))
    with pytest.raises(NoReferencedRow):
        tables["d.c"].update(10, (10, 9))
    tables["d.c"].insert((13, None))
    tables["d.c"].insert((14, 2))
    assert len(tables["d.c"]) == 5


@pytest.mark.parametrize(
    "actions", ["", "ON DELETE RESTRICT", "ON DELETE NO ACTION", "ON UPDATE CASCADE"]
)
def test_a_parent_that_is_needed(actions: str) -> None:
    tables = family(actions)
    with pytest.raises(RowIsReferenced):
        tables["d.p"].delete(1)
    assert tables["d.p"].rows() == [(1, 0), (2, 0)]
    tables["d.p"].delete(2)
    tables["d.p"].update(1, (1, 5))
    assert tables["d.p"].rows() == [(1, 5)]


def test_cascades_go_on_and_roll_back() -> None:
    tables = family("ON DELETE CASCADE ON UPDATE CASCADE")
    tables.commit()
    tables["d.p"].update(1, (7, 0))
    assert tables["d.c"].rows() == [(10, 7), (11, 7), (12, None)]
    tables["d.p"].delete(7)
    assert (tables["d.c"].rows(), tables["d.g"].rows()) == ([(12, None)], [(101, 12)])
    tables.rollback()
    assert tables["d.c"].rows() == [(10, 1), (11, 1), (12, None)]
    assert len(tables["d.g"]) == 2


def test_set_null() -> None:
    tables = family("ON DELETE SET NULL")
    tables["d.p"].delete(1)
    assert tables["d.c"].rows() == [(10, None), (11, None), (12, None)]


def test_a_cascade_that_is_refused_on_its_way_takes_everything_back() -> None:
    tables = applier.load_schema(
        """CREATE TABLE d.p (id int PRIMARY KEY);
        CREATE TABLE d.c (id int PRIMARY KEY, p int,
            FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE);
        CREATE TABLE d.g (c int, FOREIGN KEY (c) REFERENCES c (id));
        INSERT INTO d.p VALUES (1); INSERT INTO d.c VALUES (10, 1), (11, 1);
        INSERT INTO d.g VALUES (11);"""
    )
    with pytest.raises(RowIsReferenced):
        tables["d.p"].delete(1)
    assert [len(table) for table in tables] == [1, 2, 1]


def test_a_table_that_refers_to_itself() -> None:
    tables = applier.load_schema(
        "CREATE TABLE d.t (id int PRIMARY KEY, up int, FOREIGN KEY (up) REFERENCES t (id) "
        "ON DELETE CASCADE);"
    )
    for row in ((1, 1), (2, 1), (3, 2)):
        tables["d.t"].insert(row)
    tables["d.t"].delete(1)
    assert tables["d.t"].rows() == []


def test_checks_that_are_switched_off() -> None:
    tables = family()
    tables.foreign_keys.enabled = False
    tables["d.p"].delete(1)
    tables["d.c"].insert((13, 99))
    assert len(tables["d.c"]) == 4


# collations


def key_of(collation: str, text: str) -> Any:
    name = collation.partition("_")[0]
    column = Column("c", "varchar", length=99, charset=name, collation=collation)
    key = sort_key(column)
    assert key is not None
    return key(text.encode({"latin1": "cp1252", "utf8mb4": "utf-8"}[name]))


ALIKE = [
    ("utf8mb4_0900_ai_ci", "Ab", "aB", True), ("utf8mb4_0900_ai_ci", "e", "é", True),
    ("utf8mb4_0900_ai_ci", "a", "a ", False), ("utf8mb4_0900_as_ci", "e", "é", False),
    ("utf8mb4_0900_as_ci", "É", "é", True), ("utf8mb4_0900_as_cs", "A", "a", False),
    ("utf8mb4_0900_bin", "a", "A", False), ("utf8mb4_0900_bin", "a", "a ", False),
    ("utf8mb4_bin", "a", "a  ", True),
    ("utf8mb4_bin", "a", "A", False),
    ("utf8mb4_general_ci", "Straße", "STRASE", True), ("utf8mb4_general_ci", "a", "a ", True),
    ("utf8mb4_general_ci", "É", "e", True),
    ("utf8mb4_general_ci", "\U0001f600", "\U0001f601", True),
    ("utf8mb4_unicode_ci", "ß", "ss", True),
    ("utf8mb4_unicode_ci", "a", "a ", True),
    ("latin1_swedish_ci", "ä", "Ä", True), ("latin1_swedish_ci", "ä", "a", False),
    ("latin1_swedish_ci", "ü", "y", True),
    ("latin1_bin", "a", "a ", True), ("latin1_general_cs", "a", "A", False),
]  # fmt: skip


@pytest.mark.parametrize(("collation", "one", "two", "alike"), ALIKE)
def test_what_a_collation_takes_for_the_same(
    collation: str, one: str, two: str, alike: bool
) -> None:
    assert (key_of(collation, one) == key_of(collation, two)) is alike


@pytest.mark.parametrize(
    ("collation", "order"),
    [
        ("utf8mb4_0900_ai_ci", ["", " ", "_", "-", "!", "(", "$", "0", "9", "a", "B", "c", "Z"]),
        ("utf8mb4_general_ci", ["", "!", "$", "(", "-", "0", "9", "a", "B", "c", "Z", "_"]),
        ("utf8mb4_bin", ["", "!", "0", "B", "Z", "_", "a", "é"]),
        ("latin1_swedish_ci", ["a", "B", "z", "å", "ä", "ö"]),
    ],
)
def test_the_order_of_a_collation(collation: str, order: list[str]) -> None:
    assert sorted(set(order), key=lambda text: key_of(collation, text)) == order
    assert is_exact(collation)


def test_trailing_spaces_count_as_spaces_where_they_pad() -> None:
    """With PAD SPACE "a\\t" comes before "a", since a tab is less than the space that "a" is filled
    up with."""
    assert (
        key_of("utf8mb4_general_ci", "a\t")
        < key_of("utf8mb4_general_ci", "a")
        < key_of("utf8mb4_general_ci", "aa")
    )
    assert key_of("utf8mb4_0900_bin", "a") < key_of("utf8mb4_0900_bin", "a\t")


# dumps


def test_a_dump_is_written_as_described(tmp_path: Path) -> None:
    tables = applier.load_schema(
        """CREATE TABLE `d`.`we ird` (`id` int NOT NULL, `t` varchar(20), `b` varbinary(4),
        `x` bit(9), `f` double, `n` decimal(6,2),
        `j` json,
        `e` enum('p','q'), `w` datetime(3), `g` int AS (`id` + 1) VIRTUAL);
        INSERT INTO `d`.`we ird` (id, t, b, x, f, n, j, e, w) VALUES
        (2, 'a\\tb\\n\\\\\\0', 0x00FF, 5, 0.1, 1.5, '{"k":"v"}', 'q',
        '2024-00-00 00:00:00.5'),
        (10, NULL, '', NULL, -0.0, NULL, NULL, NULL, NULL);"""
    )
    (path,) = tables.dump(tmp_path / "out")
    assert path.name == "d.we@0020ird.tsv"
    assert path.read_bytes().split(b"\n") == [
        (
            b"id:int:text\tt:varchar(20):text\tb:varbinary(4):hex\tx:bit(9):uint\tf:double:double\tn:decimal(6,2):text\tj:json:text"
            b"\te:enum('p','q'):text\tw:datetime(3):text\tg:int:text"
        ),
        b"10\t\\N\t\t\\N\t-0\t\\N\t\\N\t\\N\t\\N\t11",
        b'2\ta\\tb\\n\\\\\\0\t00FF\t5\t0.1\t1.50\t{"k": "v"}\tq\t2024-00-00 00:00:00.500\t3',
        b"",
    ]


def test_dumps_of_5_x_and_mariadb() -> None:
    tables = applier.load_schema(
        "CREATE TABLE d.t (a int, f double, y year, j json); INSERT INTO d.t VALUES (1, -0.0, "
        "2000, '[1.0]');"
    )
    assert dump_lines(tables["d.t"], Dialect(old=True)) == [
        b"a:int(11):text\tf:double:double\ty:year(4):text\tj:json:text",
        b"1\t0\t2000\t[1]",
    ]


def test_text_that_does_not_decode_is_dumped_as_it_is() -> None:
    tables = applier.load_schema("CREATE TABLE d.t (t varchar(9) CHARSET utf8mb4);")
    tables["d.t"].insert((b"a\xff\xc3\xa9",))
    assert dump_lines(tables["d.t"])[1] == b"a\xff\xc3\xa9"


def test_names_of_files() -> None:
    assert file_name("d", "t_1") == "d.t_1.tsv"
    assert file_name("a/b", "é.`") == "a@002fb.@00e9@002e@0060.tsv"


def test_history_and_sequences_are_not_dumped(tmp_path: Path) -> None:
    tables = applier.load_schema(
        "CREATE TABLE d.v (a int PRIMARY KEY) WITH SYSTEM VERSIONING; INSERT INTO d.v (a) "
        "VALUES (1);",
        server="mariadb",
    )
    table = tables["d.v"]
    ((_, row),) = table.scan()
    table.insert((2, row[1], bytes.fromhex("60000000000000")))
    assert dump_lines(table)[1:] == [b"1"]
    tables = applier.load_schema("CREATE SEQUENCE d.s;", server="mariadb")
    assert tables.dump(tmp_path) == []
