"""The gradients that functions have: fewer than graphs have, as in TensorFlow.

TensorFlow's C++ knows the gradients of few ops (`OpTraits.function_gradient`), its Python many more. Gradients
that users register are known in both.

Source: TensorFlow core/ops/math_grad.cc, array_grad.cc, nn_grad.cc, functional_grad.cc, random_ops.cc.
"""

from __future__ import annotations

from collections.abc import Mapping

from opkernel.errors import NotFoundError
from opkernel.gradients.node_methods import nodes
from opkernel.gradients.registry import (
    GradientFunction,
    Gradients,
    is_of_catalogue,
    look_up_gradient,
)
from opkernel.graph import Operation, Tensor
from opkernel.opdef import global_op_registry


def _acosh_gradient(op: Operation, grad: Tensor) -> Gradients:
    return nodes.Mul(grad, nodes.Sinh(op.outputs[0]))


def _asinh_gradient(op: Operation, grad: Tensor) -> Gradients:
    return nodes.Mul(grad, nodes.Cosh(op.outputs[0]))


def _cast_gradient(op: Operation, grad: Tensor) -> Gradients:
    source = op.inputs[0].dtype
    return None if source.is_bool else nodes.Cast(grad, DstT=source)


UNLIKE_GRAPHS: Mapping[str, GradientFunction] = {
    "Acosh": _acosh_gradient,
    "Asinh": _asinh_gradient,
    "Cast": _cast_gradient,
}
"""Gradients of TensorFlow's C++ unlike its Python's: it multiplies where the derivatives of the
inverses of sinh and cosh are quotients, and casts to integers, too."""


def gradient_in_function(op_type: str) -> GradientFunction | None:
    """The gradient function of an op inside functions; None for an op whose gradient is zero.

    Raises:
        NotFoundError: the op has none.
    """
    known = global_op_registry().traits(op_type).function_gradient
    if known == "none":
        return None
    if not known and is_of_catalogue(op_type):
        raise NotFoundError(f"No gradient defined for op: {op_type}", op=op_type)
    return UNLIKE_GRAPHS.get(op_type) or look_up_gradient(op_type)
