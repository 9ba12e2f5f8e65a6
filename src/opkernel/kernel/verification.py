"""Tests of the claims of contracts.

`broken_claims` looks at one computation, and has the kernel compute it again in the ways that its
claims allow. The sanitizer and `opkernel test` ask it. Where the environment has
OPKERNEL_CHECK_CONTRACTS=1, every kernel is made `verified`: executors believe it nothing, and all of
its computations are put to the test.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InternalError
from opkernel.kernel.checked_kernels import CallCheck, checked
from opkernel.kernel.context.op_kernel_context import OpKernelContext
from opkernel.kernel.contract import KernelContract
from opkernel.kernel.function_kernel import FunctionKernel
from opkernel.kernel.node_properties import by_arg
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.services.step import Step
from opkernel.opdef import OpRegistrationData

_ROUNDING = {1: 0.5, 2: 2e-2, 4: 1e-4, 8: 1e-8}
"""How much values computed in another way may differ, by the bytes of a real number."""

_Compute = Callable[..., Any]


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
