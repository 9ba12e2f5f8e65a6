"""Loops of ops that work element by element: all steps for one number after the other, several of them in one instruction."""

import math
from collections.abc import Callable
from inspect import signature
from typing import Any, Literal

import numpy as np

from opkernel.kernel import shard
from opkernel.ops.registration import register_kernel
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import Loop, loop, part_of_loops
from opkernel.types import Array, DataType

_BLOCK = 1 << 17
_FEW = 1 << 12


def _of_each(function: Callable[[Any], Any], general: Callable[..., Any], dtype: Any) -> Loop:
    def by_numpy(x: Array, out: Array) -> None:
        out[:] = general(x.view(dtype)).view(out.dtype)

    @loop(otherwise=by_numpy, source=function.__code__.co_filename)
    def of_each(x: Array, out: Array) -> None:
        for i in range(out.size):
            out[i] = function(x[i])

    return of_each


def _of_pairs(function: Callable[[Any, Any], Any], general: Callable[..., Any], dtype: Any) -> Loop:
    def by_numpy(x: Array, y: Array, out: Array) -> None:
        out[:] = general(x.view(dtype), y.view(dtype)).view(out.dtype)

    @loop(otherwise=by_numpy, source=function.__code__.co_filename)
    def of_pairs(x: Array, y: Array, out: Array) -> None:
        for i in range(out.size):
            out[i] = function(x[i], y[i])

    return of_pairs


def register_elements(
    op: Any,
    each: Callable[..., Any],
    general: Callable[..., Any],
    type: DataType,
    *,
    seen_as: Any = None,
    kind: Literal["elementwise", "same_shapes"] = "elementwise",
) -> None:
    """Register the kernel of an op of one or two tensors.

    Args:
        op: The op.
        each: Computes an element of those of the inputs; a part of loops.
        general: The function of arrays, which computes few elements and, of one shape or not, checks the inputs.
        type: The type.
        seen_as: The type of NumPy whose numbers `each` takes and gives, if it is another.
        kind: As of `register_kernel`.
    """
    part_of_loops(each)
    dtype = type.numpy_dtype
    seen_as = dtype if seen_as is None else seen_as
    if len(signature(each).parameters) == 1:
        of_each = _of_each(each, general, dtype)

        def by_loop(x: Any) -> Any:
            return general(x) if x.size < _FEW else _computed(of_each, (x,), x.shape, seen_as)

    else:
        by_loop = _of_two(_of_pairs(each, general, dtype), general, seen_as, kind)
    register_kernel(op, types={"T": [type]}, kind=kind, factory=True, registry=LOOPS.kernels)(
        lambda: by_loop
    )


def _of_two(
    function: Loop, general: Callable[..., Any], seen_as: Any, kind: str
) -> Callable[..., Any]:
    def by_loop(x: Any, y: Any) -> Any:
        shape = x.shape
        if shape != y.shape:
            if kind == "same_shapes":
                return general(x, y)
            shape = np.broadcast_shapes(shape, y.shape)
        if math.prod(shape) < _FEW:
            return general(x, y)
        return _computed(function, (x, y), shape, seen_as)

    return by_loop


def _computed(
    function: Loop, inputs: tuple[Any, ...], shape: tuple[int, ...], seen_as: Any
) -> Array:
    """The elements of inputs that are broadcast, block by block on all threads."""
    out = np.empty(shape, inputs[0].dtype)
    numbers = out.reshape(-1).view(seen_as)
    flat = [
        np.ascontiguousarray(np.broadcast_to(one, shape)).reshape(-1).view(seen_as)
        for one in inputs
    ]

    def compute(start: int) -> None:
        part = slice(start, start + _BLOCK)
        function(*[one[part] for one in flat], numbers[part])

    shard(compute, range(0, out.size, _BLOCK))
    return out
