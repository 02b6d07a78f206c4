"""`binlag recover DIR` where records or relay logs are gone, kept elsewhere or edited by hand, and
what it prints then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.captures_support import CAPTURES
from tests.cli.test_recover import ANONYMOUS, crashed, dumped, ends_of, literal, sources, told
from tests.cli.test_replay import Run, binlag
from tests.replica.replicas import logs_of

__all__ = ["binlag"]


def test_no_record_of_the_receiver(tmp_path: Path, binlag: Run) -> None:
    """START REPLICA says 1200 (5.6.24, 5.7.29); what names the source again is for a hand."""
    folder = tmp_path / "dir"
    _, replica = crashed(folder, ANONYMOUS, "5.6", 6)
    (folder / "master.info").unlink()
    found = told(binlag, str(folder), *sources(ANONYMOUS), code=1)
    assert (found["error"]["number"], found["verdict"]) == (1200, "cannot start")
    assert replica.memory.applied is not None
    at = f"MASTER_LOG_POS={replica.memory.applied.source_log_pos};"
    assert found["commands"][0].startswith("# CHANGE MASTER TO MASTER_HOST=")
    assert found["commands"][0].endswith(at)
    (folder / "relay-log.info").unlink()
    found = told(binlag, str(folder), *sources(ANONYMOUS), "--info-repository", "FILE", code=1)
    assert (found["error"]["number"], found["applied"]) == (1200, None)
    assert "not on record" in found["commands"][0]


def test_no_record_of_the_applier(tmp_path: Path, binlag: Run) -> None:
    """All relay logs are executed again, from the first one on (5.7.29)."""
    folder, ends = tmp_path / "dir", ends_of(ANONYMOUS, "5.6")
    crashed(folder, ANONYMOUS, "5.6", 6)
    (folder / "relay-log.info").unlink()
    schema = ["--schema", str(CAPTURES / "open" / ANONYMOUS / "before.sql")]
    found = told(binlag, str(folder), *sources(ANONYMOUS), *schema)
    assert found["applied"] is None
    assert found["end"]["applied"]["source_log"] == "binlog.000002"
    assert ends


def test_a_place_behind_the_end_of_a_relay_log(tmp_path: Path, binlag: Run) -> None:
    """The applier goes on in the next relay log: what is left of this one is never executed
    (5.7.29, 9.7.4)."""
    folder, ends = tmp_path / "dir", ends_of(ANONYMOUS, "5.6")
    crashed(folder, ANONYMOUS, "5.6", 6)
    path = folder / "relay-log.info"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], b"99999999", *lines[3:]]))
    found = told(binlag, str(folder), *sources(ANONYMOUS), code=1)
    assert found["verdict"] == "loses"
    assert found["lost"][0]["start"] == ends[5]


@pytest.mark.parametrize("given", ["my.cnf", "--set"])
def test_relay_logs_of_another_name(tmp_path: Path, binlag: Run, given: str) -> None:
    """relay_log was changed: the record names a relay log that the new index has not."""
    folder = tmp_path / "dir"
    crashed(folder, ANONYMOUS, "5.6", 6)
    options = ["--set", "relay-log=other"]
    if given == "my.cnf":
        (folder / "my.cnf").write_text("[mysqld]\nrelay-log = /var/log/mysql/other\n")
        options = []
    command = [str(folder), *sources(ANONYMOUS), *options, "--server", "5.6"]
    found = told(binlag, *command, code=1)
    assert (found["error"]["number"], found["verdict"]) == (1872, "cannot start")
    found = told(binlag, *command, "--recovery")
    assert (found["applied"]["relay_log"], found["verdict"]) == ("other.000001", "consistent")


def test_relay_logs_that_are_all_gone(tmp_path: Path, binlag: Run) -> None:
    """The records name them, the replica's own binary logs say which version it is."""
    folder = tmp_path / "dir"
    crashed(folder, ANONYMOUS, "5.6", 6)
    for path in folder.glob("relay.*"):
        path.unlink()
    logs = logs_of(ANONYMOUS)
    for path in logs:
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "binlog.index").write_text("".join(f"./{path.name}\n" for path in logs))
    found = told(binlag, str(folder), *sources(ANONYMOUS), code=1)
    assert (found["server"][:4], found["error"]["number"]) == ("5.6.", 1872)
    found = told(binlag, str(folder), *sources(ANONYMOUS), "--recovery")
    assert (found["applied"]["relay_log"], found["verdict"]) == ("relay.000001", "consistent")


def test_records_in_the_other_repository(tmp_path: Path, binlag: Run) -> None:
    """They are moved at the start; where both have one, nothing starts."""
    folder = tmp_path / "dir"
    _, replica = crashed(folder, ANONYMOUS, "5.6", 6)
    assert replica.memory.applied is not None
    command = [str(folder), *sources(ANONYMOUS)]
    found = told(binlag, *command, "--info-repository", "TABLE")
    assert found["applied"]["source_log_pos"] == replica.memory.applied.source_log_pos
    assert found["verdict"] == "consistent"
    rig, _ = crashed(
        tmp_path / "tables",
        ANONYMOUS,
        "5.6",
        6,
        relay_log_info_repository="TABLE",
        master_info_repository="TABLE",
    )
    info = dumped(rig, tmp_path / "info.sql")
    found = told(binlag, *command, "--info", info, code=1)
    assert (found["error"]["number"], found["verdict"]) == (1794, "cannot start")
    assert "multiple" in found["error"]["message"]


def test_what_has_not_run_is_fetched_again(tmp_path: Path, binlag: Run) -> None:
    """The lines are run on a server whose threads did not start: what comes before the error is not
    executed yet."""
    folder, ends = tmp_path / "dir", ends_of(ANONYMOUS, "5.6")
    crashed(folder, ANONYMOUS, "5.7", 2, until=ends[-3], workers=0)
    newest = sorted(folder.glob("relay.0*"))[-1]
    newest.write_bytes(newest.read_bytes()[:-10])
    found = told(binlag, str(folder), *sources(ANONYMOUS), "--workers", "0", code=1)
    assert (found["error"]["number"], found["verdict"]) == (1594, "stops")
    begun, reached = found["applied"]["source_log_pos"], found["end"]["applied"]["source_log_pos"]
    assert begun < reached
    assert found["commands"][1:3] == [
        "RESET SLAVE;",
        f"CHANGE MASTER TO MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS={begun};",
    ]


def test_a_server_that_cannot_reset_what_it_could_not_read(tmp_path: Path, binlag: Run) -> None:
    """5.6.24: relay logs and the applier's record are removed by hand."""
    folder = tmp_path / "dir"
    crashed(folder, ANONYMOUS, "5.6", 6)
    for path in folder.glob("relay.0*"):
        path.unlink()
    found = told(binlag, str(folder), *sources(ANONYMOUS), "--server", "5.6.24", code=1)
    assert found["error"]["number"] == 1872
    place, changed, start = found["commands"]
    assert place.startswith("# stop the server, remove the relay logs, their index and relay-log")
    assert changed.endswith(f"MASTER_LOG_POS={found['applied']['source_log_pos']};")
    assert start == "START SLAVE;"


def test_one_of_several_channels(tmp_path: Path, binlag: Run) -> None:
    """Each has records and relay logs of its own, and the statements name it."""
    rig, _ = crashed(
        tmp_path / "dir",
        ANONYMOUS,
        "5.7",
        6,
        channel="Red",
        relay_log_info_repository="TABLE",
        master_info_repository="TABLE",
    )
    rows = {**rig.storage.info.rows("slave_master_info")[0], "Channel_name": "blue"}
    other = f"INSERT INTO slave_master_info VALUES ({','.join(map(literal, rows.values()))});"
    info = dumped(rig, tmp_path / "info.sql", more=other)
    command = [str(tmp_path / "dir"), *sources(ANONYMOUS), "--info", info, "--recovery"]
    code, _, err = binlag("recover", *command)
    assert code == 2
    assert "several channels: Red, blue" in err
    code, _, err = binlag("recover", *command, "--channel", "green")
    assert code == 2
    assert "no record of this channel" in err
    found = told(binlag, *command, "--channel", "red")
    assert found["applied"]["relay_log"].startswith("relay-red.")
    assert found["verdict"] == "consistent"
    assert found["commands"] == ["START SLAVE FOR CHANNEL 'Red';"]


def test_records_in_tables_are_asked_for(tmp_path: Path, binlag: Run) -> None:
    """The files of an 8.0 do not show them: nothing is concluded from that."""
    folder = tmp_path / "dir"
    repositories = ("relay_log_info_repository", "master_info_repository")
    crashed(folder, ANONYMOUS, "9.7", 6, **dict.fromkeys(repositories, "TABLE"))
    code, out, err = binlag("recover", str(folder), *sources(ANONYMOUS))
    assert (code, out) == (2, "")
    assert "in mysql.slave_relay_log_info and mysql.slave_master_info, which the files" in err
    assert "give --info FILE.sql: mysqldump mysql slave_relay_log_info slave_master_info" in err
