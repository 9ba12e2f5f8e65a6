"""GraphView: a graph as the dataflow executor sees it, for certain feeds and fetches.

`binding` says how each node is computed.

Source: TensorFlow core/common_runtime/graph_view.cc, immutable_executor_state.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Operation, Tensor
from opkernel.graph.core.frame_loops import ROOT, control_flow_info, frame_name
from opkernel.graph.core.structural_ops import (
    ENTER_OPS,
    EXIT_OPS,
)
from opkernel.graph.edit.subgraph import Needs
from opkernel.runtime.dataflow.binding import bind_node
from opkernel.runtime.dataflow.node_item import (
    TAKE_AT_ONCE,
    Edge,
    FrameInfo,
    Kind,
    NodeItem,
    RootInfo,
)
from opkernel.runtime.dataflow.parts import Part, find_parts
from opkernel.runtime.dataflow.shortcuts import heads_of_loops, left_out
from opkernel.runtime.plan.keys import (
    Key,
    RequiredOutputs,
    key_of,
)
from opkernel.runtime.program.request import ExecutorArgs


class _Border:
    """An operation that stands for the feeds or fetches of the caller."""

    type = ""
    outputs = ()

    def __init__(self, name: str, inputs: Sequence[Tensor] = ()) -> None:
        self.name = name
        self.inputs = inputs


class GraphView:
    """The nodes that a step needs, with their edges; it does not change.

    Args:
        args: The graph.
        in_parts: Whether parts in which nothing waits are run as plans. Under watch they are not.

    Attributes:
        root: All that is in no loop.
        frames: The loops, by name, and the root frame; those that are run as plans are left out.
    """

    def __init__(self, args: ExecutorArgs, *, in_parts: bool = False) -> None:
        order, feeds, fetches = args.order, args.feeds, args.fetches
        self._needs = Needs(feeds)
        self._frame_of = control_flow_info(order, self._needs)
        self._check_fetches(fetches)
        self.root = RootInfo()
        self.frames: dict[str, FrameInfo] = {"": self.root}
        required = RequiredOutputs(order, feeds, fetches)
        self._item_of: dict[str, NodeItem] = {}
        self._passed: dict[Key, Key] = {}
        self._heads: dict[str, list[str]] = {}
        passing = self._shorten(args) if in_parts and args.watcher is None else set[str]()
        for op in order:
            if op.name in self._item_of or op.name in self._heads:
                continue
            if op.name in passing:
                self._pass_on(op)
            else:
                item = NodeItem(op, self._frame(self._frame_of[op.name].name))
                self._item_of[op.name] = item
                bind_node(item, args.kernels, args.library, args.watcher, required)
        items = [*dict.fromkeys(self._item_of.values())]
        if in_parts and args.watcher is None:
            self._pass_turns(items)
        self.root.source = self._border("the feeds")
        self.root.sink = self._border("the fetches", fetches)
        self.root.sink.kind = Kind.RETURN.value
        self.root.sink.is_transfer = True
        self._connect(items, feeds)
        self.root.roots = self._start(items)

    def _shorten(self, args: ExecutorArgs) -> set[str]:
        """Add the parts, and note the heads of other loops, which need not run; the nodes that only pass on."""
        self._add_parts(find_parts(args, self._frame_of, self._needs))
        heads = heads_of_loops(args.order, self._needs)
        self._heads = {name: heads[name] for name in heads.keys() - self._item_of.keys()}
        return left_out(args, self._needs)

    def _add_parts(self, parts: Sequence[Part]) -> None:
        """Add a node for each part; the frame of a loop is the one that its Enters are in."""
        for part in parts:
            enters = [op for op in part.operations if op.type in ENTER_OPS]
            frames = [self._frame_of[op.name] for op in enters or part.operations[:1]]
            outermost = min(frames, key=lambda frame: frame.depth)
            item = NodeItem(part.operations[0], self._frame(outermost.name), part)
            kind = Kind.SUSPENDED if part.suspends else Kind.STEP
            item.kind, item.function = kind.value, part.function()
            self._item_of.update(dict.fromkeys([op.name for op in part.operations], item))

    def _pass_on(self, op: Operation) -> None:
        """Leave a node out: its input stands for its output."""
        source = self._item_of.get(op.inputs[0].op.name)
        if source is not None:
            source.passed.append(op)
            self._item_of[op.name] = source
        self._passed[op.name, 0] = self._resolved(op.inputs[0])

    def _pass_turns(self, items: Sequence[NodeItem]) -> None:
        """Have a NextIteration not run where it waits only for one value of its iteration."""
        for item in items:
            if item.kind == Kind.NEXT_ITERATION and not item.refs and not self._controls(item):
                source = self._item_of.get(self._resolved(item.op.inputs[0])[0])
                is_fed = self._needs.is_fed(item.op.inputs[0])
                if source is not None and source.kind != Kind.ENTER and not is_fed:
                    item.kind = Kind.TURN.value

    def _resolved(self, tensor: Tensor) -> Key:
        """The tensor that stands for a tensor."""
        key = key_of(tensor)
        return self._passed.get(key, key)

    def _border(self, name: str, inputs: Sequence[Tensor] = ()) -> NodeItem:
        return NodeItem(_Border(name, inputs), self.root)  # type: ignore[arg-type]  # what is read of it

    def _frame(self, name: str) -> FrameInfo:
        return self.frames.setdefault(name, FrameInfo(name))

    def _check_fetches(self, fetches: Sequence[Tensor]) -> None:
        for tensor in fetches:
            if self._needs.is_fed(tensor):
                continue
            op, frame = tensor.op, self._frame_of[tensor.op.name]
            inside = frame_name(op) if op.type in ENTER_OPS else frame.name
            if inside and not (op.type in EXIT_OPS and frame.parent is ROOT):
                raise InvalidArgumentError(
                    f"The tensor {tensor.name} is inside the loop '{inside}' and cannot be "
                    "fetched: fetch what an Exit leads out of it",
                    node=op.name,
                    op=op.type,
                )

    def _connect(self, items: Sequence[NodeItem], feeds: Sequence[Tensor]) -> None:
        """Set all edges, and the number of inputs that each node waits for."""
        fed: dict[Key, list[Edge]] = {key_of(tensor): [] for tensor in feeds}
        outputs: dict[Key, list[Edge]] = {key: [] for item in items for key in item.outputs}
        outputs |= {(name, 0): [] for name in self._heads}
        controls: dict[str, list[Edge]] = {item.name: [] for item in items}
        controls |= {name: [] for name in self._heads}
        to = outputs | fed
        source, sink = self.root.source, self.root.sink
        for item in [*items, sink]:
            for index, tensor in enumerate(item.inputs):
                to[self._resolved(tensor)].append((item.start + index, item.id, item))
        for item in items:
            before = self._controls(item)
            for name in before:
                controls[name].append((-1, item.id, item))
            inputs = len(item.inputs)
            item.pending = 1 + 2 * len(before) if item.kind == Kind.MERGE else inputs + len(before)
        for name, givers in self._heads.items():
            for giver in givers:
                outputs[giver, 0] += outputs[name, 0]
                controls[giver] += controls[name]
        sink.pending = source.pending = len(sink.op.inputs) + 1
        source.edges = tuple(tuple(edges) for edges in fed.values())
        for item in items:
            item.edges = tuple(tuple(outputs[key]) for key in item.outputs)
            item.controls = tuple(controls[item.name])
            self._finish(item)
            if item.kind == Kind.TURN:
                item.pending = 0  # it never becomes ready
        for frame in self.frames.values():
            frame.pending = [item.pending for item in frame.items]

    def _controls(self, item: NodeItem) -> list[str]:
        """The nodes that a node waits for without taking a value, by name."""
        sources = [source.name for op in item.operations for source in self._needs.controls(op)]
        names = [name if name in self._heads else self._item_of[name].name for name in sources]
        found = dict.fromkeys(names)
        if len(item.operations) > 1:
            found.pop(item.name, None)
        return [*found]

    def _finish(self, item: NodeItem) -> None:
        consumers = [edge[2].kind for to in (*item.edges, item.controls) for edge in to]
        is_alive = item.attempt is not None or (item.kind < Kind.SWITCH and not item.may_die)
        item.is_simple = is_alive and TAKE_AT_ONCE.isdisjoint(consumers)
        if item.kind == Kind.EXIT:
            item.frame.exits += 1
        if item.kind == Kind.ENTER:
            frame = item.enters = self._frame(frame_name(item.op))
            frame.enters += 1
            frame.parallel_iterations = max(item.op.get_attr("parallel_iterations"), 1)
            item.is_constant = item.op.get_attr("is_constant")

    def _start(self, items: Iterable[NodeItem]) -> list[NodeItem]:
        """The nodes that are ready when a step begins, once the constants have been handed on."""
        waiting_for_nothing = [i for i in items if not i.pending and i.frame is self.root]
        ready = []
        for item in waiting_for_nothing:
            if item.kind == Kind.CONSTANT and item.is_simple:
                ready += self._hand_on(item)
            else:
                ready.append(item)
        return ready[::-1]  # the last is taken first

    def _hand_on(self, constant: NodeItem) -> list[NodeItem]:
        """Put a constant into the slots that every step starts with."""
        ready = []
        for slot, number, item in (*constant.edges[0], *constant.controls):
            if slot >= 0:
                (self.root.slots[slot],) = constant.function
            self.root.pending[number] -= 1
            if not self.root.pending[number]:
                ready.append(item)
        return ready
