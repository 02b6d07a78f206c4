"""Processes that work for another one end with it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ASK = """
import signal, sys, time
from applier.workers import Workers
if __name__ == "__main__":
    # What a shell starts in the background has Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Workers(2, sys.argv[1]) as pool:
        asleep = [pool.submit(time.sleep, 600) for _ in range(2)]
        print(*pool._processes, flush=True)
        asleep[0].result()
"""


def is_over(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("start_method", ["spawn", "fork"])
@pytest.mark.parametrize(
    ("number", "whom", "said"),
    [
        (signal.SIGKILL, "parent", ""),
        (signal.SIGINT, "parent", "KeyboardInterrupt"),
        (signal.SIGINT, "all", "KeyboardInterrupt"),
        (signal.SIGKILL, "worker", "BL902: a process that worked for this one was killed"),
    ],
)
def test_workers_end_with_the_process_that_started_them(
    tmp_path: Path, number: signal.Signals, whom: str, said: str, start_method: str
) -> None:
    (tmp_path / "ask.py").write_text(ASK)
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", tmp_path / "ask.py", start_method],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    workers = [int(word) for word in process.stdout.readline().split()]
    assert len(workers) == 2
    if whom == "all":
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid if whom == "parent" else workers[0], number)
    _, errors = process.communicate(timeout=60)
    assert said in errors
    assert errors.count("Traceback") <= 1, "a worker says nothing of its own"
    for worker in workers:
        while not is_over(worker):
            time.sleep(0.01)
