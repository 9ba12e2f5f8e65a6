"""Loops that resize images."""

import numpy as np

from opkernel.ops.image import resize, resize_area, resize_bicubic, resize_grad
from opkernel.ops.registration import WIDE_FLOATS
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array

_FEW = 8
"""Channels below which loops over them are too short."""


@part_of_loops
def _interpolate_deep_line(
    upper: Array, lower: Array, places: Array, fractions: Array, down: np.float32, out: Array
) -> None:
    """A line between two others; the inner loop goes over channels."""
    width, depth = out.shape
    for x in range(width):
        left, right, across = places[0, x], places[1, x], fractions[x]
        for d in range(depth):
            first, second = upper[left, d], lower[left, d]
            first += (upper[right, d] - first) * across
            second += (lower[right, d] - second) * across
            out[x, d] = first + (second - first) * down


@part_of_loops
def _interpolate_flat_line(
    upper: Array, lower: Array, places: Array, fractions: Array, down: np.float32, out: Array
) -> None:
    """As `_interpolate_deep_line`, where there are few channels: each is a loop over the line."""
    width, depth = out.shape
    for d in range(depth):
        for x in range(width):
            left, right, across = places[0, x], places[1, x], fractions[x]
            first, second = upper[left, d], lower[left, d]
            first += (upper[right, d] - first) * across
            second += (lower[right, d] - second) * across
            out[x, d] = first + (second - first) * down


@loop(otherwise=resize.interpolate_bilinear)
def interpolate_bilinear(images: Array, neighbours: Array, fractions: Array, out: Array) -> None:
    """First between columns, then between rows."""
    count, height, _, depth = out.shape
    columns, across = neighbours[:, height:], fractions[height:]
    for n in range(count):
        for y in range(height):
            upper, lower = images[n, neighbours[0, y]], images[n, neighbours[1, y]]
            if depth < _FEW:
                _interpolate_flat_line(upper, lower, columns, across, fractions[y], out[n, y])
            else:
                _interpolate_deep_line(upper, lower, columns, across, fractions[y], out[n, y])


@loop(otherwise=resize_grad.add_bilinear_shares)
def add_bilinear_shares(grads: Array, neighbours: Array, fractions: Array, out: Array) -> None:
    """Pixel by pixel of the gradient."""
    one = np.float32(1)
    count, height, width, depth = grads.shape
    for n in range(count):
        for y in range(height):
            top, bottom = neighbours[0, y], neighbours[1, y]
            down = fractions[y]
            for x in range(width):
                left, right = neighbours[0, height + x], neighbours[1, height + x]
                across = fractions[height + x]
                for d in range(depth):
                    upper, lower = grads[n, y, x, d] * (one - down), grads[n, y, x, d] * down
                    out[n, top, left, d] += upper * (one - across)
                    out[n, top, right, d] += upper * across
                    out[n, bottom, left, d] += lower * (one - across)
                    out[n, bottom, right, d] += lower * across


@part_of_loops
def _add_deep_line(
    line: Array, weight: np.float32, indices: Array, weights: Array, starts: Array, total: Array
) -> None:
    """Add what the columns of a line cover: the inner loop goes over channels."""
    width, depth = total.shape
    covered = np.empty(depth, np.float32)
    for j in range(width):
        covered[:] = 0
        for x in range(starts[j], starts[j + 1]):
            for d in range(depth):
                covered[d] += line[indices[x], d] * weights[x]
        for d in range(depth):
            total[j, d] += covered[d] * weight


@part_of_loops
def _add_flat_line(
    line: Array, weight: np.float32, indices: Array, weights: Array, starts: Array, total: Array
) -> None:
    """As `_add_deep_line`, where there are few channels."""
    width, depth = total.shape
    if depth == 3:
        for j in range(width):
            red, green, blue = np.float32(0), np.float32(0), np.float32(0)
            for x in range(starts[j], starts[j + 1]):
                pixel, part = line[indices[x]], weights[x]
                red += pixel[0] * part
                green += pixel[1] * part
                blue += pixel[2] * part
            total[j, 0] += red * weight
            total[j, 1] += green * weight
            total[j, 2] += blue * weight
        return
    for j in range(width):
        for d in range(depth):
            covered = np.float32(0)
            for x in range(starts[j], starts[j + 1]):
                covered += line[indices[x], d] * weights[x]
            total[j, d] += covered * weight


@loop(otherwise=resize_area.resize_by_area)
def resize_by_area(
    images: Array, indices: Array, weights: Array, starts: Array, factor: np.float32, out: Array
) -> None:
    """Rows are added up, each the sum of its columns."""
    count, height, _, depth = out.shape
    ends = starts[height:]
    for n in range(count):
        for i in range(height):
            out[n, i] = 0
            for y in range(starts[i], starts[i + 1]):
                line = images[n, indices[y]]
                if depth < _FEW:
                    _add_flat_line(line, weights[y], indices, weights, ends, out[n, i])
                else:
                    _add_deep_line(line, weights[y], indices, weights, ends, out[n, i])
            out[n, i] *= factor


@part_of_loops
def _mix_lines(lines: Array, places: Array, weights: Array, line: Array) -> None:
    """Fill a line with the mean of four others."""
    one, two, three, four = lines[places[0]], lines[places[1]], lines[places[2]], lines[places[3]]
    w, x, y, z = weights[0], weights[1], weights[2], weights[3]
    for element in range(line.size):
        total = one[element] * w + two[element] * x
        line[element] = total + three[element] * y + four[element] * z


@loop(otherwise=resize_bicubic.interpolate_bicubic)
def interpolate_bicubic(images: Array, neighbours: Array, weights: Array, out: Array) -> None:
    """A line between four others, then its pixels between four."""
    count, height, width, depth = out.shape
    lines = images.reshape(count, images.shape[1], -1)
    line = np.empty(lines.shape[2], np.float32)
    for n in range(count):
        for i in range(height):
            _mix_lines(lines[n], neighbours[:, i], weights[:, i], line)
            for j in range(width):
                at = height + j
                one, two = neighbours[0, at] * depth, neighbours[1, at] * depth
                three, four = neighbours[2, at] * depth, neighbours[3, at] * depth
                w, x, y, z = weights[0, at], weights[1, at], weights[2, at], weights[3, at]
                for d in range(depth):
                    total = line[one + d] * w + line[two + d] * x
                    out[n, i, j, d] = total + line[three + d] * y + line[four + d] * z


resize.register_resize_bilinear(interpolate_bilinear, registry=LOOPS.kernels)
resize_grad.register_resize_bilinear_grad(
    add_bilinear_shares, types=WIDE_FLOATS, registry=LOOPS.kernels
)
resize_area.register_resize_area(resize_by_area, registry=LOOPS.kernels)
resize_bicubic.register_resize_bicubic(interpolate_bicubic, registry=LOOPS.kernels)
