"""The replica as it is: every setting of a server and its machine that weighs on its time, its
value, and who said so.

In this order: an option of the user's; a live replica; the machine that this runs on or that the
prices were measured on; the default of the replica's version; what is assumed. Defaults are those
of the servers' manuals, checked on 5.6.24, 5.7.29, 9.7.4 and MariaDB 10.11.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from applier.error_codes import Code
from applier.errors import UsageError
from applier.forecast.prices.calibration import commit_syncs
from applier.options import row_search_text
from applier.replica.scheduling import MOST_WORKERS
from applier.replica.scheduling import rules_for as scheduling_of
from applier.spelling import did_you_mean
from applier.timing.work_clock import DEPENDENCIES
from lookup.versions import ServerVersion, parse_row_search, rules_for

OPTION, LIVE, HERE = "option", "live replica", "this machine"
PRICES, DEFAULT, ASSUMED = "calibration", "default of {}", "assumed"
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Condition:
    """One setting. `value` None: there is none (no limit). `source`: who said so, in words."""

    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class SettingKind:
    """What a setting is. `variables`: its names on servers, today's first; `read` takes a server's
    text for it and raises ValueError. `shown` is its text for people. `needs`: a variable without
    which the setting is as if it were OFF. `times`: one that it is multiplied by. `some`: versions
    that do not have it by default do not have it at all."""

    meaning: str
    variables: tuple[str, ...] = ()
    read: Callable[[str], Any] = int
    shown: Callable[[Any], str] = str
    needs: str = ""
    times: str = ""
    some: bool = False


def size(text: str) -> int:
    """Bytes: "768M", "8G", "134217728". Raises ValueError."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([kmgt]?)(i?b)?", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size, write it as 768M or 8G")
    found = int(float(match[1]) * 1024 ** " kmgt".index(match[2] or " "))
    if found <= 0:
        raise ValueError("it must be more than 0")
    return found


def span(text: str) -> float:
    """Seconds: "500us", "0.5ms", "25µs". Raises ValueError."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*(us|µs|ms|s)", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not a time, write it as 500us or 0.5ms")
    return float(match[1]) * {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}[match[2]]


def _on(text: str) -> bool:
    if text.upper() not in ("ON", "OFF", "1", "0"):
        raise ValueError(f"{text!r} is neither ON nor OFF")
    return text.upper() in ("ON", "1")


def _parallel(text: str) -> str:
    known = {name.lower(): name for name in DEPENDENCIES}
    if text.lower() not in known:
        raise ValueError(f"{text!r} is none of {', '.join(DEPENDENCIES)}")
    return known[text.lower()]


def _searches(text: str) -> str:
    parse_row_search(text)
    return text.upper()


def _shown_size(value: int) -> str:
    return f"{value / 1024**3:.3g} GiB" if value >= 1024**3 else f"{value / MIB:.3g} MiB"


_SPANS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))


def _shown_span(value: float) -> str:
    rounded = float(f"{value:.3g}")
    unit, seconds = next((one for one in _SPANS if rounded >= one[1]), _SPANS[-1])
    return f"{value / seconds:.3g} {unit}"


KINDS: dict[str, SettingKind] = {
    "workers": SettingKind(
        "applier workers",
        ("replica_parallel_workers", "slave_parallel_workers", "slave_parallel_threads"),
    ),
    "parallel_type": SettingKind(
        "how transactions are handed out",
        ("replica_parallel_type", "slave_parallel_type", "slave_parallel_mode"),
        _parallel,
    ),
    "row_search": SettingKind(
        "how rows are found", ("slave_rows_search_algorithms",), _searches, some=True
    ),
    "preserve_commit_order": SettingKind(
        "commits in the log's order",
        ("replica_preserve_commit_order", "slave_preserve_commit_order"),
        _on,
    ),
    "dependency_tracking": SettingKind(
        "what the log ties together", ("binlog_transaction_dependency_tracking",), str
    ),
    "innodb_flush_log_at_trx_commit": SettingKind(
        "redo log synced at a commit", ("innodb_flush_log_at_trx_commit",)
    ),
    "sync_binlog": SettingKind("commits for a sync of the binary log", ("sync_binlog",)),
    "log_replica_updates": SettingKind(
        "a binary log of its own",
        ("log_replica_updates", "log_slave_updates"),
        _on,
        needs="log_bin",
    ),
    "buffer_pool": SettingKind("buffer pool", ("innodb_buffer_pool_size",), size, _shown_size),
    "redo_log": SettingKind(
        "redo log",
        ("innodb_log_file_size",),
        size,
        _shown_size,
        times="innodb_log_files_in_group",
        some=True,
    ),
    "table_open_cache": SettingKind("tables that are kept open", ("table_open_cache",)),
    "table_open_cache_instances": SettingKind(
        "parts of table_open_cache, of which a worker uses one",
        ("table_open_cache_instances",),
        some=True,
    ),
    "cores": SettingKind("cores"),
    "read_latency": SettingKind("a read of a page", (), span, _shown_span),
    "sync_latency": SettingKind("a sync of a log at a commit", (), span, _shown_span),
    "iops": SettingKind("reads a second", (), float, lambda value: f"{value:,.0f}"),
}
"""Name in --json and of the option -> what it is."""

_CLASSIC = {"log_replica_updates": False, "sync_binlog": 0, "dependency_tracking": "COMMIT_ORDER"}
_OLD = {**_CLASSIC, "redo_log": 2 * 48 * MIB, "table_open_cache": 2_000}
_NEW = {
    "log_replica_updates": True,
    "sync_binlog": 1,
    "table_open_cache": 4_000,
    "table_open_cache_instances": 16,
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "5.6": {**_OLD, "table_open_cache_instances": 1},
    "5.7": {**_OLD, "sync_binlog": 1, "table_open_cache_instances": 16},
    "8.0": {**_NEW, "dependency_tracking": "COMMIT_ORDER"},
    "8.4": {**_NEW, "dependency_tracking": "WRITESET"},
    "9.7": {**_NEW, "dependency_tracking": "WRITESET"},
    "mariadb": {**_CLASSIC, "preserve_commit_order": True, "table_open_cache": 2_000},
}
"""Row of `lookup.versions.RULES` -> its defaults; those of workers are `scheduling.RULES`'."""
BEFORE: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {
    "8.0": (
        (8, 0, 27),
        {"workers": 0, "parallel_type": "DATABASE", "preserve_commit_order": False},
    ),
    "mariadb": ((10, 5, 1), {"parallel_type": "conservative"}),
}
"""Row -> a release, and what earlier ones of the series had."""
LEAST_BUFFER_POOL_BYTES = MIB
"""No server has less; MySQL makes 5 MiB of it (innodb_buffer_pool_size)."""
LEAST_REDO_LOG_BYTES = 2 * MIB
"""Two files of 1 MiB (innodb_log_file_size of 5.6; 5.7 asks for 4)."""
LEAST = {
    "workers": 0,
    "cores": 1,
    "sync_binlog": 0,
    "table_open_cache": 1,
    "table_open_cache_instances": 1,
}
EVERYWHERE = {"innodb_flush_log_at_trx_commit": 1, "buffer_pool": 128 * MIB}


def defaults(version: str) -> dict[str, Any]:
    """The settings of a server of this version that nobody touched. Raises ValueError."""
    asked, finding = ServerVersion.parse(version), rules_for(version)
    rules, name = scheduling_of(version), finding.name
    chosen = {"row_search": row_search_text(finding, None)} if finding.row_search_selectable else {}
    found = {
        **chosen,
        "workers": rules.workers,
        "parallel_type": rules.parallel_type,
        "preserve_commit_order": rules.preserve_commit_order,
        **EVERYWHERE,
        **DEFAULTS[name],
    }
    release, before = BEFORE.get(name, ((0, 0, 0), {}))
    return found | (before if asked.release < release and version != name else {})


@dataclass(frozen=True)
class Live:
    """What a live replica says of itself: variables by name, and whether it runs on this machine.

    `refused`: why nothing, or a part, could be read.
    """

    version: str
    variables: Mapping[str, str]
    is_here: bool = False
    source_id: int | None = None
    """server_id of its source."""
    read_seconds: float | None = None
    """Of a read of its data files, on average since its start."""
    sync_seconds: float | None = None
    """Of a sync of its logs at a commit, likewise."""
    refused: str = ""


@dataclass(frozen=True)
class Conditions:
    """All of them, by the names of KINDS, and what could not be taken as it was said."""

    values: Mapping[str, Condition]
    doubts: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def get(self, name: str, otherwise: Any) -> Any:
        """A setting that not all versions have."""
        return self.values[name].value if name in self.values else otherwise

    @property
    def workers(self) -> int:
        """At least one: without workers the applier's one thread does it."""
        return max(int(self["workers"]), 1)

    @property
    def syncs(self) -> float:
        """Syncs of a commit that waits for nobody: of the redo log, and of the binary log."""
        return commit_syncs(
            self["innodb_flush_log_at_trx_commit"],
            self["sync_binlog"],
            logs=self["log_replica_updates"],
        )

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """For JSON."""
        return {name: {"value": one.value, "from": one.source} for name, one in self.values.items()}

    def sentence(self) -> str:
        """For people: all of them, those of one source together."""
        by_source: dict[str, list[str]] = {}
        for name, one in self.values.items():
            if one.value is not None:
                by_source.setdefault(one.source, []).append(_words(name, one.value))
        return "; ".join(f"{', '.join(words)} ({source})" for source, words in by_source.items())


def _words(name: str, value: Any) -> str:
    kind = KINDS[name]
    if isinstance(value, bool):
        return f"{name} {'ON' if value else 'OFF'}"
    return f"{name} {kind.shown(value)}"


def conditions(
    version: str,
    given: Mapping[str, Any],
    live: Live | None = None,
    *,
    measured: Mapping[str, Any] | None = None,
    cores_here: int | None = None,
) -> Conditions:
    """Each setting from whoever knows it best. `given`: options by the names of KINDS, None for
    those that are not; `measured`: what the prices imply (cores, read_latency, sync_latency).

    Raises UsageError for an option that is not known or out of its range.
    """
    for name in given:
        if name not in KINDS:
            hint = did_you_mean(name, KINDS) or f"one of {', '.join(KINDS)}"
            raise UsageError(f"setting {name!r} is not known", code=Code.OPTION_VALUE, hint=hint)
    found: dict[str, Condition] = {}
    doubts = [live.refused] if live is not None and live.refused else []
    usual, source = defaults(version), DEFAULT.format(rules_for(version).name)
    for name, kind in KINDS.items():
        if kind.some and name not in usual:
            _check_lacking(name, given.get(name), version)
            continue
        option = given.get(name)
        if option is not None:
            found[name] = Condition(_checked(name, _given(name, option)), OPTION)
            if name == "parallel_type":
                _check_parallel(option, version)
            if name == "preserve_commit_order" and option:
                _check_commit_order(version)
            continue
        told, doubt = (None, None) if live is None else _told(name, kind, live)
        doubts += [doubt] if doubt else []
        if told is not None:
            found[name] = Condition(told, LIVE)
        elif name == "cores" and live is not None and live.is_here and cores_here:
            found[name] = Condition(cores_here, HERE)
        elif measured is not None and name in measured:
            found[name] = Condition(measured[name], PRICES)
        elif name in usual:
            found[name] = Condition(usual[name], source)
        else:
            found[name] = Condition(None, ASSUMED)
    return Conditions(found, tuple(doubts))


def _told(name: str, kind: SettingKind, live: Live) -> tuple[Any, str | None]:
    """What the live replica says of a setting, and what is wrong with it."""
    timed = {"read_latency": live.read_seconds, "sync_latency": live.sync_seconds}
    if name in timed:
        return timed[name], None
    for variable in kind.variables:
        text = live.variables.get(variable)
        if text is None:
            continue
        try:
            if not _on(live.variables.get(kind.needs, "ON")):
                return False, None
            found = kind.read(text)
            times = int(live.variables.get(kind.times, "1"))
            return _checked(name, found * times if times > 1 else found), None
        except (ValueError, UsageError) as error:
            return None, f"the replica's {variable}: {error}; the version's default is assumed"
    return None, None


def _check_parallel(value: str, version: str) -> None:
    """Raises UsageError for a mode that this version does not have."""
    known = scheduling_of(version).parallel_types
    if value not in known:
        name = rules_for(version).name
        raise UsageError(
            f"--parallel-type: {name} has no {value}",
            code=Code.OPTION_VALUE,
            hint=f"it has {', '.join(sorted(known))}",
        )


def _check_lacking(name: str, value: Any, version: str) -> None:
    """Raises UsageError for a setting that tells nothing of a replica of this version."""
    if value is not None:
        raise UsageError(
            f"{_option(name)}: nothing of a forecast depends on it with {rules_for(version).name}",
            code=Code.OPTION_VALUE,
            hint="remove it",
        )


def _check_commit_order(version: str) -> None:
    """Raises UsageError for a version without the variable."""
    if not scheduling_of(version).has_commit_order:
        raise UsageError(
            f"--preserve-commit-order: {rules_for(version).name} has no preserve_commit_order",
            code=Code.OPTION_VALUE,
            hint="remove it",
        )


def _given(name: str, value: Any) -> Any:
    """A caller's value of the setting's type; a text is read as a server's. Raises UsageError."""
    read = KINDS[name].read
    words = "True or False" if read is _on else "a number"
    try:
        if isinstance(value, str):
            return read(value)
        if isinstance(value, bool) != (read is _on) or not isinstance(value, numbers.Real):
            raise ValueError(f"{value!r} is not {words}")
    except ValueError as error:
        why = f"{value!r} is not {words}" if read in (int, float) else str(error)
        raise UsageError(
            f"{_option(name)}: {why}", code=Code.OPTION_VALUE, hint="write it as the server does"
        ) from None
    return value


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _checked(name: str, value: Any) -> Any:
    """A value within its range. Raises UsageError."""
    least = LEAST.get(name)
    option = _option(name)
    if name == "redo_log" and not LEAST_REDO_LOG_BYTES <= value < math.inf:
        raise UsageError(
            f"{option}: no server has a redo log of {value:,.0f} bytes",
            code=Code.OPTION_VALUE,
            hint=f"from {_shown_size(LEAST_REDO_LOG_BYTES)} on, all of its files together",
        )
    if name == "buffer_pool" and not LEAST_BUFFER_POOL_BYTES <= value < math.inf:
        raise UsageError(
            f"{option}: no server has a buffer pool of {value:,.0f} bytes",
            code=Code.OPTION_VALUE,
            hint=f"from {_shown_size(LEAST_BUFFER_POOL_BYTES)} on, with its unit: 768M, 8G",
        )
    positive = name in ("iops", "read_latency", "sync_latency")
    most = MOST_WORKERS if name == "workers" else math.inf
    if (positive and not 0 < value < math.inf) or (
        least is not None and not least <= value <= most
    ):
        bounds = "more than 0" if positive else f"{least} or more"
        if most < math.inf:
            bounds = f"from {least} to {most}"
        raise UsageError(f"{option}: {value} is not {bounds}", code=Code.OPTION_VALUE)
    if name == "innodb_flush_log_at_trx_commit" and value not in (0, 1, 2):
        raise UsageError(f"{option}: {value} is none of 0, 1, 2", code=Code.OPTION_VALUE)
    return value
