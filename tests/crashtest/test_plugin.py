"""The pytest plugin, seen from the tests of somebody who uses it; and the examples, run as they are
shipped."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

EXAMPLES = Path(__file__).parents[2] / "examples"
PLUGIN = "applier.crashtest.plugin"
LOADED_BY_ITSELF = any(point.value == PLUGIN for point in entry_points(group="pytest11"))
LOAD = [] if LOADED_BY_ITSELF else ["-p", PLUGIN]


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(saved_offset=(EXAMPLES / "saved_offset.py").read_text())
    return pytester


def test_the_examples_pass(folder: pytest.Pytester) -> None:
    folder.makepyfile(test_saved_offset=(EXAMPLES / "test_saved_offset.py").read_text())
    folder.runpytest(*LOAD, "-q").assert_outcomes(passed=40 + 1 + 4)


def test_a_mistake_is_caught_once_for_each_disk(folder: pytest.Pytester) -> None:
    """The marker makes one test of each disk; those that fail say in one line what was left and
    what became of it."""
    folder.makepyfile(
        """
        import pytest
        from saved_offset import InsideTransactions

        @pytest.mark.crash_points(system=InsideTransactions, kinds=["process"])
        def test_it(crash):
            crash.check()
        """
    )
    result = folder.runpytest(*LOAD, "-q", "--tb=short")
    assert result.parseoutcomes().keys() == {"passed", "failed"}
    result.stdout.fnmatch_lines(
        ["E *AssertionError: process | 6 after | process: loses rows: the data differ *"]
    )
    names = re.findall(r"FAILED .*::test_it\[(.*)\]", result.stdout.str())
    again = folder.runpytest(*LOAD, "-q", "--crash", names[0])
    again.assert_outcomes(failed=1)
    folder.runpytest(*LOAD, "-q", "--crash", "process | 1 before | process").assert_outcomes(
        passed=1
    )


def test_all_at_once(folder: pytest.Pytester) -> None:
    folder.makepyfile(
        """
        from saved_offset import AfterTheData, WithTheData

        def test_wrong(crash_test):
            crash_test(AfterTheData, kinds=["process"])

        def test_right(crash_test):
            assert crash_test(WithTheData, kinds=["process", "os", "full disk", "I/O error"]).safe
        """
    )
    result = folder.runpytest(*LOAD, "-q")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: 9 of 27 disks after a crash are wrong",
            "E*process | 3 after | process: re-executes: executed 2 times: 0",
            'E*again: --crash "process | 3 after | process"',
        ]
    )


def test_own_checks(folder: pytest.Pytester) -> None:
    """A test may look at the disk that is left, and at what was promised before."""
    folder.makepyfile(
        """
        import pytest
        from saved_offset import WithTheData

        @pytest.mark.crash_points(system=WithTheData, kinds=["process"])
        def test_it(crash):
            assert set(crash.disk.names()) <= {"journal"}
            assert crash.acknowledged == list(range(crash.trial.acknowledged))
            assert crash.recover().applied == (0, 1, 2, 3)
            assert crash.recover().content[0] == ["a0", "b0"]

        def test_disk(simulated_disk):
            simulated_disk.open("a", create=True).write(0, b"x")
            left = [disk.contents().get("a") for _, disk in simulated_disk.crashes("os")]
            assert set(left) >= {None, b"x"}
        """
    )
    folder.runpytest(*LOAD, "-q").assert_outcomes(passed=18 + 1)


def test_the_replica(folder: pytest.Pytester) -> None:
    """The emulated replica is a fixture, too: crash-tested as it is, or driven by hand on a
    simulated disk."""
    folder.makepyfile(
        """
        def test_safe(crash_test, replica):
            settings = dict(repository="TABLE", recovery=True, auto_position=False)
            crash_test(**replica(transactions=2, **settings), kinds=["process"])

        def test_unsafe(crash_test, replica):
            settings = dict(repository="FILE", recovery=True, auto_position=False)
            crash_test(**replica(transactions=2, **settings), kinds=["process"])

        def test_by_hand(replica, simulated_disk):
            server, storage = replica(transactions=2)["make"]().server(simulated_disk)
            server.start()
            server.receive()
            assert server.apply() == 2
            assert len(storage.ledger) == 2
            assert "relay.index" in simulated_disk.names()
        """
    )
    result = folder.runpytest(*LOAD, "-q")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E*process | * after | process: re-executes: error 1062: *"])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("@pytest.mark.crash_points(3)\ndef test_it(crash): pass",
         "write @pytest.mark.crash_points(system=…)"),
        ("@pytest.mark.crash_points(system=WithTheData)\ndef test_it(): pass",
         "take the argument `crash`"),
        ("def test_it(crash_test): crash_test(lambda: Silent())",
         "do not agree even without a crash"),
        ("def test_it(crash_test): crash_test(lambda: Broken())",
         "does not even start after a run without a crash"),
    ],
)  # fmt: skip
def test_wrong_use(folder: pytest.Pytester, source: str, message: str) -> None:
    folder.makepyfile(
        f"""
import pytest
from applier.crashtest import State
from saved_offset import WithTheData

class Silent(WithTheData):
    def recover(self, disk):
        return State(())

class Broken(WithTheData):
    def recover(self, disk):
        raise OSError("no such thing")

{source}
"""
    )
    result = folder.runpytest(*LOAD, "-q")
    assert message in result.stdout.str() + result.stderr.str()
    assert result.ret != 0


def test_a_crash_that_is_none(folder: pytest.Pytester) -> None:
    folder.makepyfile(
        "from saved_offset import WithTheData\n\ndef test_it(crash_test):\n"
        "    crash_test(WithTheData)"
    )
    for place, message in (
        ("nonsense", "is not a crash"),
        ("process | 99 before | process", "the run has no point '99 before'"),
    ):
        result = folder.runpytest(*LOAD, "-q", "--crash", place)
        result.assert_outcomes(failed=1)
        assert message in result.stdout.str()
