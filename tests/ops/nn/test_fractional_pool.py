"""FractionalAvgPool, FractionalMaxPool and their gradients; windows drawn with seeds are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.testing import check_gradient

RATIOS = [1.0, 1.5, 1.4, 1.0]
SEEDED: dict[str, Any] = {"deterministic": True, "seed": 87654321, "seed2": 341261001}
IMAGE = np.arange(36, dtype=np.float32).reshape(1, 6, 6, 1)


def test_windows_of_a_seed() -> None:
    ratios = [1.0, 1.7320507764816284, 1.4142135381698608, 1.0]
    output, rows, columns = raw_ops.FractionalMaxPool(
        value=IMAGE, pooling_ratio=ratios, pseudo_random=True, **SEEDED
    )
    assert rows.tolist() == [0, 2, 4, 6]
    assert columns.tolist() == [0, 2, 3, 5, 6]
    assert output[0, 0, :, 0].tolist() == [7, 8, 10, 11]


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("pseudo_random", [False, True])
def test_means_are_those_of_their_windows(overlapping: bool, pseudo_random: bool) -> None:
    value = np.random.default_rng(0).normal(size=(2, 11, 9, 3))
    output, rows, columns = raw_ops.FractionalAvgPool(
        value=value, pooling_ratio=RATIOS, overlapping=overlapping, pseudo_random=pseudo_random
    )
    assert set(np.diff(rows).tolist()) <= {1, 2}
    for i, j in np.ndindex(len(rows) - 1, len(columns) - 1):
        window = value[
            :,
            rows[i] : rows[i + 1] + overlapping,
            columns[j] : columns[j + 1] + overlapping,
        ]
        np.testing.assert_allclose(output[:, i, j], window.mean((1, 2)), rtol=1e-12)


def test_gradients_keep_the_sum_of_what_the_windows_hold() -> None:
    value = np.random.default_rng(1).normal(size=(2, 8, 8, 2))
    output, rows, columns = raw_ops.FractionalMaxPool(value=value, pooling_ratio=RATIOS)
    grad = np.ones_like(output)
    spread = raw_ops.FractionalMaxPoolGrad(
        orig_input=value,
        orig_output=output,
        out_backprop=grad,
        row_pooling_sequence=rows,
        col_pooling_sequence=columns,
    )
    assert spread.sum() == grad.size
    assert set(value[spread > 0].tolist()) == set(output.reshape(-1).tolist())
    means = raw_ops.FractionalAvgPoolGrad(
        orig_input_tensor_shape=np.array(value.shape, np.int64),
        out_backprop=grad,
        row_pooling_sequence=rows,
        col_pooling_sequence=columns,
    )
    np.testing.assert_allclose(means.sum(), grad.size)


def test_errors() -> None:
    with pytest.raises(InvalidArgumentError, match=r"smaller than 1, got: 0\.5"):
        raw_ops.FractionalMaxPool(value=IMAGE, pooling_ratio=[1.0, 0.5, 1.0, 1.0])
    with pytest.raises(InvalidArgumentError, match="higher than input dimension"):
        raw_ops.FractionalMaxPool(value=IMAGE, pooling_ratio=[1.0, 7.0, 1.0, 1.0])
    with pytest.raises(UnimplementedError, match="batch nor channel"):
        raw_ops.FractionalAvgPool(value=IMAGE, pooling_ratio=[2.0, 1.0, 1.0, 1.0])
    with pytest.raises(InvalidArgumentError, match="deterministic is false"):
        raw_ops.FractionalAvgPool(value=IMAGE, pooling_ratio=RATIOS, seed=1)
    with pytest.raises(InvalidArgumentError, match="must not be negative"):
        raw_ops.FractionalAvgPoolGrad(
            orig_input_tensor_shape=np.array([1, 2, 2, 1], np.int64),
            out_backprop=np.ones((1, 1, 1, 1), np.float32),
            row_pooling_sequence=np.array([-1, 2], np.int64),
            col_pooling_sequence=np.array([0, 2], np.int64),
        )


@pytest.mark.parametrize("op", ["FractionalAvgPool", "FractionalMaxPool"])
def test_gradients_agree_with_differences(op: str) -> None:
    value = np.random.default_rng(3).permutation(2 * 6 * 5 * 2).reshape(2, 6, 5, 2) / 7
    check_gradient(op, [value], {"pooling_ratio": RATIOS, "overlapping": True, **SEEDED})
