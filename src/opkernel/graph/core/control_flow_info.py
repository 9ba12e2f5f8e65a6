"""Which loop each node of a graph is in, as TensorFlow tells it from Enter and Exit.

Source: BuildControlFlowInfo in TensorFlow core/graph/control_flow.cc.
"""

from collections.abc import Sequence

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.graph import Operation
from opkernel.graph.core.control_flow_ops import ENTER_OPS, EXIT_OPS
from opkernel.graph.edit.prune import Needs
from opkernel.records import dataclass


@dataclass(frozen=True, eq=False)
class LoopFrame:
    """A loop of the graph; the root frame, which has no parent, is all that is in no loop.

    Attributes:
        name: The name that its Enters give it.
        parent: The loop that it is in.
        depth: How many loops it is in, itself included.
    """

    name: str
    parent: "LoopFrame | None" = None
    depth: int = 0


ROOT = LoopFrame("")


def control_flow_info(order: Sequence[Operation], needs: Needs) -> dict[str, LoopFrame]:
    """The frame of each operation, by name; `order` has inputs before consumers, except for back edges.

    An Enter is in the frame around its loop, an Exit in the frame of its loop. Feeds come from the
    root frame.

    Raises:
        InvalidArgumentError: a node has inputs from different frames, an Exit is in no loop, or a loop
            has two conditions.
        InternalError: Enters lead into one frame from different ones.
    """
    frames: dict[str, LoopFrame] = {}
    children: dict[str, LoopFrame] = {}

    def sources(op: Operation) -> list[tuple[Operation, LoopFrame]]:
        fed = [(tensor.op, ROOT) for tensor in op.inputs if needs.is_fed(tensor)]
        known = [source for source in needs.sources(op) if source.name in frames]
        return fed + [(source, _behind(source, frames, children)) for source in known]

    for op in order:
        found = sources(op)
        frames[op.name] = found[0][1] if found else ROOT
        if op.type in ENTER_OPS:
            _enter(op, frames[op.name], children)
    for op in order:  # now that those behind back edges are known, too
        _check(op, sources(op))
        if op.type in EXIT_OPS and frames[op.name] is ROOT:
            raise InvalidArgumentError(
                f"{op.type} leads out of a loop, but is in no loop (node {op.name!r})",
                node=op.name,
                op=op.type,
            )
    _check_conditions([op for op in order if op.type == "LoopCond"], frames)
    return frames


class LoopFrames:
    """The frames of some operations, in an order as `control_flow_info` takes them; it says the errors."""

    def __init__(self, order: Sequence[Operation], needs: Needs) -> None:
        self._frames = control_flow_info(order, needs)
        self._enters = {frame_name(op): op for op in order if op.type in ENTER_OPS}
        self._children = {}
        for frame in self._frames.values():
            inner: LoopFrame | None = frame
            while inner is not None:
                self._children[inner.name] = inner
                inner = inner.parent

    def of(self, op: Operation) -> LoopFrame:
        """The frame that an operation is in."""
        return self._frames.get(op.name, ROOT)

    def put(self, op: Operation, frame: LoopFrame) -> None:
        """Note the frame of an operation that was added."""
        self._frames[op.name] = frame

    def behind(self, op: Operation) -> LoopFrame:
        """The frame of the consumers of an operation."""
        return _behind(op, self._frames, self._children) if op.name in self._frames else ROOT

    def parallel_iterations(self, frame: LoopFrame) -> int:
        """How many turns of a loop may run at once."""
        return int(self._enters[frame.name].attr["parallel_iterations"].i)


def frame_name(enter: Operation) -> str:
    """The name of the frame that an Enter leads into."""
    name: bytes = enter.node_def.attr["frame_name"].s
    return name.decode(errors="backslashreplace")


def _behind(
    op: Operation, frames: dict[str, LoopFrame], children: dict[str, LoopFrame]
) -> LoopFrame:
    """The frame of the consumers of an operation."""
    frame = frames[op.name]
    if op.type in ENTER_OPS:
        return children[frame_name(op)]
    if op.type in EXIT_OPS:
        return frame.parent or ROOT
    return frame


def _enter(op: Operation, frame: LoopFrame, children: dict[str, LoopFrame]) -> None:
    """Note the frame that an Enter leads into."""
    name = frame_name(op)
    if not name:
        raise InvalidArgumentError(
            f"The Enter {{{{node {op.name}}}}} must have a frame name.", node=op.name, op=op.type
        )
    child = children.setdefault(name, LoopFrame(name, frame, frame.depth + 1))
    if child.parent is not frame:
        raise InternalError(
            f'Invalid loop structure: Mismatched parent frames for "{name}": "{frame.name}" vs '
            f'"{_name(child.parent)}", from where another Enter than {{{{node {op.name}}}}} leads into it',
            node=op.name,
            op=op.type,
        )


def _check_conditions(conditions: Sequence[Operation], frames: dict[str, LoopFrame]) -> None:
    first: dict[LoopFrame, Operation] = {}
    for op in conditions:
        other = first.setdefault(frames[op.name], op)
        if other is not op:
            raise InvalidArgumentError(
                f'Invalid loop structure: Loop "{frames[op.name].name}" has more than one LoopCond '
                f"node: {{{{node {op.name}}}}} and {{{{node {other.name}}}}}",
                node=op.name,
                op=op.type,
            )


def _check(op: Operation, found: Sequence[tuple[Operation, LoopFrame]]) -> None:
    for source, frame in found:
        first, expected = found[0]
        if frame is not expected:
            raise InvalidArgumentError(
                f"{{{{node {op.name}}}}} has inputs from different frames. The input "
                f"{{{{node {source.name}}}}} is in frame '{frame.name}'. The input "
                f"{{{{node {first.name}}}}} is in frame '{expected.name}'.",
                node=op.name,
                op=op.type,
            )


def _name(frame: LoopFrame | None) -> str:
    return "" if frame is None else frame.name
