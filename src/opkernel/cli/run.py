"""`opkernel run`: compute tensors of a model."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import numpy as np

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.feeds import feed_value, split_feed
from opkernel.cli.output import json_option, print_json
from opkernel.cli.progress import progress, time_limit
from opkernel.cli.results import Result, check_writable, write_npz
from opkernel.cli.signature import find_tensor, graph_outputs
from opkernel.errors import NotFoundError
from opkernel.graph import Graph, Operation, Tensor, load_graph
from opkernel.runtime import Session
from opkernel.types import DataType

__all__ = ["run"]

_DAY_S = 86400.0


@click.command()
@click.argument("model", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Feed a tensor: NAME=@FILE.npy, NAME=@FILE.npz:KEY, or NAME=VALUE with the value as "
    "JSON. A string tensor takes plain text, or the bytes of any other @FILE.",
)
@click.option("--fetch", "fetches", multiple=True, metavar="NAME", help="A tensor to compute.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE.npz",
    help="Write the results here, one array for each fetch under its tensor name.",
)
@click.option("--sanitize", is_flag=True, help="Watch what kernels do to memory; slow.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Give up after this time.")
@json_option
def run(
    model: Path,
    inputs: tuple[str, ...],
    fetches: tuple[str, ...],
    output: Path | None,
    sanitize: bool,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Compute tensors of MODEL, a file with a GraphDef (.pb or .pbtxt).

    The name x means the tensor x:0. Give --input and --fetch once for each tensor; without
    --fetch all outputs of the graph are computed.
    """
    pairs = [split_feed(text) for text in inputs]
    if timeout is not None and not 0 < timeout <= _DAY_S:
        raise WrongUse(
            f"--timeout {timeout:g}: expected more than 0 and at most {_DAY_S:g} seconds"
        )
    if output is not None:
        check_writable(output)
    with time_limit(timeout):
        with progress(f"Loading {model.name}"):
            graph = load_graph(model, allow_unregistered=True)
            feeds = _feeds(graph, pairs)
        with progress(f"Running {model.name}"):
            results = _results(graph, feeds, fetches, sanitize)
    if output is not None:
        write_npz(output, results)
    if as_json:
        print_json({result.name: result.as_json() for result in results})
    else:
        _print(results, output)


def _feeds(graph: Graph, pairs: Sequence[tuple[str, str]]) -> dict[Tensor, Any]:
    feeds: dict[Tensor, Any] = {}
    for name, value in pairs:
        tensor = find_tensor(graph, name, "inputs")
        if tensor in feeds:
            raise WrongUse(f"--input: {tensor.name} is fed twice")
        feeds[tensor] = feed_value(value, tensor)
    return feeds


def _results(
    graph: Graph, feeds: dict[Tensor, Any], names: Sequence[str], sanitize: bool
) -> list[Result]:
    """The values of the tensors fetched; operations without outputs are run and give none."""
    fetches = [_fetch(graph, name) for name in names] or graph_outputs(graph)
    if not fetches:
        raise WrongUse("the graph has no outputs of its own: name with --fetch what to compute")
    with Session(graph, sanitize=sanitize) as session:
        values = session.run(fetches, feeds)
    return [
        Result(fetch.name, fetch.dtype.base, _array(value, fetch.dtype.base))
        for fetch, value in zip(fetches, values, strict=True)
        if isinstance(fetch, Tensor)
    ]


def _fetch(graph: Graph, name: str) -> Tensor | Operation:
    """What a name asks for: a tensor, or an operation that gives none."""
    if ":" not in name:
        with suppress(NotFoundError):
            operation = graph.get_operation_by_name(name)
            if not operation.outputs:
                return operation
    return find_tensor(graph, name, "outputs")


def _array(value: Any, dtype: DataType) -> np.ndarray[Any, Any]:
    """A value as an array; a string or handle by itself becomes one of rank 0."""
    if isinstance(value, np.ndarray) or dtype.numpy_dtype.kind != "O":
        return np.asarray(value)
    array = np.empty((), dtype=object)
    array[()] = value
    return array


def _print(results: Sequence[Result], output: Path | None) -> None:
    for result in results:
        click.echo(result.heading)
        if output is None:
            click.echo(result.text())
    if output is not None:
        click.echo(f"written to {output}")
