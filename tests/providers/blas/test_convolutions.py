"""The algorithms of convolutions against the definition, written as loops over windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.errors import ResourceExhaustedError
from opkernel.kernel import allocation_limit, intra_op_parallelism
from opkernel.ops.nn.conv.reference import REFERENCE, correlate
from opkernel.ops.nn.fused_matmul import Epilogue
from opkernel.ops.nn.windows import Geometry, clipped, meetings
from opkernel.providers.blas import convolutions, im2col, products
from opkernel.providers.blas.convolutions import ALGORITHMS

of_both = pytest.mark.parametrize("algorithms", [REFERENCE, ALGORITHMS], ids=["numpy", "blas"])


def pairs_of(geometry, spatial):
    """Each window with each of its elements in the input: (window, offset, element)."""
    for window in np.ndindex(*geometry.output):
        for offset in np.ndindex(*geometry.window):
            element = tuple(
                w * s + o * d - p[0]
                for w, s, o, d, p in zip(
                    window,
                    geometry.strides,
                    offset,
                    geometry.dilations,
                    geometry.padding,
                    strict=True,
                )
            )
            if all(0 <= e < size for e, size in zip(element, spatial, strict=True)):
                yield window, offset, element


def defined_convolution(x, filters, geometry):
    out = np.zeros((len(x), *geometry.output, filters.shape[-1]))
    for window, offset, element in pairs_of(geometry, x.shape[1:-1]):
        out[(slice(None), *window)] += x[(slice(None), *element)] @ filters[offset]
    return out


def defined_channelwise(x, filters, geometry):
    out = np.zeros((len(x), *geometry.output, *filters.shape[-2:]))
    for window, offset, element in pairs_of(geometry, x.shape[1:-1]):
        out[(slice(None), *window)] += x[(slice(None), *element)][..., None] * filters[offset]
    return out.reshape(*out.shape[:3], -1)


@st.composite
def cases(draw, rank):
    """An input, a window and a geometry with any stride, dilation and padding."""
    small = st.integers(1, 3)
    window, strides, dilations, paddings, output, spatial = [], [], [], [], [], []
    for _ in range(rank):
        size, count, stride, dilation = (
            draw(st.integers(1, 6)),
            draw(small),
            draw(small),
            draw(small),
        )
        padding = draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
        room = size + sum(padding) - (count - 1) * dilation - 1
        if room < 0:
            padding = (padding[0] - room, padding[1])
            room = 0
        window.append(count)
        strides.append(stride)
        dilations.append(dilation)
        paddings.append(padding)
        output.append(room // stride + 1)
        spatial.append(size)
    batch, channels = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    geometry = Geometry(
        tuple(window), tuple(strides), tuple(dilations), tuple(paddings), tuple(output)
    )
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return rng.standard_normal((batch, *spatial, channels)), geometry, rng


def inner(a, b):
    return float((a * b).sum())


@of_both
@given(st.one_of(cases(rank=1), cases(rank=2), cases(rank=3)))
def test_convolution_and_its_gradients(algorithms, case):
    x, geometry, rng = case
    filters = rng.standard_normal((*geometry.window, x.shape[-1], 2))
    found = algorithms.convolve(x, filters, geometry)
    np.testing.assert_allclose(found, defined_convolution(x, filters, geometry), atol=1e-12)
    # A gradient is the adjoint: <g, conv(x', f)> = <backprop(g), x'> for every x'.
    gradient = rng.standard_normal(found.shape)
    by_input = algorithms.by_input(x.shape, filters, gradient, geometry)
    other = rng.standard_normal(x.shape)
    expected = inner(gradient, defined_convolution(other, filters, geometry))
    assert inner(by_input, other) == pytest.approx(expected, abs=1e-9)
    other = rng.standard_normal(filters.shape)
    expected = inner(gradient, defined_convolution(x, other, geometry))
    for compute in (algorithms.by_filters, correlate):
        by_filter = compute(x, filters.shape, gradient, geometry)
        assert inner(by_filter, other) == pytest.approx(expected, abs=1e-9)


@of_both
@given(cases(rank=2), st.integers(1, 2))
def test_depthwise_convolution_and_its_gradients(algorithms, case, multiplier):
    x, geometry, rng = case
    filters = rng.standard_normal((*geometry.window, x.shape[-1], multiplier))
    found = algorithms.depthwise(x, filters, geometry)
    np.testing.assert_allclose(found, defined_channelwise(x, filters, geometry), atol=1e-12)
    gradient = rng.standard_normal(found.shape)
    by_input = algorithms.depthwise_by_input(x.shape, filters, gradient, geometry)
    other = rng.standard_normal(x.shape)
    expected = inner(gradient, defined_channelwise(other, filters, geometry))
    assert inner(by_input, other) == pytest.approx(expected, abs=1e-9)
    by_filter = algorithms.depthwise_by_filters(x, filters.shape, gradient, geometry)
    other = rng.standard_normal(filters.shape)
    expected = inner(gradient, defined_channelwise(x, other, geometry))
    assert inner(by_filter, other) == pytest.approx(expected, abs=1e-9)


@given(cases(rank=2), st.integers(1, 400))
def test_tiles_of_any_size_give_the_same(case, tile_bytes):
    x, geometry, rng = case
    filters = rng.standard_normal((*geometry.window, x.shape[-1], 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(im2col, "_TILE_BYTES", tile_bytes)
        found = ALGORITHMS.convolve(x, filters, geometry)
        gradient = ALGORITHMS.by_input(x.shape, filters, found, geometry)
    np.testing.assert_allclose(found, defined_convolution(x, filters, geometry), atol=1e-12)
    whole = ALGORITHMS.by_input(x.shape, filters, found, geometry)
    np.testing.assert_allclose(gradient, whole, atol=1e-12)


@given(cases(rank=2), st.integers(2, 5))
def test_threads_share_out_images_or_parts_of_windows(case, threads):
    x, geometry, rng = case
    filters = rng.standard_normal((*geometry.window, x.shape[-1], 9))
    gradient = rng.standard_normal((len(x), *geometry.output, 9))
    gradients = []
    for count in (1, threads):
        with pytest.MonkeyPatch.context() as patch, intra_op_parallelism(count):
            patch.setattr(products, "_SMALL", 0)
            patch.setattr(convolutions, "_LANES", 1)
            patch.setattr(im2col.tiles, "__defaults__", (200,))
            by_input = ALGORITHMS.by_input(x.shape, filters, gradient, geometry)
            gradients.append(
                (by_input, ALGORITHMS.by_filters(x, filters.shape, gradient, geometry))
            )
    for alone, shared in zip(*gradients, strict=True):
        np.testing.assert_allclose(shared, alone, atol=1e-12)


@of_both
def test_inputs_that_are_views(algorithms):
    convolve = algorithms.convolve
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 3, 4, 5)).transpose(0, 3, 2, 1)
    x.flags.writeable = False
    filters = rng.standard_normal((2, 3, 2, 2)).swapaxes(1, 2)[..., ::-1]
    geometry = Geometry((2, 2), (1, 1), (1, 1), ((0, 0), (0, 0)), (4, 3))
    expected = defined_convolution(x, filters, geometry)
    np.testing.assert_allclose(convolve(x, filters, geometry), expected, atol=1e-12)
    pointwise = Geometry((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), (5, 4))
    expected = defined_convolution(x, filters[:1, :1], pointwise)
    np.testing.assert_allclose(convolve(x, filters[:1, :1], pointwise), expected, atol=1e-12)


@of_both
def test_epilogue(algorithms):
    x, filters = np.ones((2, 4, 4, 1)), np.ones((3, 3, 1, 2))
    geometry = Geometry((3, 3), (1, 1), (1, 1), ((0, 0), (0, 0)), (2, 2))
    epilogue = Epilogue(
        np.array([2.0, -1.0]), np.array([0.0, 1.0]), np.full((2, 2, 2, 2), 3.0), "Relu6"
    )
    assert algorithms.convolve(x, filters, geometry, epilogue).tolist() == [[[[6, 0]] * 2] * 2] * 2


@of_both
def test_padding_is_within_the_allocation_limit(algorithms):
    geometry = Geometry((2, 1), (1, 1), (10**12, 1), ((0, 10**12), (0, 0)), (1, 1))
    with allocation_limit(10**6), pytest.raises(ResourceExhaustedError, match="OOM"):
        algorithms.convolve(np.ones((1, 1, 1, 1)), np.ones((2, 1, 1, 1)), geometry)


@given(st.integers(-9, 9), st.integers(1, 4), st.integers(0, 5), st.integers(0, 9))
def test_clipped(first, step, count, size):
    which, where = clipped(first, step, count, size)
    places = [first + i * step for i in range(count)]
    inside = [i for i, place in enumerate(places) if 0 <= place < size]
    assert list(range(count))[which] == inside
    assert list(range(size))[where] == [places[i] for i in inside]


def test_meetings_of_a_window_much_larger_than_the_input():
    found = list(meetings(-(10**9), 2, 2, 3, 2 * 10**9, 1))
    assert [at - 10**9 for at, _, _ in found] == [-2, -1, 0, 1, 2]
    assert found[2] == (10**9, slice(0, 2), slice(0, 3, 2))
