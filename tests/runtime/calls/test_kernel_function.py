"""Kernels as functions."""

import numpy as np
import pytest

import opkernel
import opkernel.types
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel import Step


def test_a_kernel_as_a_function() -> None:
    matmul = opkernel.kernel_function("MatMul", T=opkernel.float32, transpose_b=True)
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(matmul(a, a), [[5, 14], [14, 50]])


def test_lists_are_lists() -> None:
    pack = opkernel.kernel_function("Pack", T=opkernel.int32, N=2, axis=1)
    rows = np.array([1, 2], np.int32)
    np.testing.assert_array_equal(pack([rows, rows]), [[1, 1], [2, 2]])


def test_a_kernel_that_looks_at_the_step() -> None:
    constant = opkernel.kernel_function("Const", dtype=opkernel.float32, value=np.float32(3))
    assert constant(Step(), ()) == [3]


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(NotFoundError, match="NoSuchOp"):
        opkernel.kernel_function("NoSuchOp")
    with pytest.raises(InvalidArgumentError, match="'U'"):
        opkernel.kernel_function("Neg", U=opkernel.float32)
    with pytest.raises(InvalidArgumentError, match="'T' of bool"):
        opkernel.kernel_function("Neg", T=opkernel.types.bool_)
