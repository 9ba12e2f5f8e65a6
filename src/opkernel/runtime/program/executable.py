"""Executable: a program, with the conversion of its feeds and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import call
from typing import Any, Protocol

from opkernel.errors import OpError
from opkernel.records import dataclass, field
from opkernel.runtime.program.builder import Program
from opkernel.runtime.program.limits import Limits
from opkernel.runtime.step.run_step import RunStep

_ANY_STEP = RunStep()


class Specializer(Protocol):
    """Finds programs that may run in the place of another one."""

    def current(self) -> Executable | None:
        """The program for this moment; None where the general one is to run."""


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
        needs_step: Whether each call must have a step.
    """

    program: Program
    feeds: tuple[Callable[[Any], Any], ...]
    run: Callable[..., Sequence[Any]]
    answer: Callable[[Sequence[Any]], Any]
    kept: Sequence[str] = ()
    variables: Specializer | None = None
    captured: Sequence[Any] = ()
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
            from opkernel.runtime.program.error_report import raise_reported  # most steps succeed

            raise_reported(error, self.program.request.part.graph)
        return self.answered(results)

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
            from opkernel.runtime.program.error_report import raise_reported  # most steps succeed

            raise_reported(error, self.program.request.part.graph)
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
            from opkernel.runtime.program.error_report import raise_reported  # rarely needed

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
