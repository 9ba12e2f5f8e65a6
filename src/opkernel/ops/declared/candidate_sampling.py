"""Shapes of training with negative samples.

Source: TensorFlow core/ops/word2vec_ops.cc.
"""

from opkernel.opdef import OpShapeInferenceFn
from opkernel.opdef.common_shapes import no_outputs

__all__ = ["SHAPE_FNS"]

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {"NegTrain": no_outputs}
