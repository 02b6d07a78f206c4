"""The options of a replay, checked before any byte is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from applier.arguments import at_least
from applier.binlog.header import FIRST_EVENT
from applier.binlog.selection.filters import Moment, TimeRange, gtids_of
from applier.binlog.selection.name_case import lower_case
from applier.binlog.selection.table_filter import EVERYTHING, FilterTally, TableFilter
from applier.error_codes import Code
from applier.errors import UsageError
from applier.server_versions import asked_rules, found_rules, remark
from checkpoints.gtid import GtidSet, MariadbGtidSet
from lookup.versions import OPTIONS, ServerRules, parse_row_search

EXEC_MODES = ("strict", "idempotent")
DDL_EXIST_ERRORS = (1007, 1050, 1061, 1068, 1054, 1146, 1060, 1008, 1051, 1091)
"""What `ddl_exist_errors` stands for (replica_skip_errors, sql/rpl_replica.cc 9.7)."""


@dataclass(frozen=True)
class ReplayOptions:
    """What of a log is replayed, and under whose rules; `parse_options` makes it of an operator's
    words.

    `server`: whose rules hold, None for the log's own. `row_search`: slave_rows_search_algorithms,
    None for the version's default. `idempotent`: slave_exec_mode. `skip_errors`: slave_skip_errors,
    None stands for "all". `conversions`: slave_type_conversions. `lower_case_names`:
    lower_case_table_names is 1. `only`: the tables that are
    replayed, by their names in the log. `rewrite`: old database -> new one. Positions are bytes:
    the first counts in the first file, the last in the last file. Times are seconds since 1970.
    """

    server: str | None = None
    row_search: frozenset[str] | None = None
    idempotent: bool = False
    skip_errors: frozenset[int] | None = frozenset()
    only: TableFilter = EVERYTHING
    rewrite: dict[str, str] = field(default_factory=dict)
    conversions: frozenset[str] = frozenset()
    lower_case_names: bool = False
    start_position: int | None = None
    stop_position: int | None = None
    start_time: float | None = None
    stop_time: float | None = None
    include_gtids: GtidSet | MariadbGtidSet | None = None
    exclude_gtids: GtidSet | MariadbGtidSet | None = None
    verify_checksum: bool = True

    def skips(self, number: int) -> bool:
        """Whether the replay goes on behind an error of this number."""
        return self.skip_errors is None or number in self.skip_errors

    def wants(self, database: str, table: str) -> bool:
        """Whether rows of the table are replayed (its name in the log)."""
        return self.only.wants_table(database, table)

    def times(self) -> TimeRange:
        """The times that are replayed, for one run."""
        return TimeRange(self.start_time, self.stop_time)

    def tally(self) -> FilterTally:
        """The same question for one run, which remembers what was asked."""
        return FilterTally(self.only, self.rewrite)

    def rules(self, server_version: str) -> ServerRules:
        """Whose rules hold for a log of this server version: --server's, or its own. Raises
        UsageError, InputError for an unknown version."""
        return (
            found_rules(server_version, "the log")
            if self.server is None
            else asked_rules(self.server)
        )

    def version_remark(self, server_version: str) -> str | None:
        """What is to be said of these rules: that the version is older or newer than all that are
        known."""
        return (
            remark(server_version, "the log")
            if self.server is None
            else remark(self.server, "--server")
        )


def parse_options(
    *,
    server: str | None = None,
    row_search: str | None = None,
    exec_mode: str = "strict",
    skip_errors: str | int | Iterable[int] = "",
    database: str | Iterable[str] = (),
    table: str | Iterable[str] = (),
    exclude_database: str | Iterable[str] = (),
    exclude_table: str | Iterable[str] = (),
    rewrite_db: str | Iterable[str] | Mapping[str, str] = (),
    type_conversions: str = "",
    lower_case_table_names: int | None = None,
    start_position: int | None = None,
    stop_position: int | None = None,
    start_datetime: Moment = None,
    stop_datetime: Moment = None,
    include_gtids: str | None = None,
    exclude_gtids: str | None = None,
    verify_checksum: bool = True,
) -> ReplayOptions:
    """Options as they are given on the command line or to `applier.replay`. Raises UsageError
    naming the one that is wrong."""
    if server is not None:
        asked_rules(server)
    if exec_mode not in EXEC_MODES:
        raise UsageError(
            f"--exec-mode: {exec_mode!r} is neither strict nor idempotent", code=Code.OPTION_VALUE
        )
    at_least(FIRST_EVENT, start_position=start_position, stop_position=stop_position)
    from applier.binlog.images.matching import CONVERSIONS

    conversions = frozenset(
        word.strip().upper() for word in type_conversions.split(",") if word.strip()
    )
    for wrong in sorted(conversions - CONVERSIONS):
        raise UsageError(
            f"--type-conversions: {wrong!r} is not a type conversion",
            code=Code.OPTION_VALUE,
            hint=f"give a list of {', '.join(sorted(CONVERSIONS))}",
        )
    if lower_case_table_names not in (None, 0, 1):
        raise UsageError(
            f"--lower-case-table-names: {lower_case_table_names!r} is neither 0 nor 1",
            code=Code.OPTION_VALUE,
            hint="give 1 for a log of a server with 1 or 2",
        )
    lower_case_names = bool(lower_case_table_names)
    only = TableFilter.of(database, table, exclude_database, exclude_table)
    times = TimeRange.of(start_datetime, stop_datetime)
    return ReplayOptions(
        server=server,
        row_search=row_search_of(row_search, server),
        idempotent=exec_mode == "idempotent",
        skip_errors=parse_skip_errors(skip_errors),
        only=only.in_lower_case() if lower_case_names else only,
        rewrite=_rewrite(rewrite_db, lower_case_names=lower_case_names),
        conversions=conversions,
        lower_case_names=lower_case_names,
        start_position=start_position,
        stop_position=stop_position,
        start_time=times.start,
        stop_time=times.stop,
        include_gtids=gtids_of("--include-gtids", include_gtids),
        exclude_gtids=gtids_of("--exclude-gtids", exclude_gtids),
        verify_checksum=verify_checksum,
    )


def row_search_of(text: str | None, server: str | None) -> frozenset[str] | None:
    """--row-search, which not every --server lets choose; None when it is not given. Raises
    UsageError."""
    if text is None:
        return None
    try:
        options = parse_row_search(text)
    except ValueError as error:
        raise UsageError(f"--row-search: {error}", code=Code.OPTION_VALUE) from None
    rules = None if server is None else asked_rules(server)
    if rules is not None and not rules.row_search_selectable and options != rules.row_search:
        raise UsageError(
            f"--row-search: {server} has no slave_rows_search_algorithms",
            code=Code.VERSION_LACKS,
            hint="choose --server 5.6, 5.7 or 8.0, or leave --row-search out",
        )
    return options


def row_search_text(rules: ServerRules, row_search: frozenset[str] | None) -> str:
    """How rows are found, in the words of the summary."""
    if rules.find_row:
        return "best key, one row at a time"
    chosen = row_search if row_search is not None else rules.row_search
    return ",".join(
        name
        for name in ("INDEX_SCAN", "TABLE_SCAN", "HASH_SCAN")
        if name in chosen and name in OPTIONS
    )


def parse_skip_errors(value: str | int | Iterable[int]) -> frozenset[int] | None:
    """replica_skip_errors: "off", "all", "ddl_exist_errors" and numbers, joined by commas. Raises
    UsageError."""
    if not isinstance(value, str | int):
        return frozenset(int(number) for number in value)
    words = [word.strip().lower() for word in str(value).split(",") if word.strip()]
    if words == ["all"]:
        return None
    numbers: set[int] = set()
    for word in words:
        if word == "ddl_exist_errors":
            numbers.update(DDL_EXIST_ERRORS)
        elif word.isdigit():
            numbers.add(int(word))
        elif word != "off":
            raise UsageError(
                f"--skip-errors: {word!r} is not an error number",
                code=Code.OPTION_VALUE,
                hint='give a list of numbers, "all" or "ddl_exist_errors"',
            )
    return frozenset(numbers)


def _rewrite(
    value: str | Iterable[str] | Mapping[str, str], *, lower_case_names: bool
) -> dict[str, str]:
    many = [value] if isinstance(value, str) else value
    pairs = (
        value.items()
        if isinstance(value, Mapping)
        else [text.replace("->", ":").partition(":")[::2] for text in many]
    )
    rules = dict(pairs)
    for old, new in rules.items():
        if not old or not new:
            raise UsageError(
                f"--rewrite-db: {f'{old}:{new}' if new else old!r} is not FROM:TO",
                code=Code.OPTION_VALUE,
                hint="write it as --rewrite-db FROM:TO",
            )
    if lower_case_names:
        return {lower_case(old): lower_case(new) for old, new in rules.items()}
    return rules
