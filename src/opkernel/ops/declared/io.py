"""Shapes of ops that read and write files and checkpoints.

Source: TensorFlow core/ops/io_ops.cc, checkpoint_ops.cc, filesystem_ops.cc.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn, unknown_shape
from opkernel.ops.declared.rules import check_scalars, fixed_shapes, set_outputs


def _generate_vocab_remapping(c: InferenceContext) -> None:
    check_scalars(c, 0, 1)
    set_outputs(c, [c.vector(c.get_attr("num_new_vocab")), c.scalar()])


def _load_and_remap_matrix(c: InferenceContext) -> None:
    check_scalars(c, 1)
    c.set_output(0, c.matrix(c.get_attr("num_rows"), c.get_attr("num_cols")))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "GenerateVocabRemapping": _generate_vocab_remapping,
    "LMDBReader": fixed_shapes((2,)),
    "LoadAndRemapMatrix": _load_and_remap_matrix,
    "RecordInput": unknown_shape,
}
