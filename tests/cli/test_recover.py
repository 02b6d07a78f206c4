"""`binlag recover DIR`: what the next start makes of what a crash left, told without changing
it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from applier.replica.replica import Replica
from checkpoints.info import SourceInfo
from checkpoints.info_files import encode, parse
from tests.captures_support import CAPTURES
from tests.cli.test_replay import Run, binlag
from tests.replica.replicas import Rig, logs_of

__all__ = ["binlag"]
ANONYMOUS, XA = "my56_anonymous_nochecksum", "my57_xa"


def crashed(
    folder: Path, capture: str, version: str, groups: int, *, until: int = 0, **options: Any
) -> tuple[Rig, Replica]:
    """A folder with what a replica leaves that is killed behind so many groups, everything being
    received, or up to a position."""
    rig = Rig.of(capture)
    replica = rig.replica(version, **options)
    while replica.receive(1) and not (
        until and replica.memory.received and replica.memory.received.source_log_pos == until
    ):
        pass
    assert replica.apply(groups) == groups
    folder.mkdir()
    for name, content in rig.disk.contents().items():
        (folder / name).write_bytes(content)
    return rig, replica


def sources(capture: str) -> list[str]:
    return [word for path in logs_of(capture) for word in ("--source", str(path))]


def told(binlag: Run, *arguments: str, code: int = 0) -> dict[str, Any]:
    found, out, err = binlag("recover", *arguments, "--json")
    assert found == code, err
    result: dict[str, Any] = json.loads(out)
    return result


def literal(value: Any) -> str:
    if value is None or isinstance(value, (int, float)):
        return "NULL" if value is None else str(value)
    return f"0x{value.hex()}" if isinstance(value, bytes) else "'" + value.replace("'", "''") + "'"


def dumped(rig: Rig, path: Path, *, more: str = "") -> str:
    """The rows of the info tables as mysqldump -t writes them."""
    lines = [more]
    for table in ("slave_relay_log_info", "slave_master_info", "slave_worker_info"):
        for row in rig.storage.info.rows(table):
            lines.append(
                f"INSERT INTO `{table}` VALUES "
                f"({','.join(literal(value) for value in row.values())});"
            )
    path.write_text("\n".join(lines))
    return str(path)


def receiver_at(folder: Path, position: int) -> None:
    """Another position in master.info, as a record that was not written for a while."""
    path = folder / "master.info"
    record = parse(SourceInfo, path.read_bytes(), "5.6").record
    path.write_bytes(encode(replace(record, source_log_pos=position), "5.6"))


def test_files_of_a_replica_that_goes_on(tmp_path: Path, binlag: Run) -> None:
    _, replica = crashed(tmp_path / "dir", ANONYMOUS, "5.6", 6)
    found = told(binlag, str(tmp_path / "dir"), *sources(ANONYMOUS))
    info, received = replica.memory.applied, replica.memory.received
    assert info is not None
    assert received is not None
    assert found["applied"]["source_log_pos"] == info.source_log_pos
    assert found["applied"]["relay_log_pos"] == info.relay_log_pos
    assert found["received"] == {
        "source_log": received.source_log_name,
        "source_log_pos": received.source_log_pos,
    }
    assert (found["error"], found["verdict"], found["commands"]) == (
        None,
        "consistent",
        ["START SLAVE;"],
    )
    assert (found["end"]["applied"]["source_log"], found["end"]["applied"]["source_log_pos"]) == (
        "binlog.000002",
        4,
    )
    assert found["options"]["relay_log_info_repository"] == "FILE"
    assert found["server"].startswith("5.6.24")
    assert (found["again"], found["lost"]) == ([], [])


def test_nothing_on_disk_changes(tmp_path: Path, binlag: Run) -> None:
    folder = tmp_path / "dir"
    crashed(folder, ANONYMOUS, "5.6", 6)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    at = folder.stat().st_mtime_ns
    for recovery in ("--recovery", "--no-recovery"):
        told(binlag, str(folder), *sources(ANONYMOUS), recovery)
    assert {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()
    } == before
    assert folder.stat().st_mtime_ns == at


def test_text_names_positions_verdict_and_commands(tmp_path: Path, binlag: Run) -> None:
    crashed(tmp_path / "dir", ANONYMOUS, "5.6", 6)
    code, out, err = binlag("recover", str(tmp_path / "dir"), *sources(ANONYMOUS))
    assert code == 0
    assert "verdict   consistent" in out
    assert out.rstrip().endswith("START SLAVE;")
    assert "relay-log.info is written behind each commit" in err


def test_rows_of_a_dump(tmp_path: Path, binlag: Run) -> None:
    rig, replica = crashed(tmp_path / "dir", XA, "5.7", 9, relay_log_info_repository="TABLE",
                           master_info_repository="TABLE",
                           gtid_mode=True, auto_position=True, relay_log_recovery=True)  # fmt: skip
    purged = f"SET @@GLOBAL.GTID_PURGED='{rig.storage.executed_gtids}';"
    found = told(
        binlag,
        str(tmp_path / "dir"),
        "--info",
        dumped(rig, tmp_path / "info.sql", more=purged),
        *sources(XA),
        "--recovery",
    )
    assert replica.memory.applied is not None
    assert found["applied"]["source_log_pos"] == replica.memory.applied.source_log_pos
    assert found["received"]["source_log_pos"] == replica.memory.applied.source_log_pos
    assert (
        found["options"]
        | {"auto_position": True, "gtid_mode": True, "relay_log_info_repository": "TABLE"}
        == found["options"]
    )
    assert found["gtids"]["executed"] == str(rig.storage.executed_gtids)
    assert sorted(found["prepared"]) == sorted(rig.storage.prepared)
    assert found["verdict"] == "consistent"


def test_a_prepare_that_57_lost(tmp_path: Path, binlag: Run) -> None:
    """Its GTID is executed, the position is not behind it: XA COMMIT meets 1397, and what mends it
    names the transaction."""
    options = {
        "relay_log_info_repository": "TABLE",
        "master_info_repository": "TABLE",
        "gtid_mode": True,
        "auto_position": True,
    }
    rig, _ = crashed(tmp_path / "dir", XA, "5.7", 9, relay_log_recovery=True, **options)
    info = dumped(rig, tmp_path / "info.sql")
    executed = f"{str(rig.storage.executed_gtids).partition(':')[0]}:1-10"
    command = (
        str(tmp_path / "dir"),
        "--info",
        info,
        *sources(XA),
        "--recovery",
        "--executed-gtids",
        executed,
    )
    found = told(binlag, *command, code=1)
    assert (found["error"]["number"], found["error"]["moment"], found["verdict"]) == (
        1397,
        "applier",
        "stops",
    )
    assert ":10'" in found["commands"][0]
    assert found["commands"][1:] == ["START SLAVE;"]
    there = [
        "--prepared",
        "X'6738',X'6238',9",
        "--prepared",
        "X'7833',X'',1",
        "--prepared",
        "X'7830',X'',1",
    ]
    found = told(binlag, *command, *there)
    assert found["verdict"] == "consistent"
    rows = [
        "--prepared",
        "9\t2\t2\tg8b8",
        "--prepared",
        "| 1 | 2 | 0 | 0x7833 |",
        "--prepared",
        "x0",
    ]
    assert told(binlag, *command, *rows) == found


def test_a_row_of_xa_recover_whose_lengths_are_wrong(tmp_path: Path, binlag: Run) -> None:
    crashed(tmp_path / "dir", ANONYMOUS, "5.6", 6)
    code, _, err = binlag("recover", str(tmp_path / "dir"), "--prepared", "1 3 0 h1")
    assert code == 2
    assert "--prepared: lengths of 3 and 0 bytes, but data of 2" in err


def test_a_record_that_cannot_be_read(tmp_path: Path, binlag: Run) -> None:
    folder = tmp_path / "dir"
    _, replica = crashed(folder, ANONYMOUS, "5.6", 6)
    assert replica.memory.received is not None
    (folder / "relay-log.info").write_bytes(b"")
    found = told(binlag, str(folder), *sources(ANONYMOUS), code=1)
    assert (found["error"]["number"], found["error"]["moment"], found["verdict"]) == (
        1872,
        "start",
        "cannot start",
    )
    assert found["applied"] is None
    assert found["received"]["source_log_pos"] == replica.memory.received.source_log_pos
    assert any("CHANGE MASTER TO MASTER_LOG_FILE=" in line for line in found["commands"])


def ends_of(capture: str, version: str) -> list[int]:
    """Where groups end in the source's log."""
    replica = Rig.of(capture).replica(version)
    replica.receive()
    ends = []
    while replica.apply(1):
        assert replica.memory.applied is not None
        ends.append(replica.memory.applied.source_log_pos)
    return ends


def test_a_receiver_that_is_behind_its_relay_logs(tmp_path: Path, binlag: Run) -> None:
    """master.info was not written for a while: what follows comes twice, which rows show as an
    error."""
    folder, ends = tmp_path / "dir", ends_of(ANONYMOUS, "5.6")
    crashed(folder, ANONYMOUS, "5.6", 6, until=ends[-6])
    receiver_at(folder, ends[-9])
    found = told(binlag, str(folder), *sources(ANONYMOUS), code=1)
    assert (found["verdict"], found["error"]) == ("re-executes", None)
    assert [one["end"] for one in found["again"]] == ends[-8:-5]
    assert "RESET SLAVE;" in found["commands"]
    assert (
        "CHANGE MASTER TO MASTER_LOG_FILE='binlog.000001', "
        f"MASTER_LOG_POS={found['applied']['source_log_pos']};"
    ) in found["commands"]


def test_rows_are_looked_at_when_they_are_there(tmp_path: Path, binlag: Run) -> None:
    folder, ends = tmp_path / "dir", ends_of(ANONYMOUS, "5.6")
    crashed(folder, ANONYMOUS, "5.6", 0, until=ends[5])
    schema = ["--schema", str(CAPTURES / "open" / ANONYMOUS / "before.sql")]
    assert told(binlag, str(folder), *sources(ANONYMOUS), *schema)["verdict"] == "consistent"
    receiver_at(folder, ends[0])
    found = told(binlag, str(folder), *sources(ANONYMOUS), *schema, code=1)
    assert (found["error"]["number"], found["verdict"]) == (1062, "re-executes")
    assert found["end"]["applied"]["source_log_pos"] < ends[5]


def test_a_receiver_that_is_ahead_of_its_relay_logs(tmp_path: Path, binlag: Run) -> None:
    """The relay log lost its end, master.info did not: what lies between is never received."""
    folder, ends = tmp_path / "dir", ends_of(ANONYMOUS, "5.6")
    crashed(folder, ANONYMOUS, "5.6", 6, until=ends[-9])
    receiver_at(folder, ends[-6])
    found = told(binlag, str(folder), *sources(ANONYMOUS), code=1)
    assert found["verdict"] == "loses"
    assert [(one["start"], one["end"]) for one in found["lost"]] == [(ends[-9], ends[-6])]


def test_options_come_from_the_option_file(tmp_path: Path, binlag: Run) -> None:
    folder = tmp_path / "dir"
    crashed(folder, ANONYMOUS, "5.6", 6)
    (folder / "my.cnf").write_text(
        "[client]\nport=1\n[mysqld]\nslave-parallel-workers = 3 # all\nrelay_log_recovery\n"
        "!include /x\n"
    )
    (folder / "auto.cnf").write_text("[auto]\nserver-uuid=5eed0000-c4a5-11ee-8000-000000000001\n")
    found = told(binlag, str(folder), *sources(ANONYMOUS))
    assert (found["options"]["workers"], found["options"]["relay_log_recovery"]) == (3, True)
    assert found["server_uuid"] == "5eed0000-c4a5-11ee-8000-000000000001"
    found = told(
        binlag,
        str(folder),
        *sources(ANONYMOUS),
        "--workers",
        "0",
        "--set",
        "relay-log-recovery=OFF",
    )
    assert (found["options"]["workers"], found["options"]["relay_log_recovery"]) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "is not a folder"),
        (["."], "no index of relay logs"),
        (["dir", "--set", "innodb_buffer_pool_size=1"], "does not matter here"),
        (["dir", "--set", "relay_log_recovery=perhaps"], "neither ON nor OFF"),
        (["dir", "--executed-gtids", "x"], "--executed-gtids"),
        (["dir", "--my-cnf", "missing.cnf"], "there is no such file"),
        (["dir", "--info", "other.sql"], "no row of mysql.slave_relay_log_info"),
    ],
)
def test_refused(
    arguments: list[str], said: str, tmp_path: Path, binlag: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed(tmp_path / "dir", ANONYMOUS, "5.6", 6)
    (tmp_path / "other.sql").write_text("CREATE TABLE d.t (a INT);")
    monkeypatch.chdir(tmp_path)
    code, out, err = binlag("recover", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("inside", [True, False])
def test_how_far_workers_are_depends_on_the_moment(
    inside: bool, tmp_path: Path, binlag: Run
) -> None:
    """A relay log that cannot be read at its end: 5.7 drops what was handed out and not begun; 5.6
    executes it where the damage is between two groups, and where it is inside of one it kills the
    workers (seen of 5.7.29 and 5.6.24)."""
    options: dict[str, Any] = {
        "workers": 1,
        "parallel_type": "DATABASE",
        "preserve_commit_order": False,
    }
    reached = {}
    for version in ("5.6", "5.7"):
        folder = tmp_path / version
        crashed(folder, ANONYMOUS, version, 0, until=ends_of(ANONYMOUS, "5.6")[-3], **options)
        newest = sorted(folder.glob("relay.0*"))[-1]
        content = newest.read_bytes()
        newest.write_bytes(content[:-10] if inside else content + bytes(40))
        given = [
            "--workers",
            "1",
            "--parallel-type",
            "DATABASE",
            "--set",
            "replica_checkpoint_group=32",
        ]
        found = told(binlag, str(folder), *sources(ANONYMOUS), *given, code=1)
        assert (found["error"]["number"], found["verdict"]) == (1594, "stops")
        end = found["end"]
        reached[version] = (
            end["applied"]["source_log_pos"],
            (end["applied_at_most"] or {}).get("source_log_pos"),
        )
    begun, handed_out = reached["5.7"]
    assert begun < handed_out
    if inside:
        assert reached["5.6"][1] == handed_out
        assert reached["5.6"][0] < begun
    else:
        assert reached["5.6"] == (handed_out, None)


@pytest.mark.parametrize(
    ("capture", "series", "release", "options"),
    [
        (ANONYMOUS, "5.6", "5.6.24", {}),
        (
            XA,
            "5.7",
            "5.7.29",
            {"gtid_mode": True, "auto_position": True, "relay_log_recovery": True},
        ),
        ("my_xa", "9.7", "9.7.4", {"gtid_mode": True, "auto_position": True}),
    ],
)
def test_a_series_names_the_release_of_the_relay_logs(
    tmp_path: Path, binlag: Run, capture: str, series: str, release: str, options: dict[str, bool]
) -> None:
    """What the replica receives goes into a new relay log, whose head needs all three numbers of
    the version."""
    rig, _ = crashed(tmp_path / "dir", capture, series, 3, **options)
    words = [
        str(tmp_path / "dir"),
        *sources(capture),
        *[f"--{name.replace('_', '-').removeprefix('relay-log-')}" for name in options],
    ]
    if series == "9.7":
        words += [
            "--info",
            dumped(rig, tmp_path / "info.sql"),
            "--executed-gtids",
            str(rig.storage.executed_gtids),
        ]
    by_itself = told(binlag, *words)
    assert told(binlag, *words, "--server", series) == by_itself
    assert by_itself["server"].startswith(release)
    assert by_itself["error"] is None
