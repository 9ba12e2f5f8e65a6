"""What debug nodes tell of numbers: DebugNanCount, DebugNumericSummary and DebugNumericSummaryV2.

Source: TensorFlow core/ops/debug_ops.cc, core/kernels/debug_ops.{h,cc}, core/protobuf/debug_event.proto
(TensorDebugMode).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import scalar_shape, unknown_shape
from opkernel.ops.debugging.publishing import DebugKernel
from opkernel.ops.registration import INTEGERS, REAL_NUMBERS, WIDE_FLOATS, register_kernel
from opkernel.types import DataType

_PIECE = 1 << 20
"""So many elements are looked at between two looks at the clock."""

_ATTRS = [
    "T: type",
    "device_name: string = ''",
    "tensor_name: string = ''",
    "debug_urls: list(string) = []",
]


DEBUG_NAN_COUNT = register_op(
    "DebugNanCount(input: T) -> output: int64",
    attrs=[*_ATTRS, "gated_grpc: bool = false"],
    shape_fn=scalar_shape,
    traits="writes_files file_attr=debug_urls",
    allows_uninitialized_input=True,
    doc="The number of NaNs in `input`, as a vector, which a debugger may be shown.",
)
DEBUG_NUMERIC_SUMMARY = register_op(
    "DebugNumericSummary(input: T) -> output: double",
    attrs=[
        *_ATTRS,
        "lower_bound: float = -inf",
        "upper_bound: float = inf",
        "mute_if_healthy: bool = false",
        "gated_grpc: bool = false",
    ],
    shape_fn=unknown_shape,
    traits="writes_files file_attr=debug_urls",
    allows_uninitialized_input=True,
    doc="""
    Facts about the numbers in `input`, which a debugger may be shown.

    output: 1; the number of elements; of NaNs; of those up to `lower_bound`; of negative ones; of zeros; of positive
      ones; of those from `upper_bound`; then minimum, maximum, mean and variance of the finite ones; the type; the
      rank; the sizes.
    """,
)
DEBUG_NUMERIC_SUMMARY_V2 = register_op(
    "DebugNumericSummaryV2(input: T) -> output: output_dtype",
    attrs=[
        "output_dtype: {float, double} = DT_FLOAT",
        "T: type",
        "tensor_debug_mode: int = -1",
        "tensor_id: int = -1",
    ],
    shape_fn=unknown_shape,
    doc="""
    Facts about the numbers in `input`.

    tensor_debug_mode: 2, whether there are infinities or NaNs; 3, how many of each; 4, also how many are negative,
      zero and positive; 5, the shape; 8, an infinity or NaN for each kind that there is.
    tensor_id: The first of the facts, but in mode 8.
    """,
)


def _pieces(tensor: Any) -> Iterator[Any]:
    """The elements, piece by piece, in order."""
    flat = tensor.reshape(-1)
    starts = range(0, flat.size, _PIECE)
    return (flat[start : start + _PIECE] for start in in_time(starts, SLOW))


@register_kernel(DEBUG_NAN_COUNT, types={"T": REAL_NUMBERS})
class DebugNanCount(DebugKernel):
    """Counts NaNs."""

    def compute(self, ctx: OpKernelContext) -> None:
        if self.is_closed:
            ctx.set_output(0, np.zeros(0, np.int64))
            return
        count = sum(int(np.isnan(piece).sum()) for piece in _pieces(ctx.input(0)))
        output = np.array([count], np.int64)
        self.publish(ctx, output, DataType.DT_INT64)
        ctx.set_output(0, output)


@register_kernel(DEBUG_NUMERIC_SUMMARY, types={"T": (*WIDE_FLOATS, *INTEGERS, DataType.DT_BOOL)})
class DebugNumericSummary(DebugKernel):
    """Counts kinds of numbers, and looks for their extremes, mean and variance."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr
        self._bounds: tuple[float, float] = get("lower_bound"), get("upper_bound")
        self._is_muted_if_healthy: bool = get("mute_if_healthy")

    def compute(self, ctx: OpKernelContext) -> None:
        """Set the summary."""
        if self.is_closed:
            ctx.set_output(0, np.zeros(0))
            return
        tensor = ctx.input(0)
        counts = sum(
            (_counts(piece.astype(np.float64), *self._bounds) for piece in _pieces(tensor)),
            np.zeros(6, np.int64),
        )
        facts = [1, tensor.size, *counts, *_moments(tensor), self.input_types[0], tensor.ndim]
        output = np.array([*facts, *tensor.shape], np.float64)
        nans, low, *_, high = counts
        if not (self._is_muted_if_healthy and nans == low == high == 0):
            self.publish(ctx, output, DataType.DT_DOUBLE)
        ctx.set_output(0, output)


def _counts(numbers: Any, lower: float, upper: float) -> Any:
    """How many are NaN, low, negative, zero, positive, and high; bounds that are infinite are none."""
    low, high = numbers == -np.inf, numbers == np.inf
    if np.isfinite(lower) or np.isnan(lower):
        low |= ~high & (numbers <= lower)
    if np.isfinite(upper) or np.isnan(upper):
        high |= ~low & (numbers >= upper)
    between = ~(low | high)
    kinds = (np.isnan(numbers), low, between & (numbers < 0), between & (numbers == 0))
    return np.array([*map(np.sum, kinds), np.sum(between & (numbers > 0)), np.sum(high)], np.int64)


def _moments(tensor: Any) -> list[float]:
    """Minimum, maximum, mean and variance of the finite elements, added up in order."""
    low, high, total, count = np.inf, -np.inf, 0.0, 0
    for piece in _pieces(tensor):
        numbers = _finite(piece)
        low = min(low, numbers.min(initial=np.inf))
        high = max(high, numbers.max(initial=-np.inf))
        total = _added(total, numbers)
        count += numbers.size
    if not count:
        return [low, high, np.nan, np.nan]
    with np.errstate(all="ignore"):
        mean, squares = np.float64(total) / count, 0.0
        for piece in _pieces(tensor):
            squares = _added(squares, (_finite(piece) - mean) ** 2)
    return [low, high, mean, squares / count]


def _finite(piece: Any) -> Any:
    numbers = piece.astype(np.float64)
    return numbers[np.isfinite(numbers)]


def _added(total: float, numbers: Any) -> float:
    """A sum and numbers, added one after the other."""
    with np.errstate(all="ignore"):
        return float(np.add.accumulate(np.concatenate([[total], numbers]))[-1])


_LAST_SIZES = 6
"""So many sizes of a shape are told."""


@register_kernel(
    DEBUG_NUMERIC_SUMMARY_V2,
    types={"T": (*REAL_NUMBERS, DataType.DT_BOOL), "output_dtype": WIDE_FLOATS},
    factory=True,
)
def debug_numeric_summary_v2(
    *, output_dtype: DataType, T: DataType, tensor_debug_mode: int, tensor_id: int
) -> Callable[[Any], Any]:
    numpy_dtype = output_dtype.numpy_dtype
    digits = 24 if output_dtype is DataType.DT_FLOAT else 53

    def kernel(tensor: Any) -> Any:
        if tensor_debug_mode != 8 and tensor_id > 1 << digits:
            raise InvalidArgumentError(
                f"DebugNumericSummaryV2 requires tensor_id to be less than or equal to "
                f"(2^{digits}). Given tensor_id: {tensor_id}"
            )
        summary = _SUMMARIES.get(tensor_debug_mode)
        if summary is None:
            raise UnimplementedError(f"Unimplemented tensor debug mode: {tensor_debug_mode}")
        values = summary(tensor, tensor_id, T, 1 << digits)
        check_allocation((len(values),), output_dtype)
        return np.array(values, numpy_dtype)

    return kernel


def _kinds(tensor: Any, most: int, *, finite: bool = False) -> list[int]:
    """How many are -inf, inf and NaN; with `finite`, also how many are negative, zero and positive.

    A count ends where the next number has no value in the type of the output.
    """
    counts = [0] * (6 if finite else 3)
    for piece in _pieces(tensor):
        kinds = [piece == -np.inf, piece == np.inf, np.isnan(piece)]
        if finite:
            signs = [piece < 0, piece == 0, piece > 0]
            kinds += [sign & np.isfinite(piece) for sign in signs]
        counts = [count + int(np.sum(kind)) for count, kind in zip(counts, kinds, strict=True)]
    return [min(count, most) for count in counts]


def _curt_health(tensor: Any, tensor_id: int, dtype: DataType, most: int) -> list[float]:
    return [tensor_id, not all(np.isfinite(piece).all() for piece in _pieces(tensor))]


def _concise_health(tensor: Any, tensor_id: int, dtype: DataType, most: int) -> list[float]:
    return [tensor_id, tensor.size, *_kinds(tensor, most)]


def _full_health(tensor: Any, tensor_id: int, dtype: DataType, most: int) -> list[float]:
    any_device = -1
    facts = [tensor_id, any_device, dtype, tensor.ndim, tensor.size]
    return [*facts, *_kinds(tensor, most, finite=True)]


def _shape(tensor: Any, tensor_id: int, dtype: DataType, most: int) -> list[float]:
    sizes = tensor.shape[-_LAST_SIZES:]
    padding = itertools.repeat(0, _LAST_SIZES - len(sizes))
    return [tensor_id, dtype, tensor.ndim, tensor.size, *sizes, *padding]


def _three_slots(tensor: Any, tensor_id: int, dtype: DataType, most: int) -> list[float]:
    found = zip(_kinds(tensor, most), (-np.inf, np.inf, np.nan), strict=True)
    return [value if count else 0.0 for count, value in found]


_SUMMARIES: dict[int, Callable[[Any, int, DataType, int], list[float]]] = {
    2: _curt_health,
    3: _concise_health,
    4: _full_health,
    5: _shape,
    8: _three_slots,
}
"""By the number of the TensorDebugMode."""
