import math
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel import FunctionKernel, create_op_kernel
from opkernel.opdef import NodeDefBuilder
from opkernel.runtime import CPU
from opkernel.types import DataType, float32


def f32(value):
    return np.asarray(value, np.float32)


NAN, INF = np.nan, np.inf
EDGES = np.array([-INF, -1, -0.0, 0.5, 7, INF, NAN], np.float32)
SELU_LIMIT = 1.6732632423543772 * 1.0507009873554805
FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


def run(op, *values, **attrs):
    """Calls an activation, or a gradient of one with the names of its inputs."""
    forward = "outputs" if op in ("EluGrad", "SeluGrad") else "features"
    names = ("gradients", forward) if len(values) == 2 else ("features",)
    return getattr(raw_ops, op)(**dict(zip(names, values, strict=True)), **attrs)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Relu", [0, 0, 0, 0.5, 7, INF, NAN]),
        ("Relu6", [0, 0, 0, 0.5, 6, 6, NAN]),
        ("LeakyRelu", [-INF, -0.2, 0, 0.5, 7, INF, NAN]),
        ("Elu", [-1, math.expm1(-1), 0, 0.5, 7, INF, NAN]),
        (
            "Selu",
            [-SELU_LIMIT, SELU_LIMIT * math.expm1(-1), 0, 0.52535049, 7.35490691, INF, NAN],
        ),
        (
            "Softplus",
            [0, 0.31326169, math.log(2), math.log1p(math.exp(0.5)), 7.00091147, INF, NAN],
        ),
        ("Softsign", [NAN, -0.5, 0, 1 / 3, 7 / 8, NAN, NAN]),
    ],
)
@pytest.mark.parametrize("dtype", FLOATS)
def test_values_at_the_edges(op, expected, dtype):
    result = run(op, EDGES.astype(dtype))
    assert result.dtype == dtype
    tolerance = 1e-6 if np.dtype(dtype).itemsize > 2 else 1e-2
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.5, 1.0, 3.0])
def test_leaky_relu_for_any_slope(alpha):
    result = run("LeakyRelu", np.array([-2, 3, INF], np.float32), alpha=alpha)
    np.testing.assert_array_equal(result, f32([-2 * alpha, 3, INF]))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.uint64])
def test_integers(dtype):
    top = np.iinfo(dtype).max
    x = np.array([0, 5, 9, top], dtype)
    assert run("Relu", x).tolist() == [0, 5, 9, top]
    assert run("Relu6", x).tolist() == [0, 5, 6, 6]
    assert run("ReluGrad", x, x).tolist() == [0, 5, 9, top]
    assert run("Relu6Grad", x, x).tolist() == [0, 5, 0, 0]
    assert run("Relu6Grad", x, x).dtype == dtype


def test_softplus_neither_overflows_nor_cancels():
    x = np.array([-40, -10, 30, 1000], np.float64)
    expected = [math.exp(-40), math.log1p(math.exp(-10)), 30 + math.exp(-30), 1000]
    np.testing.assert_allclose(run("Softplus", x), expected, rtol=1e-15)


@pytest.mark.parametrize("op", ["Elu", "Selu", "Softplus", "Softsign"])
@given(x=st.floats(-5, 5), y=st.floats(-5, 5))
def test_monotonic(op, x, y):
    low, high = run(op, np.array(sorted([x, y]), np.float64))
    assert low <= high + 1e-15


@pytest.mark.parametrize("op", ["LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"])
def test_gradient_is_the_slope(op):
    x = np.array([-3, -1.5, -0.25, 0.25, 1.5, 3], np.float64)
    step = 1e-6
    slope = (run(op, x + step) - run(op, x - step)) / (2 * step)
    forward = run(op, x) if op in ("Elu", "Selu") else x
    np.testing.assert_allclose(run(f"{op}Grad", 2 + x, forward), (2 + x) * slope, rtol=1e-7)


def test_gradients_at_values_that_are_not_finite():
    gradients = np.array([2, 2, 2, INF, INF], np.float32)
    forward = np.array([-0.5, NAN, 3, -1, 0], np.float32)
    expected = {
        "EluGrad": [1, 2, 2, NAN, INF],
        "SeluGrad": [2.5161986, 2.1014020, 2.1014020, INF, INF],
    }
    for op, values in expected.items():
        np.testing.assert_allclose(run(op, gradients, forward), values, rtol=1e-6)
    for alpha, values in ((0.25, [0.5, 0.5, 2, INF, INF]), (0.0, [0, 0, 2, NAN, NAN])):
        found = run("LeakyReluGrad", gradients, forward, alpha=alpha)
        np.testing.assert_array_equal(found, values)


def test_flat_parts_pass_nothing_but_nan():
    gradients = np.array([1, 1, 1, INF, NAN, 1], np.float32)
    features = np.array([0, 6, 3, -1, -1, NAN], np.float32)
    np.testing.assert_array_equal(run("ReluGrad", gradients, features), [0, 1, 1, NAN, NAN, 0])
    np.testing.assert_array_equal(run("Relu6Grad", gradients, features), [0, 0, 1, NAN, NAN, 0])


def test_numbers_below_the_normal_ones_are_0_for_gradients():
    tiny = np.array([1e-40, 2e-38], np.float32)
    assert run("ReluGrad", np.ones(2, np.float32), tiny).tolist() == [0, 1]
    assert run("LeakyReluGrad", np.ones(2, np.float32), tiny, alpha=0.5).tolist() == [0.5, 1]
    half = np.array([6e-8, 1], np.float16)
    assert run("ReluGrad", np.ones(2, np.float16), half).tolist() == [1, 1]


@pytest.mark.parametrize("op", ["ReluGrad", "EluGrad", "SoftsignGrad", "LeakyReluGrad"])
def test_gradients_do_not_broadcast(op):
    with pytest.raises(InvalidArgumentError, match=r"same size and shape.*\[2, 1\].*\[1, 2\]"):
        run(op, np.ones((2, 1), np.float32), np.ones((1, 2), np.float32))


def test_scalars_and_empty_tensors():
    assert run("Relu", np.float32(-2)) == 0
    assert np.ndim(run("Elu", np.float32(-2))) == 0
    assert run("SeluGrad", np.float32(2), np.float32(-0.5)) == pytest.approx(2.5161986)
    assert run("Selu", np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_large_arrays_are_computed_like_small_ones():
    x = np.linspace(-4, 4, 300_001, dtype=np.float32)
    parts = [run("Softsign", part) for part in np.array_split(x, 7)]
    np.testing.assert_array_equal(run("Softsign", x), np.concatenate(parts))


def test_types_without_kernels():
    with pytest.raises(NotFoundError, match="Relu"):
        run("Relu", np.zeros(4, DataType.DT_QINT8.as_numpy_dtype))
    with pytest.raises(InvalidArgumentError, match="not in the list of allowed values"):
        run("LeakyRelu", np.zeros(4, np.int32))


def test_relu_is_one_call():
    node = NodeDefBuilder("relu", "Relu").input("x", 0, float32).finalize()
    kernel = create_op_kernel(CPU, node)
    assert isinstance(kernel, FunctionKernel)
    assert isinstance(kernel.function, partial)
    assert kernel.function.func is np.maximum
