"""`binlag forecast --replica URL`: where real replicas are that are behind, and what they have
left."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click import Abort
from click.testing import CliRunner

from applier.cli.commands import forecast_follow
from applier.cli.main import cli
from tests.replica.real_pairs import Pair
from tests.servers.fixtures import ServerFactory

ROWS, LOCKED = 2000, 1000
SMALL = [f"INSERT INTO d.t VALUES ({-number}, 0)" for number in range(1, 7)]
LARGE = "UPDATE d.t SET b = b + 1 WHERE a > 0"
WAITING = "SELECT trx_id FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"


def now(pair: Pair) -> dict[str, Any]:
    """What the command says with the source's logs; with the replica's relay logs it says the
    same."""
    found = []
    for logs in (pair.source.binlog_files(), sorted(pair.replica.data.glob("relay.0*"))):
        url = f"mysql://{pair.replica.user}@127.0.0.1:{pair.replica.port}"
        given = ["forecast", *map(str, logs), "--replica", url, "--json"]
        runner = CliRunner(env={"BINLAG_PASSWORD": pair.replica.password})
        result = runner.invoke(cli, given, standalone_mode=False)
        assert result.exception is None, result.exception
        found.append(json.loads(result.stdout)["now"])
    first, second = found
    assert first["transactions_left"] == second["transactions_left"]
    return dict(first)


def followed(pair: Pair, patch: pytest.MonkeyPatch, folder: Path) -> list[dict[str, Any]]:
    """Two lines of --follow; in between the replica is let go on."""
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        if len(paused) == 2:
            raise Abort
        pair.run("START REPLICA SQL_THREAD")
        applied(pair)

    patch.setattr(forecast_follow, "time", SimpleNamespace(sleep=pause))
    url = f"mysql://{pair.replica.user}@127.0.0.1:{pair.replica.port}"
    logs = map(str, pair.source.binlog_files())
    given = ["forecast", *logs, "--replica", url, "--follow", "--json"]
    runner = CliRunner(env={"BINLAG_PASSWORD": pair.replica.password})
    given += ["--openmetrics", str(folder / "now.prom")]
    result = runner.invoke(cli, given, standalone_mode=False)
    patch.undo()
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_follow(
    server_factory: ServerFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Pair(server_factory, "9.7") as pair:
        behind(pair)
        first, second = followed(pair, monkeypatch, tmp_path)
    assert (first["transactions_left"], first["stopped"]) == (len(SMALL) + 1, "it is stopped")
    assert (second["transactions_left"], second["stopped"]) == (0, None)
    assert "binlag_forecast_now_left_transactions 0.0" in (tmp_path / "now.prom").read_text()


def until(condition: Callable[[], Any]) -> None:
    """Raises TimeoutError after two minutes. INNODB_TRX is as it was for who has looked at it
    within the last tenth of a second (CACHE_MIN_IDLE_TIME_NS, storage/innobase/trx/trx0i_s.cc)."""
    end = time.monotonic() + 120
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.2)


def applied(pair: Pair) -> None:
    name, end = pair.source_end()
    pair.wait(Relay_Master_Log_File=name, Exec_Master_Log_Pos=end)


def behind(pair: Pair) -> None:
    """A replica with the table, and seven transactions that it has received and not applied."""
    rows = ", ".join(f"({number}, 0)" for number in range(1, ROWS + 1))
    table = "CREATE TABLE d.t (a INT PRIMARY KEY, b INT)"
    pair.source.execute("CREATE DATABASE d", table, f"INSERT INTO d.t VALUES {rows}")
    pair.change_source()
    pair.run("START REPLICA")
    applied(pair)
    pair.run("STOP REPLICA SQL_THREAD")
    pair.source.execute(*SMALL[:3], LARGE, *SMALL[3:])
    name, end = pair.source_end()
    pair.wait(Master_Log_File=name, Read_Master_Log_Pos=end)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("version", "gtids"), [("9.7", True), ("5.7", False)])
def test_where_a_replica_is(server_factory: ServerFactory, version: str, gtids: bool) -> None:
    with Pair(server_factory, version, gtids=gtids) as pair:
        behind(pair)
        stopped = now(pair)
        assert (stopped["stopped"], stopped["catch_up_seconds"]) == ("it is stopped", "never")
        assert stopped["transactions_left"] == len(SMALL) + 1
        with closing(pair.replica.connect()) as holder:
            holder.query(f"SELECT * FROM d.t WHERE a = {LOCKED} FOR UPDATE")
            pair.run("START REPLICA SQL_THREAD")
            until(lambda: pair.replica.query(WAITING))
            inside = now(pair)
        assert inside["transactions_left"] == 4
        assert (inside["stopped"], inside["transaction"]["rows"]) == (None, ROWS)
        known = version != "5.7"
        assert inside["transaction"]["rows_done"] == (LOCKED - 1 if known else None)
        assert (inside["transaction"]["elapsed_seconds"] is not None) == known
        applied(pair)
        level = now(pair)
        assert (level["transactions_left"], level["catch_up_seconds"]) == (0, 0)


def test_what_is_wrong_is_said(server_factory: ServerFactory) -> None:
    with Pair(server_factory, "9.7") as pair:
        log, own = str(pair.source.binlog_files()[0]), str(pair.replica.binlog_files()[0])
        url = f"mysql://{pair.replica.user}@127.0.0.1:{pair.replica.port}"
        runner = CliRunner(env={"BINLAG_PASSWORD": pair.replica.password})
        none = runner.invoke(
            cli, ["forecast", log, "--replica", url, "--json"], standalone_mode=False
        )
        assert (
            "is not a replica: SHOW REPLICA STATUS has no row; the forecast does not say where "
            "it is now"
        ) in none.stderr
        assert json.loads(none.stdout)["now"] is None
        behind(pair)
        pair.source.execute("FLUSH BINARY LOGS", "INSERT INTO d.t VALUES (-99, 0)")
        pair.run("START REPLICA SQL_THREAD")
        applied(pair)
        for given in (log, own):
            other = runner.invoke(cli, ["forecast", given, "--replica", url], standalone_mode=False)
            assert other.exception is None, other.exception
            assert (
                "neither is among the logs given; the forecast does not say where it is now"
                in other.stderr
            )
