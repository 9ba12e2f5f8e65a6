"""Shapes of ops that read and write files and checkpoints.

Source: TensorFlow core/ops/io_ops.cc, checkpoint_ops.cc, filesystem_ops.cc.
"""

from functools import partial

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    ShapeHandle,
    no_outputs,
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
from opkernel.ops.declared.shape_and_slice import parse_shape_and_slice


def _save(lists: int, c: InferenceContext) -> None:
    """A file name, then `lists` vectors with an element for each of the tensors that follow."""
    check_scalars(c, 0)
    for i in range(1, lists + 1):
        names = c.with_rank(c.input(i), 1)
        c.with_value(c.dim(names, 0), c.num_inputs() - lists - 1)


def _restored(c: InferenceContext, shape_and_slice: bytes | str) -> ShapeHandle:
    """The shape of a restored tensor, of which the checkpoint holds a slice; unknown if empty."""
    text = shape_and_slice
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    return c.make_shape(parse_shape_and_slice(text)) if text else c.unknown_shape()


def _restore_v2(c: InferenceContext) -> None:
    _, names, slices = check_input_ranks(c, 0, 1, 1)
    c.merge(names, slices)
    known = c.input_tensor(2)
    if known is None:
        unknown_shape(c)
        return
    texts = known.reshape(-1).tolist()
    if len(texts) != c.num_outputs():
        raise InvalidArgumentError("The number of shape_and_slice doesn't match tensor outputs.")
    set_outputs(c, [_restored(c, text) for text in texts])


def _restore_slice(c: InferenceContext) -> None:
    check_scalars(c, 0, 1, 2)
    known = c.input_tensor(2)
    c.set_output(0, c.unknown_shape() if known is None else _restored(c, known.item()))


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


def _matching_files(c: InferenceContext) -> None:
    c.with_rank_at_most(c.input(0), 1)
    c.set_output(0, c.vector(None))


def _generate_vocab_remapping(c: InferenceContext) -> None:
    check_scalars(c, 0, 1)
    set_outputs(c, [c.vector(c.get_attr("num_new_vocab")), c.scalar()])


def _load_and_remap_matrix(c: InferenceContext) -> None:
    check_scalars(c, 1)
    c.set_output(0, c.matrix(c.get_attr("num_rows"), c.get_attr("num_cols")))


_READERS = ("FixedLengthRecord", "Identity", "TFRecord", "TextLine", "WholeFile")
_READER_OPS = ("NumRecordsProduced", "NumWorkUnitsCompleted", "Read", "Reset", "SerializeState")

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "FileSystemSetConfiguration": no_outputs,
    "GenerateVocabRemapping": _generate_vocab_remapping,
    "LMDBReader": fixed_shapes((2,)),
    "LoadAndRemapMatrix": _load_and_remap_matrix,
    "MatchingFiles": _matching_files,
    "MergeV2Checkpoints": fixed_shapes(input_ranks=(1, 0)),
    "ReadFile": scalar_inputs_and_outputs,
    "ReaderReadUpTo": partial(_reader_read_up_to, 1),
    "ReaderReadUpToV2": partial(_reader_read_up_to, 0),
    "ReaderRestoreState": _reader_restore_state,
    "ReaderRestoreStateV2": scalar_inputs_and_outputs,
    "Restore": fixed_shapes(input_ranks=(0, 0)),
    "RecordInput": unknown_shape,
    "RestoreSlice": _restore_slice,
    "RestoreV2": _restore_v2,
    "Save": partial(_save, 1),
    "SaveSlices": partial(_save, 2),
    "SaveV2": partial(_save, 2),
    "ShardedFilename": scalar_inputs_and_outputs,
    "ShardedFilespec": scalar_inputs_and_outputs,
    "WriteFile": scalar_inputs_and_outputs,
    **{f"{name}Reader": fixed_shapes((2,)) for name in _READERS},
    **{f"{name}ReaderV2": scalar_shape for name in _READERS},
    **{f"Reader{name}": _reader_inputs_of_two_elements for name in _READER_OPS},
    **{f"Reader{name}V2": scalar_inputs_and_outputs for name in _READER_OPS},
}
