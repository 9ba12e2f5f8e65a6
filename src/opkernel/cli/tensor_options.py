"""Tensors of MODEL on the command line, `--fetch` and `--feed`, and where a graph is written, `--output`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from opkernel.cli.model_options import completed_by

__all__ = ["feed_option", "fetch_option", "output_graph_option"]

Command = TypeVar("Command", bound=Callable[..., Any])


def fetch_option(*, help: str, complete: str = "complete_tensors") -> Callable[[Command], Command]:
    """`--fetch NAME`, once for each output; `complete` of `opkernel.cli.completion` offers names."""
    return _names_option("--fetch", "fetches", help, complete)


def feed_option(*, help: str) -> Callable[[Command], Command]:
    """`--feed NAME`, once for each tensor."""
    return _names_option("--feed", "feeds", help, "complete_tensors")


def _names_option(
    option: str, parameter: str, help: str, complete: str
) -> Callable[[Command], Command]:
    return click.option(
        option,
        parameter,
        multiple=True,
        metavar="NAME",
        shell_complete=completed_by(complete),
        help=help,
    )


output_graph_option = click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write the graph here; as text where the name ends in .pbtxt.",
)
