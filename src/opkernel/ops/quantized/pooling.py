"""QuantizedMaxPool and QuantizedAvgPool: pooling of integers, whose range stays.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/quantized_pooling_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import from_attrs, in_pieces
from opkernel.opdef import OpHandle, OpShapeInferenceFn, register_op
from opkernel.opdef.common_shapes import max_pool_shape, quantized_avg_pool_shape
from opkernel.opdef.common_shapes.quantized import shape_with_range
from opkernel.ops.nn.geometry import check_rank
from opkernel.ops.nn.max_pool import max_pool_of
from opkernel.ops.nn.pooling import Pool, pool_from_attrs
from opkernel.ops.nn.window_reductions import reduce_windows, window_sizes
from opkernel.ops.quantized.conversion import Array
from opkernel.ops.quantized.declarations import QUANTIZED_ATTR, range_args
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

_TYPES = (DataType.DT_QINT8, DataType.DT_QUINT8)


def _declare(name: str, shape_fn: OpShapeInferenceFn, doc: str) -> OpHandle:
    return register_op(
        name,
        inputs=["input: T", *range_args("input")],
        outputs=["output: T", *range_args("output")],
        attrs=[
            f"T: {QUANTIZED_ATTR}",
            "ksize: list(int)",
            "strides: list(int)",
            "padding: {'SAME', 'VALID'}",
        ],
        shape_fn=shape_fn,
        doc=doc,
    )


QUANTIZED_MAX_POOL = _declare(
    "QuantizedMaxPool",
    partial(shape_with_range, plain=max_pool_shape, scalars=(1, 2)),
    "MaxPool of integers, and their range unchanged.",
)
QUANTIZED_AVG_POOL = _declare(
    "QuantizedAvgPool",
    quantized_avg_pool_shape,
    "AvgPool of integers, rounded towards 0, and their range unchanged.",
)


def _check_range(min_input: Array, max_input: Array) -> None:
    for name, end in (("min", min_input), ("max", max_input)):
        if end.ndim:
            raise InvalidArgumentError(
                f"{name}_input shape must be rank 0 but is rank {end.ndim}, received shape: "
                f"{TensorShape(end.shape)}"
            )


@register_kernel(QUANTIZED_MAX_POOL, device="CPU", types={"T": _TYPES}, factory=True)
@from_attrs(pool=pool_from_attrs)
def quantized_max_pool(*, pool: Pool) -> Callable[[Any, Any, Any], Any]:
    def pooled(x: Any, min_input: Any, max_input: Any) -> Any:
        _check_range(min_input, max_input)
        return max_pool_of(x, pool), min_input.copy(), max_input.copy()

    return pooled


@register_kernel(QUANTIZED_AVG_POOL, device="CPU", types={"T": _TYPES}, factory=True)
@from_attrs(pool=pool_from_attrs)
def quantized_avg_pool(*, pool: Pool) -> Callable[[Any, Any, Any], Any]:
    def pooled(x: Any, min_input: Any, max_input: Any) -> Any:
        check_rank("tensor_in", x, 4)
        _check_range(min_input, max_input)
        if pool.depth != 1:
            raise UnimplementedError("Non-spatial pooling is not yet supported.")
        geometry = pool.geometry(x.shape)
        sums = reduce_windows(x.astype(np.int32), geometry, np.add, 0)
        counts = window_sizes(geometry, x.shape[1:-1]).astype(np.int32)

        def mean(total: Array, count: Array) -> Array:
            towards_zero = np.where(total < 0, -(-total // count), total // count)
            return towards_zero.astype(x.dtype)

        return in_pieces(mean, sums, counts), min_input.copy(), max_input.copy()

    return pooled
