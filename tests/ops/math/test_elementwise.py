"""How element-wise kernels are made: blocks, narrow floats, shapes of rank 0, plain ufuncs."""

import math
from functools import partial

import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.device.local_device import CPU
from opkernel.errors import InvalidArgumentError
from opkernel.graph import node_def
from opkernel.kernel import FunctionKernel, create_op_kernel
from opkernel.types import float32

f32 = partial(np.array, dtype=np.float32)


@pytest.mark.parametrize(
    ("op", "ufunc"),
    [("AddV2", np.add), ("Mul", np.multiply), ("Sub", np.subtract), ("Maximum", np.maximum),
     ("RealDiv", np.divide), ("Cos", np.cos), ("Exp", np.exp), ("Less", np.less)],
)  # fmt: skip
def test_simple_ops_are_called_as_ufuncs(op, ufunc):
    kernel = create_op_kernel(CPU, node_def("n", op, ["x"] * ufunc.nin, T=float32))
    assert isinstance(kernel, FunctionKernel)
    assert kernel.function is ufunc


@pytest.mark.parametrize("op", ["Sigmoid", "Erf", "Erfc", "Rsqrt", "Log", "Sign"])
def test_a_large_tensor_gives_what_its_parts_give(op):
    x = np.linspace(0.1, 3, 40_000, dtype=np.float32).reshape(8, 5000)
    whole = getattr(raw_ops, op)(x=x)
    assert whole.shape == x.shape
    assert whole.dtype == np.float32
    rows = np.stack([getattr(raw_ops, op)(x=row) for row in x])
    np.testing.assert_array_equal(whole, rows)


def test_a_tensor_that_is_not_contiguous_keeps_its_order():
    x = np.arange(40_000, dtype=np.float32).reshape(200, 200).T
    np.testing.assert_allclose(raw_ops.Rsqrt(x=x + 1), 1 / np.sqrt(x + 1), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_rounded_once_in_a_function_of_one_step(dtype):
    x = np.array([0.1, 1.0, 3.0], dtype)
    expected = np.array([math.erf(v) for v in x.astype(np.float64)]).astype(dtype)
    result = raw_ops.Erf(x=x)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("op", ["Square", "Sigmoid", "Erf", "Lgamma", "Rsqrt"])
def test_scalars(op):
    result = getattr(raw_ops, op)(x=np.float32(2))
    assert np.shape(result) == ()
    assert result.dtype == np.float32


@pytest.mark.parametrize(
    ("op", "expected"),
    [("Ceil", 0.0), ("Log", -np.inf), ("Rsqrt", np.inf), ("Floor", 0.0), ("Sign", 0.0)],
)
def test_numbers_too_small_for_the_normal_format_count_as_zero(op, expected):
    tiny = f32([1e-40])
    assert getattr(raw_ops, op)(x=tiny)[0] == pytest.approx(expected, abs=1e-30)


def test_shapes_that_do_not_broadcast():
    with pytest.raises(InvalidArgumentError, match=r"2.*3"):
        raw_ops.AddV2(x=np.zeros(2, np.float32), y=np.zeros(3, np.float32))


def test_empty_tensors_broadcast():
    result = raw_ops.SquaredDifference(x=np.zeros((0, 3), np.float32), y=f32([1, 2, 3]))
    assert result.shape == (0, 3)
