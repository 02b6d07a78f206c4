"""`binlag explain`: the list to act on, its order, the gate, Markdown, CSV and JSON; bad options
one by one."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from applier.forecast.inventory.table_verdicts import LEVELS
from tests.cli.test_replay import Run, binlag, schema

__all__ = ["binlag", "schema"]
SICK = {
    "scan": ("a INT", "The table has no key."),
    "text": (
        "a INT, b TEXT, FULLTEXT f (b)",
        "No key is used. `f`: a FULLTEXT key cannot be read in order.",
    ),
    "nulls": (
        "a INT, UNIQUE u (a)",
        "Unique key `u` may hold NULL in `a`, so the server treats it as a key with duplicates.",
    ),
    "twins": (
        "a INT NOT NULL, KEY k (a)",
        "Key `k` is not unique; how many rows share a value is not known.",
    ),
}
"""Table -> its columns and keys, and why its rows are found slowly."""
HEALTHY = {"good": "a INT PRIMARY KEY", "promoted": "a INT NOT NULL, UNIQUE u (a)"}


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Four sick tables, three healthy kinds, and forty more healthy tables."""
    path = tmp_path / "fleet.sql"
    tables = (
        {name: body for name, (body, _) in SICK.items()}
        | HEALTHY
        | {f"h{at}": HEALTHY["good"] for at in range(40)}
    )
    lines = [f"CREATE TABLE d.{name} ({body});" for name, body in tables.items()]
    path.write_text("\n".join([*lines, "CREATE TABLE d.cold (a INT) ENGINE=ARCHIVE;"]))
    return path


def listed(out: str) -> list[str]:
    """The tables that the list shows, in its order."""
    return [
        line.split()[0]
        for line in out.split("\n\n", maxsplit=1)[0].splitlines()[1:]
        if not line.startswith(" ")
    ]


def test_the_list_is_what_to_act_on(binlag: Run, fleet: Path) -> None:
    """A line a table, why, what to do; healthy ones are a number; all of it fits a screen."""
    code, out, err = binlag("explain", fleet)
    assert (code, err) == (0, "")
    assert listed(out) == ["d.scan", "d.text", "d.nulls", "d.twins"]
    assert [why for _, why in SICK.values() if f"  {why}\n" not in out] == []
    assert out.count("ALTER TABLE `d`.") == len(SICK)
    assert "43 tables find each row by a unique key (--all lists them).\n" in out
    assert len(out.splitlines()) <= 24
    code, out, _ = binlag("explain", fleet, "--all")
    assert (code, len(listed(out)), "lists them" in out) == (0, 47, False)


def test_the_order_is_by_rows_read_for_one_change(binlag: Run, fleet: Path) -> None:
    rows = (
        "--rows",
        "d.twins=1000000",
        "--rows",
        "d.twins.k=5000",
        "--rows",
        "d.nulls.u=1",
        "--rows",
        "*=2000",
    )
    code, out, _ = binlag("explain", fleet, "--server", "5.7", *rows)
    lines = {line.split()[0]: line.split() for line in out.splitlines() if line.startswith("d.")}
    assert code == 0
    assert list(lines.values()) == [
        ["d.twins", "1,000,000", "k", "2,500"],
        ["d.scan", "2,000", "-", "1,000"],
        ["d.text", "2,000", "-", "1,000"],
        ["d.nulls", "2,000", "u", "1"],
    ]
    assert "Key `k` is not unique: a value occurs in 5,000 rows on average." in out


def test_rows_of_the_dump_count(binlag: Run, tmp_path: Path) -> None:
    """NULLs of a unique key share one value: three of four rows, so a change reads two of three on
    average."""
    path = tmp_path / "rows.sql"
    path.write_text(
        "CREATE TABLE d.t (a INT, UNIQUE u (a)); INSERT INTO d.t VALUES (NULL), (NULL), (NULL), "
        "(1);"
    )
    code, out, _ = binlag("explain", path, "--server", "5.7", "--json", "--row-image", "full")
    found = json.loads(out)
    assert (code, found["rows"], found["levels"]) == (0, 4, ["not-unique", "no-primary-key"])
    assert found["rows_read_per_change"] == pytest.approx((3 * 2 + 1) / 4)


FAILS = {
    "no-key": "d.scan, d.text",
    "not-unique": "d.nulls, d.twins",
    "many-rows": "d.scan, d.text",
    "no-primary-key": "d.scan, d.text, d.nulls, d.twins, d.cold, d.promoted",
}


@pytest.mark.parametrize("level", LEVELS)
def test_the_gate(level: str, binlag: Run, fleet: Path) -> None:
    for form in ((), ("--json",), ("--csv",), ("--markdown",), ("--details",)):
        code, out, err = binlag("explain", fleet, "--fail-on", level, *form)
        assert (code, err) == (3, f"binlag: --fail-on {level}: {FAILS[level]}\n")
        assert [name for name in FAILS[level].split(", ") if name not in out] == []
    assert binlag("explain", fleet, "--table", "d.good", "--fail-on", level)[0] == 0


def test_several_levels(binlag: Run, fleet: Path) -> None:
    both = (
        "binlag: --fail-on no-key: d.scan, d.text\nbinlag: --fail-on not-unique: d.nulls, d.twins\n"
    )
    for options in (
        ("--fail-on", "not-unique,NO-KEY"),
        ("--fail-on", "not-unique", "--fail-on", "no-key"),
    ):
        code, _, err = binlag("explain", fleet, *options)
        assert (code, err) == (3, both)
    code, out, err = binlag("explain", fleet, "--fail-on", "big")
    assert (code, out) == (2, "")
    assert (
        "--fail-on: 'big' is not a level. Next: use one of no-key, not-unique, many-rows, "
        "no-primary-key"
    ) in err


def test_a_version_that_differs_is_named(binlag: Run, tmp_path: Path) -> None:
    """5.6 has no second unique key: with a prefix, none is promoted."""
    path = tmp_path / "s.sql"
    path.write_text("CREATE TABLE d.t (a VARCHAR(20) NOT NULL, UNIQUE u (a(4)));")
    code, out, _ = binlag("explain", path)
    assert (
        code,
        "  5.6: No key is used. `u`: 5.6 looks for a second unique key in temporary tables only."
        in out,
    ) == (0, True)
    assert binlag("explain", path, "--server", "9.7", "--fail-on", "no-key")[0] == 0


def test_a_spatial_key_that_stops_a_replica_comes_first(binlag: Run, tmp_path: Path) -> None:
    path = tmp_path / "shapes.sql"
    path.write_text(
        "CREATE TABLE d.a (a INT); CREATE TABLE d.s (g POINT NOT NULL /*!80003 SRID 0 */, "
        "SPATIAL KEY s (g));"
    )
    code, out, err = binlag("explain", path, "--rows", "d.a=1000000", "--rows", "d.s=3")
    stops = (
        "Key `s` is SPATIAL: InnoDB finds no row by it, and a replica stops with error 1032 at the "
        "first UPDATE or DELETE."
    )
    assert (code, err, listed(out)) == (0, "", ["d.s", "d.a"])
    assert f"  5.7, 8.0, 8.4, 9.7, mariadb: {stops}\n" in out
    _, out, _ = binlag("explain", path, "--server", "9.7", "--details")
    assert "no row is found: error 1032" in out


def test_csv_has_a_record_for_each_table(binlag: Run, fleet: Path) -> None:
    code, out, _ = binlag("explain", fleet, "--csv", "--rows", "d.scan=1000")
    found = list(csv.DictReader(out.splitlines()))
    assert (code, len(found), len(out.splitlines())) == (0, 47, 48)
    first = next(one for one in found if one["table"] == "d.scan")
    assert (first["engine"], first["rows"], first["rows_read_per_change"], first["key"]) == (
        "InnoDB",
        "1000",
        "500.5",
        "",
    )
    assert first["fix"].startswith("ALTER TABLE `d`.`scan` ADD COLUMN")


def test_markdown_is_a_table(binlag: Run, fleet: Path) -> None:
    code, out, _ = binlag("explain", fleet, "--markdown")
    lines = out.splitlines()
    assert (code, {line.count("|") for line in lines[:6]}) == (0, {7})
    assert lines[2].startswith(
        "| d.scan | ? | - | all | The table has no key. | `` ALTER TABLE `d`.`scan` "
    )
    assert lines[-1] == "43 other tables find each row by a unique key."
    code, out, _ = binlag("explain", fleet, "--markdown", "--table", "d.g%")
    assert (code, out.startswith("| table |")) == (0, True)


def test_forms_exclude_each_other(binlag: Run, fleet: Path) -> None:
    code, out, err = binlag("explain", fleet, "--csv", "--json")
    assert (code, out) == (2, "")
    assert "--json, --csv, --markdown and --details exclude each other" in err


def test_explain(binlag: Run, schema: Path) -> None:
    code, out, err = binlag("explain", schema, "--details", "--all")
    assert (code, err) == (0, "")
    assert out.startswith("d.t  InnoDB, primary key\n")
    assert "5.6, 5.7, 8.0, 8.4, 9.7, mariadb" in out
    code, out, _ = binlag(
        "explain",
        schema,
        "--json",
        "--server",
        "5.7",
        "--row-search",
        "TABLE_SCAN",
        "--row-image",
        "minimal",
    )
    found = json.loads(out)
    assert found == {
        "table": "d.t",
        "server": "5.7",
        "row_image": "MINIMAL",
        "statements": {"insert": "not needed", "update": "table scan", "delete": "table scan"},
        "algorithm": "table scan",
        "key": None,
        "reads": "up to the row, from the top, for each row",
        "rows": None,
        "rows_read_per_change": None,
        "levels": ["no-key", "many-rows"],
        "not_used": found["not_used"],
        "suggestion": {
            "finding": (
                "The table has a primary key. Set slave_rows_search_algorithms = "
                "'TABLE_SCAN,INDEX_SCAN' on the replica to use it."
            ),
            "sql": None,
            "algorithm": None,
            "lock": None,
            "notes": [],
        },
    }


def test_explain_gives_every_case(binlag: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.sql"
    path.write_text(
        "CREATE TABLE d.a (x INT, y TEXT, KEY k (x)); CREATE TABLE d.b (x INT NOT NULL, "
        "UNIQUE u (x));"
    )
    code, out, _ = binlag("explain", path, "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert (code, len(found)) == (0, 2 * 6 * 3)
    assert {case["algorithm"] for case in found if case["table"] == "d.b"} == {"index scan"}
    code, out, _ = binlag("explain", path, "--table", "d.b", "--details")
    assert (code, "`u` promoted to primary key" in out, "d.a" in out) == (0, True, False)
    code, out, _ = binlag("explain", path, "--table", "d.a", "--details")
    assert (
        "8.0, 8.4, 9.7, mariadb: No key finds a single row. Add an invisible AUTO_INCREMENT "
        "column:\n    ALTER TABLE `d`.`a`"
    ) in out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--server", "3"), "--server"),
        (("--row-search", "X"), "--row-search"),
        (("--row-image", "HALF"), "--row-image"),
        (("--table", "d.zz"), "d.zz"),
        (("--x",), "--x"),
    ],
)
def test_explain_with_bad_options(
    binlag: Run, schema: Path, options: tuple[str, ...], says: str
) -> None:
    code, out, err = binlag("explain", schema, *options)
    assert (code, out, says in err) == (2, "", True)


def test_explain_without_a_schema(binlag: Run, tmp_path: Path) -> None:
    for arguments in ((), (tmp_path / "gone.sql",), (tmp_path,)):
        assert binlag("explain", *arguments)[0] == 2


def test_a_database_that_the_schema_lacks_is_said(binlag: Run, fleet: Path) -> None:
    code, out, err = binlag("explain", fleet, "--database", "%", "--database", "typo")
    assert (code, err) == (0, "binlag: --database typo names nothing in the schema\n")
    assert "d.scan" in listed(out)
