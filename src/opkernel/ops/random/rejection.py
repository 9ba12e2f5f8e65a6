"""Numbers that take as many random words as they need: each has a stream of its own.

Source: the macro UNIFORM of TensorFlow core/kernels/random_poisson_op.cc and random_binomial_op.cc,
RandomSampleBuffer in stateless_random_gamma_op.h.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.ops.philox import Philox
from opkernel.ops.random.filling import BLOCKS_PER_OUTPUT, filled
from opkernel.types import DataType

Array = np.ndarray[Any, Any]

_TILE = 1 << 13
"""Numbers."""


class Streams:
    """A place in the stream for each of some numbers."""

    def __init__(self, random: Philox, starts: Array) -> None:
        self._random = random
        self._next = starts.copy()

    def take(self, rows: Array) -> Array:
        """The next block of some of them: indices [n] -> uint32 [n, 4]."""
        words = self._random.blocks_at(self._next[rows])
        self._next[rows] += np.uint64(1)
        return words


class Buffer:
    """What is made of blocks, handed out one by one, the last one of a block first.

    Args:
        streams: Where blocks come from; several buffers take turns.
        values: What is made of blocks: uint32 [n, 4] -> [n, size].
        count: How many streams there are.
        size: How many values a block makes.
    """

    def __init__(
        self, streams: Streams, values: Callable[[Array], Array], count: int, size: int
    ) -> None:
        self._streams, self._values, self._size = streams, values, size
        self._kept = np.empty((count, size), values(np.zeros((0, 4), np.uint32)).dtype)
        self._left = np.zeros(count, np.int8)

    def draw(self, rows: Array) -> Array:
        """One value for each of some numbers."""
        empty = rows[self._left[rows] == 0]
        if empty.size:
            self._kept[empty] = self._values(self._streams.take(empty))
            self._left[empty] = self._size
        self._left[rows] -= 1
        return self._kept[rows, self._left[rows]]


def samples_per_parameter(shape: tuple[int, ...], parameters: tuple[int, ...]) -> int:
    """How many numbers of each parameter a tensor has, whose last dimensions are theirs.

    Raises:
        InvalidArgumentError: the last dimensions are not.
    """
    if shape[len(shape) - len(parameters) :] != parameters or len(shape) < len(parameters):
        raise InvalidArgumentError("Shape passed in must end with broadcasted shape.")
    return math.prod(shape[: len(shape) - len(parameters)])


def sampled(
    random: Philox,
    shape: tuple[int, ...],
    dtype: DataType,
    count: int,
    draw: Callable[[Philox, Array, Array], Array],
) -> Array:
    """A tensor of numbers of several parameters, which its last dimensions run through.

    The streams belong to the numbers of the first parameter, then to those of the second, and so on.

    Args:
        random: The stream that theirs begin in, every 256 blocks.
        shape: The shape.
        dtype: The type.
        count: How many numbers of each parameter there are.
        draw: The numbers, of the stream, their parameters' indices and their own.
    """

    def values(part: slice) -> Array:
        numbers = np.arange(part.start, part.stop, dtype=np.uint64)
        return draw(random, (numbers // np.uint64(count)).astype(np.intp), numbers)

    def rounded(part: slice) -> Array:
        drawn = values(part)
        return (
            drawn.astype(np.float32) if dtype == DataType.DT_HALF else drawn
        )  # twice, as TensorFlow

    of_parameters = filled((math.prod(shape),), dtype, rounded, 1, _TILE)
    return np.ascontiguousarray(of_parameters.reshape(-1, max(count, 1)).T).reshape(shape)


def starts_of(numbers: Array) -> Array:
    """Where the streams of numbers begin."""
    return numbers * np.uint64(BLOCKS_PER_OUTPUT)
