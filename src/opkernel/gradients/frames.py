"""Frames: which loop of TensorFlow 1 each operation of a graph is in, and loops as single units.

Backpropagation walks the operations of one frame. A loop among them, with all that is inside, is one
unit of the walk.

Source: BuildControlFlowInfo in TensorFlow core/graph/control_flow.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from opkernel.errors import OpError, UnimplementedError
from opkernel.gradients.frame_loop import FrameLoop
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.control_flow_info import frame_name
from opkernel.graph.core.control_flow_ops import ENTER_OPS, EXIT_OPS, NEXT_ITERATION_OPS
from opkernel.interrupts import contextmanager

Frame = tuple[str, ...]
"""The names of the loops around an operation, outermost first."""

Unit = Operation | FrameLoop
"""A unit of backpropagation."""


class Frames:
    """The frames of the operations of a graph.

    Attributes:
        enters: the operations that lead into each loop.
    """

    def __init__(self, graph: Graph) -> None:
        self._frames: dict[Operation, Frame] = {}
        self.enters: dict[Frame, list[Operation]] = {}
        for op in graph.get_operations():
            if op.type in ENTER_OPS:
                self.enters.setdefault(self.behind(op), []).append(op)

    def of(self, op: Operation) -> Frame:
        """The frame of an operation; an Enter is outside of its loop, an Exit inside."""
        frames, waiting = self._frames, [op]
        while waiting:
            source = _source(waiting[-1])
            if source is None or source in frames:
                frames[waiting.pop()] = () if source is None else self.behind(source)
            else:
                waiting.append(source)
        return frames[op]

    def behind(self, op: Operation) -> Frame:
        """The frame of the consumers of an operation."""
        frame = self._frames.get(op)
        if frame is None:
            frame = self.of(op)
        if op.type in ENTER_OPS:
            return (*frame, frame_name(op))
        return frame[:-1] if op.type in EXIT_OPS else frame

    def home(self, op: Operation) -> Frame:
        """The frame of the loop that an operation belongs to, that of an Enter and an Exit, too."""
        return self.behind(op) if op.type in ENTER_OPS else self.of(op)


@contextmanager
def in_frame_of(tensor: Tensor) -> Iterator[None]:
    """Let new constants be in the loop that a tensor is in."""
    is_in_loop = Frames(tensor.graph).behind(tensor.op)
    with tensor.graph.control_dependencies([tensor.op] if is_in_loop else []):
        yield


def settle_shapes(graph: Graph) -> None:
    """Let tensors in loops have the shapes that they have in all turns, as far as that is known."""
    frames = Frames(graph)
    if not frames.enters:
        return
    try:
        shapes = graph.infer_shapes()
    except OpError:  # kernels raise where shapes do not fit
        return
    for tensor, shape in shapes.items():
        if frames.home(tensor.op) and not tensor.shape.is_fully_defined():
            tensor.set_shape(shape)


class Level:
    """One frame of a graph as backpropagation sees it: its operations, and the loops in it."""

    def __init__(self, ys: Sequence[Tensor], stops: Iterable[Tensor]) -> None:
        """The frame that results are in; `stops` are for the loops to know of."""
        self._loops: dict[Frame, FrameLoop] = {}
        self._stops = tuple(stops)
        self._frames = Frames(ys[0].graph) if ys else None
        if self._frames is not None and self._frames.enters:
            self._frame = min([self._frames.behind(y.op) for y in ys], key=len)
        else:
            self._frames = None

    def unit(self, op: Operation) -> Unit | None:
        """The unit of an operation; None outside of the frame and in another turn."""
        if self._frames is None:
            return op
        if op.type in NEXT_ITERATION_OPS and self._frames.of(op) == self._frame:
            return None
        home, depth = self._frames.home(op), len(self._frame)
        if home[:depth] != self._frame:
            return None
        return op if len(home) == depth else self._loop(home[: depth + 1])

    def unit_of_argument(self, x: Tensor) -> Unit:
        """The unit of a tensor by which we differentiate.

        Raises:
            UnimplementedError: there is a border of a loop between the tensor and the results.
        """
        unit = self.unit(x.op)
        if unit is None or (isinstance(unit, FrameLoop) and x not in unit.outputs):
            raise UnimplementedError(
                f"Gradients with respect to '{x.name}' are not implemented: it is in another loop than "
                "the results",
                node=x.op.name,
                op=x.op.type,
            )
        return unit

    def sources(self, unit: Unit) -> list[Unit]:
        """The producer of each input of a unit that lies in the frame."""
        if self._frames is None:
            return [tensor.op for tensor in unit.inputs]
        found = [self.unit(tensor.op) for tensor in unit.inputs]
        return [source for source in found if source is not None]

    def consumers(self, tensor: Tensor) -> list[Unit]:
        """The consumers of a tensor in the frame."""
        if self._frames is None:
            return list(tensor.consumers())
        found = [self.unit(op) for op in tensor.consumers()]
        return [consumer for consumer in found if consumer is not None]

    def _loop(self, frame: Frame) -> FrameLoop:
        loop = self._loops.get(frame)
        if loop is None:
            assert self._frames is not None
            of_loop = self._frames.home
            stops = [stop for stop in self._stops if of_loop(stop.op)[: len(frame)] == frame]
            loop = self._loops[frame] = FrameLoop(frame[-1], self._frames.enters[frame], stops)
        return loop


def _source(op: Operation) -> Operation | None:
    """An operation that tells the frame: that of the first edge that is no back edge."""
    sources: tuple[Operation, ...] = (*op.edges[::2], *op.control_inputs)
    for source in sources:
        if source.type not in NEXT_ITERATION_OPS:
            return source
    return None
