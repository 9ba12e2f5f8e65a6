"""`opkernel freeze`: write a model as one graph, with constants for its variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opkernel.cli.files import check_directory
from opkernel.cli.limits import progress
from opkernel.cli.meta_graph_needs import name_uses
from opkernel.cli.model import Model, load_model
from opkernel.cli.options import (
    ModelCommand,
    feed_option,
    fetch_option,
    model_options,
    output_option,
)
from opkernel.cli.output import (
    counted,
    echo_written,
    json_option,
    one_line,
    print_facts,
    print_table,
    print_text,
)
from opkernel.cli.signature import (
    Element,
    GraphInterface,
    check_asked,
    graph_inputs,
    interface_of,
    split_elements,
)
from opkernel.graph import Graph, Operation, Tensor, save_graph
from opkernel.graph.freezing.freeze_graph import TABLE_INITIALIZERS
from opkernel.opdef import UnregisteredOpError
from opkernel.records import dataclass
from opkernel.types import PartialTensorShape

if TYPE_CHECKING:
    from opkernel.checkpoint import CheckpointReader

_SAVER = ("save/restore_all", "save/Const")
"""The operation of a Saver that restores, and the tensor that takes the name of the checkpoint."""

output_graph_option = output_option(
    "--output",
    "-o",
    required=True,
    path_type=Path,
    help="Write the graph here; as text where the name ends in .pbtxt.",
)


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
    check_directory("--output", output)
    frozen = frozen_model(model, fetches, feeds, checkpoint)
    graph = frozen.graph
    save_graph(graph, output)
    facts = {
        "output": str(output),
        "bytes": output.stat().st_size,
        "nodes": {"before": frozen.before, "after": len(graph.get_operations())},
        "functions": len(graph.function_library),
        "inputs": [_described(name, one) for name, one in frozen.inputs],
        "outputs": [_described(name, one) for name, one in frozen.outputs.items()],
        "run_first": [op.name for op in graph.get_collection(TABLE_INITIALIZERS)],
    }
    print_facts(facts, as_json, _print)


def _described(name: str, one: Element) -> dict[str, Any]:
    if isinstance(one, Operation):
        return {"name": name, "operation": one.name}
    return {"name": name, "tensor": one.name, "dtype": one.dtype.tf_name, "shape": one.shape.dims}


def _print(facts: dict[str, Any]) -> None:
    nodes = facts["nodes"]
    print_text(
        f"{counted(nodes['before'], 'node')}, now {nodes['after']:,} and "
        f"{counted(facts['functions'], 'function')}"
    )
    for what in ("inputs", "outputs"):
        rows = [
            (one["name"], one["tensor"], one["dtype"], PartialTensorShape(one["shape"]))
            if "tensor" in one
            else (one["name"], one["operation"], "", "")
            for one in facts[what]
        ]
        print_table(what.capitalize(), ("name", "tensor", "type", "shape"), rows)
    if facts["run_first"]:
        options = " ".join(f"--init {name}" for name in facts["run_first"])
        run = f"opkernel run {facts['output']} {options}"
        print_text(one_line(f"It has tables, which are filled first: {run}"))
    echo_written(facts["output"], facts["bytes"])


@dataclass(frozen=True)
class FrozenModel:
    """A frozen graph.

    Attributes:
        graph: the graph.
        interface: how callers name its inputs and outputs.
        outputs: what was asked for in the graph, by its name.
        before: the nodes of the graph that was frozen, without those of its functions.
    """

    graph: Graph
    interface: GraphInterface
    outputs: Mapping[str, Element]
    before: int

    @property
    def inputs(self) -> list[tuple[str, Tensor]]:
        """The inputs of the graph, each after the name that callers give it."""
        return [(self.interface.input_name(one), one) for one in graph_inputs(self.graph)]

    @property
    def output_tensors(self) -> list[Tensor]:
        """The tensors among what was asked for."""
        return split_elements(self.outputs.values())[0]


def frozen_model(
    model: Model,
    fetches: Sequence[str] = (),
    feeds: Sequence[str] = (),
    checkpoint: str | None = None,
) -> FrozenModel:
    """Freeze a model.

    Args:
        model: the model.
        fetches: the outputs; those of the signature or of the graph where none is named.
        feeds: tensors that become placeholders.
        checkpoint: the checkpoint with the values, in place of the model's own.

    Raises:
        WrongUse: nothing is asked for, and a SavedModel has no signatures.
        OpError: the model cannot be loaded or frozen.
    """
    graph, freeze = (_saved if model.is_saved_model else _in_file)(model, checkpoint)
    interface = interface_of(model, graph)
    check_asked(model, interface, fetches)
    asked = interface.fetches(fetches)
    before = len(graph.get_operations())
    with progress(f"Freezing {model.name}"), model.named():
        try:
            frozen = freeze([*asked.values()], [interface.input(name) for name in feeds])
        except UnregisteredOpError as error:
            if model.is_saved_model:
                name_uses(error, model)
            raise
    found = {name: frozen.as_graph_element(one.name) for name, one in asked.items()}
    return FrozenModel(frozen, interface_of(model, frozen), found, before)


_Freeze = Callable[[list[Any], list[Any]], Graph]
"""Gives the frozen graph of some outputs and inputs."""


def _saved(model: Model, checkpoint: str | None) -> tuple[Graph, _Freeze]:
    """The graph of a SavedModel, and what freezes it with its values, or those of a checkpoint."""
    loaded = model.session_model(checkpoint)

    def freeze(outputs: list[Any], inputs: list[Any]) -> Graph:
        from opkernel.runtime import convert_variables_to_constants

        session = loaded.session
        return convert_variables_to_constants(session, outputs, inputs, with_tables=True)

    return loaded.graph, freeze


def _in_file(model: Model, checkpoint: str | None) -> tuple[Graph, _Freeze]:
    """The graph of a file, and what freezes it with the values of a checkpoint."""
    graph = load_model(model)

    def freeze(outputs: list[Any], inputs: list[Any]) -> Graph:
        from opkernel.graph import freeze_graph

        if checkpoint is None:
            return freeze_graph(graph, outputs, inputs)
        if all(name in graph.by_name for name in _SAVER):
            return _restored(graph, checkpoint, outputs, inputs)
        from opkernel.checkpoint import load_checkpoint

        with load_checkpoint(checkpoint) as reader:
            return freeze_graph(graph, outputs, inputs, values=_Values(reader))

    return graph, freeze


def _restored(graph: Graph, checkpoint: str, outputs: list[Any], inputs: list[Any]) -> Graph:
    """The frozen graph of one with a Saver, whose nodes restore the values."""
    from opkernel.device.permissions import NO_PERMISSIONS
    from opkernel.runtime import Session, convert_variables_to_constants

    permissions = NO_PERMISSIONS.restoring(checkpoint, follows_links=True)
    restore, filename = _SAVER
    with Session(graph, permissions=permissions) as session:
        session.run(restore, {f"{filename}:0": checkpoint.encode()})
        return convert_variables_to_constants(session, outputs, inputs)


class _Values(Mapping[str, Any]):
    """The values of a checkpoint by the names of variables; read when they are asked for."""

    def __init__(self, reader: CheckpointReader) -> None:
        self._reader = reader

    def __getitem__(self, name: str) -> Any:
        return self._reader.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._reader

    def __iter__(self) -> Iterator[str]:
        return iter(self._reader)

    def __len__(self) -> int:
        return len(self._reader)
