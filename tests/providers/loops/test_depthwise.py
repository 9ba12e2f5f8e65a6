"""Loops of depthwise convolutions, and of their gradients, give what the definition says."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.providers.loops import loops_run
from opkernel.providers.loops.compiled_loop import Form
from opkernel.types import Array

pytest.importorskip("numba")

FUSED = "_FusedDepthwiseConv2dNative"
FORMS: tuple[Form, ...] = ("numpy", "plain", "compiled")
ACTIVATIONS: dict[str, tuple[float, float] | None] = {
    "Relu": (0, np.inf),
    "Relu6": (0, 6),
    "Elu": None,
}


def padded_windows(x: Array, window: Sequence[int], stride: int) -> Array:
    """Images with the zeros of SAME around them, as a view `[..., rows, columns, channels, *window]`."""
    before, after = [], []
    for size, length in zip(x.shape[1:3], window, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + length - size)
        before.append(total // 2)
        after.append(total - total // 2)
    padded = np.pad(x, [(0, 0), (before[0], after[0]), (before[1], after[1]), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, window, (1, 2))
    return windows[:, ::stride, ::stride]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("window", "stride", "multiplier"), [((3, 3), 1, 1), ((3, 3), 2, 2), ((5, 2), 1, 1)]
)
def test_the_definition(
    form: Form, dtype: type, window: tuple[int, int], stride: int, multiplier: int
) -> None:
    draw = np.random.default_rng(0)
    x: Array = draw.standard_normal((2, 9, 12, 8)).astype(dtype)
    filters: Array = draw.standard_normal((*window, 8, multiplier)).astype(dtype)
    windows = padded_windows(x, window, stride)
    product = np.einsum("nhwcij,ijcm->nhwcm", windows, filters)
    gradient = draw.standard_normal(product.shape).astype(dtype)
    by_filter = np.einsum("nhwcij,nhwcm->ijcm", windows, gradient)
    attrs: dict[str, Any] = {"strides": [1, stride, stride, 1], "padding": "SAME"}
    flat = gradient.reshape(*gradient.shape[:3], -1)
    with loops_run(form):
        found = raw_ops.DepthwiseConv2dNative(input=x, filter=filters, **attrs)
        found_by_filter = raw_ops.DepthwiseConv2dNativeBackpropFilter(
            input=x, filter_sizes=filters.shape, out_backprop=flat, **attrs
        )
        found_by_input = raw_ops.DepthwiseConv2dNativeBackpropInput(
            input_sizes=x.shape, filter=filters, out_backprop=flat, **attrs
        )
    np.testing.assert_allclose(found, product.reshape(flat.shape), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found_by_filter, by_filter, rtol=1e-4, atol=1e-4)
    # A gradient is the adjoint: the sum of gradient * product is that of by_input * x.
    assert (found_by_input * x).sum() == pytest.approx((gradient * product).sum(), rel=1e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_fused_bias_and_activation(form: Form, activation: str) -> None:
    draw = np.random.default_rng(1)
    x = draw.standard_normal((1, 40, 7, 8)).astype(np.float32) * 3
    x[0, 3, 3, 2] = np.nan
    filters = draw.standard_normal((3, 3, 8, 1)).astype(np.float32)
    bias = draw.standard_normal(8).astype(np.float32)
    windows = padded_windows(x, (3, 3), 1)
    total = np.einsum("nhwcij,ijc->nhwc", windows, filters[..., 0]) + bias
    bounds = ACTIVATIONS[activation]
    expected = np.clip(total, *bounds) if bounds else np.where(total < 0, np.expm1(total), total)
    with loops_run(form):
        found = getattr(raw_ops, FUSED)(
            input=x,
            filter=filters,
            args=[bias],
            strides=[1, 1, 1, 1],
            padding="SAME",
            fused_ops=["BiasAdd", activation],
        )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_infinite_filters_meet_the_zeros_of_the_padding(form: Form) -> None:
    """As in TensorFlow 2.21."""
    x, filters = np.ones((1, 3, 3, 8), np.float32), np.ones((3, 3, 8, 1), np.float32)
    filters[0, 0] = np.inf
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    with loops_run(form), np.errstate(invalid="ignore"):
        found = raw_ops.DepthwiseConv2dNative(input=x, filter=filters, **attrs)
        by_input = raw_ops.DepthwiseConv2dNativeBackpropInput(
            input_sizes=x.shape, filter=filters, out_backprop=x, **attrs
        )
        x[0, 0, 0] = np.inf
        by_filter = raw_ops.DepthwiseConv2dNativeBackpropFilter(
            input=np.ones_like(x), filter_sizes=filters.shape, out_backprop=x, **attrs
        )
    nan, inf = np.nan, np.inf
    corner = [[nan, nan, nan], [nan, inf, inf], [nan, inf, inf]]
    np.testing.assert_array_equal(found[0, ..., 0], corner)
    np.testing.assert_array_equal(by_input[0, ::-1, ::-1, 0], corner)
    np.testing.assert_array_equal(by_filter[..., 0, 0], corner)
