"""Profile: where the time of steps went, by node and by op."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from opkernel.proto import Message
from opkernel.runtime.traces.timeline import Slice, timeline_of


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """The executions of a node, or of all nodes of an op, in a step.

    Attributes:
        name: The name of the node; empty for an op.
        op: The op.
        calls: How many executions there were, in the mean of the steps.
        seconds: The time of the kernels, in the median step. The time of a node that calls functions does
            not include the nodes of these functions.
        output_bytes: The size of the outputs, in the mean of the steps.
    """

    name: str
    op: str
    calls: float
    seconds: float
    output_bytes: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of steps went; the hottest come first.

    Attributes:
        steps: How long each step took, from the first node's begin to the last one's end, in seconds.
        seconds: For how long kernels ran in the median step.
        nodes: What each node took.
        ops: What the nodes of each op took.
    """

    steps: list[float]
    seconds: float
    nodes: list[ProfileRow]
    ops: list[ProfileRow]


def profile_of(step_stats: Message | Sequence[Message]) -> Profile:
    """The profile of the StepStats of a step, or of several; opkernel's or TensorFlow's."""
    steps = step_stats if isinstance(step_stats, Sequence) else [step_stats]
    timelines = [timeline_of(step) for step in steps]
    slices = [[one for track in timeline.tracks for one in track.slices] for timeline in timelines]
    return Profile(
        [(end - start) / 1e9 for timeline in timelines for start, end in timeline.steps],
        statistics.median(map(_seconds, slices)) if slices else 0.0,
        _rows(slices, lambda one: (one.name, one.op)),
        _rows(slices, lambda one: ("", one.op)),
    )


def _rows(
    steps: Sequence[Iterable[Slice]], key: Callable[[Slice], tuple[str, str]]
) -> list[ProfileRow]:
    groups: dict[tuple[str, str], list[list[Slice]]] = defaultdict(lambda: [[] for _ in steps])
    for number, slices in enumerate(steps):
        for one in slices:
            groups[key(one)][number].append(one)
    rows = [
        ProfileRow(
            *names,
            calls=statistics.fmean(map(len, group)),
            seconds=statistics.median(map(_seconds, group)),
            output_bytes=statistics.fmean(sum(s.output_bytes for s in step) for step in group),
        )
        for names, group in groups.items()
    ]
    return sorted(rows, key=lambda row: -row.seconds)


def _seconds(slices: Iterable[Slice]) -> float:
    return sum(max(one.compute - one.inside, 0) for one in slices) / 1e9
