"""LSTM and GRU cells; expected values are TensorFlow's."""

from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

f32 = partial(np.array, dtype=np.float32)
ZERO, ZEROS, ONE = f32([0]), f32([[0]]), f32([[1]])
WEIGHTS = f32([[1, 2, 3, 4], [0, 0, 0, 0]])
LSTM = {
    "cs_prev": ZEROS,
    "h_prev": ZEROS,
    "w": WEIGHTS,
    "wci": ZERO,
    "wcf": ZERO,
    "wco": ZERO,
    "b": f32([0, 0, 0, 0]),
}


def test_the_gates_of_version_2_stand_in_the_order_of_keras():
    result = raw_ops.BlockLSTMV2(seq_len_max=np.int64(2), x=f32([[[1]], [[1]]]), **LSTM)
    np.testing.assert_allclose(result.i.ravel(), [0.7310586, 0.7310586], rtol=1e-6)
    np.testing.assert_allclose(result.f.ravel(), [0.8807971, 0.8807971], rtol=1e-6)
    np.testing.assert_allclose(result.cs.ravel(), [0.7274433, 1.3681734], rtol=1e-6)
    np.testing.assert_allclose(result.h.ravel(), [0.6103203, 0.8624784], rtol=1e-6)


def test_steps_after_the_last_are_zero():
    result = raw_ops.BlockLSTM(seq_len_max=np.int64(1), x=f32([[[1]], [[1]]]), **LSTM)
    assert result.h[0] != 0
    assert result.h[1] == result.cs[1] == 0
    with pytest.raises(InvalidArgumentError, match="seq_len_max 3"):
        raw_ops.BlockLSTM(seq_len_max=np.int64(3), x=f32([[[1]], [[1]]]), **LSTM)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_layer_is_its_cell_step_by_step(dtype):
    random = np.random.default_rng(1)

    def draw(*shape):
        return random.normal(size=shape).astype(dtype)

    x, cs, h = draw(4, 2, 3), draw(2, 5), draw(2, 5)
    weights = {"w": draw(8, 20), "wci": draw(5), "wcf": draw(5), "wco": draw(5), "b": draw(20)}
    options = {"forget_bias": 0.5, "cell_clip": 1.0, "use_peephole": True}
    layer = raw_ops.BlockLSTM(
        seq_len_max=np.int64(4), x=x, cs_prev=cs, h_prev=h, **weights, **options
    )
    for time in range(4):
        cell = raw_ops.LSTMBlockCell(x=x[time], cs_prev=cs, h_prev=h, **weights, **options)
        cs, h = cell.cs, cell.h
        assert h.dtype == dtype
        for of_layer, of_cell in zip(layer, cell, strict=True):
            np.testing.assert_allclose(of_layer[time], of_cell, rtol=4e-3, atol=2e-3)
    assert np.abs(layer.cs).max() <= 1


def test_gru_cell():
    result = raw_ops.GRUBlockCell(
        x=ONE,
        h_prev=ONE,
        w_ru=WEIGHTS[:, :2],
        w_c=WEIGHTS[:, 2:3],
        b_ru=f32([0, 0]),
        b_c=ZERO,
    )
    np.testing.assert_allclose(np.ravel(result), [0.7310586, 0.8807971, 0.9950548, 0.9994105], 1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w": WEIGHTS[:1]}, r"w.dim_size\(0\) != input_size \+ cell_size: 1 vs. 2"),
        ({"wci": f32(0)}, "wci_tensor must be rank 1 but is rank 0"),
        ({"b": ZERO}, r"b.dim_size\(0\) != cell_size \* 4: 1 vs. 4"),
        ({"h_prev": f32([[0], [0]])}, r"h_prev.dims\(0\) != batch_size: 2 vs. 1"),
    ],
)
def test_shapes_that_do_not_fit(change, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.LSTMBlockCell(x=ONE, **{**LSTM, **change})
