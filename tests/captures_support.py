"""Where the real captures are, and how to read what the servers said about them.

BINLAG_CAPTURES names another folder that holds open/ (and lookup/); without it the committed subset is used.
"""

from __future__ import annotations

import lzma
import os
from dataclasses import dataclass
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
    relay = [Path(str(path).removesuffix(".events.tsv")) for path in (CAPTURES / "open").glob("*/relay_*/*.events.tsv")]
    return binary + sorted(relay)


def shown_events(log: Path) -> list[ShownEvent]:
    """What the server said about a log file."""
    plain, packed = Path(f"{log}.events.tsv"), Path(f"{log}.events.tsv.xz")
    raw = plain.read_bytes() if plain.exists() else lzma.decompress(packed.read_bytes())
    events = []
    for line in raw.decode("utf-8", "surrogateescape").split("\n")[1:]:
        if line:
            _, position, name, server_id, end_log_pos, info = line.split("\t", 5)
            events.append(ShownEvent(int(position), name, int(server_id), int(end_log_pos), unescape(info)))
    return events


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
