"""Activations, their gradients and arithmetic, in all forms of their loops: double and TensorFlow tell the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.libraries import is_installed
from opkernel.providers.loops import loops_run

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]
SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772
NEAR = np.random.default_rng(0).uniform(-9, 9, (70, 59))
ENDS = [np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 1e-37, 30, -30, 90, -90]

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Sign": np.sign,
}
GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "SigmoidGrad": lambda g, y: g * y * (1 - y),
    "TanhGrad": lambda g, y: g * (1 - y * y),
    "SeluGrad": lambda g, y: np.where(y < 0, g * (y + SCALE * ALPHA), g * SCALE),
    "SoftplusGrad": lambda g, x: g / (1 + np.exp(-x)),
    "SoftsignGrad": lambda g, x: g / (1 + np.abs(x)) ** 2,
}
EXPECTED_AT_ENDS = {  # TensorFlow 2.21's; the gradients' others are 2
    "Softplus": "nan inf 0 0.6931472 0.6931472 1.313262 0.3132617 0.6931472 30 9.357623e-14 90 0",
    "Softsign": "nan nan nan 0 -0 0.5 -0.5 1e-37 0.9677419 -0.9677419 0.989011 -0.989011",
    "Sign": "nan 1 -1 0 0 1 -1 1 1 -1 1 -1",
    "SigmoidGrad": "nan -inf -inf 0 -0 0 -4 2e-37 -1740 -1860 -16020 -16380",
    "TanhGrad": "nan -inf -inf 2 2 0 0 2 -1798 -1798 -16198 -16198",
    "SeluGrad": "2.101402 2.101402 -inf 2.101402 2.101402 2.101402 1.516199 2.101402 2.101402 -56.4838 2.101402 -176.4838",
    "SoftplusGrad": "nan 2 0 1 1 1.462117 0.5378829 1 2 1.871525e-13 2 0",
    "SoftsignGrad": "nan 0 0 2 2 0.5 0.5 2 0.002081166 0.002081166 0.0002415167 0.0002415167",
}


def called(op: str, x: Any, gradient: Any = None) -> Any:
    """The op of `x`, and of the gradient if it takes one."""
    names: tuple[str, ...] = ("x",) if op == "Sign" else ("features",)
    if op in ("SigmoidGrad", "TanhGrad"):
        names = ("y", "dy")
    elif op.endswith("Grad"):
        names = ("outputs" if op == "SeluGrad" else "features", "gradients")
    return getattr(raw_ops, op)(**dict(zip(names, (x, gradient), strict=False)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", [*FUNCTIONS, *GRADIENTS])
@pytest.mark.parametrize("form", FORMS)
def test_values(form: Any, op: str, dtype: Any) -> None:
    x = NEAR.astype(dtype)
    gradient = x[::-1]
    with loops_run(form):
        found = called(op, x, gradient)
    inputs = [one.astype(np.float64) for one in (gradient, x)]
    expected = FUNCTIONS[op](inputs[1]) if op in FUNCTIONS else GRADIENTS[op](*inputs)
    assert found.dtype == dtype
    assert found.shape == x.shape
    # Where `1 - y` or the like is near 0, the result has lost digits, as TensorFlow's.
    relative, absolute = (1e-6, 2e-5) if dtype == np.float32 else (1e-13, 1e-13)
    absolute *= op in GRADIENTS
    np.testing.assert_allclose(found, expected, rtol=relative, atol=absolute)


@pytest.mark.parametrize("op", EXPECTED_AT_ENDS)
@pytest.mark.parametrize("form", FORMS)
def test_values_at_ends(form: Any, op: str) -> None:
    x = np.resize(np.array(ENDS, np.float32), 4800)
    with loops_run(form), np.errstate(all="ignore"):
        found = called(op, x, np.full_like(x, 2))
    expected = np.resize(np.array(EXPECTED_AT_ENDS[op].split(), np.float32), 4800)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-37)
    there = (expected == 0) & (found == 0)
    np.testing.assert_array_equal(np.signbit(found)[there], np.signbit(expected)[there])


@pytest.mark.parametrize("form", FORMS)
def test_quotients_are_cut_off(form: Any) -> None:
    x = np.resize(np.array([7, -7, 7.5, 1e-40, -np.inf, 0, np.nan, 3], np.float32), 4800)
    y = np.resize(np.array([2, 2, -0.5, 1, 2, 0, 1, 1e-40], np.float32), 4800)
    with loops_run(form), np.errstate(all="ignore"):
        found = raw_ops.TruncateDiv(x=x, y=y)
        of_rows = raw_ops.TruncateDiv(x=x.reshape(60, 80), y=np.full((60, 1), 3, np.float32))
    expected = np.resize(
        np.array([3, -3, -15, 0, -np.inf, np.nan, np.nan, np.inf], np.float32), 4800
    )
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(of_rows[0, :3], np.array([2, -2, 2], np.float32))


@pytest.mark.parametrize("form", FORMS)
def test_gradients_of_other_shapes(form: Any) -> None:
    y, dy = np.float32(NEAR), np.float32(NEAR).reshape(-1)
    with loops_run(form):
        np.testing.assert_array_equal(
            raw_ops.TanhGrad(y=y, dy=dy), dy.reshape(70, 59) * (1 - y * y)
        )
        with pytest.raises(InvalidArgumentError, match="must have same number of elements"):
            raw_ops.TanhGrad(y=y, dy=dy[1:])
        with pytest.raises(InvalidArgumentError, match="must have the same size and shape"):
            raw_ops.SeluGrad(gradients=dy, outputs=y)
