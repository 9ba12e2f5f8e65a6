"""`opkernel compile`: write a model as a program for XLA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.frozen import FrozenModel, frozen_model
from opkernel.cli.model import Model
from opkernel.cli.model_options import ModelCommand, fetch_option, model_options
from opkernel.cli.output import echo, json_option, one_line, print_json, print_text, size_text
from opkernel.cli.output_path import OutputPath
from opkernel.cli.progress import progress
from opkernel.cli.shapes import given_shapes, shape_text
from opkernel.cli.signature import graph_inputs
from opkernel.graph import Tensor
from opkernel.types import PartialTensorShape, TensorShape


@click.command("compile", cls=ModelCommand)
@model_options(has_signature=True, runs=True)
@click.option(
    "--to",
    "form",
    type=click.Choice(["stablehlo", "jax"]),
    required=True,
    help="stablehlo: the text of the program; jax: a file that `jax.export.deserialize` loads.",
)
@click.option(
    "--output",
    "-o",
    required=True,
    type=OutputPath(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write the program here.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME:SHAPE",
    help="The shape of an input, as x:8,224,224,3, where the model leaves sizes open.",
)
@fetch_option(
    help="An output; by default all outputs of the signature, or of the graph.",
    complete="complete_fetches",
)
@json_option
def compile_model(
    model: Model,
    form: str,
    output: Path,
    inputs: tuple[str, ...],
    fetches: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write MODEL as one program for XLA, with its variables as constants.

    The program takes the inputs of MODEL in the order that is printed, and gives a list of its outputs. All shapes are
    fixed. Nothing of opkernel is needed to run it.
    """
    if not output.parent.is_dir():
        raise WrongUse(f"--output {output}: there is no directory {output.parent}")
    frozen = frozen_model(model, fetches)
    tensors = graph_inputs(frozen.graph)
    shapes = _shapes(frozen, tensors, inputs)
    with progress(f"Compiling {model.name}"):
        exported = _exported(frozen, shapes)
    if form == "jax":
        output.write_bytes(exported.serialize())
    else:
        output.write_text(exported.mlir_module())
    report = _report(frozen, shapes, output)
    if as_json:
        print_json(report)
    else:
        _print(report)


def _shapes(
    frozen: FrozenModel, tensors: list[Tensor], inputs: tuple[str, ...]
) -> dict[Tensor, TensorShape]:
    """The shapes of the inputs; WrongUse where one is not known in full."""
    given = given_shapes(frozen.interface.input, inputs)
    by_name = {tensor.name: shape for tensor, shape in given.items()}
    found = {}
    for tensor in tensors:
        wanted = by_name.get(tensor.name, PartialTensorShape(None))
        if not tensor.shape.is_compatible_with(wanted):
            raise WrongUse(
                f"--input {tensor.op.name}: {shape_text(wanted)} does not fit {shape_text(tensor.shape)}"
            )
        shape = tensor.shape.merge_with(wanted)
        if not shape.is_fully_defined():
            raise WrongUse(
                f"The shape of {tensor.op.name} is {shape_text(shape)}; a program has fixed shapes: "
                f"--input {tensor.op.name}:SHAPE gives it"
            )
        found[tensor] = TensorShape([size or 0 for size in shape.as_list()])
    return found


def _exported(frozen: FrozenModel, shapes: Mapping[Tensor, TensorShape]) -> Any:
    """The program."""
    from opkernel.xla import XlaArgument, XlaCompiler  # JAX is needed here alone

    fetches = [one for one in frozen.outputs.values() if isinstance(one, Tensor)]
    arguments = [
        XlaArgument.parameter(tensor.dtype, tuple(shape), tensor.op.name)
        for tensor, shape in shapes.items()
    ]
    return XlaCompiler().export_graph(frozen.graph, list(shapes), fetches, arguments)


def _report(
    frozen: FrozenModel, shapes: Mapping[Tensor, TensorShape], output: Path
) -> dict[str, Any]:
    names = getattr(frozen.interface, "input_names", {})
    return {
        "output": str(output),
        "bytes": output.stat().st_size,
        "inputs": [
            {
                "name": str(names.get(tensor.name, tensor.op.name)),
                "dtype": tensor.dtype.tf_name,
                "shape": list(shape),
            }
            for tensor, shape in shapes.items()
        ],
        "outputs": [name for name, one in frozen.outputs.items() if isinstance(one, Tensor)],
    }


def _print(report: dict[str, Any]) -> None:
    for one in report["inputs"]:
        sizes = ",".join(map(str, one["shape"]))
        print_text(one_line(f"takes {one['name']}: {one['dtype']}[{sizes}]"))
    for name in report["outputs"]:
        print_text(one_line(f"gives {name}"))
    echo(f"written to {one_line(report['output'])}, {size_text(report['bytes'])}")
