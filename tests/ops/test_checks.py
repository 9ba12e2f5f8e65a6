"""Assert, CheckNumerics, ToBool; messages are TensorFlow's."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

INF, NAN = np.inf, np.nan


def message_of(condition: Any, *data: Any, summarize: int = 3) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        raw_ops.Assert(condition=np.bool_(condition), data=list(data), summarize=summarize)
    return caught.value.message


def test_assert_passes_and_fails() -> None:
    assert raw_ops.Assert(condition=np.True_, data=[np.int32(1)]) is None
    text = np.array([b'a"', "ü".encode()], object)
    message = message_of(False, text, np.array([[1, 2], [3, 4]]), np.float32(0.1))
    assert r"assertion failed: [a\" ü] [[1 2][3...]...] [0.1]" in message
    assert "assertion failed: [[1 2][3 4]]" in message_of(
        False, np.array([[1, 2], [3, 4]]), summarize=-1
    )
    assert "assertion failed: []" in message_of(False, np.array([True]), summarize=0)


def test_assert_wants_a_scalar() -> None:
    with pytest.raises(InvalidArgumentError, match=r"should be a scalar: \[1\]"):
        raw_ops.Assert(condition=np.array([True]), data=[np.int32(1)])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_finite_numbers_pass(dtype: Any) -> None:
    x = np.array([[1, -2.5], [0, 3]], dtype)
    for op in (raw_ops.CheckNumerics, raw_ops.CheckNumericsV2):
        checked = op(tensor=x, message="m")
        assert checked.dtype == dtype
        np.testing.assert_array_equal(checked, x)


NUMERICS = [
    ([NAN], "NaN", "NaN"),
    ([1, INF], "Inf", "+Inf"),
    ([-INF, INF], "Inf", "-Inf and +Inf"),
    ([NAN, -INF], "Inf and NaN", "-Inf and NaN"),
    ([NAN, INF, -INF], "Inf and NaN", "-Inf, +Inf, and NaN"),
]


@pytest.mark.parametrize(("values", "first", "second"), NUMERICS)
def test_what_is_not_finite_is_named(values: list[float], first: str, second: str) -> None:
    x = np.array(values, np.float32)
    for op, found in ((raw_ops.CheckNumerics, first), (raw_ops.CheckNumericsV2, second)):
        with pytest.raises(InvalidArgumentError) as caught:
            op(tensor=x, message="here")
        assert f"here : Tensor had {found} values" in caught.value.message


TRUTHS = [
    (np.float32(0.0), False),
    (np.float32(-0.0), False),
    (np.float64(NAN), True),
    (np.int8(-1), True),
    (np.array(b"", object), False),
    (np.array(b"0", object), True),
    (np.zeros(1, np.uint64), True),  # not the value counts, but that there is one
    (np.ones((3, 0), np.complex64), False),
]


@pytest.mark.parametrize(("value", "truth"), TRUTHS)
def test_to_bool(value: Any, truth: bool) -> None:
    assert raw_ops.ToBool(input=value) == truth


def test_to_bool_does_not_know_all_scalars() -> None:
    for value, name in ((np.uint32(1), "uint32"), (np.float16(1), "half")):
        with pytest.raises(InvalidArgumentError, match=f"{name} cannot be converted to a boolean"):
            raw_ops.ToBool(input=value)
