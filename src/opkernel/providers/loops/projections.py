"""Loops that see images from elsewhere."""

import numpy as np

from opkernel.ops.image import projective_transform
from opkernel.ops.registration import WIDE_FLOATS
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array

_NEAREST, _REFLECT, _WRAP = (
    projective_transform.FILL_MODES.index(mode) for mode in ("NEAREST", "REFLECT", "WRAP")
)


@part_of_loops
def _reflected(at: np.float32, size: int) -> np.float32:
    """Abcd continues as dcba on both sides."""
    twice = np.float32(2 * size)
    if at < 0:
        at = twice * np.trunc(-at / twice) + at
        return np.float32(at + twice if at < -size else -at - np.float32(1))
    if at > size - 1:
        at = at - twice * np.trunc(at / twice)
        return np.float32(twice - at - np.float32(1) if at >= size else at)
    return at


@part_of_loops
def _wrapped(at: np.float32, size: int) -> np.float32:
    """Abcd continues as abcd on both sides."""
    last = np.float32(size - 1)
    if at < 0:
        return np.float32(at + np.float32(size) * (np.trunc(-at / last) + np.float32(1)))
    if at > last:
        return np.float32(at - np.float32(size) * np.trunc(at / last))
    return at


@part_of_loops
def _inside(at: np.float32, size: int, mode: int) -> np.float32:
    """A place within an image, by the mode of what lies beyond."""
    if mode < _NEAREST:
        return at
    if mode != _NEAREST:
        if size <= 1:
            return np.float32(0) if at < 0 or at > size - 1 else at
        at = _reflected(at, size) if mode == _REFLECT else _wrapped(at, size)
    last = np.float32(size - 1)
    return np.float32(0) if at < 0 else min(at, last)


@part_of_loops
def _rounded(at: np.float32) -> np.float32:
    """Half away from zero."""
    return np.float32(np.trunc(at + np.copysign(np.float32(0.49999997), at)))


@part_of_loops
def _is_within(row: np.float32, column: np.float32, image: Array) -> bool:
    return bool(0 <= row < image.shape[0] and 0 <= column < image.shape[1])


@loop(otherwise=projective_transform.project_nearest)
def project_nearest(
    images: Array, projections: Array, first: Array, mode: int, fill: Array, out: Array
) -> None:
    """Each pixel is one of the image, or the fill value."""
    one = np.float32(1)
    for n in range(len(out)):
        a0, a1, a2, b0, b1, b2, c0, c1 = projections[n if len(projections) > 1 else 0]
        height, width = images.shape[1:3]
        for i in range(out.shape[1]):
            y = np.float32(first[0] + i)
            for j in range(out.shape[2]):
                x = np.float32(first[1] + j)
                k = c0 * x + c1 * y + one
                row = _rounded(_inside((b0 * x + b1 * y + b2) / k, height, mode))
                column = _rounded(_inside((a0 * x + a1 * y + a2) / k, width, mode))
                if k != 0 and _is_within(row, column, images[n]):
                    out[n, i, j] = images[n, int(row), int(column)]
                else:
                    out[n, i, j] = fill[0]


@part_of_loops
def _pixel(row: np.float32, column: np.float32, d: int, image: Array, fill: Array) -> np.float32:
    """A channel of a pixel; the fill value beyond the image."""
    if _is_within(row, column, image):
        return np.float32(image[int(row), int(column), d])
    return np.float32(fill[0])


@loop(otherwise=projective_transform.project_bilinear)
def project_bilinear(
    images: Array, projections: Array, first: Array, mode: int, fill: Array, out: Array
) -> None:
    """Each pixel is mixed of the four around its place."""
    one = np.float32(1)
    for n in range(len(out)):
        a0, a1, a2, b0, b1, b2, c0, c1 = projections[n if len(projections) > 1 else 0]
        image = images[n]
        for i in range(out.shape[1]):
            y = np.float32(first[0] + i)
            for j in range(out.shape[2]):
                x = np.float32(first[1] + j)
                k = c0 * x + c1 * y + one
                if k == 0:
                    out[n, i, j] = fill[0]
                    continue
                row = _inside((b0 * x + b1 * y + b2) / k, images.shape[1], mode)
                column = _inside((a0 * x + a1 * y + a2) / k, images.shape[2], mode)
                top, left = np.floor(row), np.floor(column)
                down, across = row - top, column - left
                up, back = top + one - row, left + one - column
                for d in range(out.shape[3]):
                    upper = back * _pixel(top, left, d, image, fill)
                    upper += across * _pixel(top, left + one, d, image, fill)
                    lower = back * _pixel(top + one, left, d, image, fill)
                    lower += across * _pixel(top + one, left + one, d, image, fill)
                    out[n, i, j, d] = up * upper + down * lower


projective_transform.register_projective_transform(
    project_nearest, project_bilinear, types=WIDE_FLOATS, registry=LOOPS.kernels
)
