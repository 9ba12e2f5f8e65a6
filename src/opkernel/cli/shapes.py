"""`opkernel shapes`: the shape of every tensor of a model, and why it is unknown where it is."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click

from opkernel.cli.completion import complete_shapes, complete_tensors
from opkernel.cli.exit_status import WrongUse
from opkernel.cli.model import Model, load_model
from opkernel.cli.model_options import ModelCommand, model_options
from opkernel.cli.nodes import is_match
from opkernel.cli.output import (
    counted,
    echo,
    json_option,
    one_line,
    print_json,
    print_table,
    print_text,
)
from opkernel.cli.output_path import OutputPath
from opkernel.cli.progress import progress
from opkernel.cli.signature import find_tensor
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph import GraphShapes, Tensor, save_graph
from opkernel.types import PartialTensorShape

_SIZE = re.compile(r"\d+|\?|-1")


@click.command(cls=ModelCommand)
@model_options()
@click.argument("pattern", required=False, shell_complete=complete_tensors)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME:SHAPE",
    shell_complete=complete_shapes,
    help="Take a tensor to have this shape: x:2,224,224,3, with ? for an unknown size; x: for a "
    "scalar.",
)
@click.option(
    "--write",
    type=OutputPath(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write the graph with the shapes in each node's attr _output_shapes, where graph viewers "
    "look for them; as text where the name ends in .pbtxt.",
)
@json_option
def shapes(
    model: Model,
    pattern: str | None,
    inputs: tuple[str, ...],
    write: Path | None,
    as_json: bool,
) -> None:
    """Show the shape of every tensor of MODEL, and where the unknown ones come from.

    PATTERN is a part of the names of the tensors to show, or has shell wildcards.
    """
    if write is not None and not write.parent.is_dir():
        raise WrongUse(f"--write {write}: there is no directory {write.parent}")
    graph = load_model(model)
    with progress(f"Inferring shapes of {model.name}"):
        found = graph.infer_shapes(given_shapes(partial(find_tensor, graph, role="inputs"), inputs))
    shown = [tensor for tensor in found if pattern is None or is_match(tensor.name, pattern)]
    if pattern is not None and not shown:
        raise NotFoundError(f"there is no tensor {pattern!r} in {model}")
    if write is not None:
        save_graph(found.as_graph_def(), write)
    if as_json:
        print_json([_described(tensor, found) for tensor in shown])
    else:
        _print(found, shown, write)


def _split(text: str) -> tuple[str, PartialTensorShape]:
    """The name and the shape of NAME:SHAPE.

    Raises:
        WrongUse: it has not this form.
    """
    name, colon, sizes = text.rpartition(":")
    parts = [part.strip() for part in sizes.split(",")] if sizes else []
    if not name or not colon or not all(map(_SIZE.fullmatch, parts)):
        raise WrongUse(f"--input {text!r}: expected NAME:SHAPE, as in x:2,224,224,3")
    try:
        dims = [None if part in ("?", "-1") else int(part) for part in parts]
        return name, PartialTensorShape(dims)
    except (InvalidArgumentError, ValueError) as error:
        raise WrongUse(f"--input {text!r} is no shape: {error}") from error


def given_shapes(
    find: Callable[[str], Tensor], inputs: Iterable[str]
) -> dict[Tensor, PartialTensorShape]:
    """The shapes that `--input NAME:SHAPE` gives to tensors.

    Args:
        find: gives the tensor of a name.
        inputs: the options.

    Raises:
        WrongUse: an option has another form, or names the same tensor as another one.
        NotFoundError: there is no such tensor.
    """
    given: dict[Tensor, PartialTensorShape] = {}
    for name, shape in map(_split, inputs):
        tensor = find(name)
        if tensor in given:
            raise WrongUse(f"--input gives the shape of {tensor.name} twice")
        given[tensor] = shape
    return given


def _described(tensor: Tensor, found: GraphShapes) -> dict[str, Any]:
    shape = found[tensor]
    return {
        "name": tensor.name,
        "op": tensor.op.type,
        "dtype": tensor.dtype.tf_name,
        "shape": None if shape.rank is None else shape.as_list(),
        "unknown": found.why_unknown(tensor),
    }


def _print(found: GraphShapes, shown: list[Tensor], written: Path | None) -> None:
    rows = []
    for tensor in shown:
        text = shape_text(found[tensor])
        rows.append((tensor.name, tensor.dtype.tf_name, text, "; ".join(found.why_unknown(tensor))))
    print_table("Tensors", ("tensor", "type", "shape", "unknown because of"), rows)
    known, total = found.num_known, len(found)
    percent = 1000 * known // total / 10 if total else 100  # rounded down: 100% means all
    echo()
    print_text(f"{counted(total, 'tensor')}, {known:,} with a fully known shape ({percent:g}%)")
    if written is not None:
        echo(f"Wrote {one_line(written)}")


def shape_text(shape: PartialTensorShape) -> str:
    """A shape as TensorFlow writes it: `[?,784]`."""
    if shape.rank is None:
        return "<unknown>"
    return f"[{','.join('?' if size is None else str(size) for size in shape.as_list())}]"
