"""Makes the logs of the gallery of bugs (examples/gallery/NAME.binlog) by running NAME.sql on a
real MySQL 5.7.

    python scripts/make_gallery.py [NAME…]

A line of NAME.sql is a statement. What stands above a line `-- log` is done before the log begins;
without such a line the log holds everything. The server is that of docker/servers, started for this
alone.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "gallery"
OPTIONS = {"binlog_row_event_max_size": 1024, "character_set_server": "utf8mb4"}
"""Small rows events, so that a statement of a hundred rows has several."""


def statements(text: str) -> tuple[list[str], list[str]]:
    """What is done before the log begins, and what is in the log."""
    before, mark, after = text.partition("-- log\n")
    parts = [
        [line for line in part.splitlines() if line and not line.startswith("--")]
        for part in (before, after)
    ]
    return (parts[0], parts[1]) if mark else ([], parts[0])


def main() -> None:
    sys.path.insert(0, str(ROOT / "docker"))
    from servers.server import Server

    names = sys.argv[1:] or sorted(
        path.stem for path in FOLDER.glob("*.sql") if not path.stem.endswith(".replica")
    )
    with Server("5.7", options=OPTIONS, gtids=True) as server:
        for name in names:
            before, logged = statements((FOLDER / f"{name}.sql").read_text())
            with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
                for statement in before:
                    cursor.execute(statement)
                cursor.execute("RESET MASTER")
                for statement in ([f"USE {'gallery'}"] if before else []) + logged:
                    cursor.execute(statement)
                cursor.execute("FLUSH BINARY LOGS")
                shutil.copyfile(server.binlog_files()[0], FOLDER / f"{name}.binlog")
                cursor.execute("DROP DATABASE gallery")


if __name__ == "__main__":
    main()
