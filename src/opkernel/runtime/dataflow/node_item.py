"""NodeItem: the facts of a node that the dataflow executor needs.

Source: NodeItem in TensorFlow core/common_runtime/graph_view.h.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from opkernel.graph import Operation
from opkernel.kernel import AsyncOpKernel, ContextParams, OpKernel

_PARAMS = ContextParams()


class Kind(IntEnum):
    """How a node is computed. Those below `SWITCH` need no care of their own when they are done."""

    CALL = 0  # function(*inputs) is the one output
    CALL_MANY = 1  # function(*inputs) are the outputs
    STEP = 2  # function(step, inputs) are the outputs
    CONSTANT = 3  # `function` are the outputs
    NOTHING = 4
    CALLER = 5  # function(inputs) says which functions it calls
    SWITCH = 6  # function(step, *inputs) are the outputs, some dead
    MERGE = 7
    ENTER = 8
    EXIT = 9
    NEXT_ITERATION = 10
    CONTROL_TRIGGER = 11
    KERNEL = 12  # a synchronous kernel that wants to know where in the loops it is
    ASYNC = 13  # function(ctx, done) starts it
    RETURN = 14  # the end of a function


Edge = tuple[int, int, "NodeItem"]
"""Where an output goes: the slot of the consumer's input, the consumer's number, the consumer."""


class NodeItem:
    """A node. Numbers and slots are those of the frame that it is in.

    Attributes:
        op: The operation.
        name: Its name.
        kind: How it is computed.
        function: What computes it.
        kernel: Its kernel, if that is called with a context of the executor's making.
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
        is_transfer: It runs though an input is dead.
        is_constant: Its value is that of all iterations (Enter).
        params: What the contexts of its kernel tell.
        refs: The inputs that are references; of control flow those whose values it wants.
        expensive: Whether a thread of a pool may compute it.
        seconds: What it is believed to cost, where there is a pool.
    """

    __slots__ = (
        "cleared",
        "controls",
        "edges",
        "enters",
        "expensive",
        "frame",
        "function",
        "id",
        "is_constant",
        "is_simple",
        "is_transfer",
        "kernel",
        "kind",
        "name",
        "op",
        "params",
        "pending",
        "refs",
        "seconds",
        "start",
        "stop",
    )

    def __init__(self, op: Operation, frame: FrameInfo) -> None:
        self.op = op
        self.name = op.name
        self.kind: int = Kind.NOTHING.value
        self.function: Any = None
        self.kernel: OpKernel | AsyncOpKernel | None = None
        self.params = _PARAMS
        self.frame = frame
        self.id, self.start = frame.add(self, len(op.inputs))
        self.stop = self.start + len(op.inputs)
        self.cleared = (None,) * len(op.inputs)
        self.enters: FrameInfo | None = None
        self.pending = 0
        self.edges: Sequence[Sequence[Edge]] = ()
        self.controls: Sequence[Edge] = ()
        self.is_simple = False
        self.is_transfer = False
        self.is_constant = False
        self.expensive = False
        self.refs: tuple[int, ...] = ()
        self.seconds = math.inf  # not measured

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
