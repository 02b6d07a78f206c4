"""Forecasts of a fleet: in this process, in several (`jobs`), or as a Spark job (`master`); the
numbers are the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from applier.arguments import at_least, checked, one_of
from applier.error_codes import Code
from applier.errors import BinlagError, UsageError
from applier.fleets.config import FleetSource, fleet_of, read_fleet
from applier.fleets.prepare import PreparedSource, SourceFiles, find, forecast, prepare
from applier.fleets.results import Finished, FleetResult, Outcome
from applier.fleets.schemas import SharedSchemas
from applier.forecast.plan import compile_ahead
from applier.workers import Workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
SKIP, FAIL = "skip", "fail"


@checked()
def fleet(
    sources: str | os.PathLike[str] | dict[str, Any] | Sequence[FleetSource],
    *,
    output: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    spark: SparkSession | None = None,
    on_error: str = SKIP,
    tick: Callable[[Outcome], None] | None = None,
) -> FleetResult:
    """The forecasts of a fleet: a YAML file, what such a file holds, or its sources.

    `output`: a folder for the tables of `FleetResult.write`. A source that an earlier run into it
    finished is not read again unless its files, its schema file or its settings changed. `jobs`:
    processes; `spark`: a session that does the work instead. `on_error` "skip": a source that
    cannot be read is skipped, and its outcome has the error; "fail": the error ends the run.
    `tick` is called with each source that is done. Raises InputError, UsageError.
    """
    one_of("on_error", on_error, (SKIP, FAIL))
    at_least(1, jobs=jobs)
    listed = _listed(sources)
    finished, outcomes = Finished(None if output is None else Path(output)), dict[str, Outcome]()

    def done(outcome: Outcome) -> None:
        if outcome.error is not None and on_error == FAIL:
            raise _again(outcome)
        outcomes[outcome.source] = outcome
        if tick is not None:
            tick(outcome)

    todo = []
    for source in listed:
        found = _tried(source.name, partial(find, source))
        kept = (
            found
            if isinstance(found, Outcome)
            else finished.outcome(source.name, found.fingerprint)
        )
        if kept is not None:
            done(kept)
        elif isinstance(found, SourceFiles):
            todo.append(found)
    for outcome in _outcomes(todo, jobs, spark):
        finished.keep(outcome)
        done(outcome)
    result = FleetResult([outcomes[source.name] for source in listed])
    if output is not None:
        result.write(Path(output))
    return result


def _listed(
    sources: str | os.PathLike[str] | dict[str, Any] | Sequence[FleetSource],
) -> Sequence[FleetSource]:
    if isinstance(sources, dict):
        return fleet_of(sources)
    if isinstance(sources, str | os.PathLike):
        return read_fleet(sources)
    if not sources:
        raise UsageError(
            "sources: the list is empty",
            code=Code.NOTHING_TO_READ,
            hint="give at least one source, or a fleet's YAML file",
        )
    return sources


def _outcomes(
    todo: Sequence[SourceFiles], jobs: int, spark: SparkSession | None
) -> Iterator[Outcome]:
    """Outcomes in the order in which they are done."""
    if spark is not None:
        from applier.fleets.spark import outcomes

        return outcomes(spark, todo)
    schemas = SharedSchemas(found.source for found in todo)
    compile_ahead(sum(sum(found.sizes) for found in todo))
    if jobs > 1 and len(todo) > 1:
        return _by_processes(todo, jobs, schemas)
    return (outcome_of(found, schemas) for found in todo)


def _by_processes(
    todo: Iterable[SourceFiles], jobs: int, schemas: SharedSchemas
) -> Iterator[Outcome]:
    """Schemas that sources share are read here, others by the processes."""
    with Workers(jobs, "spawn") as pool:
        running = []
        for found in todo:
            if not schemas.has(found.source):
                running.append(pool.submit(outcome_of, found))
                continue
            prepared = _tried(found.source.name, partial(prepare, found, schemas))
            if isinstance(prepared, Outcome):
                yield prepared
            else:
                running.append(pool.submit(_forecast, found, prepared))
        for future in as_completed(running):
            yield future.result()


def outcome_of(found: SourceFiles, schemas: SharedSchemas | None = None) -> Outcome:
    """The forecast of one source, in this process."""
    prepared = _tried(found.source.name, lambda: prepare(found, schemas))
    return prepared if isinstance(prepared, Outcome) else _forecast(found, prepared)


def _forecast(found: SourceFiles, prepared: PreparedSource) -> Outcome:
    summary = _tried(found.source.name, lambda: forecast(prepared))
    return summary if isinstance(summary, Outcome) else found.outcome(summary)


def _tried(name: str, work: Callable[[], T]) -> T | Outcome:
    try:
        return work()
    except BinlagError as error:
        return Outcome.failed(name, error)


def _again(outcome: Outcome) -> BinlagError:
    error = outcome.error
    assert error is not None
    return BinlagError(
        f"source {outcome.source}: {error['message']}", code=error["code"],
        file=error["file"],
        position=error["position"], table=error["table"], hint=error["hint"],
    )  # fmt: skip
