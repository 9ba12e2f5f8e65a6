"""Body: a graph, or the body of a function, in which handles become values; and these values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import (
    ENTER_OPS,
    EXIT_OPS,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
    VARIABLE_OPS,
)
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.graph.functions.calls import calls_functions
from opkernel.graph.functions.function_body import FunctionBody
from opkernel.types import DataType, PartialTensorShape

PASS_FIRST_ON = SWITCH_OPS | ENTER_OPS | EXIT_OPS | NEXT_ITERATION_OPS | {"Identity", "RefIdentity"}
"""Ops that give their first input at each output; without `Ref`, they do so with a value."""
PASS_ON = PASS_FIRST_ON | MERGE_OPS | {"IdentityN"}
"""Ops that give handles or references that they take, and do nothing else with them."""


class HeldValue(NamedTuple):
    """What takes the place of a handle or reference.

    Attributes:
        dtype: its type.
        shape: the known part of its shape.
        variable: the name of the variable, or of one of those that it may be.
    """

    dtype: DataType
    shape: PartialTensorShape
    variable: str


def is_handle(dtype: DataType) -> bool:
    """Whether tensors of a type stand for what has a value: handles and references."""
    return dtype.is_ref or dtype is DataType.DT_RESOURCE


def variable_name(variable: Operation) -> str:
    """The name under which a variable keeps its value: the attr `shared_name`, or that of its node."""
    return variable.attr["shared_name"].s.decode("utf-8", "surrogateescape") or variable.name


def declared_value(variable: Operation) -> HeldValue:
    """The value of a variable, as its node declares it; a scalar Variable may have any shape."""
    shape = PartialTensorShape.from_proto(variable.attr["shape"].shape)
    if variable.type == "Variable" and shape.rank == 0:
        shape = PartialTensorShape()
    return HeldValue(DataType(variable.attr["dtype"].type), shape, variable_name(variable))


def joined(values: Iterable[HeldValue | None]) -> HeldValue | None:
    """The value that may be any of some; None where there are none, or their types differ."""
    known = [value for value in values if value is not None]
    if len({value.dtype for value in known}) != 1:
        return None
    first, *others = known
    for other in others:
        first = first._replace(shape=first.shape.most_specific_compatible_shape(other.shape))
    return first


class Body:
    """A graph, or the body of a function, and what is known of the handles in it.

    Attributes:
        graph: the nodes.
        function: the function; None for a graph.
        ops: the nodes that the results, or the effects, of the function need.
        variables: the value of each variable among the nodes, and of each captured handle.
        arguments: the value of each argument of the function that is a handle which becomes one.
        values: the values of the handles that become values.
        calls: the nodes that call functions in which something may change, with the bodies of these.
        callers: the bodies that call this one.
        is_stateful: whether anything in it has state, also when handles have become values.
    """

    def __init__(
        self, graph: Graph, function: FunctionBody | None = None, kept: Collection[str] = ()
    ) -> None:
        """A body whose variables become values, but for those that are `kept`, by their names."""
        self.graph = graph
        self.function = function
        self.arguments: list[HeldValue | None] = []
        ops = graph.get_operations()
        if function is not None:
            self.arguments = [None] * len(function.arg_nodes)
            targets = [op for op in function.targets if effect_of(op.signature) > Effect.SEES]
            ends = [*function.arg_nodes, *function.ret_nodes, *function.control_ret_nodes, *targets]
            ops = sorted(prune_and_order((), ends, ()), key=lambda op: op.number)
        variables = {op: declared_value(op) for op in ops if op.type in VARIABLE_OPS}
        self.variables = {op: one for op, one in variables.items() if one.variable not in kept}
        self.values: dict[Tensor, HeldValue] = {}
        self.calls: dict[Operation, list[Body]] = {}
        self.callers: dict[Body, None] = {}
        self.ops = dict.fromkeys(ops)
        self.is_stateful = False

    @property
    def name(self) -> str:
        """The name of the function; empty for a graph."""
        return "" if self.function is None else self.function.name

    @property
    def results(self) -> list[HeldValue | None]:
        """The value of each result of the function that is a handle which becomes one."""
        if self.function is None:
            return []
        results = zip(self.function.outputs, self.function.ret_types, strict=True)
        return [self.values.get(tensor) if is_handle(dtype) else None for tensor, dtype in results]

    def taken(self, tensors: Sequence[Tensor]) -> list[HeldValue | None]:
        """The value of each tensor that is a handle which becomes one."""
        return [self.values.get(tensor) for tensor in tensors]

    def follow(self, call: Callable[[Operation], Sequence[HeldValue | None]]) -> None:
        """Follow handles from where they come from to where they are read.

        Args:
            call: says what a node that calls functions gives.
        """
        arguments = () if self.function is None else self.function.arg_nodes
        waiting = dict.fromkeys([*self.variables, *arguments])
        calls = dict.fromkeys(self.calls)  # last: each set of handles that one takes has a body
        while waiting or calls:
            op, _ = (waiting or calls).popitem()
            given = call(op) if op in self.calls else self._given(op)
            for tensor, value in zip(op.outputs, given, strict=False):
                if value is not None and self._note(tensor, value):
                    for taker in self._takers(tensor):
                        (calls if taker in self.calls else waiting)[taker] = None

    def _given(self, op: Operation) -> Sequence[HeldValue | None]:
        """The values that the outputs of a node are, if it calls no function."""
        if op in self.variables:
            return [self.variables[op]]
        if op.type in PASS_FIRST_ON:
            return self.taken(op.inputs[:1]) * len(op.outputs)
        if op.type in MERGE_OPS:
            return [joined(self.taken(op.inputs))]
        if op.type == "IdentityN":
            return self.taken(op.inputs)
        return [self.arguments[op.attr["index"].i]]

    def _note(self, tensor: Tensor, value: HeldValue) -> bool:
        """Note what a handle is; whether that is new."""
        known = self.values.get(tensor)
        new = joined([known, value])
        if new is None or new == known or not is_handle(tensor.dtype):
            return False
        self.values[tensor] = new
        return True

    def _takers(self, tensor: Tensor) -> Iterator[Operation]:
        """The nodes that take a handle and may give it to others."""
        for op, index in tensor.consumer_edges():
            if index < 0 or op not in self.ops or not is_handle(op.input_types[index]):
                continue
            if op.type in PASS_ON:
                yield op
            elif calls_functions(op):
                self.calls.setdefault(op, [])
                yield op
