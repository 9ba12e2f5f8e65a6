"""Element-wise ops as plain NumPy functions."""

import math
from typing import Any

import numpy as np

__all__ = ["FUNCTIONS"]


def truncate_div(x: Any, y: Any) -> Any:
    return np.trunc(x / y).astype(x.dtype) if x.dtype.kind == "f" else (x - np.fmod(x, y)) // y


def divide(x: Any, y: Any) -> Any:
    return x / y if x.dtype.kind in "fc" else truncate_div(x, y)


def floor_div(x: Any, y: Any) -> Any:
    return np.floor(x / y) if x.dtype.kind == "f" else x // y


def div_no_nan(x: Any, y: Any) -> Any:
    return np.where(y == 0, y.dtype.type(0), x / y)


def mul_no_nan(x: Any, y: Any) -> Any:
    return np.where(y == 0, y.dtype.type(0), x * y)


def xdivy(x: Any, y: Any) -> Any:
    return np.where(x == 0, x.dtype.type(0), x / y)


def xlogy(x: Any, y: Any) -> Any:
    return np.where(x == 0, x.dtype.type(0), x * np.log(y))


def xlog1py(x: Any, y: Any) -> Any:
    return np.where(x == 0, x.dtype.type(0), x * np.log1p(y))


def approximate_equal(x: Any, y: Any, *, tolerance: float = 1e-5) -> Any:
    return np.abs(x - y) < x.real.dtype.type(tolerance)


def squared_difference(x: Any, y: Any) -> Any:
    return (x - y) * np.conj(x - y)


def reciprocal(x: Any) -> Any:
    return x.dtype.type(1) / x


def rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def erf(x: Any) -> Any:
    return np.vectorize(math.erf, [x.dtype])(x) if x.size else x.copy()


def erfc(x: Any) -> Any:
    return np.vectorize(math.erfc, [x.dtype])(x) if x.size else x.copy()


def round_half_to_even(x: Any) -> Any:
    return np.rint(x) if x.dtype.kind in "fc" else np.zeros_like(x)  # which TensorFlow gives, too


def left_shift(x: Any, y: Any) -> Any:
    return np.left_shift(x, np.clip(y, 0, x.dtype.itemsize * 8 - 1))


def right_shift(x: Any, y: Any) -> Any:
    return np.right_shift(x, np.clip(y, 0, x.dtype.itemsize * 8 - 1))


def clip_by_value(x: Any, low: Any, high: Any) -> Any:
    return np.maximum(np.minimum(x, high), low)


def select(condition: Any, t: Any, e: Any) -> Any:
    """Select of a vector chooses rows."""
    if condition.ndim == 1 and t.ndim > 1:
        condition = condition.reshape(-1, *[1] * (t.ndim - 1))
    return np.where(condition, t, e)


def select_v2(condition: Any, t: Any, e: Any) -> Any:
    return np.where(condition, t, e)


def cast(x: Any, *, DstT: str) -> Any:  # noqa: N803  # the attr's name
    if x.dtype.kind == "c" and not DstT.startswith("complex"):
        x = x.real
    return x.astype(DstT)


def bitcast(x: Any, *, type: str) -> Any:
    size, wanted = x.dtype.itemsize, np.dtype(type).itemsize
    if wanted > size:
        return np.asarray(x, order="C").view(type)[..., 0]
    if wanted < size:
        return np.asarray(x, order="C")[..., np.newaxis].view(type)
    return x.view(type)


def real(x: Any) -> Any:
    return x.real


def imag(x: Any) -> Any:
    return x.imag


def angle(x: Any) -> Any:
    return np.angle(x).astype(x.real.dtype)


def complex_of(real: Any, imag: Any) -> Any:
    parts = np.broadcast_arrays(real, imag)
    return np.stack(parts, -1).view("complex64" if real.dtype == np.float32 else "complex128")[
        ..., 0
    ]


def add_n(inputs: Any) -> Any:
    return sum(inputs[1:], inputs[0])


def bucketize(x: Any, *, boundaries: Any) -> Any:
    return np.searchsorted(np.array(boundaries, np.float32), x, "right").astype(np.int32)


def cross(a: Any, b: Any) -> Any:
    return np.cross(a, b)


def check_numerics(x: Any, *, message: str = "") -> Any:
    if not np.isfinite(x).all():
        raise ValueError(f"{message} : Tensor had NaN or Inf values")
    return x


def assert_true(condition: Any, data: Any) -> None:
    if not condition:
        raise ValueError(f"assertion failed: {data}")


def sigmoid_grad(y: Any, dy: Any) -> Any:
    return dy * y * (1 - y)


def tanh_grad(y: Any, dy: Any) -> Any:
    return dy * (1 - y * y)


def rsqrt_grad(y: Any, dy: Any) -> Any:
    return dy * np.conj(y * y * y) / -2


def sqrt_grad(y: Any, dy: Any) -> Any:
    return dy / np.conj(y) / 2


def reciprocal_grad(y: Any, dy: Any) -> Any:
    return -dy * np.conj(y * y)


FUNCTIONS = {
    "Abs": np.absolute,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "AddV2": np.add,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Assert": assert_true,
    "Atan": np.arctan,
    "Atan2": np.arctan2,
    "Atanh": np.arctanh,
    "CheckNumericsV2": check_numerics,
    "Complex": complex_of,
    "ComplexAbs": np.absolute,
    "Conj": np.conjugate,
    "Div": divide,
    "FloorMod": np.remainder,
    "Inv": reciprocal,
    "InvGrad": reciprocal_grad,
    "IsFinite": np.isfinite,
    "IsInf": np.isinf,
    "IsNan": np.isnan,
    "Mod": np.fmod,
    "Mul": np.multiply,
    "Neg": np.negative,
    "NextAfter": np.nextafter,
    "Pow": np.power,
    "RealDiv": np.divide,
    "Round": round_half_to_even,
    "Sub": np.subtract,
    "TruncateMod": np.fmod,
}
