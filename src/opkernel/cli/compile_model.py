"""`opkernel compile`: write a model as a program for XLA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from opkernel.cli.feeds import given_shapes
from opkernel.cli.files import check_directory
from opkernel.cli.freeze import FrozenModel, frozen_model
from opkernel.cli.limits import progress
from opkernel.cli.model import Model
from opkernel.cli.options import ModelCommand, fetch_option, model_options, output_option
from opkernel.cli.output import (
    WrongUse,
    echo_written,
    json_option,
    one_line,
    print_facts,
    print_text,
)
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
@output_option("--output", "-o", required=True, path_type=Path, help="Write the program here.")
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
    check_directory("--output", output)
    frozen = frozen_model(model, fetches)
    shapes = _shapes(frozen, inputs)
    with progress(f"Compiling {model.name}"):
        exported = _exported(frozen, shapes)
    if form == "jax":
        output.write_bytes(exported.serialize())
    else:
        output.write_text(exported.mlir_module())
    facts = {
        "output": str(output),
        "bytes": output.stat().st_size,
        "inputs": [
            {"name": name, "dtype": tensor.dtype.tf_name, "shape": shapes[tensor]}
            for name, tensor in frozen.inputs
        ],
        "outputs": [name for name, one in frozen.outputs.items() if isinstance(one, Tensor)],
    }
    print_facts(facts, as_json, _print)


def _shapes(frozen: FrozenModel, inputs: tuple[str, ...]) -> dict[Tensor, TensorShape]:
    """The shapes of the inputs; WrongUse where one is not known in full."""
    given = given_shapes(frozen.interface.input, inputs)
    found = {}
    for _, tensor in frozen.inputs:
        wanted = given.get(tensor, PartialTensorShape(None))
        if not tensor.shape.is_compatible_with(wanted):
            raise WrongUse(f"--input {tensor.op.name}: {wanted} does not fit {tensor.shape}")
        shape = tensor.shape.merge_with(wanted)
        if not shape.is_fully_defined():
            raise WrongUse(
                f"The shape of {tensor.op.name} is {shape}; a program has fixed shapes: "
                f"--input {tensor.op.name}:SHAPE gives it"
            )
        found[tensor] = shape.as_tensor_shape()
    return found


def _exported(frozen: FrozenModel, shapes: Mapping[Tensor, TensorShape]) -> Any:
    """The program."""
    from opkernel.xla import XlaArgument, XlaCompiler  # JAX is needed here alone

    arguments = [
        XlaArgument.parameter(tensor.dtype, tuple(shape), tensor.op.name)
        for tensor, shape in shapes.items()
    ]
    fetches = frozen.output_tensors
    return XlaCompiler().export_graph(frozen.graph, list(shapes), fetches, arguments)


def _print(facts: dict[str, Any]) -> None:
    for one in facts["inputs"]:
        print_text(one_line(f"takes {one['name']}: {one['dtype']}{one['shape']}"))
    for name in facts["outputs"]:
        print_text(one_line(f"gives {name}"))
    echo_written(facts["output"], facts["bytes"])
