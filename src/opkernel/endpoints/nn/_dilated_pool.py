"""Pooling of windows with gaps.

Source: TensorFlow python/ops/nn_ops.py (pool).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.endpoints.nn._sizes import CHANNELS_FIRST
from opkernel.endpoints.nn.dilations import with_space_to_batch


def dilated_pool(
    pool: Callable[[Any, Any], Any],
    x: Any,
    sizes: tuple[Any, Any, Any],
    padding: Any,
    form: str | None,
) -> Any:
    """A function that pools, for windows with gaps.

    Args:
        pool: the function of the input and of the padding.
        x: a batch of images.
        sizes: the window, the strides and the dilations, a number or one for each axis.
        padding: "SAME" or "VALID".
        form: the order of axes.

    Raises:
        ValueError: strides come with dilations, are longer than the window, or the padding is "SAME".
    """
    window = np.ravel(np.asarray(sizes[0]))
    strides, rates = (np.broadcast_to(np.asarray(one), window.shape) for one in sizes[1:])
    if (rates < 1).any():
        raise ValueError(f"The dilations are positive: {rates.tolist()}")
    if (rates > 1).any() and (strides > 1).any():
        raise ValueError(f"Strides are 1 where there are dilations: {strides.tolist()}")
    if (rates > 1).any() and padding == "SAME":
        raise ValueError('Pooling with dilations takes the padding "VALID"')
    if (strides > window).any():
        raise ValueError(
            f"Strides are no longer than the window: {strides.tolist()} and {window.tolist()}"
        )
    format_name = "NC" if form in CHANNELS_FIRST else None
    return with_space_to_batch(
        x, rates, padding, lambda part, count, pad: pool(part, pad), window, None, format_name
    )
