"""Shapes of ops on strings that have no kernel.

Source: TensorFlow core/ops/string_ops.cc, parsing_ops.cc, word2vec_ops.cc.
"""

from opkernel.opdef import OpShapeInferenceFn, unchanged_shape, unknown_shape

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "Skipgram": unknown_shape,
    "_TensorToHashBucketFast": unchanged_shape,
}
