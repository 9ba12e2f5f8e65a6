"""For: a function called for each number of a range.

Source: TensorFlow core/ops/functional_ops.cc, core/kernels/functional_ops.cc (ForOp).
"""

import threading
import weakref
from typing import Any

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import (
    FunctionRunOptions,
    FunctionRuntime,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
)
from opkernel.opdef import register_op, unknown_shape
from opkernel.ops.registration import register_kernel
from opkernel.proto import NameAttrList
from opkernel.types import TensorShape, natural_dtype

_RANGE = ("start", "limit", "delta")

FOR = register_op(
    "For",
    inputs=["start: int32", "limit: int32", "delta: int32", "input: T"],
    outputs=["output: T"],
    attrs=["T: list(type) >= 0", "body: func"],
    shape_fn=unknown_shape,
    doc="""
    Calls `body` for each number from `start` up to, not including, `limit` in steps of `delta`.

    input: the loop variables at the beginning. `body` takes the number and them, and gives them for the next turn.
    output: the loop variables at the end.
    """,
)


@register_kernel(FOR, device="CPU")
@register_kernel(FOR, device="DEFAULT", host_memory=_RANGE)
class For(OpKernel):
    """Calls its function on the device that it runs on."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._body: NameAttrList = construction.get_attr("body")
        self._handles: weakref.WeakKeyDictionary[FunctionRuntime, Any] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the loop.

        Raises:
            InvalidArgumentError: the steps lead away from the limit, or `body` gives other variables.
        """
        numbers = _numbers(*[_scalar(name, ctx.input(name)) for name in _RANGE])
        library: FunctionRuntime | None = ctx.function_library
        if library is None:
            raise InternalError("No function library is provided.")
        handle, options = self._handle(library), FunctionRunOptions(step=ctx.step)
        variables = ctx.inputs[len(_RANGE) :]
        for number in numbers:
            ctx.step.check()
            variables = library.run(options, handle, [np.array(number, np.int32), *variables])
            self._check(variables)
        ctx.set_output_list("output", variables)

    def _handle(self, library: FunctionRuntime) -> Any:
        with self._lock:
            if library not in self._handles:
                self._handles[library] = library.instantiate(self._body.name, self._body.attr)
            return self._handles[library]

    def _check(self, variables: Any) -> None:
        if [one.dtype for one in variables] != [*self.output_dtypes]:
            wanted = ", ".join(one.string for one in self.output_types)
            got = ", ".join(natural_dtype(one).string for one in variables)
            raise InvalidArgumentError(
                f"For loop body returned tensors of other types: expected {wanted}, got {got}"
            )


def _scalar(name: str, value: Any) -> int:
    if value.ndim:
        raise InvalidArgumentError(f"{name} must be a scalar, got shape {TensorShape(value.shape)}")
    return int(value)


def _numbers(start: int, limit: int, delta: int) -> range:
    if start == limit:
        return range(0)
    if delta == 0 or (delta > 0) != (start < limit):
        raise InvalidArgumentError(
            f"Invalid start/limit/delta: {start}/{limit}/{delta}; the steps must lead to the limit"
        )
    return range(start, limit, delta)
