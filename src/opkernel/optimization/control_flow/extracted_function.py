"""ExtractedFunction: operations of a graph as a function, with arguments for what comes from outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opkernel.graph import Graph, Operation, Tensor, graph_to_function_def
from opkernel.graph.core.frame_loops import ControlFlowFormError
from opkernel.graph.core.node import copied
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.subgraph import copy_operations, prune_and_order
from opkernel.graph.functions.function_library import FunctionLibraryDefinition
from opkernel.proto import AttrValue, FunctionDef
from opkernel.types import DataType


class ExtractedFunction:
    """A copy of some operations that becomes a function.

    Args:
        graph: Where they are.
        ops: The operations.
        arguments: For each argument, the tensors that it is in the graph; the first tells its shape.
        constants: Tensors from outside that are constants.

    Attributes:
        editor: Edits the copy; what is preserved has to be said.
        inputs: The arguments.
    """

    def __init__(
        self,
        graph: Graph,
        ops: Iterable[Operation],
        arguments: Sequence[Sequence[Tensor]],
        constants: Mapping[Tensor, Operation],
    ) -> None:
        given = [*dict.fromkeys([*(one for tensors in arguments for one in tensors), *constants])]
        refiner = graph.refiner
        order = sorted(ops, key=lambda op: op.number)
        facts = [refiner.facts_of((one.op, one.value_index)) for one in given]
        self._copied, self._fed = copy_operations(
            graph, order, given, feed_facts=facts, believing=refiner.believes
        )
        self.inputs = [self._fed[first] for first, *_ in arguments]
        self.editor = GraphEditor(self._copied, (), [one.op for one in self.inputs])
        for (_, *others), tensor in zip(arguments, self.inputs, strict=True):
            for other in others:
                self._replace(other, tensor)
        for tensor, const in constants.items():
            self._replace(tensor, self.editor.add_node(copied(const.node_def)).outputs[0])

    def _replace(self, outside: Tensor, tensor: Tensor) -> None:
        """Have a tensor stand for one from outside."""
        if self._fed[outside] is not tensor:
            self.editor.redirect(self._fed[outside], tensor)
            self._fed[outside] = tensor

    def tensor(self, tensor: Tensor) -> Tensor:
        """What a tensor of the graph is in the copy."""
        found = self._fed.get(tensor)
        return self.operation(tensor.op).outputs[tensor.value_index] if found is None else found

    def operation(self, op: Operation) -> Operation:
        """What one of the operations is in the copy."""
        return self._copied.get_operation_by_name(op.name)

    def add_to(
        self,
        library: FunctionLibraryDefinition,
        name: str,
        results: Sequence[Tensor],
        targets: Iterable[Operation] = (),
    ) -> FunctionDef:
        """Add the function, and those that its operations came to need, to a library.

        Args:
            library: The library.
            name: How the name of the function begins.
            results: Its results, tensors of the copy.
            targets: Operations of the copy that run for nothing but their effects.

        Raises:
            ControlFlowFormError: it has control flow of TensorFlow 1.
        """
        given = {tensor.op for tensor in self.inputs}
        order = [op for op in prune_and_order(results, targets, ()) if op not in given]
        for op in order:
            if op.type in LOW_LEVEL_CONTROL_FLOW and op.type != "ControlTrigger":
                raise ControlFlowFormError("it is part of a loop or conditional of odd form", op)
        acting = [op for op in order if effect_of(op.signature) is Effect.ACTS]
        controls = dict.fromkeys([*targets, *acting])
        return add_function_of(self._copied, library, name, self.inputs, results, controls=controls)


def add_function_of(
    graph: Graph,
    library: FunctionLibraryDefinition,
    name: str,
    inputs: Sequence[Tensor],
    results: Sequence[Tensor],
    *,
    targets: Iterable[Operation] = (),
    controls: Iterable[Operation] = (),
    attrs: Mapping[str, AttrValue] | None = None,
) -> FunctionDef:
    """Add a function of what a graph computes, and the functions that it calls, to a library.

    Args:
        graph: the graph.
        library: the library.
        name: how the name of the function begins.
        inputs: its arguments.
        results: its results.
        targets: operations that run for nothing but their effects.
        controls: those of them that are control outputs of the function.
        attrs: its attrs.
    """
    controls = list(controls)
    given = {tensor.op for tensor in inputs}
    order = prune_and_order(results, [*targets, *controls], ())
    function = graph_to_function_def(
        graph,
        name,
        inputs,
        results,
        body=[op for op in order if op not in given],
        control_outputs={op.name: op for op in controls},
        attrs=attrs,
        append_hash_to_fn_name=True,
    )
    library.add_missing(graph.function_library)
    library.add_function(function)
    return function


def check_may_move(editor: GraphEditor, op: Operation, *, is_preserved: bool) -> None:
    """Raise ControlFlowFormError for an operation that has no place in a function."""
    if is_preserved and op in editor.preserved:
        raise ControlFlowFormError("it is fetched, fed or a target", op)
    if op in editor.feeds or any(t.is_ref for t in (*op.input_types, *op.output_types)):
        raise ControlFlowFormError("it has to stay where it is", op)


def has_own_state(op: Operation) -> bool:
    """Whether what a kernel gives may depend on what it has given before."""
    types = {*op.input_types, *op.output_types}
    if not op.op_def.is_stateful or not op.output_types or op.traits.debug_only:
        return False
    calls = op.traits.calls or op.type in op.graph.function_library
    return not calls and DataType.DT_RESOURCE not in types


def scope_of(op: Operation) -> str:
    """The scope of an operation, which others in it begin their names with."""
    scope, slash, _ = op.name.rpartition("/")
    return scope + slash


def device_of(ops: Iterable[Operation]) -> str:
    """The device of some operations where all have the same."""
    devices = {op.device for op in ops}
    return devices.pop() if len(devices) == 1 else ""
