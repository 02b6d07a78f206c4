"""What the documentation site takes from outside of docs/: the changelog, the benchmarks with their raw results, the examples.

Each stands once in the repository, where a reader of the code looks for it; the site shows the same file. Pages link to them as they stand
in the repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
SHOWN = {"CHANGELOG.md": "changelog.md", "benchmarks/README.md": "benchmarks/index.md"}
"""File of the repository -> page of the site."""
DOWNLOADS = ("benchmarks/results/*.json", "examples/*.py")
"""Further files that pages link to, under the path that they have in the repository."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds them to the files of docs/."""
    for name, page in SHOWN.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    for pattern in DOWNLOADS:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


_LINK = re.compile(r"\]\(\.\./((?:\.\./)*)(" + "|".join(map(re.escape, SHOWN)) + r"|examples/\w+\.py|benchmarks/results/[\w.-]+)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A link out of docs/ leads to the same file in the site, one folder nearer."""
    return _LINK.sub(lambda link: f"]({link[1]}{SHOWN.get(link[2], link[2])}", markdown)
