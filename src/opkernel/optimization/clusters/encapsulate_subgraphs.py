"""EncapsulateSubgraphs: each cluster becomes a function, and a node that calls it. BuildXlaOps: that node launches a program.

A function takes first what is known when it is compiled, then other tensors, then resources. Constants are among the first;
small ones are part of the function instead, of each that needs them.

A call becomes one XlaLaunch, which runs the function itself where there is no program. On request, it becomes an
_XlaCompile and an _XlaRun; the call stays beside them, for where the cluster could not be compiled:

    key, is_compiled = _XlaCompile(constants, args, resources)
    results = _XlaRun(args, resources, key) if is_compiled else call(constants, args, resources)

Source: TensorFlow compiler/jit/encapsulate_subgraphs_pass.cc, encapsulate_util.cc, build_xla_ops_pass.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opkernel.graph import Operation, Tensor, graph_to_function_def, instantiate_function
from opkernel.graph.core.edges import Edge, edges_of
from opkernel.graph.core.node import copied
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.subgraph import copy_operations
from opkernel.graph.inference.constant_values import is_free_constant, is_small_constant
from opkernel.optimization.clusters.marks import ALREADY_CLUSTERED, CLUSTER, by_cluster
from opkernel.proto import AttrValue, FunctionDef, NameAttrList
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


def encapsulate_subgraphs(editor: GraphEditor) -> None:
    """Replace each cluster by a node that calls a function."""
    for name, ops in by_cluster(editor.operations()).items():
        _Subgraph(editor, name, ops).encapsulate()


class _Subgraph:
    """A cluster that becomes a function."""

    def __init__(self, editor: GraphEditor, name: str, ops: Sequence[Operation]) -> None:
        self._editor, self._compiler, self._name = editor, editor.options.compiler, name
        sources = {source for op in ops for source in op.edges[::2]}
        held = filter(is_small_constant, sources.difference(ops))
        self._ops = [op for op in ops if not is_free_constant(op) or is_small_constant(op)]
        self._inside = [*sorted(held, key=lambda op: op.number), *self._ops]
        self._members = set(self._inside)

    def encapsulate(self) -> None:
        """Add the function to the library of the graph, and call it in place of the operations."""
        if all(op.type == "Const" for op in self._ops):
            return
        results = self._results()
        edges = [edge for op in self._inside for edge in edges_of(op)]
        arguments = [e for e in dict.fromkeys(edges) if e[0] not in self._members]
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
            ENGINE: self._compiler.name,
        }
        tensors = [op.outputs[index] for op, index in inputs]
        first = self._ops[0]
        awaited = dict.fromkeys([source for op in self._inside for source in op.control_inputs])
        outside = [op for op in awaited if op not in self._members]
        call = self._editor.add(self._name, tensors, self._name, attrs, first.device, outside)
        self._editor.place_like(call, first)
        self._hand_over(call, results)

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
        known = self._compiler.compile_time_constants(body)
        kinds = []
        for index, (op, output) in enumerate(arguments):
            if op.output_types[output] == DataType.DT_RESOURCE:
                kinds.append(_RESOURCE)
            elif is_free_constant(op):
                kinds.append(_LASTING)
            else:
                kinds.append(_KNOWN if index in known else _TENSOR)
        return kinds

    def _function(self, arguments: Sequence[Edge], results: Sequence[Edge]) -> FunctionDef:
        graph = self._editor.graph
        feeds = [op.outputs[index] for op, index in arguments]
        part, fed = copy_operations(graph, self._inside, feeds)
        inside = part.get_operation_by_name
        targets = [op.name for op in self._ops if effect_of(op.signature) is Effect.ACTS]
        stand_ins = {fed[tensor].op for tensor in feeds}
        function = graph_to_function_def(
            part,
            self._name,
            [fed[tensor] for tensor in feeds],
            [inside(op.name).outputs[index] for op, index in results],
            body=[op for op in part.get_operations() if op not in stand_ins],
            output_names=[f"{self._name}_result_{index}" for index in range(len(results))],
            control_outputs={name: inside(name) for name in targets},
            attrs={_COMPILED_KERNEL: AttrValue(b=True)},
        )
        for node in function.node_def:
            if CLUSTER in node.attr:
                node.attr[ALREADY_CLUSTERED].CopyFrom(node.attr[CLUSTER])
                del node.attr[CLUSTER]
        return function

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
    found = copied(function)
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


def build_xla_ops(editor: GraphEditor) -> None:
    """Have clusters launched."""
    options = editor.options
    for op in editor.operations():
        if NUM_CONSTANT_ARGS not in op.message.attr or op.type not in op.graph.function_library:
            continue
        if options.has_compile_nodes:
            _CompileAndRun(editor, op).build()
        else:
            attrs = {"Tresults": op.output_types, COMPILE_MODE: options.mode.encode()}
            editor.become(op, "XlaLaunch", op.inputs, _attrs(op) | attrs)


def _attrs(call: Operation) -> dict[str, Any]:
    attrs, types = call.message.attr, call.input_types
    constants, resources = attrs[NUM_CONSTANT_ARGS].i, attrs[NUM_RESOURCE_ARGS].i
    return {
        "Tconstants": types[:constants],
        "Targs": types[constants : len(types) - resources],
        "Nresources": resources,
        "function": NameAttrList(name=call.type),
        ENGINE: attrs[ENGINE].s,
        NUM_LASTING_ARGS: attrs[NUM_LASTING_ARGS].i,
    }


class _CompileAndRun:
    """A call that is compiled by one node and run by another."""

    def __init__(self, editor: GraphEditor, call: Operation) -> None:
        self._editor, self._call = editor, call
        self._waiting = [one for one, place in call.consumer_edges() if place < 0]
        self._name = call.name

    def build(self) -> None:
        """Put the nodes beside the call; others take the results of whichever runs."""
        call, add = self._call, self._editor.add
        name, attrs = f"{self._name}/xla_compile", {**_attrs(call), "must_compile": False}
        compiler = add("_XlaCompile", call.inputs, name, attrs, call.device, call.control_inputs)
        key, is_compiled = compiler.outputs
        name = f"{self._name}/predicated_compilation_key"
        no, yes = add("Switch", [key, is_compiled], name).outputs
        not_compiled = add("Identity", [no], f"{self._name}/not_compiled")
        constants = call.message.attr[NUM_CONSTANT_ARGS].i
        types = {"Targs": call.input_types[constants:], "Tresults": call.output_types}
        inputs = [*call.inputs[constants:], yes]
        runner = add("_XlaRun", inputs, f"{self._name}/xla_run", types, call.device)
        call.add_control_inputs([not_compiled])
        self._merge(runner.outputs)
        if self._waiting:
            self._lead_waiting(add("Identity", [yes], f"{self._name}/ran", {}, "", [runner]))
        for op in (compiler, runner):
            self._editor.place_like(op, call)

    def _merge(self, results: Sequence[Tensor]) -> None:
        """Have consumers take a result of the call or of the program, whichever is alive."""
        for own, other in zip(self._call.outputs, results, strict=True):
            consumers = [one for one, _ in own.consumer_edges()]
            merge = self._editor.add("Merge", [own, other], f"{self._name}/merge")
            if consumers:
                self._editor.redirect(own, merge.outputs[0], consumers)

    def _lead_waiting(self, ran: Operation) -> None:
        """Have those that waited for the call wait for the call or the program."""
        add, call = self._editor.add, self._call
        (no,) = [op for op in call.control_inputs if op.name == f"{self._name}/not_compiled"]
        called = add("Identity", no.outputs, f"{self._name}/called", {}, "", [call])
        done = add("Merge", [called.outputs[0], ran.outputs[0]], f"{self._name}/done")
        for one in self._waiting:
            one.set_control_inputs([done if op is call else op for op in one.control_inputs])
