"""Gradients of complex numbers and their parts."""

from typing import Any

import opkernel.gradients as g
from opkernel.types import DataType


@g.register_gradient("Complex")
def complex_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    real, imag = op.inputs
    parts = {"Tout": real.dtype.base}
    return g.sum_to_operands(real, imag, g.nodes.Real(grad, **parts), g.nodes.Imag(grad, **parts))


@g.register_gradient("Real")
def real_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return _complex(grad, 0)


@g.register_gradient("Imag")
def imag_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return _complex(0, grad)


@g.register_gradient("Angle")
def angle_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    (x,) = op.inputs
    parts = {"Tout": op.outputs[0].dtype}
    turned = _complex(g.nodes.Imag(x, **parts), g.nodes.Real(x, **parts))
    return g.nodes.Mul(g.nodes.Neg(_complex(grad, 0)), g.nodes.Reciprocal(turned))


@g.register_gradient("Conj")
def conj_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.Conj(grad)


@g.register_gradient("ComplexAbs")
def complex_abs_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    weighted = g.nodes.Mul(_complex(grad, g.zeros_like(grad)), op.inputs[0])
    return g.nodes.DivNoNan(weighted, _complex(op.outputs[0], g.zeros_like(grad)))


def _complex(real: Any, imag: Any) -> Any:
    part = real if isinstance(real, g.Tensor) else imag
    is_double = part.dtype.base == DataType.DT_DOUBLE
    return g.nodes.Complex(
        real, imag, Tout=DataType.DT_COMPLEX128 if is_double else DataType.DT_COMPLEX64
    )
