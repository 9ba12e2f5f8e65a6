"""Convolution as a sum of products, one for each line of the filter, against the definition."""

import numpy as np
import pytest
from tests.providers.convolution_by_definition import by_definition, whole_numbers

from opkernel.kernel import intra_op_parallelism
from opkernel.ops.nn.fused_matmul import Epilogue
from opkernel.ops.nn.windows import Geometry
from opkernel.providers.blas import convolutions, im2col, products
from opkernel.providers.blas.convolutions import by_input, convolve


@pytest.fixture(autouse=True)
def lines(monkeypatch):
    """Whether each convolution was computed by lines, small ones too."""
    said = []

    def noted(*args):
        weights = im2col.lines_for(*args)
        said.append(weights is not None)
        return weights

    monkeypatch.setattr(convolutions, "_ALGORITHMS", [(noted, im2col.convolve_by_lines)])
    monkeypatch.setattr(im2col, "has_small_kernels", lambda: True)
    monkeypatch.setattr(im2col, "LARGEST", 1200)
    monkeypatch.setattr(im2col, "_LEAST_ROWS", 1)
    monkeypatch.setattr(products, "_SMALL", 0)
    im2col._lines_together.cache_clear()
    yield said
    im2col._lines_together.cache_clear()


SAME = Geometry((3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), (6, 5))
GEOMETRIES = [
    SAME,
    Geometry((3, 3), (1, 1), (1, 1), ((0, 0), (0, 0)), (4, 3)),
    Geometry((2, 3), (1, 1), (1, 1), ((0, 1), (3, 2)), (6, 8)),
    Geometry((3, 2), (1, 2), (2, 1), ((2, 1), (0, 1)), (5, 3)),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_images(geometry, dtype, threads, lines):
    x, filters = (
        whole_numbers(4, 6, 5, 4, dtype=dtype),
        whole_numbers(*geometry.window, 4, 5, dtype=dtype),
    )
    with intra_op_parallelism(threads):
        found = convolve(x, filters, geometry)
    assert lines == [True]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, by_definition(x, filters, geometry))


def test_volumes(lines):
    geometry = Geometry((2, 2, 2), (1, 2, 1), (1, 1, 1), ((0, 0), (0, 1), (1, 0)), (3, 3, 4))
    x, filters = whole_numbers(3, 4, 5, 4, 2), whole_numbers(2, 2, 2, 2, 3)
    np.testing.assert_array_equal(
        convolve(x, filters, geometry), by_definition(x, filters, geometry)
    )
    assert lines == [True]


def test_parts_are_finished_where_they_are(lines):
    x, filters, more = (
        whole_numbers(4, 6, 5, 4),
        whole_numbers(3, 3, 4, 5),
        whole_numbers(4, 6, 5, 5),
    )

    bias = np.arange(5, dtype=np.float32)
    with intra_op_parallelism(2):
        found = convolve(x, filters, SAME, Epilogue(None, bias, more))
    np.testing.assert_array_equal(found, by_definition(x, filters, SAME) + bias + more)
    assert lines == [True]


def test_gradient_by_the_input(lines):
    """That of a sum weighted with the gradient, which is linear in the input."""
    filters, gradient = whole_numbers(3, 3, 5, 4), whole_numbers(4, 6, 5, 4)
    found = by_input((4, 6, 5, 5), filters, gradient, SAME)
    assert lines == [True]
    x = whole_numbers(4, 6, 5, 5)
    assert np.vdot(found, x) == np.vdot(gradient, by_definition(x, filters, SAME))


@pytest.mark.parametrize(
    ("geometry", "filters"),
    [
        (SAME, (3, 3, 4, 40)),  # adding up would take longer than is saved
        (Geometry((3, 3), (2, 1), (1, 1), ((1, 1), (1, 1)), (3, 5)), (3, 3, 4, 5)),
        (Geometry((1, 3), (1, 1), (1, 1), ((0, 0), (1, 1)), (6, 5)), (1, 3, 4, 5)),
        (Geometry((3, 3), (1, 1), (1, 1), ((-1, 1), (1, 1)), (4, 5)), (3, 3, 4, 5)),
    ],
)
def test_what_is_left_to_im2col(geometry, filters, lines):
    convolve(whole_numbers(4, 6, 5, 4), whole_numbers(*filters), geometry)
    assert lines == [False]


def test_what_is_no_float_is_left_to_im2col(lines):
    x, filters = (
        whole_numbers(4, 6, 5, 4, dtype=np.int32),
        whole_numbers(3, 3, 4, 5, dtype=np.int32),
    )
    np.testing.assert_array_equal(convolve(x, filters, SAME), by_definition(x, filters, SAME))
    assert lines == [False]
