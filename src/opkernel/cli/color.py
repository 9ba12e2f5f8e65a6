"""`--color`: whether a command prints in colours."""

import os

import click

__all__ = ["add_color"]


def _chosen(ctx: click.Context, param: click.Parameter, value: str) -> None:
    """Have click strip colours, keep them, or decide by what it prints to."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    ctx.color = {"always": True, "never": False}.get(value, False if is_plain else None)


def add_color(command: click.Command) -> None:
    """Have a command take `--color`, if it does not yet; else NO_COLOR and the terminal decide."""
    if any(param.name == "color" for param in command.params):
        return
    command.params.append(
        click.Option(
            ["--color"],
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            is_eager=True,
            expose_value=False,
            callback=_chosen,
            help="Print in colours; auto: on terminals, unless NO_COLOR is set.",
        )
    )
