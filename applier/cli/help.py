"""What --help shows beside a command's own words: options in groups, examples, and what a mistyped
name may have meant.

Groups and examples are tables, so that a command which shares an option shows it in the same place.
"""

from __future__ import annotations

from pathlib import Path

import click

from applier.error_codes import Code
from applier.errors import UsageError

GROUPS = {
    "Input": """
        --schema --default-database --follow --workload --calibration --scenario --replica --from
        --auto-position --executed-gtids --to-end --transactions --seed --rows --relay-folder --info
        --source --prepared --baseline --behind --package --with
    """,
    "Filters": """
        --database --table --exclude-database --exclude-table --start-position --stop-position
        --start-datetime --stop-datetime --include-gtids --exclude-gtids --until-gtid --channel
    """,
    "Rules": """
        --server --row-search --row-image --exec-mode --skip-errors --type-conversions
        --lower-case-table-names --rewrite-db --workers --parallel-type --preserve-commit-order
        --any-commit-order --checkpoint-period --checkpoint-group --delay --network-delay
        --network-speed --row-speed --transaction-cost
        --skip-counter --until --placement --what-if --repository --sync --recovery --position
        --engine --kind --commit-order --flush-log --sync-binlog --skip-log-bin --sector-bytes
        --verify --with-routines --without-accounts --gtid-mode --info-repository --set --my-cnf
        --tolerance --durable
        --innodb-flush-log-at-trx-commit --log-replica-updates --buffer-pool --redo-log --cores
        --read-latency --sync-latency --iops --table-open-cache --table-open-cache-instances
    """,
    "Target": """
        --into --apply --batch --gtid --disable-log-bin --replay-id --force --dry-run --dir
        --server-id --heartbeat --retries --max-relay-log-size --largest --quick --rounds --master
        --jobs --spark-conf --on-error
    """,
    "Connection": "--reconnect-seconds --password-file --ssl-mode --ssl-ca --ssl-cert --ssl-key",
    "Output": """
        --json --csv --markdown --details --all --format --stats --dump --parquet --arrow --report
        --html --plot --openmetrics --old-names --performance-schema --status-at --every --brief
        --coverage --require --crash --fail-on --max-lag --junit --output
    """,
}
"""Heading -> the options under it, in this order. Options that stand nowhere come under REST."""
REST = "Other options"
PLACES = {
    option: (heading, at)
    for heading, text in GROUPS.items()
    for at, option in enumerate(text.split())
}
"""Option -> its heading, and which one it is there."""
OF_COMMAND = {
    ("events", "--rows"): "Output",
    ("status", "--channel"): "Input",
    ("measure", "--table"): "Output",
}
"""(Command, option) whose heading differs from that of other commands."""
OUTPUT_FILES = frozenset(
    "--stats --parquet --report --html --junit --output --openmetrics --plot".split()
)
"""Options that name a file to write."""

EXAMPLES = {
    "replay": (
        ("what each table cost, and why", "demo/binlog.000001 --schema demo/before.sql"),
        ("the same under other rules", "demo/binlog.000001 --schema demo/before.sql --server 8.4"),
        ("one table, for a program",
            "demo/binlog.000001 --schema demo/before.sql --table shop.parcel --json"),
    ),
    "events": (
        ("every event", "demo/binlog.000001"),
        ("the rows of one table", "demo/binlog.000001 --table shop.parcel --rows"),
        ("for a program", "demo/binlog.000001 --json"),
    ),
    "receive": (
        ("from the source's oldest log on",
            "mysql://repl@127.0.0.1:3306 --dir DIR --from binlog.000001:4"),
        ("what the folder lacks, once", "mysql://repl@127.0.0.1:3306 --dir DIR --to-end"),
        ("by GTID", "mysql://repl@127.0.0.1:3306 --dir DIR --auto-position"),
    ),
    "status": (
        ("of a folder that binlag received", "DIR"),
        ("of a data directory, with today's names", "DIR --server 8.4"),
        ("for a program", "DIR --json"),
    ),
    "recover": (
        ("from the files alone", "DIR --info info.sql"),
        ("with the source's logs",
            "DIR --info info.sql --source binlog.000041 --source binlog.000042 --recovery"),
        ("for a program",
            "DIR --server 5.7 --info-repository FILE --workers 4 --schema tables.sql --json"),
    ),
    "clock": (
        ("the situations that are built in", "--scenario list"),
        ("one of them", "--scenario large-transaction"),
        ("a log of your own", "demo/binlog.000001 --server 5.7 --workers 4 --row-speed 5"),
    ),
    "verify": (
        ("all tables of the log", "DIR --into mysql://root@127.0.0.1:3306 --schema before.sql"),
        ("one table", "DIR --into mysql://root@127.0.0.1:3306 --table shop.orders"),
        ("for a program", "DIR --into mysql://root@127.0.0.1:3306 --json"),
    ),
    "explain": (
        ("the tables to act on", "demo/before.sql"),
        ("a gate, for a comment on a change", "demo/before.sql --fail-on no-key --markdown"),
        ("all about one table", "demo/before.sql --table shop.parcel --details"),
    ),
    "crashtest": (
        ("one configuration",
            ("--repository TABLE --position auto --recovery 1 --workers 0 --sync 1 "
             "--engine InnoDB --transactions 1")),
        ("only what breaks",
            ("--transactions 1 --sync 1 --workers 0 --engine InnoDB --position auto "
             "--recovery 1 --brief")),
        ("for a program",
            ("--transactions 1 --sync 1 --workers 0 --engine InnoDB --position file "
             "--recovery 1 --json")),
    ),
    "forecast": (
        ("the lag of this log", "demo/binlog.000001 --schema demo/before.sql"),
        ("with a primary key on one table",
            "demo/binlog.000001 --schema demo/before.sql --what-if primary-key:shop.cart_item"),
        ("a gate, for a program",
            "demo/binlog.000001 --schema demo/before.sql --max-lag 1h --json"),
    ),
    "measure": (
        ("what a server takes, for forecast",
            "--into mysql://root@127.0.0.1:3306 --output DIR/prices.json"),
        ("a first impression",
            "--into mysql://root@127.0.0.1:3306 --quick --output DIR/prices.json"),
        ("handler counts only", "--into memory --quick --table DIR/cells.parquet"),
    ),
    "completion": (
        ("now, in bash", "bash"),
        ("now, in zsh", "zsh"),
        ("now, in fish", "fish"),
    ),
    "fleet": (
        ("on this machine", "fleet.yaml --output DIR/results --jobs 4"),
        ("a gate", "fleet.yaml --output DIR/results --max-lag 5m"),
        ("on a cluster", "fleet.yaml --output DIR/results --master spark://host:7077"),
    ),
    "spark-package": (
        ("for machines that have only Python", "--output DIR/binlag-env.tar.gz"),
    ),
    "demo": (
        ("the table of the README", ""),
        ("with the files, to try other commands on them", "--dir DIR"),
    ),
    "doctor": (
        ("what is there, and what for", ""),
        ("for a program", "--json"),
    ),
}  # fmt: skip
"""Command -> (what for, its arguments)."""


class GroupedCommand(click.Command):
    """A command whose help has its options in groups, and examples at the end."""

    common: frozenset[str] = frozenset()
    """Options that every command takes: one line stands for them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; its parser does not say which command an option without a value was given
        to."""
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise
        self._refuse_empty_paths(ctx)
        refuse_overwriting(self, ctx)
        return rest

    def _refuse_empty_paths(self, ctx: click.Context) -> None:
        """A variable of the shell that is not set would stand for the current folder, or for no
        file at all. Raises UsageError."""
        for parameter in self.get_params(ctx):
            given = ctx.params.get(parameter.name or "")
            if isinstance(parameter.type, click.Path) and (
                given == "" or (isinstance(given, tuple) and "" in given)
            ):
                is_option = isinstance(parameter, click.Option)
                raise UsageError(
                    f"{parameter.opts[0] if is_option else parameter.metavar}: the path is empty",
                    code=Code.OPTION_VALUE,
                    hint="name a file or a folder; a variable of the shell may not be set",
                )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The groups, in their order; the common options in a line."""
        found: dict[str, list[tuple[int, tuple[str, str]]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is None or self.common & set(parameter.opts) or "--help" in parameter.opts:
                continue
            heading, at = self._place(parameter)
            found.setdefault(heading, []).append((at, record))
        for heading in (*GROUPS, REST):
            if heading in found:
                with formatter.section(heading):
                    formatter.write_dl([record for _, record in sorted(found[heading])])
        with formatter.section("Common options"):
            formatter.write_text(f"{', '.join(sorted(self.common))}: binlag --help explains them")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples."""
        examples = EXAMPLES.get(self.name or "", ())
        if examples:
            with formatter.section("Examples"):
                for what, arguments in examples:
                    formatter.write(
                        f"{' ' * formatter.current_indent}binlag {self.name} {arguments}".rstrip()
                        + "\n"
                    )
                    formatter.write(f"{' ' * formatter.current_indent}    {what}\n")

    def _place(self, parameter: click.Parameter) -> tuple[str, int]:
        names = [name for name in parameter.opts if name.startswith("--")]
        heading, at = next((PLACES[name] for name in names if name in PLACES), (REST, 0))
        return OF_COMMAND.get((self.name or "", names[0] if names else ""), heading), at


def refuse_overwriting(command: click.Command, ctx: click.Context) -> None:
    """A file that is read is not written to: one option too few, and the log is gone. Raises
    UsageError."""
    names = {one.name or "": one.opts[0] for one in command.get_params(ctx)}
    outputs = {
        name: given
        for name, option in names.items()
        if option in OUTPUT_FILES and isinstance(given := ctx.params.get(name), str)
    }
    for name, output in outputs.items():
        for other, given in ctx.params.items():
            values = given if isinstance(given, tuple) else (given,)
            if other not in outputs and any(_is_same_file(output, value) for value in values):
                raise UsageError(
                    f"{names[name]}: {output} is an input of this command",
                    code=Code.OPTIONS_CLASH,
                    hint="give a file of another name",
                )


def _is_same_file(output: str, given: object) -> bool:
    """Whether a value names this file, also as @FILE."""
    return (
        isinstance(given, str)
        and Path(output).is_file()
        and any(
            path.is_file() and path.samefile(output)
            for path in (Path(given), Path(given.removeprefix("@")))
        )
    )


def grouped(command: click.Command, common: frozenset[str]) -> GroupedCommand:
    """The same command with this help. `common`: options that every command takes."""
    made = GroupedCommand(
        command.name, command.context_settings, command.callback, command.params, command.help,
        command.epilog, command.short_help,
        command.options_metavar, command.add_help_option, command.no_args_is_help, command.hidden,
        command.deprecated,
    )  # fmt: skip
    made.common = common
    return made


START = """binlag emulates the applier of a MySQL replica. Three uses:

How late will a replica be, and because of which table?
    binlag explain schema.sql
    binlag forecast binlog.000123 --schema schema.sql

What does this log do, and what do the tables hold afterwards?
    binlag replay binlog.000123 --schema before.sql

What does a crash leave behind?
    binlag crashtest --transactions 2

Try it without a log of your own: binlag demo.
All commands: binlag --help. What is installed: binlag doctor.
"""
"""What `binlag` alone says."""
