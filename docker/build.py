#!/usr/bin/env python3
"""Builds images with nothing pulled: `python docker/build.py 9.7 5.7 5.6 mariadb binlag`. Needs a
Docker engine and its client.

A server's image is the server from the cache folder of docker/servers (brought when it is not
there) upon busybox; binlag's is this source tree upon a small Debian that mmdebstrap makes. With a
registry at hand neither is needed: the official images do, and docker/binlag.Dockerfile builds by
itself.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

from servers import debian
from servers.bring import bring
from servers.debian import BringError, PrivateApt
from servers.installed import Installed, cache_folder
from servers.locks import locked
from servers.process import common_options, option_text
from servers.table import IMAGES, NAMES, STABLE, DebianPackages, recipe_of
from servers.template import Template, template_of

HERE = Path(__file__).resolve().parent

OWN_IMAGE = "binlag/binlag:latest"
BASE_IMAGE = "binlag/base:python"
_BASE_PYTHON = "3.11"  # that of STABLE
_BASE_PACKAGES = ("python3", "python3-venv")
_IN_IMAGE = Path("/opt/server")
_DATA_IN_IMAGE = Path("/var/lib/mysql")
_NOT_IN_IMAGE = ("template", "brought.json", "package/server/data")


def docker(*arguments: str, feed: Path | None = None, folder: Path | None = None) -> None:
    """Runs the client; BringError shows the end of what a failure printed. Debian's client has no
    BuildKit: it is told so."""
    has_buildkit = (
        subprocess.run(["docker", "buildx", "version"], capture_output=True, check=False).returncode
        == 0
    )
    environment = {**os.environ, **({} if has_buildkit else {"DOCKER_BUILDKIT": "0"})}
    with (feed or Path(os.devnull)).open("rb") as given:
        done = subprocess.run(
            ["docker", *arguments],
            stdin=given,
            capture_output=True,
            text=True,
            env=environment,
            cwd=folder,
            check=False,
        )
    if done.returncode != 0:
        raise BringError(
            f"docker {arguments[0]} failed:\n"
            + "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        )


def build_server(name: str, into: Path) -> str:
    """The image of a server; returns its name."""
    server = bring(name, into)
    template, image = template_of(server), IMAGES[server.recipe.name][0]
    with tempfile.TemporaryDirectory(prefix="binlag-image-") as folder:
        context = Path(folder) / "context.tar"
        with tarfile.open(context, "w", format=tarfile.GNU_FORMAT) as tar:
            _add_context(tar, server, template, into)
        docker("build", "-t", image, "-", feed=context)
    return image


def _add_context(tar: tarfile.TarFile, server: Installed, template: Template, into: Path) -> None:
    tar.add(HERE / "server.Dockerfile", "Dockerfile")
    tar.add(HERE / "entrypoint.sh", "entrypoint.sh")
    tar.add(busybox(into), "busybox")
    tar.add(server.folder, "server", filter=_unless_left_out)
    tar.add(template.data, "data")
    _add_text(tar, "my.cnf", _options(server))
    _add_text(tar, "accounts.sh", _accounts(server))


def _unless_left_out(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = any(
        member.name == f"server/{name}" or member.name.startswith(f"server/{name}.")
        for name in _NOT_IN_IMAGE
    )
    return None if left_out else member


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    content = text.encode()
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o644
    tar.addfile(member, io.BytesIO(content))


def _options(server: Installed) -> str:
    """The same option file as that of a local server, with the places of the image; the log goes to
    the engine."""
    inside = Installed(server.recipe, _IN_IMAGE)
    options = {
        **common_options(inside, Path("/")),
        "datadir": str(_DATA_IN_IMAGE),
        "bind_address": "*",
        "socket": "/tmp/mysql.sock",
        "pid_file": "/tmp/server.pid",
        "server_id": 1,
        **server.recipe.row_log,
    }
    del options["log_error"]
    return option_text(options)


def _accounts(server: Installed) -> str:
    """The table's statements as shell functions for the entry point; what they are given is not
    looked at by the shell again."""
    loader, program = (
        " ".join(parts).replace(str(server.folder), str(_IN_IMAGE))
        for parts in (server.loader(), server.command())
    )
    accounts = "\n".join(server.recipe.accounts).format(password="${1}")
    everywhere = server.recipe.everywhere.format(user="${1}", password="${2}", what="${3}")
    return (
        f"loader='{loader}'\nserver='{program}'\n"
        f"{_function('accounts', accounts)}{_function('everywhere', everywhere)}"
    )


def _function(name: str, text: str) -> str:
    return f"{name}() {{\ncat <<SQL\n{text}\nSQL\n}}\n"


def busybox(into: Path) -> Path:
    """A shell and the usual small programs as one static binary, from Debian."""
    program = into / "busybox"
    with locked(into / ".lock", shared=True), locked(into / ".busybox.lock"):
        if not program.exists():
            work = into / ".bringing" / "busybox"
            apt = PrivateApt(into / ".bringing" / f"apt-{STABLE}", STABLE)
            packages = apt.download(
                DebianPackages(STABLE, (), alone=("busybox-static",)), work / "packages"
            )
            debian.unpack(packages, work / "root")
            shutil.copy2(work / "root/usr/bin/busybox", program)
            shutil.rmtree(work)
    return program


def build_base() -> str:
    """A small Debian with Python, as an image; returns its name."""
    settings = [f"--aptopt={line}" for line in debian.acquire_settings()]
    with tempfile.TemporaryDirectory(prefix="binlag-image-") as folder:
        tree = Path(folder) / "base.tar"
        forget = [
            '--customize-hook=rm -f "$1"/etc/apt/sources.list "$1"/etc/apt/apt.conf.d/99mmdebstrap'
        ]
        packages = [f"--include={','.join(_BASE_PACKAGES)}", f"--keyring={debian.KEYRING}"]
        debian.run(
            [
                "mmdebstrap",
                "--quiet",
                "--variant=apt",
                *packages,
                *settings,
                *forget,
                STABLE,
                tree,
                debian.mirror(),
            ]
        )
        docker("import", str(tree), BASE_IMAGE)
    return BASE_IMAGE


def build_binlag(base: str | None) -> str:
    """binlag's own image from this source tree, with wheels that are fetched here: the build itself
    needs no network."""
    with tempfile.TemporaryDirectory(prefix="binlag-image-") as folder:
        context = Path(folder)
        source = HERE.parent
        for name in ("applier", "checkpoints", "lookup", "demo", "docker"):
            shutil.copytree(
                source / name, context / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in ("pyproject.toml", "README.md"):
            shutil.copy2(source / name, context / name)
        _fetch_wheels(source / "pyproject.toml", context / "docker" / "wheels")
        options = "PIP_OPTIONS=--no-index --find-links docker/wheels"
        base_argument = f"BASE={base or build_base()}"
        docker(
            "build",
            "-f",
            "docker/binlag.Dockerfile",
            "-t",
            OWN_IMAGE,
            "--build-arg",
            base_argument,
            "--build-arg",
            options,
            ".",
            folder=context,
        )
    return OWN_IMAGE


def _fetch_wheels(pyproject: Path, into: Path) -> None:
    project = tomllib.loads(pyproject.read_text())
    wanted = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["mysql"],
        *project["build-system"]["requires"],
    ]
    debian.run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--only-binary=:all:",
            "--python-version",
            _BASE_PYTHON,
            "-d",
            into,
            *wanted,
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0 when every image was built."""
    parser = argparse.ArgumentParser(
        prog="build.py", description="Build images with nothing pulled from an image registry."
    )
    parser.add_argument("images", nargs="+", metavar="IMAGE", help=f"{', '.join(NAMES)}, binlag")
    parser.add_argument(
        "--into",
        type=Path,
        default=cache_folder(),
        metavar="DIR",
        help="the servers' cache folder (default: %(default)s)",
    )
    parser.add_argument(
        "--base",
        metavar="IMAGE",
        help=f"an image with Python {_BASE_PYTHON} for binlag's own, instead of one made here",
    )
    given = parser.parse_args(arguments)
    into = given.into.expanduser().absolute()
    for name in given.images:
        began = time.monotonic()
        try:
            image = (
                build_binlag(given.base)
                if name == "binlag"
                else build_server(recipe_of(name).name, into)
            )
        except ValueError as error:
            parser.error(str(error))
        except (BringError, OSError) as error:
            sys.stderr.write(f"{name}: not built: {error}\n")
            return 1
        sys.stdout.write(f"{name:8} built {image} in {time.monotonic() - began:.0f} s\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
