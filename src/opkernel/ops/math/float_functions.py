"""Elementary, Bessel and other functions of floats: polynomials, each of a few ranges of numbers.

The functions take an array of float, or one number in a compiled loop (`opkernel.providers.loops`): so they
take no branches, and their constants are float. Coefficients were fitted to the functions in double, for the
least relative error. The relative errors named below are those of results in float.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opkernel.kernel import KernelRegistry
from opkernel.ops.math.elementwise import flush_subnormals, kernel_of_body, register_body
from opkernel.ops.math.error_functions import ERFC_FLOAT, ERFC_MIDDLE
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType

Float = Any
"""An array of float, or one number."""

_F = np.float32
_BLOCK_BYTES = 1 << 15
"""So many of each step stay in the processor's cache, and in memory that is not given back between steps."""
_FEW = 1 << 10


def floats(*numbers: float) -> tuple[Any, ...]:
    """The numbers as float, which loops take for constants."""
    return tuple(_F(number) for number in numbers)


_ATAN = floats(
    1.0, -0.3333307206630707, 0.1999261975288391, -0.14203642308712006, 0.10640924423933029,
    -0.0750427395105362, 0.04269127547740936, -0.016068479046225548, 0.002849851967766881,
)  # fmt: skip
"""atan(x) / x, by powers of x**2, up to 1."""
_ACOS = floats(
    1.570796251296997, -0.21459870040416718, 0.08897730708122253, -0.050164174288511276,
    0.030862705782055855, -0.01704503409564495, 0.006638568826019764, -0.0012534428387880325,
)  # fmt: skip
"""acos(x) / sqrt(1 - x), from 0 to 1."""
_ATANH = floats(
    1.0, 0.3333328366279602, 0.20003017783164978, 0.14215800166130066, 0.1187056228518486,
    0.04985066130757332, 0.1785544753074646,
)  # fmt: skip
"""atanh(x) / x, by powers of x**2, up to 1/2."""
_EXPM1 = floats(*(1 / math.factorial(k) for k in range(1, 9)))
"""(exp(x) - 1) / x, up to 1/2."""
_ERFC, _ERFC_MIDDLE = floats(*ERFC_FLOAT), _F(ERFC_MIDDLE)
_ERFINV = floats(
    1.5014094114303589, 0.24664027988910675, -0.004177386872470379, -0.0012527419021353126,
    0.00021834444487467408, -4.963347691955278e-06, -3.4627048535185168e-06,
    4.6617066118415096e-07, 2.3232644252857426e-08, -8.791056771428885e-09,
)  # fmt: skip
"""erfinv(x) / x, by powers of w - 2.5 where w = -log(1 - x**2), up to 5."""
_ERFINV_TAIL = floats(
    1.0011197328567505, -0.05006643757224083, -1.0135387182235718, 4.560660362243652,
    -21.999027252197266, 94.30958557128906, -251.24871826171875, 354.91021728515625,
    -200.4346160888672,
)  # fmt: skip
"""erfinv(x) / (x * sqrt(w)), by powers of 1 / sqrt(w), from 5 on."""
_I0E = floats(
    0.43483594059944153, -0.07285664230585098, 0.07638424634933472, -0.0836818665266037,
    0.0970684066414833, -0.11798476427793503, 0.1376711130142212, -0.12104323506355286,
    0.033073749393224716, 0.07792545855045319, -0.10327334702014923, 0.0341743640601635,
    0.028059374541044235, -0.02794216014444828, -2.197132198489271e-05, 0.010879897512495518,
    -0.004326357040554285,
)  # fmt: skip
"""i0e(x) * sqrt(x + 1), by powers of (x - 7) / (x + 7)."""
_I1E = floats(
    0.45994827151298523, -0.11432892084121704, 0.09539512544870377, -0.06743567436933517,
    0.02583528496325016, 0.033189211040735245, -0.10303330421447754, 0.1469004601240158,
    -0.1005689799785614, -0.030680015683174133, 0.10260244458913803, -0.03292221948504448,
    -0.04041502997279167, 0.01955476775765419, 0.01063492987304926, -0.00480650132521987,
    -0.0009276132914237678,
)  # fmt: skip
"""i1e(x) / x * sqrt(x + 1) * (x + 1), likewise."""
_I0_SMALL = floats(
    1.0, 1.0, 0.24999931454658508, 0.027780912816524506, 0.0017297716112807393,
    7.525116234319285e-05,
)  # fmt: skip
"""i0(x), by powers of x**2 / 4, up to 1; so are the next three."""
_I1_SMALL = floats(
    0.5, 0.25, 0.04166661202907562, 0.003472458105534315, 0.00017314522119704634,
    6.206358648341848e-06,
)  # fmt: skip
"""i1(x) / x."""
_K0_SMALL = floats(
    -0.5772156715393066, 0.42278462648391724, 0.2306932657957077, 0.03490210697054863,
    0.0025984381791204214, 0.00013109332940075547,
)  # fmt: skip
"""k0(x) + log(x / 2) * i0(x)."""
_K1_SMALL = floats(
    0.03860783204436302, -0.16819609701633453, -0.045393720269203186, -0.004795885644853115,
    -0.0002780955983325839, -1.1099027688032947e-05,
)  # fmt: skip
"""(k1(x) - 1 / x - log(x / 2) * i1(x)) / x."""
_K0E = floats(
    1.2533141374588013, -0.07833180576562881, 0.022020969539880753, -0.011356248520314693,
    0.008047927170991898, -0.006080341059714556, 0.0037997360341250896, -0.0015489585930481553,
    0.0002917687234003097,
)  # fmt: skip
"""k0e(x) * sqrt(x), by powers of 2 / x, up to 1."""
_K1E = floats(
    1.2533141374588013, 0.234996035695076, -0.036706969141960144, 0.01592927984893322,
    -0.010446778498589993, 0.007619595155119896, -0.004694913048297167, 0.0019054146250709891,
    -0.0003588321269489825,
)  # fmt: skip
"""k1e(x) * sqrt(x), likewise."""
_EXPINT = floats(
    1.0000001192092896, 0.24999600648880005, 0.05558837577700615, 0.010312529280781746,
    0.0018352800980210304, 7.190606993390247e-05, 0.0001234813971677795, -3.413081867620349e-05,
    1.0038503205578309e-05, -1.6643314211250981e-06, 1.9165726428127527e-07,
    -1.2381792480198328e-08, 4.037406242662911e-10,
)  # fmt: skip
"""(expint(x) - log(x) - Euler's constant) / x, up to 8."""
_EXPINT_LARGE = floats(
    0.9999991059303284, 0.1250879466533661, 0.02861538901925087, 0.04745848476886749,
    -0.2537654638290405, 1.1018073558807373, -2.79858660697937, 4.302482604980469,
    -3.8103373050689697, 1.7797443866729736, -0.3406575918197632,
)  # fmt: skip
"""expint(x) * x * exp(-x), by powers of 8 / x, up to 1."""

_HALF_PI = _F(np.pi / 2)
_LOG_2 = _F(np.log(2.0))
_ROOT_2 = _F(np.sqrt(2.0))
_EULER_GAMMA = _F(np.euler_gamma)
_TINY = np.finfo(np.float32).tiny
_HUGE = np.finfo(np.float32).max
_NAN, _INFINITY = _F(np.nan), _F(np.inf)
_EXPINT_OF_SUBNORMAL = _F(np.euler_gamma - 150 * np.log(2))
"""As TensorFlow, whose logarithm takes such a number for 2 ** -150."""


def where(condition: Any, x: Float, y: Float) -> Float:
    """NumPy's function; loops have a choice of two numbers instead."""
    return np.where(condition, x, y)


def log(x: Float) -> Float:
    """NumPy's function; loops have TensorFlow's quotient of polynomials instead."""
    return np.log(x)


def flushed(x: Float) -> Float:
    """The numbers, those below the normal format made 0; the logarithm of loops takes them so itself."""
    return flush_subnormals(x, np)


def exp(x: Float) -> Float:
    """NumPy's function; loops have a polynomial instead."""
    return np.exp(x)


def float_polynomial(x: Float, coefficients: tuple[Any, ...]) -> Float:
    """The polynomial with these coefficients, that of the constant term first."""
    result = x * coefficients[-1]
    for k in range(len(coefficients) - 2, 0, -1):
        result += coefficients[k]
        result *= x
    result += coefficients[0]
    return result


def log_of_normal(x: Float) -> Float:
    """To 4e-7."""
    return log(flushed(x))


def log1p(x: Float) -> Float:
    """To 4e-7, in TensorFlow's steps: the logarithm of 1 + x, with the rounding of 1 + x taken out again."""
    shifted = x + _F(1)
    logarithm = log(shifted)
    exact = x * (logarithm / (shifted - _F(1)))
    return where((shifted == _F(1)) | (shifted == logarithm), x, exact)


def asin(x: Float) -> Float:
    """To 2e-7: twice the arc tangent of the half angle."""
    tangent = x / (_F(1) + np.sqrt((_F(1) - x) * (_F(1) + x)))
    return tangent * (_F(2) * float_polynomial(tangent * tangent, _ATAN))


def acos(x: Float) -> Float:
    """To 2e-7."""
    size, sign = np.abs(x), np.copysign(_F(1), x)
    return np.sqrt(_F(1) - size) * float_polynomial(size, _ACOS) * sign + _HALF_PI * (_F(1) - sign)


def atan(x: Float) -> Float:
    """To 2e-7."""
    size = np.abs(x)
    low = np.minimum(size, _F(1)) / np.maximum(size, _F(1))  # the tangent, or the cotangent
    angle = low * float_polynomial(low * low, _ATAN)
    is_cotangent = np.float32(size > _F(1))
    return np.copysign(angle * (_F(1) - _F(2) * is_cotangent) + _HALF_PI * is_cotangent, x)


def atan2(y: Float, x: Float) -> Float:
    """The angle of the point (x, y), to 2e-7; numbers too small for the normal format are 0."""
    high, wide = np.abs(y), np.abs(x)
    low, size = np.minimum(high, wide), np.maximum(high, wide)
    tangent = where(high == wide, _F(1), low / size)  # also of two that are infinite
    tangent = where(low < _TINY, _F(0), tangent)
    angle = tangent * float_polynomial(tangent * tangent, _ATAN)
    is_steep = np.float32((high > wide) & (high >= _TINY))
    angle = angle * (_F(1) - _F(2) * is_steep) + _HALF_PI * is_steep
    side = np.copysign(_F(1), x)
    return np.copysign(angle * side + _HALF_PI * (_F(1) - side), y)


def atanh(x: Float) -> Float:
    """To 3e-7."""
    near_zero = x * float_polynomial(x * x, _ATANH)
    return where(np.abs(x) < _F(0.5), near_zero, _F(0.5) * log((_F(1) + x) / (_F(1) - x)))


def expm1(x: Float) -> Float:
    """To 5e-7."""
    return where(np.abs(x) < _F(0.5), x * float_polynomial(x, _EXPM1), exp(x) - _F(1))


def elu(x: Float) -> Float:
    return np.copysign(np.maximum(exp(np.minimum(x, _F(0))) - _F(1), x), x)


def erfc(x: Float) -> Float:
    """To 7e-7; to 4e-6 where below 1e-8."""
    inverse = _F(1) / (np.abs(x) + _ERFC_MIDDLE)
    size = float_polynomial(_F(1) - _F(2) * _ERFC_MIDDLE * inverse, _ERFC)
    size = size * inverse * exp(-x * x)
    return size + _F(2) * np.float32(x < _F(0)) * (_F(1) - size)


def ndtri(p: Float) -> Float:
    """The quantile of the standard normal distribution, to 2e-6."""
    p = where(np.abs(p) < _TINY, p * _F(0), p)
    rest = _F(1) - p
    x, w = _F(2) * (p - _F(0.5)), -log(_F(4) * p * rest)
    root = np.sqrt(w)
    tail = root * float_polynomial(_F(1) / root, _ERFINV_TAIL)
    centre = float_polynomial(w - _F(2.5), _ERFINV)
    return _ROOT_2 * x * where(w < _F(5), centre, tail)


def erfinv(x: Float) -> Float:
    """By the quantile, as TensorFlow: near 0 what `x + 1` rounds off is lost."""
    return ndtri((x + _F(1)) * _F(0.5)) / _ROOT_2


def _along(size: Float) -> Float:
    """A number from 0 on, mapped to -1 to 1."""
    size = np.minimum(size, _HUGE)
    return (size - _F(7)) / (size + _F(7))


def bessel_i0e(x: Float) -> Float:
    """To 4e-7."""
    size = np.abs(x)
    return float_polynomial(_along(size), _I0E) / np.sqrt(size + _F(1))


def bessel_i1e(x: Float) -> Float:
    """To 4e-7."""
    size, most = np.abs(x), np.minimum(np.abs(x), _HUGE)
    share = np.copysign(most / (most + _F(1)), x + _F(0))  # of -0 the result is 0
    return float_polynomial(_along(size), _I1E) / np.sqrt(size + _F(1)) * share


def bessel_i0(x: Float) -> Float:
    return exp(np.abs(x)) * bessel_i0e(x)


def bessel_i1(x: Float) -> Float:
    return exp(np.abs(x)) * bessel_i1e(x)


def _small_k0(x: Float) -> Float:
    """Up to 2."""
    square = _F(0.25) * x * x
    of_i0 = float_polynomial(square, _I0_SMALL)
    return float_polynomial(square, _K0_SMALL) - (log(x) - _LOG_2) * of_i0


def _small_k1(x: Float) -> Float:
    """Up to 2."""
    square = _F(0.25) * x * x
    of_i1 = float_polynomial(square, _I1_SMALL)
    rest = float_polynomial(square, _K1_SMALL) + (log(x) - _LOG_2) * of_i1
    return _F(1) / x + x * rest


def _ends_of_k(x: Float, inside: Float) -> Float:
    """A function of the second kind, infinite up to 0."""
    return where(x < _TINY, _INFINITY, inside)


def bessel_k0(x: Float) -> Float:
    large = exp(-x) * float_polynomial(_F(2) / x, _K0E) / np.sqrt(x)
    return _ends_of_k(x, where(x <= _F(2), _small_k0(x), large))


def bessel_k0e(x: Float) -> Float:
    large = float_polynomial(_F(2) / x, _K0E) / np.sqrt(x)
    return _ends_of_k(x, where(x <= _F(2), _small_k0(x) * exp(x), large))


def bessel_k1(x: Float) -> Float:
    large = exp(-x) * float_polynomial(_F(2) / x, _K1E) / np.sqrt(x)
    return _ends_of_k(x, where(x <= _F(2), _small_k1(x), large))


def bessel_k1e(x: Float) -> Float:
    large = float_polynomial(_F(2) / x, _K1E) / np.sqrt(x)
    return _ends_of_k(x, where(x <= _F(2), _small_k1(x) * exp(x), large))


def expint(x: Float) -> Float:
    """The exponential integral, to 8e-7; NaN below 0 and at infinity, as TensorFlow's."""
    small = _EULER_GAMMA + log(x) + x * float_polynomial(x, _EXPINT)
    large = exp(x) * float_polynomial(_F(8) / x, _EXPINT_LARGE) / x
    inside = where(x <= _F(8), small, large)
    inside = where((x > _F(0)) & (x < _TINY), _EXPINT_OF_SUBNORMAL, inside)
    return where((x < _F(0)) | (x == _INFINITY), _NAN, inside)


_FLOAT = (DataType.DT_FLOAT,)
_UP_TO_FLOAT = (DataType.DT_BFLOAT16, DataType.DT_HALF, *_FLOAT)

FUNCTIONS: Mapping[str, Callable[..., Float]] = {
    "Acos": acos,
    "Asin": asin,
    "Atan": atan,
    "Atan2": atan2,
    "Atanh": atanh,
    "BesselI0": bessel_i0,
    "BesselI0e": bessel_i0e,
    "BesselI1": bessel_i1,
    "BesselI1e": bessel_i1e,
    "BesselK0": bessel_k0,
    "BesselK0e": bessel_k0e,
    "BesselK1": bessel_k1,
    "BesselK1e": bessel_k1e,
    "Elu": elu,
    "Erfc": erfc,
    "Erfinv": erfinv,
    "Expint": expint,
    "Expm1": expm1,
    "Log": log_of_normal,
    "Log1p": log1p,
    "Ndtri": ndtri,
}
"""The functions by the op that they compute."""

PARTS = (float_polynomial, _along, _small_k0, _small_k1, _ends_of_k)
"""What the functions call beside `where`, `log` and `exp`."""

UFUNCS: Mapping[str, np.ufunc] = {
    "Acos": np.arccos,
    "Asin": np.arcsin,
    "Atan": np.arctan,
    "Atan2": np.arctan2,
    "Atanh": np.arctanh,
    "Expm1": np.expm1,
    "Log1p": np.log1p,
}
"""NumPy's functions, which call the C library for each element: faster for a few."""


def float_types(op: str) -> tuple[DataType, ...]:
    """The types of `op` that its function computes, all in float."""
    if op in UFUNCS:
        return _UP_TO_FLOAT
    return _UP_TO_FLOAT[1:] if op.startswith("Bessel") else _FLOAT


def by_blocks(function: Callable[..., Any]) -> Callable[..., Array]:
    """The element-wise function of arrays [n], computed in blocks that stay in the processor's cache."""

    def blockwise(*inputs: Array) -> Array:
        result = np.empty_like(inputs[0])
        step = _BLOCK_BYTES // result.itemsize
        for start in range(0, result.size, step):
            part = slice(start, start + step)
            result[part] = function(*[one[part] for one in inputs])
        return result

    return blockwise


def register_float_function(
    op: str, function: Callable[..., Array], registry: KernelRegistry | None = None
) -> None:
    """Register the kernels of `op` for `float_types`, with a function of FUNCTIONS or its loop."""
    ufunc, types = UFUNCS.get(op), float_types(op)

    def by_function(*inputs: Any) -> Any:
        if len(inputs) > 1:
            inputs = np.broadcast_arrays(*inputs)
        flat = [np.ascontiguousarray(one).reshape(-1) for one in inputs]
        return function(*flat).reshape(inputs[0].shape)

    if ufunc is None:  # of NumPy only

        @register_kernel(
            op, types={"T": types}, kind="elementwise", factory=True, registry=registry
        )
        def make(*, T: DataType) -> Callable[..., Any]:
            return kernel_of_body(lambda x, xp: by_function(x), T, np, in_float=True)

        return

    def body(*inputs: Any, xp: Any) -> Any:
        if xp is np and max([one.size for one in inputs]) >= _FEW:
            return by_function(*inputs)
        if len(inputs) > 1:
            inputs = tuple(flush_subnormals(one, xp) for one in inputs)
        return getattr(xp, ufunc.__name__)(*inputs)

    register_body(op, body, types, in_float=True, registry=registry)
