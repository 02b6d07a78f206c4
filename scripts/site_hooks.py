"""What the documentation site takes from outside of docs/: the changelog, the benchmarks with their raw results, the examples.

Each stands once in the repository, where a reader of the code looks for it; the site shows the same file under the same address.
"""

from __future__ import annotations

from pathlib import Path

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
