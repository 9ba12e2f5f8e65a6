"""Functions of large arrays piece by piece: nothing interrupts NumPy, so that the clock is looked at between pieces."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.device.allocation import allocate
from opkernel.device.budget import check_time
from opkernel.device.work_clock import SLOW, in_time
from opkernel.kernel.contract import KernelContract
from opkernel.kernel.function_kernel import FunctionKernel
from opkernel.types import as_dtype

_PIECE = 1 << 18
"""Elements of a piece."""


def may_go_in_pieces(kernel: FunctionKernel, claims: KernelContract) -> bool:
    """Whether a kernel with these claims may be computed piece by piece."""
    is_right = claims.elementwise and claims.outputs_as_declared and kernel.num_outputs == 1
    return is_right and not any(arg.is_list for arg in kernel.properties.input_args)


def piecewise(claims: KernelContract, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a kernel, which calls its last argument between pieces of large inputs.

    Args:
        claims: The claims of the kernel, which `may_go_in_pieces`.
        function: Its function.
    """
    needs_one_shape = claims.same_shapes

    def compute(inputs: Sequence[Any], check: Callable[[], None]) -> Any:
        shape = _common_shape([value.shape for value in inputs], needs_one_shape)
        if shape is None:  # the kernel tells the error
            return function(*inputs)
        return _computed(function, inputs, shape, check)

    return compute


def in_pieces(function: Callable[..., Any], *arrays: Any) -> Any:
    """What an element-wise function gives for arrays that are broadcast: of large ones, piece by piece.

    So the memory that the function works in stays small, and the clock is looked at.
    """
    shape = np.broadcast_shapes(*[array.shape for array in arrays])
    return _computed(function, arrays, shape, partial(check_time, "computing elements"))


def _computed(
    function: Callable[..., Any],
    arrays: Sequence[Any],
    shape: tuple[int, ...],
    check: Callable[[], None],
) -> Any:
    if math.prod(shape) <= _PIECE:
        return function(*arrays)
    whole = [np.broadcast_to(array, shape) for array in arrays]
    first, *others = _pieces(shape)
    piece = function(*[array[first] for array in whole])
    result = allocate(shape, as_dtype(piece.dtype))
    result[first] = piece
    for place in others:
        check()
        result[place] = function(*[array[place] for array in whole])
    return result


def _common_shape(shapes: Sequence[tuple[int, ...]], needs_one: bool) -> tuple[int, ...] | None:
    if len({*shapes}) == 1:
        return shapes[0]
    if needs_one:
        return None
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _pieces(shape: tuple[int, ...]) -> Sequence[tuple[slice, ...]]:
    """Parts of an array, along its longest dimension."""
    axis = max(range(len(shape)), key=shape.__getitem__)
    row = max(math.prod(shape) // max(shape[axis], 1), 1)
    rows = max(_PIECE // row, 1)
    before = (slice(None),) * axis
    return [(*before, slice(start, start + rows)) for start in range(0, shape[axis], rows)]


def by_rows(function: Callable[[Any], Any], rows: Any) -> Any:
    """What a function gives for the rows `[n, ...]` of a large array: some rows at a time.

    So the memory that the function works in stays small, and the clock is looked at.

    Args:
        function: Makes of rows one array, or several in a tuple, with as many rows.
        rows: The rows.
    """
    of_one = max(rows.size // max(len(rows), 1), 1)
    step = max(_PIECE // of_one, 1)
    if len(rows) <= 2 * step:
        return function(rows)
    starts = in_time(range(0, len(rows), step), SLOW, "computing rows")
    results: list[Any] = []
    for start in starts:
        part = function(rows[start : start + step])
        parts = part if isinstance(part, tuple) else (part,)
        if not results:
            results = [np.empty((len(rows), *one.shape[1:]), one.dtype) for one in parts]
        for result, one in zip(results, parts, strict=True):
            result[start : start + step] = one
    return tuple(results) if isinstance(part, tuple) else results[0]
