"""Executable: a program, with the limits of its steps and the conversion of its feeds and results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import call
from typing import Any, NoReturn, ParamSpec, Protocol, TypeVar

import numpy as np

from opkernel.device.budget import Budget, current_budget
from opkernel.errors import OpError
from opkernel.interrupts import contextmanager
from opkernel.kernel import intra_op_parallelism, under_budget
from opkernel.records import dataclass, field, replace
from opkernel.runtime.program.builder import Shapes, StepProgram
from opkernel.runtime.program.executors import Executor
from opkernel.runtime.program.run_step import RunStep

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


_ANY_STEP = RunStep()

Run = Callable[..., Sequence[Any]]
"""Runs one step: `run(step, *feeds)` gives the fetches."""


class Specializer(Protocol):
    """Finds programs that may run in the place of another one."""

    def current(self) -> Executable | None:
        """The program for this moment; None where the general one is to run."""

    def settled(self) -> StepProgram | None:
        """The program that steps will come to run; None where the general one stays."""

    @property
    def special(self) -> Executable | None:
        """What `current` gave last; None before it gave any."""

    @property
    def is_settled(self) -> bool:
        """Whether there is a special program, or will not be one."""


@dataclass(frozen=True, slots=True)
class Executable:
    """A program that takes what its caller has, and gives what he wants.

    Attributes:
        program: The program.
        feeds: They convert the fed values.
        run: The function of the program, made quiet.
        answer: Gives the results the form that the caller asked for.
        kept: The nodes whose tensors the session keeps after a step.
        variables: Finds the program for the values that variables keep, where there may be one.
        captured: Further arguments of `run`, the same at every step.
        taken: The numbers of the feeds that the program takes; None for all.
        applied: Makes the function of another program as `run` was made.
        needs_step: Whether each call must have a step.
    """

    program: StepProgram
    feeds: tuple[Callable[[Any], Any], ...]
    run: Callable[..., Sequence[Any]]
    answer: Callable[[Sequence[Any]], Any]
    kept: Sequence[str] = ()
    variables: Specializer | None = None
    captured: Sequence[Any] = ()
    taken: Sequence[int] | None = None
    applied: Callable[[Run], Run] | None = None
    needs_step: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        """Know whether any kernel looks at the step."""
        object.__setattr__(self, "needs_step", self.program.uses_step)

    def __call__(self, values: Iterable[Any], new_step: Callable[[], RunStep]) -> Any:
        """Run one step on the caller's values, by the program for the values of variables if there is one.

        Args:
            values: A value for each feed.
            new_step: Makes the step, if any kernel looks at it.

        Raises:
            InvalidArgumentError: a value does not fit its feed.
            OpError: whatever a kernel raised, with the node that failed.
        """
        if self.variables is not None:
            special = self.variables.current()
            if special is not None:
                return special(values, new_step)
        converted = [*map(call, self.feeds, values)]
        if self.needs_step:
            return self.step(converted, new_step())
        try:
            results = self.run(_ANY_STEP, *converted, *self.captured)
        except Exception as error:
            self._raise(error)
        return self.answered(results)

    @property
    def _special(self) -> Executable | None:
        """What runs steps now with constants for variables, if anything does."""
        return None if self.variables is None else self.variables.special

    @property
    def settled_program(self) -> StepProgram:
        """The program of the steps: with constants for variables, if there may be one."""
        settled = None if self.variables is None else self.variables.settled()
        return self.program if settled is None else settled

    def program_for(self, values: Sequence[Any]) -> StepProgram:
        """The program that runs steps on these converted values, as far as that was found out."""
        return self.program.running(self._taken(values))

    def is_settled(self, values: Sequence[Any]) -> bool:
        """Whether the way to run steps on these converted values was found."""
        if (special := self._special) is not None:
            return special.is_settled(values)
        is_final = self.variables is None or self.variables.is_settled
        return is_final and self.program.is_settled(self._taken(values))

    def is_trying(self, values: Sequence[Any]) -> bool:
        """Whether a trial is under way for steps on these converted values."""
        one = self._special or self
        return one.program.is_trying(one._taken(values))

    def executor_for(self, shapes: Shapes | None) -> Executor:
        """What runs steps now that are fed these shapes; None stands for those that were decided about last."""
        if (special := self._special) is not None:
            return special.executor_for(shapes)
        return self.program.executor_for(None if shapes is None else self._taken(shapes))

    def with_program(self, program: StepProgram) -> Executable:
        """An executable that computes the same by another program with the same feeds and fetches."""
        run = program.run if self.applied is None else self.applied(program.run)
        return replace(self, program=program, run=run, variables=None)

    def _taken(self, values: Sequence[Any]) -> Sequence[Any]:
        return values if self.taken is None else [values[i] for i in self.taken]

    def converted(self, values: Iterable[Any]) -> list[Any]:
        """The caller's values, as many as there are feeds, as arrays that fit the feeds.

        Raises:
            InvalidArgumentError: a value does not fit its feed.
        """
        return [*map(call, self.feeds, values)]

    def step(self, values: Sequence[Any], step: RunStep) -> Any:
        """Run one step on converted values.

        Raises:
            OpError: whatever a kernel raised, with the node that failed.
        """
        try:
            results = self.run(step, *values, *self.captured)
            if self.kept:
                step.save_tensors(self.kept)
        except Exception as error:
            self._raise(error)
        except BaseException:  # an interrupt: what waits must end for the step to end
            step.cancel()
            raise
        finally:
            step.end()  # and with it the work of deferred kernels
        return self.answered(results)

    def answered(self, results: Sequence[Any]) -> Any:
        """The results of a step in the form that the caller asked for.

        Raises:
            InternalError: one is no tensor: a kernel gave something else than it claims.
            FailedPreconditionError: one is a variable without value.
            ResourceExhaustedError: there is no memory for a copy.
        """
        try:
            return self.answer(results)
        except AttributeError:
            from opkernel.runtime.program.error_report import check_results  # rarely needed

            check_results(self.program.request.part.fetches, results)
            raise
        except OpError as error:
            self._raise(error)

    def _raise(self, error: Exception) -> NoReturn:
        from opkernel.runtime.program.error_report import raise_reported  # most steps succeed

        raise_reported(error, self.program.request.part.graph)


@dataclass(frozen=True, slots=True)
class LimitedExecutable(Executable):
    """An executable whose steps take no more memory than they may, until their answer is made.

    Attributes:
        limits: What they may take.
    """

    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Each call needs a step: `step` sees to the limits."""

    def step(self, values: Sequence[Any], step: RunStep) -> Any:
        """Run one step on converted values; raises as `Executable.step` does."""
        with self.limits.working():
            return Executable.step(self, values, step)
