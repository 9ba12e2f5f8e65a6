"""Where in a step a thread is: the prefix that traces give to the nodes that it computes.

A node inside of a function is named `call/node`, as TensorFlow names the nodes of functions that it
inlines. A thread of a pool has the place of the thread that gave it the work.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from opkernel.interrupts import setting

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from opkernel.runtime.traces.step_stats_collector import StepStatsCollector


class Place:
    """A place in a step.

    Attributes:
        scope: The calls of functions that it is in: `call/inner_call/`, or nothing.
        scheduled: When the node that is computed next became ready; 0 if it does so when it is begun.
        collector: That of the step, where an executor said so.
    """

    __slots__ = ("collector", "scheduled", "scope")

    def __init__(
        self, scope: str = "", scheduled: int = 0, collector: StepStatsCollector | None = None
    ) -> None:
        self.scope = scope
        self.scheduled = scheduled
        self.collector = collector


_START = Place()
_place: ContextVar[Place] = ContextVar("opkernel_place", default=_START)

current_place = _place.get
enter = _place.set


def in_place(place: Place) -> AbstractContextManager[None]:
    """Within the block, this thread is at a place."""
    return setting({_place: place})
