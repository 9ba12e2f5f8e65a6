"""Complex numbers and their parts.

Complex arithmetic as Eigen does it, which decides what zeros and infinities give.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/cwise_op_complex.cc, cwise_op_real.cc, cwise_op_imag.cc,
cwise_op_arg.cc, cwise_op_abs.cc, cwise_op_conj.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.kernel import OpKernelConstruction
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import broadcast_binary_op_shape, unchanged_shape
from opkernel.ops.kernel_types import COMPLEX, REAL_OF
from opkernel.ops.math.elementwise import POINTWISE, register_ufunc
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

__all__ = ["complex_from_parts", "complex_quotient"]


def complex_from_parts(real: Any, imag: Any, xp: Any) -> Any:
    """The complex tensor of two real ones; `real + 1j * imag` would make NaN of infinities."""
    if xp is not np:
        return real + 1j * imag
    shape = np.broadcast_shapes(real.shape, imag.shape)
    result = np.empty(shape, np.result_type(real.dtype, np.complex64))
    result.real, result.imag = real, imag
    return result


def complex_quotient(x: Any, y: Any, *, xp: Any) -> Any:
    """`x / y`, with `y` scaled so that its square neither overflows nor vanishes."""
    scale = xp.maximum(xp.abs(y.real), xp.abs(y.imag))
    real, imag = y.real / scale, y.imag / scale
    norm = real * real + imag * imag
    return complex_from_parts(
        (x.real * real + x.imag * imag) / norm / scale,
        (x.imag * real - x.real * imag) / norm / scale,
        xp,
    )


_COMPLEX_ATTR = "T: {complex64, complex128} = DT_COMPLEX64"
_REAL_ATTR = "Tout: {float, double} = DT_FLOAT"

MAKE_COMPLEX = register_op(
    "Complex",
    inputs=["real: T", "imag: T"],
    outputs=["out: Tout"],
    attrs=[
        "T: {float, double} = DT_FLOAT",
        "Tout: {complex64, complex128} = DT_COMPLEX64",
    ],
    shape_fn=broadcast_binary_op_shape,
    traits=f"{POINTWISE} cost=linear function_gradient=yes",
    doc="The complex numbers `real + imag * i`.",
)

for _complex, _real in REAL_OF.items():

    @register_kernel(MAKE_COMPLEX, types={"T": _real, "Tout": _complex}, kind="elementwise")
    def make_complex(real: Any, imag: Any, *, xp: Any) -> Any:
        return complex_from_parts(real, imag, xp)


CONJ = register_op(
    "Conj",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["T: {complex64, complex128, variant} = DT_COMPLEX64"],
    shape_fn=unchanged_shape,
    traits=f"{POINTWISE} cheap involution function_gradient=yes",
    doc="The complex conjugate of `input`.",
)
register_ufunc(CONJ, np.conjugate, COMPLEX)


def _declare_part(name: str, doc: str, part: Callable[[Any, Any], Any]) -> OpHandle:
    """An op that gives a real number for each complex one; `part` takes the tensor and `xp`."""
    op = register_op(
        name,
        inputs=["input: T"],
        outputs=["output: Tout"],
        attrs=[_COMPLEX_ATTR, _REAL_ATTR],
        shape_fn=unchanged_shape,
        traits=f"{POINTWISE} function_gradient=yes",
        doc=doc,
    )
    for complex_type, real_type in REAL_OF.items():

        @register_kernel(op, types={"T": complex_type, "Tout": real_type}, kind="elementwise")
        def kernel(input: Any, *, xp: Any) -> Any:
            return part(input, xp)

    return op


REAL = _declare_part("Real", "The real part of `input`.", lambda x, xp: xp.real(x).copy())
IMAG = _declare_part("Imag", "The imaginary part of `input`.", lambda x, xp: xp.imag(x).copy())
ANGLE = _declare_part(
    "Angle",
    "The angle of `input` in the complex plane, in radians.",
    lambda x, xp: xp.arctan2(xp.imag(x), xp.real(x)),
)

COMPLEX_ABS = register_op(
    "ComplexAbs",
    inputs=["x: T"],
    outputs=["y: Tout"],
    attrs=[_COMPLEX_ATTR, _REAL_ATTR],
    shape_fn=unchanged_shape,
    traits=POINTWISE,
    doc="The distance of `x` from 0.",
)


@register_kernel(COMPLEX_ABS, types={"T": COMPLEX}, kind="elementwise", factory=True)
def complex_abs(*, construction: OpKernelConstruction, T: DataType, xp: Any) -> Callable[..., Any]:
    construction.match_signature([T], [REAL_OF[T]])
    ufunc: Callable[..., Any] = xp.abs
    return ufunc
