"""`kubewright completion`: the completion script for a shell."""

from __future__ import annotations

import click

__all__ = ("completion",)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
@click.pass_context
def completion(ctx: click.Context, *, shell: str) -> None:
    """Print the completion script of a shell.

    In ~/.bashrc: eval "$(kubewright completion bash)"; in ~/.zshrc the same with zsh; for fish:
    kubewright completion fish > ~/.config/fish/completions/kubewright.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None, "click knows the shells above"
    click.echo(found(ctx.find_root().command, {}, "kubewright", "_KUBEWRIGHT_COMPLETE").source())
