"""Windows taken apart: for each place in a window, what all windows have there, as a slice of the padded input.

Such slices are computed with element by element. XLA's own windows of several values, and its scatters, are slow on CPUs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from opkernel.ops.nn.windows import Geometry
from opkernel.xla.jax_numpy import jnp, lax

_MOST = 64
"""Windows of more elements make large programs."""


def are_apart(geometry: Geometry) -> bool:
    """Whether windows have no element in common, and few elements."""
    extents = zip(geometry.strides, geometry.window, strict=True)
    return all(step >= size for step, size in extents) and math.prod(geometry.window) <= _MOST


def elements_of_windows(
    geometry: Geometry,
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """For each place in a window: the place, and where the spatial dimensions of the padded input have it."""
    along = list(zip(geometry.dilations, geometry.output, geometry.strides, strict=True))
    for place in np.ndindex(*geometry.window):
        first = [at * gap for at, (gap, _, _) in zip(place, along, strict=True)]
        yield (
            place,
            tuple(
                slice(start, start + (count - 1) * step + 1, step)
                for start, (_, count, step) in zip(first, along, strict=True)
            ),
        )


def first_largest_in_windows(x: Any, geometry: Geometry) -> Any:
    """Which element of each window is the first largest one: its number in the window, int32; -1 for none.

    A NaN is taken where it comes first, and else passed over. `x` is `[batch, *spatial, channels]`.
    """
    padding = ((0, 0), *geometry.padding, (0, 0))
    padded, inside = jnp().pad(x, padding), np.pad(np.ones((1, *x.shape[1:-1], 1), bool), padding)
    best, found = np.zeros((), x.dtype), np.int32(-1)
    for number, (_, spatial) in enumerate(elements_of_windows(geometry)):
        value, is_there = padded[:, *spatial], inside[:, *spatial, :1]
        wins = is_there & ((found < 0) | (best < value))
        best, found = jnp().where(wins, value, best), jnp().where(wins, np.int32(number), found)
    return found


def given_to_windows(numbers: Any, values: Any, geometry: Geometry, shape: tuple[int, ...]) -> Any:
    """Zeros of a shape, but for the element of each window that has a number: it has the window's value."""
    zero = np.zeros((), values.dtype)
    padded = geometry.padded_shape(shape)
    total: Any = zero
    for number, (_, spatial) in enumerate(elements_of_windows(geometry)):
        taken = jnp().where(numbers == number, values, zero)
        edges = [
            (part.start, size - part.stop, part.step - 1)
            for part, size in zip(spatial, padded[1:-1], strict=True)
        ]
        total = total + lax().pad(taken, zero, [(0, 0, 0), *edges, (0, 0, 0)])
    return total[geometry.inner(shape)]
