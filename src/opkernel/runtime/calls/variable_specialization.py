"""VariableSpecializer: while variables keep their values, a program of its own for these values.

A program that only reads variables gets, once these have kept their values for some steps, another one
beside it: that of the graph with constants for the variables, as `freeze_graph` makes it. Passes see the
values, and kernels prepare the weights. It is used as long as each variable has the very array that it was
made for. A variable is written to in place only while nobody else has its array (`device/ownership.py`), and
the program has it; so each assignment, whoever makes it, brings another array.

State: `_special` is that program with what it was made for; `_seen` are the variables with their versions, as
they were last looked at, and `_steps` counts the steps with these. `_wanted` is the number of steps that the
next program asks for, twice as many each time, and `_left` says how many more are made: variables that keep
changing cost no more than a look at each.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opkernel.errors import OpError
from opkernel.interrupts import trying
from opkernel.logs import logger
from opkernel.runtime.program.builder import Program
from opkernel.runtime.program.executable import Executable

if TYPE_CHECKING:
    from opkernel.graph import Operation
    from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
    from opkernel.runtime.calls.program_of_values import ValuesOfVariables, VariablesOfProgram

__all__ = ["SpecialProgram", "VariableSpecializer", "taking"]

_FIRST_WANTED = 3
_MOST_PROGRAMS = 6
_MOST_FAILURES = 3


class SpecialProgram:
    """A program for certain values of variables.

    Attributes:
        executable: Runs the steps of the program.
        kept: The variables, each with the array that it must have.
        manager: Has the variables that have names.
        removals: How often it had lost something when the variables were looked up.
    """

    __slots__ = ("_owners", "executable", "kept", "manager", "removals")

    def __init__(
        self, executable: Executable, values: ValuesOfVariables, drop: Callable[[], None]
    ) -> None:
        self.executable = executable
        self.kept = [*zip(values.references, values.arrays, strict=True)]
        self.manager, self.removals = values.manager, values.removals
        owners = [owner for reference in values.owners if (owner := reference()) is not None]
        self._owners = [weakref.ref(owner, lambda _: drop()) for owner in owners]


class VariableSpecializer:
    """Finds the program for the values that variables have; used from any thread.

    Args:
        general: the program that reads them.
        runtime: gives the functions that it calls.
        finish: makes an executable of a program, given the feeds that it takes of the general one's.
        captured: gives the handles that are fed at every step, by the operations that are fed.
    """

    def __init__(
        self,
        general: Program,
        runtime: FunctionLibraryRuntime,
        finish: Callable[[Program, Sequence[int]], Executable],
        captured: Callable[[], Mapping[Operation, Any]] = dict,
    ) -> None:
        self._general, self._runtime = general, runtime
        self._finish, self._captured = finish, captured
        self._variables: VariablesOfProgram | None = None
        self._special: SpecialProgram | None = None
        self._seen: Sequence[tuple[int, int]] | None = None
        self._steps = 0
        self._wanted, self._left = _FIRST_WANTED, _MOST_PROGRAMS
        self._failures = 0
        self._lock = threading.Lock()

    def current(self) -> Executable | None:
        """What runs the program for the values of now; None where the general one is to run."""
        special = self._special
        if special is not None and (
            special.manager.removals == special.removals or self._are_still_there(special)
        ):
            for reference, array in special.kept:
                if reference.tensor is not array:
                    break
            else:
                return special.executable
            del reference, array
        if special is None and not self._left:
            return None
        del special  # or it would not be freed
        return self._look()

    def _drop(self) -> None:
        """Let go of the program: a variable is gone."""
        self._special = None

    def _are_still_there(self, special: SpecialProgram) -> bool:
        """Whether the names of variables stand for those of a program, though others were taken out."""
        assert self._variables is not None
        removals = special.manager.removals
        try:
            references = self._variables.references()
        except OpError:
            return False
        if references != [reference for reference, _ in special.kept]:
            return False
        special.removals = removals
        return True

    def _look(self) -> Executable | None:
        """Count a step; make a program where enough of them had the same values."""
        with trying(self._lock) as is_ours:
            try:
                return self._made() if is_ours else None
            except Exception as error:  # the general program needs none of this
                self._left = 0
                log = logger("opkernel.optimization")
                log.info("No program for values of variables: %s", error)
        return None

    def _made(self) -> Executable | None:
        if self._special is not None:
            self._special = None
            gc.collect()  # plans refer to themselves; old values take memory
        self._steps += 1
        if self._left and self._steps >= self._wanted - 1 and self._has_kept_values():
            return self._make()
        return None

    def _has_kept_values(self) -> bool:
        """Whether the variables have had their values for as many steps as are wanted."""
        if self._variables is None:
            from opkernel.runtime.calls.program_of_values import VariablesOfProgram

            self._variables = VariablesOfProgram(self._general, self._runtime, self._captured())
        try:
            references = self._variables.references()
        except OpError:  # one has no value, as the step that reads it will say
            self._failures += 1
            self._left *= self._failures < _MOST_FAILURES
            return False
        seen = [(id(one), one.version) for one in references]
        if seen == self._seen:
            return self._steps >= self._wanted
        if self._seen is not None:
            self._steps = 1
        self._seen = seen
        return False

    def _make(self) -> Executable | None:
        """The program for the values of now; None where the general one is not to have others beside it."""
        variables = self._variables
        assert variables is not None
        if not self._general.request.is_current():
            self._left = 0
            return None
        self._wanted, self._left, self._steps = self._wanted * 2, self._left - 1, 0
        made = variables.program()
        executable = self._finish(made.program, made.feeds)
        special = self._special = SpecialProgram(executable, made.values, self._drop)
        return special.executable


def taking(
    run: Callable[..., Sequence[Any]], taken: Sequence[int], count: int, more: Sequence[Any] = ()
) -> Callable[..., Sequence[Any]]:
    """A function of a step and `count` values that runs a program which takes some of these, and of `more`.

    Args:
        run: runs the program.
        taken: which values it takes; those of `more` have the numbers from `count` on.
        count: how many values come.
        more: further values, the same at each step.
    """
    if [*taken] == [*range(count)]:
        return run

    def run_chosen(step: Any, *values: Any) -> Sequence[Any]:
        every = (*values, *more)
        return run(step, *[every[i] for i in taken])

    return run_chosen
