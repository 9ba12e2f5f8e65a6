"""Kernels without trust: their inputs are read-only, and their outputs are checked.

`create_op_kernel` adds the check to every kernel that does not claim `outputs_as_declared`. The check
is part of the kernel, so that no way of calling the kernel avoids it. With OPKERNEL_CHECK_CONTRACTS=1
every kernel is checked, and its claims are put to the test, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from opkernel.device.ownership import others
from opkernel.errors import Code, OpError, as_op_error, write_to_input
from opkernel.kernel.context.declared_outputs import (
    check_memory,
    check_output,
    check_outputs,
    check_shape,
    flat_outputs,
)
from opkernel.kernel.context.op_kernel_context import OpKernelContext
from opkernel.kernel.function_kernel import FunctionKernel
from opkernel.kernel.node_properties import by_arg
from opkernel.kernel.op_kernel import OpKernel
from opkernel.opdef import OpRegistrationData, infer_call
from opkernel.types import DataType

_MAX_KNOWN = 64
_FACTS = ("output ", *"0123456789")
"""The beginnings of faults that follow a colon: facts, not deeds of the kernel."""

_CONTEXT = "opkernel.kernel.context."
"""The package whose InternalErrors say that a kernel breaks a rule for all kernels."""

_COUNTS = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
"""Whether counts of references are exact: without Python's lock some are not counted."""

_Shapes = Sequence[Sequence[int | None] | None]
_Compute = Callable[..., Any]


def checked(kernel: OpKernel, op: OpRegistrationData, check: CallCheck | None = None) -> OpKernel:
    """The kernel, with InternalError raised where its outputs are not as its op declares.

    Args:
        kernel: A new kernel.
        op: Its op.
        check: The check of its computations; `CallCheck` if None.
    """
    check = check or CallCheck(kernel, op)
    if isinstance(kernel, FunctionKernel):
        kernel.function = _checked_function(kernel, check)
    elif kernel.as_async() is None:
        vars(kernel)["compute"] = _checked_compute(type(kernel).compute, check)
    else:
        kind: Any = type(kernel)
        vars(kernel)["compute_async"] = _checked_compute(kind.compute_async, check)
    return kernel


class CallCheck:
    """Checks the computations of one kernel, which it does not refer to.

    Args:
        kernel: The kernel, with the claims that it is believed or that are put to the test.
        op: The kernel's op; its shape function is asked.

    Attributes:
        known: The answers of the shape function by input shapes, where it does not ask for values.
    """

    def __init__(self, kernel: OpKernel, op: OpRegistrationData) -> None:
        self._op = op
        self._claims = kernel.contract
        self._function = kernel.unchecked if isinstance(kernel, FunctionKernel) else None
        self.known: dict[Any, _Shapes] = {}
        allowed = kernel.contract.may_alias
        self._may_not_alias = allowed is not True and bool(allowed is not None or self._function)

    def __call__(
        self, kernel: OpKernel, inputs: Sequence[Any], outputs: Sequence[Any], is_new: bool = False
    ) -> None:
        """Raise InternalError for the first fault.

        Args:
            kernel: The kernel.
            inputs: The kernel's inputs, flat.
            outputs: The kernel's outputs, flat; None for outputs that a class did not set.
            is_new: Whether the outputs are known to be new memory.
        """
        key = tuple([getattr(value, "shape", None) for value in inputs])
        shapes = self.known.get(key)
        if shapes is None or not _fit(outputs, kernel.output_dtypes, shapes):
            self._check_declared(kernel, inputs, outputs, key)
        if not is_new and self._may_not_alias:
            check_memory(kernel.properties, self._claims, self._function, inputs, outputs)

    def _check_declared(
        self, kernel: OpKernel, inputs: Sequence[Any], outputs: Sequence[Any], key: _Shapes
    ) -> None:
        """Check numbers, types and shapes one by one."""
        check_outputs(kernel, outputs)
        shapes = self._shapes_of(kernel, inputs, key)
        for index, value in enumerate(outputs):
            if value is None:
                if self._function is not None:
                    check_output(kernel, index, value)
            elif kernel.output_types[index] != DataType.DT_RESOURCE:
                check_shape(index, value, shapes[index])

    def _shapes_of(self, kernel: OpKernel, inputs: Sequence[Any], key: _Shapes) -> _Shapes:
        """The shapes of the outputs, by the shape function, for inputs of the shapes `key`."""
        shapes = self.known.get(key)
        if shapes is None:
            shapes, reads_values = self._inferred(kernel, key, inputs)
            if not reads_values:
                if len(self.known) >= _MAX_KNOWN:
                    self.known.clear()
                self.known[key] = shapes
        return shapes

    def _inferred(
        self, kernel: OpKernel, shapes: _Shapes, inputs: Sequence[Any]
    ) -> tuple[_Shapes, bool]:
        """The inferred shapes, none if inputs are refused; and whether values were asked for."""
        values = [np.asarray(v) if isinstance(v, np.ndarray | np.generic) else None for v in inputs]
        try:
            context = infer_call(
                self._op, kernel.node_def, shapes, values, kernel.graph_def_version
            )
        except Exception:  # a user's shape function may raise anything
            return [None] * kernel.num_outputs, True
        found = [None if shape is None else shape.dims for shape in context.reliable_outputs()]
        told = [None if dims is None else tuple([dim.value for dim in dims]) for dims in found]
        return told, bool(context.requests)


def read_only(value: Any) -> Any:
    """A read-only view of an array; a value that is read-only already as it is."""
    if not isinstance(value, np.ndarray) or not value.flags.writeable:
        return value
    view = value[...]
    view.setflags(False)  # type: ignore[call-arg]  # the keyword doubles its time
    return view


def _checked_function(kernel: FunctionKernel, check: CallCheck) -> _Compute:
    args = kernel.properties.input_args + kernel.properties.output_args
    is_plain = len(kernel.properties.output_args) == 1 and not any(arg.is_list for arg in args)
    call = (_of_one_output if is_plain else _of_lists)(kernel, check)
    return update_wrapper(call, kernel.unchecked)


def _of_one_output(kernel: FunctionKernel, check: CallCheck) -> _Compute:
    """The check for one output: a plain array of the declared dtype and shape passes in few steps."""
    function, dtype, known = kernel.unchecked, kernel.output_dtypes[0], check.known

    def call(*arguments: Any) -> Any:
        inputs = [*map(read_only, arguments)]
        outputs = [function(*inputs)]
        if type(outputs[0]) is np.ndarray and outputs[0].dtype is dtype:
            shapes = known.get(tuple([value.shape for value in inputs]))
            if shapes and shapes[0] == outputs[0].shape and _is_new(outputs, 0):
                return outputs[0]
        check(kernel, inputs, outputs, _are_new(outputs))
        return outputs[0]

    return call


def _of_lists(kernel: FunctionKernel, check: CallCheck) -> _Compute:
    function = kernel.unchecked
    input_args, output_args = kernel.properties.input_args, kernel.properties.output_args

    def call(*arguments: Any) -> Any:
        given = [
            [*map(read_only, one)] if arg.is_list else read_only(one)
            for arg, one in zip(input_args, arguments, strict=True)
        ]
        inputs = [value for one in given for value in (one if isinstance(one, list) else (one,))]
        outputs = flat_outputs(kernel, function(*given))
        check(kernel, inputs, outputs, _are_new(outputs))
        result = by_arg(outputs, output_args)
        return result[0] if len(output_args) == 1 else result

    return call


def _are_new(outputs: Sequence[Any]) -> bool:
    """Whether the outputs' memory is certainly unshared; numbers never share memory."""
    return all(_is_new(outputs, index) for index in range(len(outputs)))


def _is_new(outputs: Sequence[Any], index: int) -> bool:
    """Whether it is so of one. A tracer or debugger only makes counts higher."""
    if not isinstance(outputs[index], np.ndarray):
        return True
    return outputs[index].base is None and others(outputs, index) == 0 and _COUNTS


def _fit(outputs: Sequence[Any], dtypes: Sequence[np.dtype[Any]], shapes: _Shapes) -> bool:
    """Whether outputs are as they should be at first sight."""
    if len(outputs) != len(dtypes):
        return False
    for value, dtype, shape in zip(outputs, dtypes, shapes, strict=True):
        if getattr(value, "dtype", None) is not dtype or value.shape != shape:
            return False
    return True


def _checked_compute(compute: _Compute, check: CallCheck) -> _Compute:
    """`compute`, or `compute_async`, of a class with the check around it."""

    def checked_compute(ctx: OpKernelContext, *done: Callable[[], None]) -> None:
        kernel = ctx.kernel
        if not kernel.contract.forwards_inputs:
            ctx.inputs = [*map(read_only, ctx.inputs)]
        if done:
            compute(kernel, ctx, lambda: _finish(ctx, check, *done))
            return
        compute(kernel, ctx)
        if ctx.status is None:
            check(kernel, ctx.inputs, ctx.outputs)

    return checked_compute


def _finish(ctx: OpKernelContext, check: CallCheck, done: Callable[[], None]) -> None:
    """Check the outputs of an asynchronous kernel, and report its end."""
    try:
        if ctx.status is None:
            check(ctx.kernel, ctx.inputs, ctx.outputs)
    except OpError as error:
        ctx.set_status(error)
    done()


def fault_of(error: Exception) -> str | None:
    """The rule that an error shows a kernel to have broken; None for other errors of a kernel."""
    raised = raised_by_kernel(error)
    if write_to_input(raised) is not None:
        return as_op_error(raised).message
    is_internal = isinstance(raised, OpError) and raised.code == Code.INTERNAL
    is_fault = is_internal and _raised_in(raised).startswith(_CONTEXT)
    return as_op_error(raised).message if is_fault else None


def raised_by_kernel(error: Exception) -> Exception:
    """The exception behind the status of an asynchronous kernel; other exceptions as they are."""
    cause = error.__cause__ if isinstance(error, OpError) else None
    return cause if isinstance(cause, Exception) else error


def _raised_in(error: Exception) -> str:
    """The module that raised an error."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return "" if traceback is None else str(traceback.tb_frame.f_globals.get("__name__", ""))


def kernel_deed(name: str, what: str) -> str:
    """A fault as a sentence that names the kernel: `the kernel f writes to an input`."""
    if what.startswith("the kernel "):
        return f"the kernel {name} {what.removeprefix('the kernel ')}"
    return f"the kernel {name}{': ' if what.startswith(_FACTS) else ' '}{what}"
