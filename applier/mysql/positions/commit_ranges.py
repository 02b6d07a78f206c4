"""What is committed beyond the position: parts of the log, kept on the target, each written in the
transaction that it speaks of.

    binlag.done: replay, number, file, start, end

Only a replay whose commits go without order has any. A later run passes over them, in whatever way
it carries out the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from applier.errors import ReplicationError
from applier.mysql.client.connection import Server
from applier.mysql.positions.checkpoint import DONE_TABLE, NO_SUCH_TABLE, text_literal
from checkpoints.position import Position


@dataclass(frozen=True, slots=True)
class Range:
    """The transactions that begin in [start, end) of a file. `number` is its own among those of the
    replay."""

    file: str
    start: int
    end: int
    number: int = 0


class CommitRanges:
    """The parts of one replay."""

    def __init__(self, replay: str) -> None:
        self._replay = text_literal(replay)
        self._ranges: dict[str, list[Range]] = {}
        """By file: those that were there when it was last read."""
        self._passed: set[int] = set()
        self._last = 0

    def read(self, server: Server) -> None:
        """Takes in what the target says."""
        self._ranges.clear()
        try:
            rows = server.texts(
                f"SELECT `file`, `start`, `end`, `number` FROM {DONE_TABLE} WHERE"
                f" `replay`={self._replay}"
            )
        except ReplicationError as error:
            if error.number not in NO_SUCH_TABLE:
                raise
            return
        for file, start, end, number in rows:
            part = Range(file or "", int(start or 0), int(end or 0), int(number or 0))
            self._ranges.setdefault(part.file, []).append(part)
            self._last = max(self._last, part.number)
        self._passed &= {part.number for parts in self._ranges.values() for part in parts}

    def pass_before(self, position: Position | None, files: Sequence[str]) -> None:
        """Parts that the position is behind of already, as a kill between the two leaves them;
        `files` are in the order of the log."""
        if position is None:
            return
        names = [Path(file).name for file in files]
        before = set(names[: names.index(position.file)] if position.file in names else ())
        for file, parts in self._ranges.items():
            self._passed |= {
                part.number
                for part in parts
                if file in before or (file == position.file and part.end <= position.offset)
            }

    @property
    def is_ahead(self) -> bool:
        """Whether something beyond the position is committed."""
        return any(
            part.number not in self._passed for parts in self._ranges.values() for part in parts
        )

    def covers(self, start: Position) -> bool:
        """Whether the transaction that starts there is done."""
        return any(
            part.start <= start.offset < part.end for part in self._ranges.get(start.file, ())
        )

    def pass_by(self, end: Position) -> None:
        """The position is behind a transaction that ends there, and so behind the parts that end
        with it.

        They may be several: a transaction that was done can be in a later batch once more, without
        its content.
        """
        if self._ranges:
            self._passed |= {
                part.number for part in self._ranges.get(end.file, ()) if part.end == end.offset
            }

    def add(self, file: str, start: int, end: int) -> Range:
        """A part that is about to be committed."""
        self._last += 1
        return Range(file, start, end, self._last)

    def insert(self, part: Range) -> bytes:
        """The statement that writes down that a part is done, to be committed with it."""
        values = f"{self._replay},{part.number},{text_literal(part.file)},{part.start},{part.end}"
        return f"INSERT INTO {DONE_TABLE} VALUES ({values})".encode()

    def delete(self, numbers: Iterable[int]) -> bytes:
        """For parts that the position is behind of, or comes to be in the same transaction."""
        return (
            f"DELETE FROM {DONE_TABLE} WHERE `replay`={self._replay} AND `number` IN"
            f" ({','.join(map(str, numbers))})".encode()
        )

    def end_of_passed(self) -> bytes | None:
        """The statement that drops the parts that the position is behind of; None for none."""
        return self.delete(sorted(self._passed)) if self._passed else None

    def forget_passed(self) -> None:
        """They are dropped."""
        kept = {
            file: [part for part in parts if part.number not in self._passed]
            for file, parts in self._ranges.items()
        }
        self._ranges = {file: parts for file, parts in kept.items() if parts}
        self._passed.clear()
