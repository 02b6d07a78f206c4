"""The blocks of a page: which commands it shows, which output, which Python. Needs nothing but the
standard library.

    ```console          `$ ` begins a command, `> ` goes on with it, the rest is what it prints
    ```sh, indented     commands alone, one a line (`\\` at the end joins two); an indented block is
                        one when it begins with a known command
    ```python           runs; what it prints stands in the block without language, or indented,
                        right below

In shown output `…` stands for anything within a line, and a line that is only `…` for any lines. An
HTML comment right above a block directs it: `<!-- not run: the reason -->` or
`<!-- server: 9.7 -->` (whose server answers where the block says port 3306; 9.7 when no comment
says).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

COMMANDS = (
    "binlag",
    ".venv/bin/",
    "make",
    "pip",
    "python",
    "python3",
    "export",
    "git",
    "cd",
    "docker",
    "eval",
    "_BINLAG_COMPLETE",
)
"""What an indented block of commands begins with."""
ANYTHING = "…"
_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<marks>`{3,}|~{3,})(?P<language>[\w+-]*)")
_DIRECTIVE = re.compile(r"^\s*<!--\s*(not run|server):\s*(.*?)\s*-->\s*$")


@dataclass(frozen=True, slots=True)
class Step:
    """One command, and what it prints; `output` is None where the page does not say."""

    command: str
    output: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page. `kind`: the fence's language, "indented", or "" for a fence without one.
    `line` counts from 1."""

    kind: str
    text: str
    line: int
    directives: dict[str, str] = field(default_factory=dict)
    printed: str | None = None
    """Of Python: what stands below it."""

    @property
    def not_run(self) -> str | None:
        """The reason, if a comment gives one."""
        return self.directives.get("not run")

    @property
    def server(self) -> str | None:
        """The server that it wants; None: any."""
        return self.directives.get("server")

    @property
    def steps(self) -> list[Step]:
        """The commands of a block that shows commands; of any other none."""
        if self.kind == "console":
            return list(_session(self.text, self.line + 1))
        begins = self.text.lstrip().split(None, 1)[0] if self.text.strip() else ""
        known = begins in COMMANDS or begins.startswith((".venv/bin/", "_BINLAG_COMPLETE"))
        if self.kind in ("sh", "bash", "shell") or (self.kind == "indented" and known):
            return list(_commands(self.text, self.line + (self.kind != "indented")))
        return []


def blocks(page: Path | str) -> list[Block]:
    """All blocks of a page (a path, or its text), in order."""
    lines = (page.read_text() if isinstance(page, Path) else page).splitlines()
    found = list(_raw(lines))
    for at, block in enumerate(found[:-1]):
        below = found[at + 1]
        between = lines[_end(block, lines) : below.line - 1]
        if (
            block.kind == "python"
            and below.kind in ("", "text", "indented")
            and not any(line.strip() for line in between)
        ):
            found[at] = Block(block.kind, block.text, block.line, block.directives, below.text)
    return found


def _end(block: Block, lines: list[str]) -> int:
    """Index of the line after a block."""
    return block.line - 1 + len(block.text.splitlines()) + (0 if block.kind == "indented" else 2)


def _raw(lines: list[str]) -> Iterator[Block]:
    at, directives = 0, dict[str, str]()
    while at < len(lines):
        line = lines[at]
        if directive := _DIRECTIVE.match(line):
            directives[directive[1]] = directive[2]
        elif fence := _FENCE.match(line):
            end = next(
                (n for n in range(at + 1, len(lines)) if lines[n].strip() == fence["marks"]),
                len(lines),
            )
            text = "\n".join(one.removeprefix(fence["indent"]) for one in lines[at + 1 : end])
            yield Block(fence["language"], text, at + 1, directives)
            at, directives = end, {}
        elif line.startswith("    ") and not (at and lines[at - 1].strip()):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            text = "\n".join(one.removeprefix("    ") for one in lines[at:end]).rstrip()
            yield Block("indented", text, at + 1, directives)
            at, directives = end - 1, {}
        elif line.strip():
            directives = {}
        at += 1


def _session(text: str, first: int) -> Iterator[Step]:
    command, output, line = "", list[str](), 0
    for number, shown in enumerate(text.splitlines(), first):
        if shown.startswith("$ "):
            if command:
                yield Step(command, "\n".join(output), line)
            command, output, line = shown[2:], [], number
        elif shown.startswith("> ") and command and not output:
            command += "\n" + shown[2:]
        elif not command:
            raise ValueError(f"line {number}: a console block begins with `$ ` and a command")
        else:
            output.append(shown)
    if command:
        yield Step(command, "\n".join(output), line)


def _commands(text: str, first: int) -> Iterator[Step]:
    command, line = "", first
    for number, shown in enumerate(text.splitlines(), first):
        if not command and (not shown.strip() or shown.lstrip().startswith("#")):
            continue
        line = line if command else number
        command += ("\n" if command else "") + shown
        if not shown.endswith("\\"):
            yield Step(command, None, line)
            command = ""


def matches(shown: str, printed: str) -> bool:
    """Whether a page's output is what a command printed; spaces at the end of a line and empty
    lines at the end do not count."""
    pattern = ""
    for line in shown.rstrip().splitlines():
        if line.strip() in (ANYTHING, "..."):
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.rstrip().split(ANYTHING)) + "\n"
    text = "".join(line.rstrip() + "\n" for line in printed.rstrip().splitlines())
    return re.fullmatch(pattern, text) is not None
