"""NodeItem: the facts of a node that the dataflow executor needs.

A node under way that calls functions is a generator. It yields the calls that it asks for, is sent the
results, and returns its outputs. The generator knows neither who runs the function nor for how long.

Source: NodeItem in TensorFlow core/common_runtime/graph_view.h, core/kernels/functional_ops.cc, function_ops.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from enum import IntEnum
from typing import Any

from opkernel.graph import Operation, Tensor
from opkernel.kernel import AsyncOpKernel, ContextParams, OpKernel, OpKernelContext
from opkernel.records import dataclass, field
from opkernel.runtime.dataflow.parts import Part
from opkernel.runtime.plan.functional_ops import FunctionLibrary, LibraryFunction
from opkernel.runtime.plan.keys import Key, key_of
from opkernel.runtime.plan.services import branch_index, truth

_PARAMS = ContextParams()


class Kind(IntEnum):
    """How a node is computed. Those below `SWITCH` need no care of their own when they are done."""

    CALL = 0  # function(*inputs) is the one output
    CALL_MANY = 1  # function(*inputs) are the outputs
    STEP = 2  # function(step, inputs) are the outputs
    CONSTANT = 3  # `function` are the outputs
    NOTHING = 4
    CALLER = 5  # function(inputs) says which functions it calls
    SWITCH = 6  # function(*inputs) are the outputs, some dead; an input is a reference
    MERGE = 7
    ENTER = 8
    EXIT = 9
    NEXT_ITERATION = 10
    CONTROL_TRIGGER = 11
    KERNEL = 12  # a synchronous kernel that wants to know where in the loops it is
    ASYNC = 13  # function(ctx, done) starts it
    RETURN = 14  # the end of a function
    SUSPENDED = 15  # function(step, inputs) is a generator that yields kernels that have to wait
    TURN = 16  # a NextIteration that need not run: its input goes to the next iteration at once


TAKE_AT_ONCE = frozenset([Kind.MERGE.value, Kind.TURN.value])
"""Nodes that take a value in a way of their own."""


Edge = tuple[int, int, "NodeItem"]
"""Where an output goes: the slot of the consumer's input, the consumer's number, the consumer."""


@dataclass(slots=True, eq=False, repr=False)
class NodeItem:
    """A node. Numbers and slots are those of the frame that it is in.

    Attributes:
        op: The operation; of a part of the graph the first.
        part: The part of the graph that it stands for, if it is no single operation.
        passed: The operations that only pass its outputs on, and are left out.
        name: The name of the operation.
        kind: How it is computed.
        function: What computes it.
        kernel: Its kernel, if that is called with a context of the executor's making.
        attempt: Computes an asynchronous kernel in a context, if it need not wait; whether it did.
        frame: The frame that it is in.
        enters: The frame that an Enter leads into.
        id: Its number in the frame.
        start: The slot of its first input.
        stop: The slot after its last input.
        cleared: The content of its slots once they were read.
        pending: How many inputs and control inputs it waits for; for a Merge, 1 and twice the
            number of control inputs.
        edges: For each output where it goes.
        controls: The consumers that wait for it, as edges without a slot.
        is_simple: Its outputs are alive and go to its own iteration, to nodes that want them all.
        may_die: Some of its outputs may be dead though it is alive.
        is_transfer: It runs though an input is dead.
        is_constant: Its value is that of all iterations (Enter).
        params: What the contexts of its kernel tell.
        refs: The inputs that are references; of control flow those whose values it wants.
        expensive: Whether a thread of a pool may compute it.
        seconds: What it is believed to cost, where there is a pool.
    """

    op: Operation
    frame: FrameInfo
    part: Part | None = None
    passed: list[Operation] = field(default_factory=list, init=False)
    name: str = field(default="", init=False)
    kind: int = field(default=Kind.NOTHING.value, init=False)
    function: Any = field(default=None, init=False)
    kernel: OpKernel | AsyncOpKernel | None = field(default=None, init=False)
    attempt: Callable[[OpKernelContext], bool] | None = field(default=None, init=False)
    params: ContextParams = field(default=_PARAMS, init=False)
    id: int = field(default=0, init=False)
    start: int = field(default=0, init=False)
    stop: int = field(default=0, init=False)
    cleared: Sequence[None] = field(default=(), init=False)
    enters: FrameInfo | None = field(default=None, init=False)
    pending: int = field(default=0, init=False)
    edges: Sequence[Sequence[Edge]] = field(default=(), init=False)
    controls: Sequence[Edge] = field(default=(), init=False)
    is_simple: bool = field(default=False, init=False)
    may_die: bool = field(default=False, init=False)
    is_transfer: bool = field(default=False, init=False)
    is_constant: bool = field(default=False, init=False)
    refs: tuple[int, ...] = field(default=(), init=False)
    expensive: bool = field(default=False, init=False)
    seconds: float = field(default=math.inf, init=False)  # not measured

    def __post_init__(self) -> None:
        inputs = len(self.inputs)
        self.name = self.op.name
        self.id, self.start = self.frame.add(self, inputs)
        self.stop, self.cleared = self.start + inputs, (None,) * inputs

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations that it stands for."""
        own = (self.op,) if self.part is None else self.part.operations
        return [*own, *self.passed] if self.passed else own

    @property
    def inputs(self) -> Sequence[Tensor]:
        """The tensors that it takes."""
        return self.op.inputs if self.part is None else self.part.inputs

    @property
    def outputs(self) -> Sequence[Key]:
        """The tensors that it gives."""
        if self.part is not None:
            return [key_of(tensor) for tensor in self.part.outputs]
        return [(self.name, index) for index in range(len(self.op.output_types))]

    def __repr__(self) -> str:
        return f"<{self.op.type} {self.name!r}>"


class FrameInfo:
    """A frame as all its executions have it.

    Attributes:
        name: The name; empty for the root frame.
        parallel_iterations: How many iterations may be under way at a time.
        enters: The number of Enters that lead into it.
        exits: The number of Exits that lead out of it.
        items: Its nodes; their places are their numbers.
        slots: The values of an iteration before anything has arrived.
        pending: What each node waits for then.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.parallel_iterations = 1
        self.enters = 0
        self.exits = 0
        self.items: list[NodeItem] = []
        self.slots: list[Any] = []
        self.pending: list[int] = []

    def add(self, item: NodeItem, inputs: int) -> tuple[int, int]:
        """Add a node; its number and first slot."""
        self.items.append(item)
        self.slots += [None] * inputs
        return len(self.items) - 1, len(self.slots) - inputs


class RootInfo(FrameInfo):
    """The root frame of a graph, or of the body of a function.

    Attributes:
        source: The node that gives the feeds; it is never run.
        sink: The node that takes the fetches. It is never ready; of a function it is run at its
            end.
        roots: The nodes that are ready at the beginning.
    """

    source: NodeItem
    sink: NodeItem
    roots: Sequence[NodeItem] = ()

    def __init__(self) -> None:
        super().__init__("")


def node_of_kernel(op: Operation, kernel: AsyncOpKernel) -> NodeItem:
    """The node of an asynchronous kernel, outside of all frames: a plan has its outputs."""
    item = NodeItem(op, FrameInfo(""))
    item.kind, item.kernel, item.function = Kind.ASYNC.value, kernel, kernel.start
    return item


Requests = Generator[tuple[LibraryFunction, Sequence[Any]], Sequence[Any], Sequence[Any]]
"""The calls that a node makes: functions with their arguments."""


def requests_of(
    op: Operation, library: FunctionLibrary
) -> Callable[[Sequence[Any]], Requests] | None:
    """The function that makes a node's calls from its inputs; None for nodes that call nothing."""
    make = _REQUESTS.get(op.traits.calls)
    if make is not None:
        return make(op, library)
    function = library.function_of(op)
    return None if function is None else _requests_of_call(function)


def _call(op: Operation, library: FunctionLibrary) -> Callable[[Sequence[Any]], Requests]:
    (function,) = library.functions(op, "f")
    return _requests_of_call(function)


def _requests_of_call(function: LibraryFunction) -> Callable[[Sequence[Any]], Requests]:
    def requests(inputs: Sequence[Any]) -> Requests:
        return (yield function, inputs)

    return requests


def _if(op: Operation, library: FunctionLibrary) -> Callable[[Sequence[Any]], Requests]:
    (then,), (otherwise,) = (library.functions(op, attr) for attr in ("then_branch", "else_branch"))

    def requests(inputs: Sequence[Any]) -> Requests:
        return (yield then if truth(inputs[0]) else otherwise, inputs[1:])

    return requests


def _case(op: Operation, library: FunctionLibrary) -> Callable[[Sequence[Any]], Requests]:
    branches = library.functions(op, "branches")

    def requests(inputs: Sequence[Any]) -> Requests:
        return (yield branches[branch_index(inputs[0], len(branches))], inputs[1:])

    return requests


def _while(op: Operation, library: FunctionLibrary) -> Callable[[Sequence[Any]], Requests]:
    (condition,), (body,) = (library.functions(op, attr) for attr in ("cond", "body"))

    def requests(variables: Sequence[Any]) -> Requests:
        while truth((yield condition, variables)[0]):
            variables = yield body, variables
        return variables

    return requests


_REQUESTS = {"case": _case, "function": _call, "if": _if, "while": _while}
