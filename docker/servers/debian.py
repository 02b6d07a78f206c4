"""Debian packages into a private folder: an apt of our own beside the system's, which it neither
reads the state of nor writes to.

Only two things are taken from the system's apt: the mirror that it is set up to use, and how it
gets there (its Acquire:: settings, such as a proxy). Hooks in the system's configuration do not
run. No root is needed. Signatures are checked with Debian's own keyring.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from servers.locks import locked
from servers.table import DebianPackages

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
LISTS_STAY_FRESH_SECONDS = 3600.0

# Only the packages' maintainer scripts call perl, and none of these runs here: 10 MB less to bring.
_PRETENDED = ("perl",)

_MERGED_USR = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}

# Nothing of this is opened by a server.
_UNUSED = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/bug",
    "usr/lib/mysql/plugin/telemetry_client.so",
)


class BringError(Exception):
    """A server could not be brought: what failed and what can be done."""


def run(
    command: Sequence[str | Path],
    *,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Runs a program and returns what it printed; BringError shows the last lines of a failure."""
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        raise BringError(f"{command[0]} is not there; install it first") from None
    if done.returncode != 0:
        last = "\n    ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-8:])
        raise BringError(f"{command[0]} ended with status {done.returncode}:\n    {last}")
    return done.stdout


def mirror() -> str:
    """The Debian mirror of this machine's own apt, or $BINLAG_DEBIAN_MIRROR."""
    if chosen := os.environ.get("BINLAG_DEBIAN_MIRROR"):
        return chosen
    for uri in run(
        ["apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI)"]
    ).splitlines():
        if re.search(r"/debian(\.list)?/?$", uri.strip()):
            return uri.strip()
    raise BringError("this machine's apt knows no Debian mirror; set BINLAG_DEBIAN_MIRROR")


def acquire_settings() -> list[str]:
    """How this machine's apt gets to its mirror: proxies, time limits and the like."""
    return [
        line for line in run(["apt-config", "dump"]).splitlines() if line.startswith("Acquire::")
    ]


@dataclass(frozen=True)
class PrivateApt:
    """An apt for one suite, all of it inside `folder`."""

    folder: Path
    suite: str

    def download(self, wanted: DebianPackages, into: Path) -> list[Path]:
        """The packages as files in `into`; what an interrupted run left there is not fetched
        again."""
        (into / "partial").mkdir(parents=True, exist_ok=True)
        self._refresh(LISTS_STAY_FRESH_SECONDS)
        try:
            self._fetch(wanted, into)
        except BringError:
            # the suite may have moved on since the lists were read: a package of theirs is then
            # gone
            self._refresh(0.0)
            self._fetch(wanted, into)
        return sorted(into.glob("*.deb"))

    def _fetch(self, wanted: DebianPackages, into: Path) -> None:
        # One cache of package data per download, for these may run side by side.
        cache = [f"-oDir::Cache={into}", f"-oDir::Cache::archives={into}"]
        if wanted.packages:
            self._apt(
                *cache,
                "install",
                "-y",
                "--no-install-recommends",
                "--download-only",
                *wanted.packages,
            )
        if wanted.alone:
            self._apt(*cache, "download", *wanted.alone, folder=into)

    def _refresh(self, fresh_seconds: float) -> None:
        with locked(self.folder / "lock"):
            stamp = self.folder / "updated"
            if stamp.exists() and time.time() - stamp.stat().st_mtime < fresh_seconds:
                return
            self._configure()
            # a mirror that does not answer would only be a warning
            self._apt("-oAPT::Update::Error-Mode=any", "update")
            stamp.touch()

    def _configure(self) -> None:
        if not KEYRING.exists():
            raise BringError(
                f"{KEYRING} is not there: install debian-archive-keyring, which Debian's "
                "signatures are checked with"
            )
        (self.folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        architecture = run(["dpkg", "--print-architecture"]).strip()
        (self.folder / "sources.list").write_text(
            f"deb [signed-by={KEYRING}] {mirror()} {self.suite} main\n"
        )
        (self.folder / "status").write_text(
            "".join(_installed(name, architecture) for name in _PRETENDED)
        )
        ours = {
            "Dir::Etc::main": "/dev/null",
            "Dir::Etc::parts": "/dev/null",
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State": self.folder,
            "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder,
            "APT::Architecture": architecture,
            "APT::Architectures": architecture,
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": 3,
            "Debug::NoLocking": 1,
        }
        lines = [*acquire_settings(), *(f'{key} "{value}";' for key, value in ours.items())]
        (self.folder / "apt.conf").write_text("\n".join(lines) + "\n")

    def _apt(self, *arguments: str, folder: Path | None = None) -> None:
        run(
            ["apt-get", "-q", *arguments],
            environment={**os.environ, "APT_CONFIG": str(self.folder / "apt.conf"), "LC_ALL": "C"},
            folder=folder,
        )


def _installed(name: str, architecture: str) -> str:
    return (
        f"Package: {name}\nStatus: install ok installed\nArchitecture: {architecture}\n"
        "Multi-Arch: allowed\nVersion: 999\n"
        f"Maintainer: none <none@localhost>\nDescription: not needed here\n\n"
    )


def unpack(packages: Sequence[Path], root: Path) -> None:
    """The files of the packages as a tree of their own, in today's layout (/lib inside /usr)
    whatever the suite has."""
    for link, target in _MERGED_USR.items():
        (root / target).mkdir(parents=True, exist_ok=True)
        (root / link).symlink_to(target)
    for package in packages:
        _extract(package, root)
    for name in _UNUSED:
        unused = root / name
        if unused.is_dir():
            shutil.rmtree(unused)
        else:
            unused.unlink(missing_ok=True)


def _extract(package: Path, root: Path) -> None:
    # dpkg-deb -x would put a folder in the place of the link /lib -> /usr/lib when a package still
    # has files in /lib.
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE
    ) as archive:
        tar = ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", str(root)]
        done = subprocess.run(
            tar, stdin=archive.stdout, capture_output=True, text=True, check=False
        )
    if archive.returncode != 0 or done.returncode != 0:
        raise BringError(f"{package.name} could not be unpacked: {done.stderr.strip()}")
