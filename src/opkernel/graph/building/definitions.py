"""NodeDefs, FunctionDefs and GraphDefs in one line each, for tests and for graphs written by hand.

    node_def("dx", "SymbolicGradient", ["x", "dy"], f=func("Neg", T=float32), Tin=[...], Tout=[...])

The functions make plain messages. They fill in no default, and check only what the form of a message
needs. `import_graph_def` and Session check the rest.

Source: TensorFlow core/framework/function_testlib.cc (NDef, GDef), function.cc (FunctionDefHelper).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.opdef import (
    GRAPH_DEF_VERSION,
    GRAPH_DEF_VERSION_MIN_CONSUMER,
    OpDefBuilder,
    OpRegistryInterface,
    find_attr,
    global_op_registry,
    infer_attr_from_python,
)
from opkernel.proto import FunctionDef, GraphDef, NameAttrList, NodeDef


def node_def(
    name: str, op: str, inputs: Iterable[str] = (), /, *, device: str = "", **attrs: Any
) -> NodeDef:
    """A node (NDef).

    Args:
        name: its name.
        op: its op, or a function.
        inputs: such as `"x"`, `"split:1"`, in a function `"split:output:1"`; `"^x"` is a control input.
        device: the device that it asks for.
        attrs: AttrValues, or Python objects; the type of the object is the type of the attr: `2` is
            an int, `2.0` a float, `float32` a type; a NumPy scalar is a tensor where the op, if it
            is known, declares one. `"$T"` stands for the attr T of the function
            around the node.

    Raises:
        InvalidArgumentError: no type of attr goes with an object.
    """
    node = NodeDef(name=name, op=op, input=inputs, device=device)
    _set_attrs(node.attr, {key: _as_tensor(op, key, value) for key, value in attrs.items()})
    return node


def _as_tensor(op: str, attr: str, value: Any) -> Any:
    """A NumPy scalar as an array where the op declares the attr as a tensor; every other value as it is."""
    if not isinstance(value, np.generic) or not global_op_registry().is_there(op):
        return value
    declared = find_attr(global_op_registry().look_up_op_def(op), attr)
    is_tensor = declared is not None and declared.type == "tensor"
    return np.asarray(value) if is_tensor else value


def func(name: str, /, **attrs: Any) -> NameAttrList:
    """The value of a `func` attr (FunctionRef): a function, or an op, with attrs as `node_def` takes them."""
    function = NameAttrList(name=name)
    _set_attrs(function.attr, attrs)
    return function


def _set_attrs(target: Any, attrs: Mapping[str, Any]) -> None:
    for name, value in attrs.items():
        if isinstance(value, str) and len(value) > 1 and value.startswith("$"):
            target[name].placeholder = value[1:]
        else:
            target[name].CopyFrom(infer_attr_from_python(value))


def graph_def(nodes: Iterable[NodeDef], functions: Iterable[FunctionDef] = ()) -> GraphDef:
    """A graph of nodes, with a library of functions, for the present version of GraphDef (GDef)."""
    graph = GraphDef(node=nodes)
    graph.versions.producer = GRAPH_DEF_VERSION
    graph.versions.min_consumer = GRAPH_DEF_VERSION_MIN_CONSUMER
    graph.library.function.extend(functions)
    return graph


def function_def(
    name: str,
    inputs: Iterable[str],
    outputs: Iterable[str],
    nodes: Iterable[NodeDef],
    *,
    attrs: Iterable[str] = (),
    ret: Mapping[str, str] | None = None,
    control_ret: Mapping[str, str] | None = None,
    registry: OpRegistryInterface | None = None,
) -> FunctionDef:
    """A function (FunctionDefHelper::Define and Create).

        function_def("Twice", ["x: T"], ["y: T"], [node_def("y", "AddV2", ["x", "x"], T="$T")],
                     attrs=["T: {float, double}"])

    Inputs of nodes are written `"node:output:0"`, as in the message. The name alone means an argument, or
    the first output of an earlier node. A node that has state or calls another function makes the
    function stateful.

    Args:
        name: its name.
        inputs: the specs of its arguments, as `register_op` takes them.
        outputs: the specs of its results.
        nodes: its body; they are copied.
        attrs: the specs of its attrs.
        ret: the source of each result, written as the input of a node; by default the node or
            argument of the same name.
        control_ret: the nodes that run though no result needs them, by the names of the control outputs.
        registry: where the ops of the nodes are looked up; the global registry if None.

    Raises:
        InvalidArgumentError: a spec breaks the grammar, or an input or a result names no argument
            and no earlier node.
    """
    builder = OpDefBuilder(name)
    for method, specs in (
        (builder.attr, attrs),
        (builder.input, inputs),
        (builder.output, outputs),
    ):
        for spec in specs:
            method(spec)
    controls = dict(control_ret or {})
    for label in controls:
        builder.control_output(label)
    function = FunctionDef(signature=builder.finalize().op_def, control_ret=controls)
    body = _Body(function, global_op_registry() if registry is None else registry)
    for node in nodes:
        body.add(node)
    sources = dict(ret or {})
    for arg in function.signature.output_arg:
        function.ret[arg.name] = body.source(
            sources.pop(arg.name, arg.name), f"Return {arg.name!r}"
        )
    if sources:
        raise InvalidArgumentError(f"Function {name!r} has no output {next(iter(sources))!r}")
    return function


class _Body:
    """The nodes of a function; the inputs of later nodes may name them."""

    def __init__(self, function: FunctionDef, registry: OpRegistryInterface) -> None:
        self._function = function
        self._registry = registry
        self._sources = {arg.name: arg.name for arg in function.signature.input_arg}

    def add(self, node: NodeDef) -> None:
        added = self._function.node_def.add()
        added.CopyFrom(node)
        added.input[:] = [self.source(text, f"Node input of {node.name!r}") for text in node.input]
        try:
            op_def = self._registry.look_up_op_def(node.op)
        except NotFoundError:  # a function: it may have state, and its outputs are written in full
            self._function.signature.is_stateful = True
            return
        if op_def.is_stateful:
            self._function.signature.is_stateful = True
        if op_def.output_arg:
            self._sources[node.name] = f"{node.name}:{op_def.output_arg[0].name}:0"

    def source(self, text: str, what: str) -> str:
        """An input of a node as the message has it."""
        if ":" in text or text.startswith("^"):
            return text
        if text not in self._sources:
            raise InvalidArgumentError(
                f"{what} in {self._function.signature.name!r} is {text!r}, which is neither an argument "
                f"nor an earlier node; the output of a function is written '{text}:output:0'"
            )
        return self._sources[text]
