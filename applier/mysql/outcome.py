"""What a replay into a server did, as far as it is committed, and what it is doing."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Protocol

from applier.binlog.header import Event
from applier.errors import BinlagError
from applier.logs import logger

_LOG = logger("replay")
Place = tuple[str, int, int, int]
"""File, position of an event, its number in a compressed transaction, row of the event."""
MOST_PLACES = 200_000


def place_of(event: Event, row: int = 0) -> Place:
    """Where a row of an event is."""
    return event.file, event.position, event.inner_index, row


class Remark(Protocol):
    """Takes a remark on what was passed over; `place` is where in the log, for what is said of one
    row or event."""

    def __call__(self, text: str, place: Place | None = None) -> None: ...


@dataclass(slots=True)
class TargetOutcome:
    """`transactions`, `rows` and `bytes` are of this run, `total_transactions` of the replay.
    `rows` is what the server counted."""

    replay: str
    target: str
    server: str = ""
    mode: str = "native"
    resumed_from: str | None = None
    transactions: int = 0
    total_transactions: int = 0
    commits: int = 0
    rows: int = 0
    bytes: int = 0
    file: str | None = None
    position: int = 0
    gtid: str | None = None
    gtids: str = ""
    seconds: float = 0.0
    dry_run: bool = False
    interrupted: bool = False
    reconnects: int = 0
    """How often lost connections were made again."""
    incomplete_transaction: str | None = None
    notes: dict[str, int] = field(default_factory=dict)
    error: BinlagError | None = None
    _noted: set[tuple[str, Place]] = field(default_factory=set, init=False, repr=False)

    def note(self, text: str, place: Place | None = None) -> None:
        """Counts a remark. One of a place counts once, however often that is carried out: what is
        rolled back is done again."""
        if place is not None:
            if (text, place) in self._noted:
                return
            if len(self._noted) >= MOST_PLACES:
                self._noted.clear()  # what is rolled back is never that long ago
            self._noted.add((text, place))
        file, position = (place[0], place[1]) if place is not None else (None, None)
        _LOG.log(
            logging.DEBUG if text in self.notes else logging.INFO,
            text,
            extra={"file": file, "position": position},
        )
        self.notes[text] = self.notes.get(text, 0) + 1

    def as_dict(self) -> dict[str, Any]:
        """The summary that `--json` prints."""
        names = (
            "replay", "target", "server", "mode", "dry_run", "resumed_from", "transactions",
            "total_transactions", "commits", "rows",
            "bytes", "file", "position", "gtid", "gtids", "seconds", "interrupted", "reconnects",
            "incomplete_transaction", "notes",
        )  # fmt: skip
        content = {name: getattr(self, name) for name in names}
        content["seconds"] = round(self.seconds, 3)
        return {**content, "error": None if self.error is None else self.error.as_dict()}
