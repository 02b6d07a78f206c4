"""`binlag clock`: Seconds_Behind_Source, true lag and work left over time, of a log or a named
scenario on the simulated clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from applier.cli.commands.follow import logs_of
from applier.cli.commands.status import FORMATS, chosen_format, render
from applier.cli.notes import note
from applier.cli.parameters.metrics_options import OPENMETRICS
from applier.cli.parameters.options import (
    Number,
    check_output,
    check_positions,
    part_options,
    rules_of,
    was_typed,
)
from applier.error_codes import Code
from applier.errors import UsageError
from applier.replica.scheduling import DATABASE, LOGICAL_CLOCK, MAX_QUEUED, MODES, MOST_WORKERS
from lookup.versions import NEWEST

if TYPE_CHECKING:
    from applier.timing.clock import ClockConfiguration
    from applier.timing.simulation import LagSample, Simulation
    from applier.timing.timed import TimedTransaction

MOMENTS = 60
"""Samples that are printed when nothing else is asked for."""
SHORTEST = 0.001
"""Seconds between two samples, at the least."""
MOST_DELAY = (1 << 31) - 1
"""Seconds: what a server takes for SOURCE_DELAY."""
MOST_PERIOD = (1 << 32) - 1
"""Milliseconds: what a server takes for replica_checkpoint_period."""
SLOWEST, MOST_COST = 1e-6, 86_400_000.0
"""A byte a second, in MB; a day, in milliseconds."""


@click.command(
    name="clock",
    short_help="Show Seconds_Behind_Source next to the true lag, over time, on a simulated clock.",
)
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE...]")
@part_options
@click.option(
    "--scenario", metavar="NAME", help="A named case instead of a log; `list` names them all."
)
@click.option(
    "--server",
    default=NEWEST,
    show_default=True,
    metavar="VERSION",
    help="Whose rules: 5.6, 5.7, 8.0, 8.4, 9.7 or mariadb.",
)
@click.option(
    "--workers",
    type=click.IntRange(0, MOST_WORKERS),
    metavar="N",
    help="replica_parallel_workers, or slave_parallel_threads of MariaDB. [default: the version's]",
)
@click.option(
    "--parallel-type",
    type=click.Choice([DATABASE, LOGICAL_CLOCK, *MODES], case_sensitive=False),
    help="replica_parallel_type, or slave_parallel_mode of MariaDB. [default: the version's]",
)
@click.option(
    "--preserve-commit-order/--no-preserve-commit-order",
    default=None,
    help="[default: the version's]",
)
@click.option(
    "--checkpoint-period",
    type=click.IntRange(0, MOST_PERIOD),
    default=300,
    show_default=True,
    metavar="MS",
    help="replica_checkpoint_period.",
)
@click.option(
    "--checkpoint-group",
    type=click.IntRange(min=1),
    default=512,
    show_default=True,
    metavar="N",
    help="replica_checkpoint_group.",
)
@click.option(
    "--domain-workers",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="MariaDB: slave_domain_parallel_threads. [default: all of --workers]",
)
@click.option(
    "--max-queued",
    type=click.IntRange(min=0),
    default=MAX_QUEUED,
    show_default=True,
    metavar="BYTES",
    help="MariaDB: slave_parallel_max_queued.",
)
@click.option(
    "--by-position",
    is_flag=True,
    help="MariaDB: MASTER_USE_GTID=no. To the workers, all domains are one.",
)
@click.option(
    "--delay",
    type=click.IntRange(0, MOST_DELAY),
    default=0,
    metavar="SECONDS",
    help="SOURCE_DELAY.",
)
@click.option(
    "--network-delay",
    type=Number(min=0, max=MOST_DELAY),
    default=0.0,
    metavar="SECONDS",
    help="From the commit to the relay log.",
)
@click.option(
    "--network-speed",
    type=Number(min=SLOWEST),
    metavar="MB/S",
    help="[default: without limit]",
)
@click.option(
    "--row-speed",
    type=Number(min=SLOWEST),
    default=10.0,
    show_default=True,
    metavar="MB/S",
    help="Rows events that one thread of the replica executes.",
)
@click.option(
    "--transaction-cost",
    type=Number(min=0, max=MOST_COST),
    default=1.0,
    show_default=True,
    metavar="MS",
    help="What each transaction costs besides.",
)
@click.option(
    "--skip-counter",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="sql_replica_skip_counter.",
)
@click.option("--until", metavar="UNTIL", help="FILE:POSITION, before:GTIDS or after:GTIDS.")
@click.option(
    "--every", type=Number(min=SHORTEST), metavar="SECONDS", help=f"[default: {MOMENTS} moments]"
)
@click.option(
    "--status-at",
    type=Number(min=-MOST_DELAY, max=MOST_DELAY),
    metavar="SECONDS",
    help="The whole status that long after the first commit.",
)
@FORMATS
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="JSON lines: one a moment (with --status-at: one object).",
)
@OPENMETRICS
@click.option(
    "--plot",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Draw it: .svg, .png, .html or .json (needs binlag[report]).",
)
def command(
    files: tuple[str, ...],
    scenario: str | None,
    form: str,
    as_json: bool,
    plot: str | None,
    openmetrics: str | None,
    **given: Any,
) -> None:
    """Show what SHOW REPLICA STATUS would have said while a replica executed FILEs, and how late it
    really was.

    The replica is simulated: transactions arrive when they were committed, and cost what
    --row-speed and --transaction-cost say; a statement takes as long as on the source. `binlag
    measure` and `binlag forecast` know costs better than two numbers do.
    """
    if scenario == "list":
        _list_scenarios()
        return
    if files and scenario is not None:
        raise UsageError(
            "log files and --scenario exclude each other",
            code=Code.OPTIONS_CLASH,
            hint="leave one of them out",
        )
    if not files and scenario is None:
        raise UsageError(
            "give log files or --scenario NAME",
            code=Code.OPTION_MISSING,
            hint="`binlag clock --scenario list` names the scenarios",
        )
    if scenario is not None:
        _refuse_configuration()
    if plot is not None and given["status_at"] is not None:
        raise UsageError(
            "--plot: a status cannot be drawn",
            code=Code.OPTIONS_CLASH,
            hint="leave it out, or --status-at",
        )
    form = chosen_format(form, as_json=as_json)
    check_output("--plot", plot)
    check_output("--openmetrics", openmetrics)
    runs, transactions, seconds = _named(scenario) if scenario is not None else _logs(files, given)
    if given["status_at"] is not None:
        if openmetrics is not None:
            _write_status(runs, transactions, given["status_at"], openmetrics)
        _status(runs, transactions, given["status_at"], form)
        return
    samples = {
        name: list(_sample(simulation, seconds, given["every"]))
        for name, simulation in runs.items()
    }
    if openmetrics is not None:
        from applier import metrics

        servers = {name: simulation.configuration.server for name, simulation in runs.items()}
        metrics.write(metrics.of_moments(samples, servers), openmetrics)
    if plot is not None:
        from applier.cli.output.clock_plot import draw

        draw(samples, Path(plot), _title(scenario, files))
        note(f"drew {plot}")
    for line in _json_lines(samples) if as_json else _text_lines(runs, samples):
        click.echo(line)


def _list_scenarios() -> None:
    from applier.timing.scenarios import SCENARIOS

    for name, scenario in SCENARIOS.items():
        click.echo(f"{name:20} {scenario.title}")


def _refuse_configuration() -> None:
    """A scenario has replicas of its own. Raises UsageError for an option that would configure
    another one."""
    for parameter in click.get_current_context().command.params:
        name = parameter.name or ""
        if name in _CONFIGURATION and was_typed(name):
            raise UsageError(
                f"{parameter.opts[0]}: a scenario has its own replicas",
                code=Code.OPTIONS_CLASH,
                hint="leave it out, or give a log",
            )


def _title(scenario: str | None, files: tuple[str, ...]) -> str:
    from applier.timing.scenarios import SCENARIOS

    return SCENARIOS[scenario].title if scenario is not None else Path(files[0]).name


def _named(name: str) -> tuple[dict[str, Simulation], dict[str, list[TimedTransaction]], float]:
    from applier.timing.scenarios import SCENARIOS

    scenario = SCENARIOS.get(name)
    if scenario is None:
        raise UsageError(
            f"there is no scenario {name!r}",
            code=Code.OPTION_VALUE,
            hint="one of " + ", ".join(SCENARIOS),
        )
    logs = {replica: list(scenario.transactions()) for replica in scenario.replicas}
    logs |= {replica: list(log()) for replica, log, _ in scenario.variants}
    return scenario.run(), logs, float(scenario.seconds)


def _logs(
    files: tuple[str, ...], given: dict[str, Any]
) -> tuple[dict[str, Simulation], dict[str, list[TimedTransaction]], float]:
    from applier.binlog.selection.filters import LogFilter
    from applier.timing.simulate import simulate
    from applier.timing.timed import rows_cost, timed_transactions

    rules_of(given["server"])
    files = tuple(logs_of(files))
    check_positions(files, given["start_position"], given["stop_position"])
    log = timed_transactions(
        files,
        rows_cost(1 / (given["row_speed"] * 1e6)),
        seconds_per_transaction=given["transaction_cost"] / 1e3,
        start_position=given["start_position"],
        stop_position=given["stop_position"],
        part=LogFilter.of(
            **{
                name: given[name]
                for name in ("start_datetime", "stop_datetime", "include_gtids", "exclude_gtids")
            }
        ),
        on_cut_off=lambda error: note(
            f"{error.file} is cut off at {error.position}: {error.message}; what came before it"
            " counts"
        ),
    )
    transactions: list[TimedTransaction] = []
    configuration = _configuration(given)
    if given["status_at"] is None:
        simulation = simulate(log, configuration)
    else:
        transactions = list(log)
        simulation = simulate(transactions, configuration)
    if not len(simulation):
        raise UsageError("the log holds no complete transaction", code=Code.NOTHING_TO_READ)
    name = f"{configuration.rules.name}, {configuration.worker_count or 'no'} workers"
    return (
        {name: simulation},
        {name: transactions},
        max(simulation.end, *simulation.commits) - simulation.start + 1,
    )


def _configuration(given: dict[str, Any]) -> ClockConfiguration:
    from applier.replica.admission import Until
    from applier.timing.clock import ClockConfiguration

    return ClockConfiguration(
        server=given["server"],
        workers=given["workers"],
        parallel_type=given["parallel_type"],
        preserve_commit_order=given["preserve_commit_order"],
        checkpoint_period_seconds=given["checkpoint_period"] / 1000,
        checkpoint_group=given["checkpoint_group"],
        domain_workers=given["domain_workers"],
        max_queued_bytes=given["max_queued"],
        by_position=given["by_position"],
        delay_seconds=given["delay"],
        network_seconds=given["network_delay"],
        network_bytes_per_second=(
            None if given["network_speed"] is None else given["network_speed"] * 1e6
        ),
        skip_counter=given["skip_counter"],
        until=None if given["until"] is None else Until.parse(given["until"]),
    )


def _sample(simulation: Simulation, seconds: float, every: float | None) -> Iterator[LagSample]:
    return simulation.sample(
        simulation.start, simulation.start + seconds, every or max(seconds / MOMENTS, 0.1)
    )


def _status(
    runs: dict[str, Simulation],
    transactions: dict[str, list[TimedTransaction]],
    at: float,
    form: str,
) -> None:
    from applier.timing.simulation_view import view_at

    for name, simulation in runs.items():
        if len(runs) > 1 and form != "json":
            click.echo(f"-- {name}")
        for line in render(
            view_at(simulation, transactions[name], simulation.start + at),
            form,
            old_names=False,
            tables=True,
        ):
            click.echo(line)


def _write_status(
    runs: dict[str, Simulation],
    transactions: dict[str, list[TimedTransaction]],
    at: float,
    path: str,
) -> None:
    from applier import metrics
    from applier.timing.simulation_view import view_at

    gauges: list[metrics.Gauge] = []
    for name, simulation in runs.items():
        moment = next(simulation.sample(simulation.start + at, simulation.start + at, 1.0))
        gauges += metrics.of_view(view_at(simulation, transactions[name], moment.time), name)
        gauges += [
            gauge
            for gauge in metrics.of_moment(moment, name, simulation.configuration.server)
            if gauge.name not in _OF_VIEW
        ]
    metrics.write(gauges, path)


_CONFIGURATION = frozenset(
    """
        server workers parallel_type preserve_commit_order checkpoint_period checkpoint_group
        domain_workers max_queued by_position delay
        network_delay network_speed row_speed
        transaction_cost skip_counter until start_position stop_position start_datetime
        stop_datetime include_gtids exclude_gtids
    """.split()
)
"""Options that say what replica is simulated."""
_OF_VIEW = ("replica_seconds_behind_source",)
"""What a view has as well."""


def _json_lines(samples: dict[str, list[LagSample]]) -> Iterator[str]:
    for name, moments in samples.items():
        for moment in moments:
            yield json.dumps(
                {
                    "replica": name,
                    "time": round(moment.time, 6),
                    "seconds_behind": moment.seconds_behind,
                    "true_lag_seconds": (
                        None if moment.true_lag is None else round(moment.true_lag, 6)
                    ),
                    "transactions_left": moment.work.transactions,
                    "bytes_left": moment.work.bytes,
                    "seconds_left": (
                        None if moment.work.seconds is None else round(moment.work.seconds, 6)
                    ),
                }
            )


def _text_lines(runs: dict[str, Simulation], samples: dict[str, list[LagSample]]) -> Iterator[str]:
    for name, moments in samples.items():
        yield f"-- {name}"
        yield (
            f"{'time (UTC)':<21}{'seconds behind':>15}{'true lag':>12}"
            f"{'left':>12}{'MB left':>11}{'s to drain':>12}"
        )
        for moment in moments:
            shown = datetime.fromtimestamp(moment.time, UTC).strftime("%Y-%m-%d %H:%M:%S")
            behind = "NULL" if moment.seconds_behind is None else str(moment.seconds_behind)
            lag = "unknown" if moment.true_lag is None else f"{moment.true_lag:.1f}"
            drain = "never" if moment.work.seconds is None else f"{moment.work.seconds:.1f}"
            yield (
                f"{shown:<21}{behind:>15}{lag:>12}"
                f"{moment.work.transactions:>12,}{moment.work.bytes / 1e6:>11.1f}{drain:>12}"
            )
        error = runs[name].error
        if error is not None:
            yield f"the applier stopped: {error}"
