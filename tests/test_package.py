"""The distribution: a wheel and an sdist are built, hold what is needed, and the wheel works in an
environment without the source tree."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from applier import __version__
from tests.docs.session import ROOT, environment, scratch_copy

pytestmark = pytest.mark.skipif(
    os.environ.get("BINLAG_ALL_CASES") != "1",
    reason="half a minute, and packages are fetched; BINLAG_ALL_CASES=1 runs it",
)
PACKAGES = ("applier", "checkpoints", "lookup")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("distribution")
    source = scratch_copy(folder)
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(source)],
        check=True,
        capture_output=True,
    )
    return folder / "dist"


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of a new virtual environment that has the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("environment")
    [wheel] = built.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "-q",
    ]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(wheel)], check=True)
    return folder / "bin"


def test_the_wheel_holds_every_file_of_the_packages(built: Path) -> None:
    """Python, the mark of a typed package, and data such as calibrations; no tests, no captures."""
    [wheel] = built.glob("*.whl")
    assert wheel.name == f"binlag-{__version__}-py3-none-any.whl"
    held = {
        name
        for name in zipfile.ZipFile(wheel).namelist()
        if not name.startswith(f"binlag-{__version__}.dist-info/")
    }
    # the checkout may be another user's
    ls_files = ["git", "-c", "safe.directory=*", "ls-files", "-z", *PACKAGES]
    listed = subprocess.run(ls_files, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {name for name in listed.split("\0") if name} <= held
    assert {name.partition("/")[0] for name in held} == set(PACKAGES)
    assert "applier/py.typed" in held
    assert any(
        name.startswith("applier/forecast/calibrations/") and name.endswith(".json")
        for name in held
    )


def test_the_sdist_can_be_tested(built: Path) -> None:
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "Makefile",
        "constraints.txt",
        "tests/test_package.py",
        "demo/binlog.000001",
    } <= names
    assert not any("/.venv/" in f"/{name}/" or "__pycache__" in name for name in names)


def test_the_installed_command(installed: Path, tmp_path: Path) -> None:
    """From a folder that has nothing of the source: the command, the module, and the library."""

    def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
        variables = environment(tmp_path / "home", installed)
        return subprocess.run(
            [str(part) for part in command],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )

    schema, log = tmp_path / "before.sql", tmp_path / "binlog.000001"
    for path in (schema, log):
        path.write_bytes((ROOT / "demo" / path.name).read_bytes())
    assert run("binlag", "--version").stdout == f"binlag, version {__version__}\n"
    assert run("python", "-m", "applier", "--version").stdout == f"binlag, version {__version__}\n"
    explained = run("binlag", "explain", schema)
    assert (explained.returncode, explained.stderr) == (0, "")
    assert explained.stdout == run("python", "-m", "applier", "explain", schema).stdout != ""
    assert run("binlag", "replay", log, "--schema", schema).returncode == 0
    demo = run("binlag", "demo", "--dir", "tried")
    assert (demo.returncode, demo.stderr) == (0, "")
    assert (tmp_path / "tried" / "binlog.000001").read_bytes() == log.read_bytes()
    [command] = [
        line.split() for line in demo.stdout.splitlines() if line.startswith("  binlag replay")
    ]
    assert run(*command).returncode == 0
    forecast = run("binlag", "forecast", log, "--schema", schema, "--json")
    assert (forecast.returncode, forecast.stderr) == (0, ""), "the calibrations are found"
    where = run(
        "python", "-c", "import applier, lookup, checkpoints; print(applier.__file__)"
    ).stdout
    assert where.startswith(str(installed.parent.resolve()))
    needs = run("binlag", "status", tmp_path, "--openmetrics", tmp_path / "a.prom")
    assert needs.returncode == 2


def test_a_program_is_checked_against_the_installed_types(installed: Path, tmp_path: Path) -> None:
    """py.typed: a type checker reads the package's own types instead of taking everything for
    Any."""
    program = tmp_path / "program.py"
    program.write_text(
        "import applier\n\nreveal_type(applier.load_schema('x.sql'))\n"
        "number: int = applier.replay([]).transactions\n"
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        str(installed / "python"),
        "--cache-dir",
        str(tmp_path),
        program,
    ]
    done = subprocess.run(
        [str(part) for part in command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert 'Revealed type is "applier.tables.catalog.Tables"' in done.stdout
    assert done.returncode == 0, done.stdout
