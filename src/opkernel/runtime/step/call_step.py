"""CallStep: the step of a function's nodes, which knows the call that they are in.

Source: FunctionLibraryRuntimeImpl::Run in TensorFlow core/common_runtime/function.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from opkernel.kernel import Step
from opkernel.runtime.step.call_frame import FunctionCallFrame
from opkernel.types import DataType

_lock = threading.Lock()


class CallStep(Step):
    """A view of the caller's step for one call of a function.

    The call frame is made when a kernel first asks for it; the results are not put there, but fetched.

    Args:
        caller: The step of the caller.
        function: The types of the function.
        arguments: What it was called with.

    Attributes:
        caller: The step whose services it has: the step of the caller, or of the caller's caller.
    """

    __slots__ = ("_arguments", "_frame", "_function", "caller", "log_memory", "track_allocations")

    def __init__(self, caller: Step, function: CallSteps, arguments: Sequence[Any]) -> None:
        self.caller: Step = caller.caller if type(caller) is CallStep else caller
        self._function = function
        self._arguments = arguments
        self._frame: FunctionCallFrame | None = None
        self.track_allocations = caller.track_allocations  # slots: each context reads them
        self.log_memory = caller.log_memory

    @property
    def executor_type(self) -> str:  # type: ignore[override]  # read-only
        """The registered name of the function's executor; empty for the default one."""
        return self._function.executor_type

    @property
    def call_frame(self) -> FunctionCallFrame:
        """The arguments of the call; the same frame for all kernels of the call."""
        with _lock:
            if self._frame is None:
                function = self._function
                self._frame = FunctionCallFrame(function.arg_types, function.ret_types)
                self._frame.set_args(self._arguments)
            return self._frame

    def check(self) -> None:
        """Raise where the caller's step is to stop."""
        self.caller.check()


class CallSteps:
    """Gives the calls of one function their steps.

    Args:
        arg_types: The types of its arguments.
        ret_types: The types of its results.
        executor_type: The registered name of its executor; empty for the default one.
    """

    def __init__(
        self, arg_types: Sequence[DataType], ret_types: Sequence[DataType], executor_type: str = ""
    ) -> None:
        self.arg_types = tuple(arg_types)
        self.ret_types = tuple(ret_types)
        self.executor_type = executor_type

    def given_to(self, run: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
        """`run(step, *arguments)`, the body of the function, with the step of each call."""
        return lambda step, *arguments: run(CallStep(step, self, arguments), *arguments)


def _callers(name: str) -> property:
    def get(step: CallStep) -> Any:
        return getattr(step.caller, name)

    return property(get)


for _name in Step.__annotations__:
    if not hasattr(CallStep, _name) or getattr(CallStep, _name) is getattr(Step, _name):
        setattr(CallStep, _name, _callers(_name))
