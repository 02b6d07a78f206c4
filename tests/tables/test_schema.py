"""CREATE TABLE as mysqldump and SHOW CREATE TABLE of MySQL 5.6 to 9.7 and MariaDB write it:
columns, keys, their order and promotion."""

from __future__ import annotations

import pytest

import applier
from applier.binlog.types.names import column_type
from applier.errors import InputError
from applier.tables.definitions.schema import parse_create_table
from applier.tables.definitions.table_draft import SchemaRules
from applier.tables.sql.sql_text import Lexis
from lookup.table import Column, TableDefinition


def table(body: str, *, server: str = "9.7", before: str = "") -> TableDefinition:
    tables = applier.load_schema(f"{before}CREATE TABLE d.t {body};", server=server)
    return tables["d.t"].definition


def column(definition: str, *, server: str = "9.7") -> Column:
    return table(f"(c {definition})", server=server).columns[0]


# columns


@pytest.mark.parametrize(
    ("definition", "shown"),
    [
        ("INT", "int"), ("INTEGER UNSIGNED", "int unsigned"), ("INT(11)", "int"),
        ("INT(5) UNSIGNED ZEROFILL", "int(5) unsigned zerofill"),
        ("DECIMAL ZEROFILL", "decimal(10,0) unsigned zerofill"),
        ("BIGINT ZEROFILL", "bigint(20) unsigned zerofill"),
        ("FLOAT ZEROFILL", "float unsigned zerofill"),
        ("BOOL", "tinyint(1)"),
        ("BOOLEAN", "tinyint(1)"), ("TINYINT(1)", "tinyint(1)"), ("TINYINT(4)", "tinyint"),
        ("INT8", "bigint"),
        ("SERIAL", "bigint unsigned"),
        ("DECIMAL", "decimal(10,0)"), ("DEC(5)", "decimal(5,0)"),
        ("NUMERIC(65,30)", "decimal(65,30)"), ("FIXED(4,2)", "decimal(4,2)"), ("FLOAT", "float"),
        ("FLOAT(24)", "float"), ("FLOAT(25)", "double"), ("FLOAT(7,3)", "float(7,3)"),
        ("REAL", "double"), ("DOUBLE PRECISION", "double"), ("BIT", "bit(1)"),
        ("BIT(64)", "bit(64)"), ("YEAR(4)", "year"), ("DATE", "date"),
        ("TIME(3)", "time(3)"),
        ("DATETIME(6)", "datetime(6)"), ("TIMESTAMP NULL", "timestamp"), ("CHAR", "char(1)"),
        ("CHARACTER VARYING(20)", "varchar(20)"), ("NATIONAL VARCHAR(7)", "varchar(7)"),
        ("NCHAR(3)", "char(3)"), ("BINARY", "binary(1)"), ("VARBINARY(9)", "varbinary(9)"),
        ("CHAR(4) BYTE", "binary(4)"),
        ("CHAR(4) CHARACTER SET binary", "binary(4)"), ("TEXT CHARACTER SET binary", "blob"),
        ("TEXT(100)", "text"),
        ("TEXT(10)", "tinytext"), ("BLOB(300)", "blob"),
        ("BLOB(70000)", "mediumblob"), ("LONG", "mediumtext"), ("LONG VARBINARY", "mediumblob"),
        ("ENUM('a','b,c','it''s')", "enum('a','b,c','it''s')"),
        ("SET('x','y ')", "set('x','y')"), ("ENUM(0x6162, x'63')", "enum('ab','c')"),
        ("JSON", "json"), ("GEOMETRY SRID 4326", "geometry"),
        ("GEOMCOLLECTION", "geometrycollection"), ("POINT", "point"), ("VECTOR(5)", "vector(5)"),
        ("VECTOR", "vector(2048)"),
        ("UUID", "uuid"), ("INET6", "inet6"),
    ],
)  # fmt: skip
def test_types_and_their_other_names(definition: str, shown: str) -> None:
    assert column_type(column(definition)) == shown


@pytest.mark.parametrize(
    ("definition", "shown"),
    [
        ("INT", "int(11)"),
        ("INT UNSIGNED", "int(10) unsigned"),
        ("BIGINT(5)", "bigint(5)"),
        ("SMALLINT", "smallint(6)"),
        ("YEAR", "year(4)"),
        ("BOOL", "tinyint(1)"),
    ],
)
def test_display_widths_of_5_x_and_mariadb(definition: str, shown: str) -> None:
    assert column_type(column(definition), display_widths=True) == shown


def test_attributes() -> None:
    made = column(
        "varchar(20) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT 'it''s \\\\ ; "
        ")' COMMENT 'a \\'comment\\',"
        " with ; and )' INVISIBLE"
    )
    assert (made.length, made.charset, made.collation, made.nullable, made.invisible) == (
        20,
        "latin1",
        "latin1_bin",
        False,
        True,
    )
    assert made.default == "'it''s \\\\ ; )'"
    made = column(
        "timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)"
    )
    assert (made.default, made.on_update, made.scale) == (
        "CURRENT_TIMESTAMP(3)",
        "CURRENT_TIMESTAMP(3)",
        3,
    )
    made = column("bigint unsigned GENERATED ALWAYS AS ((`a` + 1) * 2) STORED NOT NULL COMMENT 'x'")
    assert (made.generated, made.expression, made.nullable) == ("stored", "(`a` + 1) * 2", False)
    assert column("int AS (1)").generated == "virtual"
    assert column("int AS (1) PERSISTENT", server="mariadb").generated == "stored"
    assert column("int DEFAULT (1 + (2 * 3))").default == "(1 + (2 * 3))"
    assert column("int DEFAULT -5").default == "-5"
    assert column("bit(3) DEFAULT b'101'").default == "b'101'"
    assert column("varchar(3) DEFAULT _utf8mb4'x'").default == "_utf8mb4'x'"
    assert column("geometry NOT NULL /*!80003 SRID 4326 */").srid == 4326
    assert column("int /*!80023 INVISIBLE */").invisible
    assert column(
        "int CHECK (c > 0) NOT ENFORCED REFERENCES x (y) ON DELETE CASCADE COLUMN_FORMAT FIXED "
        "STORAGE DISK"
    ).nullable


@pytest.mark.parametrize(
    ("server", "definition", "table_options", "charset", "collation"),
    [
        ("9.7", "varchar(5)", "", "utf8mb4", "utf8mb4_0900_ai_ci"),
        ("5.7", "varchar(5)", "", "latin1", "latin1_swedish_ci"),
        ("mariadb", "varchar(5)", "", "latin1", "latin1_swedish_ci"),
        ("9.7", "varchar(5)", "DEFAULT CHARSET=utf8mb4", "utf8mb4", "utf8mb4_0900_ai_ci"),
        ("5.7", "varchar(5)", "DEFAULT CHARSET=utf8mb4", "utf8mb4", "utf8mb4_general_ci"),
        ("9.7", "varchar(5)", "CHARSET=utf8mb4 COLLATE=utf8mb4_bin", "utf8mb4", "utf8mb4_bin"),
        ("9.7", "varchar(5)", "COLLATE latin1_bin", "latin1", "latin1_bin"),
        (
            "9.7",
            "varchar(5) CHARSET latin1",
            "CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
            "latin1",
            "latin1_swedish_ci",
        ),
        ("9.7", "varchar(5) COLLATE utf8mb4_bin", "CHARSET=latin1", "utf8mb4", "utf8mb4_bin"),
        ("9.7", "varchar(5) CHARACTER SET utf8", "", "utf8mb3", "utf8mb3_general_ci"),
        ("9.7", "varchar(5) BINARY", "CHARSET=utf8mb4", "utf8mb4", "utf8mb4_bin"),
        ("9.7", "varchar(5) ASCII", "", "latin1", "latin1_swedish_ci"),
        ("9.7", "enum('a')", "CHARSET=latin1", "latin1", "latin1_swedish_ci"),
        ("9.7", "int", "CHARSET=latin1", None, None),
        ("9.7", "json", "CHARSET=latin1", None, None),
    ],
)
def test_character_sets(
    server: str, definition: str, table_options: str, charset: str | None, collation: str | None
) -> None:
    made = table(f"(c {definition}) {table_options}", server=server).columns[0]
    assert (made.charset, made.collation) == (charset, collation)


def test_the_databases_character_set() -> None:
    before = "CREATE DATABASE d DEFAULT CHARACTER SET latin2 COLLATE latin2_bin; USE d; "
    made = table("(c varchar(5), x varchar(5) CHARSET latin2)", before=before).columns
    assert [(each.charset, each.collation) for each in made] == [
        ("latin2", "latin2_bin"),
        ("latin2", "latin2_general_ci"),
    ]


def test_json_of_mariadb_is_text() -> None:
    made = column("json", server="mariadb")
    assert (made.type, made.charset, made.collation) == ("longtext", "utf8mb4", "utf8mb4_bin")


def test_timestamps_of_5_x_are_not_null_and_the_first_tracks_the_time() -> None:
    made = table(
        "(a timestamp, b timestamp, c timestamp NULL, d timestamp DEFAULT '2020-01-01 00:00:00')",
        server="5.7",
    ).columns
    assert [each.nullable for each in made] == [False, False, True, False]
    assert made[0].default == made[0].on_update == "CURRENT_TIMESTAMP"
    assert (made[1].default, made[1].on_update) == ("'0000-00-00 00:00:00'", None)
    assert [each.nullable for each in table("(a timestamp, b timestamp)").columns] == [True, True]


# keys


def names(definition: TableDefinition) -> list[str]:
    return [key.name for key in definition.sorted_keys]


@pytest.mark.parametrize(
    ("body", "order", "primary"),
    [
        (
            (
                "(a int, b int NOT NULL, c int, KEY k (a), UNIQUE KEY n (c), UNIQUE KEY u (b), "
                "PRIMARY KEY (a))"
            ),
            ["PRIMARY", "u", "n", "k"],
            "PRIMARY",
        ),
        ("(a int, b int NOT NULL, KEY k (a), UNIQUE n (a), UNIQUE u (b))", ["u", "n", "k"], "u"),
        ("(a int NOT NULL, b int NOT NULL, UNIQUE x (a), UNIQUE y (b))", ["x", "y"], "x"),
        ("(a int, UNIQUE n (a))", ["n"], None),
        ("(a int, b int NOT NULL, UNIQUE n (a, b))", ["n"], None),
        ("(a int NOT NULL, v varchar(9) NOT NULL, UNIQUE p (v(3)), UNIQUE u (a))", ["u", "p"], "u"),
        ("(v varchar(9) NOT NULL, UNIQUE p (v(3)))", ["p"], None),
        ("(a int NOT NULL, UNIQUE f ((a + 1)))", ["f"], None),
        ("(a int NOT NULL, g int AS (a) VIRTUAL NOT NULL, UNIQUE g (g))", ["g"], None),
        ("(a int NOT NULL, g int AS (a) STORED NOT NULL, UNIQUE g (g))", ["g"], "g"),
        ("(a int, b text, FULLTEXT KEY ft (b), KEY k (a))", ["k", "ft"], None),
        ("(a int PRIMARY KEY, b int UNIQUE, c int UNIQUE KEY)", ["PRIMARY", "b", "c"], "PRIMARY"),
        ("(a int, KEY (a), KEY (a), UNIQUE (a))", ["a_3", "a", "a_2"], None),
        ("(a int KEY)", ["PRIMARY"], "PRIMARY"),
        ("(id serial, a int)", ["id"], "id"),
    ],
)
def test_the_order_of_keys_and_promotion(body: str, order: list[str], primary: str | None) -> None:
    definition = table(body)
    assert names(definition) == order
    assert (definition.primary.name if definition.primary else None) == primary


def test_columns_of_a_primary_key_are_not_null() -> None:
    assert [
        each.nullable for each in table("(a int, b int, c int, PRIMARY KEY (b, a))").columns
    ] == [False, False, True]


def test_key_parts() -> None:
    definition = table(
        "(a int, b varchar(20), KEY k1 (b(5), a DESC), KEY k2 ((lower(b)), (a + 1) DESC) "
        "COMMENT 'x', KEY k3 (a) USING HASH,"
        " KEY k4 (a) /*!80000 INVISIBLE */, KEY k5 USING BTREE (a) KEY_BLOCK_SIZE=4, "
        "FULLTEXT KEY k6 (b) /*!50100 WITH PARSER `ngram` */,"
        " KEY k7 ((cast(a as unsigned array))))"
    )
    keys = {key.name: key for key in definition.keys}
    assert [(part.column, part.prefix, part.descending) for part in keys["k1"].parts] == [
        (1, 5, False),
        (0, None, True),
    ]
    assert [(part.expression, part.descending) for part in keys["k2"].parts] == [
        ("lower(b)", False),
        ("a + 1", True),
    ]
    assert (keys["k3"].kind, keys["k6"].kind, keys["k4"].visible, keys["k5"].visible) == (
        "hash",
        "fulltext",
        False,
        True,
    )
    assert (keys["k7"].multi_valued, keys["k2"].multi_valued) == (True, False)


def test_foreign_keys_bring_an_index_unless_one_serves() -> None:
    definition = table(
        "(a int, b int, KEY has (a, b), CONSTRAINT one FOREIGN KEY (a) REFERENCES p (id) "
        "ON DELETE CASCADE ON UPDATE SET NULL,"
        " CONSTRAINT two FOREIGN KEY ix (b) REFERENCES q.p (id, x) MATCH SIMPLE ON DELETE NO "
        "ACTION, FOREIGN KEY (b, a)"
        " REFERENCES p (y, z))"
    )
    assert [key.name for key in definition.keys] == ["has", "b"]  # (b) gives way to (b, a)
    one, two, three = definition.foreign_keys
    assert (
        one.name,
        one.columns,
        one.referenced_database,
        one.referenced_table,
        one.on_delete,
        one.on_update,
    ) == (
        "one",
        ("a",),
        "d",
        "p",
        "cascade",
        "set null",
    )
    assert (two.referenced_database, two.on_delete, two.on_update) == ("q", "no action", "restrict")
    assert three.name == "t_ibfk_1"


def test_of_equal_keys_made_for_foreign_keys_the_last_stays() -> None:
    """As 5.6.24, 5.7.29, 9.7.4 and MariaDB 10.11.18 show it."""
    one, two = (f"CONSTRAINT f{number} FOREIGN KEY (a) REFERENCES p (x)" for number in (1, 2))
    assert [key.name for key in table(f"(a int, {one}, {two})").keys] == ["f2"]
    assert [key.name for key in table(f"(a int, {one}, {two}, KEY k (a))").keys] == ["k"]


@pytest.mark.parametrize(
    ("key", "server", "made"),
    [
        ("KEY k (a DESC, b)", "9.7", True),
        ("KEY k (a DESC, b)", "5.7", False),
        ("KEY k (a DESC, b)", "mariadb", False),
        ("KEY k (a, b DESC)", "9.7", False),
        ("PRIMARY KEY (a DESC)", "9.7", True),
        ("KEY k (a, (b + 1))", "9.7", False),
        ("KEY k (a, b) INVISIBLE", "9.7", False),
        ("KEY k (a) USING HASH", "9.7", False),
        ("KEY k (a) USING HASH", "5.7", False),
        ("KEY k (a) USING HASH", "mariadb", True),
        ("KEY k (a) USING BTREE", "mariadb", False),
        ("FULLTEXT KEY k (a)", "9.7", True),
        ("FULLTEXT KEY k (a)", "5.7", True),
    ],
)
def test_which_keys_serve_for_a_foreign_key(key: str, server: str, made: bool) -> None:
    """As 5.7.29, 9.7.4 and MariaDB 10.11.18 show it."""
    definition = table(
        f"(a varchar(20), b int, {key}, CONSTRAINT made FOREIGN KEY (a) REFERENCES p (x))",
        server=server,
    )
    assert ("made" in [each.name for each in definition.keys]) == made


@pytest.mark.parametrize(
    ("server", "kinds"),
    [("5.7", ["btree"] * 3), ("8.0", ["spatial", "btree", "btree"]), ("mariadb", ["btree"] * 3)],
)
def test_a_whole_geometry_has_a_spatial_key_from_8_0_on(server: str, kinds: list[str]) -> None:
    """A dump of 5.7 gives the prefix, whatever server's rules it is read by."""
    definition = table(
        "(g point NOT NULL, a int, KEY g (g), KEY old (g(25)), KEY a (a))", server=server
    )
    assert [key.kind for key in definition.keys] == kinds


def test_a_generated_invisible_primary_key() -> None:
    definition = table(
        "(`my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */, `a` int, "
        "PRIMARY KEY (`my_row_id`))"
    )
    assert definition.generated_invisible_key
    assert definition.columns[0].invisible
    assert not table(
        "(`my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT, PRIMARY KEY (`my_row_id`))"
    ).generated_invisible_key


def test_system_versioned_tables_of_mariadb() -> None:
    definition = table("(a int PRIMARY KEY, b int) WITH SYSTEM VERSIONING", server="mariadb")
    assert [each.name for each in definition.columns] == ["a", "b", "row_start", "row_end"]
    assert definition.primary is not None
    assert definition.primary.columns == (0, 3)
    definition = table(
        "(a int, s timestamp(6) GENERATED ALWAYS AS ROW START, e timestamp(6) GENERATED ALWAYS AS "
        "ROW END, PERIOD FOR SYSTEM_TIME (s, e))"
        " WITH SYSTEM VERSIONING",
        server="mariadb",
    )
    assert [each.system_time for each in definition.columns] == [None, "start", "end"]


# tables


def test_table_options() -> None:
    definition = table(
        "(a int) ENGINE=MyISAM AUTO_INCREMENT=7 AVG_ROW_LENGTH=3 CHARSET latin1 COMMENT='with "
        "ENGINE=x' ROW_FORMAT=DYNAMIC"
        " DATA DIRECTORY='/x'"
        " UNION=(a,b) PACK_KEYS=0 STATS_PERSISTENT=1\n/*!50100 PARTITION BY RANGE (`a`)\n"
        "(PARTITION p0 VALUES LESS THAN (10)"
        " ENGINE = MyISAM) */"
    )
    assert (
        definition.engine,
        definition.row_format,
        definition.charset,
        definition.partitioned,
    ) == ("MyISAM", "DYNAMIC", "latin1", True)
    assert table("(a int) TYPE=InnoDB").engine == "InnoDB"


def test_names_with_anything_in_them() -> None:
    tables = applier.load_schema(
        "CREATE TABLE `we``ird`.`na.me` (`a``b` int, `select` int, `é中` int, KEY `k;ey` (`a``b`));"
    )
    definition = tables["we`ird.na.me"].definition
    assert [each.name for each in definition.columns] == ["a`b", "select", "é中"]
    assert definition.keys[0].name == "k;ey"


@pytest.mark.parametrize(
    ("server", "names"),
    [("5.6", "a e g j"), ("5.7", "a e h g j"), ("9.7", "a e h i g j"), ("mariadb", "a e f g j")],
)
def test_comments_and_version_comments(server: str, names: str) -> None:
    body = """(a int, -- b int,
        # c int,
        /* d int, */ /*!50503 e int, */ /*M!100301 f int, */
        /*!50700 h int, */ /*!80013 i int, /* x */ */ g int, /*! j int */)"""
    assert [each.name for each in table(body, server=server).columns] == names.split()


def test_ansi_quotes() -> None:
    rules = SchemaRules(lexis=Lexis(ansi_quotes=True))
    made = parse_create_table(
        'CREATE TABLE "t" ("a" int, "b""c" varchar(3) DEFAULT \'x\')', "d", rules
    )
    assert [each.name for each in made.columns] == ["a", 'b"c']


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE d.t (a NOTATYPE)", "CREATE TABLE d.t (a int", "CREATE TABLE d.t (a int,)",
        "CREATE TABLE d.t (a int b)",
        "CREATE TABLE d.t (a varchar('x'))",
        "CREATE TABLE d.t (a varchar())", "CREATE TABLE d.t (a enum(a))",
        "CREATE TABLE d.t (a int, KEY k (a(x)))",
        "CREATE TABLE d.t (a int, KEY k)",
        "CREATE TABLE d.t (a int, KEY k (zz))", "CREATE TABLE d.t (a int, KEY k (a), KEY k (a))",
        "CREATE TABLE d.t (a int PRIMARY KEY, PRIMARY KEY (a))",
        "CREATE TABLE d.t (a int DEFAULT)", "CREATE TABLE d.t (a int COMMENT 5)",
        "CREATE TABLE (a int)",
        "CREATE TABLE d.t (a int, FOREIGN KEY (a))",
        "CREATE TABLE d.t (a int CHECK (a > 0)", "CREATE TABLE d.t (a int) ENGINE",
        "CREATE TABLE d.t (a timestamp(x))",
        "CREATE TABLE d.t (`a int)",
    ],
)  # fmt: skip
def test_what_cannot_be_read_names_its_line(sql: str) -> None:
    with pytest.raises(InputError) as caught:
        applier.load_schema(f"CREATE TABLE d.fine (a int);\n\n{sql};\n")
    assert caught.value.message.startswith("line 3: ")
    assert caught.value.file == "the given SQL"
