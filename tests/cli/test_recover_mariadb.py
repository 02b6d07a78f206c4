"""`binlag recover` on what a real replica of MariaDB leaves when it is killed, beside its next
start."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_recover import told
from tests.cli.test_replay import Run, binlag
from tests.replica.mariadb_pairs import MariadbPair, change_master
from tests.servers.fixtures import ServerFactory

__all__ = ["binlag"]
LEFT = re.compile(r"relay\.(\d+|index)|(relay-log|master)\.info|mbinlog\.(\d+|index)")
RECORD = "relay-log.info"


def killed(pair: MariadbPair, folder: Path) -> tuple[list[str], int]:
    """Kills the replica, whose applier stopped before the receiver; `folder` is a copy.

    Returns arguments that name the source's logs, and the bytes of the last group that was applied.
    """
    source = pair.source
    source.execute(
        "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"
    )
    pair.change_source()
    pair.run("START SLAVE")
    before = pair.settle()["Exec_Master_Log_Pos"]
    source.execute("INSERT INTO d.t VALUES (2)")
    size = pair.settle()["Exec_Master_Log_Pos"] - before
    pair.run("STOP SLAVE SQL_THREAD")
    source.execute("FLUSH LOGS", "INSERT INTO d.t VALUES (3)")
    file, position = pair.source_end()
    pair.wait(Master_Log_File=file, Read_Master_Log_Pos=position)
    (folder.parent / "info.sql").write_text(dumped(pair))
    pair.replica.kill()
    copied(pair, folder)
    for name, content in pair.source_files().items():
        (folder.parent / name).write_bytes(content)
    return [
        word for name in pair.source_files() for word in ("--source", str(folder.parent / name))
    ], size


def dumped(pair: MariadbPair) -> str:
    """As mysqldump mysql gtid_slave_pos writes it."""
    definition = pair.replica.query("SHOW CREATE TABLE mysql.gtid_slave_pos")[0][1]
    rows = ",".join(str(row) for row in pair.replica.query("SELECT * FROM mysql.gtid_slave_pos"))
    return f"{definition};\nINSERT INTO `gtid_slave_pos` VALUES {rows};\n"


def copied(pair: MariadbPair, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for path in pair.replica.data.iterdir():
        if LEFT.fullmatch(path.name):
            (folder / path.name).write_bytes(path.read_bytes())


def place(told_of: dict[str, Any]) -> tuple[str, int]:
    return told_of["source_log"], told_of["source_log_pos"]


def agrees(found: dict[str, Any], status: dict[str, Any]) -> None:
    assert place(found["received"]) == (status["Master_Log_File"], status["Read_Master_Log_Pos"])
    assert place(found["applied"]) == (
        status["Relay_Master_Log_File"],
        status["Exec_Master_Log_Pos"],
    )
    assert (found["applied"]["relay_log"], found["applied"]["relay_log_pos"]) == (
        status["Relay_Log_File"],
        status["Relay_Log_Pos"],
    )


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("recovery", [0, 1])
@pytest.mark.parametrize("using_gtid", ["no", "slave_pos"])
def test_beside_the_next_start(
    using_gtid: str, recovery: int, tmp_path: Path, binlag: Run, server_factory: ServerFactory
) -> None:
    folder = tmp_path / "dir"
    with MariadbPair(server_factory, using_gtid=using_gtid, relay_log_recovery=recovery) as pair:
        arguments = [
            str(folder),
            *killed(pair, folder)[0],
            "--recovery" if recovery else "--no-recovery",
        ]
        found = told(binlag, *arguments, "--info", str(tmp_path / "info.sql"))
        pair.replica.start()
        agrees(found, pair.status())
        assert (
            found["gtids"]["executed"]
            == pair.replica.query("SELECT @@gtid_slave_pos")[0][0]
            == "0-1-4"
        )
        assert (found["verdict"], found["error"], found["commands"]) == (
            "consistent",
            None,
            ["START SLAVE;"],
        )
        assert found["options"]["using_gtid"].lower() == using_gtid
        assert found["server"] == pair.replica.query("SELECT @@version")[0][0]
        pair.run("START SLAVE")
        pair.settle()
        assert place(found["end"]["applied"]) == pair.source_end()
        assert (
            found["end"]["gtids"]["executed"] == pair.replica.query("SELECT @@gtid_slave_pos")[0][0]
        )


def test_a_record_that_is_behind(
    tmp_path: Path, binlag: Run, server_factory: ServerFactory
) -> None:
    """relay-log.info is written behind the commit: here it is one group behind. The server fails
    with 1062, by GTID it does not."""
    folder = tmp_path / "dir"
    with MariadbPair(server_factory) as pair:
        sources, size = killed(pair, folder)
        arguments = [str(folder), *sources, "--info", str(tmp_path / "info.sql")]
        before = (folder / RECORD).read_bytes()
        end = int(before.split(b"\n")[4])
        moved = before.split(b"\n")
        moved[2], moved[4] = b"%d" % (int(moved[2]) - size), b"%d" % (end - size)
        for place_of in (folder, pair.replica.data):
            (place_of / RECORD).write_bytes(b"\n".join(moved))
        found = told(binlag, *arguments, code=1)
        assert (found["verdict"], [(one["gtid"], one["end"]) for one in found["again"]]) == (
            "re-executes",
            [("0-1-4", end)],
        )
        pair.replica.start()
        pair.run("START SLAVE")
        assert pair.wait(Last_SQL_Errno=1062)["Relay_Master_Log_File"] == "mbinlog.000001"
        pair.run(*(line.rstrip(";") for line in found["commands"]))
        pair.settle()


def test_what_tells_what_is_applied(
    tmp_path: Path, binlag: Run, server_factory: ServerFactory
) -> None:
    folder = tmp_path / "dir"
    with MariadbPair(server_factory, using_gtid="slave_pos", log_slave_updates=True) as pair:
        arguments = [str(folder), *killed(pair, folder)[0]]
    assert told(binlag, *arguments)["gtids"]["executed"] == "0-1-4"
    assert told(binlag, *arguments, "--executed-gtids", "0-1-3")["gtids"]["executed"] == "0-1-3"
    for name in ("mbinlog.000001", "mbinlog.index"):
        (folder / name).unlink()
    code, _, err = binlag("recover", *arguments)
    assert code == 2
    assert "what is applied stands in mysql.gtid_slave_pos" in err
    code, _, err = binlag(
        "recover", *arguments, "--executed-gtids", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1"
    )
    assert (code, "not a MariaDB GTID" in err) == (2, True)
    code, _, err = binlag("recover", *arguments, "--executed-gtids", "0-1-3", "--no-auto-position")
    assert (code, "master.info says using_gtid Slave_Pos" in err) == (2, True)
    code, _, err = binlag("recover", *arguments, "--executed-gtids", "0-1-3", "--gtid-mode")
    assert (code, "MariaDB has no gtid_mode" in err) == (2, True)
    (folder / "my.cnf").write_text("[mysqld]\nslave_parallel_threads = 4\n")
    code, out, _ = binlag("recover", *arguments, "--executed-gtids", "0-1-3")
    assert (code, "MASTER_USE_GTID=Slave_Pos, 4 workers" in out) == (0, True)
    code, out, _ = binlag("recover", *arguments, "--executed-gtids", "0-1-3", "--workers", "0")
    assert (code, "MASTER_USE_GTID=Slave_Pos, 0 workers" in out) == (0, True)
    code, _, err = binlag(
        "recover", *arguments, "--executed-gtids", "0-1-3", "--parallel-type", "DATABASE"
    )
    assert (code, "mariadb has no parallel_type=DATABASE" in err) == (2, True)


def test_a_named_connection(tmp_path: Path, binlag: Run, server_factory: ServerFactory) -> None:
    """Its files have its name; copied under the usual names they tell what it does next."""
    with MariadbPair(server_factory) as pair:
        pair.source.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
        change = change_master(pair.source, "no").replace("MASTER TO", "MASTER 'red' TO")
        pair.replica.execute(change, "START SLAVE 'red'")
        pair.source.execute("INSERT INTO d.t VALUES (1)")
        file, position = pair.source_end()
        while pair.replica.query("SHOW SLAVE 'red' STATUS")[0][21] != position:
            time.sleep(0.05)
        pair.replica.kill()
        folder, usual = tmp_path / "dir", tmp_path / "usual"
        folder.mkdir()
        usual.mkdir()
        for path in pair.replica.data.iterdir():
            if re.fullmatch(r"relay-.*|master-.*|multi\..*", path.name):
                (folder / path.name).write_bytes(path.read_bytes())
                name = path.name.replace("-red.info", ".info")
                (usual / name).write_bytes(path.read_bytes())
    code, _, err = binlag("recover", str(folder))
    assert code == 2
    assert "named connections: master-red.info" in err
    found = told(binlag, str(usual), "--executed-gtids", "0-1-3")
    applied = found["applied"]
    assert (applied["source_log"], applied["source_log_pos"]) == (file, position)
    assert applied["relay_log"].startswith("relay-red.")
