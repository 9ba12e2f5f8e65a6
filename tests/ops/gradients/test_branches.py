"""Gradients through the switches and merges of conditionals in graphs, and of batch norms in inference."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, raw_ops
from opkernel.graph import Tensor

X = np.array([1.0, 2.0, 4.0])


@pytest.fixture
def graph() -> Any:
    graph = Graph()
    with graph.as_default():
        yield graph


def switch_n(x: Tensor, which: Tensor, count: int) -> Any:
    op = opkernel.graph.get_default_graph().create_op(
        "_SwitchN", [x, which], attrs={"num_outs": count, "T": x.dtype}, name="sides"
    )
    return op.outputs


@pytest.mark.parametrize(("taken", "expected"), [(False, 3 * X**2), (True, np.full(3, 5.0))])
def test_of_two_sides(graph: Graph, taken: bool, expected: Any) -> None:
    x = opkernel.constant(X)
    no, yes = raw_ops.Switch(data=x, pred=opkernel.constant(taken))
    y, _ = raw_ops.Merge(inputs=[no * no * no, 5 * yes])
    (found,) = opkernel.gradients(y, x)
    np.testing.assert_array_equal(Session(graph).run(found), expected)


@pytest.mark.parametrize(("number", "expected"), [(0, 2 * X), (1, 5 + 0 * X), (2, 3 * X**2)])
def test_of_three_sides(graph: Graph, number: int, expected: Any) -> None:
    x = opkernel.constant(X)
    first, second, third = switch_n(x, opkernel.constant(number), 3)
    y, _ = raw_ops.Merge(inputs=[first * first, 5 * second, third * third * third])
    (found,) = opkernel.gradients(y, x)
    np.testing.assert_array_equal(Session(graph).run(found), expected)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 2, 4, 5)])
def test_of_batch_norms_with_channels_first(graph: Graph, shape: tuple[int, ...]) -> None:
    """In inference a batch norm is a line for each channel."""
    rng = np.random.default_rng(5)
    data, by = (rng.normal(size=shape).astype(np.float32) for _ in "xy")
    scale, offset, mean = (rng.normal(size=3).astype(np.float32) for _ in "som")
    variance = rng.uniform(0.5, 2, 3).astype(np.float32)
    inputs = [opkernel.constant(one) for one in (data, scale, offset)]
    y = raw_ops.FusedBatchNormV3(
        x=inputs[0],
        scale=inputs[1],
        offset=inputs[2],
        mean=mean,
        variance=variance,
        epsilon=0.1,
        data_format="NCHW" if len(shape) == 4 else "NCDHW",
        is_training=False,
    )[0]
    found = Session(graph).run(opkernel.gradients([y], inputs, [by]))
    places = (slice(None), *[None] * (len(shape) - 2))
    others = (0, *range(2, len(shape)))
    slope = 1 / np.sqrt(variance + 0.1)
    centred = (data - mean[places]) * slope[places]
    expected = [by * (scale * slope)[places], (by * centred).sum(others), by.sum(others)]
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-4, atol=1e-4)
