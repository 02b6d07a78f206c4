"""`python -m tests.peers check`: what CI runs. `all`: every script. `exceptions FILE`: the table anew from what `all` wrote."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docker"))

from servers.installed import installed
from servers.suites import SUITES

from tests.peers.contents import server_tables
from tests.peers.exceptions import (
    EQUAL,
    Case,
    Observed,
    grave,
    read_cases,
    read_exceptions,
    read_observed,
    updated,
    verdicts,
    write_exceptions,
    write_observed,
)
from tests.peers.replaying import replay_outcome
from tests.peers.session import PeerServer, ServerGone
from tests.peers.suites import FEWEST_STATEMENTS, FORMATS, SERVERS, sample, script_names, statements_of, suite_for


def main() -> int:
    """0: as the table says. 1: not so, or a suite or server is missing. 2: bad usage.

    `check` fails for what is grave twice in a row: which script a server's time limit cuts is left to chance.
    """
    given = _parser().parse_args()
    if given.command == "exceptions":
        before = read_exceptions()
        after = updated(read_observed(given.results), before)
        write_exceptions(after)
        print(f"{len(before)} exceptions before, {len(after)} now, {len(after.keys() - before.keys())} of them new")
        return 0
    missing = [f"the suite {suite.name}" for suite in SUITES if not suite.there]
    missing += [f"the server {name}" for name in SERVERS if not installed(name).there]
    if missing:
        print(f"not brought: {', '.join(missing)}; python docker/servers/bring.py {' '.join(SERVERS)} peers", file=sys.stderr)
        return 1
    cases = _cases(given)
    observed = observe(cases, given.jobs)
    if given.results is not None:
        write_observed(given.results, observed)
    wrong = verdicts(observed, read_exceptions())
    print("\n".join(wrong))
    equal = sum(one.outcome == EQUAL for one in observed)
    print(f"{len(cases)} cases, {len(observed)} with SQL: {equal} equal, {len(observed) - equal} not; {len(wrong)} not as the table says")
    if given.command == "all":
        return 1 if wrong else 0
    again = grave(observed, read_exceptions(), read_cases())
    failed = grave(observe([one.case for one in again], 1), read_exceptions(), read_cases()) if again else []
    for one in failed:
        print(f"failed twice: {one.case}: {one.outcome}: {one.cause}", file=sys.stderr)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("check", "all"):
        command = commands.add_parser(name)
        command.add_argument("--jobs", type=int, default=2, help="servers at the same time (default: %(default)s)")
        command.add_argument("--server", choices=SERVERS)
        command.add_argument("--format", choices=FORMATS)
        command.add_argument("--match", default="", metavar="REGEX", help="only scripts whose path matches")
        command.add_argument("--results", type=Path, metavar="FILE", help="write what came of each case")
        command.add_argument("--sample", type=int, default=100, help="scripts beside those that ever showed something")
        command.add_argument("--seed", default=datetime.now(UTC).strftime("%Y-%m-%d"), help="which sample (default: today, %(default)s)")
    commands.add_parser("exceptions").add_argument("results", type=Path)
    return parser


def _cases(given: argparse.Namespace) -> list[Case]:
    """The cases of a command, without duplicates."""
    kinds = [
        (server, log_format) for server in SERVERS for log_format in FORMATS
        if given.server in (None, server) and given.format in (None, log_format)
    ]  # fmt: skip
    found: dict[Case, None] = {}
    if given.command == "check":
        found = {case: None for case in (*read_cases(), *read_exceptions()) if (case.server, case.log_format) in kinds}
    for server, log_format in kinds:
        names = script_names(server) if given.command == "all" else sample(server, log_format, given.seed, -(-given.sample // len(kinds)))
        found |= {Case(server, log_format, name): None for name in names}
    return [case for case in found if re.search(given.match, case.script) and (suite_for(case.server).scripts / case.script).exists()]


def observe(cases: Iterable[Case], jobs: int) -> list[Observed]:
    """Runs the cases, those of one server and format one after the other on one server, `jobs` of them at the same time."""
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.server, case.log_format), []).append(case)
    with ProcessPoolExecutor(jobs) as pool:
        longest_first = sorted(groups.values(), key=len, reverse=True)
        return [one for found in pool.map(_observe_group, longest_first) for one in found]


def _observe_group(cases: list[Case]) -> list[Observed]:
    found = []
    server = PeerServer(cases[0].server, cases[0].log_format)
    try:
        for case in cases:
            statements = statements_of(case.server, case.script)
            if len(statements) < FEWEST_STATEMENTS:
                continue
            try:
                files = server.carry_out(statements)
                tables = server_tables(server.query)
            except ServerGone:  # the script is one for the server's own developers
                server.close()
                server = PeerServer(case.server, case.log_format)
                continue
            found.append(Observed(case, *replay_outcome(files, tables)))
    finally:
        server.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
