"""Crash tests: a run is cut off at every point, restarted on every disk that may be left, and
judged.

from applier.crashtest import State, explore

class Consumer:
    def run(self, disk): ...        # yields each piece of work when it is acknowledged
    def recover(self, disk): ...    # -> State(applied, content) after restart and catching up

for trial in explore(Consumer).failures:
    print(trial)
"""

from applier.crashtest.checkers import Judgement, Verdict, judge
from applier.crashtest.contract import CannotStart, RecoveryMistake, State, System
from applier.crashtest.crash_runs import Kind
from applier.crashtest.explorer import Exploration, Trial, explore, reproduce
from applier.crashtest.journal import Journal

__all__ = [
    "CannotStart",
    "Exploration",
    "Journal",
    "Judgement",
    "Kind",
    "RecoveryMistake",
    "State",
    "System",
    "Trial",
    "Verdict",
    "explore",
    "judge",
    "reproduce",
]
