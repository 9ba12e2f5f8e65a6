"""GraphView: a graph as the dataflow executor sees it, for certain feeds and fetches.

Source: TensorFlow core/common_runtime/graph_view.cc, immutable_executor_state.cc.
"""

from collections.abc import Iterable, Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Operation, Tensor
from opkernel.graph.core.control_flow_info import ROOT, control_flow_info, frame_name
from opkernel.graph.edit.prune import Needs
from opkernel.runtime.dataflow.node_functions import bind_node
from opkernel.runtime.dataflow.node_item import Edge, FrameInfo, Kind, NodeItem, RootInfo
from opkernel.runtime.plan.keys import RequiredOutputs
from opkernel.runtime.program.subgraph import ExecutorArgs


class _Border:
    """An operation that stands for the feeds or fetches of the caller."""

    type = ""
    outputs = ()

    def __init__(self, name: str, inputs: Sequence[Tensor] = ()) -> None:
        self.name = name
        self.inputs = inputs


class GraphView:
    """The nodes that a step needs, with their edges; it does not change.

    Attributes:
        root: All that is in no loop.
        frames: The loops, by name, and the root frame.
    """

    def __init__(self, args: ExecutorArgs) -> None:
        order, feeds, fetches = args.order, args.feeds, args.fetches
        self._needs = Needs(feeds)
        self._frame_of = control_flow_info(order, self._needs)
        self.root = RootInfo()
        self.frames: dict[str, FrameInfo] = {"": self.root}
        required = RequiredOutputs(order, feeds, fetches)
        items = {op.name: self._item(op) for op in order}
        for item in items.values():
            bind_node(item, args.kernels, args.library, args.watcher, required)
        self._check_fetches(fetches, items)
        self.root.source = self._border("the feeds")
        self.root.sink = self._border("the fetches", fetches)
        self.root.sink.kind = Kind.RETURN.value
        self.root.sink.is_transfer = True
        self._connect(items, feeds)
        self.root.roots = self._start(items.values())

    def _item(self, op: Operation) -> NodeItem:
        return NodeItem(op, self._frame(self._frame_of[op.name].name))

    def _border(self, name: str, inputs: Sequence[Tensor] = ()) -> NodeItem:
        return NodeItem(_Border(name, inputs), self.root)  # type: ignore[arg-type]  # what is read of it

    def _frame(self, name: str) -> FrameInfo:
        return self.frames.setdefault(name, FrameInfo(name))

    def _check_fetches(self, fetches: Sequence[Tensor], items: dict[str, NodeItem]) -> None:
        for tensor in fetches:
            if self._needs.is_fed(tensor):
                continue
            item = items[tensor.op.name]
            inside = frame_name(tensor.op) if item.kind == Kind.ENTER else item.frame.name
            frame = self._frame_of[tensor.op.name]
            if inside and not (item.kind == Kind.EXIT and frame.parent is ROOT):
                raise InvalidArgumentError(
                    f"The tensor {tensor.name} is inside the loop '{inside}' and cannot be "
                    "fetched: fetch what an Exit leads out of it",
                    node=tensor.op.name,
                    op=tensor.op.type,
                )

    def _connect(self, items: dict[str, NodeItem], feeds: Sequence[Tensor]) -> None:
        """Set all edges, and the number of inputs that each node waits for."""
        fed: dict[tuple[str, int], list[Edge]] = {(t.op.name, t.value_index): [] for t in feeds}
        outputs: dict[tuple[str, int], list[Edge]] = {
            (name, index): []
            for name, item in items.items()
            for index in range(len(item.op.outputs))
        }
        controls: dict[str, list[Edge]] = {name: [] for name in items}
        to = outputs | fed
        source, sink = self.root.source, self.root.sink
        for item in [*items.values(), sink]:
            for index, tensor in enumerate(item.op.inputs):
                to[tensor.op.name, tensor.value_index].append((item.start + index, item.id, item))
        for item in items.values():
            before = dict.fromkeys(source.name for source in self._needs.controls(item.op))
            for name in before:
                controls[name].append((-1, item.id, item))
            inputs = len(item.op.inputs)
            item.pending = 1 + 2 * len(before) if item.kind == Kind.MERGE else inputs + len(before)
        sink.pending = source.pending = len(sink.op.inputs) + 1
        source.edges = tuple(tuple(edges) for edges in fed.values())
        for name, item in items.items():
            item.edges = tuple(tuple(outputs[name, i]) for i in range(len(item.op.outputs)))
            item.controls = tuple(controls[name])
            self._finish(item)
        for frame in self.frames.values():
            frame.pending = [item.pending for item in frame.items]

    def _finish(self, item: NodeItem) -> None:
        consumers = [edge[2].kind for to in (*item.edges, item.controls) for edge in to]
        item.is_simple = item.kind < Kind.SWITCH and Kind.MERGE not in consumers
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
