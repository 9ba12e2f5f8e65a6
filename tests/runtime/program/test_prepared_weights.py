"""What providers prepare of weights: once for a constant, or a variable that is one; else never."""

import gc
import random
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import opkernel
from opkernel import raw_ops
from opkernel.kernel import KernelProvider, register_kernel, register_provider, unregister_provider
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.types import float32

OP = register_op(
    "WeighedInTests",
    inputs=["x: float", "w: float"],
    outputs=["y: float"],
    shape_fn=unchanged_shape,
)
SIZE = 4096
ONES = np.ones(SIZE, np.float32)


@register_kernel(OP, device="CPU")
def weighed(x: Any, w: Any) -> Any:
    return x * w


class Made:
    """What is prepared: the sum of the weights, which tells whether it is of the right ones."""

    def __init__(self, value: Any) -> None:
        self.total = value.sum()


class Provider(KernelProvider):
    """Prepares the sum of the weights, and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__("weighing", 50)
        self.prepared_for: list[int] = []
        self.used: list[bool] = []
        self.made: list[weakref.ref[Made]] = []
        register_kernel(OP, device="CPU", registry=self.kernels)(self.weigh)

    def weigh(self, x: Any, w: Any) -> Any:
        made = self.prepared("w", w)
        self.used.append(made is not None)
        assert made is None or made.total == w.sum()
        return x * w

    def prepare(self, input: Any, value: Any, version: int) -> Any:
        assert input == "w"
        self.prepared_for.append(version)
        made = Made(value)
        self.made.append(weakref.ref(made))
        return made


@pytest.fixture
def provider() -> Iterator[Provider]:
    one = Provider()
    register_provider(one)
    yield one
    unregister_provider(one.name)


def node(x: Any, w: Any) -> Any:
    return x.graph.create_op(OP.name, [x, w]).outputs[0]


def in_function(x: Any, w: Any) -> Any:
    return opkernel.function(node)(x, w)


def in_branch(x: Any, w: Any) -> Any:
    positive = raw_ops.Greater(x=raw_ops.Sum(input=x, axis=[0]), y=0.0)
    return opkernel.cond(positive, lambda: node(x, w), lambda: x)


def in_loop(x: Any, w: Any) -> Any:
    """As an argument of the body that is the same in every turn."""
    return opkernel.while_loop(
        lambda i, y: raw_ops.Less(x=i, y=1),
        lambda i, y: (raw_ops.AddV2(x=i, y=1), node(y, w)),
        (0, x),
    )[1]


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "at once": node,
    "through Identity": lambda x, w: node(x, raw_ops.Identity(input=w)),
    "in a function": in_function,
    "in a branch": in_branch,
    "in a loop": in_loop,
}


class Variable:
    """A resource variable of the graph that is being built."""

    def __init__(self, shape: Any, name: str) -> None:
        attrs = {"dtype": float32, "shape": shape, "shared_name": name}
        graph = opkernel.graph.get_default_graph()
        self._new = graph.create_op
        self.handle = self._new("VarHandleOp", attrs=attrs).outputs[0]

    def op(self, name: str, *inputs: Any) -> Any:
        return self._new(name, [self.handle, *inputs])

    def read(self) -> Any:
        attrs = {"dtype": float32}
        return self._new("ReadVariableOp", [self.handle], attrs=attrs).outputs[0]


@pytest.mark.parametrize("executor", ["COMPILED_PLAN", "DATAFLOW"])
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_constants(way: str, optimize: bool, executor: str, provider: Provider) -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(float32, [SIZE])
        y = WAYS[way](x, opkernel.constant(2 * ONES))
    with opkernel.Session(graph, optimize=optimize, executor_type=executor) as session:
        for step in range(1, 5):
            assert session.run(y, {x: step * ONES})[0] == 2 * step
    assert provider.prepared_for == [0]
    assert all(provider.used)


@pytest.mark.parametrize("executor", ["COMPILED_PLAN", "DATAFLOW"])
@pytest.mark.parametrize("way", WAYS)
def test_variables_that_keep_their_values(way: str, executor: str, provider: Provider) -> None:
    """They are constants from the first step on."""
    graph = opkernel.Graph()
    with graph.as_default():
        x, value = (opkernel.placeholder(float32, [SIZE]) for _ in range(2))
        variable = Variable([SIZE], f"weights {way} {executor}")
        y = WAYS[way](x, variable.read())
        assign, add = (
            variable.op("AssignVariableOp", value),
            variable.op("AssignAddVariableOp", value),
        )
    with opkernel.Session(graph, executor_type=executor) as session:
        for change, expected in ((assign, 3), (add, 6), (add, 9), (assign, 3)):
            session.run(change, {value: 3 * ONES})
            for _ in range(4):
                assert session.run(y, {x: ONES})[0] == expected
    assert provider.prepared_for == [0] * 4
    assert all(provider.used)


@pytest.mark.parametrize("executor", ["COMPILED_PLAN", "DATAFLOW"])
@pytest.mark.parametrize("way", WAYS)
def test_variables_that_the_program_reads(way: str, executor: str, provider: Provider) -> None:
    """They are never prepared: the step that did so first would round differently than the one before."""
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(float32, [SIZE])
        variable = Variable([SIZE], f"weights {way} {executor}")
        y = WAYS[way](x, variable.read())
        assign = variable.op("AssignVariableOp", x)
    with (
        opkernel.Session(graph, executor_type=executor) as one,
        opkernel.Session(graph, optimize=False, executor_type=executor) as session,
    ):
        for each in (one, session):
            each.run(assign, {x: 3 * ONES})
        assert one.run(y, {x: ONES})[0] == 3
        for _ in range(4):
            assert session.run(y, {x: ONES})[0] == 3
    assert provider.prepared_for == [0]
    assert provider.used == [True] + [False] * 4


def test_what_changes_in_every_step_is_not_prepared(provider: Provider) -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        x, w = (opkernel.placeholder(float32, [SIZE]) for _ in range(2))
        variable = Variable([SIZE], "trained")
        fed, computed = node(x, w), node(x, raw_ops.Neg(x=w))
        with graph.control_dependencies([variable.op("AssignAddVariableOp", x)]):
            trained = node(x, variable.read())
        assign = variable.op("AssignVariableOp", x)
    with opkernel.Session(graph) as session:
        session.run(assign, {x: ONES})
        for _ in range(4):
            session.run([fed, computed, trained], {x: ONES, w: ONES})
    assert provider.prepared_for == []


def test_a_variable_that_a_traced_function_captures(provider: Provider) -> None:
    weights = opkernel.Variable(2 * ONES)

    @opkernel.function
    def of_captured(x: Any) -> Any:
        return node(x, weights.value)

    for _ in range(3):
        assert of_captured(ONES)[0] == 2
    weights.assign_add(ONES)
    for _ in range(3):
        assert of_captured(ONES)[0] == 3
    assert len(provider.prepared_for) == 2


def test_nodes_share_what_is_made_of_their_weights(provider: Provider) -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        x = y = opkernel.placeholder(float32, [SIZE])
        w = opkernel.constant(2 * ONES)
        for _ in range(5):
            y = node(y, w)
    with opkernel.Session(graph) as session:
        assert session.run(y, {x: ONES})[0] == 32
    assert provider.prepared_for == [0]


def test_what_is_made_goes_with_the_plan(provider: Provider) -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(float32, [SIZE])
        y = node(x, opkernel.constant(2 * ONES))
    with opkernel.Session(graph) as session:
        session.run(y, {x: ONES})
        assert provider.made[0]() is not None
    del session
    gc.collect()
    assert provider.made[0]() is None


def test_what_is_made_goes_with_the_value_and_the_variable(provider: Provider) -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(float32, [SIZE])
        variable = Variable([SIZE], "to be dropped")
        y = node(x, variable.read())
        changes = [variable.op(f"Assign{how}VariableOp", x) for how in ("", "Add")]
        destroy = variable.op("DestroyResourceOp")
    with opkernel.Session(graph) as session:
        for change in changes:
            session.run(change, {x: ONES})
            for _ in range(3):
                session.run(y, {x: ONES})
        assert [made() is None for made in provider.made] == [True, False]
        session.run(destroy)
        gc.collect()
        assert provider.made[1]() is None


@pytest.mark.parametrize("seed", range(3))
def test_convolutions_by_variables_that_change_now_and_then(seed: int) -> None:
    """All changes of a variable, in place or not, between steps that read it once or more often."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    shape = [3, 3, 128, 128]
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(float32, [1, 14, 14, 128])
        value = opkernel.placeholder(float32, shape)
        variable, copy = Variable(shape, f"filters {seed}"), Variable(shape, f"others {seed}")
        attrs = {"strides": [1] * 4, "padding": "SAME"}
        filters = variable.read()
        y = graph.create_op("Conv2D", [x, filters], attrs=attrs).outputs[0]
        row = opkernel.constant(np.array([1], np.int32))
        changes = [
            variable.op("AssignVariableOp", value),
            variable.op("AssignAddVariableOp", value),
            variable.op("AssignSubVariableOp", value),
            variable.op("AssignVariableOp", copy.read()),
            variable.op("ResourceScatterUpdate", row, raw_ops.Neg(x=value[:1])),
            variable.op("ResourceApplyGradientDescent", opkernel.constant(np.float32(0.5)), value),
        ]
        start = [one.op("AssignVariableOp", value) for one in (variable, copy)]
    images = rng.normal(size=(1, 14, 14, 128)).astype(np.float32)
    windows = sliding_window_view(np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0))), (3, 3), (1, 2))
    with opkernel.Session(graph) as session:
        session.run(start, {value: rng.normal(size=shape)})
        for _ in range(6):
            session.run(draw.choice(changes), {value: rng.normal(size=shape)})
            expected = np.tensordot(windows, session.run(filters), ((4, 5, 3), (0, 1, 2)))
            for _ in range(draw.randrange(1, 4)):
                np.testing.assert_allclose(session.run(y, {x: images}), expected, atol=2e-3)
