"""The file of a fleet: what may stand in it, and what its paths and names mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier.errors import InputError
from applier.fleets.config import fleet_of, read_fleet

WRONG = {
    "sources: 1": "it has no list `sources`",
    "sources: [1]": "source 1 is not a table of names and values",
    "sources: [{logs: a, schema: b, colour: red}]": (
        "source 1: 'colour' is unknown; there are calibration, logs, name"
    ),
    "sources: [{name: x, logs: a}]": "source x needs `logs` and `schema`",
    "sources: [{logs: {}, schema: b}]": "source 1 needs `logs` and `schema`",
    "sources: [{logs: [1], schema: b}]": (
        "source 1: `logs` is [1], and should be a path or a list of paths"
    ),
    "sources: [{name: x, logs: a, schema: b}, {name: x, logs: c, schema: b}]": (
        "two sources are called 'x'"
    ),
    "sources: [{logs: a, schema: b, replica: {workers: many}}]": (
        "source 1: replica: workers is 'many', and should be a whole number"
    ),
    "sources: [{logs: a, schema: b, replica: {threads: 4}}]": (
        "source 1: replica: 'threads' is unknown"
    ),
    "replica: 4\nsources: [{logs: a, schema: b}]": (
        "`replica` is 4, and should be a table of names and values"
    ),
    "sources: [": "while parsing a flow node",
    "sources: [{logs: a, schema: b}]\nsources: []": "the key 'sources' stands there twice",
    "sources: [{logs: a, logs: c, schema: b}]": "the key 'logs' stands there twice",
    "sources: [{name: [x], logs: a, schema: b}]": "source 1: `name` is ['x'], and should be a text",
    "sources: [{name: '', logs: a, schema: b}]": "source 1: `name` is '', and should be a text",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_fleet_file_that_is_wrong(tmp_path: Path, text: str) -> None:
    (tmp_path / "fleet.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_fleet(tmp_path / "fleet.yaml")
    assert WRONG[text] in caught.value.message
    assert (caught.value.code, caught.value.file) == ("BL211", str(tmp_path / "fleet.yaml"))
    assert "\n" not in str(caught.value)


def test_a_version_stays_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(
        "replica: {server: 10.10}\n"
        "sources: [{logs: a, schema: b}, {logs: a, schema: b, name: c, replica: {server: 9}}]"
    )
    assert [one.server for one in read_fleet(tmp_path / "fleet.yaml")] == ["10.10", "9"]


def test_a_key_that_a_merge_brings_in_is_no_second_one(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(
        "sources: [&a {name: a, logs: a.1, schema: s}, &b {<<: *a, name: b}, {<<: *b, name: c}]"
    )
    found = read_fleet(tmp_path / "fleet.yaml")
    assert [(one.name, Path(one.schema).name) for one in found] == [
        ("a", "s"),
        ("b", "s"),
        ("c", "s"),
    ]


def test_a_source_without_a_name_is_called_by_its_number() -> None:
    found = fleet_of(
        {
            "sources": [
                {"name": None, "logs": "a", "schema": "s"},
                {"name": 7, "logs": "a", "schema": "s"},
            ]
        }
    )
    assert [one.name for one in found] == ["1", "7"]


def test_names_in_paths(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for log_file in (
            f"{name}-bin.000002",
            f"{name}-bin.000001",
            f"{name}-bin.index",
            "other-bin.000001",
        ):
            (tmp_path / name / log_file).touch()
    found = fleet_of(
        {"sources": [{"logs": "{source}/{source}-bin.*", "schema": "{source}.sql"}]},
        folder=tmp_path,
    )
    logs = [str(tmp_path / "a" / "a-bin.000001"), str(tmp_path / "a" / "a-bin.000002")]
    assert [(one.name, one.schema) for one in found] == [
        ("a", str(tmp_path / "a.sql")),
        ("b", str(tmp_path / "b.sql")),
    ]
    assert list(found[0].logs) == logs


def test_paths_lead_to_the_same_files_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor of Spark has another folder than who named the fleet file."""
    (tmp_path / "fleet.yaml").write_text(
        "{calibration: p.json, password_file: p, sources: [{name: a, logs: "
        "[a.000001, s3://b/a.000002], schema: a.sql, rows: [a.csv,t=1]}]}"
    )
    monkeypatch.chdir(tmp_path)
    for name in ("fleet.yaml", "./fleet.yaml", str(tmp_path / "fleet.yaml")):
        [one] = read_fleet(name)
        assert one.logs == (str(tmp_path / "a.000001"), "s3://b/a.000002")
        assert (one.schema, one.rows) == (str(tmp_path / "a.sql"), (str(tmp_path / "a.csv"), "t=1"))
        assert (one.calibration, one.password_file) == (
            str(tmp_path / "p.json"),
            str(tmp_path / "p"),
        )
    [one] = fleet_of({"sources": [{"logs": "a.000001", "schema": "a.sql"}]})
    assert one.logs == (str(tmp_path / "a.000001"),)
