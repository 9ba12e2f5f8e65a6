"""LSTM and GRU cells as one op, and whole LSTM layers.

With s the logistic function and [x, h] the inputs beside the last output, a cell of an LSTM is

    i, ci, f, o = split([x, h] w + b)
    cs' = tanh(ci) s(i) + cs s(f + forget_bias),  h' = tanh(cs') s(o)

and one of a GRU

    r, u = s(split([x, h] w_ru + b_ru)),  c = tanh([x, h r] w_c + b_c),  h' = (1 - u) c + u h

Source: TensorFlow core/ops/rnn_ops.cc, core/kernels/rnn/lstm_ops.{h,cc}, gru_ops.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation, from_attrs
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.input_checks import require_equal, require_rank, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

__all__ = ["LSTM_INPUTS", "LSTM_OUTPUTS", "LSTM_TYPES", "LstmWeights", "check_gru", "check_rank"]

LSTM_INPUTS = ["x: T", "cs_prev: T", "h_prev: T", "w: T", "wci: T", "wcf: T", "wco: T", "b: T"]
LSTM_OUTPUTS = ["i: T", "cs: T", "f: T", "o: T", "ci: T", "co: T", "h: T"]
LSTM_TYPES = (DataType.DT_HALF, DataType.DT_FLOAT)
_LSTM_ATTRS = [
    "forget_bias: float = 1.0",
    "cell_clip: float = 3.0",
    "use_peephole: bool = false",
    "T: {half, float}",
]
_LSTM_DOC = """
    cs_prev, h_prev: [batch, cells]: the state and the output before.
    w, b: [inputs + cells, 4 cells] and [4 cells], the gates in the order {order}.
    wci, wcf, wco: [cells]: weights of the state in the gates i, f and o, with `use_peephole`.
    cell_clip: The state is no larger, in absolute value; 0 for no limit.
    i, cs, f, o, ci, co, h: The gates, the state, its tanh and the output.
    """


def _set_all_outputs(c: InferenceContext, dims: Sequence[Any]) -> None:
    for index in range(c.num_outputs()):
        c.set_output(index, c.make_shape(dims))


def cell_shape(c: InferenceContext) -> None:
    """Outputs are [batch, cells]."""
    x, state = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
    _set_all_outputs(c, [c.dim(x, 0), c.dim(state, 1)])


def block_lstm_shape(c: InferenceContext) -> None:
    """Outputs are [time, batch, cells]."""
    x, b = c.with_rank(c.input(1), 3), c.with_rank(c.input(c.num_inputs() - 1), 1)
    cells = c.divide(c.dim(b, 0), 4, evenly_divisible=True)
    _set_all_outputs(c, [c.dim(x, 0), c.dim(x, 1), cells])


LSTM_BLOCK_CELL = register_op(
    "LSTMBlockCell",
    inputs=LSTM_INPUTS,
    outputs=LSTM_OUTPUTS,
    attrs=_LSTM_ATTRS,
    shape_fn=cell_shape,
    doc=f"""One step of an LSTM.

    x: [batch, inputs].{_LSTM_DOC.format(order="i, ci, f, o")}""",
)
BLOCK_LSTM = register_op(
    "BlockLSTM",
    inputs=["seq_len_max: int64", *LSTM_INPUTS],
    outputs=LSTM_OUTPUTS,
    attrs=_LSTM_ATTRS,
    shape_fn=block_lstm_shape,
    doc=f"""An LSTM over the first `seq_len_max` steps of a sequence; zeros after them.

    x: [time, batch, inputs].{_LSTM_DOC.format(order="i, ci, f, o")}""",
)
BLOCK_LSTM_V2 = register_op(
    "BlockLSTMV2",
    inputs=["seq_len_max: int64", *LSTM_INPUTS],
    outputs=LSTM_OUTPUTS,
    attrs=["cell_clip: float = 0.0", "use_peephole: bool = false", "T: {half, float}"],
    shape_fn=block_lstm_shape,
    doc=f"""An LSTM over the first `seq_len_max` steps of a sequence; zeros after them.

    x: [time, batch, inputs].{_LSTM_DOC.format(order="i, f, ci, o")}""",
)
GRU_BLOCK_CELL = register_op(
    "GRUBlockCell",
    inputs=["x: T", "h_prev: T", "w_ru: T", "w_c: T", "b_ru: T", "b_c: T"],
    outputs=["r: T", "u: T", "c: T", "h: T"],
    attrs=["T: {float}"],
    shape_fn=cell_shape,
    doc="""One step of a GRU.

    x: [batch, inputs].
    h_prev: [batch, cells]: the output before.
    w_ru, b_ru: [inputs + cells, 2 cells] and [2 cells], of the gates r and u.
    w_c, b_c: [inputs + cells, cells] and [cells], of the candidate c.
    """,
)


def check_rank(rank: int, **tensors: Any) -> None:
    for name, tensor in tensors.items():
        require_rank(tensor, rank, f"{name} must be rank {rank} but is rank {tensor.ndim}")


def check_size(what: str, size: int, expected: int) -> None:
    require_equal(size, expected, f"{what}: {{}} vs. {{}}")


def _sigmoid(x: Any, xp: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


class LstmWeights(NamedTuple):
    """The weights of an LSTM, in float."""

    w: Any
    wci: Any
    wcf: Any
    wco: Any
    b: Any

    @classmethod
    def checked(cls, x: Any, cs_prev: Any, h_prev: Any, *weights: Any) -> LstmWeights:
        """The weights that fit the inputs [..., batch, inputs] and the state.

        Raises:
            InvalidArgumentError: they do not fit.
        """
        w, wci, wcf, wco, b = weights
        check_rank(2, cs_prev=cs_prev, h_prev=h_prev, w=w)
        check_rank(1, wci_tensor=wci, wcf_tensor=wcf, wco_tensor=wco, b=b)
        batch, inputs = x.shape[-2:]
        cells = cs_prev.shape[1]
        check_size("cs_prev.dims(0) != batch_size", cs_prev.shape[0], batch)
        check_size("h_prev.dims(0) != batch_size", h_prev.shape[0], batch)
        check_size("h_prev.dims(1) != cell_size", h_prev.shape[1], cells)
        check_size("w.dim_size(0) != input_size + cell_size", w.shape[0], inputs + cells)
        check_size("w.dim_size(1) != cell_size * 4", w.shape[1], cells * 4)
        check_size("b.dim_size(0) != cell_size * 4", b.shape[0], cells * 4)
        for name, peephole in (("wci", wci), ("wcf", wcf), ("wco", wco)):
            check_size(f"{name}.dim_size(0) != cell_size", peephole.shape[0], cells)
        return cls(*(tensor.astype(np.float32) for tensor in weights))


class _LstmCell(NamedTuple):
    """The cell that the attrs of a node describe; the gates i, ci, f, o stand in `order`."""

    order: tuple[int, int, int, int]
    forget_bias: float
    cell_clip: float
    use_peephole: bool
    xp: Any

    def step(self, gates: Any, cs: Any, weights: LstmWeights) -> tuple[Any, ...]:
        """The outputs of the op, from [x, h] w + b and the state before."""
        xp, cells = self.xp, cs.shape[-1]
        i, ci, f, o = (gates[..., k * cells : (k + 1) * cells] for k in self.order)
        if self.use_peephole:
            i, f = i + cs * weights.wci, f + cs * weights.wcf
        i, ci, f = _sigmoid(i, xp), xp.tanh(ci), _sigmoid(f + self.forget_bias, xp)
        cs = ci * i + cs * f
        if self.cell_clip > 0:
            cs = xp.clip(cs, -self.cell_clip, self.cell_clip)
        o = _sigmoid(o + cs * weights.wco if self.use_peephole else o, xp)
        co = xp.tanh(cs)
        return i, cs, f, o, ci, co, co * o


@register_kernel(LSTM_BLOCK_CELL, types={"T": LSTM_TYPES}, factory=True)
@from_attrs(cell=partial(_LstmCell, (0, 1, 2, 3)))
def lstm_block_cell(*, cell: _LstmCell, T: DataType, xp: Any) -> Callable[..., Any]:

    def kernel(
        x: Any, cs_prev: Any, h_prev: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any
    ) -> Any:
        check_rank(2, x=x)
        weights = LstmWeights.checked(x, cs_prev, h_prev, w, wci, wcf, wco, b)
        x, cs, h = (tensor.astype(np.float32) for tensor in (x, cs_prev, h_prev))
        gates = xp.matmul(xp.concat([x, h], axis=1), weights.w) + weights.b
        return tuple(out.astype(T.numpy_dtype) for out in cell.step(gates, cs, weights))

    return kernel


def _block_lstm(cell: _LstmCell, T: DataType) -> Callable[..., Any]:
    """The kernel of a layer; the products of all inputs are one product."""

    def kernel(
        seq_len_max: Any,
        x: Any,
        cs_prev: Any,
        h_prev: Any,
        w: Any,
        wci: Any,
        wcf: Any,
        wco: Any,
        b: Any,
    ) -> Any:
        check_rank(0, **{"`seq_len_max_tensor`": seq_len_max})
        require_rank(x, 3, "x must be 3D")
        weights = LstmWeights.checked(x, cs_prev, h_prev, w, wci, wcf, wco, b)
        steps, inputs = int(seq_len_max), x.shape[2]
        if steps > x.shape[0]:
            raise InvalidArgumentError(f"seq_len_max {steps} is more than {x.shape[0]} time steps")
        shape = check_allocation((*x.shape[:2], cs_prev.shape[1]), T)
        outputs = [np.zeros(shape, T.numpy_dtype) for _ in LSTM_OUTPUTS]
        of_inputs = np.matmul(x[: max(steps, 0)].astype(np.float32), weights.w[:inputs])
        of_inputs += weights.b
        recurrent = weights.w[inputs:]
        cs, h = (tensor.astype(np.float32) for tensor in (cs_prev, h_prev))
        for time, gates in in_time(enumerate(of_inputs), SLOW):
            results = cell.step(gates + np.matmul(h, recurrent), cs, weights)
            for output, result in zip(outputs, results, strict=True):
                output[time] = result
            cs, h = (outputs[k][time].astype(np.float32) for k in (1, 6))
        return tuple(outputs)

    return kernel


@register_kernel(BLOCK_LSTM, types={"T": LSTM_TYPES}, factory=True)
@from_attrs(cell=partial(_LstmCell, (0, 1, 2, 3), xp=np))
def block_lstm(*, cell: _LstmCell, T: DataType) -> Callable[..., Any]:
    return _block_lstm(cell, T)


@register_kernel(BLOCK_LSTM_V2, types={"T": LSTM_TYPES}, factory=True)
@from_attrs(cell=partial(_LstmCell, (0, 2, 1, 3), 0.0, xp=np))
def block_lstm_v2(*, cell: _LstmCell, T: DataType) -> Callable[..., Any]:
    return _block_lstm(cell, T)


@register_kernel(GRU_BLOCK_CELL, types={"T": DataType.DT_FLOAT})
def gru_block_cell(
    x: Any, h_prev: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any, *, xp: Any
) -> Any:
    check_gru(x, h_prev, w_ru, w_c, b_ru, b_c)
    cells = h_prev.shape[1]
    gates = _sigmoid(xp.matmul(xp.concat([x, h_prev], axis=1), w_ru) + b_ru, xp)
    r, u = gates[:, :cells], gates[:, cells:]
    c = xp.tanh(xp.matmul(xp.concat([x, h_prev * r], axis=1), w_c) + b_c)
    return r, u, c, (1 - u) * c + u * h_prev


def check_gru(x: Any, h_prev: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any) -> None:
    """Raise InvalidArgumentError unless the tensors fit each other."""
    for name, tensor in (("x", x), ("h_prev", h_prev), ("w_ru", w_ru), ("w_c", w_c)):
        require_rank(tensor, 2, f"Rank of {name} must be 2, got {tensor.ndim}")
    for name, tensor in (("b_ru", b_ru), ("b_c", b_c)):
        require_vector(tensor, f"Rank of {name} must be 1, got {tensor.ndim}")
    cells = h_prev.shape[1]
    rows = x.shape[1] + cells
    check_size("h_prev.dims(0) != batch_size", h_prev.shape[0], x.shape[0])
    check_size("w_ru.dim_size(0) != input_size + cell_size", w_ru.shape[0], rows)
    check_size("w_ru.dim_size(1) != cell_size * 2", w_ru.shape[1], cells * 2)
    check_size("w_c.dim_size(0) != input_size + cell_size", w_c.shape[0], rows)
    check_size("w_c.dim_size(1) != cell_size", w_c.shape[1], cells)
    check_size("b_ru.dim_size(0) != cell_size * 2", b_ru.shape[0], cells * 2)
    check_size("b_c.dim_size(0) != cell_size", b_c.shape[0], cells)


_OF_STATES = "it is that of cs and h alone"


@g.register_gradient("BlockLSTM", not_derivative=_OF_STATES)
def block_lstm_gradient(op: g.Operation, *grads: Any) -> g.Gradients:
    return _gradients(op, grads, g.nodes.BlockLSTMGrad)


@g.register_gradient("BlockLSTMV2", not_derivative=_OF_STATES)
def block_lstm_v2_gradient(op: g.Operation, *grads: Any) -> g.Gradients:
    return _gradients(op, grads, g.nodes.BlockLSTMGradV2)


def _gradients(op: g.Operation, grads: Any, layer_back: Any) -> g.Gradients:
    """The gradients by all but the length; those of the gates count as zero."""
    by_state, by_output = grads[1], grads[6]
    found = layer_back(
        *op.inputs, *op.outputs, by_state, by_output, **g.attrs_of(op, "use_peephole")
    )
    return [None, *found]
