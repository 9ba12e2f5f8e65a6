"""Shapes of recurrent layers of cuDNN.

Source: TensorFlow core/ops/cudnn_rnn_ops.cc.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes.rules import (
    check_ranks,
    outputs_as_inputs,
    set_outputs,
)
from opkernel.opdef.common_shapes.shape_rule import shape_rule


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
    **dict.fromkeys(("CudnnRNN", "CudnnRNNV2"), _cudnn_rnn_shape),
    **dict.fromkeys(
        ("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"),
        outputs_as_inputs(0, 1, 2, 3),
    ),
    **dict.fromkeys(
        ("CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2"), shape_rule("-> [?]")
    ),
    **dict.fromkeys(
        ("CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2"), _params_to_canonical_shape
    ),
    "CudnnRNNParamsSize": shape_rule("[], [], [] -> [1]"),
    "CudnnRNNV3": _cudnn_rnn_v3_shape,
}
