"""Kernels without trust: their inputs are read-only, their outputs are checked, and their claims are put to the test.

`create_op_kernel` adds the check of outputs to every kernel that does not claim `outputs_as_declared`. The check is part
of the kernel, so that no way of calling the kernel avoids it.

`broken_claims` looks at one computation, and has the kernel compute it again in the ways that its
claims allow. The sanitizer and `opkernel test` ask it. Where the environment has
OPKERNEL_CHECK_CONTRACTS=1, every kernel is made `verified`: executors believe it nothing, and all of
its computations are put to the test.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from opkernel.device.ownership import others
from opkernel.errors import Code, InternalError, OpError, as_op_error, write_to_input
from opkernel.kernel.context.declared_outputs import (
    check_memory,
    check_output,
    check_outputs,
    check_shape,
    flat_outputs,
)
from opkernel.kernel.context.op_kernel_context import OpKernelContext, compute_and
from opkernel.kernel.contract import KernelContract
from opkernel.kernel.function_kernel import FunctionKernel
from opkernel.kernel.node_properties import by_arg
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.services.step import Step
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
    else:
        name = "compute" if kernel.as_async() is None else "compute_async"
        vars(kernel)[name] = _checked_compute(getattr(type(kernel), name), check)
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
        compute_and(ctx, partial(compute, kernel), partial(_check_set, ctx, check), *done)

    return checked_compute


def _check_set(ctx: OpKernelContext, check: CallCheck) -> None:
    """Check the outputs of a computation that is over."""
    if ctx.status is None:
        check(ctx.kernel, ctx.inputs, ctx.outputs)


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


_ROUNDING = {1: 0.5, 2: 2e-2, 4: 1e-4, 8: 1e-8}
"""How much values computed in another way may differ, by the bytes of a real number."""


def broken_claims(kernel: OpKernel, inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[str]:
    """The claims that a computation shows to be broken, outputs as declared aside.

    Args:
        kernel: The kernel.
        inputs: The inputs of the computation, flat.
        outputs: The outputs of the computation, flat; None for an output that it left out.
    """
    claims = kernel.contract
    if kernel.properties.op_def.is_stateful or any(dtype.is_ref for dtype in kernel.input_types):
        return  # the next call may give another result
    if isinstance(kernel, FunctionKernel):
        if claims.elementwise and not (claims.same_shapes and len({*map(np.shape, inputs)}) > 1):
            yield from _of_parts(kernel.unchecked, inputs, outputs)
        if claims.takes_out:
            yield from _of_places(kernel, inputs, outputs)
    elif DataType.DT_VARIANT in kernel.output_types:
        return  # two calls give two objects
    elif claims.forwards_inputs and kernel.as_async() is None:
        ctx = OpKernelContext(kernel, [np.array(value) for value in inputs], Step())
        _, wrong = _tried(kernel.compute, ctx)
        if wrong or not all(map(_agree, ctx.outputs, outputs)):
            yield f"claims forwards_inputs, and {wrong or _OTHER} where it takes over an input"


def verified(kernel: OpKernel, op: OpRegistrationData) -> OpKernel:
    """The kernel without trust: it raises InternalError where one of its claims does not hold."""
    claimed = copy.copy(kernel)
    kernel.contract = KernelContract(may_alias=claimed.contract.may_alias)
    return checked(kernel, op, _Verification(claimed, op))


class _Verification(CallCheck):
    """Checks computations, and the kernel's claims against them."""

    def __init__(self, claimed: OpKernel, op: OpRegistrationData) -> None:
        super().__init__(claimed, op)
        self._claimed = claimed

    def __call__(
        self, kernel: OpKernel, inputs: Sequence[Any], outputs: Sequence[Any], is_new: bool = False
    ) -> None:
        super().__call__(kernel, inputs, outputs, is_new)
        for what in broken_claims(self._claimed, inputs, outputs):
            raise InternalError(f"contract: the kernel {what}")


def _of_parts(compute: _Compute, inputs: Sequence[Any], outputs: Sequence[Any]) -> Iterator[str]:
    """Whether parts of the inputs give parts of the output."""
    output, whole = outputs[0], np.broadcast_shapes(*map(np.shape, inputs))
    if len(outputs) != 1 or np.shape(output) != whole:
        yield f"claims to be elementwise, and gives the shape {list(np.shape(output))} for {whole}"
        return
    half = math.prod(whole) // 2
    if half == 0:
        return
    parts = [np.broadcast_to(value, whole).reshape(-1)[half:] for value in inputs]
    found, wrong = _tried(compute, *parts)
    if wrong or not _agree(found, np.reshape(output, -1)[half:]):
        yield f"claims to be elementwise, and {wrong or _OTHER} for parts of the inputs"


def _of_places(
    kernel: FunctionKernel, inputs: Sequence[Any], outputs: Sequence[Any]
) -> Iterator[str]:
    """Whether the result comes to the wanted place: new memory, or the memory of an input."""
    output = outputs[0]
    if not isinstance(output, np.ndarray) or output.ndim == 0:
        return
    for place in (None, *range(len(inputs))):
        given = [np.array(value) for value in inputs]
        out = np.empty_like(output) if place is None else given[place]
        if out.shape != output.shape or out.dtype != output.dtype:
            continue
        arguments = by_arg(given, kernel.properties.input_args)
        found, wrong = _tried(kernel.unchecked, *arguments, out=out)
        wrong = wrong or ("" if found is out else "does not return it")
        where = "in new memory" if place is None else f"in the place of input {place}"
        if wrong or not _agree(found, output):
            yield f"claims takes_out, and {wrong or _OTHER} {where}"


_OTHER = "gives other values"


def _tried(compute: _Compute, *arguments: Any, **options: Any) -> tuple[Any, str]:
    """The result of a call, or its exception."""
    try:
        with np.errstate(all="ignore"):
            return compute(*arguments, **options), ""
    except Exception as error:  # any error counts: the first call raised none
        return None, f"raises {type(error).__name__} ({error})"


def _agree(actual: Any, expected: Any) -> bool:
    """Whether tensors are the same except for rounding."""
    if actual is None or expected is None:
        return actual is expected
    a, b = np.asarray(actual), np.asarray(expected)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.hasobject or a.dtype.kind in "biu":
        return bool(np.all(a == b))
    is_complex = a.dtype.kind == "c"
    rounding = _ROUNDING[a.dtype.itemsize // (1 + is_complex)]
    wide = np.complex128 if is_complex else np.float64
    with np.errstate(all="ignore"):
        a, b = a.astype(wide), b.astype(wide)
        return bool(np.allclose(a, b, rtol=rounding, atol=rounding, equal_nan=True))
