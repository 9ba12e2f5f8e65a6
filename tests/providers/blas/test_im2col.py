"""Convolutions of few channels, whose windows are gathered as columns, against the definition."""

import numpy as np
import pytest
from tests.providers.convolution_by_definition import by_definition, whole_numbers

from opkernel.kernel import intra_op_parallelism
from opkernel.ops.nn.windows import Geometry
from opkernel.providers.blas import im2col, products
from opkernel.providers.blas.convolutions import by_filters


def convolve(x, filters, geometry):
    return im2col.convolve(x, filters, geometry, None)


GEOMETRIES = [
    Geometry((3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), (7, 12)),
    Geometry((3, 2), (2, 1), (1, 2), ((0, 0), (0, 0)), (3, 10)),
    Geometry((1, 3), (3, 1), (1, 1), ((2, 0), (3, 1)), (3, 14)),
    Geometry((2, 2), (1, 2), (1, 1), ((0, 1), (0, 0)), (7, 6)),  # not by columns
]


@pytest.fixture(params=[1, 500, 4000, 1 << 20])
def tile_bytes(request, monkeypatch):
    monkeypatch.setattr(im2col, "_TILE_BYTES", request.param)
    monkeypatch.setattr(im2col.tiles, "__defaults__", (request.param,))
    monkeypatch.setattr(im2col, "_FEW_ELEMENTS", 0)
    monkeypatch.setattr(products, "_SMALL", 0)


@pytest.mark.usefixtures("tile_bytes")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_few_channels(geometry, channels, threads):
    x, filters = whole_numbers(3, 7, 12, channels), whole_numbers(*geometry.window, channels, 5)
    expected = by_definition(x, filters, geometry)
    gradient = whole_numbers(*expected.shape)
    with intra_op_parallelism(threads):
        np.testing.assert_array_equal(convolve(x, filters, geometry), expected)
        gradient_by_filters = by_filters(x, filters.shape, gradient, geometry)
    # The sum that is weighted with the gradient is linear in the filters.
    assert np.vdot(gradient_by_filters, filters) == np.vdot(gradient, expected)


def test_few_channels_of_volumes(monkeypatch):
    monkeypatch.setattr(im2col, "_FEW_ELEMENTS", 0)
    geometry = Geometry((2, 2, 3), (1, 2, 1), (1, 1, 1), ((0, 0), (0, 1), (1, 1)), (3, 3, 9))
    x, filters = whole_numbers(2, 4, 5, 9, 2), whole_numbers(2, 2, 3, 2, 3)
    np.testing.assert_array_equal(
        convolve(x, filters, geometry), by_definition(x, filters, geometry)
    )


def test_an_infinite_element_shows_where_windows_see_it(monkeypatch):
    monkeypatch.setattr(im2col, "_FEW_ELEMENTS", 0)
    x, filters = np.ones((1, 3, 8, 2), np.float32), np.ones((3, 3, 2, 1), np.float32)
    x[0, 0, 0, 1] = np.inf
    found = convolve(x, filters, Geometry((3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), (3, 8)))
    assert np.isinf(found[0, ..., 0]).tolist() == [
        [True] * 2 + [False] * 6,
        [True] * 2 + [False] * 6,
        [False] * 8,
    ]
