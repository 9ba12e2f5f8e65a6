"""VariableSpecializer: the strategy for variables: while they keep their values, a program of its own for these values.

A program that only reads variables gets, once these have kept their values for some steps, another one
beside it: that of the graph with constants for the variables, as `freeze_graph` makes it. Passes see the
values, and kernels prepare the weights. It is used as long as each variable has the very array that it was
made for. A variable is written to in place only while nobody else has its array (`device/ownership.py`), and
the program has it; so each assignment, whoever makes it, brings another array.

Steps are not told apart by what they are fed, but by what a look at each variable shows. So this strategy has a way to find
what runs a step that is cheaper than that of `Adaptive`.

State: `_special` is that program with what it was made for; `_seen` are the variables with their versions, as
they were last looked at, and `_steps` counts the steps with these.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opkernel.errors import OpError
from opkernel.interrupts import trying
from opkernel.runtime.adaptive.adaptive import DOUBLING, Patience
from opkernel.runtime.adaptive.findings import Finding, note

if TYPE_CHECKING:
    from opkernel.graph import Operation
    from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
    from opkernel.runtime.calls.program_of_values import MadeProgram, VariablesOfProgram
    from opkernel.runtime.program.builder import Program
    from opkernel.runtime.program.executable import Executable

_MOST_PROGRAMS = 6
_MOST_FAILURES = 3


class SpecializedProgram:
    """A program for certain values of variables.

    Attributes:
        executable: Runs the steps of the program.
        kept: The variables, each with the array that it must have.
        manager: Has the variables that have names.
        removals: How often it had lost something when the variables were looked up.
    """

    __slots__ = ("_owners", "executable", "kept", "manager", "removals")

    def __init__(self, executable: Executable, made: MadeProgram, drop: Callable[[], None]) -> None:
        self.executable, self.kept = executable, made.kept
        self.manager, self.removals = made.manager, made.removals
        owners = [owner for reference in made.owners if (owner := reference()) is not None]
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
        self._special: SpecializedProgram | None = None
        self._seen: Sequence[tuple[int, int]] | None = None
        self._steps = 0
        self._patience = Patience(DOUBLING[:_MOST_PROGRAMS])
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
        if special is None and self._patience.is_over:
            return None
        del special  # or it would not be freed
        return self._look()

    def _drop(self) -> None:
        """Let go of the program: a variable is gone."""
        self._special = None

    def _are_still_there(self, special: SpecializedProgram) -> bool:
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
                self._patience.give_up()
                self._note("plan", str(error))
        return None

    def _made(self) -> Executable | None:
        if self._special is not None:
            self._special = None
            gc.collect()  # plans refer to themselves; old values take memory
        self._steps += 1
        if self._steps >= self._patience.wanted - 1 and self._has_kept_values():
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
            if self._failures == _MOST_FAILURES:
                self._patience.give_up()
            return False
        seen = [(id(one), one.version) for one in references]
        if seen == self._seen:
            return self._steps >= self._patience.wanted
        if self._seen is not None:
            self._steps = 1
        self._seen = seen
        return False

    def _make(self) -> Executable | None:
        """The program for the values of now; None where the general one is not to have others beside it."""
        variables = self._variables
        assert variables is not None
        if not self._general.request.is_current():
            self._patience.give_up()
            return None
        self._patience.spend()
        made = variables.program()
        executable = self._finish(made.program, made.feeds)
        special = self._special = SpecializedProgram(executable, made, self._drop)
        self._note("program for their values")
        self._steps = 0
        return special.executable

    def _note(self, chosen: str, error: str = "") -> None:
        request = self._general.request
        steps = f"with the same values of {len(self._seen or ())} variables"
        found = Finding(
            "variables", request.part.names, steps, {chosen: None}, chosen, self._steps, error
        )
        note(request.findings, found)


def with_selected_values(
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
