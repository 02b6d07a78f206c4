"""Schemas that several sources of a fleet share: each is read once in a run."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from threading import Lock

from applier.fleets.config import FleetSource
from applier.forecast.inventory.facts import TableFacts, facts_of_file
from applier.mysql.client.url import find_password, parse_url
from applier.mysql.contents.live_schema import is_url
from applier.remote import address_of


class SharedSchemas:
    """The tables of the sources' schemas. Dumps of the same content are read once for each server
    version, and kept; others, and those of live servers, are read when they are asked for.

    Several threads may ask.
    """

    def __init__(self, sources: Iterable[FleetSource]) -> None:
        listed = [one for one in sources if not is_url(one.schema)]
        paths = {one.schema: _content(one.schema) for one in listed}
        times = Counter(paths[one.schema] for one in listed)
        self._shared = {path: key for path, key in paths.items() if times[key] > 1}
        self._known: dict[tuple[str, str], Future[dict[str, TableFacts] | None]] = {}
        """None: it cannot be read, and each source says so of its own file."""
        self._lock = Lock()

    def has(self, source: FleetSource) -> bool:
        """Whether another source has the same schema."""
        return source.schema in self._shared

    def facts(self, source: FleetSource, server: str) -> dict[str, TableFacts]:
        """The tables of a source; nobody may change the dict. Raises InputError or UsageError."""
        if not self.has(source):
            return facts_of(source, server)
        key = self._shared[source.schema], server
        with self._lock:
            known = self._known.get(key)
            if known is None:
                mine = self._known[key] = Future()
        if known is not None:
            return known.result() or facts_of(source, server)
        found = None
        try:
            found = facts_of(source, server)
        finally:
            mine.set_result(found)
        return found


def facts_of(source: FleetSource, server: str) -> dict[str, TableFacts]:
    """The tables of a source's dump or live server. Raises InputError or UsageError."""
    if not is_url(source.schema):
        return facts_of_file(source.schema, server=server)
    from applier.forecast.inventory.server_facts import facts_of_server

    endpoint = parse_url(source.schema, f"schema of {source.name}")
    return facts_of_server(endpoint.with_password(find_password(source.password_file)))[0]


def _content(path: str) -> str:
    """Equal for dumps of the same content; of a folder, and of a file on a store, the path."""
    if address_of(path) is None and Path(path).is_file():
        try:
            with Path(path).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return path  # said when it is read
    return path
