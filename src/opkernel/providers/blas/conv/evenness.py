"""Whether the numbers of an image or of filters are close enough to each other for algorithms that mix them.

An algorithm that computes the outputs of a tile together rounds each of them by what is largest in the tile,
though that may lie outside of the output's own window. How many digits this takes is bounded by how much
larger it is: windows of a tile are compared by their largest pixels, and pixels by their norm over all channels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opkernel.ops.nn.windows import Array

MOST = 64.0
"""The largest ratio of two numbers that are mixed: six bits may be lost."""

_SQUARE = np.float32(MOST * MOST)
_TINY, _HUGE = np.float32(1e-30), np.float32(1e30)  # between, squares lose nothing


class Inside(NamedTuple):
    """Which lines, and even and odd columns, are of the image; the others pad it."""

    lines: slice
    even: slice
    odd: slice


def are_even_tiles(padded: Array, inside: Inside, *, is_narrow: bool) -> bool:
    """Whether in no tile of 2 x 2 windows of 3 x 3 pixels one window is much larger than another.

    Not where pixels have no norm in float: infinite and NaN, over 1e15 and, unless all of a window is 0, under
    1e-15.

    Args:
        padded: `[images, lines, 2, columns, channels]`, even columns before odd ones.
        inside: the part of it that is not padding.
        is_narrow: whether the padding is so narrow that each window has pixels of the image.
    """
    pixels = padded.reshape(-1, padded.shape[-1])
    squares = np.einsum("ij,ij->i", pixels, pixels).reshape(padded.shape[:-1])
    most = squares.max(initial=0)
    if not most < _HUGE:
        return False
    if is_narrow:
        of_image = squares[:, inside.lines]
        even, odd = of_image[:, :, 0, inside.even], of_image[:, :, 1, inside.odd]
        if _are_close(min(even.min(initial=most), odd.min(initial=most)), most):
            return True  # of all windows
    images, lines, _, columns = squares.shape
    largest = _largest_in_windows(squares.swapaxes(2, 3).reshape(images, lines, 2 * columns))
    tiles = largest.reshape(images, lines // 2 - 1, 2, columns - 1, 2)
    lowest, highest = tiles.min((2, 4)), tiles.max((2, 4))
    return bool(np.all(_are_close(lowest, highest) | (highest == 0)))


def are_even_filters(filters: Array) -> bool:
    """Whether of the elements of a window `[3, 3, in, out]` none weighs much more than another in an output."""
    squares = np.einsum("hwio,hwio->hwo", filters, filters)
    lowest, highest = squares.min((0, 1)), squares.max((0, 1))
    return bool(np.all((_are_close(lowest, highest) & (highest < _HUGE)) | (highest == 0)))


def _are_close(lowest: Array, highest: Array) -> Array:
    return (lowest >= _TINY) & (highest <= lowest * _SQUARE)


def _largest_in_windows(pixels: Array) -> Array:
    of_lines = np.maximum(np.maximum(pixels[:, :-2], pixels[:, 1:-1]), pixels[:, 2:])
    return np.maximum(np.maximum(of_lines[..., :-2], of_lines[..., 1:-1]), of_lines[..., 2:])
