"""Convolutions with constant filters of 3 x 3 elements, against sums of products in double."""

import gc

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import opkernel
from opkernel.ops.math import panels
from opkernel.ops.nn import winograd
from opkernel.ops.nn.geometry import windows_from_attrs
from opkernel.types import float32


@pytest.fixture(autouse=True)
def small_kernels(monkeypatch):
    """As on processors for which OpenBLAS has them."""
    monkeypatch.setattr(panels, "has_small_kernels", lambda: True)


def constant(array):
    """The array as a Const has it."""
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


def by_sums(x, filters, padding):
    padded = np.pad(x.astype(np.float64), ((0, 0), *padding, (0, 0)))
    windows = sliding_window_view(padded, (3, 3), (1, 2))
    return np.tensordot(windows, filters.astype(np.float64), ((4, 5, 3), (0, 1, 2)))


def case(batch, rows, columns, inner, outer):
    random = np.random.default_rng(0)
    x = random.normal(size=(batch, rows, columns, inner)).astype(np.float32)
    return x, constant(random.normal(size=(3, 3, inner, outer)).astype(np.float32))


def geometry_of(x, padding):
    explicit = [0, 0, *padding[0], *padding[1], 0, 0]
    windows = windows_from_attrs("NHWC", (1, 1), (1, 1), "EXPLICIT", explicit)
    return windows.geometry(x.shape[1:3], (3, 3))


SAME = ((1, 1), (1, 1))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "padding"),
    [
        ((1, 56, 55, 128, 128), SAME),  # several blocks an image, odd sizes
        ((9, 13, 15, 128, 112), SAME),
        ((12, 13, 14, 96, 128), ((0, 0), (0, 0))),
        ((12, 11, 12, 128, 96), ((2, 1), (3, 0))),
        ((8, 14, 14, 128, 128), SAME),  # several images a block
        ((1, 14, 14, 256, 256), SAME),  # products shared out
    ],
)
def test_results_are_those_of_sums_of_products(shape, padding, threads):
    x, filters = case(*shape)
    with opkernel.kernel.intra_op_parallelism(threads):
        found = winograd.convolve_3x3(x, filters, geometry_of(x, padding))
    expected = by_sums(x, filters, padding)
    assert found is not None
    np.testing.assert_allclose(found, expected, atol=2e-6 * np.abs(expected).max())


def test_parts_are_finished_where_they_are():
    x, filters = case(1, 40, 40, 128, 128)
    more = np.random.default_rng(1).normal(size=(1, 40, 40, 128)).astype(np.float32)

    def finish(part, where):
        part += more[where]

    found = winograd.convolve_3x3(x, filters, geometry_of(x, SAME), finish)
    plain = winograd.convolve_3x3(x, filters, geometry_of(x, SAME))
    assert plain is not None
    np.testing.assert_array_equal(found, plain + more)


def test_what_is_not_finite_stays_within_its_windows():
    x, filters = case(1, 40, 40, 128, 128)
    x[0, 5, 5, 0] = np.inf
    graph = opkernel.Graph()
    with graph.as_default():
        fed = opkernel.placeholder(float32, x.shape)
        attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        y = graph.create_op("Conv2D", [fed, filters], attrs=attrs).outputs[0]
    with opkernel.Session(graph) as session:
        found = np.isfinite(session.run(y, {fed: x})[0]).all(-1)
    expected = np.ones((40, 40), bool)
    expected[4:7, 4:7] = False
    np.testing.assert_array_equal(found, expected)


def test_filters_that_may_change_and_small_ones_are_left_alone():
    x, filters = case(1, 40, 40, 128, 128)
    geometry = geometry_of(x, SAME)
    assert winograd.convolve_3x3(x, filters, geometry) is not None
    assert winograd.convolve_3x3(x, filters.copy(), geometry) is None
    assert winograd.convolve_3x3(x[:, :8, :8], filters, geometry_of(x[:, :8, :8], SAME)) is None
    few, narrow = case(1, 40, 40, 3, 128)
    assert winograd.convolve_3x3(few, narrow, geometry_of(few, SAME)) is None


def test_what_is_made_of_a_filter_goes_with_it():
    x, filters = case(1, 40, 40, 128, 128)
    known = winograd._transformed_once(128)._known
    gc.collect()
    before = len(known)
    winograd.convolve_3x3(x, filters, geometry_of(x, SAME))
    assert len(known) == before + 1
    del filters
    gc.collect()
    assert len(known) == before
