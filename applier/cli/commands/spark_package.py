"""`binlag spark-package`: one archive with all that Spark's executors need for `binlag fleet`."""

from __future__ import annotations

import click

from applier.cli.notes import note
from applier.cli.parameters.options import check_output


@click.command(
    name="spark-package", short_help="Pack what Spark's executors need for binlag fleet."
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False),
    default="binlag-env.tar.gz",
    show_default=True,
    metavar="FILE.tar.gz",
    help="Write the archive to this file.",
)
@click.option(
    "--with",
    "more",
    multiple=True,
    metavar="NAME",
    help="Another installed package, for a store of fsspec (repeatable).",
)
def command(output: str, more: tuple[str, ...]) -> None:
    """An archive of binlag and its packages, as they are installed here, for clusters whose
    machines have only Python.

    Their Python has the version of this one. Each executor unpacks it; nothing is installed.
    """
    from applier.fleets.package import write_package

    check_output("--output", output)
    names = write_package(output, more)
    note(f"wrote {output}: {', '.join(names)}")
