"""What functions of images share: batches of one image, and types.

Source: TensorFlow python/ops/image_ops_impl.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel import raw_ops
from opkernel.endpoints.tensors import convert, dtype_of, known_rank
from opkernel.types import DataType


def on_batch(image: Any, function: Callable[[Any], Any], what: str) -> Any:
    """Apply a function of a batch of images to a batch or to one image.

    Raises:
        ValueError: the tensor has another rank.
    """
    x = convert(image)
    rank = known_rank(x, what)
    if rank not in (3, 4):
        raise ValueError(f"{what} takes images of rank 3 or 4, and not of rank {rank}")
    if rank == 4:
        return function(x)
    found = function(raw_ops.ExpandDims(input=x, axis=0))
    return raw_ops.Squeeze(input=found, axis=[0])


def floating(image: Any) -> Any:
    """Images as numbers that are computed with: half and float as they are, others as float."""
    from opkernel.endpoints.image.color import convert_image_dtype

    x = convert(image)
    is_wide = dtype_of(x) in (DataType.DT_HALF, DataType.DT_FLOAT)
    return x if is_wide else convert_image_dtype(x, DataType.DT_FLOAT)


def in_float(image: Any, function: Callable[[Any], Any], *, saturate: bool) -> Any:
    """Apply a function of floating-point images, and convert its result to the type of the image."""
    from opkernel.endpoints.image.color import convert_image_dtype

    x = convert(image)
    return convert_image_dtype(function(floating(x)), dtype_of(x), saturate=saturate)
