from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

f32 = partial(np.array, dtype=np.float32)

OPS = {
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
    "SqrtGrad": lambda y, dy: dy * 0.5 / np.conj(y),
    "RsqrtGrad": lambda y, dy: dy * -0.5 * np.conj(y) ** 3,
    "ReciprocalGrad": lambda y, dy: -dy * np.conj(y) ** 2,
    "InvGrad": lambda y, dy: -dy * np.conj(y) ** 2,
}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_values(op, dtype):
    y, dy = np.array([0.5, 2], dtype), np.array([3, -1], dtype)
    if np.iscomplexobj(y):
        y, dy = y + 1j, dy - 2j
    result = getattr(raw_ops, op)(y=y, dy=dy)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, OPS[op](y, dy), rtol=1e-6)


@pytest.mark.parametrize("op", ["SqrtGrad", "RsqrtGrad", "ReciprocalGrad"])
def test_no_gradient_passes_where_none_comes(op):
    y = f32([0, np.inf])
    assert getattr(raw_ops, op)(y=y, dy=f32([0, 0])).tolist() == [0, 0]


def test_only_the_number_of_elements_must_agree():
    y, dy = f32([[1], [2]]), f32([[3, 4]])
    assert raw_ops.TanhGrad(y=y, dy=dy).tolist() == [[0], [-12]]
    with pytest.raises(InvalidArgumentError, match="same number of elements, got 2 and 1"):
        raw_ops.TanhGrad(y=y, dy=f32([1]))
