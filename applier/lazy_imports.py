"""Imports of libraries that not everybody has, and of those that load what hardly anybody needs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

from applier.error_codes import Code
from applier.errors import UsageError


class _LazyFinder:
    """Finds the modules of one package, which are then loaded at their first use."""

    def __init__(self, package: str) -> None:
        self._prefix = f"{package}."

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As importlib asks for it."""
        spec = PathFinder.find_spec(name, path) if name.startswith(self._prefix) else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def lazily(package: str) -> Iterator[None]:
    """Imports of this package inside the block load its modules at their first use."""
    finder = _LazyFinder(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@contextmanager
def needed(what: str, package: str) -> Iterator[None]:
    """Imports of what `package` brings, such as "binlag[arrow]". Raises UsageError, with `what`,
    where it is not installed."""
    try:
        yield
    except ImportError:
        hint = f"pip install {shlex.quote(package)}"
        raise UsageError(what, code=Code.NO_LIBRARY, hint=hint) from None
