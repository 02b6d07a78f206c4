"""Crash points of an emulated replica: `applier.crash_points`, and the plan behind `binlag
crashtest`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from applier.arguments import at_least, checked, one_of
from applier.binlog.follow import LogFiles, log_files
from applier.crashtest.crash_runs import Kind
from applier.crashtest.matrix import AXES, MatrixCell, Setup, WorkloadSpec, axes_of, setups, try_all
from applier.crashtest.workload import Workload, captured
from applier.error_codes import Code
from applier.errors import UsageError
from checkpoints.outcomes import Medium
from checkpoints.simulated_disk import Coverage


@checked()
def crash_points(
    files: LogFiles = (),
    schema: str | os.PathLike[str] | None = None,
    *,
    default_database: str | None = None,
    server: str = "8.0",
    transactions: int = 50,
    seed: int = 1,
    repository: str | Iterable[str] = (),
    sync: int | Iterable[int] = (),
    recovery: bool | Iterable[bool] = (),
    auto_position: bool | Iterable[bool] = (),
    workers: int | Iterable[int] = (),
    engine: str | Iterable[str] = (),
    kinds: str | Iterable[str] = (),
    commit_order: bool | None = None,
    flush_log: int = 1,
    sync_binlog: int = 1,
    log_bin: bool = True,
    sector_bytes: int = 512,
    coverage: str = "edges",
    jobs: int | None = None,
) -> list[MatrixCell]:
    """Replicates a log, or a generated one, and crashes at every point: one cell for each
    configuration and kind of crash.

    Options are those of `binlag crashtest`; `files` and `schema` are what `applier.replay` and
    `applier.load_schema` take. Each of `repository`, `sync`, `recovery`,
    `auto_position`, `workers`, `engine` is a value or several; one that is left out is varied.
    `jobs`: processes, None for one a processor. Raises UsageError for a configuration that the
    version does not have, InputError for a log that cannot be read.
    """
    at_least(1, transactions=transactions, sector_bytes=sector_bytes, jobs=jobs)
    paths = log_files(files)
    refuse_schema(schema, paths)
    dump = None if schema is None else os.fspath(schema)
    workload = captured(paths, dump, server, default_database) if paths else None
    chosen: dict[str, tuple[Any, ...]] = {
        "repository": tuple(
            one_of("repository", one, AXES["repository"]) for one in _several(repository)
        ),
        "engine": tuple(one_of("engine", one, AXES["engine"]) for one in _several(engine)),
        "sync": _several(sync),
        "recovery": _several(recovery),
        "auto_position": _several(auto_position),
        "workers": _several(workers),
    }
    base = Setup(
        server=server,
        commit_order=commit_order,
        flush_log=flush_log,
        sync_binlog=sync_binlog,
        log_bin=log_bin,
    )
    return try_all(
        configurations(base, chosen, workload),
        WorkloadSpec(transactions, seed, workload),
        [Kind(one_of("kinds", kind, Kind)) for kind in _several(kinds) or Kind],
        medium=Medium(sector_bytes=sector_bytes),
        coverage=Coverage(one_of("coverage", coverage, Coverage)),
        jobs=jobs or os.cpu_count() or 1,
    )


def refuse_schema(schema: object, files: Sequence[str]) -> None:
    """Raises UsageError for a schema without a log."""
    if schema is not None and not files:
        raise UsageError(
            "--schema: the generated log has tables of its own",
            code=Code.OPTIONS_CLASH,
            hint="give the log, or leave it out",
        )


def configurations(
    base: Setup, chosen: Mapping[str, tuple[Any, ...]], workload: Workload | None
) -> list[Setup]:
    """All that are asked for. A captured log without GTIDs is not asked for by auto-position.
    Raises UsageError."""
    if workload is not None and not workload.gtids and any(chosen["auto_position"]):
        raise UsageError(
            "auto-position needs a log with GTIDs, and this one has none",
            code=Code.OPTIONS_CLASH,
            hint="leave --position auto out",
        )
    if workload is not None and not chosen["auto_position"]:
        chosen = {**chosen, "auto_position": (False, True) if workload.gtids else (False,)}
    return setups(base, axes_of(base, chosen))


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
