"""What a fleet's forecast comes to: one outcome a source, and of all of them the tables `sources`,
`tables`, `curve` and `shapes`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from applier.errors import BinlagError, cannot_write
from applier.forecast.lag.part_kinds import COLUMNS as SHAPES
from applier.lazy_imports import needed
from applier.sources import check_name
from applier.whole_file import whole_file, write_whole

if TYPE_CHECKING:
    import pyarrow as pa

FINISHED = "finished"
"""The folder below --output that keeps what is done, so that an interrupted run goes on."""
LONGEST_NAME = 150
"""Of a file there: systems take 255 bytes, and a letter beyond ASCII has six."""
SOURCES: dict[str, str] = {
    "source": "string", "server": "string", "files": "int64", "log_bytes": "int64",
    "transactions": "int64", "rows": "int64",
    "first_commit": "double", "last_commit": "double", "log_seconds": "double",
    "apply_seconds": "double", "lookup_seconds": "double",
    "utilisation": "double", "capacity": "double", "peak_lag_seconds": "double",
    "peak_low_seconds": "double",
    "peak_high_seconds": "double", "peak_at": "double", "end_lag_seconds": "double",
    "catch_up_seconds": "double",
    "catches_up": "bool", "worst_table": "string", "worst_table_share": "double", "error": "string",
    "error_code": "string",
    "error_file": "string", "notes": "list",
}  # fmt: skip
"""Column of `sources` -> its kind. Times in seconds since 1970. Of a source with an error only
that, its name and its files are known."""
TABLES: dict[str, str] = {
    "source": "string", "table": "string", "seconds": "double", "share": "double",
    "lookup_seconds": "double", "events": "int64",
    "rows": "int64", "rows_read": "double", "max_lag_seconds": "double", "algorithm": "string",
    "table_rows": "double",
    "table_rows_from": "string", "why": "string", "fix": "string", "fix_gain_seconds": "double",
}  # fmt: skip
CURVE: dict[str, str] = {"source": "string", "time": "double", "lag_seconds": "double"}


@dataclass(frozen=True)
class Outcome:
    """One source: its forecast as plain data, or its error."""

    source: str
    fingerprint: str
    files: int = 0
    log_bytes: int = 0
    summary: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None

    @classmethod
    def failed(cls, source: str, error: BinlagError) -> Outcome:
        """The outcome of a source that cannot be forecast."""
        return cls(source, "", error=error.as_dict())

    @property
    def peak(self) -> float:
        """The highest lag in seconds; 0 where it is not known."""
        return 0.0 if self.summary is None else float(self.summary["replica"]["peak_lag_seconds"])

    def row(self) -> dict[str, Any]:
        """Its row of `sources`."""
        found: dict[str, Any] = dict.fromkeys(SOURCES) | {
            "source": self.source,
            "files": self.files,
            "log_bytes": self.log_bytes,
        }
        if self.error is not None:
            return found | {
                "error": self.error["message"],
                "error_code": self.error["code"],
                "error_file": self.error["file"],
                "notes": [],
            }
        assert self.summary is not None
        summary = self.summary
        replica, tables = summary["replica"], summary["tables"]
        never = replica["catch_up_seconds"] == "never"
        return (
            found
            | {name: value for name, value in {**summary, **replica}.items() if name in SOURCES}
            | {
                "capacity": 1 / replica["utilisation"] if replica["utilisation"] else None,
                "catch_up_seconds": None if never else replica["catch_up_seconds"],
                "catches_up": not never,
                "worst_table": tables[0]["table"] if tables else None,
                "worst_table_share": tables[0]["share"] if tables else None,
            }
        )

    def table_rows(self) -> Iterator[dict[str, Any]]:
        """Its rows of `tables`, the dearest first."""
        summary = self.summary or {"tables": [], "fixes": []}
        fixes = {one["table"]: one for one in summary["fixes"] if one["table"] is not None}
        for table in summary["tables"]:
            fix = fixes.get(table["table"], {})
            yield {name: table.get(name) for name in TABLES} | {
                "source": self.source,
                "algorithm": ", ".join(table["algorithms"]) or None,
                "why": " ".join(table["why"]) or None,
                "fix": fix.get("sql"),
                "fix_gain_seconds": fix.get("gain_seconds"),
            }

    def shape_rows(self) -> Iterator[dict[str, Any]]:
        """Its rows of `shapes`, the dearest first."""
        for shape in (self.summary or {"shapes": []})["shapes"]:
            yield {"source": self.source, **shape}

    def curve_rows(self) -> Iterator[dict[str, Any]]:
        """Its rows of `curve`, in the order of time."""
        for time, lag in (self.summary or {"curve": {"points": []}})["curve"]["points"]:
            yield {"source": self.source, "time": time, "lag_seconds": lag}


@dataclass(frozen=True)
class FleetResult:
    """All outcomes, in the order of the fleet."""

    outcomes: Sequence[Outcome]

    @property
    def sources(self) -> list[dict[str, Any]]:
        """A row a source, the highest lag first, those with an error at the end."""
        ranked = sorted(
            self.outcomes, key=lambda one: (one.error is not None, -one.peak, one.source)
        )
        return [one.row() for one in ranked]

    @property
    def tables(self) -> list[dict[str, Any]]:
        """A row for each table of each source."""
        return [row for one in self.outcomes for row in one.table_rows()]

    @property
    def shapes(self) -> list[dict[str, Any]]:
        """A row for each kind of work of each source."""
        return [row for one in self.outcomes for row in one.shape_rows()]

    @property
    def curve(self) -> list[dict[str, Any]]:
        """Lag over time of each source."""
        return [row for one in self.outcomes for row in one.curve_rows()]

    @property
    def failed(self) -> list[Outcome]:
        """Sources that could not be forecast."""
        return [one for one in self.outcomes if one.error is not None]

    @property
    def notes(self) -> dict[str, list[str]]:
        """What is to be said of the forecasts -> the sources of which it is said."""
        found: dict[str, list[str]] = {}
        for one in self.outcomes:
            for text in (one.summary or {"notes": ()})["notes"]:
                found.setdefault(text, []).append(one.source)
        return found

    def over(self, limit: float) -> list[Outcome]:
        """Sources whose lag exceeds so many seconds, the worst first."""
        return sorted((one for one in self.outcomes if one.peak > limit), key=lambda one: -one.peak)

    def write(self, folder: Path) -> list[Path]:
        """Writes the tables as Parquet. Raises InputError where it cannot, UsageError without
        pyarrow."""
        with needed("--output needs pyarrow", "binlag[arrow]"):
            import pyarrow as pa
            import pyarrow.parquet as pq
        written = []
        for name, columns, rows in (
            ("sources", SOURCES, self.sources),
            ("tables", TABLES, self.tables),
            ("curve", CURVE, self.curve),
            ("shapes", SHAPES, self.shapes),
        ):
            path = folder / f"{name}.parquet"
            with whole_file(path) as partial:
                pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(columns)), partial)
            written.append(path)
        return written


def arrow_schema(columns: Mapping[str, str]) -> pa.Schema:
    """The schema of one of the tables."""
    import pyarrow as pa

    kinds = {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "list": pa.list_(pa.string()),
    }
    return pa.schema([(name, kinds[kind]) for name, kind in columns.items()])


class Finished:
    """What an earlier run left below --output: a file for each source that was done. None: nothing
    is kept."""

    def __init__(self, output: Path | None) -> None:
        self._folder = None if output is None else output / FINISHED
        if self._folder is not None:
            check_name(self._folder)
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise cannot_write(error, output) from None

    def outcome(self, source: str, fingerprint: str) -> Outcome | None:
        """The outcome of a source that is as it was then."""
        path = self._path(source)
        if path is None or not path.is_file():
            return None
        try:
            found = Outcome(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            return None  # of another release, or damaged: done again
        return found if found.fingerprint == fingerprint else None

    def keep(self, outcome: Outcome) -> None:
        """A source that is done. Errors are not kept: the next run tries again."""
        path = self._path(outcome.source)
        if path is not None and outcome.error is None:
            write_whole(path, json.dumps(asdict(outcome)))

    def _path(self, source: str) -> Path | None:
        if self._folder is None:
            return None
        name = quote(source, safe="")
        if len(name) > LONGEST_NAME:
            name = f"{name[:LONGEST_NAME]}-{hashlib.sha256(source.encode()).hexdigest()[:32]}"
        return self._folder / f"{name}.json"
