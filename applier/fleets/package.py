"""What Spark's executors need for a fleet, as one archive: binlag and the packages that it reads
and counts with.

    lib/         packages, as they are installed here
    bin/python   the executor's own Python of the version of this one, with lib/ in its path

Spark unpacks it beside each executor (`spark.archives`). Executors need nothing but that Python on
the same kind of machine; pyspark comes with Spark. A tool such as venv-pack would not do: it asks
for the same Python at the same path.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from applier.error_codes import Code
from applier.errors import UsageError, cannot_write
from applier.whole_file import whole_file

OWN = ("applier", "checkpoints", "lookup")
EXTRA = "arrow"
BESIDES = ("pandas",)
"""What Spark itself asks of an executor's Python."""
LEFT_OUT = frozenset({"tests", "__pycache__"})
FAST = 1
"""Of gzip's levels: the archive is unpacked once an executor, and most of it are libraries that
pack badly."""
LAUNCHER = """#!/bin/sh
# The executor's own Python {version}, with the packages of this archive.
here=$(cd "$(dirname "$0")/.." && pwd)
for python in "$BINLAG_PYTHON" python{version} python3 python; do
    [ -n "$python" ] || continue
    found=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
    [ "$found" = {version} ] || continue
    PYTHONPATH="$here/lib${{PYTHONPATH:+:$PYTHONPATH}}" exec "$python" "$@"
done
echo "binlag: this package is for Python {version}, and this machine has none in its path;" \\
    "set BINLAG_PYTHON, or pack it with another" >&2
exit 1
"""


def write_package(output: str | os.PathLike[str], more: Iterable[str] = ()) -> list[str]:
    """Writes the archive; the names of the packages in it. `more`: packages besides, for a store
    that fsspec knows.

    Raises UsageError for one that is not installed here, InputError when it cannot be written.
    """
    names = packages(more)
    try:
        with (
            whole_file(output) as partial,
            tarfile.open(partial, "w:gz", compresslevel=FAST) as archive,
        ):
            _add_launcher(archive)
            for source, place in _own_files():
                archive.add(source, f"lib/{place}")
            for name in names:
                for source, place in _files_of(name):
                    archive.add(source, f"lib/{place}")
    except OSError as error:
        raise cannot_write(error, output, "the package") from None
    return ["binlag", *names]


def packages(more: Iterable[str] = ()) -> list[str]:
    """The packages that binlag needs, those that they need, and so on."""
    roots = [name for name, extra in _requirements("binlag") if extra in (None, EXTRA)]
    wanted, found = [*roots, *BESIDES], dict[str, None]()
    for name in more:
        if not _is_installed(name):
            raise UsageError(
                f"--with: no package {name!r} is installed here",
                code=Code.NO_LIBRARY,
                hint=f"pip install {name or 'NAME'}",
            )
        wanted.append(name)
    while wanted:
        name = wanted.pop(0)
        if name not in found and _is_installed(name):
            found[name] = None
            wanted += [other for other, extra in _requirements(name) if extra is None]
    return sorted(found)


def _requirements(name: str) -> Iterator[tuple[str, str | None]]:
    """(Package, the extra that asks for it)."""
    for text in metadata.requires(name) or []:
        head, _, marker = text.partition(";")
        match = re.match(r"[A-Za-z0-9._-]+", head.strip())
        extra = re.search(r"""extra\s*==\s*["']([^"']+)""", marker)
        if match is not None:
            yield re.sub(r"[-_.]+", "-", match[0]).lower(), None if extra is None else extra[1]


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):  # an empty name
        return False
    return True


def _own_files() -> Iterator[tuple[Path, str]]:
    for name in OWN:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not LEFT_OUT & set(path.parts[len(folder.parts) :]):
                yield path, f"{name}/{path.relative_to(folder).as_posix()}"


def _files_of(name: str) -> Iterator[tuple[Path, str]]:
    """Its modules and libraries; no scripts, and no tests of its own."""
    distribution = metadata.distribution(name)
    for file in distribution.files or []:
        path = Path(str(distribution.locate_file(file)))
        if ".." not in file.parts and not LEFT_OUT & set(file.parts) and path.is_file():
            yield path, file.as_posix()


def _add_launcher(archive: tarfile.TarFile) -> None:
    content = LAUNCHER.format(version=f"{sys.version_info[0]}.{sys.version_info[1]}").encode()
    about = tarfile.TarInfo("bin/python")
    about.size, about.mode = len(content), 0o755
    archive.addfile(about, io.BytesIO(content))
