"""A session gives the same bits at each step: the plan for shapes that repeat computes as the general plan does.

The graphs are those that passes would round otherwise if they knew the shapes: a size scales weights, or two shapes turn out
to be the same.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimization.random_graph import RandomGraph

import opkernel
from opkernel import raw_ops
from opkernel.graph import Tensor
from opkernel.optimization import optimization_passes
from opkernel.runtime.adaptive.variables import VariablesOfProgram

STEPS = 6
NUMBERS = np.random.default_rng(0)
WEIGHTS = NUMBERS.normal(size=(8, 8)).astype("f4")
F = np.float32


def size(x: Tensor, dim: int) -> Tensor:
    found = raw_ops.StridedSlice(
        input=raw_ops.Shape(input=x), begin=[dim], end=[dim + 1], strides=[1], shrink_axis_mask=1
    )
    return raw_ops.Cast(x=found, DstT=opkernel.float32)


def as_shaped(x: Tensor, like: Tensor) -> Tensor:
    """A tensor with a shape that is known only where the shape of `like` is."""
    return raw_ops.Reshape(tensor=x, shape=raw_ops.Shape(input=like))


def product(x: Tensor) -> Tensor:
    return raw_ops.MatMul(a=x, b=WEIGHTS)


def root(x: Tensor) -> Tensor:
    return raw_ops.Rsqrt(x=size(x, 1))


def one(x: Tensor) -> Tensor:
    return raw_ops.RealDiv(x=size(x, 1), y=F(8))


def positive(x: Tensor) -> Tensor:
    return raw_ops.Square(x=x)


CASES: dict[str, Callable[[Tensor], Tensor]] = {
    "a size scales a product": lambda x: raw_ops.Mul(x=product(x), y=root(x)),
    "a size scales what is multiplied": lambda x: product(raw_ops.Mul(x=x, y=root(x))),
    "a size is subtracted from a product": lambda x: raw_ops.Sub(
        x=raw_ops.BiasAdd(value=product(x), bias=WEIGHTS[0]), y=size(x, 1)
    ),
    "a size and a constant scale": lambda x: raw_ops.Mul(
        x=raw_ops.Mul(x=x, y=F(0.3)), y=root(x)
    ),
    "a factor of two sums": lambda x: raw_ops.AddV2(
        x=raw_ops.Mul(x=x, y=raw_ops.Tanh(x=x)),
        y=raw_ops.Mul(x=raw_ops.Tanh(x=x), y=as_shaped(raw_ops.Exp(x=x), x)),
    ),
    "what is added has the same shape": lambda x: raw_ops.Relu(
        features=raw_ops.AddV2(
            x=as_shaped(x, x), y=raw_ops.BiasAdd(value=product(x), bias=WEIGHTS[0])
        )
    ),
    "one is a quotient of sizes, and its logarithm": lambda x: raw_ops.Log(
        x=raw_ops.AddV2(x=positive(x), y=one(x))
    ),
    "one is a quotient of sizes, and an exponential": lambda x: raw_ops.Sub(
        x=raw_ops.Exp(x=x), y=one(x)
    ),
    "an exponent": lambda x: raw_ops.Pow(
        x=positive(x), y=raw_ops.RealDiv(x=size(x, 1), y=F(16))
    ),
    "a transposed product": lambda x: raw_ops.MatMul(
        a=raw_ops.Transpose(
            x=x,
            perm=raw_ops.ReverseV2(
                tensor=raw_ops.Range(start=0, limit=raw_ops.Rank(input=x), delta=1), axis=[0]
            ),
        ),
        b=x,
    ),
    "equal terms": lambda x: raw_ops.AddN(inputs=[x, as_shaped(x, x), x]),
    "a sum of what is broadcast": lambda x: raw_ops.Sum(
        input=raw_ops.BroadcastTo(
            input=raw_ops.Transpose(x=x, perm=[1, 0]),
            shape=raw_ops.ReverseV2(tensor=raw_ops.Shape(input=x), axis=[0]),
        ),
        axis=[0],
    ),
    "the largest of exponentials": lambda x: raw_ops.Max(
        input=raw_ops.Exp(x=x), axis=raw_ops.Range(start=0, limit=raw_ops.Rank(input=x), delta=1)
    ),
}  # fmt: skip


def check_bits(run: Callable[[], Any], steps: int = STEPS) -> None:
    first, *others = [run() for _ in range(steps)]
    for number, value in enumerate(others, 2):
        np.testing.assert_equal(value, first, err_msg=f"step {number}")


@pytest.mark.parametrize("rows", [5, 300])
@pytest.mark.parametrize("shape", [[None, 8], [None, None], None])
@pytest.mark.parametrize("case", CASES)
def test_the_plan_for_shapes_that_repeat_gives_the_bits_of_the_general_plan(case, shape, rows):
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, shape, name="x")
        y = CASES[case](x)
    value = NUMBERS.normal(size=(rows, 8)).astype("f4")
    with opkernel.Session(graph) as session:
        check_bits(lambda: session.run(y, {x: value}))
        if shape is None:
            assert session.report()


def test_a_function_computes_for_known_shapes_as_for_all_others():
    """A call within a graph has a plan for the shapes of its arguments."""

    @opkernel.function(input_signature=[opkernel.TensorSpec([None, None], opkernel.float32)])
    def scaled(x):
        return raw_ops.Mul(x=product(x), y=root(x))

    value = NUMBERS.normal(size=(5, 8)).astype("f4")
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [None, None], name="x")
        y = scaled(x)
    calls = {one.name for one in optimization_passes()} - {"function_inlining"}
    with opkernel.Session(graph, optimize=calls) as session:
        check_bits(lambda: session.run(y, {x: value}))


@given(st.data())
@settings(max_examples=30)
def test_random_graphs_give_the_same_bits_at_each_step(data):
    random = RandomGraph(data)
    for _ in range(data.draw(st.integers(2, 8))):
        random.grow()
    if random.last_effect is not None:  # it counts steps
        return
    x = np.random.default_rng(0).normal(size=(2, 3, 3)).astype("f4")
    with opkernel.Session(random.b.graph) as session:
        check_bits(lambda: session.run(random.made[-1], {random.x: x, random.p: True}))


class Variables:
    """Variables of the default graph, with what assigns to them."""

    def __init__(self) -> None:
        self.values: list[np.ndarray[Any, Any]] = []
        self.assign: list[tuple[Any, Any]] = []

    def read(self, value: Any) -> Tensor:
        value = np.asarray(value, "f4")
        name = f"variable{len(self.values)}"
        handle = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=value.shape, shared_name=name)
        new = opkernel.placeholder(opkernel.float32, value.shape)
        self.assign.append((raw_ops.AssignVariableOp(resource=handle, value=new), new))
        self.values.append(value)
        return raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32)

    def check_bits(self, session: opkernel.Session, run: Callable[[], Any]) -> None:
        """Each set of values gives the same bits at each step; there are more sets than programs for values."""
        for number in range(1, 9):
            for value, (op, new) in zip(self.values, self.assign, strict=True):
                session.run(op, {new: value * F(number / 3)})
            check_bits(run)


NETWORKS: dict[str, Callable[[Tensor, Any], Tensor]] = {
    "a factor of a product": lambda x, v: raw_ops.Mul(x=product(x), y=v(WEIGHTS[1])),
    "a factor before a product": lambda x, v: raw_ops.MatMul(
        a=raw_ops.Mul(x=x, y=v(WEIGHTS[1])), b=v(WEIGHTS)
    ),
    "two factors": lambda x, v: raw_ops.Mul(
        x=raw_ops.Mul(x=x, y=v(WEIGHTS[2])), y=v(WEIGHTS[3])
    ),
    "a dense layer": lambda x, v: raw_ops.Relu(
        features=raw_ops.BiasAdd(value=raw_ops.MatMul(a=x, b=v(WEIGHTS)), bias=v(WEIGHTS[0]))
    ),
    "a convolution with prepared filters": lambda x, v: raw_ops.Conv2D(
        input=raw_ops.Tile(input=raw_ops.Reshape(tensor=x, shape=[1, -1, 8, 1]), multiples=[1, 1, 1, 64]),
        filter=v(NUMBERS.normal(size=(3, 3, 64, 64))),
        strides=[1] * 4,
        padding="SAME",
    ),
    "a batch norm of a convolution": lambda x, v: raw_ops.FusedBatchNormV3(
        x=raw_ops.Conv2D(
            input=raw_ops.Reshape(tensor=x, shape=[1, -1, 4, 2]),
            filter=v(WEIGHTS.reshape(2, 2, 2, 8)),
            strides=[1] * 4,
            padding="SAME",
        ),
        scale=v(WEIGHTS[0]),
        offset=v(WEIGHTS[1]),
        mean=v(WEIGHTS[2]),
        variance=v(WEIGHTS[3] ** 2),
        is_training=False,
    ).y,
}  # fmt: skip


@pytest.mark.parametrize("case", NETWORKS)
def test_values_of_variables_give_the_same_bits_at_each_step(case):
    variables = Variables()
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [None, 8], name="x")
        y = NETWORKS[case](x, variables.read)
    value = NUMBERS.normal(size=(50, 8)).astype("f4")
    with opkernel.Session(graph) as session:
        variables.check_bits(session, lambda: session.run(y, {x: value}))
        chosen = [found.chosen for found in session.report() if found.strategy == "variables"]
        assert chosen == ["program for their values"] * 6 + ["plan"]


def test_threads_that_run_the_first_steps_together_get_the_same_bits(monkeypatch):
    others_run = Event()
    make = VariablesOfProgram.program

    def slowly(*args: Any) -> Any:
        others_run.wait(0.2)
        return make(*args)

    monkeypatch.setattr(VariablesOfProgram, "program", slowly)
    variables, value = Variables(), NUMBERS.normal(size=(50, 8)).astype("f4")
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [None, 8], name="x")
        y = NETWORKS["a batch norm of a convolution"](x, variables.read)
    with opkernel.Session(graph) as session:
        for initial, (op, new) in zip(variables.values, variables.assign, strict=True):
            session.run(op, {new: initial})
        run = session.make_callable(y, [x])
        begin = Barrier(8)

        def first_step(_: int) -> Any:
            begin.wait()
            return run(value)

        with ThreadPoolExecutor(8) as threads:
            found = [*threads.map(first_step, range(8)), run(value)]
    for one in found:
        np.testing.assert_equal(one, found[0])


@given(st.data())
@settings(max_examples=20)
def test_variables_in_random_graphs_give_the_same_bits_at_each_step(data):
    random, variables = RandomGraph(data), Variables()
    constant = random.b.constant
    with random.b.graph.as_default():

        def read_or_constant(value: Any, *dtype: str) -> Tensor:
            return variables.read(value) if dtype == ("f4",) else constant(value, *dtype)

        setattr(random.b, "constant", read_or_constant)  # noqa: B010 - mypy refuses to assign to a method
        for _ in range(data.draw(st.integers(2, 8))):
            random.grow()
    if random.last_effect is not None:  # it counts steps
        return
    x = np.random.default_rng(0).normal(size=(2, 3, 3)).astype("f4")
    with opkernel.Session(random.b.graph) as session:
        variables.check_bits(
            session, lambda: session.run(random.made[-1], {random.x: x, random.p: True})
        )


def test_variables_that_keep_their_values_do_not_change_bits_where_results_are_deterministic(
    monkeypatch,
):
    monkeypatch.setenv("OPKERNEL_DETERMINISTIC", "1")
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [None, 8], name="x")
        handle = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[8], shared_name="scale")
        init = raw_ops.AssignVariableOp(resource=handle, value=WEIGHTS[1])
        scale = raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32)
        y = raw_ops.Mul(x=product(x), y=scale)
    value = NUMBERS.normal(size=(50, 8)).astype("f4")
    with opkernel.Session(graph) as session:
        session.run(init)
        check_bits(lambda: session.run(y, {x: value}))
        assert not session.report()
