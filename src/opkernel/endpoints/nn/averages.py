"""Averages of losses.

Source: TensorFlow python/ops/nn_impl_distribute.py, python/keras/utils/losses_utils.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.math.elementwise import truediv
from opkernel.endpoints.math.reductions import reduce_sum
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    number_like,
    static_rank,
    static_value,
)
from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType


@composed
def compute_average_loss(
    per_example_loss: TensorLike,
    sample_weight: TensorLike | None = None,
    global_batch_size: TensorLike | None = None,
) -> Any:
    """The sum of the losses of examples by the size of the batch: 0 where the batch is empty.

    Args:
        per_example_loss: the losses, [batch, ...].
        sample_weight: factors for them, [batch] or of the shape of the losses.
        global_batch_size: the size of the batch; that of the losses if None.

    Raises:
        ValueError: the losses are a scalar, or the size is no scalar.
        TypeError: the size is not an integer.
        InvalidArgumentError: the size is negative.
    """
    losses = convert(per_example_loss)
    kind = dtype_of(losses)
    if static_rank(losses) == 0:
        raise ValueError("The losses of examples have at least one axis, and a scalar is given")
    if sample_weight is not None:
        losses = cast_to(_weighted(losses, convert(sample_weight)), kind)
    if global_batch_size is None:
        global_batch_size = raw_ops.Shape(input=losses)[0]
    size = convert(global_batch_size)
    if not dtype_of(size).is_integer:
        raise TypeError(f"global_batch_size is an integer, and not {dtype_of(size).tf_name}")
    if static_rank(size):
        raise ValueError("global_batch_size is a scalar")
    known = static_value(size)
    if known is not None and known < 0:
        raise InvalidArgumentError(f"global_batch_size is not negative, and {known} is given")
    return raw_ops.DivNoNan(x=reduce_sum(losses), y=cast_to(size, kind))


def _weighted(losses: Any, weights: Any) -> Any:
    """The losses with their weights, as float32."""
    losses, weights = (cast_to(one, DataType.DT_FLOAT) for one in (losses, weights))
    rank, of_weights = static_rank(losses), static_rank(weights)
    if rank is not None and of_weights is not None:
        if of_weights == rank + 1:
            weights = raw_ops.Squeeze(input=weights, axis=[-1])
        elif 0 < of_weights == rank - 1:
            weights = raw_ops.ExpandDims(input=weights, axis=np.int32(-1))
    return raw_ops.Mul(x=losses, y=weights)


@composed
def scale_regularization_loss(regularization_loss: TensorLike) -> Any:
    """The sum of the losses of a regularization, for one of the processes that train: here there is one."""
    total = reduce_sum(convert(regularization_loss))
    return truediv(total, number_like(total, 1))
