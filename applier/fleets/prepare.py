"""A source made ready: its files found and looked at, its schema and row counts read, its replica's
rules known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import applier
from applier.binlog.follow import IndexedLogs
from applier.fleets.config import LOG_NAMES, PLACEHOLDER, FleetSource
from applier.fleets.heads import check, heads, stamp
from applier.fleets.results import Outcome
from applier.fleets.schemas import SharedSchemas, facts_of
from applier.forecast.inventory.facts import TableFacts
from applier.forecast.inventory.rows_file import with_rows_file
from applier.forecast.lag.part_kinds import COLUMNS
from applier.forecast.plan import ForecastPlan, run
from applier.forecast.workload.load_batch import LoadBatch
from applier.forecast.workload.transaction_load import TransactionLoad
from applier.mysql.contents.live_schema import is_url
from applier.remote import address_of
from applier.server_versions import asked_rules, found_rules, remark
from applier.sources import INDEX_SUFFIX, expanded


@dataclass(frozen=True)
class PreparedSource:
    """A source that can be forecast, here or elsewhere: it is small, and can be sent to another
    process.

    `sizes`: bytes of each file, as they are stored. `whole`: the files are one log only together,
    as relay logs are.
    """

    source: FleetSource
    files: tuple[str, ...]
    sizes: tuple[int, ...]
    server: str
    facts: dict[str, TableFacts]
    whole: bool
    notes: tuple[str, ...]

    def plan(self, loads: Iterable[TransactionLoad | LoadBatch] | None = None) -> ForecastPlan:
        """What to forecast; `loads` stand in for the files where they were read elsewhere."""
        one = self.source
        return ForecastPlan(
            files=self.files, loads=loads, facts=self.facts, server=self.server,
            row_search=one.row_search,
            row_counts=[row for row in one.rows if "=" in row], calibration=one.calibration,
            workers=one.workers, preserve_order=one.preserve_commit_order,
        )  # fmt: skip


@dataclass(frozen=True)
class SourceFiles:
    """The files of a source, before any is opened. `fingerprint` changes with whatever the forecast
    is made from."""

    source: FleetSource
    files: tuple[str, ...]
    sizes: tuple[int, ...]
    fingerprint: str

    def outcome(self, summary: Mapping[str, Any]) -> Outcome:
        """What its forecast comes to."""
        return Outcome(
            self.source.name, self.fingerprint, len(self.files), sum(self.sizes), summary
        )


def find(source: FleetSource) -> SourceFiles:
    """Raises InputError where a pattern fits nothing or a file is not there.

    A live server does not say whether its tables were changed, so its fingerprint is never the
    same: it is asked again in each run.
    """
    files = [
        file
        for pattern in source.logs
        for file in _files(pattern)
        if not file.endswith(INDEX_SUFFIX)
    ]
    stamps = [stamp(file) for file in files]
    live = is_url(source.schema)
    files_besides = (source.calibration, *source.rows, *([] if live else [source.schema]))
    others = [path for path in files_besides if path is not None and "=" not in path]
    known = [stamp(path) for path in others if address_of(path) is not None or Path(path).is_file()]
    told = json.dumps(
        [
            *(applier.__version__, list(COLUMNS), source.as_dict()),
            *(files, stamps, known, uuid4().hex if live else ""),
        ]
    )
    return SourceFiles(
        source,
        tuple(files),
        tuple(size for size, _ in stamps),
        hashlib.sha256(told.encode()).hexdigest(),
    )


def _files(pattern: str) -> Sequence[str]:
    if address_of(pattern) is None and Path(pattern).is_dir():
        if list(Path(pattern).glob(f"*{INDEX_SUFFIX}")):
            return IndexedLogs(pattern).paths()
        return expanded(str(Path(pattern) / LOG_NAMES))
    return expanded(pattern.replace(PLACEHOLDER, "*"))


def prepare(found: SourceFiles, schemas: SharedSchemas | None = None) -> PreparedSource:
    """`schemas` has the tables of sources that share them. Raises InputError or UsageError: a log,
    the schema, the counts cannot be read, or the logs are not one."""
    source = found.source
    first = heads(found.files)
    notes = check(first)
    if source.server is None:
        server = found_rules(first[0].version, "the log").name
        said = remark(first[0].version, "the log")
    else:
        server, said = asked_rules(source.server).name, remark(source.server, "replica: server")
    facts = facts_of(source, server) if schemas is None else schemas.facts(source, server)
    for file in source.rows:
        if "=" not in file:
            facts, told = with_rows_file(facts, file, asked_rules(server))
            notes += told
    whole = any(one.is_relay_log for one in first)
    return PreparedSource(
        source, found.files, found.sizes, server, facts, whole, (*notes, *([said] if said else []))
    )


def forecast(
    prepared: PreparedSource,
    loads: Iterable[TransactionLoad | LoadBatch] | None = None,
    notes: Iterable[str] = (),
) -> dict[str, Any]:
    """The forecast of one source as plain data, as `binlag forecast --json` has it, and `shapes`;
    `notes` are what each needs to say once."""
    done = run(prepared.plan(loads))
    told = done.summary() | {"shapes": done.shapes()}
    summary: dict[str, Any] = json.loads(
        json.dumps(told | {"notes": sorted({*told["notes"], *prepared.notes, *notes})})
    )
    return summary  # as it is when it comes from another process or an earlier run
