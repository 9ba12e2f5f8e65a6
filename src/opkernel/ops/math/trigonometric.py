"""Trigonometric and hyperbolic functions and their inverses.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/cwise_op_sin.cc and its siblings.
"""

import numpy as np

from opkernel.ops.kernel_types import COMPLEX, FLOATS
from opkernel.ops.math.elementwise import (
    COMPLEX_SPEC,
    FLOATS_SPEC,
    binary_op,
    register_flushed,
    register_ufunc,
    unary_op,
)

_UFUNCS = {
    "Sin": (np.sin, "The sine of `x`, in radians."),
    "Cos": (np.cos, "The cosine of `x`, in radians."),
    "Tan": (np.tan, "The tangent of `x`, in radians."),
    "Asin": (np.arcsin, "The angle in radians whose sine is `x`."),
    "Acos": (np.arccos, "The angle in radians whose cosine is `x`."),
    "Atan": (np.arctan, "The angle in radians whose tangent is `x`."),
    "Sinh": (np.sinh, "The hyperbolic sine of `x`."),
    "Cosh": (np.cosh, "The hyperbolic cosine of `x`."),
    "Tanh": (np.tanh, "The hyperbolic tangent of `x`."),
    "Asinh": (np.arcsinh, "The number whose hyperbolic sine is `x`."),
    "Acosh": (np.arccosh, "The number of 0 or more whose hyperbolic cosine is `x`."),
    "Atanh": (np.arctanh, "The number whose hyperbolic tangent is `x`."),
}

_TRAITS = {"Cos": "even", "Cosh": "even", "Tanh": "growing"}

for _name, (_ufunc, _doc) in _UFUNCS.items():
    _traits = f"{_TRAITS.get(_name, '')} function_gradient=yes"
    register_ufunc(
        unary_op(_name, f"{FLOATS_SPEC}, {COMPLEX_SPEC}", _doc, traits=_traits),
        _ufunc,
        (*FLOATS, *COMPLEX),
    )

ATAN2 = binary_op(
    "Atan2",
    FLOATS_SPEC,
    "The angle of the point (x, y) in radians, between -pi and pi.",
    inputs=["y: T", "x: T"],
)
register_flushed(ATAN2, np.arctan2, FLOATS)
