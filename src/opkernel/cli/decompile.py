"""`opkernel decompile`: a model as a Python program."""

from collections.abc import Sequence
from pathlib import Path

import click

from opkernel import decompile as decompiled
from opkernel.cli.freeze import frozen_model
from opkernel.cli.limits import progress
from opkernel.cli.model import Model, load_model
from opkernel.cli.options import (
    ModelCommand,
    feed_option,
    fetch_option,
    model_options,
    output_option,
)
from opkernel.cli.output import WrongUse, echo, echo_written, size_text
from opkernel.cli.results import check_writable, write_arrays
from opkernel.cli.signature import (
    GraphInterface,
    check_ops_registered,
    find_tensor,
    graph_inputs,
    graph_outputs,
    needed_operations,
)
from opkernel.graph import Graph, Tensor
from opkernel.graph.core.structural_ops import ARG_OPS


@click.command(cls=ModelCommand)
@model_options(has_signature=True, runs=True)
@output_option(
    "-o",
    "--output",
    metavar="FILE.py",
    path_type=Path,
    help="Write the program here, and its weights to FILE.npz.",
)
@feed_option(help="A tensor that is a parameter.")
@fetch_option(help="A tensor to compute.")
@click.option("--numpy", "with_numpy_only", is_flag=True, help="The program needs NumPy only.")
def decompile(
    model: Model,
    output: Path | None,
    feeds: tuple[str, ...],
    fetches: tuple[str, ...],
    with_numpy_only: bool,
) -> None:
    """Write MODEL as a Python program: one statement a node.

    Without --output it is printed; it runs then if it has no large weights, which need a file.

    The program calls the kernels of opkernel or, with --numpy, NumPy alone. Its
    parameters are the placeholders, or --feed; it computes all outputs, or --fetch.

    A SavedModel is frozen first: its variables become constants.
    """
    weights = None
    if output is not None:
        if output.suffix != ".py":
            raise WrongUse(f"--output {output}: expected a name that ends in .py")
        weights = output.with_suffix(".npz")
        check_writable(weights)
    interface, wanted = _asked(model, fetches)
    given = [*map(interface.input, feeds)] or _needed_inputs(interface.graph, wanted)
    with progress(f"Compiling {model.name}"):
        program = decompiled.decompile(
            given, wanted, f"{model.name} as Python.", with_numpy_only=with_numpy_only
        )
    if output is None or weights is None:
        echo(program.source, nl=False)
        if program.weights:
            size = size_text(sum(array.nbytes for array in program.weights.values()))
            echo(
                f"The program does not run without its weights, {size}: -o FILE.py writes it, "
                f"and FILE.npz with these.",
                err=True,
            )
        return
    output.write_text(program.source, encoding="utf-8")
    echo_written(output)
    if program.weights:
        write_arrays(weights, program.weights)
        echo_written(weights)


def _asked(model: Model, fetches: Sequence[str]) -> tuple[GraphInterface, list[Tensor]]:
    """A graph without variables, and the tensors to compute: a SavedModel is frozen first."""
    if model.is_saved_model:
        frozen = frozen_model(model, fetches)
        return frozen.interface, frozen.output_tensors
    graph = load_model(model)
    if not fetches:
        check_ops_registered(graph)
    wanted = [find_tensor(graph, name, "outputs") for name in fetches] or graph_outputs(graph)
    if not wanted:
        raise WrongUse("the graph has no outputs of its own: name with --fetch what to compute")
    return GraphInterface(graph), wanted


def _needed_inputs(graph: Graph, wanted: Sequence[Tensor]) -> list[Tensor]:
    """All arguments of a graph that is the body of a function, and the placeholders that are needed."""
    needed = needed_operations(wanted, [])
    return [one for one in graph_inputs(graph) if one.op in needed or one.op.type in ARG_OPS]
