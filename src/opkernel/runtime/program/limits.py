"""Limits: what holds while a program is made, and while its kernels run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import numpy as np

from opkernel.device.budget import Budget, current_budget
from opkernel.interrupts import contextmanager
from opkernel.kernel import intra_op_parallelism, under_budget
from opkernel.records import dataclass

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of programs and their kernels; they also silence NumPy's warnings in kernels.

    Attributes:
        budget: What all that a session runs may take; None if that is the caller's affair.
        intra_op_threads: How many threads a kernel may spread its work over; one a processor if 0.
    """

    budget: Budget | None = None
    intra_op_threads: int = 0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Within the block, a program is made or a step is run: no more is taken than is left."""
        if self.budget is None:
            yield
            return
        caller = current_budget() or Budget()
        own = Budget(caller.memory_limit_bytes, caller.deadline, self.budget, is_of_step=True)
        with under_budget(own):
            yield

    def enforced(self, run: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
        """A function that runs kernels as `applied` has them run, while a step takes no more than it may."""
        applied = self.applied(run)

        def run_within(*args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
            with self.working():
                return applied(*args, **kwargs)

        return run_within

    def applied(self, run: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
        """A function that runs kernels, quiet and on so many threads."""
        run = np.errstate(all="ignore")(run)
        threads = self.intra_op_threads
        if not threads:
            return run

        def run_on_threads(*args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
            with intra_op_parallelism(threads):
                return run(*args, **kwargs)

        return run_on_threads


@contextmanager
def step_time(timeout_s: float | None) -> Iterator[float | None]:
    """Within the block, work has so many seconds, or what the caller's budget leaves of them; None: no limit."""
    outer = current_budget()
    if timeout_s is None:
        yield None if outer is None else outer.seconds_left
        return
    budget = Budget(deadline=time.monotonic() + timeout_s, outer=outer)
    with under_budget(budget):
        yield budget.seconds_left
