"""log, sin and cos of float, rounded as the C library rounds them.

TensorFlow's normal numbers come from these functions, so their last bits are part of its streams. NumPy's
own differ by a unit in every fourth result. All are polynomials in double, rounded once.

Source: the single-precision functions of Arm's optimized routines, which glibc has.
"""

from typing import Any

import numpy as np

__all__ = ["log_of_float", "sine_and_cosine_of_float"]

Array = np.ndarray[Any, Any]

# log: x = 2^k z, with z near one of 16 centres c: log x = log1p(z/c - 1) + log c + k log 2

_LEAST_Z_BITS = np.int32(0x3F330000)
_EXPONENT_BITS = np.int32(-(1 << 23))
_LOG_2 = float.fromhex("0x1.62e42fefa39efp-1")
_LOG1P = [
    float.fromhex(text)
    for text in ("-0x1.00ea348b88334p-2", "0x1.5575b0be00b6ap-2", "-0x1.ffffef20a4123p-2")
]
_CENTRES = """
0x1.661ec79f8f3bep+0 -0x1.57bf7808caadep-2 0x1.571ed4aaf883dp+0 -0x1.2bef0a7c06ddbp-2
0x1.49539f0f010bp+0 -0x1.01eae7f513a67p-2 0x1.3c995b0b80385p+0 -0x1.b31d8a68224e9p-3
0x1.30d190c8864a5p+0 -0x1.6574f0ac07758p-3 0x1.25e227b0b8eap+0 -0x1.1aa2bc79c81p-3
0x1.1bb4a4a1a343fp+0 -0x1.a4e76ce8c0e5ep-4 0x1.12358f08ae5bap+0 -0x1.1973c5a611cccp-4
0x1.0953f419900a7p+0 -0x1.252f438e10c1ep-5 0x1p+0 0x0p+0
0x1.e608cfd9a47acp-1 0x1.aa5aa5df25984p-5 0x1.ca4b31f026aap-1 0x1.c5e53aa362eb4p-4
0x1.b2036576afce6p-1 0x1.526e57720db08p-3 0x1.9c2d163a1aa2dp-1 0x1.bc2860d22477p-3
0x1.886e6037841edp-1 0x1.1058bc8a07ee1p-2 0x1.767dcf5534862p-1 0x1.4043057b6ee09p-2
"""
_INVERSES, _LOGS = np.array([float.fromhex(t) for t in _CENTRES.split()]).reshape(16, 2).T.copy()


def log_of_float(x: Array) -> Array:
    """log(x) of positive normal numbers: float32 -> float32."""
    bits = x.view(np.int32)
    distance = bits - _LEAST_Z_BITS
    z = (bits - (distance & _EXPONENT_BITS)).view(np.float32)
    centre = (distance >> 19 & 15).astype(np.intp)
    r = _INVERSES.take(centre)
    r *= z
    r -= 1
    log = _LOGS.take(centre)
    log += (distance >> 23) * _LOG_2
    log += r
    square = r * r
    r *= _LOG1P[1]
    r += _LOG1P[2]
    r *= square
    square *= square
    square *= _LOG1P[0]
    r += square
    r += log
    return r.astype(np.float32)


# sin and cos: of the distance to the nearest multiple of pi/2, which says how they are swapped and negated

_QUARTERS_PER_RADIAN = float.fromhex("0x1.45F306DC9C883p-1")
_QUARTER = float.fromhex("0x1.921FB54442D18p0")
_SINE = [
    float.fromhex(text)
    for text in ("-0x1.555545995a603p-3", "0x1.1107605230bc4p-7", "-0x1.994eb3774cf24p-13")
]
_COSINE = [
    float.fromhex(text)
    for text in (
        "-0x1.ffffffd0c621cp-2",
        "0x1.55553e1068f19p-5",
        "-0x1.6c087e89a359dp-10",
        "0x1.99343027bf8c3p-16",
    )
]


def sine_and_cosine_of_float(x: Array) -> tuple[Array, Array]:
    """sin(x) and cos(x) of numbers from 0 to 2 pi: float32 -> float32."""
    near = x.astype(np.float64)
    quarter = np.rint(near * _QUARTERS_PER_RADIAN)
    near -= quarter * _QUARTER
    square = near * near
    sine = _polynomial(square, _SINE)
    sine *= square * near
    sine += near
    cosine = _polynomial(square, _COSINE)
    cosine *= square
    cosine += 1
    sine, cosine = sine.astype(np.float32), cosine.astype(np.float32)
    _turn(sine.view(np.uint32), cosine.view(np.uint32), quarter.astype(np.uint32))
    return sine, cosine


def _turn(sine: Array, cosine: Array, quarters: Array) -> None:
    """Swap and negate the bits of sines and cosines, as an angle gets larger by quarters of a turn."""
    swapped = np.negative(quarters & 1)
    swapped &= sine ^ cosine
    sine ^= swapped
    cosine ^= swapped
    sine ^= (quarters & 2) << 30
    cosine ^= (quarters + 1 & 2) << 30


def _polynomial(x: Array, coefficients: list[float]) -> Array:
    value = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= x
    value += coefficients[0]
    return value
