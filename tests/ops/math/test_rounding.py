from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import NotFoundError

f16 = partial(np.array, dtype=np.float16)
f32 = partial(np.array, dtype=np.float32)
f64 = partial(np.array, dtype=np.float64)
i32 = partial(np.array, dtype=np.int32)

HALVES = f32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])


@pytest.mark.parametrize("op", ["Round", "Rint"])
def test_halves_round_to_even(op):
    assert getattr(raw_ops, op)(x=HALVES).tolist() == [-2, -2, 0, 0, 2, 2]


def test_floor_and_ceil():
    assert raw_ops.Floor(x=HALVES).tolist() == [-3, -2, -1, 0, 1, 2]
    assert raw_ops.Ceil(x=HALVES).tolist() == [-2, -1, 0, 1, 2, 3]


def test_round_of_integers_is_zero_as_in_tensorflow():
    assert raw_ops.Round(x=i32([1, -2, 0])).tolist() == [0, 0, 0]


def test_classes_of_numbers():
    x = f16([np.nan, np.inf, -np.inf, 1])
    assert raw_ops.IsNan(x=x).tolist() == [True, False, False, False]
    assert raw_ops.IsInf(x=x).tolist() == [False, True, True, False]
    assert raw_ops.IsFinite(x=x).tolist() == [False, False, False, True]


def test_next_after():
    result = raw_ops.NextAfter(x1=f64([1, 1]), x2=f64([2, 0]))
    assert result.tolist() == [1 + 2**-52, 1 - 2**-53]


def test_rint_has_no_kernel_for_half():
    with pytest.raises(NotFoundError):
        raw_ops.Rint(x=f16([1.5]))
