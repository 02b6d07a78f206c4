"""`binlag completion SHELL`: the script that completes commands, options and their values in a
shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_BINLAG_COMPLETE"


@click.command(
    name="completion", short_help="Print the script that completes commands in bash, zsh or fish."
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, values and names of files in SHELL.

    \b
    bash   eval "$(binlag completion bash)"       in ~/.bashrc
    zsh    autoload -Uz compinit && compinit      in ~/.zshrc, unless it is there
           eval "$(binlag completion zsh)"        in ~/.zshrc, below that
    fish   binlag completion fish | source        in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root()
    click.echo(
        click.shell_completion.ShellComplete.source(kind(root.command, {}, "binlag", VARIABLE))
    )
