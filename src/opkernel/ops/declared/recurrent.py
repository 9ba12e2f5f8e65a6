"""Shapes of recurrent layers of cuDNN, and of gradients of LSTM and GRU cells.

Source: TensorFlow core/ops/cudnn_rnn_ops.cc, rnn_ops.cc.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.ops.declared.rules import check_ranks, fixed_shapes, outputs_as_inputs, set_outputs

__all__ = ["SHAPE_FNS"]


def _block_lstm_grad_shape(c: InferenceContext) -> None:
    """The gradient of each of the inputs 1 to 8."""
    ranks = (3, 2, 2, 2, 1, 1, 1, 1)
    set_outputs(c, [c.with_rank(c.input(i), rank) for i, rank in enumerate(ranks, 1)])


def _lstm_block_cell_grad_shape(c: InferenceContext) -> None:
    """[batch, cells], [batch, 4 cells], and three times [cells]."""
    x, state = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
    batch, cells = c.dim(x, 0), c.dim(state, 1)
    gates = c.multiply(cells, 4)
    weights = c.vector(cells)
    set_outputs(c, [c.matrix(batch, cells), c.matrix(batch, gates), weights, weights, weights])


def _gru_block_cell_grad_shape(c: InferenceContext) -> None:
    """The gradients of x, twice [batch, cells], and [batch, 2 cells]."""
    x, state, weights = (c.with_rank(c.input(i), 2) for i in range(3))
    batch = c.dim(x, 0)
    cell = c.matrix(batch, c.dim(state, 1))
    set_outputs(c, [x, cell, cell, c.matrix(batch, c.dim(weights, 1))])


def _cudnn_rnn_shape(c: InferenceContext) -> None:
    """Sequences, the states and what the gradient needs, of unknown shape."""
    _set_cudnn_rnn_outputs(c, cell_state=1)


def _cudnn_rnn_v3_shape(c: InferenceContext) -> None:
    """As before; the state of the cells may be longer than the output, if that is projected."""
    _set_cudnn_rnn_outputs(c, cell_state=2)


def _set_cudnn_rnn_outputs(c: InferenceContext, cell_state: int) -> None:
    """Input `cell_state` has the shape of the state of the cells, which only an LSTM has."""
    check_ranks(c, 3, 0, 1)
    check_ranks(c, 1, *range(3, c.num_inputs()))
    cells = c.scalar()
    if c.get_attr("rnn_mode") == "lstm":
        check_ranks(c, 3, cell_state)
        cells = c.input(cell_state)
    directions = 2 if c.get_attr("direction") == "bidirectional" else 1
    sequence, state = c.input(0), c.input(1)
    units = c.multiply(c.dim(state, 2), directions)
    output = c.make_shape([c.dim(sequence, 0), c.dim(sequence, 1), units])
    set_outputs(c, [output, state, cells])


def _params_to_canonical_shape(c: InferenceContext) -> None:
    """As many matrices of weights and vectors of biases as the outputs say."""
    check_ranks(c, 1, 3)
    c.set_output("weights", [c.matrix(None, None) for _ in c.output("weights")])
    c.set_output("biases", [c.vector(None) for _ in c.output("biases")])


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(("BlockLSTMGrad", "BlockLSTMGradV2"), _block_lstm_grad_shape),
    **dict.fromkeys(("CudnnRNN", "CudnnRNNV2"), _cudnn_rnn_shape),
    **dict.fromkeys(
        ("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"),
        outputs_as_inputs(0, 1, 2, 3),
    ),
    **dict.fromkeys(
        ("CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2"), fixed_shapes((None,))
    ),
    **dict.fromkeys(
        ("CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2"), _params_to_canonical_shape
    ),
    "CudnnRNNParamsSize": fixed_shapes((1,), input_ranks=(0, 0, 0)),
    "CudnnRNNV3": _cudnn_rnn_v3_shape,
    "GRUBlockCellGrad": _gru_block_cell_grad_shape,
    "LSTMBlockCellGrad": _lstm_block_cell_grad_shape,
}
