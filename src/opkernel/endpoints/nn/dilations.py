"""Windows with gaps, by windows without gaps in the parts of a batch.

Source: TensorFlow python/ops/nn_ops.py (with_space_to_batch).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.array.layout import required_space_to_batch_paddings
from opkernel.endpoints.tensors import TensorLike, composed, convert, shape_of, static_value


@composed
def with_space_to_batch(
    input: TensorLike,
    dilation_rate: TensorLike,
    padding: Any,
    op: Callable[[Any, int, Any], Any],
    filter_shape: TensorLike | None = None,
    spatial_dims: Sequence[int] | None = None,
    data_format: str | None = None,
) -> Any:
    """Apply a function of windows, such as a convolution, to windows with gaps.

    Args:
        input: a batch.
        dilation_rate: how far the elements of a window are apart, a number for each axis of windows.
        padding: "SAME", "VALID", or a list of pairs for all axes of `input`.
        op: the function of the input, of how many axes windows have, and of the padding, which is "VALID" where there
            are gaps.
        filter_shape: the size of a window, for "SAME".
        spatial_dims: the axes of windows; those behind the batch, and the channels if they come first, if None.
        data_format: "NC..." where the channels come first.

    Raises:
        ValueError: a rate is less than 1, axes are not in their order, or an argument is missing.
    """
    rates = static_value(dilation_rate)
    if rates is None or rates.ndim != 1:
        raise ValueError("dilation_rate is a vector that is known before the graph runs")
    if (rates < 1).any():
        raise ValueError(f"The rates of dilation_rate are positive: {rates.tolist()}")
    is_first = data_format is not None and data_format.startswith("NC")
    begin = 2 if is_first else 1
    axes = list(range(begin, begin + rates.size) if spatial_dims is None else spatial_dims)
    if axes != sorted({int(axis) for axis in axes}) or any(axis < 1 for axis in axes):
        raise ValueError(f"spatial_dims are positive and ascending: {axes}")
    if (rates == 1).all():
        return op(input, rates.size, padding)
    base = _base_paddings(padding, filter_shape, rates, is_first=is_first)
    x = convert(input)
    sizes = shape_of(x)
    sizes = (
        sizes[axes]
        if isinstance(sizes, np.ndarray)
        else raw_ops.GatherV2(params=sizes, indices=np.array(axes, np.int32), axis=np.int32(0))
    )
    paddings, crops = required_space_to_batch_paddings(sizes, rates.astype(np.int32), base)
    blocks = np.ones(axes[-1], np.int32)
    blocks[np.array(axes) - 1] = rates
    parts = raw_ops.SpaceToBatchND(
        input=x, block_shape=blocks, paddings=_for_all_axes(paddings, axes)
    )
    found = op(parts, rates.size, "VALID")
    return raw_ops.BatchToSpaceND(input=found, block_shape=blocks, crops=_for_all_axes(crops, axes))


def _base_paddings(padding: Any, filter_shape: Any, rates: Any, *, is_first: bool) -> Any:
    """How much windows need before and after each of their axes."""
    if not isinstance(padding, str):
        pairs = np.asarray(padding, np.int32).reshape(rates.size + 2, 2)
        return pairs[2:] if is_first else pairs[1:-1]
    if padding.upper() == "VALID":
        return np.zeros((rates.size, 2), np.int32)
    if padding.upper() != "SAME":
        raise ValueError(f'padding is "SAME", "VALID" or a list of pairs, and not {padding!r}')
    size = None if filter_shape is None else static_value(filter_shape)
    if size is None:
        raise ValueError('padding="SAME" needs a filter_shape that is known before the graph runs')
    total = (size[: rates.size].astype(np.int32) - 1) * rates
    return np.stack([total // 2, total - total // 2], axis=1).astype(np.int32)


def _for_all_axes(pairs: Any, axes: Sequence[int]) -> Any:
    """Pairs for the axes of windows as pairs for all axes between the batch and the last of them."""
    rows = np.zeros(axes[-1], np.int32)
    rows[np.array(axes) - 1] = np.arange(1, len(axes) + 1)
    with_none = raw_ops.ConcatV2(values=[np.zeros((1, 2), np.int32), pairs], axis=np.int32(0))
    return raw_ops.GatherV2(params=with_none, indices=rows, axis=np.int32(0))
