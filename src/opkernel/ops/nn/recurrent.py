"""LSTM and GRU cells as one op, whole LSTM layers, and the gradients of both.

With s the logistic function and [x, h] the inputs beside the last output, a cell of an LSTM is

    i, ci, f, o = split([x, h] w + b)
    cs' = tanh(ci) s(i) + cs s(f + forget_bias),  h' = tanh(cs') s(o)

and one of a GRU

    r, u = s(split([x, h] w_ru + b_ru)),  c = tanh([x, h r] w_c + b_c),  h' = (1 - u) c + u h

With a bar for the gradient by what a gate's logistic function or tanh was given, and . for the gradient by an
output, the gradients of an LSTM cell are

    o_ = co h. o (1 - o),  cs. += o h. (1 - co^2)
    i_ = ci cs. i (1 - i),  ci_ = i cs. (1 - ci^2),  f_ = cs_prev cs. f (1 - f)

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
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, register_op
from opkernel.opdef.common_shapes.rules import set_outputs, shape_rule
from opkernel.ops.input_checks import require_equal, require_rank, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

LSTM_INPUTS = "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T"
LSTM_OUTPUTS = "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T"
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


def block_lstm_shape(c: InferenceContext) -> None:
    """Outputs are [time, batch, cells]."""
    x, b = c.with_rank(c.input(1), 3), c.with_rank(c.input(c.num_inputs() - 1), 1)
    cells = c.divide(c.dim(b, 0), 4, evenly_divisible=True)
    set_outputs(c, [c.make_shape([c.dim(x, 0), c.dim(x, 1), cells])] * c.num_outputs())


def _cell_shape(outputs: int) -> OpShapeInferenceFn:
    """Outputs are [batch, cells]."""
    return shape_rule(f"[batch, ?], [?, cells] -> {', '.join(['[batch, cells]'] * outputs)}")


LSTM_BLOCK_CELL = register_op(
    f"LSTMBlockCell({LSTM_INPUTS}) -> {LSTM_OUTPUTS}",
    attrs=_LSTM_ATTRS,
    shape_fn=_cell_shape(7),
    doc=f"""One step of an LSTM.

    x: [batch, inputs].{_LSTM_DOC.format(order="i, ci, f, o")}""",
)
BLOCK_LSTM = register_op(
    f"BlockLSTM(seq_len_max: int64, {LSTM_INPUTS}) -> {LSTM_OUTPUTS}",
    attrs=_LSTM_ATTRS,
    shape_fn=block_lstm_shape,
    doc=f"""An LSTM over the first `seq_len_max` steps of a sequence; zeros after them.

    x: [time, batch, inputs].{_LSTM_DOC.format(order="i, ci, f, o")}""",
)
BLOCK_LSTM_V2 = register_op(
    f"BlockLSTMV2(seq_len_max: int64, {LSTM_INPUTS}) -> {LSTM_OUTPUTS}",
    attrs=["cell_clip: float = 0.0", "use_peephole: bool = false", "T: {half, float}"],
    shape_fn=block_lstm_shape,
    doc=f"""An LSTM over the first `seq_len_max` steps of a sequence; zeros after them.

    x: [time, batch, inputs].{_LSTM_DOC.format(order="i, f, ci, o")}""",
)
GRU_BLOCK_CELL = register_op(
    "GRUBlockCell(x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T) -> r: T, u: T, c: T, h: T",
    attrs=["T: {float}"],
    shape_fn=_cell_shape(4),
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

    def kernel(x: Any, cs_prev: Any, h_prev: Any, *parameters: Any) -> Any:
        check_rank(2, x=x)
        weights = LstmWeights.checked(x, cs_prev, h_prev, *parameters)
        x, cs, h = (tensor.astype(np.float32) for tensor in (x, cs_prev, h_prev))
        gates = xp.matmul(xp.concat([x, h], axis=1), weights.w) + weights.b
        return tuple(out.astype(T.numpy_dtype) for out in cell.step(gates, cs, weights))

    return kernel


def _block_lstm(*, cell: _LstmCell, T: DataType) -> Callable[..., Any]:
    """The kernel of a layer; the products of all inputs are one product."""

    def kernel(seq_len_max: Any, x: Any, cs_prev: Any, h_prev: Any, *parameters: Any) -> Any:
        check_rank(0, **{"`seq_len_max_tensor`": seq_len_max})
        require_rank(x, 3, "x must be 3D")
        weights = LstmWeights.checked(x, cs_prev, h_prev, *parameters)
        steps, inputs = int(seq_len_max), x.shape[2]
        if steps > x.shape[0]:
            raise InvalidArgumentError(f"seq_len_max {steps} is more than {x.shape[0]} time steps")
        shape = check_allocation((*x.shape[:2], cs_prev.shape[1]), T)
        outputs = [np.zeros(shape, T.numpy_dtype) for _ in range(7)]
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


for _op, _cell in (
    (BLOCK_LSTM, partial(_LstmCell, (0, 1, 2, 3), xp=np)),
    (BLOCK_LSTM_V2, partial(_LstmCell, (0, 2, 1, 3), 0.0, xp=np)),
):
    register_kernel(_op, types={"T": LSTM_TYPES}, factory=True)(from_attrs(cell=_cell)(_block_lstm))


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


def _of_layer(back: str) -> g.GradientFunction:
    """The gradients by all but the length; those of the gates count as zero."""

    def gradient(op: g.Operation, *grads: Any) -> g.Gradients:
        by_state, by_output = grads[1], grads[6]
        attrs = g.attrs_of(op, "use_peephole")
        found = getattr(g.nodes, back)(*op.inputs, *op.outputs, by_state, by_output, **attrs)
        return [None, *found]

    return gradient


for _layer, _back in (("BlockLSTM", "BlockLSTMGrad"), ("BlockLSTMV2", "BlockLSTMGradV2")):
    g.register_gradient(_layer, not_derivative=_OF_STATES)(_of_layer(_back))


def lstm_block_cell_grad_shape(c: InferenceContext) -> None:
    """[batch, cells], [batch, 4 cells], and three times [cells]."""
    x, state = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
    batch, cells = c.dim(x, 0), c.dim(state, 1)
    gates = c.matrix(batch, c.multiply(cells, 4))
    set_outputs(c, [c.matrix(batch, cells), gates, *[c.vector(cells)] * 3])


LSTM_BLOCK_CELL_GRAD = register_op(
    f"LSTMBlockCellGrad({LSTM_INPUTS}, i: T, cs: T, f: T, o: T, ci: T, co: T, cs_grad: T, h_grad: T) "
    "-> cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
    attrs=["use_peephole: bool", "T: {half, float}"],
    shape_fn=lstm_block_cell_grad_shape,
    doc="The gradients of an LSTMBlockCell by its state, by [x, h] w + b, and by the peepholes.",
)
for _version in ("", "V2"):
    register_op(
        f"BlockLSTMGrad{_version}(seq_len_max: int64, {LSTM_INPUTS}, {LSTM_OUTPUTS}, cs_grad: T, "
        f"h_grad: T) -> {LSTM_INPUTS.replace(': T', '_grad: T')}",
        attrs=["use_peephole: bool", "T: {half, float}"],
        shape_fn=shape_rule(
            "_, [?, ?, ?], [?, ?], [?, ?], [?, ?], [?], [?], [?], [?] -> in1, in2, in3, in4, in5, in6, in7, in8"
        ),
        doc=f"The gradients of a BlockLSTM{_version} by its inputs.",
    )
GRU_BLOCK_CELL_GRAD = register_op(
    "GRUBlockCellGrad(x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T) "
    "-> d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T",
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
    backwards: _Backwards, x: Any, cs_prev: Any, h_prev: Any, *others: Any
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
    for time in in_time(reversed(range(len(x))), SLOW):
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
    rows = np.concatenate([x, before], axis=2).reshape(-1, inputs + cells)
    by_weights = rows.T @ gates.reshape(-1, 4 * cells)
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
            taken = (x[:steps], cs_prev, h_prev, *(tensor[:steps] for tensor in others[5:]))
            wide = [tensor.astype(np.float32) for tensor in taken]
            found = _through_time(_Backwards(weights, order, use_peephole), *wide)
            by_inputs, *rest = (out.astype(T.numpy_dtype) for out in found)
            by_x = np.zeros(x.shape, T.numpy_dtype)  # behind the last step
            by_x[:steps] = by_inputs
            return by_x, *rest

        return kernel


_register_block_lstm_grad("BlockLSTMGrad", (0, 1, 2, 3))
_register_block_lstm_grad("BlockLSTMGradV2", (0, 2, 1, 3))


@register_kernel(GRU_BLOCK_CELL_GRAD, types={"T": DataType.DT_FLOAT}, factory=True)
def gru_block_cell_grad(*, xp: Any) -> Callable[..., Any]:
    def kernel(x: Any, h_prev: Any, w_ru: Any, w_c: Any, *others: Any) -> Any:
        *biases, r, u, c, d_h = others
        check_gru(x, h_prev, w_ru, w_c, *biases)
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

    return kernel
