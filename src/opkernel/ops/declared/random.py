"""Shapes of generators of seeds.

Source: TensorFlow core/ops/dataset_ops.cc, experimental_dataset_ops.cc.
"""

from opkernel.opdef import OpShapeInferenceFn, common_shapes
from opkernel.ops.declared.rules import fixed_shapes

__all__ = ["SHAPE_FNS"]

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "AnonymousRandomSeedGenerator": fixed_shapes((), ()),
    "AnonymousSeedGenerator": fixed_shapes((), ()),
    "DeleteRandomSeedGenerator": common_shapes.no_outputs,
    "DeleteSeedGenerator": common_shapes.no_outputs,
    "DummySeedGenerator": common_shapes.scalar_shape,
}
