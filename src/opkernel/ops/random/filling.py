"""Tensors filled with random numbers, tile by tile, on all intra-op threads.

The generator of a kernel: a stream of its own, of which each call takes the next part.

Source: TensorFlow FillPhiloxRandom in TensorFlow core/kernels/random_op_cpu.h,
core/util/guarded_philox_random.h.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.kernel import OpKernel, OpKernelConstruction, allocate, cut, shard
from opkernel.ops.philox import Philox
from opkernel.types import DataType

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


class GuardedPhilox:
    """A stream that the attrs `seed` and `seed2` of a node choose; both 0: the system does."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        self._lock = threading.Lock()
        self._next = Philox.seeded(construction.get_attr("seed"), construction.get_attr("seed2"))

    def reserve(self, blocks: int) -> Philox:
        """The place where so many blocks begin, which no other call gets."""
        with self._lock:
            place = self._next
            self._next = place.skip(blocks)
        return place

    def reserve_outputs(self, count: int) -> Philox:
        """The place of the blocks of so many numbers."""
        return self.reserve(count * BLOCKS_PER_OUTPUT)

    def reserve_words(self, count: int) -> Philox:
        """The place of at least so many words."""
        return self.reserve(-(-count // 4))


class StreamKernel(OpKernel):
    """A kernel with a stream of random numbers of its own."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = self.output_types[0]
        self.generator = GuardedPhilox(construction)
