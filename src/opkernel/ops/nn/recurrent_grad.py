"""Gradients of LSTM and GRU cells, and of whole LSTM layers.

With the names of `recurrent`, a bar for the gradient by what a gate's logistic function or tanh was
given, and . for the gradient by an output, those of an LSTM cell are

    o_ = co h. o (1 - o),  cs. += o h. (1 - co^2)
    i_ = ci cs. i (1 - i),  ci_ = i cs. (1 - ci^2),  f_ = cs_prev cs. f (1 - f)

Source: TensorFlow core/ops/rnn_ops.cc, core/kernels/rnn/lstm_ops.{h,cc}, gru_ops.{h,cc}.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_equal
from opkernel.ops.nn.recurrent import (
    LSTM_INPUTS,
    LSTM_OUTPUTS,
    LSTM_TYPES,
    LstmWeights,
    check_gru,
    check_rank,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


def block_lstm_grad_shape(c: InferenceContext) -> None:
    """The gradient of each of the inputs 1 to 8."""
    for output, rank in enumerate((3, 2, 2, 2, 1, 1, 1, 1)):
        c.set_output(output, c.with_rank(c.input(output + 1), rank))


def lstm_block_cell_grad_shape(c: InferenceContext) -> None:
    """[batch, cells], [batch, 4 cells], and three times [cells]."""
    x, state = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
    batch, cells = c.dim(x, 0), c.dim(state, 1)
    c.set_output(0, c.matrix(batch, cells))
    c.set_output(1, c.matrix(batch, c.multiply(cells, 4)))
    for output in (2, 3, 4):
        c.set_output(output, c.vector(cells))


LSTM_BLOCK_CELL_GRAD = register_op(
    "LSTMBlockCellGrad",
    inputs=[*LSTM_INPUTS, *LSTM_OUTPUTS[:-1], "cs_grad: T", "h_grad: T"],
    outputs=["cs_prev_grad: T", "dicfo: T", "wci_grad: T", "wcf_grad: T", "wco_grad: T"],
    attrs=["use_peephole: bool", "T: {half, float}"],
    shape_fn=lstm_block_cell_grad_shape,
    doc="The gradients of an LSTMBlockCell by its state, by [x, h] w + b, and by the peepholes.",
)
for _version in ("", "V2"):
    register_op(
        f"BlockLSTMGrad{_version}",
        inputs=["seq_len_max: int64", *LSTM_INPUTS, *LSTM_OUTPUTS, "cs_grad: T", "h_grad: T"],
        outputs=[f"{spec.partition(':')[0]}_grad: T" for spec in LSTM_INPUTS],
        attrs=["use_peephole: bool", "T: {half, float}"],
        shape_fn=block_lstm_grad_shape,
        doc=f"The gradients of a BlockLSTM{_version} by its inputs.",
    )
GRU_BLOCK_CELL_GRAD = register_op(
    "GRUBlockCellGrad",
    inputs=[
        *(f"{name}: T" for name in ("x", "h_prev", "w_ru", "w_c", "b_ru", "b_c")),
        *(f"{name}: T" for name in ("r", "u", "c", "d_h")),
    ],
    outputs=["d_x: T", "d_h_prev: T", "d_c_bar: T", "d_r_bar_u_bar: T"],
    attrs=["T: {float}"],
    shape_fn=shape_rule(
        "[batch, ?], [?, cells], [?, gates] -> in0, [batch, cells], [batch, cells], [batch, gates]"
    ),
    doc="The gradients of a GRUBlockCell by its inputs, and by what the tanh and the gates took.",
)


class _Backwards(NamedTuple):
    """One step of an LSTM, backwards."""

    weights: LstmWeights
    order: tuple[int, int, int, int]
    use_peephole: bool

    def step(self, cs_prev: Any, outputs: Sequence[Any], cs_grad: Any, h_grad: Any) -> Any:
        """The gradients by the state before, by [x, h] w + b, and by the three peepholes.

        Args:
            cs_prev: the state before.
            outputs: i, cs, f, o, ci and co.
            cs_grad: the gradient by the state, as far as it does not come through `h`.
            h_grad: the gradient by the output.
        """
        i, cs, f, o, ci, co = outputs
        at_o = co * h_grad * o * (1 - o)
        cs_grad = cs_grad + o * h_grad * (1 - co * co)
        if self.use_peephole:
            cs_grad = cs_grad + at_o * self.weights.wco
        at_i, at_f = ci * cs_grad * i * (1 - i), cs_prev * cs_grad * f * (1 - f)
        back = cs_grad * f
        peepholes = [np.zeros(cs.shape[-1], cs.dtype)] * 3
        if self.use_peephole:
            back = back + at_i * self.weights.wci + at_f * self.weights.wcf
            peepholes = [(at_i * cs_prev).sum(0), (at_f * cs_prev).sum(0), (at_o * cs).sum(0)]
        gates = (at_i, i * cs_grad * (1 - ci * ci), at_f, at_o)
        ordered = sorted(zip(self.order, gates, strict=True), key=lambda entry: entry[0])
        return back, np.concatenate([gate for _, gate in ordered], axis=1), peepholes


@register_kernel(LSTM_BLOCK_CELL_GRAD, types={"T": LSTM_TYPES}, factory=True)
def lstm_block_cell_grad(*, use_peephole: bool, T: DataType) -> Callable[..., Any]:
    def kernel(x: Any, cs_prev: Any, h_prev: Any, *others: Any) -> Any:
        check_rank(2, x=x)
        weights = LstmWeights.checked(x, cs_prev, h_prev, *others[:5])
        _check_cells(cs_prev.shape, others[5:])
        cs_prev, *outputs = (tensor.astype(np.float32) for tensor in (cs_prev, *others[5:]))
        backwards = _Backwards(weights, (0, 1, 2, 3), use_peephole)
        back, gates, peepholes = backwards.step(cs_prev, outputs[:6], *outputs[6:])
        return tuple(out.astype(T.numpy_dtype) for out in (back, gates, *peepholes))

    return kernel


def _check_cells(shape: tuple[int, ...], tensors: Sequence[Any]) -> None:
    """Raise InvalidArgumentError unless tensors are of the shape of the state."""
    for tensor in tensors:
        require_equal(tensor.shape, shape, "{} is not the shape of the state, {}")


def _through_time(
    backwards: _Backwards, steps: int, x: Any, cs_prev: Any, h_prev: Any, *others: Any
) -> list[Any]:
    """The gradients of the inputs of a layer: by the inputs of its steps, its state and its weights.

    The products for all inputs, and those for the weights, are one product each.
    """
    *outputs, h, cs_grad, h_grad = others
    cs, w = outputs[1], backwards.weights.w
    inputs, cells = x.shape[2], cs_prev.shape[1]
    of_recurrence = w[inputs:].T
    gates = np.zeros((*x.shape[:2], 4 * cells), np.float32)
    by_peepholes = [np.zeros(cells, np.float32) for _ in range(3)]
    back, h_back = np.zeros_like(cs_prev), np.zeros_like(h_prev)
    for time in in_time(reversed(range(steps)), SLOW):
        back, gates[time], shares = backwards.step(
            cs[time - 1] if time else cs_prev,
            [output[time] for output in outputs],
            cs_grad[time] + back,
            h_grad[time] + h_back,
        )
        h_back = gates[time] @ of_recurrence
        for total, share in zip(by_peepholes, shares, strict=True):
            total += share
    before = np.concatenate([h_prev[None], h[:-1]])[: len(x)]
    rows = np.concatenate([x, before], axis=2)[:steps].reshape(-1, inputs + cells)
    by_weights = rows.T @ gates[:steps].reshape(-1, 4 * cells)
    by_x = (gates.reshape(-1, 4 * cells) @ w[:inputs].T).reshape(x.shape)
    return [by_x, back, h_back, by_weights, *by_peepholes, gates.sum((0, 1))]


def _register_block_lstm_grad(op: str, order: tuple[int, int, int, int]) -> None:
    @register_kernel(op, types={"T": LSTM_TYPES}, factory=True)
    def block_lstm_grad(*, use_peephole: bool, T: DataType) -> Callable[..., Any]:
        def kernel(seq_len_max: Any, x: Any, cs_prev: Any, h_prev: Any, *others: Any) -> Any:
            check_rank(0, **{"`seq_len_max_tensor`": seq_len_max})
            check_rank(3, x=x)
            weights = LstmWeights.checked(x, cs_prev, h_prev, *others[:5])
            _check_cells((*x.shape[:2], cs_prev.shape[1]), others[5:])
            steps = min(max(int(seq_len_max), 0), len(x))
            wide = [tensor.astype(np.float32) for tensor in (x, cs_prev, h_prev, *others[5:])]
            found = _through_time(_Backwards(weights, order, use_peephole), steps, *wide)
            return tuple(out.astype(T.numpy_dtype) for out in found)

        return kernel


_register_block_lstm_grad("BlockLSTMGrad", (0, 1, 2, 3))
_register_block_lstm_grad("BlockLSTMGradV2", (0, 2, 1, 3))


@register_kernel(GRU_BLOCK_CELL_GRAD, types={"T": DataType.DT_FLOAT})
def gru_block_cell_grad(
    x: Any,
    h_prev: Any,
    w_ru: Any,
    w_c: Any,
    b_ru: Any,
    b_c: Any,
    r: Any,
    u: Any,
    c: Any,
    d_h: Any,
    *,
    xp: Any,
) -> Any:
    check_gru(x, h_prev, w_ru, w_c, b_ru, b_c)
    _check_cells(h_prev.shape, (r, u, c, d_h))
    inputs = x.shape[1]
    at_c = d_h * (1 - u) * (1 - c * c)
    by_candidate = xp.matmul(at_c, w_c.T)
    by_reset = by_candidate[:, inputs:]
    gates = [by_reset * h_prev * r * (1 - r), d_h * (h_prev - c) * u * (1 - u)]
    at_gates = xp.concat(gates, axis=1)
    by_gates = xp.matmul(at_gates, w_ru.T)
    by_x = by_candidate[:, :inputs] + by_gates[:, :inputs]
    by_h = by_gates[:, inputs:] + by_reset * r + d_h * u
    return by_x, by_h, at_c, at_gates
