"""Where the real captures are, and how to read what the servers said about them.

BINLAG_CAPTURES names another folder that holds open/ (and lookup/); without it the committed subset
is used.
"""

from __future__ import annotations

import lzma
import os
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

CAPTURES = Path(os.environ.get("BINLAG_CAPTURES") or Path(__file__).parent / "captures")
_UNESCAPED = {"n": "\n", "t": "\t", "\\": "\\", "0": "\0"}


@dataclass(frozen=True)
class ShownEvent:
    """One line of SHOW BINLOG EVENTS or SHOW RELAYLOG EVENTS."""

    position: int
    type: str
    server_id: int
    end_log_pos: int
    info: str


def captures() -> list[Path]:
    """The captures of binary logs."""
    return sorted(folder.parent for folder in (CAPTURES / "open").glob("*/meta.json"))


def logs(capture: Path) -> list[Path]:
    """The binary logs of one capture, in order."""
    return sorted(path for path in capture.iterdir() if path.suffix[1:].isdigit())


def shown_files() -> list[Path]:
    """Every log file, relay logs included, for which there is a listing of the server."""
    binary = [log for capture in captures() for log in logs(capture)]
    relay = [
        Path(str(path).removesuffix(".events.tsv"))
        for path in (CAPTURES / "open").glob("*/relay_*/*.events.tsv")
    ]
    return binary + sorted(relay)


def shown_events(log: Path) -> list[ShownEvent]:
    """What the server said about a log file."""
    plain, packed = Path(f"{log}.events.tsv"), Path(f"{log}.events.tsv.xz")
    raw = plain.read_bytes() if plain.exists() else lzma.decompress(packed.read_bytes())
    events = []
    for line in raw.decode("utf-8", "surrogateescape").split("\n")[1:]:
        if line:
            _, position, name, server_id, end_log_pos, info = line.split("\t", 5)
            events.append(
                ShownEvent(int(position), name, int(server_id), int(end_log_pos), unescape(info))
            )
    return events


def as_9_7_shows(dumped: bytes) -> bytes:
    """A dump with the digits that MySQL 8.0+ leaves out of a DOUBLE: a result has 22 characters for
    one."""
    head, *rows = dumped.decode("utf-8", "surrogateescape").split("\n")[:-1]
    doubles = [at for at, column in enumerate(head.split("\t")) if column.endswith(":double")]
    cut = []
    for row in rows:
        cells = row.split("\t")
        for at in doubles:
            cells[at] = _in_22_characters(cells[at])
        cut.append("\t".join(cells))
    cut.sort(key=lambda line: line.encode("utf-8", "surrogateescape"))
    return "".join(f"{line}\n" for line in (head, *cut)).encode("utf-8", "surrogateescape")


def _in_22_characters(text: str) -> str:
    room = 22 - text.startswith("-")
    if len(text.removeprefix("-")) <= room:
        return text
    number = Decimal(text)
    exponent = f"e{number.adjusted()}"
    digits = "".join(map(str, number.normalize().as_tuple().digits))
    if len(digits) + 1 + len(exponent) > room:
        shorter = f"{abs(float(text)):.{room - len(exponent) - 2}e}"
        digits, exponent = (
            shorter.partition("e")[0].replace(".", "").rstrip("0"),
            f"e{int(shorter.partition('e')[2])}",
        )
    return f"{'-' if text.startswith('-') else ''}{digits[0]}.{digits[1:]}{exponent}"


def unescape(text: str) -> str:
    """Undoes the escaping of the mysql client's batch output."""
    parts = text.split("\\")
    out = [parts[0]]
    rest = iter(parts[1:])
    for part in rest:
        if part:
            out.append(_UNESCAPED.get(part[0], "\\" + part[0]) + part[1:])
        else:
            out.append("\\" + next(rest, ""))
    return "".join(out)
