"""`python -m tests.replica.kills check --count N --seed S`: kills, and how many agree by
configuration."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pickle
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docker"))

from pymysql.err import MySQLError
from servers.database import ServerError
from servers.installed import installed

from applier.replica.source import BinlogFiles
from tests.replica.kills.agreement import Agreement, compare
from tests.replica.kills.pair import KillPair, Stopped
from tests.replica.kills.setups import MARIADB, OLD, Kill, Setup, drawn
from tests.servers.fixtures import ServerFactory

VERSIONS = ("5.7", "9.7", "5.6", MARIADB)
GIVEN_UP = "not comparable"


def main() -> int:
    """0: all agree. 1: one does not, or a server is missing."""
    given = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    versions = tuple(given.versions.split(","))
    missing = [version for version in versions if not installed(version).there]
    if missing:
        print(
            f"not brought: {', '.join(missing)}; python docker/servers/bring.py "
            f"{' '.join(missing)}",
            file=sys.stderr,
        )
        return 1
    tally: dict[str, Counter[str]] = {}
    wrong = 0
    for setup, kill, agreement, problem in kills(
        given.seed, given.count, versions, given.keep, given.jobs
    ):
        outcome = GIVEN_UP if agreement is None else "agree" if agreement else "differ"
        wrong += outcome == "differ"
        tally.setdefault(setup.label, Counter())[outcome] += 1
        line = {
            "outcome": outcome,
            "setup": asdict(setup),
            "kill": asdict(kill),
            "problem": problem,
        }
        if agreement is not None:
            line["differences"] = agreement.differences
        if given.log is not None:
            with given.log.open("a") as file:
                file.write(json.dumps(line, default=repr) + "\n")
        print(
            f"{outcome:<15} {setup.label:<40} {', '.join(kill.loads)}; {kill.damage or ''}",
            flush=True,
        )
        if outcome != "agree":
            print(f"    {json.dumps(line, default=repr)[:1500]}", flush=True)
    print("\n".join(table(tally)))
    return int(wrong > 0)


def kills(
    seed: int, count: int, versions: tuple[str, ...], keep: Path | None, jobs: int = 1
) -> Iterator[tuple[Setup, Kill, Agreement | None, str]]:
    """Each kill and what came of it, `jobs` pairs of servers at a time.

    None where the servers failed or the kill left half a DDL statement (5.6, 5.7), with the reason.
    The pool's processes end with this one, and their servers with them.
    """
    tasks = (
        (setup, wanted, f"{seed} {setup}", keep) for setup, wanted in drawn(seed, count, versions)
    )
    with multiprocessing.Pool(jobs, initializer=_watch_parent) as pool:
        for found in pool.imap_unordered(_of_task, tasks):
            yield from found


def _watch_parent() -> None:
    """A process of the pool ends with the one that started it, even by kill -9. Its servers end as
    with a signal to `main`."""
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _of_task(
    task: tuple[Setup, list[Kill], str, Path | None],
) -> list[tuple[Setup, Kill, Agreement | None, str]]:
    return of_setup(*task)


def of_setup(
    setup: Setup, wanted: list[Kill], seed: str, keep: Path | None
) -> list[tuple[Setup, Kill, Agreement | None, str]]:
    """The kills of one configuration, with a pair of servers of their own, and another one behind a
    kill that they did not survive.

    A pair that cannot be cleared for the next kill has survived the last one: the next has a new
    pair.
    """
    rnd = random.Random(seed)
    found: list[tuple[Setup, Kill, Agreement | None, str]] = []
    while len(found) < len(wanted):  # the pair that a kill was lost with is not asked again
        factory, before, is_clear = ServerFactory(), len(found), False
        try:
            with KillPair(factory, setup) as pair:
                for kill in wanted[before:]:
                    is_clear = False
                    pair.begin(kill.sessions)
                    is_clear = True
                    found.append((setup, kill, *one(pair, kill, rnd, keep)))
        except (ServerError, AssertionError, TimeoutError, MySQLError) as error:
            if len(found) > before and not is_clear:
                continue
            found.append(
                (setup, wanted[len(found)], None, f"{type(error).__name__}: {error}"[:500])
            )
        finally:
            factory.close()
    return found


def one(
    pair: KillPair, kill: Kill, rnd: random.Random, keep: Path | None
) -> tuple[Agreement | None, str]:
    """One kill of a running pair that is cleared."""
    problems = pair.kill(kill, rnd)
    left = pair.left()
    pair.replica.start()
    version = str(pair.replica.query("SELECT @@version")[0][0])
    start = pair.at_start()
    real = pair.go_on()
    if wrote_itself(pair, real):
        return (
            None,
            (
                "the recovery of a DDL statement wrote a transaction of the replica's own, "
                "which current_pos asks for"
            ),
        )
    if left_half_a_statement(pair, real):
        return (
            None,
            (
                "the index of an ALTER TABLE that was killed is in InnoDB's dictionary alone: "
                f"{real.message}"
            ),
        )
    if not real.is_over:
        return None, f"{real.message}: {real.status['Slave_SQL_Running_State']}"
    uuid = "" if pair.version == MARIADB else str(pair.source.query("SELECT @@server_uuid")[0][0])
    source = BinlogFiles(pair.source_files(), uuid=uuid, server_id=1)
    agreement = compare(left, pair.setup, source, version, start, real)
    if keep is not None and not agreement:
        keep.mkdir(parents=True, exist_ok=True)
        arguments = left, pair.setup, source, version, start, real
        (keep / f"{time.time_ns()}.pickle").write_bytes(
            pickle.dumps((arguments, kill, agreement.differences))
        )
    return agreement, "; ".join(problems[:2])


def wrote_itself(pair: KillPair, real: Stopped) -> bool:
    """Whether the source is asked for a GTID of the replica's own: only the current_pos of a
    replica to which nobody writes is emulated."""
    if pair.version != MARIADB or real.number != 1236:
        return False
    own_id = pair.replica.query("SELECT @@server_id")[0][0]
    return re.search(rf"start from GTID \d+-{own_id}-", real.message) is not None


def left_half_a_statement(pair: KillPair, real: Stopped) -> bool:
    """ER_WRONG_NAME_FOR_INDEX: InnoDB has an index that the table's definition has not
    (innobase_check_index_keys)."""
    return pair.version in OLD and real.number == 1280


def table(tally: dict[str, Counter[str]]) -> Iterator[str]:
    """Agreement by configuration, and by version."""
    versions: dict[str, Counter[str]] = {}
    yield ""
    for label, counts in sorted(tally.items()):
        versions.setdefault(label.partition(" ")[0], Counter()).update(counts)
        yield f"{label:<44} {_share(counts)}"
    yield ""
    for version, counts in sorted(versions.items()):
        yield f"{version:<44} {_share(counts)}"


def _share(counts: Counter[str]) -> str:
    compared = counts["agree"] + counts["differ"]
    rest = f", {counts[GIVEN_UP]} {GIVEN_UP}" if counts[GIVEN_UP] else ""
    return f"{counts['agree']} of {compared} agree{rest}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.replica.kills", description=__doc__)
    parser.add_argument("command", choices=["check"])
    parser.add_argument("--count", type=int, default=30, help="kills")
    parser.add_argument(
        "--seed",
        type=int,
        required=True,
        help="what is drawn; the moments of the kills are the machine's",
    )
    parser.add_argument("--versions", default=",".join(VERSIONS), help="of the servers, in turn")
    parser.add_argument(
        "--jobs", type=int, default=1, help="pairs of servers that run at the same time"
    )
    parser.add_argument("--log", type=Path, help="a line of JSON for each kill goes here")
    parser.add_argument(
        "--keep", type=Path, help="a folder for what is left of kills that do not agree"
    )
    return parser


def again(path: Path) -> dict[str, Any]:
    """What differs of a kill that was kept."""
    arguments, _kill, _before = pickle.loads(path.read_bytes())  # our own file
    return compare(*arguments).differences


if __name__ == "__main__":
    sys.exit(main())
