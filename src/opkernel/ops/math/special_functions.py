"""Special functions: of the error, gamma and zeta families.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/cwise_op_erf.cc and its siblings,
cwise_op_igamma.cc.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.opdef import OpHandle
from opkernel.ops.math.elementwise import (
    FLOATS_SPEC,
    Types,
    binary_op,
    flush_subnormals,
    register_body,
    unary_op,
)
from opkernel.ops.math.special.error_functions import (
    erf_double,
    erf_float,
    erfc_double,
    erfc_float,
    ndtri,
)
from opkernel.ops.math.special.gamma_functions import (
    digamma,
    igamma,
    igamma_grad_a,
    igammac,
    lgamma,
    polygamma,
    zeta,
)
from opkernel.types import DataType

_DOUBLE = (DataType.DT_DOUBLE,)
_WIDE = (DataType.DT_FLOAT, *_DOUBLE)
_UP_TO_FLOAT = (DataType.DT_BFLOAT16, DataType.DT_HALF, DataType.DT_FLOAT)
_ALL_BUT_BFLOAT16 = (DataType.DT_HALF, *_WIDE)
_MAX_TERMS = {DataType.DT_FLOAT: 200, DataType.DT_DOUBLE: 2000}
"""The number of terms after which TensorFlow's kernels give up on incomplete functions."""

ERF = unary_op("Erf", FLOATS_SPEC, "The error function of `x`.")
ERFC = unary_op("Erfc", FLOATS_SPEC, "`1 - erf(x)`, exact if that is near 0.")
ERFINV = unary_op("Erfinv", FLOATS_SPEC, "The number whose error function is `x`.")
NDTRI = unary_op(
    "Ndtri", FLOATS_SPEC, "The quantile of the standard normal distribution for probability `x`."
)
LGAMMA = unary_op(
    "Lgamma", FLOATS_SPEC, "The logarithm of the absolute value of the gamma function of `x`."
)
DIGAMMA = unary_op("Digamma", FLOATS_SPEC, "The derivative of the logarithm of gamma at `x`.")

register_body(ERF, erf_float, _UP_TO_FLOAT, in_float=True)
register_body(ERF, erf_double, _DOUBLE)
register_body(ERFC, erfc_float, _UP_TO_FLOAT, in_float=True)
register_body(ERFC, erfc_double, _DOUBLE)


def _register_in_double(op: OpHandle, function: Callable[..., Any], types: Types) -> None:
    """Register a function of double tensors for all of `types`."""

    def body(*inputs: Any, xp: Any) -> Any:
        wide = [flush_subnormals(tensor, xp).astype(np.float64) for tensor in inputs]
        return function(*wide).astype(inputs[0].dtype)

    register_body(op, body, types)


def erfinv(x: Any, *, xp: Any) -> Any:
    """By the quantile, as TensorFlow: near 0 what `x + 1` rounds off is lost."""
    probability = (x + 1) / 2
    return (ndtri(probability.astype(np.float64), xp=np) * np.sqrt(0.5)).astype(x.dtype)


register_body(ERFINV, erfinv, _WIDE)
_register_in_double(NDTRI, partial(ndtri, xp=np), _WIDE)
_register_in_double(LGAMMA, lgamma, _ALL_BUT_BFLOAT16)
_register_in_double(DIGAMMA, digamma, _ALL_BUT_BFLOAT16)

POLYGAMMA = binary_op(
    "Polygamma",
    "float, double",
    "Derivative number `a` of digamma at `x`.",
    inputs=["a: T", "x: T"],
)
ZETA = binary_op(
    "Zeta",
    "float, double",
    "The Hurwitz zeta function: the sum of `(q + n) ** -x` over all n from 0.",
    inputs=["x: T", "q: T"],
)
IGAMMA = binary_op(
    "Igamma",
    FLOATS_SPEC,
    "The lower regularised incomplete gamma function.",
    inputs=["a: T", "x: T"],
)
IGAMMAC = binary_op(
    "Igammac",
    FLOATS_SPEC,
    "The upper regularised incomplete gamma function, 1 less the lower one.",
    inputs=["a: T", "x: T"],
)
IGAMMA_GRAD_A = binary_op(
    "IgammaGradA",
    "float, double",
    "The derivative of Igamma by `a`.",
    inputs=["a: T", "x: T"],
)

_register_in_double(POLYGAMMA, polygamma, _WIDE)
_register_in_double(ZETA, zeta, _WIDE)
for _type, _terms in _MAX_TERMS.items():
    _register_in_double(IGAMMA, partial(igamma, max_terms=_terms), (_type,))
    _register_in_double(IGAMMAC, partial(igammac, max_terms=_terms), (_type,))
    _register_in_double(IGAMMA_GRAD_A, partial(igamma_grad_a, max_terms=_terms), (_type,))
