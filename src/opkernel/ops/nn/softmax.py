"""Softmax and its logarithm, along the last dimension.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/softmax_op_functor.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import allocate, cut, shard
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape_with_rank_at_least
from opkernel.ops.kernel_types import FLOATS
from opkernel.ops.nn.narrow_sum import narrow_sum
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, as_dtype

__all__ = ["shifted_exponentials", "sum_along_last"]

_TILE = 1 << 16
"""Elements that are computed at a time: they stay in the cache."""
_FEW = 2048
"""Elements for which neither threads nor products pay."""


def _declare(name: str, output: str, doc: str) -> OpHandle:
    return register_op(
        name,
        inputs=["logits: T"],
        outputs=[f"{output}: T"],
        attrs=["T: {half, bfloat16, float, double}"],
        shape_fn=unchanged_shape_with_rank_at_least(1),
        traits="cannot_fail cost=linear row_rule=first_with_rank function_gradient=yes",
        doc=doc,
    )


SOFTMAX = _declare(
    "Softmax",
    "softmax",
    "exp(logits), divided by its sum along the last dimension.",
)
LOG_SOFTMAX = _declare(
    "LogSoftmax",
    "logsoftmax",
    "log(softmax(logits)), without taking the exp.",
)


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


@register_kernel(SOFTMAX, device="CPU", types={"T": FLOATS}, factory=True)
def make_softmax(*, T: DataType, xp: Any) -> Callable[[Any], Any]:
    by_rows = xp is np and T in (DataType.DT_FLOAT, DataType.DT_DOUBLE)
    return _checked(softmax_by_rows if by_rows else softmax, xp)


@register_kernel(LOG_SOFTMAX, device="CPU", types={"T": FLOATS}, factory=True)
def make_log_softmax(*, xp: Any) -> Callable[[Any], Any]:
    return _checked(log_softmax, xp)


def _checked(body: Callable[[Any, Any], Any], xp: Any) -> Callable[[Any], Any]:
    def kernel(logits: Any) -> Any:
        if logits.ndim == 0:
            raise InvalidArgumentError("logits must have >= 1 dimension, got []")
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
