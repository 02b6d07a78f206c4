"""Server versions that are not known, wherever a command takes one: in --server, in a log, in a
calibration."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import pytest

import applier
from applier.cli.main import COMMANDS, main
from applier.error_codes import Code
from applier.errors import UsageError
from applier.mysql.client import dialect
from applier.mysql.statements import column_bytes
from applier.replica import scheduling
from applier.replica.configuration import ReplicaConfiguration
from applier.server_versions import KNOWN
from applier.status import performance_schema, status
from applier.timing.clock import ClockConfiguration
from checkpoints.fields import column_of
from lookup.versions import RULES
from tests.applier.logs import INT_TABLE, insert
from tests.binlog.build import log, write
from tests.cli.test_errors import Said, check, said

__all__ = ["said"]
ARGUMENTS = {
    "replay": "binlog.000001 --schema schema.sql --json",
    "verify": "binlog.000001 --into mysql://u@127.0.0.1:1",
    "status": ".",
    "clock": "binlog.000001",
    "explain": "schema.sql --json",
    "crashtest": (
        "binlog.000001 --schema schema.sql --recovery 1 --sync 1 --position file --workers 0 "
        "--engine innodb --kind process"
    ),
    "forecast": "binlog.000001 --schema schema.sql --json",
    "measure": "--table cells.parquet --quick",
    "recover": ".",
}
"""Command that takes --server -> the rest of a call that goes well."""
NEWER = "binlag: --server: 9.9 is newer than 9.7, the newest version known: 9.7's rules are taken"


@pytest.fixture
def files(tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text(INT_TABLE)
    write(tmp_path, log(*insert(1, 5)))


def test_these_are_the_commands_that_take_a_version() -> None:
    commands: dict[str, click.Command] = {
        name: importlib.import_module(f"applier.cli.commands.{name.replace('-', '_')}").command
        for name in COMMANDS
    }
    assert {
        name
        for name, one in commands.items()
        if any("--server" in parameter.opts for parameter in one.params)
    } == set(ARGUMENTS)


@pytest.mark.parametrize(
    "table",
    [
        scheduling.RULES,
        status.COLUMNS,
        performance_schema.TABLES,
        dialect.ACCEPTED,
        column_bytes.DIALECTS,
    ],
)
def test_no_table_lacks_a_version_that_can_be_named(table: Mapping[str, object]) -> None:
    """Or a command would end in a KeyError; default calibrations have a test of their own."""
    assert RULES.keys() == table.keys()


@pytest.mark.parametrize(
    "version", ["5.6.0", "5.7", "8.0.46", "8.1", "8.3.0", "8.4", "9.0.1", "9.7", "9.9", "42.0"]
)
def test_every_version_is_a_replica_too(version: str) -> None:
    assert ReplicaConfiguration(version).rules.name == column_of(version)
    assert ClockConfiguration(server=version).rules.name in RULES


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("version", ["nonsense", "4.0", "5.5.62", "8", ""])
@pytest.mark.parametrize("command", ARGUMENTS)
def test_what_is_no_version_or_too_old_is_refused_by_all_in_the_same_words(
    command: str, version: str, said: Said
) -> None:
    exit_code, errors = said(command, *ARGUMENTS[command].split(), "--server", version)
    assert exit_code == 2
    problem = (
        f"{version} is older than 5.6, the oldest version known"
        if "." in version
        else f"{version!r} is not a server version"
    )
    check(errors, "BL308", (f"--server: {problem}", f"Next: name one of {KNOWN}$"))


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", ["clock", "explain", "crashtest"])
def test_a_version_newer_than_all_is_said(command: str, said: Said) -> None:
    arguments = ARGUMENTS[command].replace("--workers 0", "--workers 1").split()
    exit_code, errors = said(command, *arguments, "--server", "9.9")
    assert exit_code == 0
    assert errors == [NEWER]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", ["replay", "forecast"])
def test_so_it_is_in_json(
    command: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main([command, *ARGUMENTS[command].split(), "--server", "9.9"])
    told = json.loads(capsys.readouterr().out)
    assert (end.value.code, told["server"]) == (0, "9.7")
    assert NEWER.removeprefix("binlag: ") in told["notes"]


def test_a_log_older_than_all_is_replayed_with_a_note(tmp_path: Path) -> None:
    path = write(tmp_path, log(*insert(1, 5), version="5.0.96"))
    note = "the log: 5.0.96 is older than 5.6, the oldest version known: 5.6's rules are taken"
    result = applier.replay([path], into=applier.load_schema(INT_TABLE))
    assert (result.error, result.server, result.notes) == (None, "5.6", {note: 1})
    told = applier.replay([path], into=applier.load_schema(INT_TABLE), server="5.7")
    assert (told.server, told.notes) == ("5.7", {})


@pytest.mark.parametrize("command", ["replay", "forecast"])
def test_a_log_whose_version_is_none_is_refused_until_one_is_given(
    command: str, said: Said, tmp_path: Path
) -> None:
    (tmp_path / "schema.sql").write_text(INT_TABLE)
    write(tmp_path, log(*insert(1, 5), version="5.0.96").replace(b"5.0.96", b"fork-1"))
    exit_code, errors = said(command, *ARGUMENTS[command].split())
    assert exit_code == 2
    check(
        errors,
        "BL308",
        (
            "the log's version: 'fork-1' is not a server version",
            f"Next: give --server, one of {KNOWN}",
        ),
    )
    assert said(command, *ARGUMENTS[command].split(), "--server", "5.7") == (0, [])


def test_a_calibration_of_no_version(said: Said, tmp_path: Path) -> None:
    (tmp_path / "schema.sql").write_text(INT_TABLE)
    write(tmp_path, log(*insert(1, 5)))
    shipped = Path(applier.__file__).parent / "forecast" / "calibrations" / "9.7.json"
    (tmp_path / "mine.json").write_text(
        json.dumps(json.loads(shipped.read_text()) | {"server_version": "nonsense"})
    )
    exit_code, errors = said(
        "forecast", *ARGUMENTS["forecast"].split(), "--calibration", "mine.json"
    )
    assert exit_code == 2
    check(errors, "BL204", ("mine.json", "'nonsense' is not a server version"))


@pytest.mark.parametrize(
    "make", [ReplicaConfiguration, lambda version: ClockConfiguration(server=version)]
)
def test_from_python_as_well(make: Callable[[str], object]) -> None:
    with pytest.raises(UsageError, match=r"4\.0 is older than 5\.6") as refused:
        make("4.0")
    assert refused.value.code == Code.UNKNOWN_VERSION
    with pytest.raises(UsageError, match="'nonsense' is not a server version"):
        applier.load_schema(INT_TABLE, server="nonsense")


@pytest.mark.usefixtures("files")
def test_a_number_that_only_mariadb_has_is_told_how_mariadb_is_named(said: Said) -> None:
    for version in ("10.11", "11.4.2"):
        _, errors = said("explain", "schema.sql", "--server", version)
        assert errors == [NEWER.replace("9.9", version) + "; MariaDB is named mariadb"]
    _, errors = said("explain", "schema.sql", "--server", "10.11.8-MariaDB")
    assert errors == []
