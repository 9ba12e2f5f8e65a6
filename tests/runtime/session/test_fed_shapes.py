"""Values of other shapes than those of the tensors that they are fed for, which TensorFlow's C++ Session takes.

Expected values are those of TensorFlow 2.21's `Session._call_tf_sessionrun`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

ANY = opkernel.SessionConfig(checks_feed_shapes=False)
VALUES = [np.array(one, np.float32) for one in (3, [1, 2, 5], [[1, 2]], [[1], [2]])]


def built():
    """Ops that passes fold where the shape is known; `w` reads a variable of TensorFlow 1."""
    with opkernel.Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype="float32", shape=[2, 1], name="x")
        raw_ops.Mul(x=x, y=np.float32(0.5), name="half")
        raw_ops.Shape(input=x, name="shape")
        raw_ops.Size(input=x, name="size")
        raw_ops.Rank(input=x, name="rank")
        raw_ops.Reshape(tensor=x, shape=np.array([-1], np.int32), name="flat")
        raw_ops.MatMul(a=x, b=np.array([[2]], np.float32), name="product")
        tiles = raw_ops.Fill(dims=raw_ops.Shape(input=x), value=np.float32(7))
        raw_ops.AddV2(x=x, y=tiles, name="sevens")
        v = raw_ops.VariableV2(dtype="float32", shape=[], name="v")
        raw_ops.Assign(ref=v, value=np.float32(10), name="assign")
        raw_ops.AddV2(x=x, y=raw_ops.Identity(input=v), name="w")
    return graph


EXPECTED: dict[str, Callable[[Any], Any]] = {
    "half": lambda x: x * 0.5,
    "shape": np.shape,
    "size": np.size,
    "rank": np.ndim,
    "flat": np.ravel,
    "sevens": lambda x: x + 7,
    "w": lambda x: x + 10,
}


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("name", EXPECTED)
def test_each_step_computes_with_what_it_is_fed(name, optimize):
    config = opkernel.SessionConfig(
        checks_feed_shapes=False, disable_optimize_for_static_graph=True, optimize=optimize
    )
    with opkernel.DirectSession(config) as session:
        session.create(built().as_graph_def())
        session.run({}, [], ["assign"])
        call = session.make_callable(opkernel.CallableOptions(feed=["x"], fetch=[name]))
        for value in VALUES * 3:
            expected = EXPECTED[name](value)
            np.testing.assert_array_equal(session.run({"x": value}, [name])[0], expected)
            np.testing.assert_array_equal(call(value)[0], expected)


@pytest.mark.parametrize(
    "options",
    [
        opkernel.RunOptions(timeout_in_ms=60_000),
        opkernel.RunOptions(trace_level=opkernel.RunOptions.FULL_TRACE),
    ],
)
def test_steps_with_options(options):
    session = opkernel.Session(built(), config=ANY)
    for value in VALUES * 2:
        found = session.run("sevens:0", {"x:0": value}, options, opkernel.RunMetadata())
        np.testing.assert_array_equal(found, value + 7)


def test_a_kernel_refuses_shapes_that_it_cannot_take():
    session = opkernel.Session(built(), config=ANY)
    with pytest.raises(InvalidArgumentError, match=r"different ndims: \[3\] vs. \[1, ?1\]"):
        session.run("product:0", {"x:0": VALUES[1]})
    with pytest.raises(InvalidArgumentError, match="Matrix size-incompatible"):
        session.run("product:0", {"x:0": VALUES[2]})
    np.testing.assert_array_equal(session.run("product:0", {"x:0": VALUES[3]}), [[2], [4]])


def test_types_are_checked():
    with opkernel.DirectSession() as session:
        session.create(built().as_graph_def())
        with pytest.raises(InvalidArgumentError, match=r"Expects arg\[0\] to be float but int32"):
            session.run({"x": np.array([1, 2, 3], np.int32)}, ["half"])


def test_a_session_of_python_checks_shapes():
    call = opkernel.Session(built()).make_callable("half:0", ["x:0"])
    with pytest.raises(InvalidArgumentError, match=r"Cannot feed value of shape \(3,\)"):
        call(VALUES[1])
