"""The strata of `forecast_accuracy.py`: settings of a replica and its machine, as data.

A stratum is a row: how many workers, whether commits are durable, the buffer pool beside the
tables, and what a slow disk adds to each read (by strace).
`--stratum NAME` runs the workloads of a set in one of them; which were run stands in
benchmarks/results. `slowed` says with what the caller starts a server for a slow disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product


def slowed(microseconds: Mapping[str, int]) -> list[str]:
    """What a server's command follows where system calls take so much longer: it stays the child of
    who starts it. Empty where none does."""
    slow = {calls: delay for calls, delay in microseconds.items() if delay}
    strace = f"strace -D -f -q -o /dev/null --seccomp-bpf -e trace={','.join(slow)}".split()
    for calls, delay in slow.items():
        strace += ["-e", f"inject={calls}:delay_exit={delay}"]
    return strace if slow else []


@dataclass(frozen=True)
class Stratum:
    """`pool`: the tables are so many times as large as the buffer pool; 0 for a pool that holds
    all. `read_microseconds` are added to each read of a page."""

    workers: int
    durable: bool
    pool: int
    read_microseconds: int

    @property
    def name(self) -> str:
        """As `--stratum` takes it: 4-durable-16-500."""
        return (
            f"{self.workers}-{'durable' if self.durable else 'relaxed'}-{self.pool}"
            f"-{self.read_microseconds}"
        )

    def options(self, table_bytes: int) -> dict[str, str | int]:
        """The replica's but for its workers, which are set when it runs; tables take so many
        bytes."""
        pool = table_bytes // self.pool if self.pool else 768 << 20
        return {
            "innodb_flush_log_at_trx_commit": 1 if self.durable else 2,
            "sync_binlog": 1 if self.durable else 0,
            "innodb_buffer_pool_size": max(pool, 5 << 20),
            "innodb_buffer_pool_load_at_startup": "OFF",
        }

    @property
    def settings(self) -> dict[str, str | int]:
        """For `Plan.settings`: what a live replica does not say."""
        return {"read_latency": self.read_microseconds * 1e-6} if self.read_microseconds else {}


STRATA = {
    stratum.name: stratum
    for stratum in (
        Stratum(*values) for values in product((1, 2, 4), (False, True), (0, 4, 16), (0, 500))
    )
    if stratum.pool or not stratum.read_microseconds
}
"""A slow disk matters only where pages are read."""
