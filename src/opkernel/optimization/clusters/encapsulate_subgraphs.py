"""EncapsulateSubgraphs: each cluster becomes a function, and a node that calls it.

A function takes first what is known when it is compiled, then other tensors, then resources. Constants are among the first;
small ones are part of the function instead, of each that needs them.

Source: TensorFlow compiler/jit/encapsulate_subgraphs_pass.cc, encapsulate_util.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opkernel.graph import Graph, Operation, Tensor, graph_to_function_def, instantiate_function
from opkernel.graph.core.edges import Edge
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.graph_copy import copy_operations
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.jit_options import JitOptions
from opkernel.optimization.clusters.marks import ALREADY_CLUSTERED, CLUSTER, cluster_of
from opkernel.proto import AttrValue, FunctionDef
from opkernel.types import DataType

NUM_CONSTANT_ARGS = "_XlaNumConstantArgs"
NUM_LASTING_ARGS = "_num_lasting_args"
"""The attr with the number of arguments that are constants of the graph; they come first."""
NUM_RESOURCE_ARGS = "_XlaNumResourceArgs"
ENGINE = "_engine"
"""The attr that names the engine that compiles the function a node calls."""
COMPILE_MODE = "_compile_mode"
"""The attr that says when the function is compiled (`JitOptions.mode`)."""
_COMPILED_KERNEL = "_XlaCompiledKernel"

_LASTING, _KNOWN, _TENSOR, _RESOURCE = range(4)
"""The kinds of arguments, in their order: constants of the graph, others that are known at compile time, the rest."""
_SMALL = 1 << 10
"""Constants of so many bytes are part of the functions that need them."""


def encapsulate_subgraphs(editor: GraphEditor) -> None:
    """Replace each cluster by a node that calls a function."""
    options = editor.jit
    if options is None:
        return
    clusters: dict[str, list[Operation]] = {}
    for op in editor.operations():
        if cluster_of(op):
            clusters.setdefault(cluster_of(op), []).append(op)
    for name, ops in clusters.items():
        _Subgraph(editor, options, name, ops).encapsulate()


class _Subgraph:
    """A cluster that becomes a function."""

    def __init__(
        self, editor: GraphEditor, options: JitOptions, name: str, ops: Sequence[Operation]
    ) -> None:
        self._editor, self._options, self._name = editor, options, name
        held = {
            source
            for op in ops
            for source in op.edges[::2]
            if source.type == "Const" and _is_free(source) and _is_small(source)
        }
        large = {op for op in ops if op.type == "Const" and _is_free(op) and not _is_small(op)}
        self._inside = [
            *sorted(held.difference(ops), key=_number),
            *(o for o in ops if o not in large),
        ]
        self._ops = [op for op in ops if op not in large]
        self._members = set(self._inside)

    def encapsulate(self) -> None:
        """Add the function to the library of the graph, and call it in place of the operations."""
        if all(op.type == "Const" for op in self._ops):
            return
        results = self._results()
        arguments = self._arguments()
        function = self._function(arguments, results)
        kinds = self._kinds(function, arguments)
        order = sorted(range(len(arguments)), key=kinds.__getitem__)
        inputs = [arguments[index] for index in order]
        graph = self._editor.graph
        graph.function_library.add_function(_with_arguments_in(order, function))
        attrs = {
            _COMPILED_KERNEL: True,
            NUM_CONSTANT_ARGS: kinds.count(_LASTING) + kinds.count(_KNOWN),
            NUM_LASTING_ARGS: kinds.count(_LASTING),
            NUM_RESOURCE_ARGS: kinds.count(_RESOURCE),
            ENGINE: self._options.compiler.name,
        }
        tensors = [op.outputs[index] for op, index in inputs]
        first = self._ops[0]
        call = self._editor.add(
            self._name, tensors, self._name, attrs, first.device, self._awaited()
        )
        if first in graph.assigned_devices:
            graph.assigned_devices[call] = graph.assigned_devices[first]
        self._hand_over(call, results)

    def _arguments(self) -> list[Edge]:
        """The tensors from outside, in the order of the graph."""
        found: dict[Edge, None] = {}
        for op in self._inside:
            for edge in zip(op.edges[::2], op.edges[1::2], strict=True):
                if edge[0] not in self._members:
                    found[edge] = None
        return list(found)

    def _results(self) -> list[Edge]:
        """The tensors that others take, or that are preserved."""
        found: dict[Edge, None] = {}
        for op in self._ops:
            if op in self._editor.preserved:
                found.update(((op, index), None) for index in range(len(op.output_types)))
            for consumer, place in op.consumer_edges():
                if place >= 0 and consumer not in self._members:
                    found[op, consumer.edges[2 * place + 1]] = None
        return list(found)

    def _kinds(self, function: FunctionDef, arguments: Sequence[Edge]) -> list[int]:
        """The kind of each argument of a function."""
        body = instantiate_function(self._editor.graph.function_library, function)
        known = self._options.compiler.compile_time_constants(body)
        kinds = []
        for index, (op, output) in enumerate(arguments):
            if op.output_types[output] == DataType.DT_RESOURCE:
                kinds.append(_RESOURCE)
            elif op.type == "Const" and _is_free(op):
                kinds.append(_LASTING)
            else:
                kinds.append(_KNOWN if index in known else _TENSOR)
        return kinds

    def _function(self, arguments: Sequence[Edge], results: Sequence[Edge]) -> FunctionDef:
        graph = self._editor.graph
        feeds = [op.outputs[index] for op, index in arguments]
        copied, fed = copy_operations(graph, self._inside, feeds)
        targets = [op.name for op in self._ops if effect_of(op.signature) is Effect.ACTS]
        stand_ins = {fed[tensor].op for tensor in feeds}
        function = graph_to_function_def(
            copied,
            self._name,
            [fed[tensor] for tensor in feeds],
            [_copy(copied, op).outputs[index] for op, index in results],
            body=[op for op in copied.get_operations() if op not in stand_ins],
            output_names=[f"{self._name}_result_{index}" for index in range(len(results))],
            control_outputs={name: copied.get_operation_by_name(name) for name in targets},
            attrs={_COMPILED_KERNEL: AttrValue(b=True)},
        )
        for node in function.node_def:
            if CLUSTER in node.attr:
                node.attr[ALREADY_CLUSTERED].CopyFrom(node.attr[CLUSTER])
                del node.attr[CLUSTER]
        return function

    def _awaited(self) -> list[Operation]:
        """The operations outside that some inside wait for."""
        awaited = (source for op in self._inside for source in op.control_inputs)
        return [op for op in dict.fromkeys(awaited) if op not in self._members]

    def _hand_over(self, call: Operation, results: Sequence[Edge]) -> None:
        """Have others take the results of the call; preserved operations pass them on."""
        given = {edge: call.outputs[index] for index, edge in enumerate(results)}
        for op in self._ops:
            for consumer in [one for one, place in op.consumer_edges() if place < 0]:
                if consumer not in self._members:
                    consumer.set_control_inputs(
                        [call if one is op else one for one in consumer.control_inputs]
                    )
        for (op, index), tensor in given.items():
            if op not in self._editor.preserved:
                self._editor.redirect(op.outputs[index], tensor)
        for op in self._ops:
            if op in self._editor.preserved:
                self._pass_on(op, call, given)
        self._editor.drop(op for op in self._ops if op not in self._editor.preserved)

    def _pass_on(self, op: Operation, call: Operation, given: Mapping[Edge, Tensor]) -> None:
        """Have a preserved operation give the results of the call."""
        tensors = [given[op, index] for index in range(len(op.output_types))]
        for tensor, result in zip(op.outputs, tensors, strict=True):
            for consumer, place in tensor.consumer_edges():
                consumer.update_input(place, result)
        types = [tensor.dtype for tensor in tensors]
        if not tensors:
            self._editor.become(op, "NoOp", ())
            op.set_control_inputs([call])
            return
        if len(tensors) == 1:
            self._editor.become(op, "Identity", tensors, {"T": types[0]})
        else:
            self._editor.become(op, "IdentityN", tensors, {"T": types})
        op.set_control_inputs([])


def _with_arguments_in(order: Sequence[int], function: FunctionDef) -> FunctionDef:
    """A function that takes its arguments in another order."""
    found = FunctionDef()
    found.CopyFrom(function)
    del found.signature.input_arg[:]
    found.signature.input_arg.extend([function.signature.input_arg[index] for index in order])
    found.arg_attr.clear()
    found.resource_arg_unique_id.clear()
    for new, old in enumerate(order):
        if old in function.arg_attr:
            found.arg_attr[new].CopyFrom(function.arg_attr[old])
        if old in function.resource_arg_unique_id:
            found.resource_arg_unique_id[new] = function.resource_arg_unique_id[old]
    return found


def _copy(graph: Graph, op: Operation) -> Operation:
    return graph.get_operation_by_name(op.name)


def _number(op: Operation) -> int:
    return op.number


def _is_free(const: Operation) -> bool:
    return not const.control_inputs


def _is_small(const: Operation) -> bool:
    return const.message.attr["value"].tensor.ByteSize() <= _SMALL
