"""A live replica as people run it: `receive` and `replay --follow --into` as processes; their
figures and their log records.

One source and one target, killed, locked and disconnected: what happens is in the records, once
each, and in the files for Prometheus.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from servers.server import Server

from tests.applier.test_metrics import Figures, figures, of
from tests.hardening.runner import ROOT
from tests.receive.sources import end_of_log, wait
from tests.servers.fixtures import ServerFactory

CHANNEL = "east"
ACCOUNT, PASSWORD = "replica", "s3cret-Word"
SECONDS = 120
"""More than any end of a process takes."""


@dataclass
class Command:
    """A process, and all that it says."""

    process: subprocess.Popen[bytes]
    said: Path

    @classmethod
    def start(cls, folder: Path, name: str, *arguments: str) -> Command:
        said = folder / f"{name}.log"
        command = [
            sys.executable,
            "-m",
            "applier",
            *arguments,
            "--log-json",
            "--channel",
            CHANNEL,
            "--openmetrics",
            f"{name}.prom",
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "BINLAG_PASSWORD": PASSWORD}
        with said.open("wb") as file:
            return cls(
                subprocess.Popen(
                    command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=file
                ),
                said,
            )

    def records(self, message: str = "", **fields: Any) -> list[dict[str, Any]]:
        lines = [line for line in self.said.read_text().split("\n")[:-1] if line]
        found = [json.loads(line) for line in lines]
        return [one for one in found if message in one["message"] and fields.items() <= one.items()]

    @property
    def figures(self) -> Figures:
        return figures(self.said.with_suffix(".prom").read_text())

    def of(self, name: str, **labels: str) -> float | None:
        return of(self.figures, f"replica_{name}", channel=CHANNEL, **labels)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=SECONDS)

    def check_no_secret(self) -> None:
        assert PASSWORD not in self.said.read_text()


@pytest.fixture(scope="module")
def pair(server_factory: ServerFactory) -> Iterator[tuple[Server, Server]]:
    # 2, not 0: with 0 the source's rows of the last second are gone when it is killed, and its
    # binlog still has them
    options = {"innodb_lock_wait_timeout": 3, "innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0}
    source, target = (
        server_factory("5.7", gtids=True, options={**options, "server_id": number})
        for number in (1, 2)
    )
    for server in (source, target):
        server.execute(
            "SET SESSION sql_log_bin = 0",
            f"CREATE USER {ACCOUNT}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT ALL ON *.* TO {ACCOUNT}@'127.0.0.1'",
        )
    yield source, target
    source.close()
    target.close()


@pytest.mark.in_ci
def test_what_a_live_replica_says(pair: tuple[Server, Server], tmp_path: Path) -> None:
    source, target = pair
    source.execute(
        "CREATE DATABASE r",
        "CREATE TABLE r.t (a INT PRIMARY KEY, b INT)",
        "INSERT INTO r.t VALUES (1, 0), (2, 0)",
    )
    receive = Command.start(tmp_path, "receive", "receive", url(source), "--dir", "relay")
    try:
        wait(
            lambda: (
                receive.said.with_suffix(".prom").exists()
                and receive.of("received_position_bytes") == end_of_log(source).offset
            )
        )
        replay = Command.start(
            tmp_path,
            "replay",
            "replay",
            "relay",
            "--follow",
            "--into",
            url(target),
            "--reconnect-seconds",
            "0",
        )
        try:
            follow(source, target, receive, replay)
        finally:
            replay.process.kill()
            replay.process.wait()
    finally:
        receive.process.kill()
        receive.process.wait()
    for command in (receive, replay):
        command.check_no_secret()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "receive.log",
        "receive.prom",
        "relay",
        "replay.log",
        "replay.prom",
    ]


def follow(source: Server, target: Server, receive: Command, replay: Command) -> None:
    wait(
        lambda: replay.said.with_suffix(".prom").exists() and replay.of("applied_transactions") == 3
    )
    wait(lambda: replay.of("seconds_behind_source") == 0)
    assert (replay.of("running", thread="applier"), receive.of("running", thread="receiver")) == (
        1,
        1,
    )
    assert (
        replay.of("last_error_number", thread="applier"),
        receive.of("last_error_number", thread="receiver"),
    ) == (0, 0)
    assert receive.of("received_log_number") == int(end_of_log(source).file.rpartition(".")[2])
    the_source_goes_away(source, receive)
    wait(lambda: target.query("SELECT a FROM r.t") == ((1,), (2,), (3,)))
    a_lock_is_waited_for(source, target, replay)
    two_wait_for_each_other(source, target, replay)
    assert (replay.of("applied_transactions"), replay.of("running", thread="applier")) == (6, 1)
    the_target_hangs_up(source, target, replay)
    wait(lambda: receive.of("received_position_bytes") == end_of_log(source).offset)
    assert receive.end() == 0
    assert (receive.of("running", thread="receiver"), receive.of("received_position_bytes")) == (
        0,
        end_of_log(source).offset,
    )


def the_source_goes_away(source: Server, receive: Command) -> None:
    source.kill()
    wait(lambda: bool(receive.records("trying again")))
    wait(lambda: receive.of("running", thread="receiver") == 0)
    source.start()
    wait(lambda: len(receive.records("connected to")) == 2)
    source.execute("INSERT INTO r.t VALUES (3, 0)")
    wait(lambda: receive.of("received_position_bytes") == end_of_log(source).offset)
    tries = receive.records("trying again")
    assert [(one["level"], one["tries"]) for one in tries] == [
        ("warning", number + 1) for number in range(len(tries))
    ]
    assert [one["number"] for one in tries] == [2013] + [2003] * (len(tries) - 1), (
        "lost, then not reached"
    )
    assert all(
        one["logger"] == "applier.receive" and one["seconds"] >= 1 and one["position"] > 4
        for one in tries
    )
    assert {one["source"] for one in tries} == {url(source)}
    assert [one["connections"] for one in receive.records("connected to")] == [1, 2]
    assert (receive.of("connections"), receive.of("running", thread="receiver")) == (2, 1)
    assert receive.of("last_error_number", thread="receiver") == tries[-1]["number"]


def a_lock_is_waited_for(source: Server, target: Server, replay: Command) -> None:
    """Longer than the target waits."""
    with target.connect() as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM r.t WHERE a = 1 FOR UPDATE")
        source.execute("UPDATE r.t SET b = 1 WHERE a = 1")
        wait(lambda: bool(replay.records("trying again", number=1205)))
        wait(lambda: (replay.of("seconds_behind_source") or 0) > 0)
        other.rollback()
    wait(lambda: replay.of("applied_transactions") == 5)
    wait(lambda: replay.of("seconds_behind_source") == 0)
    tries = replay.records("trying again", number=1205)
    assert [one["tries"] for one in tries] == list(range(1, len(tries) + 1)), "one record each time"
    for one in tries:
        assert (one["level"], one["logger"], one["transactions"]) == (
            "warning",
            "applier.replay",
            1,
        )
        assert one["file"].startswith("relay-bin.")
        assert one["position"] > 4
        assert one["gtid"].count(":") == 1


def two_wait_for_each_other(source: Server, target: Server, replay: Command) -> None:
    """InnoDB rolls the smaller transaction back, and that is the applier's."""
    before = len(replay.records("trying again"))
    with target.connect() as other, other.cursor() as cursor:
        cursor.execute("CREATE TABLE r.heavy (a INT PRIMARY KEY)")
        cursor.execute("BEGIN")
        cursor.execute(
            f"INSERT INTO r.heavy VALUES {','.join(f'({number})' for number in range(500))}"
        )
        cursor.execute("UPDATE r.t SET b = b WHERE a = 2")
        cursor.execute("SELECT * FROM r.t WHERE a = 2 FOR UPDATE")
        source.execute(
            "BEGIN",
            "UPDATE r.t SET b = 2 WHERE a = 1",
            "UPDATE r.t SET b = 2 WHERE a = 2",
            "COMMIT",
        )
        # not innodb_trx: that is a cache, and no query that comes within 0.1 s of another renews it
        # (trx0i_s.cc)
        wait(lambda: "LOCK WAIT" in target.query("SHOW ENGINE INNODB STATUS")[0][2])
        cursor.execute("SELECT * FROM r.t WHERE a = 1 FOR UPDATE")
        wait(lambda: bool(replay.records("trying again", number=1213)))
        other.rollback()
    wait(lambda: replay.of("applied_transactions") == 6)
    assert len(replay.records("trying again", number=1213)) == 1
    assert len(replay.records("trying again")) >= before + 1
    assert target.query("SELECT b FROM r.t WHERE a < 3") == ((2,), (2,))


def the_target_hangs_up(source: Server, target: Server, replay: Command) -> None:
    """What is committed is on the target; the command says once why it ends."""
    for (number,) in target.query(
        f"SELECT id FROM information_schema.processlist WHERE user = '{ACCOUNT}'"
    ):
        target.execute(f"KILL {number}")
    source.execute("INSERT INTO r.t VALUES (4, 0)")
    assert replay.process.wait(timeout=SECONDS) == 2
    assert [
        (one["level"], one["code"], one["exit_code"]) for one in replay.records() if "code" in one
    ] == [("error", "BL402", 2)]
    assert (replay.of("running", thread="applier"), replay.of("applied_transactions")) == (0, 6)
    assert (replay.of("last_error_number", thread="applier") or 0) > 0


def url(server: Server) -> str:
    return f"mysql://{ACCOUNT}@{server.host}:{server.port}"
