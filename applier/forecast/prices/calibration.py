"""What one unit of a replica's work costs on one machine: a small JSON file, measured by `binlag
measure`.

`default_calibration` gives one that ships with the package. It says what it was measured on; on
other machines it tells which table is the trouble and by what factor a key helps, and seconds only
roughly.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from applier.error_codes import Code
from applier.errors import InputError, cannot_read
from applier.forecast.inventory.pool_rules import POOL_RULES
from applier.forecast.prices.units import EVENTS_AROUND, EVENTS_OF_ROWS, UNITS, Prices
from applier.replica.scheduling import MODES
from applier.replica.scheduling import rules_for as scheduling_of
from applier.timing.worker_rules import WORKER_RULES
from applier.whole_file import write_whole
from lookup.versions import rules_for

FORMAT = 15
"""1 lacked prices (of a statement, of a read behind a deleted row of its value), and its others
were too high for it; LACKS says of the others what is not in them."""
HINT = "write a new one with `binlag measure --output FILE`"


@dataclass(frozen=True, slots=True)
class TimePrice:
    """Seconds of a processor, and seconds of waiting beside it."""

    processor: float
    waiting: float = 0.0

    @property
    def seconds(self) -> float:
        """Both."""
        return self.processor + self.waiting


APPLIER, STATEMENTS = "replication applier", "BINLOG statements"
"""What applied the cells of a calibration: a server's own thread, or a client's session."""
OWN_LOG = "own log event"
PAGE_READ, PAGE_ROOM, PAGE_WRITE = "page read", "room for a page", "page write"
SYNC, COORDINATOR = "sync", ("coordinator transaction", "coordinator event")
BESIDE, HAND_OVER = "work beside others", "hand-over"
SHARED: dict[str, TimePrice] = {
    SYNC: TimePrice(64e-6, 36e-6),
    PAGE_READ: TimePrice(60e-6, 110e-6),
    PAGE_ROOM: TimePrice(60e-6),
    PAGE_WRITE: TimePrice(0.0, 35e-6),
    COORDINATOR[0]: TimePrice(10e-6),
    COORDINATOR[1]: TimePrice(4e-6),
    BESIDE: TimePrice(1.5),
    HAND_OVER: TimePrice(45e-6),
    OWN_LOG: TimePrice(3e-6),
}
"""What unit prices do not hold, and its price where nobody measured it: a sync of one log at a
commit, a page read into the buffer pool, the processor time of other threads that make room for it,
a page that workers wait for until it is written (`PageCleaner.waited_for`, `RedoLog`), what the
coordinator takes to read a transaction and each of its events, what a second of a transaction costs
more while workers of a MariaDB apply others beside it, the waking of one of them or of a 5.7's
coordinator, and an event of the binary log that a replica writes itself. Of 9.7.4 with sysbench's
oltp_write_only in twelve settings, 2 cores, a virtual disk; pages: the cells of `pool_reads`;
MariaDB: 10.11.18, those of `scale_up`; the last one: docs/design/forecast-accuracy.md. No cell
shows it, since a server must be started anew for it."""
RELAXED = {"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0"}
"""Commits as unit prices are measured: syncs come on top."""
DURABLE = {"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"}
LACKS = {
    2: "syncs and the coordinator cost what they did elsewhere",
    3: "splits of full indexes are not priced",
    4: "a transaction of many tables costs no more than one of the same changes in one table",
    5: "a page read costs what the shipped prices say",
    6: "what a page costs more the larger the tables are comes from tables of 20 to 40 MB",
    7: "what workers share of a page read is as much as it was elsewhere",
    8: "the price of a page read includes the wait for pages that are being written",
    9: "what workers cost each other is as much as it was elsewhere",
    10: "what workers cost each other is as much as it was elsewhere",
    11: "a page that is written before the redo log is full costs what the shipped prices say",
    12: "tables opened again and foreign keys cost what the shipped prices say",
    13: (
        "values outside of their rows' pages and words of FULLTEXT indexes cost what the shipped"
        " prices say"
    ),
    14: "what workers cost each other is as much as it was elsewhere",
}
NO_WRITES = 8
"""Up to this format there was no price of a page write; it is for pools with `most_written`."""
NO_HAND_OVER, NO_CROWDING, NO_HANDING = 9, 10, 14
"""Up to these formats what workers cost each other was part of other prices: MariaDB's, and twice
5.7's."""
NO_REDO_WRITES = 11
"""Up to this format a redo log never was full: the price of a page write was MariaDB's."""
NEW_UNITS = {12: ("table open", "foreign key"), 13: ("long byte", "text", "word")}
"""Up to this format nobody priced these."""
UNMEASURED_READS = 5
"""Up to this format the price of a page read was one that had been assumed."""
ONE_FAR_PRICE, OF_A_DOUBLING = 6, 0.4
"""Up to this format "far page" was the price of any page of a table beyond the caches. In the cells
that have such tables, this part of it is the price of a doubling."""
SPLITS_OF_ALL_VISITS = frozenset({"full index", "full leaf"})
"""Units of formats 2 and 3, whose amounts did not follow the number of an index's leaves."""
SEVERAL_WORKERS, SYNCS = "several workers", "syncs"
UNEXPLAINED: dict[str, float] = {SEVERAL_WORKERS: 0.25, SYNCS: 1.0}
"""How far off replicas with several workers, and with durable commits, are beside one with neither,
where too few cells tell. Of a 9.7.4 on a virtual machine: a sync took 0.3 to 2.7 ms within two
hours."""
ON = ("ON", "1")
CORES = 2
"""Of the machine where it does not say: that of the calibrations that ship."""


def commits_in_groups(rules_name: str) -> bool:
    """Whether its workers are those of MariaDB."""
    return scheduling_of(rules_name).parallel_type in MODES


def priced_by_scale_up(rules_name: str) -> tuple[str, str]:
    """What of SHARED the cells of several workers show of these rules, besides a sync."""
    if commits_in_groups(rules_name):
        return BESIDE, HAND_OVER
    return COORDINATOR


def commit_syncs(flush_log: int, sync_binlog: int, *, logs: bool) -> float:
    """Syncs of a replica's commit that waits for nobody: of the redo log
    (innodb_flush_log_at_trx_commit), and of the binary log where the replica has one of its own."""
    redo = 1.0 if flush_log == 1 else 0.0
    return redo + (1.0 / sync_binlog if logs and sync_binlog else 0.0)


def page_write_at(usual: Mapping[str, TimePrice], sync: TimePrice) -> TimePrice:
    """What a page takes that is written since the redo log is full, on a disk of another `sync`
    than these prices have. Such pages go a few at a time, with two syncs, so that the price follows
    that of a sync."""
    was, page = usual[SYNC], usual[PAGE_WRITE]
    factor = sync.seconds / was.seconds if was.seconds else 1.0
    return TimePrice(page.processor * factor, page.waiting * factor)


def logs_itself(settings: Mapping[str, str]) -> bool:
    """Whether a replica writes a binary log of its own, by the text of its variables."""
    own_log = settings.get("log_replica_updates", settings.get("log_slave_updates", "OFF"))
    return all(text.upper() in ON for text in (settings.get("log_bin", ""), own_log))


def syncs_at(settings: Mapping[str, str]) -> float:
    """Syncs of a commit by the text of a server's variables."""
    return commit_syncs(
        int(settings.get("innodb_flush_log_at_trx_commit", "0")),
        int(settings.get("sync_binlog", "0")),
        logs=logs_itself(settings),
    )


@dataclass(frozen=True)
class Residuals:
    """How well the prices explain what was measured: relative errors of cells, those of cells left
    out of the fit beside."""

    cells: int = 0
    median: float = 0.0
    p90: float = 0.0
    worst: float = 0.0
    unseen_median: float = 0.0
    unseen_p90: float = 0.0


@dataclass(frozen=True)
class Calibration:
    """Prices with 95 % intervals, and where they come from. `target` says how events were applied
    when it was measured."""

    server_version: str
    prices: Prices
    low: Prices
    high: Prices
    residuals: Residuals = Residuals()
    target: str = ""
    machine: str = ""
    date: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    """The file it was read from."""
    shared: Mapping[str, TimePrice] = field(default_factory=lambda: dict(SHARED))
    """Names as in SHARED."""
    cores: int = CORES
    assumed: tuple[str, ...] = ()
    """What it lacks, and what is taken instead."""
    unsteadiness: float = 0.0
    """How far the machine's speed was off its median while it was measured, in nine of ten
    readings."""
    unexplained: Mapping[str, float] = field(default_factory=lambda: dict(UNEXPLAINED))
    """What the clock is off beside that in nine of ten cells; names as in UNEXPLAINED."""
    shown: frozenset[str] = frozenset()
    """Units that its cells asked for, those that turned out to cost nothing included."""
    ships: bool = False
    """It comes with the package: its prices are those of another machine."""

    @property
    def rules_name(self) -> str:
        """Whose rules it was measured under: a name of `lookup.versions.RULES`."""
        return rules_for(self.server_version).name

    @property
    def syncs(self) -> float:
        """Syncs of a commit that the price of a transaction holds already: of a calibration that
        was measured with durable commits."""
        return syncs_at(self.settings)

    def with_own_log(self, logs: bool) -> Calibration:
        """The prices of a replica that writes a binary log of its own, or of one that does not;
        where they are of the other kind, `assumed` says so. Itself where nobody knows of which kind
        they are."""
        known = self.target == APPLIER and "log_bin" in self.settings
        if not known or logs == logs_itself(self.settings):
            return self
        each = self.shared[OWN_LOG].processor
        more = each if logs else -each
        prices, low, high = (
            one.with_more("transaction", EVENTS_AROUND * more).with_more(
                "event", EVENTS_OF_ROWS * more
            )
            for one in (self.prices, self.low, self.high)
        )
        said = (
            f"the prices are of a replica {'without' if logs else 'with'} a binary log of its own;"
            f" {each * 1e6:.3g} µs {'more' if logs else 'less'} for each of its events is taken"
        )
        return replace(self, prices=prices, low=low, high=high, assumed=(*self.assumed, said))

    @property
    def spread(self) -> float:
        """The relative error that nine of ten cells stay below when they are not part of the
        fit."""
        return self.residuals.unseen_p90

    def as_dict(self) -> dict[str, Any]:
        """As it is saved."""
        units = {
            name: _unit(self, name) for name in UNITS if self.high[name] > 0 or name in self.shown
        }
        return {
            "format": FORMAT,
            "server_version": self.server_version,
            "target": self.target,
            "machine": self.machine,
            "date": self.date,
            "settings": dict(self.settings),
            "cores": self.cores,
            "units": units,
            "shared": {
                name: {"processor": one.processor, "waiting": one.waiting}
                for name, one in self.shared.items()
            },
            "unsteadiness": self.unsteadiness,
            "unexplained": dict(self.unexplained),
            "residuals": {
                name: getattr(self.residuals, name) for name in Residuals.__dataclass_fields__
            },
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it as JSON, whole or not at all. Raises OSError."""
        write_whole(path, json.dumps(self.as_dict(), indent=1) + "\n")


def load_calibration(path: str | os.PathLike[str]) -> Calibration:
    """Raises InputError naming the file and what is wrong with it."""
    name = os.fspath(path)
    try:
        return _of(json.loads(Path(path).read_text()), name)
    except OSError as error:
        raise cannot_read(error, name, "calibration", HINT) from None
    except UnicodeDecodeError:
        raise InputError(
            "no calibration: it is not text in UTF-8", code=Code.CALIBRATION, file=name, hint=HINT
        ) from None
    except json.JSONDecodeError:
        raise InputError(
            "no calibration: it is not JSON", code=Code.CALIBRATION, file=name, hint=HINT
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = (
            f"it has no {error}"
            if isinstance(error, KeyError)
            else f"{error}" or type(error).__name__
        )
        raise InputError(
            f"no calibration: {what}", code=Code.CALIBRATION, file=name, hint=HINT
        ) from None


def default_calibration(rules_name: str) -> Calibration:
    """The one that ships for these rules, or for those that cost most alike."""
    folder = resources.files("applier.forecast") / "calibrations"
    known = {
        item.name.removesuffix(".json") for item in folder.iterdir() if item.name.endswith(".json")
    }
    nearest = {"5.6": "5.7", "8.0": "9.7", "8.4": "9.7"}
    name = rules_name if rules_name in known else nearest[rules_name]
    text = (folder / f"{name}.json").read_text()
    return replace(_of(json.loads(text), f"the default for {name}"), ships=True)


def _unit(calibration: Calibration, name: str) -> dict[str, float]:
    """A unit's price, as it is saved."""
    return {
        "seconds": calibration.prices[name],
        "low": calibration.low[name],
        "high": calibration.high[name],
    }


def _of(data: dict[str, Any], source: str) -> Calibration:
    form, units = data["format"], data["units"]
    if form != FORMAT and form not in LACKS:
        raise ValueError(
            f"it is of format {form}, and its prices do not fit the units of format {FORMAT}"
        )
    rules_name = rules_for(data["server_version"]).name
    concerns = {
        NO_WRITES: POOL_RULES[rules_name].most_written > 0,
        NO_HAND_OVER: commits_in_groups(rules_name),
        **dict.fromkeys((NO_CROWDING, NO_HANDING), bool(WORKER_RULES[rules_name].handed)),
        NO_REDO_WRITES: POOL_RULES[rules_name].waits_for_redo,
    }
    lacking = dict.fromkeys(
        what for older, what in LACKS.items() if form <= older and concerns.get(older, True)
    )
    assumed = tuple(f"the calibration is of format {form}: {what}" for what in lacking)
    if lacking:
        units = {name: one for name, one in units.items() if name not in SPLITS_OF_ALL_VISITS}
    new = [name for older, names in NEW_UNITS.items() if form <= older for name in names]
    if new:
        usual = default_calibration(rules_name)
        units = units | {name: _unit(usual, name) for name in new}
    unknown = [name for name in units if name not in UNITS]
    shared = {
        name: TimePrice(float(one["processor"]), float(one["waiting"]))
        for name, one in data.get("shared", {}).items()
        if name != PAGE_READ or form > UNMEASURED_READS
    }
    if form <= UNMEASURED_READS:
        shared[PAGE_READ] = default_calibration(rules_name).shared[PAGE_READ]
    if any(form <= at and concerns[at] for at in (NO_HAND_OVER, NO_HANDING)):
        ships = default_calibration(rules_name).shared
        shared |= {name: ships[name] for name in (*COORDINATOR, BESIDE, HAND_OVER)}
    if form <= NO_REDO_WRITES and concerns[NO_REDO_WRITES]:
        shared[PAGE_WRITE] = default_calibration(rules_name).shared[PAGE_WRITE]
    elif form <= NO_WRITES:
        shared[PAGE_WRITE] = TimePrice(0.0)
    unknown += [name for name in shared if name not in SHARED]
    if unknown:
        raise ValueError(f"unknown unit {unknown[0]!r}")
    if any(min(one.processor, one.waiting) < 0 for one in shared.values()):
        raise ValueError("prices must not be negative")
    if form <= ONE_FAR_PRICE and "far page" in units:
        far = {name: float(seconds) * OF_A_DOUBLING for name, seconds in units["far page"].items()}
        units = units | {"far page": far}
    prices = {
        which: Prices.of({name: float(unit[which]) for name, unit in units.items()})
        for which in ("seconds", "low", "high")
    }
    if min(prices["low"].seconds) < 0 or max(prices["seconds"].seconds) <= 0:
        raise ValueError("prices must not be negative, and not all zero")
    return Calibration(
        data["server_version"],
        prices["seconds"],
        prices["low"],
        prices["high"],
        Residuals(**data["residuals"]),
        data["target"],
        data["machine"],
        data["date"],
        data["settings"],
        source,
        SHARED | shared,
        int(data.get("cores", CORES)),
        assumed,
        float(data.get("unsteadiness", 0.0)),
        UNEXPLAINED | {name: float(one) for name, one in data.get("unexplained", {}).items()},
        frozenset(data["units"]) & UNITS.keys(),
    )
