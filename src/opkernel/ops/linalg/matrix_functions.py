"""Functions of matrices: MatrixSquareRoot, MatrixLogarithm, by SciPy (the extra `scipy`); MatrixExponential.

Source: TensorFlow core/kernels/linalg/matrix_square_root_op.cc, matrix_logarithm_op.cc, matrix_exponential_op.cc;
Eigen unsupported/MatrixFunctions/MatrixExponential.h; Higham, The scaling and squaring method for the matrix
exponential revisited (2005).
"""

import math
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, check_seconds, in_time
from opkernel.libraries import library
from opkernel.opdef import register_op
from opkernel.ops.linalg.lu import solved
from opkernel.ops.linalg.matrices import NUMBERS, T_SPEC, check_square, seconds_of, square_shape
from opkernel.ops.registration import COMPLEX, register_kernel

MATRIX_SQUARE_ROOT = register_op(
    "MatrixSquareRoot(input: T) -> output: T",
    attrs=[T_SPEC],
    shape_fn=square_shape,
    traits="extra=scipy",
    doc="The principal square roots of matrices; NaN for real matrices whose roots are not real.",
)
MATRIX_LOGARITHM = register_op(
    "MatrixLogarithm(input: T) -> output: T",
    attrs=["T: {complex64, complex128}"],
    shape_fn=square_shape,
    traits="extra=scipy",
    doc="The principal logarithms of matrices.",
)
MATRIX_EXPONENTIAL = register_op(
    "MatrixExponential(input: T) -> output: T",
    attrs=[T_SPEC],
    shape_fn=square_shape,
    deprecated=(27, "Use Python implementation tf.linalg.matrix_exponential instead."),
    doc="The exponentials of matrices.",
)


_quiet = threading.Lock()
"""Two blocks of `catch_warnings` at once would leave the filters of one of them in place."""

_ROOT, _LOGARITHM, _EXPONENTIAL = 15, 40, 0.5
"""The costs of the functions, as `of_stack` takes them."""


def _of_each(tensor: Any, function: Callable[[Any], Any], cost: float) -> Any:
    check_square(tensor)
    if not tensor.size:
        return tensor.copy()
    check_seconds(seconds_of(tensor, cost), "computing a function of a matrix")
    found = np.empty_like(tensor)
    for at in in_time(np.ndindex(tensor.shape[:-2]), SLOW):
        found[at] = function(tensor[at])
    return found


@register_kernel(MATRIX_SQUARE_ROOT, types={"T": NUMBERS})
def matrix_square_root(tensor: Any) -> Any:
    linalg = library("scipy.linalg", "MatrixSquareRoot")

    def root(matrix: Any) -> Any:
        if not np.all(np.isfinite(matrix)):
            return np.full_like(matrix, np.nan)
        found = linalg.sqrtm(matrix)
        is_lost = np.iscomplexobj(found) and not np.iscomplexobj(matrix)
        return np.full_like(matrix, np.nan) if is_lost else found

    return _of_each(tensor, root, _ROOT)


@register_kernel(MATRIX_LOGARITHM, types={"T": COMPLEX})
def matrix_logarithm(tensor: Any) -> Any:
    linalg = library("scipy.linalg", "MatrixLogarithm")

    def logarithm(matrix: Any) -> Any:
        wide = matrix.astype(np.complex128)
        is_singular = not np.all(np.isfinite(wide)) or np.linalg.det(wide) == 0
        if is_singular:
            return np.full_like(matrix, complex(np.nan, np.nan))
        with _quiet, warnings.catch_warnings():  # of the last digits of double
            warnings.simplefilter("ignore", RuntimeWarning)
            return linalg.logm(wide)

    return _of_each(tensor, logarithm, _LOGARITHM)


_DEGREES = {
    np.float32: ((3, 4.258730016922831e-1), (5, 1.880152677804762), (7, 3.925724783138660)),
    np.float64: (
        (3, 1.495585217958292e-2),
        (5, 2.539398330063230e-1),
        (7, 9.504178996162932e-1),
        (9, 2.097847961257068),
        (13, 5.371920351148152),
    ),
}
"""The degrees of Padé approximants, with the greatest norms for which they are exact in a type. Source: Higham (2005)."""


@register_kernel(MATRIX_EXPONENTIAL, types={"T": NUMBERS})
def matrix_exponential(tensor: Any) -> Any:
    with np.errstate(all="ignore"):
        return _of_each(tensor, _exponential, _EXPONENTIAL)


def _exponential(matrix: Any) -> Any:
    """By scaling and squaring: a matrix is halved until its norm suits the approximant, whose result is squared."""
    norm = np.abs(matrix).sum(axis=0).max()
    degrees = _DEGREES[matrix.real.dtype.type]
    degree, limit = next((one for one in degrees[:-1] if norm < one[1]), degrees[-1])
    halvings = 0
    if norm > limit and np.isfinite(norm):
        halvings = math.frexp(norm / limit)[1]
    even, odd = _approximant(matrix * matrix.real.dtype.type(2.0**-halvings), degree)
    found = solved(even - odd, even + odd)
    for _ in in_time(range(halvings), SLOW):
        found = found @ found
    return found


def _approximant(matrix: Any, degree: int) -> tuple[Any, Any]:
    """The even and the odd terms of the numerator of the diagonal Padé approximant of the exponential."""
    power, square = np.eye(len(matrix), dtype=matrix.dtype), matrix @ matrix
    even, odd = np.zeros_like(matrix), np.zeros_like(matrix)
    for k in range(0, degree, 2):
        even += _coefficient(degree, k) * power
        odd += _coefficient(degree, k + 1) * power
        power = power @ square
    return even, matrix @ odd


def _coefficient(degree: int, k: int) -> float:
    """That of the k-th power, over that of the highest power, which is 1."""
    return math.factorial(2 * degree - k) / (math.factorial(k) * math.factorial(degree - k))
