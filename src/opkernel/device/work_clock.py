"""WorkClock: looks at the clock by the work that is done, not by the elements that it is done on.

A loop tells how much each of its turns does, in about a nanosecond. After each `LOOK_AFTER` of work the budget of
the thread is asked whether time is left. Without a deadline nothing is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TypeVar

from opkernel.device.budget import Budget, current_budget
from opkernel.errors import DeadlineExceededError

_Element = TypeVar("_Element")

LOOK_AFTER = 1 << 24
"""So much work is done between two looks at the clock."""

SLOW = LOOK_AFTER + 1
"""The work of a turn that takes so long that the clock is looked at before each."""

_CALL = 1 << 10
"""The work of a function of NumPy beside that on the elements."""

_TURN = 1 << 12
"""The work of a turn of a Python loop that calls a few functions."""


class WorkClock:
    """Looks at the clock each time that so much work was done; of one thread.

    Args:
        doing: The work under way, for the error: "decoding images".
    """

    __slots__ = ("_budget", "_doing", "_left")

    def __init__(self, doing: str) -> None:
        budget = current_budget()
        self._budget: Budget | None = None if budget is None or budget.deadline is None else budget
        self._doing = doing
        self._left = LOOK_AFTER

    def spend(self, work: int) -> None:
        """Note work that is done, or is about to be done.

        Raises:
            DeadlineExceededError: no time is left.
        """
        self._left -= work
        if self._left < 0:
            self._left = LOOK_AFTER
            if self._budget is not None:
                self._budget.check_time(self._doing)


def in_time(
    elements: Iterable[_Element],
    work: int | Callable[[_Element], int] = _TURN,
    doing: str = "computing a kernel's elements",
) -> Iterable[_Element]:
    """The elements, with a look at the clock now and then if a deadline holds.

    Args:
        elements: What a loop goes through.
        work: What a turn does: the same for each element, or a function of the element.
        doing: The work under way, for the error.
    """
    budget = current_budget()
    if budget is None or budget.deadline is None:
        return elements
    return _timed(elements, work, WorkClock(doing))


def _timed(
    elements: Iterable[_Element], work: int | Callable[[_Element], int], clock: WorkClock
) -> Iterator[_Element]:
    spend = clock.spend
    if callable(work):
        for element in elements:
            spend(work(element))
            yield element
    else:
        for element in elements:
            spend(work)
            yield element


def string_work(text: bytes) -> int:
    """The work of a function that goes through a string once."""
    return _TURN + (len(text) << 3)


def array_work(elements: int, functions: int = 8) -> int:
    """The work of so many functions of NumPy on arrays of so many elements."""
    return functions * (elements + _CALL)


def parts_work(parts: Sized) -> int:
    """The work of a function that joins parts, or takes them one by one."""
    return _TURN + (len(parts) << 7)


def check_seconds(least: float, doing: str) -> None:
    """Raise DeadlineExceededError where less time is left than work takes that nothing interrupts.

    Args:
        least: The seconds that the work takes at least.
        doing: The work: "multiplying matrices".
    """
    budget = current_budget()
    left = None if budget is None else budget.seconds_left
    if left is not None and least > left:
        raise DeadlineExceededError(
            f"Timed out before {doing}: it takes {least:.1f} s at least, and {left:.1f} s are left"
        )
