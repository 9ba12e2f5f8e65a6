"""ModelBuilder: visits the nodes of a cluster, each of which adds OpenVINO's nodes to a model.

A tensor is what is known of it: a NumPy array, or an output of one of OpenVINO's nodes. A tensor without elements is known,
and nothing has to compute it. Shapes are those that the shape functions of the ops give, so that inputs are refused as
TensorFlow refuses them, and what OpenVINO gives is held against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.engines.openvino.library import openvino, opset
from opkernel.engines.openvino.op_rule import CONSTANT_OPS, RULES, OpRule, attrs_of, properties_of
from opkernel.engines.openvino.tensors import as_output, constant, shape_of
from opkernel.errors import InternalError, InvalidArgumentError, OpError, UnimplementedError
from opkernel.graph import FunctionBody, Operation
from opkernel.graph.edit.subgraph import DataNeeds, prune_and_order
from opkernel.kernel import check_allocation
from opkernel.kernel.node_properties import by_arg
from opkernel.runtime.engines.engine import ClusterArgument
from opkernel.runtime.engines.late_work import CompileLimits, output_shapes
from opkernel.runtime.program.error_report import at_node
from opkernel.types import Array, tensor_from_proto

Shapes = list[tuple[int, ...] | None]


PART_OF_NAME = "|"
"""Behind the name of an operation: the node is one of several that it became. OpenVINO adds numbers to equal names."""


class ModelBuilder:
    """Builds the model of a cluster.

    Attributes:
        parameters: OpenVINO's parameters, by the index of the argument.
        results: For each result of the function what is known of it.
        arrays: What constants of the model show the memory of.
    """

    def __init__(self, body: FunctionBody, arguments: Sequence[ClusterArgument]) -> None:
        self._body = body
        self.parameters: dict[int, Any] = {}
        self.arrays: list[Array] = []
        self._nodes: dict[int, Any] = {}
        given = zip(body.arg_nodes, range(len(arguments)), arguments, strict=True)
        self._values = {(node, 0): self._argument(i, one) for node, i, one in given}
        self.results = self._build()

    def model(self, results: Sequence[Any]) -> Any:
        """OpenVINO's model that computes some outputs of its nodes; names and all, it is the same in every process."""
        for number, output in enumerate(results):
            output.get_tensor().set_names({f"result {number}"})
        ends = [opset().result(output) for output in results]
        model = openvino().Model(ends, list(self.parameters.values()), "cluster")
        for number, node in enumerate(model.get_ordered_ops()):
            if _is_unnamed(node):
                node.friendly_name = f"{PART_OF_NAME}{node.get_type_name()} {number}"
        return model

    def _argument(self, index: int, argument: ClusterArgument) -> Any:
        if argument.kind == "constant":
            return np.asarray(argument.constant)
        if 0 in argument.shape:
            return np.empty(argument.shape, argument.dtype.numpy_dtype)
        ov = openvino()
        element = ov.Type(argument.dtype.numpy_dtype)
        parameter = opset().parameter(list(argument.shape), element)
        parameter.friendly_name = argument.name or f"argument {index}"
        self.parameters[index] = parameter
        return parameter.output(0)

    def _build(self) -> list[Any]:
        values, fed, limits = self._values, self._body.inputs, CompileLimits()
        for op in prune_and_order(self._body.outputs, (), fed, DataNeeds):
            if (op, 0) in values:
                continue
            inputs = [values[edge] for edge in zip(op.edges[::2], op.edges[1::2], strict=True)]
            try:
                outputs = self._outputs(op, inputs)
                limits.check_node(op.name, map(_stand_in, outputs))
            except Exception as error:
                described = [_stand_in(value) for value in inputs]
                raise at_node(translated(error), op.name, op.type, described) from error
            values.update(zip(((op, index) for index in range(len(outputs))), outputs, strict=True))
        return [values[tensor.op, tensor.value_index] for tensor in self._body.outputs]

    def _outputs(self, op: Operation, inputs: list[Any]) -> list[Any]:
        if op.type in CONSTANT_OPS:
            return [np.asarray(tensor_from_proto(op.node_def.attr["value"].tensor))]
        rule = RULES.find(op.type)
        if rule is None:
            raise UnimplementedError(f"There is {RULES.missing(op.type)}")
        reason = rule.refusal(op)
        if reason:
            raise UnimplementedError(f"OpenVINO does not compile this {op.type}: {reason}")
        shapes = output_shapes(op, inputs)
        for shape, dtype in zip(shapes, op.output_types, strict=True):
            if shape is not None:  # as the kernel asks
                check_allocation(shape, dtype)
        if all(shape is not None and 0 in shape for shape in shapes):
            pairs = zip(shapes, op.output_types, strict=True)
            return [np.empty(shape or (), dtype.numpy_dtype) for shape, dtype in pairs]
        return self._built(op, rule, inputs, shapes)

    def _built(self, op: Operation, rule: OpRule, inputs: list[Any], shapes: Shapes) -> list[Any]:
        """The outputs of the nodes that a rule makes."""
        constants = rule.constant_places(op)
        given = [
            value if at in constants else self._node_of(value) for at, value in enumerate(inputs)
        ]
        for place in constants:
            if not isinstance(given[place], np.ndarray):
                raise InvalidArgumentError(f"input {place} must be a compile-time constant")
        nodes = [one for one in given if not isinstance(one, np.ndarray)]
        if not rule.takes_empty and any(0 in shape_of(one) for one in nodes):
            raise UnimplementedError(f"OpenVINO does not compile {op.type} of an empty tensor")
        fillers = {"output_shapes": shapes} if "output_shapes" in rule.keywords else {}
        attrs = attrs_of(op, (name for name in rule.keywords if name not in fillers))
        made = rule.build(*by_arg(given, properties_of(op).input_args), **attrs, **fillers)
        made = made if isinstance(made, tuple) else (made,)
        outputs = [one if isinstance(one, np.ndarray) else as_output(one) for one in made]
        _check(outputs, shapes)
        for output in outputs:
            if not isinstance(output, np.ndarray):
                _name(output.get_node(), op)
        return outputs

    def _node_of(self, value: Any) -> Any:
        """A value as an output of a node."""
        if not isinstance(value, np.ndarray):
            return value
        found = self._nodes.get(id(value))
        if found is None:
            array = np.require(value, requirements=["C", "A"])
            self.arrays += value, array
            found = self._nodes[id(value)] = constant(array)
        return found


def _name(node: Any, op: Operation) -> None:
    """Have messages and counters of OpenVINO name the operation that a node, and those before it, were made for."""
    unnamed = [node]
    while unnamed:
        one = unnamed.pop()
        kind = one.get_type_name()
        if kind not in ("Parameter", "Constant") and _is_unnamed(one):
            one.friendly_name = op.name if one is node else f"{op.name}{PART_OF_NAME}{kind}"
            unnamed += [value.get_node() for value in one.input_values()]


def _is_unnamed(node: Any) -> bool:
    """Whether a node has the name that OpenVINO made, with a number of the process."""
    return bool(node.friendly_name == node.name)


def operation_of(name: str) -> str:
    """The name of the operation that a node of OpenVINO was made for, from the node's name."""
    return name.partition(PART_OF_NAME)[0]


def _check(outputs: Sequence[Any], shapes: Shapes) -> None:
    """Refuse nodes that do not give what the shape function promises."""
    found = [_shape(output) for output in outputs]
    if any(shape not in (None, one) for one, shape in zip(found, shapes, strict=True)):
        raise InternalError(f"OpenVINO would give the shapes {found}, expected {shapes}")


def _shape(value: Any) -> tuple[int, ...]:
    return value.shape if isinstance(value, np.ndarray) else shape_of(value)


def _stand_in(value: Any) -> Array:
    """An array of the type and shape of a value, for messages."""
    if isinstance(value, np.ndarray):
        return value
    return np.broadcast_to(np.empty((), value.element_type.to_dtype()), shape_of(value))


def translated(error: Exception) -> OpError | Exception:
    """The error of OpenVINO, which raises RuntimeError, in short."""
    if not isinstance(error, RuntimeError) or isinstance(error, OpError):
        return error
    text, places = str(error), ("Exception from", "Check ")  # the lines of its sources
    lines = [line for line in text.splitlines() if not line.startswith(places)]
    return InternalError(f"OpenVINO: {' '.join(' '.join(lines).split()) or text}")
