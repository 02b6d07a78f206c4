"""`python -m tests.peers check`: what CI runs, some scripts each day. `all`: every script. `into`:
some scripts each day, replayed into a second server.

`exceptions FILE`: the table anew from what `all` or `check` wrote.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docker"))

from servers.installed import installed
from servers.suites import SUITES

from applier.mysql.into_options import MODES
from tests.peers.choice import SCRIPTS, of_the_day
from tests.peers.contents import server_tables
from tests.peers.exceptions import (
    EQUAL,
    GRAVE,
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
from tests.peers.suites import (
    FEWEST_STATEMENTS,
    FORMATS,
    SERVERS,
    script_names,
    statements_of,
    suite_for,
)
from tests.peers.target import NOT_COMPARABLE, into_outcome


def main() -> int:
    """0: as the table says. 1: not so, or a suite or server is missing. 2: bad usage.

    `check` fails for what is grave twice in a row: which script a server's time limit cuts is left
    to chance.
    """
    given = _parser().parse_args()
    if given.command == "exceptions":
        before = read_exceptions()
        after = updated(read_observed(given.results), before)
        write_exceptions(after)
        print(
            f"{len(before)} exceptions before, {len(after)} now, "
            f"{len(after.keys() - before.keys())} of them new"
        )
        return 0
    missing = [f"the suite {suite.name}" for suite in SUITES if not suite.there]
    missing += [f"the server {name}" for name in SERVERS if not installed(name).there]
    if missing:
        print(
            f"not brought: {', '.join(missing)}; python docker/servers/bring.py "
            f"{' '.join(SERVERS)} peers",
            file=sys.stderr,
        )
        return 1
    cases = _cases(given)
    begun = time.monotonic()
    observed = observe(cases, given.jobs, given.apply if given.command == "into" else None)
    seconds = time.monotonic() - begun
    if given.results is not None:
        write_observed(given.results, observed)
    if given.command == "into":
        return _told_of_targets(observed, seconds)
    wrong = verdicts(observed, read_exceptions())
    print("\n".join(wrong))
    equal = sum(one.outcome == EQUAL for one in observed)
    told = f"{equal} equal, {len(observed) - equal} not; {len(wrong)} not as the table says"
    print(f"{len(cases)} cases in {seconds:.0f} s, {len(observed)} with SQL: {told}")
    if given.command == "all":
        return 1 if wrong else 0
    again = grave(observed, read_exceptions(), _known())
    failed = (
        grave(observe([one.case for one in again], 1), read_exceptions(), _known()) if again else []
    )
    for one in failed:
        print(f"failed twice: {one.case}: {one.outcome}: {one.cause}", file=sys.stderr)
    return 1 if failed else 0


def _told_of_targets(observed: list[Observed], seconds: float) -> int:
    for one in observed:
        if one.outcome not in (EQUAL, NOT_COMPARABLE):
            print(f"{one.case}: {one.outcome}: {one.cause}")
    counts = Counter(one.outcome for one in observed)
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    print(f"{len(observed)} scripts with SQL in {seconds:.0f} s: {told}")
    return 1 if any(one.outcome in GRAVE for one in observed) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("check", "all", "into"):
        command = commands.add_parser(name)
        command.add_argument(
            "--jobs", type=int, default=2, help="servers at the same time (default: %(default)s)"
        )
        command.add_argument("--server", choices=SERVERS)
        command.add_argument("--format", choices=FORMATS)
        command.add_argument(
            "--match", default="", metavar="REGEX", help="only scripts whose path matches"
        )
        command.add_argument(
            "--results", type=Path, metavar="FILE", help="write what came of each case"
        )
        if name == "into":
            command.add_argument(
                "--apply", choices=MODES, default="native", help="(default: %(default)s)"
            )
        if name != "all":
            command.add_argument(
                "--scripts",
                type=int,
                default=SCRIPTS,
                metavar="N",
                help="how many (default: %(default)s)",
            )
            today = datetime.now(UTC).date()
            command.add_argument(
                "--date",
                type=date.fromisoformat,
                default=today,
                help="those of which day (default: %(default)s)",
            )
    commands.add_parser("exceptions").add_argument("results", type=Path)
    return parser


def _known() -> list[Case]:
    """Scripts that ever showed something, and those that still do."""
    return [*read_cases(), *read_exceptions()]


def _cases(given: argparse.Namespace) -> list[Case]:
    """The cases of a command, without duplicates."""

    def wanted(case: Case) -> bool:
        kind = given.server in (None, case.server) and given.format in (None, case.log_format)
        return (
            kind
            and re.search(given.match, case.script) is not None
            and (suite_for(case.server).scripts / case.script).exists()
        )

    every = [
        Case(server, log_format, name)
        for server in SERVERS
        for log_format in FORMATS
        for name in script_names(server)
    ]
    found = list(filter(wanted, every))
    if given.command == "all":
        return found
    known = list(filter(wanted, _known())) if given.command == "check" else []
    return of_the_day(known, found, given.date, given.scripts)


def observe(cases: Iterable[Case], jobs: int, apply: str | None = None) -> list[Observed]:
    """Runs the cases, those of one server and format one after the other on one server, `jobs` of
    them at the same time. `apply`: how their logs go into a second server; None: into memory."""
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.server, case.log_format), []).append(case)
    with ProcessPoolExecutor(jobs) as pool:
        longest_first = sorted(groups.values(), key=len, reverse=True)
        return [
            one
            for found in pool.map(partial(_observe_group, apply=apply), longest_first)
            for one in found
        ]


def _observe_group(cases: list[Case], apply: str | None) -> list[Observed]:
    found = []
    formats = [cases[0].log_format, *(["ROW"] if apply else [])]  # of the source, and a target
    servers = [PeerServer(cases[0].server, log_format) for log_format in formats]
    try:
        for case in cases:
            statements = statements_of(case.server, case.script)
            if len(statements) < FEWEST_STATEMENTS:
                continue
            try:
                found.append(Observed(case, *_outcome(servers, statements, apply)))
            except ServerGone:  # the script is one for the server's own developers
                for at, server in enumerate(servers):
                    server.close()
                    servers[at] = PeerServer(case.server, formats[at])
    finally:
        for server in servers:
            server.close()
    return found


def _outcome(
    servers: list[PeerServer], statements: list[str], apply: str | None
) -> tuple[str, str]:
    files = servers[0].carry_out(statements)
    tables = server_tables(servers[0].query)
    if apply is None:
        return replay_outcome(files, tables)
    return into_outcome(servers[1], files, tables, apply)


if __name__ == "__main__":
    sys.exit(main())
