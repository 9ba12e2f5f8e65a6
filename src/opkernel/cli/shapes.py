"""`opkernel shapes`: the shape of every tensor of a model, and why it is unknown where it is."""

from functools import partial
from pathlib import Path

import click

from opkernel.cli.completion import complete_shapes, complete_tensors
from opkernel.cli.feeds import given_shapes
from opkernel.cli.files import check_directory
from opkernel.cli.limits import progress
from opkernel.cli.model import Model, load_model
from opkernel.cli.nodes import is_match
from opkernel.cli.options import ModelCommand, model_options, output_option
from opkernel.cli.output import (
    counted,
    echo,
    json_option,
    one_line,
    print_json,
    print_table,
    print_text,
)
from opkernel.cli.signature import find_tensor
from opkernel.errors import NotFoundError
from opkernel.graph import GraphShapes, Tensor, save_graph


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
@output_option(
    "--write",
    path_type=Path,
    help="Write the graph with the shapes in each node's attr _output_shapes, where graph viewers "
    "look for them; as text where the name ends in .pbtxt.",
)
@json_option
def shapes(
    model: Model, pattern: str | None, inputs: tuple[str, ...], write: Path | None, as_json: bool
) -> None:
    """Show the shape of every tensor of MODEL, and where the unknown ones come from.

    PATTERN is a part of the names of the tensors to show, or has shell wildcards.
    """
    check_directory("--write", write)
    graph = load_model(model)
    with progress(f"Inferring shapes of {model.name}"):
        found = graph.infer_shapes(given_shapes(partial(find_tensor, graph, role="inputs"), inputs))
    shown = [tensor for tensor in found if pattern is None or is_match(tensor.name, pattern)]
    if pattern is not None and not shown:
        raise NotFoundError(f"there is no tensor {pattern!r} in {model}")
    if write is not None:
        save_graph(found.as_graph_def(), write)
    if as_json:
        print_json(
            [
                {
                    "name": tensor.name,
                    "op": tensor.op.type,
                    "dtype": tensor.dtype.tf_name,
                    "shape": found[tensor].dims,
                    "unknown": found.why_unknown(tensor),
                }
                for tensor in shown
            ]
        )
    else:
        _print(found, shown, write)


def _print(found: GraphShapes, shown: list[Tensor], written: Path | None) -> None:
    rows = [
        (one.name, one.dtype.tf_name, found[one], "; ".join(found.why_unknown(one)))
        for one in shown
    ]
    print_table("Tensors", ("tensor", "type", "shape", "unknown because of"), rows)
    known, total = found.num_known, len(found)
    percent = 1000 * known // total / 10 if total else 100  # rounded down: 100% means all
    echo()
    print_text(f"{counted(total, 'tensor')}, {known:,} with a fully known shape ({percent:g}%)")
    if written is not None:
        echo(f"Wrote {one_line(written)}")
