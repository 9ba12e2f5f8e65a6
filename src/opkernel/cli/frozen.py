"""The frozen graph of a model: what some outputs need, with constants for variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opkernel.cli.model import Model, load_model
from opkernel.cli.progress import progress
from opkernel.cli.signature import GraphInterface, check_asked, interface_of
from opkernel.cli.unknown_ops import name_uses
from opkernel.graph import Graph, Operation, Tensor
from opkernel.opdef import UnregisteredOpError
from opkernel.records import dataclass

if TYPE_CHECKING:
    from opkernel.checkpoint import CheckpointReader

_SAVER = ("save/restore_all", "save/Const")
"""The operation of a Saver that restores, and the tensor that takes the name of the checkpoint."""


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
    outputs: Mapping[str, Tensor | Operation]
    before: int


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
    if not model.is_saved_model:
        graph, freeze = _of_graph(model, checkpoint)
    else:
        loaded = model.session_model(checkpoint)
        graph = loaded.graph

        def freeze(outputs: list[Any], inputs: list[Any]) -> Graph:
            from opkernel.runtime import convert_variables_to_constants

            session = loaded.session
            return convert_variables_to_constants(session, outputs, inputs, with_tables=True)

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


def _of_graph(model: Model, checkpoint: str | None) -> tuple[Graph, Any]:
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
