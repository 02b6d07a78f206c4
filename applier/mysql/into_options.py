"""The options of a replay into a server, beside those of the log, and which of them clash."""

from __future__ import annotations

from dataclasses import dataclass

from applier.binlog.selection.filters import gtids_of
from applier.error_codes import Code
from applier.errors import UsageError
from applier.mysql.batches import DEFAULT_BATCH
from applier.mysql.positions.checkpoint import MOST_WORKERS
from applier.mysql.positions.reconnect import RECONNECT_SECONDS
from applier.options import ReplayOptions

MODES = ("native", "sql")
LONGEST_NAME = 64
"""Of a replay: it is a Channel_name in the position row."""


@dataclass(frozen=True)
class IntoOptions:
    """How a replay into a server goes, beside what of the log it replays."""

    apply: str = "native"
    batch: int = DEFAULT_BATCH
    workers: int | None = None
    """None: by the size of the log's transactions."""
    any_commit_order: bool = False
    gtid: bool = False
    force: bool = False
    dry_run: bool = False
    replay_id: str | None = None
    until_gtid: str | None = None
    schema: str | None = None
    password_file: str | None = None
    """Of a live server that is the schema."""
    default_database: str | None = None
    """Of tables to which the dump gives none."""
    with_routines: bool = False
    """The dump's triggers, events and routines are installed, too."""
    without_accounts: bool = False
    """Statements of the log about accounts, roles and privileges are left out, and counted."""
    disable_log_bin: bool = False
    """No session of the replay writes to the target's binary log."""
    reconnect_seconds: float = RECONNECT_SECONDS
    """So long a lost connection is tried again; 0: not at all."""


def check_options(options: ReplayOptions, into: IntoOptions) -> None:
    """Raises UsageError for options that only a replay into memory has, or that go with the other
    mode."""
    if into.apply not in MODES:
        raise UsageError(
            f"--apply: {into.apply!r} is neither native nor sql", code=Code.OPTION_VALUE
        )
    if into.workers is not None and not 1 <= into.workers <= MOST_WORKERS:
        raise UsageError(
            f"--workers: {into.workers} is not between 1 and {MOST_WORKERS}", code=Code.OPTION_VALUE
        )
    if into.replay_id is not None and len(into.replay_id) > LONGEST_NAME:
        raise UsageError(
            f"--replay-id: {len(into.replay_id)} characters are more than {LONGEST_NAME}",
            code=Code.OPTION_VALUE,
        )
    if into.gtid and into.disable_log_bin:
        raise UsageError(
            "--gtid and --disable-log-bin: "
            "the target keeps the GTIDs of transactions in its binary log",
            code=Code.OPTIONS_CLASH,
            hint="leave one of them out",
        )
    gtids_of("--until-gtid", into.until_gtid)
    if into.apply == "native" and options.conversions:
        raise UsageError(
            "--type-conversions: the target's own slave_type_conversions holds",
            code=Code.OPTIONS_CLASH,
            hint="SET GLOBAL it there, or use --apply sql",
        )
    if options.lower_case_names:
        raise UsageError(
            "--lower-case-table-names: the target's own lower_case_table_names holds",
            code=Code.OPTIONS_CLASH,
            hint="leave it out",
        )
    if options.server is not None or options.row_search is not None:
        raise UsageError(
            "--server and --row-search: a real server follows its own rules",
            code=Code.OPTIONS_CLASH,
            hint="leave them out, or replay into memory",
        )
