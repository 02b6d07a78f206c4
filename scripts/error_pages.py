"""A page for each error, and their index, from the catalogue: python scripts/error_pages.py writes
docs/errors anew.

The pages stand in the repository, so that they can be read there, too;
tests/test_error_catalogue.py says when they are not fresh.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from applier.error_catalogue import GROUPS, Situation, catalogue  # noqa: E402
from applier.error_codes import Code  # noqa: E402

FOLDER = ROOT / "docs" / "errors"
EXIT_CODES = {"MY-": 1, Code.INTERNAL: 70}
"""How a code begins -> exit code, where it is not 2."""
HEAD = """# Errors

Every error is one line on standard error: a code, what is wrong, the file, the position and the
table as far as they are known, and the next step.

```text
binlag: error BL104: the file ends in the middle of a Query event of 81 bytes (file binlog.000001, \
position 1234). Next: …
```

The code of a replication error is the server's number: `error 1032`, whose page is MY-1032. Codes
are stable; the words may get better. With `--verbose`, before or behind the command, more lines
follow: what the error means, the last event that was read, the options, the versions, and for a
mistake in binlag itself the traceback. Neither passwords nor the values of variables are in them.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | the applier stopped with a replication error |
| 2 | bad usage, or something that cannot be read, written or reached |
| 3 | a gate was crossed (forecast, crashtest) |
| 70 | a mistake in binlag |
| 130 | interrupted |
| 141 | the reader of the output closed the pipe, as when it goes to head |
"""


def pages() -> dict[str, str]:
    """File name -> text."""
    known = list(catalogue().values())
    return {"index.md": "".join(_index(known)), **{f"{row.code}.md": _page(row) for row in known}}


def _index(known: list[Situation]) -> Iterator[str]:
    yield HEAD
    for prefix, title in GROUPS.items():
        yield f"\n## {title}\n\n| code | meaning |\n|---|---|\n"
        yield from (
            f"| [{row.code}]({row.code}.md) | {row.title} |\n"
            for row in known
            if row.code.startswith(prefix)
        )


def _page(row: Situation) -> str:
    exit_code = next(
        (number for prefix, number in EXIT_CODES.items() if row.code.startswith(prefix)), 2
    )
    return (
        f"# {row.code}: {row.title}\n\n{row.meaning}\n\n"
        f"**Next:** {row.next_step}\n\n"
        "Where an error knows a step that fits its place better, its line names that one.\n\n"
        f"Exit code: {exit_code}. [All errors](index.md)\n"
    )


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    fresh = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in fresh:
            path.unlink()
    for name, text in fresh.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
