"""A server as it lies in the cache folder: where its parts are and how its programs are run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from servers.table import RECIPES, Recipe, recipe_of

_PROGRAM_FOLDERS = ("usr/sbin", "usr/bin")


def cache_folder() -> Path:
    """Where servers are kept: $BINLAG_SERVERS, or binlag/servers in the user's cache folder."""
    if chosen := os.environ.get("BINLAG_SERVERS"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "binlag" / "servers"


@dataclass(frozen=True)
class Installed:
    """One server that was brought into `folder`."""

    recipe: Recipe
    folder: Path

    @property
    def stamp(self) -> Path:
        """Written last of all when a server was brought."""
        return self.folder / "brought.json"

    @cached_property
    def record(self) -> dict[str, Any]:
        """What `bring` wrote down; empty when the server is not there, or was brought by another
        recipe."""
        try:
            record = json.loads(self.stamp.read_text())
        except FileNotFoundError:
            return {}
        return (
            record
            if isinstance(record, dict) and record.get("fingerprint") == self.recipe.fingerprint
            else {}
        )

    @property
    def there(self) -> bool:
        """Whether the server can be started."""
        return bool(self.record)

    @property
    def version(self) -> str:
        """What the server's --version says, such as 9.7.0."""
        return str(self.record["version"])

    @property
    def root(self) -> Path:
        """The unpacked Debian tree."""
        return self.folder / "root"

    @property
    def program(self) -> Path:
        """The server's binary."""
        return self.folder / self.recipe.program

    @property
    def share(self) -> Path:
        """Messages, character sets and the scripts of a new data directory."""
        return self.folder / self.recipe.share

    def loader(self) -> list[str]:
        """The dynamic loader that was brought with the server, up to the program's own name.

        It does not read LD_LIBRARY_PATH of a caller: the libraries named here come first, and all
        that is needed is among them.
        """
        for loader in self.root.glob("usr/lib/*-linux-gnu/ld-linux-*.so.*"):
            return [
                str(loader),
                "--library-path",
                f"{loader.parent}:{self.root}/usr/lib/mysql/private",
            ]
        raise FileNotFoundError(f"{self.root} holds no dynamic loader")

    def command(self, name: str = "") -> list[str]:
        """How a program is started: the server itself, or one that came with it such as
        `mysqlbinlog`; FileNotFoundError if none did."""
        if not name:
            return [*self.loader(), str(self.program)]
        for folder in _PROGRAM_FOLDERS:
            program = self.root / folder / name
            if program.exists():
                return [*self.loader(), str(program)]
        raise FileNotFoundError(
            f"{self.recipe.product} {self.recipe.name} was brought without {name}"
        )


def installed(name: str, folder: Path | None = None) -> Installed:
    """The server of that name in the cache folder, there or not."""
    recipe = recipe_of(name)
    return Installed(recipe, (folder or cache_folder()) / recipe.name)


def all_installed(folder: Path | None = None) -> Iterator[Installed]:
    """Every server of the table, there or not."""
    for recipe in RECIPES:
        yield installed(recipe.name, folder)
