"""Dumps that are folders: mydumper, MySQL Shell, skeema; what is missing in one is said."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import zstandard

import applier
from applier.errors import InputError
from applier.tables.catalog import Tables


def write(folder: Path, files: dict[str, Any]) -> Path:
    """Files by name; what ends in .gz or .zst is packed, dictionaries are JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = (
            json.dumps(content).encode()
            if isinstance(content, dict)
            else content
            if isinstance(content, bytes)
            else content.encode()
        )
        path.write_bytes(
            gzip.compress(data)
            if name.endswith(".gz")
            else zstandard.compress(data)
            if name.endswith(".zst")
            else data
        )
    return folder


def rows(tables: Tables) -> dict[str, list[tuple[Any, ...]]]:
    return {table.definition.full_name: table.rows() for table in tables}


MYDUMPER: dict[str, Any] = {
    "metadata": "# Started dump at: 2026-11-22 07:00:00\n",
    "mydumper_1-schema-create.sql": (
        "CREATE DATABASE `sho.p` /*!40100 DEFAULT CHARACTER SET latin1 */;\n"
    ),
    "mydumper_1.a-schema.sql.gz": "/*!40101 SET NAMES binary*/;\nCREATE TABLE `a` (`id` int NOT "
    "NULL, `p` int, PRIMARY KEY (`id`), "
    "CONSTRAINT `f` FOREIGN KEY (`p`) REFERENCES `b` (`id`));\n",
    "mydumper_1.b-schema.sql": (
        "CREATE TABLE `b` (`id` int NOT NULL PRIMARY KEY, `t` varchar(9), `x` varbinary(9));\n"
    ),
    "mydumper_1.a.00000.sql.zst": (
        '/*!40101 SET NAMES binary*/;\nINSERT INTO `a` VALUES\n(1,1),\n(2,"2");\n'
    ),
    "mydumper_1.b.00000.sql": "/*!40101 SET NAMES binary*/;\nLOAD DATA LOCAL INFILE "
    "'mydumper_1.b.00000.dat' REPLACE INTO TABLE `b` "
    "CHARACTER SET binary FIELDS TERMINATED BY '\\t' ENCLOSED BY '' ESCAPED BY '\\\\' LINES "
    "STARTING BY '' TERMINATED BY '\\n' "
    "(`id`,`t`,@`x`) SET `x` = UNHEX(@`x`);\n",
    "mydumper_1.b.00000.dat": b"1\ta\\tb'\\\\\xe9\t00FF\n2\t\\N\t\\N\n",
    "mydumper_1.v-schema.sql": "CREATE TABLE `v`(\n`id` int\n)ENGINE=MyISAM;\n",
    "mydumper_1.v-schema-view.sql": (
        "DROP TABLE IF EXISTS `v`;\nDROP VIEW IF EXISTS `v`;\n"
        "CREATE VIEW `v` AS select `a`.`id` from `a`;\n"
    ),
    "mydumper_1.a-schema-triggers.sql": (
        "CREATE TRIGGER tr BEFORE INSERT ON a FOR EACH ROW SET NEW.p = 1;\n"
    ),
}


def test_mydumper(tmp_path: Path) -> None:
    tables = applier.load_schema(write(tmp_path, MYDUMPER))
    assert rows(tables) == {
        "sho.p.a": [(1, 1), (2, 2)],
        "sho.p.b": [(1, "a\tb'\\é", b"\0\xff"), (2, None, None)],
    }
    assert tables.databases["sho.p"].charset == "latin1"
    assert list(rows(applier.load_schema(tmp_path, table="`sho.p`.b", rewrite_db="sho.p:d"))) == [
        "d.b"
    ]


def test_a_file_of_rows_that_is_gone(tmp_path: Path) -> None:
    write(tmp_path, MYDUMPER)
    (tmp_path / "mydumper_1.b.00000.dat").unlink()
    with pytest.raises(InputError) as caught:
        applier.load_schema(tmp_path)
    assert (caught.value.code, caught.value.file) == (
        "BL101",
        str(tmp_path / "mydumper_1.b.00000.dat"),
    )


OPTIONS = {
    "schema": "shop", "table": "it@em", "columns": ["id", "t", "bits"],
    "decodeColumns": {"bits": "FROM_BASE64"}, "defaultCharacterSet": "utf8mb4",
    "fieldsTerminatedBy": "\t", "fieldsEnclosedBy": "", "fieldsOptionallyEnclosed": False,
    "fieldsEscapedBy": "\\", "linesTerminatedBy": "\n",
}  # fmt: skip
BITS = b64encode(b"\x01\x02")
SHELL: dict[str, Any] = {
    "@.json": {"dumper": "mysqlsh", "schemas": ["shop"], "basenames": {"shop": "shop"},
               "defaultCharacterSet": "utf8mb4", "tzUtc": True},
    "@.done.json": {"end": "2026-11-22"},
    "@.users.sql": "CREATE USER 'x'@'%';\n",
    "shop.json": {"tables": ["it@em"], "views": ["v"], "includesData": True,
                  "basenames": {"it@em": "shop@it%40em", "v": "shop@v"}},
    "shop.sql": "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop`;\nUSE `shop`;\n",
    "shop@it%40em.json": {"options": OPTIONS, "includesData": True, "extension": "tsv.zst",
                          "chunking": True},
    "shop@it%40em.sql": (
        "CREATE TABLE IF NOT EXISTS `it@em` (`id` int PRIMARY KEY, `t` timestamp NULL, "
        "`bits` bit(16));\n"
    ),
    "shop@it%40em@0.tsv.zst": b"1\t2024-01-01 10:00:00\t" + BITS + b"\n",
    "shop@it%40em@@1.tsv.zst": b"2\t\\N\t\\N\n",
    "shop@v.pre.sql": "USE `shop`;\n/*!50001 CREATE VIEW `v` AS SELECT 1 AS `id`*/;\n",
    "shop@v.sql": (
        "USE `shop`;\n/*!50001 DROP VIEW IF EXISTS `v`*/;\n"
        "/*!50001 CREATE VIEW `v` AS select 1 AS `id`*/;\n"
    ),
}  # fmt: skip


def test_mysql_shell(tmp_path: Path) -> None:
    notes: list[str] = []
    tables = applier.load_schema(write(tmp_path, SHELL), note=notes.append)
    found = rows(tables)["shop.it@em"]
    assert [(row[0], row[1] and row[1].hour, row[2]) for row in found] == [
        (1, 10, 0x0102),
        (2, None, None),
    ]
    assert notes == []


def test_mysql_shell_with_another_dialect(tmp_path: Path) -> None:
    options = {
        **OPTIONS,
        "fieldsTerminatedBy": ",",
        "fieldsEnclosedBy": '"',
        "fieldsOptionallyEnclosed": True,
        "linesTerminatedBy": "\r\n",
    }
    other = {
        **SHELL,
        "shop@it%40em.json": {"options": options, "includesData": True, "extension": "csv"},
    }
    del other["shop@it%40em@0.tsv.zst"], other["shop@it%40em@@1.tsv.zst"]
    other["shop@it%40em.csv"] = b'1,"2024-01-01 10:00:00","' + BITS + b'"\r\n2,\\N,\\N\r\n'
    found = rows(applier.load_schema(write(tmp_path, other)))["shop.it@em"]
    assert [(row[0], row[2]) for row in found] == [(1, 0x0102), (2, None)]


@pytest.mark.parametrize(
    ("gone", "says"),
    [
        ("@.done.json", "was not finished"),
        ("shop@it%40em@0.tsv.zst", "a chunk of rows is missing: shop@it%40em@0.tsv.zst"),
        ("shop@it%40em@@1.tsv.zst", "a chunk of rows is missing: shop@it%40em@1.tsv.zst"),
        ("shop.json", "cannot read"),
    ],
)  # fmt: skip
def test_a_shell_dump_with_a_gap(tmp_path: Path, gone: str, says: str) -> None:
    write(tmp_path, SHELL)
    (tmp_path / gone).unlink()
    with pytest.raises(InputError, match=says):
        applier.load_schema(tmp_path)


def test_rows_that_are_cut_off(tmp_path: Path) -> None:
    write(tmp_path, {**SHELL, "shop@it%40em@@1.tsv.zst": b"2\t\\N"})
    with pytest.raises(InputError, match="ends in the middle of a row") as caught:
        applier.load_schema(tmp_path)
    assert caught.value.file == str(tmp_path / "shop@it%40em@@1.tsv.zst")
    write(tmp_path, {"shop@it%40em@@1.tsv.zst": b"2\t\\N\n"})
    with pytest.raises(InputError, match="row 1 has 2 fields for 3 columns"):
        applier.load_schema(tmp_path)


def test_skeema(tmp_path: Path) -> None:
    files = {
        ".skeema": "generator=skeema:1.11.2\n[production]\nhost=db1\n",
        "shop/.skeema": "default-character-set=utf8mb4\nschema=shop\n",
        "shop/child.sql": (
            "CREATE TABLE child (id int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES parent "
            "(id));\n"
        ),
        "shop/parent.sql": "CREATE TABLE parent (id int PRIMARY KEY);\n",
        "log/.skeema": "schema=logs\n",
        "log/entry.sql": "CREATE TABLE entry (id int);\n",
    }
    tables = applier.load_schema(write(tmp_path, files))
    assert list(rows(tables)) == ["logs.entry", "shop.child", "shop.parent"]
    (tmp_path / "log" / ".skeema").unlink()
    with pytest.raises(InputError, match="--default-database"):
        applier.load_schema(tmp_path)
    assert "d.entry" in applier.load_schema(tmp_path, default_database="d")


def test_folders_that_are_no_dump(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the folder holds no dump") as caught:
        applier.load_schema(tmp_path)
    assert (caught.value.code, caught.value.file) == ("BL201", str(tmp_path))
    write(tmp_path, {"t.sql": "CREATE TABLE t (a int);", "t.txt": "1\n"})
    with pytest.raises(InputError, match="without --tab"):
        applier.load_schema(tmp_path)
