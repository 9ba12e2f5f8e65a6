"""Shapes of ops of connectionist temporal classification: inputs are [time, batch, classes].

Source: TensorFlow core/ops/ctc_ops.cc.
"""

from opkernel.opdef import DimensionHandle, InferenceContext, OpShapeInferenceFn
from opkernel.ops.declared.rules import check_input_ranks, set_outputs


def _ctc_loss(c: InferenceContext) -> None:
    inputs, indices, values, lengths = check_input_ranks(c, 3, 2, 1, 1)
    c.merge(c.dim(indices, 0), c.dim(values, 0))
    batch = c.merge(c.dim(inputs, 1), c.dim(lengths, 0))
    set_outputs(c, [c.vector(batch), c.replace_dim(inputs, 1, batch)])


def _batch_size(c: InferenceContext) -> DimensionHandle:
    inputs, lengths = check_input_ranks(c, 3, 1)
    return c.merge(c.dim(inputs, 1), c.dim(lengths, 0))


def _ctc_greedy_decoder(c: InferenceContext) -> None:
    batch = _batch_size(c)
    decoded = c.unknown_dim()
    set_outputs(c, [c.matrix(decoded, 2), c.vector(decoded), c.vector(2), c.matrix(batch, 1)])


def _ctc_beam_search_decoder(c: InferenceContext) -> None:
    batch = _batch_size(c)
    paths = c.get_attr("top_paths")
    indices = [c.matrix(None, 2) for _ in range(paths)]
    values = [c.vector(None) for _ in range(paths)]
    shapes = [c.vector(2) for _ in range(paths)]
    set_outputs(c, [*indices, *values, *shapes, c.matrix(batch, paths)])


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "CTCBeamSearchDecoder": _ctc_beam_search_decoder,
    "CTCGreedyDecoder": _ctc_greedy_decoder,
    "CTCLoss": _ctc_loss,
    "CTCLossV2": _ctc_loss,
}
