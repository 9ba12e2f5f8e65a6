"""Tensors filled with random numbers, tile by tile, on all intra-op threads.

Source: FillPhiloxRandom in TensorFlow core/kernels/random_op_cpu.h.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.kernel import allocate, cut, shard
from opkernel.types import DataType

__all__ = ["BLOCKS_PER_OUTPUT", "filled"]

BLOCKS_PER_OUTPUT = 256
"""Blocks that a generator skips for each number it gives, whatever the numbers need."""


def filled(
    shape: tuple[int, ...],
    dtype: DataType,
    values: Callable[[slice], np.ndarray[Any, Any]],
    group: int,
    tile: int,
) -> np.ndarray[Any, Any]:
    """A tensor whose elements come in groups.

    Args:
        shape: The shape.
        dtype: The type.
        values: The elements of the groups of a range, at least.
        group: How many elements a group has.
        tile: How many groups are computed at once.

    Raises:
        ResourceExhaustedError: the tensor is larger than the allocation limit.
    """
    output = allocate(shape, dtype)
    flat = output.reshape(-1)

    def fill(part: slice) -> None:
        piece = flat[part.start * group : part.stop * group]
        piece[:] = values(part).reshape(-1)[: piece.size]

    if flat.size:
        groups = -(-flat.size // group)
        shard(fill, cut(groups, -(-groups // tile)))
    return output
