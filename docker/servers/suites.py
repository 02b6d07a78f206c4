"""The servers' own test suites (mtr), fetched like the servers:
`python docker/servers/bring.py peers`.

Only scripts and their data are unpacked, beside the servers in the cache folder: no program, and no
expected result.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from servers.debian import BringError, PrivateApt
from servers.installed import cache_folder
from servers.locks import locked
from servers.table import STABLE, DebianPackages

PEERS = "peers"
"""The word for all suites in the command."""
_UNPACKED = ("*.test", "*.inc", "std_data/*", "*/std_data/*")


@dataclass(frozen=True)
class Suite:
    """One suite: its packages, and where its scripts lie in them."""

    name: str
    debian: DebianPackages
    folder_in_package: str
    into: Path | None = None
    """The cache folder, where it is another one than usual."""

    @property
    def folder(self) -> Path:
        """Where it lies in the cache folder."""
        return (self.into or cache_folder()) / PEERS / self.name

    @property
    def scripts(self) -> Path:
        """The folder that paths of scripts begin in."""
        return self.folder / self.folder_in_package

    @property
    def stamp(self) -> Path:
        """Written last of all; names the packages."""
        return self.folder / "brought.json"

    @property
    def there(self) -> bool:
        """Whether it was brought."""
        return self.stamp.exists()


SUITES = (
    Suite("mysql", DebianPackages("sid", (), alone=("mysql-testsuite",)), "usr/lib/mysql-test"),
    Suite(
        "mariadb",
        DebianPackages(STABLE, (), alone=("mariadb-test", "mariadb-test-data")),
        "usr/share/mysql/mysql-test",
    ),
)


def suite_of(name: str) -> Suite:
    """The suite of that name; StopIteration for none."""
    return next(suite for suite in SUITES if suite.name == name)


def bring_suite(suite: Suite, *, again: bool = False) -> list[str]:
    """Brings a suite unless it is there; returns the packages' names. Raises BringError."""
    into = suite.into or cache_folder()
    with locked(into / ".lock", shared=True), locked(into / f".{PEERS}-{suite.name}.lock"):
        if again or not suite.there:
            work = into / ".bringing" / f"{PEERS}-{suite.name}"
            packages = PrivateApt(
                into / ".bringing" / f"apt-{suite.debian.suite}", suite.debian.suite
            ).download(suite.debian, work)
            shutil.rmtree(suite.folder, ignore_errors=True)
            suite.folder.mkdir(parents=True)
            for package in packages:
                unpack_scripts(package, suite)
            suite.stamp.write_text(json.dumps([package.name for package in packages]) + "\n")
            shutil.rmtree(work)
    found: list[str] = json.loads(suite.stamp.read_text())
    return found


def unpack_scripts(package: Path, suite: Suite) -> None:
    """The scripts and data of one package. Raises BringError."""
    patterns = [f"./{suite.folder_in_package}/{pattern}" for pattern in _UNPACKED]
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE
    ) as archive:
        tar = ["tar", "-x", "--wildcards", "--no-same-owner", "-C", str(suite.folder), *patterns]
        done = subprocess.run(
            tar, stdin=archive.stdout, capture_output=True, text=True, check=False
        )
    missing = [
        line
        for line in done.stderr.splitlines()
        if "Not found in archive" not in line and "previous errors" not in line
    ]
    if archive.returncode != 0 or missing:
        raise BringError(f"{package.name} could not be unpacked: {done.stderr.strip()}")
