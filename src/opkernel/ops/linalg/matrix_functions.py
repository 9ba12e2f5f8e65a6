"""Functions of matrices, and gradients: MatrixSquareRoot, MatrixLogarithm; SciPy (the extra `scipy`) computes them.

Source: TensorFlow core/kernels/linalg/matrix_square_root_op.cc, matrix_logarithm_op.cc,
python/ops/linalg_grad.py; Deadman, Higham and Ralha, Blocked Schur algorithms for computing the matrix square
root (2013).
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, check_seconds, in_time
from opkernel.libraries import library
from opkernel.opdef import register_op
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


_ROOT, _LOGARITHM = 15, 40
"""The costs of SciPy's functions, as `of_stack` takes them."""


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
        with warnings.catch_warnings():  # of the last digits of double
            warnings.simplefilter("ignore", RuntimeWarning)
            return linalg.logm(wide)

    return _of_each(tensor, logarithm, _LOGARITHM)
