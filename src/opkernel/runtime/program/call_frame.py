"""The call of a function as its kernels see it: the step of its nodes, and the frame of arguments and results.

Plans feed the arguments of a call and fetch its results, and need no frame. A frame is for callers that
keep arguments elsewhere, for results that may be dead, and for `_Arg` and `_Retval` nodes that run as
nodes.

Source: FunctionCallFrame in TensorFlow core/framework/function.cc, FunctionLibraryRuntimeImpl::Run in
core/common_runtime/function.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import Step, TensorRef
from opkernel.kernel.node_properties import delegated_to
from opkernel.records import dataclass
from opkernel.types import DataType, natural_dtype

_UNSET: Any = object()


def check_args(arg_types: Sequence[DataType], args: Sequence[Any]) -> None:
    """Raise InvalidArgumentError unless there is an array of the right type for each argument."""
    if len(args) != len(arg_types):
        raise InvalidArgumentError(
            f"Expects {len(arg_types)} arguments, but {len(args)} is provided"
        )
    for index, (dtype, value) in enumerate(zip(arg_types, args, strict=True)):
        if not _is_of_type(value, dtype):
            raise InvalidArgumentError(
                f"Expects arg[{index}] to be {dtype.string} but {_type_name(value)} is provided"
            )


def _is_of_type(value: Any, dtype: DataType) -> bool:
    return isinstance(value, TensorRef) or getattr(value, "dtype", None) == dtype.base.numpy_dtype


def _type_name(value: Any) -> str:
    return natural_dtype(value).string if hasattr(value, "dtype") else type(value).__name__


class FunctionCallFrame:
    """Arguments that the caller sets and the function gets, and results the other way round.

    Args:
        arg_types: the types of the arguments.
        ret_types: the types of the results.
    """

    def __init__(self, arg_types: Sequence[DataType], ret_types: Sequence[DataType]) -> None:
        self._arg_types = tuple(arg_types)
        self._ret_types = tuple(ret_types)
        self._args: list[Any] = [_UNSET] * len(self._arg_types)
        self._retvals: list[Any] = [_UNSET] * len(self._ret_types)

    @property
    def num_args(self) -> int:
        """The number of arguments."""
        return len(self._arg_types)

    @property
    def num_retvals(self) -> int:
        """The number of results."""
        return len(self._ret_types)

    def set_args(self, args: Sequence[Any]) -> None:
        """Set the arguments.

        Raises:
            InvalidArgumentError: their number or the type of one is wrong.
        """
        check_args(self._arg_types, args)
        self._args = list(args)

    def get_arg(self, index: int) -> Any:
        """An argument.

        Raises:
            InvalidArgumentError: there is none of that number.
            InternalError: the arguments have not been set.
        """
        if not 0 <= index < len(self._args):
            raise InvalidArgumentError(f"GetArg {index} is not within [0, {len(self._args)})")
        if self._args[index] is _UNSET:
            raise InternalError(f"Arg[{index}] does not have value")
        return self._args[index]

    def set_retval(self, index: int, value: Any) -> None:
        """Set a result.

        Raises:
            InvalidArgumentError: there is none of that number, or it is of another type.
            InternalError: it has been set.
        """
        if not 0 <= index < len(self._retvals):
            raise InvalidArgumentError(f"SetRetval {index} is not within [0, {len(self._retvals)})")
        dtype = self._ret_types[index]
        if not _is_of_type(value, dtype):
            raise InvalidArgumentError(
                f"Expects ret[{index}] to be {dtype.string}, but {_type_name(value)} is provided."
            )
        if self._retvals[index] is not _UNSET:
            raise InternalError(f"Retval[{index}] has already been set.")
        self._retvals[index] = value

    def get_retvals(self) -> list[Any]:
        """The results.

        Raises:
            InternalError: one has not been set.
        """
        for index, value in enumerate(self._retvals):
            if value is _UNSET:
                raise InternalError(f"Retval[{index}] does not have value")
        return [*self._retvals]

    def consume_retvals(self, *, allow_dead_tensors: bool = False) -> list[Any]:
        """The results, which the frame lets go of; None for those that were not set, where allowed.

        Raises:
            InternalError: one has not been set.
        """
        found = [*self._retvals] if allow_dead_tensors else self.get_retvals()
        self._retvals = [_UNSET] * len(found)
        return [None if value is _UNSET else value for value in found]


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

    def detached(self) -> Any:
        """As that of the caller's step."""
        return self.caller.detached()


@dataclass(frozen=True, eq=False)
class CallSteps:
    """Gives the calls of one function their steps.

    Attributes:
        arg_types: The types of its arguments.
        ret_types: The types of its results.
        executor_type: The registered name of its executor; empty for the default one.
    """

    arg_types: Sequence[DataType]
    ret_types: Sequence[DataType]
    executor_type: str = ""

    def given_to(self, run: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
        """`run(step, *arguments)`, the body of the function, with the step of each call."""
        return lambda step, *arguments: run(CallStep(step, self, arguments), *arguments)


for _name in Step.__annotations__:
    if getattr(CallStep, _name) is getattr(Step, _name):
        setattr(CallStep, _name, delegated_to(f"caller.{_name}"))
