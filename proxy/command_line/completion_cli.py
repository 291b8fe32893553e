"""The command `completion`: what a shell needs to complete commands, options and their values."""

from __future__ import annotations

import click

INSTALL = {
    "bash": "echo 'eval \"$(wildproxy completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(wildproxy completion zsh)\"' >> ~/.zshrc",
    "fish": "wildproxy completion fish > ~/.config/fish/completions/wildproxy.fish",
}
"""What to type, once."""

PROGRAM = "wildproxy"


@click.command(
    epilog="""\b
    Examples:
      wildproxy completion bash
      eval "$(wildproxy completion zsh)"           # for this terminal alone
    """
)
@click.argument("shell", type=click.Choice(list(INSTALL)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script by which SHELL (bash, zsh or fish) completes commands, options and their values.

    Its first line says what to type, once, to have it in every new terminal.
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    root = context.find_root().command
    script = found(root, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE")
    text = script.source_template % script.source_vars()
    click.echo(f"# In every new terminal: {INSTALL[shell]}\n{text.rstrip()}")
