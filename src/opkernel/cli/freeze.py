"""`opkernel freeze`: write a model as one graph, with constants for its variables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.frozen import FrozenModel, frozen_model
from opkernel.cli.graph_output import output_graph_option
from opkernel.cli.model import Model
from opkernel.cli.model_options import (
    ModelCommand,
    feed_option,
    fetch_option,
    model_options,
)
from opkernel.cli.output import (
    counted,
    echo,
    json_option,
    one_line,
    print_json,
    print_table,
    print_text,
    size_text,
)
from opkernel.cli.shapes import shape_text
from opkernel.cli.signature import graph_inputs
from opkernel.graph import Operation, Tensor, save_graph
from opkernel.graph.freezing.tables import TABLE_INITIALIZERS


@click.command(cls=ModelCommand)
@model_options(has_signature=True, runs=True)
@output_graph_option
@fetch_option(
    help="An output or operation to keep; by default all outputs of the signature, or of the graph.",
    complete="complete_fetches",
)
@feed_option(help="A tensor that becomes a placeholder; the nodes before it are left out.")
@click.option(
    "--checkpoint",
    metavar="PREFIX",
    help="Take the values of variables from this checkpoint: for a GraphDef, or in place of the "
    "model's own.",
)
@json_option
def freeze(
    model: Model,
    output: Path,
    fetches: tuple[str, ...],
    feeds: tuple[str, ...],
    checkpoint: str | None,
    as_json: bool,
) -> None:
    """Write MODEL as one GraphDef: variables become constants, unused parts go.

    MODEL is a SavedModel, a MetaGraph beside its checkpoint, or a GraphDef with --checkpoint. Tables
    are kept; the operations that fill them run first, with `opkernel run --init`.
    """
    if not output.parent.is_dir():
        raise WrongUse(f"--output {output}: there is no directory {output.parent}")
    frozen = frozen_model(model, fetches, feeds, checkpoint)
    save_graph(frozen.graph, output)
    report = _Report(frozen, output)
    if as_json:
        print_json(report.as_json())
    else:
        report.print()


class _Report:
    """The printed account of a frozen graph."""

    def __init__(self, frozen: FrozenModel, output: Path) -> None:
        self._frozen = frozen
        self._output = output
        graph = frozen.graph
        self._names = getattr(frozen.interface, "input_names", {})
        self._initializers = [op.name for op in graph.get_collection(TABLE_INITIALIZERS)]

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        graph = self._frozen.graph
        return {
            "output": str(self._output),
            "bytes": self._output.stat().st_size,
            "nodes": {"before": self._frozen.before, "after": len(graph.get_operations())},
            "functions": len(graph.function_library),
            "inputs": [_described(self._called(one), one) for one in self._inputs],
            "outputs": [_described(name, one) for name, one in self._frozen.outputs.items()],
            "run_first": self._initializers,
        }

    def print(self) -> None:
        """Print it for people."""
        graph = self._frozen.graph
        now = len(graph.get_operations())
        print_text(
            f"{counted(self._frozen.before, 'node')}, now {now:,} and "
            f"{counted(len(graph.function_library), 'function')}"
        )
        _print("Inputs", [(self._called(one), one) for one in self._inputs])
        _print("Outputs", [*self._frozen.outputs.items()])
        if self._initializers:
            options = " ".join(f"--init {name}" for name in self._initializers)
            print_text(
                one_line(
                    f"It has tables, which are filled first: opkernel run {self._output} {options}"
                )
            )
        size = size_text(self._output.stat().st_size)
        echo(f"written to {one_line(self._output)}, {size}")

    @property
    def _inputs(self) -> list[Tensor]:
        return graph_inputs(self._frozen.graph)

    def _called(self, tensor: Tensor) -> str:
        return str(self._names.get(tensor.name, tensor.op.name))


def _described(name: str, one: Tensor | Operation) -> dict[str, Any]:
    if isinstance(one, Operation):
        return {"name": name, "operation": one.name}
    dims = None if one.shape.rank is None else one.shape.as_list()
    return {"name": name, "tensor": one.name, "dtype": one.dtype.tf_name, "shape": dims}


def _print(title: str, elements: Sequence[tuple[str, Tensor | Operation]]) -> None:
    rows = [
        (name, one.name, one.dtype.tf_name, shape_text(one.shape))
        if isinstance(one, Tensor)
        else (name, one.name, "", "")
        for name, one in elements
    ]
    print_table(title, ("name", "tensor", "type", "shape"), rows)
