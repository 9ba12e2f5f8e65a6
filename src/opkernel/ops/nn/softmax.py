"""Softmax and its logarithm, along the last dimension.

Sums of half and bfloat16 along the last dimension, added up in Eigen's order.

A sum is rounded after each addition, so that its order shows in the result. Eigen adds up packets of eight,
as in TensorFlow's builds for CPUs: every fourth packet into one sum, then these four sums, then the lanes in
float. Elements left over are summed by themselves. Long rows are cut in two, between packets of the whole
tensor.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/softmax_op_functor.h, Eigen
unsupported/Eigen/CXX11/src/Tensor/TensorReduction.h (InnerMostDimReducer).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.kernel import allocate, cut, shard
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape_with_rank_at_least
from opkernel.ops.input_checks import require
from opkernel.ops.registration import FLOATS, WIDE_FLOATS, register_kernel
from opkernel.types import Array, DataType, as_dtype

__all__ = ["shifted_exponentials", "sum_along_last"]


_LANES = 8
_TOGETHER = 4


def narrow_sum(x: Array) -> Array:
    """The sums along the last dimension of a tensor of half or bfloat16; the dimension is kept."""
    width = x.shape[-1]
    rows = x.reshape(-1, width)
    result = np.empty(len(rows), x.dtype)
    period = _LANES // math.gcd(width, _LANES)  # of rows that begin at the same lane
    for first in range(min(period, len(rows))):
        result[first::period] = _sum(rows[first::period], first * width)
    return result.reshape(*x.shape[:-1], 1)


def _sum(rows: Array, start: int) -> Array:
    """The sums of rows that begin at this element of the tensor, give or take whole packets."""
    width = rows.shape[1]
    if width <= _LANES * (200 if rows.dtype == np.float16 else 128):
        return _short_sum(rows)
    end = start + -(-width // 2)
    left = -(-end // _LANES) * _LANES - start
    return _sum(rows[:, :left], start) + _sum(rows[:, left:], start + left)


def _short_sum(rows: Array) -> Array:
    width = rows.shape[1]
    count = width // _LANES
    packets = rows[:, : count * _LANES].reshape(len(rows), count, _LANES)
    in_fours = count - count % _TOGETHER
    total = np.zeros((len(rows), _LANES), rows.dtype)
    if in_fours:
        fours = packets[:, :in_fours].reshape(len(rows), -1, _TOGETHER, _LANES)
        sums = fours[:, 0]
        for i in in_time(range(1, fours.shape[1]), SLOW):
            sums = sums + fours[:, i]
        total = sums[:, 0] + sums[:, 1] + sums[:, 2] + sums[:, 3]
    for i in range(in_fours, count):
        total = total + packets[:, i]
    rest = np.zeros(len(rows), rows.dtype)
    for i in range(count * _LANES, width):
        rest = rest + rows[:, i]
    return rest + _sum_of_lanes(total)


def _sum_of_lanes(packets: Array) -> Array:
    wide = packets.astype(np.float32)
    while wide.shape[1] > 1:
        half = wide.shape[1] // 2
        wide = wide[:, :half] + wide[:, half:]
    return wide[:, 0].astype(packets.dtype)


_TILE = 1 << 16
"""Elements that are computed at a time: they stay in the cache."""
_FEW = 2048
"""Elements for which neither threads nor products pay."""


def _declare(name: str, output: str, doc: str) -> OpHandle:
    return register_op(
        f"{name}(logits: T) -> {output}: T",
        attrs=["T: {half, bfloat16, float, double}"],
        shape_fn=unchanged_shape_with_rank_at_least(1),
        traits="cannot_fail cost=linear row_rule=first_with_rank function_gradient=yes",
        doc=doc,
    )


SOFTMAX = _declare(
    "Softmax", "softmax", "exp(logits), divided by its sum along the last dimension."
)
LOG_SOFTMAX = _declare("LogSoftmax", "logsoftmax", "log(softmax(logits)), without taking the exp.")


def sum_along_last(x: Any, xp: Any) -> Any:
    """The sums along the last dimension, which is kept; those of half and bfloat16 as Eigen's."""
    if x.dtype.itemsize > 2:
        return xp.sum(x, axis=-1, keepdims=True)
    if xp is np:
        return narrow_sum(x)
    return xp.sum(x, axis=-1, keepdims=True, dtype=np.float32).astype(x.dtype)


def shifted_exponentials(logits: Any, xp: Any) -> tuple[Any, Any, Any]:
    """The logits less their maximum, the exponentials of the differences, and the sums of the exponentials.

    All along the last dimension, and each step in the type of the logits: the rounding of a sum of
    bfloat16 shows in the results.
    """
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)
    exponentials = xp.exp(shifted)
    return shifted, exponentials, sum_along_last(exponentials, xp)


def softmax(logits: Any, xp: Any) -> Any:
    _, exponentials, sums = shifted_exponentials(logits, xp)
    return exponentials * (1 / sums)


def log_softmax(logits: Any, xp: Any) -> Any:
    shifted, _, sums = shifted_exponentials(logits, xp)
    return shifted - xp.log(sums)


def softmax_by_rows(logits: Any, xp: Any) -> Any:
    """As `softmax`, some rows at a time, on all threads."""
    if logits.size <= _FEW:
        small = np.subtract(logits, logits.max(-1, keepdims=True))
        np.exp(small, out=small)
        return np.divide(small, np.add.reduce(small, -1, keepdims=True), out=small)
    width = logits.shape[-1]
    rows = logits.reshape(-1, width)
    result = allocate(rows.shape, as_dtype(logits.dtype))
    ones = np.ones(width, rows.dtype)

    def compute(some: slice) -> None:
        x, out = rows[some], result[some]
        largest = x[np.arange(len(x)), x.argmax(-1)]  # five times as fast as the maximum
        np.subtract(x, largest[:, np.newaxis], out=out)
        np.exp(out, out=out)
        sums = out @ ones  # faster than adding along rows
        out *= np.reciprocal(sums, out=sums)[:, np.newaxis]

    shard(compute, cut(len(rows), max(1, rows.size // _TILE)))
    return result.reshape(logits.shape)


@register_kernel(SOFTMAX, types={"T": FLOATS}, factory=True)
def make_softmax(*, T: DataType, xp: Any) -> Callable[[Any], Any]:
    by_rows = xp is np and T in WIDE_FLOATS
    return _checked(softmax_by_rows if by_rows else softmax, xp)


@register_kernel(LOG_SOFTMAX, types={"T": FLOATS}, factory=True)
def make_log_softmax(*, xp: Any) -> Callable[[Any], Any]:
    return _checked(log_softmax, xp)


def _checked(body: Callable[[Any, Any], Any], xp: Any) -> Callable[[Any], Any]:
    def kernel(logits: Any) -> Any:
        require(logits.ndim != 0, "logits must have >= 1 dimension, got []")
        return body(logits, xp) if logits.size else xp.zeros_like(logits)

    return kernel


@g.register_gradient("Softmax")
def softmax_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    (y,) = op.outputs
    mean = g.nodes.Sum(g.nodes.Mul(grad, y), [-1], keep_dims=True)
    return g.nodes.Mul(g.nodes.Sub(grad, mean), y)


@g.register_gradient("LogSoftmax")
def log_softmax_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    total = g.nodes.Sum(grad, [-1], keep_dims=True)
    return g.nodes.Sub(grad, g.nodes.Mul(total, g.nodes.Exp(op.outputs[0])))
