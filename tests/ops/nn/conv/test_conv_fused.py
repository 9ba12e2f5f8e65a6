"""Fused ops against the ops that are fused, and TensorFlow's refusals."""

from math import erf

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.runtime import execute
from opkernel.types import float32

IMAGE = np.array([[-1, 2], [3, -4]], np.float32).reshape(1, 2, 2, 1)
FILTER = np.array([1, 10], np.float32).reshape(1, 1, 1, 2)
BIAS = np.array([1, -5], np.float32)


def fused_conv2d(*args, x=IMAGE, filters=FILTER, **attrs):
    attrs = {
        "TArgs": [float32] * len(args),
        "num_args": len(args),
        "strides": [1, 1, 1, 1],
        "padding": "VALID",
        **attrs,
    }
    inputs = {"input": x, "filter": filters, "args": list(args), "host_args": []}
    return execute("_FusedConv2D", inputs, attrs)


def fused_matmul(a, b, *args, **attrs):
    return execute("_FusedMatMul", {"a": a, "b": b, "args": list(args)}, attrs)


BIASED = np.array([0, 3, 4, -3, -15, 15, 25, -45], np.float32)


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ([], BIASED),
        (["Relu"], np.maximum(BIASED, 0)),
        (["Relu6"], np.clip(BIASED, 0, 6)),
        (["LeakyRelu"], np.where(BIASED < 0, BIASED / 4, BIASED)),
        (["Elu"], np.where(BIASED < 0, np.expm1(BIASED), BIASED)),
    ],
)
def test_bias_and_activation(activation, expected):
    found = fused_conv2d(BIAS, fused_ops=["BiasAdd", *activation], leakyrelu_alpha=0.25)
    np.testing.assert_allclose(np.sort(found.ravel()), np.sort(expected), rtol=1e-6)


@pytest.mark.parametrize("depth", [1, 3, 40, 300])
def test_bias_of_many_positions(depth):
    x = np.arange(64 * 96, dtype=np.float32).reshape(1, 64, 96, 1)
    bias = np.arange(depth, dtype=np.float32) * 8
    filters = np.ones((1, 1, 1, depth), np.float32)
    found = fused_conv2d(bias, x=x, filters=filters, fused_ops=["BiasAdd"])
    np.testing.assert_array_equal(found, x + bias)


def test_batch_normalisation():
    scale, offset, mean, variance = np.array([[2, 3], [1, 2], [5, 6], [3, 15]], np.float32)
    found = fused_conv2d(
        scale, offset, mean, variance, fused_ops=["FusedBatchNorm", "Relu"], epsilon=1.0
    )
    products = IMAGE * FILTER.reshape(2)
    expected = np.maximum((products - mean) * scale / np.sqrt(variance + 1) + offset, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("attrs", "args", "error", "message"),
    [
        ({"fused_ops": []}, [BIAS], InvalidArgumentError, "at least one fused op"),
        ({"fused_ops": ["Relu"]}, [BIAS], UnimplementedError, r"not implemented: \[Relu\]"),
        ({"fused_ops": ["BiasAdd", "Tanh"]}, [BIAS], UnimplementedError, "BiasAdd,Tanh"),
        ({"fused_ops": ["BiasAdd"]}, [BIAS, BIAS], InvalidArgumentError, "one extra argument"),
        ({"fused_ops": ["BiasAdd"]}, [BIAS.reshape(1, 2)], InvalidArgumentError, "1-dimensional"),
        ({"fused_ops": ["BiasAdd"], "filter_format": "OIHW"}, [BIAS], UnimplementedError, "OIHW"),
    ],
)
def test_refusals(attrs, args, error, message):
    with pytest.raises(error, match=message):
        fused_conv2d(*args, **attrs)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_matmul(dtype):
    a, b = np.array([[1, 2]], dtype), np.array([[3, -4], [5, -6]], dtype)
    found = fused_matmul(a, b, BIAS.astype(dtype), fused_ops=["BiasAdd", "Relu"])
    assert found.dtype == dtype
    assert found.tolist() == [[14, 0]]
    turned = fused_matmul(
        a.T,
        b.T,
        BIAS.astype(dtype),
        fused_ops=["BiasAdd", "Sigmoid"],
        transpose_a=True,
        transpose_b=True,
    )
    np.testing.assert_allclose(turned, [[1 / (1 + np.exp(-14)), 0]], atol=1e-3)


def test_gelu():
    x = np.linspace(-5, 5, 101, dtype=np.float32).reshape(1, -1)
    a, b, zeros = np.ones((1, 1), np.float32), x, np.zeros(101, np.float32)
    exact = fused_matmul(a, b, zeros, fused_ops=["BiasAdd", "GeluExact"])
    expected = [v / 2 * (1 + erf(v / 2**0.5)) for v in x[0].tolist()]
    np.testing.assert_allclose(exact[0], expected, atol=1e-6)
    near = fused_matmul(a, b, zeros, fused_ops=["BiasAdd", "GeluApproximate"])
    cubic = np.sqrt(2 / np.pi) * (x + 0.044715 * x.astype(np.float64) ** 3)
    np.testing.assert_allclose(near, x / 2 * (1 + np.tanh(cubic)), atol=1e-6)


def test_a_tensor_is_added_before_the_activation():
    more = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2) - 4
    found = fused_conv2d(BIAS, more, fused_ops=["BiasAdd", "Add", "Relu"])
    plain = fused_conv2d(BIAS, fused_ops=["BiasAdd"])
    np.testing.assert_array_equal(found, np.maximum(plain + more, 0))
    with pytest.raises(InvalidArgumentError, match="tensor to be added"):
        fused_conv2d(BIAS, more[:, :1], fused_ops=["BiasAdd", "Add"])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_depthwise(dtype):
    image = np.arange(-9, 9).reshape(1, 3, 3, 2).astype(dtype)
    window = np.ones((2, 2, 2, 1), dtype)
    attrs = {"strides": [1, 1, 1, 1], "padding": "VALID"}
    found = execute(
        "_FusedDepthwiseConv2dNative",
        {"input": image, "filter": window, "args": [np.array([1, -1], dtype)]},
        {**attrs, "fused_ops": ["BiasAdd", "Relu6"]},
    )
    sums = sum(image[:, i : i + 2, j : j + 2].astype(int) for i in (0, 1) for j in (0, 1))
    assert found.dtype == dtype
    assert found.tolist() == np.clip(np.add(sums, [1, -1]), 0, 6).tolist()


def test_nothing_is_added_to_the_product_of_empty_matrices():
    a, b = np.ones((2, 0), np.float32), np.ones((0, 2), np.float32)
    assert fused_matmul(a, b, BIAS, fused_ops=["BiasAdd"]).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("mode", "expected"), [("REFLECT", [2, 1, 2, 3, 2]), ("SYMMETRIC", [1, 1, 2, 3, 3])]
)
def test_mirror_image_and_convolution(mode, expected):
    x = np.array([1, 2, 3], np.float32).reshape(1, 1, 3, 1)
    paddings = np.array([[0, 0], [0, 0], [1, 1], [0, 0]], np.int32)
    attrs = {"mode": mode, "strides": [1, 1, 1, 1], "padding": "VALID"}
    one = np.ones((1, 1, 1, 1), np.float32)
    found = raw_ops.FusedPadConv2D(input=x, paddings=paddings, filter=one, **attrs)
    assert found.ravel().tolist() == expected
    with pytest.raises(InvalidArgumentError, match="paddings must be"):
        raw_ops.FusedPadConv2D(input=x, paddings=paddings * 4, filter=one, **attrs)
