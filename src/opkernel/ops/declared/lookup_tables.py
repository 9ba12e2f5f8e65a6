"""Shapes of ops that fill lookup tables from elsewhere.

Source: TensorFlow core/ops/lookup_ops.cc.
"""

from opkernel.opdef import OpShapeInferenceFn
from opkernel.ops.declared.input_ranks import checked_no_outputs

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "InitializeTableFromDataset": checked_no_outputs("00"),
}
