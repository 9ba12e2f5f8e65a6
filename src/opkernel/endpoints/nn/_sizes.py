"""Strides, windows, dilations and paddings, as ops want them.

Source: TensorFlow python/ops/nn_ops.py (_get_sequence, convert_padding).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.endpoints.tensors import static_shape

CHANNELS_FIRST = ("NCW", "NCHW", "NCDHW", "NC")


def full_sizes(value: Any, n: int, is_first: bool, name: str) -> list[int]:
    """A number for each axis of a batch of images with channels; 1 for the batch and the channels.

    Args:
        value: a number for all of the `n` axes of an image, a list of one or `n` numbers, or of all.
        n: how many axes an image has.
        is_first: whether channels stand before the axes of an image.
        name: what the numbers are, for the error.

    Raises:
        ValueError: there are other numbers.
    """
    given = [1] if value is None else np.ravel(np.asarray(value)).tolist()
    sizes = [int(size) for size in given]
    if len(sizes) == n + 2:
        return sizes
    if len(sizes) == 1:
        sizes = sizes * n
    if len(sizes) != n:
        raise ValueError(f"{name} has 1, {n} or {n + 2} numbers, and not {len(sizes)}")
    return [1, 1, *sizes] if is_first else [1, *sizes, 1]


def padding_attrs(padding: Any) -> dict[str, Any]:
    """The attrs for "SAME", "VALID", or a list of how much to add before and after each axis.

    Raises:
        ValueError: the list has no pairs, or the text is another one.
    """
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(f'padding is "SAME", "VALID" or a list of pairs, and not {padding!r}')
        return {"padding": padding.upper()}
    pairs: Sequence[Any] = padding
    if any(not isinstance(pair, list | tuple) or len(pair) != 2 for pair in pairs):
        raise ValueError(
            f"An explicit padding is a list of pairs, a pair for each axis: {padding!r}"
        )
    return {"padding": "EXPLICIT", "explicit_paddings": [int(n) for pair in pairs for n in pair]}


def image_attrs(n: int, data_format: str, strides: Any, dilations: Any) -> dict[str, Any]:
    """The attrs of a convolution of images with `n` axes."""
    is_first = data_format in CHANNELS_FIRST
    return {
        "strides": full_sizes(strides, n, is_first, "strides"),
        "dilations": full_sizes(dilations, n, is_first, "dilations"),
        "data_format": data_format,
    }


def same_padding(kernel: Any, rates: Sequence[int], padding: Any) -> tuple[Any, Any]:
    """How many zeros images get before and after each axis for a dilated filter."""
    sizes = static_shape(kernel) or []
    if padding == "VALID" or None in sizes[:2]:
        return np.zeros(2, np.int32), np.zeros(2, np.int32)
    total = (np.array(sizes[:2], np.int32) - 1) * np.array(rates, np.int32)
    return total // 2, total - total // 2
