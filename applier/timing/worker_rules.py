"""What several workers cost beside the only thread of a replica, as data: a row for each version.

All of it was seen on real servers with two cores; where no server was asked, as of 5.6, it is what
the next version has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class WorkerRules:
    """Of one version.

    `rows_factor`: times the processor that a transaction takes in one of several workers, where it
    leaves old rows or entries for purge; `inserts_factor`: where it only inserts. `purge_threads`:
    that want a core as long as several workers do; 0 where that has not been seen. `purge_work`:
    seconds of a processor that purge takes for each that workers spent on marked entries of
    indexes, beside several workers that wait for syncs; 0 where the other two hold it.
    """

    rows_factor: float = 1.0
    inserts_factor: float = 1.0
    purge_threads: int = 0
    purge_work: float = 0.0


ALONE = WorkerRules()
"""Several workers that cost what the only thread does."""
_BY_DATABASE = WorkerRules(rows_factor=1.35, inserts_factor=1.2)
_BESIDE_PURGE = WorkerRules(purge_work=1.0)
WORKER_RULES = {
    "5.6": _BY_DATABASE,
    "5.7": replace(_BY_DATABASE, purge_threads=4),
    **dict.fromkeys(("8.0", "8.4", "9.7", "mariadb"), _BESIDE_PURGE),
}
"""Version -> its rules.

- The four threads of purge of a 5.7.29 with two cores took 38 and 43 µs of the processor for each
  transaction of one update that 2 and 4 workers applied, all workers 32 and 35.
- With 2 and 4 workers by DATABASE, one of which does all of sysbench's work, a 5.7.29 took 1.36 and
  1.50 (write_only), 1.37 and 1.48 (update_index), 1.46 and 1.45 (update_non_index), 1.6 and 1.7
  (delete) times as long as with one thread: its rows took 67 µs of the processor (48 in the only
  thread; write_only), and it waited for a core 28 µs (13). That is purge, which shares the cores
  with the worker and the coordinator: where a load only inserts, two and four workers took 1.03 to
  1.26 and 1.06 to 1.48 times as long as one in ten series on several days, at the mean 1.2. 5.6 has
  the same workers; none was asked.
- Purge of a 9.7.4 took 1.8 s of the processor for 30,000 updates of an indexed column and 0.5 s for
  as many of others; the entries of the index took the only worker of a replica 1.7 s.
"""
