"""Convolutions with constant filters of 3 x 3 elements, against sums of products in double."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import opkernel
from opkernel.ops.nn.fused_matmul import Epilogue
from opkernel.ops.nn.windows import windows_from_attrs
from opkernel.providers.blas import products, winograd
from opkernel.state.lasting_values import note_lasting
from opkernel.types import float32


@pytest.fixture(autouse=True)
def small_kernels(monkeypatch):
    """As on processors for which OpenBLAS has them."""
    monkeypatch.setattr(products, "has_small_kernels", lambda: True)


def constant(array):
    """The array, known to be constant."""
    note_lasting(array)
    return array


def convolve_3x3(x, filters, geometry, epilogue=None):
    weights = winograd.weights_for(x, filters, geometry)
    return None if weights is None else winograd.convolve(x, weights, geometry, epilogue)


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
        ((12, 11, 12, 128, 96), ((2, 1), (2, 0))),
        ((8, 14, 14, 128, 128), SAME),  # several images a block
        ((1, 14, 14, 256, 256), SAME),  # products shared out
    ],
)
def test_results_are_those_of_sums_of_products(shape, padding, threads):
    x, filters = case(*shape)
    with opkernel.kernel.intra_op_parallelism(threads):
        found = convolve_3x3(x, filters, geometry_of(x, padding))
    expected = by_sums(x, filters, padding)
    assert found is not None
    np.testing.assert_allclose(found, expected, atol=2e-6 * np.abs(expected).max())


def test_parts_are_finished_where_they_are():
    x, filters = case(1, 40, 40, 128, 128)
    more = np.random.default_rng(1).normal(size=(1, 40, 40, 128)).astype(np.float32)

    bias = np.arange(128, dtype=np.float32)
    found = convolve_3x3(x, filters, geometry_of(x, SAME), Epilogue(None, bias, more, "Relu"))
    plain = convolve_3x3(x, filters, geometry_of(x, SAME))
    assert plain is not None
    np.testing.assert_array_equal(found, np.maximum(plain + bias + more, 0))


def run_in_session(x, filters):
    graph = opkernel.Graph()
    with graph.as_default():
        fed = opkernel.placeholder(float32, x.shape)
        attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        y = graph.create_op("Conv2D", [fed, filters], attrs=attrs).outputs[0]
    with opkernel.Session(graph) as session:
        return session.run(y, {fed: x})


def assert_as_exact_as_sums(found, x, filters):
    """The error is compared with the sum of the magnitudes that each output has in its own window."""
    error = np.abs(found - by_sums(x, filters, SAME))
    magnitudes = by_sums(np.abs(x), np.abs(filters), SAME)
    assert np.all(error <= 2e-6 * magnitudes)


@settings(max_examples=30, deadline=None)
@given(
    where=st.tuples(st.integers(0, 1), st.integers(0, 15), st.integers(0, 15), st.integers(0, 127)),
    exponent=st.floats(0, 36),
    sign=st.sampled_from([-1, 1]),
    rest=st.sampled_from([1.0, 1e-12, 1e12]),
)
def test_neighbours_of_a_large_value_keep_their_digits(where, exponent, sign, rest):
    x, filters = case(2, 16, 16, 128, 128)
    x *= np.float32(rest)
    x[where] = sign * rest * 10 ** min(exponent, 24)
    assert_as_exact_as_sums(run_in_session(x, filters), x, filters)


@pytest.mark.parametrize("width", [1, 4, 16])
def test_outputs_beside_a_masked_part_keep_their_digits(width):
    x, filters = case(1, 40, 40, 128, 128)
    x[:, 7 : 7 + width, :width] = -1e20
    assert_as_exact_as_sums(run_in_session(x, filters), x, filters)


def test_nothing_is_what_becomes_of_nothing():
    """What a mask has made 0 is 0 again, however large its neighbours are."""
    x, filters = case(1, 40, 40, 128, 128)
    x[:, 11:, :13] = 0
    found = run_in_session(x, filters)
    assert not found[:, 12:, :12].any()
    assert_as_exact_as_sums(found, x, filters)


def test_elements_of_a_filter_keep_their_digits_beside_a_large_one():
    """At the border, where the large one is multiplied by padding, the others count."""
    x, filters = case(1, 40, 40, 128, 128)
    filters[0, 0, 3, 5] = 1e20
    assert_as_exact_as_sums(run_in_session(x, filters), x, filters)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_stays_within_its_windows(bad):
    x, filters = case(1, 40, 40, 128, 128)
    x[0, 5, 5, 0] = bad
    found = np.isfinite(run_in_session(x, filters)[0]).all(-1)
    expected = np.ones((40, 40), bool)
    expected[4:7, 4:7] = False
    np.testing.assert_array_equal(found, expected)


def test_filters_that_may_change_and_small_ones_are_left_alone():
    x, filters = case(1, 40, 40, 128, 128)
    geometry = geometry_of(x, SAME)
    assert convolve_3x3(x, filters, geometry) is not None
    assert convolve_3x3(x, filters.copy(), geometry) is None
    assert convolve_3x3(x[:, :8, :8], filters, geometry_of(x[:, :8, :8], SAME)) is None
    few, narrow = case(1, 40, 40, 3, 128)
    assert convolve_3x3(few, narrow, geometry_of(few, SAME)) is None


def test_what_is_made_of_a_filter_goes_with_it():
    x, filters = case(1, 40, 40, 128, 128)
    made = winograd.weights_for(x, filters, geometry_of(x, SAME))
    assert winograd.weights_for(x, filters, geometry_of(x, SAME)) is made
    alive = weakref.ref(made)
    del filters, made
    gc.collect()
    assert alive() is None
