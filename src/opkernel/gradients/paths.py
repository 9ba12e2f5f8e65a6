"""Which operations gradients pass through on their way from results to arguments.

A loop of TensorFlow 1 counts as one operation.

Source: _PendingCount and _StopOps of TensorFlow python/ops/gradients_util.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opkernel.gradients.frame_loop import FrameLoop
from opkernel.gradients.frames import Level, Unit
from opkernel.graph import Operation, Tensor

Flows = Callable[[Tensor], bool]
"""Whether gradients pass through a tensor."""


@dataclass(frozen=True, slots=True)
class Paths:
    """The operations on paths from `xs` to `ys`.

    Attributes:
        level: the operations and loops.
        between: the operations, those nearest to `ys` first.
        pending: for each of them the number of its edges to others of them: of gradients that it
            waits for.
        ends: the units that gradients reach and do not pass.
    """

    level: Level
    between: dict[Unit, None]
    pending: Counter[Unit]
    ends: set[Unit]


def find_paths(
    xs: Sequence[Tensor], ys: Sequence[Tensor], stops: Sequence[Tensor], flows: Flows
) -> Paths:
    """The paths from `xs` to `ys`; gradients pass neither `xs` that depend on no other nor `stops`."""
    level = Level(ys, stops)
    first = [level.unit_of_argument(x) for x in xs]
    stopped = {stop.op for stop in stops}
    reached = _reached(level, first, flows)
    last = [unit for y in ys if (unit := level.unit(y.op)) is not None]
    between = _needed(level, last, reached, stopped)
    pending: Counter[Unit] = Counter()
    for unit in between:
        if unit not in stopped:
            pending.update([source for source in level.sources(unit) if source in between])
    for unit in between:
        if isinstance(unit, FrameLoop):
            unit.reached = [level.unit(tensor.op) in between for tensor in unit.inputs]
    ends = {x for x in first if not any(pending[source] for source in level.sources(x))}
    return Paths(level, between, pending, ends | stopped)


def _reached(level: Level, start: list[Unit], flows: Flows) -> set[Unit]:
    """The units that a change of the outputs of `start` would change."""
    reached: set[Unit] = set()
    waiting = start[:]
    while waiting:
        unit = waiting.pop()
        if unit not in reached:
            reached.add(unit)
            for output in unit.outputs:
                if flows(output):
                    waiting += level.consumers(output)
    return reached


def _needed(
    level: Level, start: list[Unit], among: set[Unit], stopped: set[Operation]
) -> dict[Unit, None]:
    """The units of `among` that `start` depend on by units of `among` alone."""
    needed: dict[Unit, None] = {}
    waiting = start[::-1]
    while waiting:
        unit = waiting.pop()
        if unit in among and unit not in needed:
            needed[unit] = None
            if unit not in stopped:
                waiting += level.sources(unit)
    return needed
