"""ConstantValues: the values that shape functions ask for, as far as the graph alone tells them.

It answers two questions: the value of a tensor that depends on constants alone, and the shape that a
tensor holds as its value. Some sizes of such a shape may be unknown. It follows integers element by
element through the ops of `partial_values`, and asks the runtime's evaluator for all else.

State: `_partial` holds the found integers and bools, `_values` the found values of other types, and
`_waiting` the edges whose inputs are being worked out.

Source: TensorFlow core/common_runtime/eval_const_tensor.cc, shape_refiner.cc (ConstantPartialShape).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opkernel.errors import OpError
from opkernel.graph.core.edges import Edge, edges_of, is_head_of_loop
from opkernel.graph.core.structural_ops import ARG_OPS, INPUT_OPS, LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.inference.partial_elements import (
    MAX_ELEMENTS,
    PartialValue,
    array_of,
    is_complete,
    is_tracked,
    unknown_elements,
    within_type,
)
from opkernel.opdef import DimensionHandle, ShapeHandle
from opkernel.slots import Slot
from opkernel.types import Array, tensor_from_proto

if TYPE_CHECKING:
    from opkernel.device.local_device import Device
    from opkernel.graph.core.operation import Operation
    from opkernel.graph.core.tensor import Tensor
    from opkernel.graph.inference.partial_values import Rule
    from opkernel.proto import NodeDef

_MAX_RANK = 254
_MAX_FOLDED = 100  # nodes that the shape function of one node is worth
_SMALL = 1 << 10
"""Constants of so many bytes are part of the functions that need them, and no arguments."""
_NOT_CONSTANT = INPUT_OPS | LOW_LEVEL_CONTROL_FLOW
_FAILURES = (OpError, ArithmeticError, LookupError, TypeError, ValueError)


class ConstantEvaluator(Protocol):
    """Computes the values of tensors that depend on constants and `known` alone.

    Operations are computed on a CPU of the process, or where `device_of` says.
    """

    def __call__(
        self,
        tensors: Sequence[Tensor],
        known: Mapping[Tensor, Array],
        max_nodes: int | None = None,
        device_of: Callable[[Operation], Device] | None = None,
    ) -> list[Array | None]:
        """The values; None where none is found, or not with `max_nodes` nodes."""


CONSTANT_VALUES: Slot[ConstantEvaluator] = Slot("values of constants")


class ConstantValues:
    """Answers for the tensors of one graph; each is worked out once, unless it is large.

    `shape_of` gives the shape handle of an output.
    """

    def __init__(self, shape_of: Callable[[Edge], ShapeHandle]) -> None:
        self._shape_of = shape_of
        self._partial: dict[Edge, PartialValue | None] = {}
        self._values: dict[Edge, Array | None] = {}
        self._waiting: set[Edge] = set()

    def value_of(self, edge: Edge) -> Array | None:
        """The value of a tensor that depends on constants alone; None where it is not known."""
        if edge not in self._values:
            value = self._find_value(edge)
            if value is not None and value.size > MAX_ELEMENTS:
                return value
            self._values[edge] = value
        return self._values[edge]

    def _find_value(self, edge: Edge) -> Array | None:
        op, index = edge
        if op.type == "Const":
            return constant_value(op.slim_message)
        dtype = op.output_types[index]
        partial = self.partial_value_of(edge)
        if partial is not None:
            return partial.astype(dtype.numpy_dtype) if is_complete(partial) else None
        for source in self._frontier(op) or ():
            self.partial_value_of(source)
        return self._evaluate(edge)

    def shape_held_by(self, edge: Edge) -> ShapeHandle | None:
        """The shape that a tensor holds; None where nothing is known of it, or it holds none."""
        value = self.partial_value_of(edge)
        if value is None or value.ndim > 1 or value.size > _MAX_RANK:
            return None
        if value.ndim == 0:
            return ShapeHandle() if value.item() == -1 else None
        if is_complete(value) and min(value, default=0) < -1:
            return None  # the shape function that reads the value will tell the error
        return ShapeHandle(tuple([_dim(element) for element in value]))

    def partial_value_of(self, edge: Edge) -> PartialValue | None:
        """The elements of a tensor of integers or bools; None for others, and where it is large."""
        if not is_tracked(edge[0].output_types[edge[1]]):
            return None
        stack = [edge]
        try:
            while stack:
                missing = [] if stack[-1] in self._partial else self._work_out(stack[-1])
                stack += missing
                self._waiting.update(missing)
                if not missing:
                    self._waiting.discard(stack[-1])
                    stack.pop()
        finally:
            self._waiting.difference_update(stack)
        return self._partial[edge]

    def learn(self, edge: Edge, value: PartialValue | None) -> None:
        """State the known part of a value; None means that nothing is known."""
        if is_tracked(edge[0].output_types[edge[1]]):
            self._partial[edge] = value
        else:
            self._values[edge] = value

    def forget(self, ops: Iterable[Operation]) -> None:
        """Drop the stale values of the outputs of operations."""
        for op in ops:
            for index in range(len(op.output_types)):
                self._partial.pop((op, index), None)
                self._values.pop((op, index), None)

    def clear(self) -> None:
        """Drop all that was found."""
        self._partial.clear()
        self._values.clear()

    def _work_out(self, edge: Edge) -> list[Edge]:
        """Find the value of an edge, or else the edges that must be worked out before it."""
        op = edge[0]
        inputs = _edges_of_rule(op)
        missing = self._not_yet(inputs)
        if missing:
            return missing
        value = self._by_rule(edge, inputs)
        if value is None and op.type != "Const":
            missing = self._not_yet(self._frontier(op) or ())
            if missing:
                return missing
            constant = self._evaluate(edge)
            if constant is not None and constant.size <= MAX_ELEMENTS:
                value = array_of(constant)
        self._partial[edge] = unknown_elements(self._shape_of(edge)) if value is None else value
        return []

    def _not_yet(self, edges: Iterable[Edge]) -> list[Edge]:
        known, waiting = self._partial, self._waiting
        return [edge for edge in edges if edge not in known and edge not in waiting]

    def _by_rule(self, edge: Edge, inputs: Sequence[Edge]) -> PartialValue | None:
        """The value by the rule of the op; None without a rule, or if the rule cannot tell."""
        op, index = edge
        try:
            rule = _rule_of(op)
            if rule is not None and inputs:
                known = [self._partial.get(source) for source in inputs]
                values = [value for value in known if value is not None]
                complete = len(values) == len(inputs)
                result = rule(op, index, values) if complete else None
            elif rule is not None and op.signature.traits.reads_shapes_only:
                result = rule(op, index, [self._shape_of(source) for source in edges_of(op)])
            elif op.type == "Const":
                result = (
                    constant_value(op.slim_message) if num_elements(op) <= MAX_ELEMENTS else None
                )
            else:
                return None
        except _FAILURES:
            return None  # the op's own shape function or kernel will tell the error
        return None if result is None else within_type(array_of(result), op.output_types[index])

    def _evaluate(self, edge: Edge) -> Array | None:
        """The value that a few foldable operations compute from constants and known integers."""
        op, index = edge
        frontier = self._frontier(op)
        if frontier is None:
            return None
        known = {}
        for source, output in frontier:
            held = self._partial.get((source, output), self._values.get((source, output)))
            if held is None or not is_complete(held):
                return None
            tensor = source.outputs[output]
            known[tensor] = held.astype(tensor.dtype.numpy_dtype)
        return CONSTANT_VALUES.get()([op.outputs[index]], known, _MAX_FOLDED)[0]

    def _frontier(self, op: Operation) -> list[Edge] | None:
        """The integers that an operation is computed from by a few foldable operations.

        None where it depends on more than these and constants. The walk ends soon, so that asking
        of every node of a graph takes linear time.
        """
        frontier: dict[Edge, None] = {}
        seen, waiting = {op}, [op]
        while waiting:
            op = waiting.pop()
            if not is_foldable(op) or len(seen) > _MAX_FOLDED:
                return None
            for source, index in edges_of(op):
                if source.type in ARG_OPS or _has_rule(source, index):
                    frontier[source, index] = None
                elif source not in seen:
                    seen.add(source)
                    waiting.append(source)
        return list(frontier)


def is_foldable(op: Operation) -> bool:
    """Whether an operation always gives the same for the same inputs."""
    registration = op.signature.registration
    return (
        registration is not None
        and not registration.op_def.is_stateful
        and not registration.is_function_op
        and not registration.traits.calls  # which may take any time
        and not registration.traits.runs_python
        and op.type not in _NOT_CONSTANT
    )


def _rule_of(op: Operation) -> Rule | None:
    traits = op.signature.traits
    if not (traits.value_rule or traits.passes_on):
        return None
    from opkernel.graph.inference.partial_values import rule_of  # few graphs compute shapes

    return rule_of(op)


def _has_rule(op: Operation, index: int) -> bool:
    return is_tracked(op.output_types[index]) and _rule_of(op) is not None


def _edges_of_rule(op: Operation) -> list[Edge]:
    """The inputs whose values the rule of an op takes; none for an op without a rule."""
    rule = _rule_of(op)
    if rule is None or op.signature.traits.reads_shapes_only or is_head_of_loop(op):
        return []
    is_passed_on = op.signature.traits.value_rule in ("", "forward")
    edges = edges_of(op)[: 1 if is_passed_on else None]
    for source, index in edges:
        if not is_tracked(source.signature.output_types[index]):
            return []
    return edges


def constant_value(node: NodeDef) -> Array | None:
    """The value of a Const; None where it is none of its dtype, as the step that runs it will say."""
    proto = node.attr["value"].tensor if "value" in node.attr else None
    if proto is None or proto.dtype != node.attr["dtype"].type:
        return None
    try:
        return np.asarray(tensor_from_proto(proto))
    except OpError:
        return None


def num_elements(const: Operation) -> int:
    """How many elements a constant says that it has."""
    return prod(dim.size for dim in const.slim_message.attr["value"].tensor.tensor_shape.dim)


def is_free_constant(op: Operation) -> bool:
    """Whether it is a constant that waits for nothing."""
    return op.type == "Const" and not op.control_inputs


def is_small_constant(op: Operation) -> bool:
    """Whether it is a constant that functions hold themselves, and do not take as an argument."""
    return is_free_constant(op) and op.attr["value"].tensor.ByteSize() <= _SMALL


def _dim(element: Any) -> DimensionHandle:
    """The dimension of a size that a shape holds; unknown for -1."""
    if isinstance(element, DimensionHandle):
        return element
    known = isinstance(element, int) and element >= 0
    return DimensionHandle(element) if known else DimensionHandle()
