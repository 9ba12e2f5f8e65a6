"""Numbers that differ from run to run: their distributions, and where they differ."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.graph import cond, while_loop
from opkernel.proto import NodeDef
from opkernel.testing.op_runs import node_of
from opkernel.types import DataType
from opkernel.xla import XlaArgument, XlaCompiler

pytestmark = pytest.mark.jax

SHAPE = np.array([50, 200], np.int32)


def fits(numbers, distribution, *parameters):
    """Whether numbers may be of a distribution: once in ten million times they are, and do not fit."""
    stats = pytest.importorskip("scipy.stats")
    return stats.kstest(np.ravel(numbers), distribution, parameters).pvalue > 1e-7


def test_distributions():
    @opkernel.function(jit_compile=True)
    def draw():
        limits = {"means": [1.0, 2.0], "stdevs": 2.0, "minvals": [-np.inf, 2.0], "maxvals": np.inf}
        given: dict[str, Any] = {
            name: np.array(value, np.float64) for name, value in limits.items()
        }
        return (
            raw_ops.RandomUniform(shape=SHAPE, dtype="float"),
            raw_ops.RandomStandardNormal(shape=SHAPE, dtype="double"),
            raw_ops.TruncatedNormal(shape=SHAPE, dtype="half"),
            raw_ops.RandomUniformInt(shape=SHAPE, minval=np.int32(3), maxval=np.int32(7)),
            raw_ops.ParameterizedTruncatedNormal(shape=np.array([2, 5000]), **given),
        )

    uniform, normal, truncated, integers, (free, above) = draw()
    assert fits(uniform, "uniform")
    assert fits(normal, "norm")
    assert truncated.dtype == np.float16
    assert fits(truncated.astype(np.float64), "truncnorm", -2, 2)
    assert np.unique(integers).tolist() == [3, 4, 5, 6]
    assert fits((free - 1) / 2, "norm")
    assert fits((above - 2) / 2, "truncnorm", 0, np.inf)


def test_rows_and_classes():
    @opkernel.function(jit_compile=True)
    def draw(rows, logits):
        shuffled = raw_ops.RandomShuffle(value=rows)
        return shuffled, raw_ops.Multinomial(logits=logits, num_samples=np.int32(6000))

    rows = np.arange(200).reshape(100, 2)
    logits = np.array([[0, np.log(2), np.log(3)], [1, -np.inf, 1]], np.float32)
    shuffled, (first, second) = draw(rows, logits)
    assert shuffled.tolist() != rows.tolist()
    np.testing.assert_array_equal(shuffled[shuffled[:, 0].argsort()], rows)
    np.testing.assert_allclose(np.bincount(first) / 6000, [1 / 6, 2 / 6, 3 / 6], atol=0.05)
    assert set(second.tolist()) == {0, 2}


def test_each_run_turn_and_node_draws_other_numbers():
    @opkernel.function(jit_compile=True)
    def draw(flag):
        def one():
            return raw_ops.RandomUniform(shape=np.array([1]), dtype="double")

        def turn(i, numbers):
            index = raw_ops.Reshape(tensor=i, shape=np.array([1, 1]))
            return i + np.int32(1), raw_ops.TensorScatterUpdate(
                tensor=numbers, indices=index, updates=one()
            )

        chosen = cond(flag, one, lambda: one() + np.float64(1))
        start = [np.int32(0), np.zeros(4)]
        _, turns = while_loop(lambda i, _: raw_ops.Less(x=i, y=np.int32(4)), turn, start)
        return raw_ops.ConcatV2(values=[chosen, one(), turns], axis=np.int32(0))

    drawn = np.concatenate([draw(np.bool_(True)), draw(np.bool_(True)), draw(np.bool_(False))])
    assert len(set(drawn.tolist())) == 18
    assert 1 <= drawn[12] < 2


def test_who_takes_a_generator():
    def compiled(node: NodeDef):
        return XlaCompiler().compile_single_op(node, [XlaArgument.of_constant(np.array([3]))])

    registry = opkernel.opdef.global_op_registry()
    types = {"dtype": DataType.DT_FLOAT, "T": DataType.DT_INT64}
    drawing = compiled(node_of(registry.look_up_op_def("RandomUniform"), types))
    assert drawing.draws_numbers
    (first,), _ = drawing.run([np.array([3])])
    (second,), _ = drawing.run([np.array([3])])
    assert first.tolist() != second.tolist()
    size = compiled(node_of(registry.look_up_op_def("Size"), {"T": DataType.DT_INT64}))
    assert not size.draws_numbers
