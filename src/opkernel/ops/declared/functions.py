"""Shapes of ops of functions, of resources that no other module has, and of TensorFlow's own tests.

Source: TensorFlow core/ops/functional_ops.cc, control_flow_ops.cc, dataset_ops.cc,
resource_variable_ops.cc, python/framework/test_ops.cc.
"""

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)
from opkernel.opdef.common_shapes import no_outputs
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require
from opkernel.types import DataType


def _symbolic_gradient(c: InferenceContext) -> None:
    """A gradient has the shape of its input; the gradient of a resource has the shape of its contents."""
    require(c.num_inputs() >= c.num_outputs(), "len(inputs) < len(outputs)")
    for i, dtype in enumerate(c.get_attr("Tin")[: c.num_outputs()]):
        shape = c.input(i)
        if dtype == DataType.DT_RESOURCE:
            held = c.input_handle_shapes_and_types(i)
            shape = held[0].shape if held else c.unknown_shape()
        c.set_output(i, shape)


_SCALARS = (
    "DevicePlacementOp GraphDefVersion IsTensorFloat32Enabled KernelLabel "
    "ResourceInitializedOp StubResourceHandleOp"
)
_UNKNOWN = "ConstructionFails GetDeadline Old SleepOp TestAttr"

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_SCALARS.split(), scalar_shape),
    **dict.fromkeys(("ResourceCreateOp", "ResourceUsingOp"), no_outputs),
    **dict.fromkeys(_UNKNOWN.split(), unknown_shape),
    "KernelLabelRequired": shape_rule("[?] -> []"),
    "SleepIdentityOp": unchanged_shape,
    "SymbolicGradient": _symbolic_gradient,
}
