"""Shapes of ops on strings that have no kernel.

Source: TensorFlow core/ops/string_ops.cc, parsing_ops.cc, word2vec_ops.cc.
"""

from functools import partial

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    broadcast_binary_op_shape,
    reduction_shape,
    segment_reduction_with_num_segments_shape,
    unchanged_shape,
    unknown_shape,
)
from opkernel.ops.declared.rules import check_input_ranks, check_scalars, fixed_shapes, set_outputs


def _matches_scalars(scalars: int, c: InferenceContext) -> None:
    """As input 0; the `scalars` inputs after it (patterns) are scalars."""
    check_scalars(c, *range(1, scalars + 1))
    c.set_output(0, c.input(0))


def _substr(c: InferenceContext) -> None:
    position, length = c.input(1), c.input(2)
    if c.rank_known(length):
        c.with_rank(position, c.rank(length))
    for i in range(c.rank(position)):
        # Unknown sizes only match unknown ones: the values are compared, not merged.
        if c.dim(position, i).value != c.dim(length, i).value:
            raise InvalidArgumentError(f"pos and len shapes must match: {position} vs. {length}")
    broadcast_binary_op_shape(c)


def _string_n_grams(c: InferenceContext) -> None:
    _, splits = check_input_ranks(c, 1, 1)
    set_outputs(c, [c.vector(None), splits])


def _unicode_decode(c: InferenceContext) -> None:
    splits = c.vector(c.add(c.num_elements(c.input(0)), 1))
    set_outputs(c, [splits, *[c.vector(None) for _ in range(1, c.num_outputs())]])


def _unicode_encode(c: InferenceContext) -> None:
    _, splits = check_input_ranks(c, 1, 1)
    c.set_output(0, c.vector(c.subtract(c.dim(splits, 0), 1)))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "DecodeBase64": unchanged_shape,
    "EncodeBase64": unchanged_shape,
    "ReduceJoin": reduction_shape,
    "RegexReplace": partial(_matches_scalars, 2),
    "Skipgram": unknown_shape,
    "StaticRegexReplace": unchanged_shape,
    "StringNGrams": _string_n_grams,
    "StringSplit": fixed_shapes((None, 2), (None,), (2,), input_ranks=(1, 0)),
    "StringSplitV2": fixed_shapes((None, 2), (None,), (2,), input_ranks=(1, 0)),
    "StringStrip": unchanged_shape,
    "StringToHashBucket": unchanged_shape,
    "StringToHashBucketStrong": unchanged_shape,
    "StringToNumber": unchanged_shape,
    "Substr": _substr,
    "UnicodeDecode": _unicode_decode,
    "UnicodeDecodeWithOffsets": _unicode_decode,
    "UnicodeEncode": _unicode_encode,
    "UnicodeScript": unchanged_shape,
    "UnicodeTranscode": unchanged_shape,
    "UnsortedSegmentJoin": segment_reduction_with_num_segments_shape,
    "_TensorToHashBucketFast": unchanged_shape,
}
