"""One target over its corpus and so many mutations of it, in a process of its own: python -m
tests.fuzz.child TARGET COUNT SEED FILE

FILE always holds the input under way, so that whoever started this can name it when the process
dies. Memory and the time that one input may take are bounded.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from tests.applier.fuzz import time_limit
from tests.fuzz.mutate import mutated
from tests.fuzz.targets import TARGETS, corpus

MORE_BYTES = 1 << 30
"""What a target may take beyond what the process has when it begins."""


def main() -> None:
    name, count, seed, current = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    inputs = [content for _, content in corpus(name)]
    target = TARGETS[name]
    target(inputs[0])  # what is loaded once
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MORE_BYTES, taken + MORE_BYTES))
    done = 0
    with current.open("wb", buffering=0) as file:
        for content in (*inputs, *mutated(inputs, count, f"{name} {seed}")):
            file.seek(0)
            file.write(content)
            file.truncate()
            with time_limit():
                target(content)
            done += 1
    print(done)


if __name__ == "__main__":
    main()
