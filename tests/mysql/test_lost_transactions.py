"""Moments at which a transaction could be left out, or done twice: each forced on a simulated
server. A checker looks at every commit."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from applier.error_codes import Code
from applier.errors import InputError
from applier.mysql import batches, replay
from applier.mysql.client.url import Endpoint
from applier.mysql.into import ReplayWatch, replay_into
from applier.mysql.into_options import IntoOptions
from applier.mysql.outcome import TargetOutcome
from applier.mysql.replay import DONE_BEFORE
from applier.options import parse_options
from tests.binlog.build import format_description, query, rows, table_map, xid
from tests.mysql.simulated_log import NUMBERS, UNIQUE, Events, SimulatedLog, create, log_of
from tests.mysql.simulated_server import Fault, Killed, SimulatedServer
from tests.mysql.simulated_sessions import Session, Values
from tests.mysql.test_schedules import Checker, stand_in

ORDERS = pytest.mark.parametrize("any_order", [False, True], ids=["ordered", "any order"])
START: list[Values] = [(number, 0) for number in range(6)]
"""Rows of the tables at first."""


def transaction(number: int, *changes: tuple[str, Values, Values]) -> Events:
    """Updates of rows, and the transaction's number."""
    events = [query(b"BEGIN", b"w")]
    all_changes: list[tuple[str, tuple[Values, ...]]] = [
        ("journal", ((number, 0),)),
        *((name, (one, two)) for name, one, two in changes),
    ]
    for name, images in all_changes:
        kind = 30 if len(images) == 1 else 31
        content = b"".join(b"\0" + struct.pack("<2i", *image) for image in images)
        events += [
            table_map(NUMBERS[name], b"w", name.encode(), b"\3\3"),
            rows(kind, content, NUMBERS[name], 2),
        ]
    return [*events, xid(number)]


def count_up(number: int, row: int, n: int = 0) -> Events:
    return transaction(number, ("t", (row, n), (row, n + 1)))


class Stage:
    """A server with the tables, and who looks at it."""

    def __init__(self, log: SimulatedLog, monkeypatch: pytest.MonkeyPatch, seed: int = 1) -> None:
        self.server = SimulatedServer(Random(seed))
        for name in UNIQUE:
            self.server.add_table(
                name, create(name), UNIQUE[name], [] if name in ("journal", "bag") else START
            )
        self.log = log
        self.checker = Checker(self.server, log)
        stand_in(self.server, monkeypatch)
        monkeypatch.setattr(batches, "time", SimpleNamespace(sleep=lambda seconds: self.let_go()))
        self._outsider = Session(0)

    def hold(self, *ids: int) -> None:
        """Somebody else locks rows of `t`, and lets go of them once a worker has given up."""
        self.server.locks |= {
            (self.server.tables["t"].number, 0, row): self._outsider for row in ids
        }

    def let_go(self) -> None:
        self.server.locks = {
            key: holder for key, holder in self.server.locks.items() if holder is not self._outsider
        }

    def go(
        self, watch: ReplayWatch | None = None, *, skip_errors: str = "", **into: Any
    ) -> TargetOutcome:
        options = parse_options(skip_errors=skip_errors)
        how = IntoOptions(force=True, **{"reconnect_seconds": 0, **into})
        return replay_into(
            [str(file) for file in self.log.files], Endpoint(user="root"), options, how, watch
        )

    def all_is_done(self) -> bool:
        """Each transaction once, and the checkpoint says so."""
        self.checker.check()
        everything = {one.number for one in self.log.transactions}
        return (
            set(self.server.applied) == self.checker.said() == everything and not self.server.done
        )


@ORDERS
def test_what_is_being_read_when_an_earlier_one_fails(
    any_order: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers have something to do when the third transaction comes: it waits for one of them,
    and learns of the lock."""
    stage = Stage(
        log_of(tmp_path, *(count_up(number, number) for number in (1, 2, 3))), monkeypatch
    )
    stage.hold(1, 2)
    assert stage.go(workers=2, batch=1, any_commit_order=any_order).error is None
    assert stage.server.met["a lock was in the way"]
    assert stage.all_is_done()


@ORDERS
def test_what_a_failure_at_the_end_gives_back(
    any_order: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three that are taken again the third overlaps with the second: the end of the log must
    wait for it, too."""
    stage = Stage(
        log_of(tmp_path, *(count_up(number, number) for number in (1, 2, 3))), monkeypatch
    )
    stage.hold(1, 2, 3)
    assert stage.go(workers=3, batch=1, any_commit_order=any_order).error is None
    assert stage.server.met["a lock was in the way"]
    assert stage.all_is_done()


@ORDERS
def test_ddl_waits_for_what_a_failure_gives_back(
    any_order: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ddl = [query(b"ALTER TABLE w.t COMMENT 'x' /* 4 */", b"w")]
    stage = Stage(
        log_of(
            tmp_path, *(count_up(number, number) for number in (1, 2, 3)), ddl, count_up(5, 1, 1)
        ),
        monkeypatch,
    )
    stage.hold(1, 2, 3)
    assert stage.go(workers=3, batch=1, any_commit_order=any_order).error is None
    assert stage.server.met["a lock was in the way"]
    assert stage.all_is_done()


def test_what_says_that_a_part_is_done_stays_until_the_position_is_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third is committed when the first fails. It is killed when the first row is dropped that
    says so."""
    stage = Stage(
        log_of(tmp_path, *(count_up(number, number) for number in (1, 2, 3, 4))), monkeypatch
    )
    stage.hold(1, 2)
    stage.server.faults = [Fault("kill after", 0, b"DELETE FROM `binlag`.`done`")]
    with pytest.raises(Killed):
        stage.go(workers=3, batch=1, any_commit_order=True)
    stage.server.bury_client()
    assert stage.server.applied[3] == 1
    assert stage.go(workers=2, batch=1).error is None
    assert stage.all_is_done()


def test_a_table_that_an_earlier_transaction_misses_is_not_the_next_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL mode asks for the second transaction's table while the first one's rows are under way,
    and hears of the table they miss."""
    log = log_of(
        tmp_path, transaction(1, ("t", (1, 0), (1, 1))), transaction(2, ("pair", (1, 0), (1, 9)))
    )
    stage = Stage(log, monkeypatch)
    del stage.server.tables["t"]
    outcome = stage.go(workers=1, batch=1, apply="sql")
    assert outcome.error is not None
    assert getattr(outcome.error, "number", 0) == 1146
    assert (outcome.transactions, outcome.position) == (0, 0)
    assert stage.server.applied == {}


@pytest.mark.parametrize("skip", ["all", "1205,1213"])
@pytest.mark.parametrize("what", ["deadlock", "wait"])
def test_a_lock_in_the_way_is_no_error_to_skip(
    what: str, skip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deadlock rolls back the batch: what follows the statement would be committed without it."""
    stage = Stage(log_of(tmp_path, *(count_up(number, number) for number in (1, 2))), monkeypatch)
    stage.server.faults = [Fault(what, 0, b"UPDATE `w`.`t`")]
    outcome = stage.go(workers=1, batch=2, apply="sql", skip_errors=skip)
    assert (outcome.error, outcome.notes) == (None, {})
    assert stage.server.met[what] == 1
    assert stage.all_is_done()


def test_ddl_whose_position_is_not_written_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first position has the marker; the second fails, when the statement is carried out
    already."""
    ddl = [query(b"CREATE TABLE w.made (id INT PRIMARY KEY) /* 1 */", b"w")]
    stage = Stage(log_of(tmp_path, ddl, count_up(2, 1)), monkeypatch)
    stage.server.faults = [Fault("wait", 1, b"UPDATE `binlag`.`slave_relay_log_info` SET `Relay")]
    first = stage.go(workers=2).error
    assert getattr(first, "number", 0) == 1205
    assert "Next: end the session of the target that is in the way" in str(first)
    assert "made" in stage.server.tables
    again = stage.go(workers=2)
    assert (again.error, again.notes) == (None, {DONE_BEFORE: 1})
    assert stage.all_is_done()


def test_a_fingerprint_of_another_version_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its difference from this one's would say that the statement was carried out."""
    ddl = [query(b"CREATE TABLE w.made (id INT PRIMARY KEY) /* 1 */", b"w")]
    stage = Stage(log_of(tmp_path, ddl, count_up(2, 1)), monkeypatch)
    stage.server.faults = [Fault("wait", 1, b"UPDATE `binlag`.`slave_relay_log_info` SET `Relay")]
    assert getattr(stage.go().error, "number", 0) == 1205
    monkeypatch.setattr(replay, "FORMULA", "another:")
    error = stage.go().error
    assert isinstance(error, InputError)
    assert error.code == Code.REPLAY_ROW
    assert "cannot tell whether it was carried out" in str(error)


def test_with_gtids_ddl_whose_position_is_not_written_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target has its GTID: it is passed over, and still one of this replay's transactions."""
    ddl = [query(b"CREATE TABLE w.made (id INT PRIMARY KEY) /* 1 */", b"w")]
    stage = Stage(log_of(tmp_path, ddl, count_up(2, 1)), monkeypatch)
    stage.server.faults = [Fault("wait", 1, b"UPDATE `binlag`.`slave_relay_log_info` SET `Relay")]
    assert getattr(stage.go(gtid=True).error, "number", 0) == 1205
    again = stage.go(gtid=True)
    assert (again.error, again.total_transactions) == (None, 2)
    assert stage.all_is_done()


@pytest.mark.parametrize("seed", range(8))
def test_a_clock_that_starts_anew_in_a_relay_log_does_not_count_on(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source began a new file: its numbers say nothing of what stands before its format
    description in the same relay log."""
    second = log_of(
        tmp_path,
        [*count_up(1, 1), (15, format_description()[19:-4])],
        count_up(2, 1, 1),
        clock=[(6, 7), (0, 1)],
    )
    stage = Stage(second, monkeypatch, seed)
    stage.server.on_commit = lambda: None  # the first one ends before the format description
    assert stage.go(workers=2, batch=1).error is None
    assert stage.server.met["refused"] == 0
    assert sorted(stage.server.applied) == [1, 2]


def test_with_gtids_what_this_replay_did_beyond_its_position_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second transaction is committed under its own GTID when the first fails."""
    stage = Stage(log_of(tmp_path, *(count_up(number, number) for number in (1, 2))), monkeypatch)
    stage.hold(1)
    stage.server.faults = [Fault("lost", 0, b"ROLLBACK")]
    first = stage.go(workers=2, any_commit_order=True, gtid=True)
    stage.let_go()
    assert "was lost" in str(first.error)
    assert (sorted(stage.server.applied), len(stage.server.done)) == ([2], 1)
    assert stage.go(workers=2, any_commit_order=True, gtid=True).total_transactions == 2
    assert stage.all_is_done()
