"""Runs the Python of a page: blocks as JSON on standard input, what each printed as JSON on
standard output. A program, no test."""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import sys
from typing import Any


def run(code: str, names: dict[str, Any]) -> str:
    """What a block prints; one with `>>>` is a doctest and prints nothing but what differs, which
    ends the program."""
    if ">>> " in code:
        test = doctest.DocTestParser().get_doctest(code + "\n", names, "page", None, 0)
        runner, said = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS), list[str]()
        runner.run(test, out=said.append, clear_globs=False)
        names.update(test.globs)
        if said:
            sys.exit("".join(said))
        return ""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "<page>", "exec"), names)
    return printed.getvalue()


if __name__ == "__main__":
    names: dict[str, Any] = {"__name__": "__main__"}
    sys.path.insert(0, "")
    json.dump([run(code, names) for code in json.load(sys.stdin)], sys.stdout)
