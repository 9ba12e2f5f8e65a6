"""Convolutions as sums over the elements of the window, of numbers whose sums are exact."""

import itertools

import numpy as np


def whole_numbers(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).integers(-9, 10, shape).astype(dtype)


def by_definition(x, filters, geometry):
    padding = [(0, 0), *geometry.padding, (0, 0)]
    padded = np.pad(x, padding)
    out = np.zeros((len(x), *geometry.output, filters.shape[-1]), x.dtype)
    for at in itertools.product(*map(range, geometry.window)):
        seen = [
            slice(i * d, i * d + (count - 1) * s + 1, s)
            for i, d, s, count in zip(
                at, geometry.dilations, geometry.strides, geometry.output, strict=True
            )
        ]
        out += padded[(slice(None), *seen)] @ filters[at]
    return out
