"""_UnaryOpsComposition: functions of one number after another, which graph optimisers put in the place of their nodes.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/unary_ops_composition.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import Device, OpKernelConstruction, create_op_kernel
from opkernel.kernel.function_kernel import FunctionKernel
from opkernel.opdef import attr_from_python, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.input_checks import require
from opkernel.ops.registration import register_kernel
from opkernel.proto import NodeDef
from opkernel.types import DataType

_OPS = frozenset(
    [
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Cos",
        "Cosh",
        "Elu",
        "Exp",
        "Expm1",
        "Floor",
        "Inv",
        "Log",
        "Log1p",
        "Neg",
        "Reciprocal",
        "Relu",
        "Relu6",
        "Rint",
        "Round",
        "Rsqrt",
        "Selu",
        "Sigmoid",
        "Sin",
        "Sinh",
        "Sqrt",
        "Square",
        "Tan",
        "Tanh",
    ]
)
"""The ops that TensorFlow's kernel composes."""

UNARY_OPS_COMPOSITION = register_op(
    "_UnaryOpsComposition(x: T) -> y: T",
    attrs=["T: {float, half, double}", "op_names: list(string)"],
    shape_fn=unchanged_shape,
    traits="pointwise cannot_fail",
    doc="The ops that `op_names` lists, one after the other, of each element.",
)


@register_kernel(
    UNARY_OPS_COMPOSITION,
    types={"T": (DataType.DT_FLOAT, DataType.DT_HALF, DataType.DT_DOUBLE)},
    kind="elementwise",
    factory=True,
)
def unary_ops_composition(
    *, T: DataType, op_names: list[str], construction: OpKernelConstruction
) -> Callable[[Any], Any]:
    require(len(op_names) > 0, "Unary op composition must have at least one op")
    functions = [_function(op, T, construction.device) for op in op_names]

    def composed(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    return composed


def _function(op: str, dtype: DataType, device: Device) -> Callable[[Any], Any]:
    """The function that computes an op of elements of a type."""
    if op not in _OPS:
        raise InvalidArgumentError(f"Do not have a compute function registered for op: {op}")
    node = NodeDef(name=op, op=op, input=["x"], attr={"T": attr_from_python(dtype, "type")})
    kernel = create_op_kernel(device, node)
    assert isinstance(kernel, FunctionKernel)
    return kernel.function
