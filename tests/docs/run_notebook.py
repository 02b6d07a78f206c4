"""Runs a notebook: its path and a folder for what Jupyter writes as arguments, the notebook with
its output on standard output. A program, no test.

The kernel is this Python, whichever others the machine has, and it listens on no port.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient

if __name__ == "__main__":
    path, folder = map(Path, sys.argv[1:])
    kernel = AsyncKernelManager(
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
        transport="ipc",
        connection_file=str(folder / "kernel.json"),
    )
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, kernel, timeout=300, resources={"metadata": {"path": str(path.parent)}}
    )
    print(nbformat.writes(client.execute()))
