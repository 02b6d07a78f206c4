"""When positions are written and synced: the manual's table of sync_relay_log_info, and the
server's own rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.errors import CheckpointError
from checkpoints.sync_rules import (
    DEFAULT_REPOSITORY,
    Flush,
    Occasion,
    RecordStorage,
    Subject,
    SyncCounter,
    SyncOptions,
    rule_of,
)

BOTH, WRITTEN, NOTHING = Flush(True, True), Flush(True, False), Flush(False, False)
FORCING = (
    Occasion.CHECKPOINT,
    Occasion.ROTATE,
    Occasion.PURGE,
    Occasion.STOP,
    Occasion.CHANGE,
    Occasion.RECOVERY,
)


def flushes(
    kept: RecordStorage, period: int, occasion: Occasion, times: int = 6, server: str = "5.7"
) -> list[Flush]:
    counter = SyncCounter(rule_of(Subject.RELAY_LOG_INFO, kept, server), period)
    return [counter.flush(occasion) for _ in range(times)]


@pytest.mark.parametrize(
    ("kept", "period", "expected"),
    [
        (RecordStorage.FILE, 0, [WRITTEN] * 6),
        (RecordStorage.FILE, 1, [BOTH] * 6),
        (RecordStorage.FILE, 3, [WRITTEN, WRITTEN, BOTH] * 2),
        (RecordStorage.TABLE, 0, [WRITTEN] * 6),
        (RecordStorage.TABLE, 1, [WRITTEN] * 6),
        (RecordStorage.TABLE, 3, [WRITTEN] * 6),
        (RecordStorage.NONTRANSACTIONAL_TABLE, 0, [NOTHING] * 6),
        (RecordStorage.NONTRANSACTIONAL_TABLE, 1, [WRITTEN] * 6),
        (RecordStorage.NONTRANSACTIONAL_TABLE, 3, [NOTHING, NOTHING, WRITTEN] * 2),
    ],
)
def test_the_manuals_table(kept: RecordStorage, period: int, expected: list[Flush]) -> None:
    """sync_relay_log_info, each transaction: TABLE + InnoDB whatever N; TABLE + MyISAM never or
    every N; FILE synced every N."""
    assert flushes(kept, period, Occasion.COMMIT) == expected
    assert rule_of(Subject.RELAY_LOG_INFO, kept, "5.7").in_transaction == (
        kept is RecordStorage.TABLE
    )


def test_groups_that_end_without_a_commit() -> None:
    """They are not part of a transaction: a table waits for the counter, however transactional it
    is."""
    assert flushes(RecordStorage.TABLE, 3, Occasion.GROUP_END) == [NOTHING, NOTHING, WRITTEN] * 2
    assert flushes(RecordStorage.TABLE, 0, Occasion.GROUP_END) == [NOTHING] * 6


@pytest.mark.parametrize("occasion", FORCING)
def test_forced(occasion: Occasion) -> None:
    assert flushes(RecordStorage.FILE, 0, occasion, 1) == [BOTH]
    assert (
        flushes(RecordStorage.TABLE, 0, occasion, 1)
        == flushes(RecordStorage.NONTRANSACTIONAL_TABLE, 0, occasion, 1)
        == [WRITTEN]
    )


def test_a_forced_flush_starts_the_count_again() -> None:
    counter = SyncOptions(sync_relay_log_info=3).counter(
        Subject.RELAY_LOG_INFO, RecordStorage.FILE, "8.0"
    )
    done = [
        counter.flush(occasion).syncs
        for occasion in (Occasion.COMMIT, Occasion.COMMIT, Occasion.STOP, *[Occasion.COMMIT] * 3)
    ]
    assert done == [False, False, True, False, False, True]


@given(st.integers(0, 7), st.lists(st.sampled_from([Occasion.EVENT, Occasion.ROTATE]), max_size=40))
def test_never_more_than_n_flushes_unsynced(period: int, occasions: list[Occasion]) -> None:
    counter = SyncOptions(sync_master_info=period).counter(
        Subject.SOURCE_INFO, RecordStorage.FILE, "8.0"
    )
    unsynced = 0
    for occasion in occasions:
        done = counter.flush(occasion)
        unsynced = 0 if done.syncs else unsynced + 1
        assert done.writes
        assert done.syncs == (occasion is Occasion.ROTATE or unsynced == 0)
        assert not period or unsynced < period
        assert occasion is not Occasion.ROTATE or done.syncs


def test_receiver() -> None:
    """slave_master_info follows sync_master_info only; 5.5 did so with the file too."""
    for kept, server, expected in (
        (RecordStorage.FILE, "5.6", [WRITTEN, BOTH]),
        (RecordStorage.FILE, "5.5", [NOTHING, BOTH]),
        (RecordStorage.TABLE, "5.7", [NOTHING, WRITTEN]),
        (RecordStorage.TABLE, "9.7", [NOTHING, WRITTEN]),
    ):
        counter = SyncOptions(sync_master_info=2).counter(Subject.SOURCE_INFO, kept, server)
        assert [counter.flush(Occasion.EVENT) for _ in range(2)] == expected


@pytest.mark.parametrize(("server", "counted"), [("5.6", True), ("5.7", True), ("8.0", False)])
def test_groups_of_workers(server: str, counted: bool) -> None:
    """What ends without an XID is counted up to 5.7 and forced from 8.0 on; an XID is counted in a
    file and forced in a table."""
    every_third = [WRITTEN, WRITTEN, BOTH]
    for kept, by_xid, otherwise in (
        (RecordStorage.FILE, every_third, every_third if counted else [BOTH] * 3),
        (
            RecordStorage.TABLE,
            [WRITTEN] * 3,
            [NOTHING, NOTHING, WRITTEN] if counted else [WRITTEN] * 3,
        ),
    ):
        for occasion, expected in ((Occasion.COMMIT, by_xid), (Occasion.GROUP_END, otherwise)):
            counter = SyncOptions(sync_relay_log_info=3).counter(Subject.WORKER_INFO, kept, server)
            assert [counter.flush(occasion) for _ in range(3)] == expected


@pytest.mark.parametrize(
    ("server", "closing"), [("5.6", BOTH), ("5.7", BOTH), ("8.0", WRITTEN), ("9.7", WRITTEN)]
)
def test_relay_logs(server: str, closing: Flush) -> None:
    counter = SyncOptions(sync_relay_log=0).counter(Subject.RELAY_LOG, RecordStorage.FILE, server)
    occasions = (Occasion.OPEN, Occasion.EVENT, Occasion.ROTATE, Occasion.CLOSE)
    assert [counter.flush(occasion) for occasion in occasions] == [BOTH, WRITTEN, WRITTEN, closing]


def test_defaults() -> None:
    assert SyncOptions.default("5.5.62") == SyncOptions(0, 0, 0)
    assert SyncOptions.default("9.7") == SyncOptions(10000, 10000, 10000) == SyncOptions()
    in_files, in_tables = ("5.5", "5.6", "5.7", "mariadb"), ("8.0", "8.4", "9.7")
    assert (
        dict.fromkeys(in_files, RecordStorage.FILE) | dict.fromkeys(in_tables, RecordStorage.TABLE)
        == DEFAULT_REPOSITORY
    )


@pytest.mark.parametrize(
    ("subject", "kept", "server", "message"),
    [
        (Subject.RELAY_LOG_INFO, RecordStorage.FILE, "8.3", "taken away in 8.3"),
        (Subject.WORKER_INFO, RecordStorage.FILE, "9.7", "taken away in 8.3"),
        (Subject.RELAY_LOG_INFO, RecordStorage.TABLE, "5.5", "tables came with 5.6"),
        (
            Subject.RELAY_LOG_INFO,
            RecordStorage.TABLE,
            "10.11.18-MariaDB",
            "MariaDB keeps relay log info in a file only",
        ),
        (Subject.RELAY_LOG, RecordStorage.TABLE, "5.7", "a relay log is a file"),
    ],
)
def test_refused(subject: Subject, kept: RecordStorage, server: str, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        rule_of(subject, kept, server)


def test_a_negative_period() -> None:
    with pytest.raises(CheckpointError, match=r"0 \(never\)"):
        SyncOptions(sync_relay_log=-1).counter(Subject.RELAY_LOG, RecordStorage.FILE, "8.0")
