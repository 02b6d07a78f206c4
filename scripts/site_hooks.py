"""What the documentation site takes from outside of docs/: the changelog, the benchmarks with their
raw results, the examples, the notebooks.

Each stands once in the repository, where a reader of the code looks for it; the site shows the same
file. Pages link to them as they stand in the repository.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
SHOWN = {"CHANGELOG.md": "changelog.md", "benchmarks/README.md": "benchmarks/index.md"}
"""File of the repository -> page of the site."""
DOWNLOADS = ("benchmarks/results/*.json", "examples/*.py", "examples/notebooks/*.ipynb")
"""Further files that pages link to, under the path that they have in the repository."""
NOTEBOOKS = "examples/notebooks/*.ipynb"
"""Each has a page, too, beside it."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds them to the files of docs/."""
    for name, page in SHOWN.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    for pattern in DOWNLOADS:
        for path in sorted(ROOT.glob(pattern)):
            files.append(
                File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path))
            )
    for path in sorted(ROOT.glob(NOTEBOOKS)):
        files.append(
            File.generated(
                config, _page_of(path.relative_to(ROOT).as_posix()), content=_text_of_notebook(path)
            )
        )
    return files


def _page_of(name: str) -> str:
    """The page of the site that shows a file; a file that is only downloaded is its own."""
    return SHOWN.get(name, re.sub(r"\.ipynb$", ".md", name))


def _text_of_notebook(path: Path) -> str:
    """Its text and code."""
    cells = [
        (cell["cell_type"], "".join(cell["source"]))
        for cell in json.loads(path.read_text())["cells"]
    ]
    shown = [text if kind == "markdown" else f"```python\n{text}\n```" for kind, text in cells]
    return "\n\n".join([*shown, f"[Download the notebook]({path.name})"]) + "\n"


_LINKED = "|".join(
    [*map(re.escape, SHOWN), r"examples/[\w/-]+\.(?:py|ipynb)", r"benchmarks/results/[\w.-]+"]
)
_LINK = re.compile(rf"\]\(\.\./((?:\.\./)*)({_LINKED})")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A link out of docs/ leads to the same file in the site, one folder nearer."""
    return _LINK.sub(lambda link: f"]({link[1]}{_page_of(link[2])}", markdown)
