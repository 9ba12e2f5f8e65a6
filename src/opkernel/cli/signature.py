"""How callers name the inputs and outputs of a graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.output import abridged
from opkernel.errors import NotFoundError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.structural_ops import RETVAL_OPS
from opkernel.graph.edit.interface import graph_inputs, graph_outputs, split_by_need
from opkernel.opdef import UnregisteredOpError

if TYPE_CHECKING:
    from opkernel.cli.model import Model

__all__ = [
    "Element",
    "GraphInterface",
    "check_asked",
    "check_ops_registered",
    "find_fetches",
    "find_tensor",
    "graph_inputs",
    "graph_outputs",
    "interface_of",
    "split_by_need",
]

Element = Tensor | Operation


def find_fetches(graph: Graph, names: Sequence[str]) -> list[Tensor | Operation]:
    """The tensors of the names, or operations that give none; without names, all outputs.

    Raises:
        NotFoundError: there is none of a name; the message names the graph's own outputs.
        UnregisteredOpError: there are no names, and the outputs of an op of the graph are not known.
        WrongUse: there are no names, and the graph has no outputs.
    """
    if names:
        return [_find_fetch(graph, name) for name in names]
    check_ops_registered(graph)
    found: list[Tensor | Operation] = [*graph_outputs(graph)]
    if not found:
        raise WrongUse("the graph has no outputs of its own: name with --fetch what is asked for")
    return found


def check_ops_registered(graph: Graph) -> None:
    """Raise UnregisteredOpError for a graph with nodes whose ops are not known."""
    operations = graph.get_operations()
    unknown: dict[str, str] = {}
    for op in operations:
        if op.signature.registration is None:
            unknown.setdefault(op.type, op.name)
    if unknown:
        each = (f"{op_type} (node {name!r})" for op_type, name in unknown.items())
        raise UnregisteredOpError(f"The graph has ops that are not registered: {abridged(each)}")


def _find_fetch(graph: Graph, name: str) -> Tensor | Operation:
    if ":" not in name:
        with suppress(NotFoundError):
            operation = graph.get_operation_by_name(name)
            if not operation.outputs and operation.type not in RETVAL_OPS:
                return operation
    return find_tensor(graph, name, "outputs")


def find_tensor(graph: Graph, name: str, role: Literal["inputs", "outputs"]) -> Tensor:
    """The tensor of a name; `x` means `x:0`, and an output `x` that is a `_Retval` means its input.

    Raises:
        NotFoundError: there is none; the message names the graph's own inputs or outputs.
    """
    operation = graph.by_name.get(name)
    if role == "outputs" and operation is not None and operation.type in RETVAL_OPS:
        return operation.inputs[0]
    try:
        return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except NotFoundError as error:
        tensors = graph_inputs(graph) if role == "inputs" else graph_outputs(graph)
        names = abridged(tensor.name for tensor in tensors) or "none"
        raise NotFoundError(f"{error.message} The {role} of the graph: {names}.") from error


class GraphInterface:
    """The inputs and outputs of a graph, which are called as its tensors are.

    Attributes:
        graph: the graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def input(self, name: str) -> Tensor:
        """The tensor to feed.

        Raises:
            NotFoundError: there is none; the message has the names that there are.
        """
        return find_tensor(self.graph, name, "inputs")

    def fetches(self, names: Sequence[str]) -> dict[str, Element]:
        """The tensors and operations to compute, by what to call the results; without names, all outputs.

        Raises:
            NotFoundError: there is none of a name; the message has the names that there are.
            WrongUse: there are no names, and no outputs.
        """
        return {one.name: one for one in find_fetches(self.graph, names)}

    def defaults(self, elements: Iterable[Element], feeds: Collection[Tensor]) -> dict[Tensor, Any]:
        """The values of inputs that are needed, are not fed, and have a value of their own."""
        return {}


def interface_of(model: Model, graph: Graph) -> GraphInterface:
    """How callers of a model name what goes into a graph of it, and what comes out.

    Raises:
        NotFoundError, InvalidArgumentError: there is no such signature, or several and none was named.
    """
    if not model.is_saved_model:
        return GraphInterface(graph)
    from opkernel.cli.signature_interface import SignatureInterface  # plain graphs have none
    from opkernel.cli.signature_ports import choose_signature

    name = choose_signature(model.meta_graph, model.signature_name)
    if name is None:
        return GraphInterface(graph)
    return SignatureInterface(graph, name, model.meta_graph.signature_def[name], str(model))


def check_asked(model: Model, interface: GraphInterface, fetches: Sequence[str]) -> None:
    """Raise WrongUse where nothing is asked for, and the SavedModel has no signatures."""
    if model.is_saved_model and not fetches and type(interface) is GraphInterface:
        raise WrongUse(
            f"{model} has no signatures. Its functions run from Python:\n"
            f"    model = opkernel.load({str(model)!r})\n"
            f"and tensors of its graph with --fetch NAME; opkernel show {model} --name '*' lists its nodes"
        )
