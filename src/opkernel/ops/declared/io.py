"""Shapes of ops that read and write files and checkpoints.

Source: TensorFlow core/ops/io_ops.cc, checkpoint_ops.cc, filesystem_ops.cc.
"""

from functools import partial

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    scalar_shape,
    unknown_shape,
)
from opkernel.ops.declared.rules import (
    check_input_ranks,
    check_scalars,
    fixed_shapes,
    scalar_inputs_and_outputs,
    set_outputs,
)


def _reader_inputs_of_two_elements(c: InferenceContext) -> None:
    """All inputs are vectors of two elements, as references to readers and queues are."""
    for i in range(c.num_inputs()):
        c.with_value(c.dim(c.with_rank(c.input(i), 1), 0), 2)
    set_outputs(c, [c.scalar() for _ in range(c.num_outputs())])


def _reader_restore_state(c: InferenceContext) -> None:
    reader = c.with_rank(c.input(0), 1)
    c.with_value(c.dim(reader, 0), 2)
    check_scalars(c, 1)


def _reader_read_up_to(handle_rank: int, c: InferenceContext) -> None:
    check_input_ranks(c, handle_rank, handle_rank, 0)
    set_outputs(c, [c.vector(None)] * 2)


def _generate_vocab_remapping(c: InferenceContext) -> None:
    check_scalars(c, 0, 1)
    set_outputs(c, [c.vector(c.get_attr("num_new_vocab")), c.scalar()])


def _load_and_remap_matrix(c: InferenceContext) -> None:
    check_scalars(c, 1)
    c.set_output(0, c.matrix(c.get_attr("num_rows"), c.get_attr("num_cols")))


_READERS = ("FixedLengthRecord", "Identity", "TFRecord", "TextLine", "WholeFile")
_READER_OPS = ("NumRecordsProduced", "NumWorkUnitsCompleted", "Read", "Reset", "SerializeState")

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "GenerateVocabRemapping": _generate_vocab_remapping,
    "LMDBReader": fixed_shapes((2,)),
    "LoadAndRemapMatrix": _load_and_remap_matrix,
    "ReaderReadUpTo": partial(_reader_read_up_to, 1),
    "ReaderReadUpToV2": partial(_reader_read_up_to, 0),
    "ReaderRestoreState": _reader_restore_state,
    "ReaderRestoreStateV2": scalar_inputs_and_outputs,
    "RecordInput": unknown_shape,
    **{f"{name}Reader": fixed_shapes((2,)) for name in _READERS},
    **{f"{name}ReaderV2": scalar_shape for name in _READERS},
    **{f"Reader{name}": _reader_inputs_of_two_elements for name in _READER_OPS},
    **{f"Reader{name}V2": scalar_inputs_and_outputs for name in _READER_OPS},
}
