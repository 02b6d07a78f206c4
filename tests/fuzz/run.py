"""Looks for inputs that break a target, guided by coverage: python tests/fuzz/run.py TARGET [--runs
N] [--corpus DIR] [FILE...]

Needs atheris (pip install atheris), which knows which branches an input takes. With FILE only these
inputs are run, and what they raise is shown. New inputs that reach something go to --corpus
(default: a folder that is thrown away); an input that breaks stays in this folder's crash-* file.
What is worth keeping goes to tests/fuzz/corpus/TARGET, and what was mended into a test of its own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def main() -> None:
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("target")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--corpus", type=Path)
    arguments = parser.parse_args()
    if arguments.files:
        from tests.fuzz.targets import TARGETS

        for file in arguments.files:
            TARGETS[arguments.target](file.read_bytes())
        return
    _search(arguments)


def _search(arguments: argparse.Namespace) -> None:
    import atheris

    with atheris.instrument_imports(include=["applier", "checkpoints", "lookup"]):
        from tests.fuzz.seeds import SEEDS
        from tests.fuzz.targets import CORPUS, TARGETS
    folder = arguments.corpus or Path(tempfile.mkdtemp(prefix="corpus-"))
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[arguments.target]()):
        (folder / f"seed-{number:03}").write_bytes(seed)
    known = CORPUS / arguments.target
    limits = [
        "-timeout=20",
        "-rss_limit_mb=2000",
        f"-runs={arguments.runs}",
        f"-max_total_time={arguments.seconds}",
        "-max_len=4096",
    ]
    atheris.Setup(
        [sys.argv[0], *limits, str(folder), *([str(known)] if known.is_dir() else [])],
        TARGETS[arguments.target],
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
