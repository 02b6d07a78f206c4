"""`binlag recover DIR`: what a replica does at its next start with the files that a crash left."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from applier.cli.notes import note
from applier.cli.parameters.options import DEFAULT_DATABASE_HELP, INPUT, check_inputs, rules_of
from applier.error_codes import Code
from applier.errors import BinlagError, InputError, UsageError
from applier.replica.scheduling import DATABASE, LOGICAL_CLOCK, MODES, MOST_WORKERS
from applier.spelling import did_you_mean

if TYPE_CHECKING:
    from applier.replica.configuration import ReplicaConfiguration
    from applier.replica.restarts.info_dump import InfoDump
    from applier.replica.restarts.remains import Remains
    from applier.replica.restarts.restart import Restart, Seen
    from applier.replica.versions import ReplicaRules
    from checkpoints.gtid import AnyGtidSet
    from checkpoints.info import RelayLogInfo, SourceInfo

MEANING = {
    "consistent": "The replica goes on where it was: nothing is lost, nothing is executed twice.",
    "stops": "The replica starts and stops with an error.",
    "cannot start": "START REPLICA fails.",
    "re-executes": "The replica executes transactions a second time.",
    "loses": "The replica passes over transactions that it never executed.",
}
"""Verdict -> what it means."""


@click.command(name="recover", short_help="Say what a crashed replica does at its next start.")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--info",
    type=INPUT,
    metavar="FILE.sql",
    help=(
        "Rows of mysql.slave_relay_log_info, slave_master_info and slave_worker_info (mysqldump);"
        " MariaDB: of gtid_slave_pos."
    ),
)
@click.option(
    "--source",
    "sources",
    type=INPUT,
    multiple=True,
    metavar="FILE",
    help="A binary log of the source, oldest first (repeatable).",
)
@click.option(
    "--schema",
    type=INPUT,
    metavar="DUMP",
    help="The replica's tables as the crash left them: errors of rows are found, too.",
)
@click.option("--default-database", metavar="D", help=DEFAULT_DATABASE_HELP)
@click.option(
    "--server", metavar="VERSION", help="The replica's version. [default: as its relay logs say]"
)
@click.option(
    "--recovery/--no-recovery",
    default=None,
    help="relay_log_recovery of the next start. [default: my.cnf's, else off]",
)
@click.option(
    "--auto-position/--no-auto-position",
    default=None,
    help=(
        "SOURCE_AUTO_POSITION; MariaDB: MASTER_USE_GTID. [default: as the receiver's record says]"
    ),
)
@click.option(
    "--gtid-mode/--no-gtid-mode",
    default=None,
    help="[default: my.cnf's, else as the relay logs show]",
)
@click.option(
    "--workers",
    type=click.IntRange(0, MOST_WORKERS),
    metavar="N",
    help=(
        "replica_parallel_workers, or slave_parallel_threads of MariaDB. [default: my.cnf's, else"
        " as last time]"
    ),
)
@click.option(
    "--parallel-type",
    type=click.Choice([LOGICAL_CLOCK, DATABASE, *MODES], case_sensitive=False),
    help="How workers share the work up to 8.0, or slave_parallel_mode of MariaDB.",
)
@click.option(
    "--info-repository",
    type=click.Choice(["FILE", "TABLE"], case_sensitive=False),
    help="[default: as the files show]",
)
@click.option(
    "--channel",
    metavar="NAME",
    help='Of several sources; "" is the default channel. [default: the only one of the dump]',
)
@click.option(
    "--executed-gtids",
    metavar="SET",
    help=(
        "gtid_executed after the crash; MariaDB: gtid_slave_pos. [default: the replica's binary"
        " logs or the dump tell]"
    ),
)
@click.option(
    "--prepared",
    multiple=True,
    metavar="XID",
    help='A row of XA RECOVER after the crash; "" for no row (repeatable).',
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other option of the server, as in my.cnf (repeatable).",
)
@click.option(
    "--my-cnf", type=click.Path(dir_okay=False), metavar="FILE", help="[default: my.cnf in DIR]"
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object: received, applied, gtids, error, verdict and more.",
)
def command(
    folder: str,
    info: str | None,
    sources: tuple[str, ...],
    schema: str | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Say what a replica does at its next start with the files that a crash left in DIR.

    DIR holds the relay logs, their index, and info files where the server keeps its records in
    files: copies, or the data directory itself. The emulated replica is started on them in memory,
    receives what --source has, and applies it. Nothing is written.

    Without --schema no row is looked at: an error such as 1062 is not foreseen, but what is
    executed twice is counted. Exit code 0: the replica goes on and loses nothing; 1: it does not.
    """
    from applier.replica.restarts.info_dump import chosen_channel, read_info_dump
    from applier.replica.restarts.remains import read_remains
    from applier.replica.restarts.restart import restart
    from applier.replica.source import BinlogFiles
    from applier.replica.versions import VERSIONS

    check_inputs(sources, schema, info)
    option_path = Path(asked["my_cnf"]) if asked["my_cnf"] else None
    if option_path is not None and not option_path.is_file():
        raise InputError("there is no such file", code=Code.CANNOT_READ, file=str(option_path))
    if asked["server"] is not None:
        rules_of(asked["server"], offered=VERSIONS)
    relay_log = _settings(asked["settings"]).get("relay_log")
    remains = read_remains(Path(folder), None, option_path, relay_log)
    version = asked["server"] or remains.server
    if version is None:
        raise UsageError(
            "no relay log says which version wrote it",
            code=Code.OPTION_MISSING,
            hint="give the replica's version with --server",
        )
    dump = read_info_dump(info, version) if info is not None else None
    channel = asked["channel"] = chosen_channel(dump, asked["channel"])
    if dump is not None:
        dump = dump.of_channel(channel)
        remains = read_remains(Path(folder), dump, option_path, relay_log, channel)
    configuration = _configuration(version, remains, **asked)
    if info is None:
        remains.check_records(configuration)
    source = BinlogFiles.read(sources) if sources else None
    found = restart(remains, configuration, source, _data(dump, schema, configuration, **asked))
    lines = [json.dumps(as_dict(found, remains), indent=2)] if as_json else text(found)
    for line in lines:
        click.echo(line)
    for said in _notes(found, schema=schema is not None, source=source is not None):
        note(said)
    return int(found.outcome != "consistent")


def _configuration(version: str, remains: Remains, **asked: Any) -> ReplicaConfiguration:
    """What is asked for, else what the option file says, else what the files show."""
    from applier.replica.configuration import FILE, TABLE, ReplicaConfiguration
    from applier.replica.restarts.option_file import configured
    from applier.replica.versions import replica_rules
    from checkpoints.info import RelayLogInfo, SourceInfo

    rules, channel = replica_rules(version), asked["channel"]
    options = configured(remains.options) | configured(_settings(asked["settings"]))
    source = remains.record(SourceInfo, rules.name)
    applied = remains.record(RelayLogInfo, rules.name)
    for record, option in (
        (RelayLogInfo, "relay_log_info_repository"),
        (SourceInfo, "master_info_repository"),
    ):
        if record.fields.table in remains.rows:
            options.setdefault(option, TABLE)
        elif record.fields.file_name in remains.files:
            options.setdefault(option, FILE)
        if asked["info_repository"]:
            options[option] = asked["info_repository"]
    chosen = {
        "relay_log_recovery": asked["recovery"],
        "gtid_mode": asked["gtid_mode"],
        "workers": asked["workers"],
        "parallel_type": asked["parallel_type"],
    }
    options |= {name: value for name, value in chosen.items() if value is not None}
    auto = asked["auto_position"]
    options["auto_position"] = (
        auto if auto is not None else source is not None and source.asks_by_gtid
    )
    if rules.by_domains and auto is not None and source and auto is not source.asks_by_gtid:
        raise UsageError(
            f"--{'' if auto else 'no-'}auto-position: master.info says using_gtid"
            f" {source.using_gtid}",
            code=Code.OPTIONS_CLASH,
            hint="leave it out: only CHANGE MASTER changes it",
        )
    if not rules.by_domains:
        options.setdefault("gtid_mode", options["auto_position"] or remains.has_gtids)
    elif auto is None and source is not None:
        options["using_gtid"] = source.using_gtid
    if applied is not None and applied.number_of_workers:
        options.setdefault("workers", applied.number_of_workers)
    if options.get("parallel_type") == "DATABASE" and not options.get("preserve_commit_order"):
        options["preserve_commit_order"] = False
    return ReplicaConfiguration(
        rules.name,
        server_version=_release(version, remains, rules),
        channel=channel,
        **options | {"relay_log": remains.relay_log.removesuffix(f"-{channel.lower()}")},
    )


def _release(version: str, remains: Remains, rules: ReplicaRules) -> str | None:
    """What the replica's next relay log calls its server, for readers know the format by all three
    numbers: `version` where it has them, else that of the relay logs; None where those are of
    another series."""
    from applier.binlog.header import version_number
    from applier.replica.versions import replica_rules

    if version_number(version):
        return version
    own = remains.server
    return own if own is not None and replica_rules(own).name == rules.name else None


def _settings(given: Sequence[str]) -> dict[str, str]:
    from applier.replica.restarts.option_file import KNOWN, is_known

    found = {}
    for setting in given:
        name, _equals, value = setting.partition("=")
        if not is_known(name):
            hint = did_you_mean(name.replace("-", "_"), KNOWN) or "leave it out"
            raise UsageError(
                f"--set {setting}: this option does not matter here",
                code=Code.OPTION_VALUE,
                hint=hint,
            )
        found[name.replace("-", "_")] = value
    return found


def _data(
    dump: InfoDump | None, schema: str | None, configuration: ReplicaConfiguration, **asked: Any
) -> Any:
    from applier.binlog.xa import recovered_xid
    from applier.replica.restarts.restart import Data
    from applier.schema_source import load_schema
    from checkpoints.gtid import GtidError, GtidSet, MariadbGtidSet

    kind = MariadbGtidSet if configuration.rules.by_domains else GtidSet
    try:
        given = kind(asked["executed_gtids"]) if asked["executed_gtids"] is not None else None
    except GtidError as error:
        raise UsageError(f"--executed-gtids: {error}", code=Code.GTID_SET) from None
    executed = given if given is not None else dump.executed if dump is not None else None
    try:
        prepared = (
            tuple(recovered_xid(row) for row in asked["prepared"] if row)
            if asked["prepared"]
            else None
        )
    except ValueError as error:
        raise UsageError(
            f"--prepared: {error}",
            code=Code.OPTION_VALUE,
            hint="give a row of XA RECOVER, or its data alone",
        ) from None
    return Data(
        executed,
        prepared,
        (
            load_schema(
                schema,
                server=configuration.version,
                default_database=asked["default_database"],
                note=note,
            )
            if schema is not None
            else None
        ),
    )


def as_dict(found: Restart, remains: Remains) -> dict[str, Any]:
    """What --json prints."""
    from applier.replica.restarts.mend import statements

    return {
        "server": found.configuration.server_version,
        "server_uuid": remains.server_uuid,
        "options": _options(found.configuration),
        **_stand(found.at_start),
        "error": _error(found),
        "verdict": str(found.outcome),
        "end": _stand(found.at_end) | {"applied_at_most": _applied(found.at_most)},
        "gaps": list(found.gaps),
        "prepared": list(found.prepared),
        "again": [_stretch(one) for one in found.again],
        "lost": [_stretch(one) for one in found.lost],
        "commands": statements(found),
    }


def _options(configuration: ReplicaConfiguration) -> dict[str, Any]:
    names = (
        "relay_log_recovery gtid_mode auto_position workers parallel_type preserve_commit_order"
        " relay_log_info_repository master_info_repository"
    )
    if configuration.rules.by_domains:
        names = "relay_log_recovery using_gtid workers parallel_type"
    return {name: getattr(configuration, name) for name in names.split()}


def _stand(seen: Seen) -> dict[str, Any]:
    return {
        "received": _received(seen.positions.received),
        "applied": _applied(seen.positions.applied),
        "gtids": {"retrieved": str(seen.retrieved), "executed": str(seen.executed)},
    }


def _received(info: SourceInfo | None) -> dict[str, Any] | None:
    return (
        None
        if info is None
        else {"source_log": info.source_log_name, "source_log_pos": info.source_log_pos}
    )


def _applied(info: RelayLogInfo | None) -> dict[str, Any] | None:
    if info is None:
        return None
    return {
        "relay_log": info.relay_log_name.removeprefix("./"),
        "relay_log_pos": info.relay_log_pos,
        "source_log": info.source_log_name,
        "source_log_pos": info.source_log_pos,
    }


def _error(found: Restart) -> dict[str, Any] | None:
    error = found.error
    if error is None:
        return None
    moment = next(moment for moment, other in found.errors.items() if other is error)
    return {"moment": str(moment), "number": getattr(error, "number", None)} | error.as_dict()


def _stretch(stretch: Any) -> dict[str, Any]:
    return {
        "source_log": stretch.source_log,
        "start": stretch.start,
        "end": stretch.end,
        "gtid": stretch.gtid,
    }


def text(found: Restart) -> Iterator[str]:
    """The lines without --json."""
    from applier.replica.restarts.mend import statements

    options = found.configuration
    asks = f"auto-position {'on' if options.auto_position else 'off'}"
    if options.rules.by_domains:
        asks = f"MASTER_USE_GTID={options.using_gtid}"
    switches = f"relay_log_recovery={int(options.relay_log_recovery)}, {asks}"
    yield (
        f"replica   {options.server_version}, {switches}, {options.workers} workers, records in"
        f" {options.relay_log_info_repository}"
    )
    yield from _standing("at start", found.at_start)
    yield from _standing("at end", found.at_end)
    if found.at_most is not None:
        yield (
            f"          the workers may be as far as {found.at_most.source_position}: that depends"
            " on the moment"
        )
    if found.gaps:
        yield (
            f"gaps      {found.gaps.count(False)} of the next {len(found.gaps)} groups were not"
            " executed, the others were"
        )
    if found.prepared:
        yield f"prepared  {', '.join(found.prepared)}"
    for name, stretches in (("twice", found.again), ("lost", found.lost)):
        if stretches:
            yield f"{name:<9} {_many(stretches)}"
    for moment, error in found.errors.items():
        yield f"error     {_number(error)}{error.message} (the {moment})"
    yield f"verdict   {found.outcome}: {MEANING[found.outcome]}"
    yield ""
    yield from statements(found)


def _standing(name: str, seen: Seen) -> Iterator[str]:
    received, applied = seen.positions.received, seen.positions.applied
    place = "not known" if received is None else str(received.source_position)
    yield f"{name:<9} received {place}"
    if applied is not None:
        yield (
            f"{'':<9} applied {applied.source_position}, relay log"
            f" {applied.relay_log_name.removeprefix('./')}:{applied.relay_log_pos}"
        )
    if seen.executed or seen.retrieved:
        yield f"{'':<9} GTIDs executed {_short(seen.executed)}, retrieved {_short(seen.retrieved)}"


def _short(gtids: AnyGtidSet) -> str:
    from checkpoints.gtid import shortened

    return shortened(str(gtids)) or "none"


def _many(stretches: Sequence[Any]) -> str:
    first, last = stretches[0], stretches[-1]
    size = sum(one.end - one.start for one in stretches)
    count = f"{len(stretches)} places, " if len(stretches) > 1 else ""
    return (
        f"{count}{size:,} bytes, from {first.source_log}:{first.start} to"
        f" {last.source_log}:{last.end}"
    )


def _number(error: BinlagError) -> str:
    number = getattr(error, "number", None)
    return f"{number}: " if number else ""


def _notes(found: Restart, *, schema: bool, source: bool) -> Iterator[str]:
    if not source:
        yield (
            "without --source nothing is received: what the replica fetches and applies then is not"
            " shown"
        )
    if not schema and not found.errors:
        yield "rows were not looked at: give --schema to find errors such as 1062"
    if found.doubtful is not None:
        yield (
            f"XA transaction {found.doubtful.xid} is taken as lost: a server of"
            f" {found.configuration.version} does not wait for its PREPARE; XA RECOVER tells"
            " (--prepared)"
        )
    info = found.configuration.relay_log_info_repository
    if info == "FILE" and not found.configuration.auto_position:
        yield (
            "relay-log.info is written behind each commit: the last transaction may be executed a"
            " second time (1062, 1032)"
        )
