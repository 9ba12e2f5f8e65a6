"""`cond`, `switch_case` and `while_loop`: nodes where a tensor decides, Python where a value does."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, TensorSpec, raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Operation

X = np.array([1, 2], np.float32)


def traced(function: Callable[..., Any], *args: Any) -> Any:
    return opkernel.function(function)(*args)


def ops_of(function: Callable[..., Any], *specs: Any) -> list[str]:
    graph = opkernel.function(function).get_concrete_function(*specs).graph
    return [op.type for op in graph.get_operations() if op.type not in ("Const", "Placeholder")]


SCALAR = TensorSpec([])
INT = TensorSpec([], "int32")
BOOL = TensorSpec([], "bool")


# cond


def pick(pred: Any, x: Any) -> Any:
    return opkernel.cond(
        pred, lambda: {"y": x + 1, "n": (None, 1)}, lambda: {"y": -x, "n": (None, 2)}
    )


@pytest.mark.parametrize("run", [traced, lambda function, *args: function(*args)])
def test_the_predicate_chooses(run: Callable[..., Any]) -> None:
    for pred, y, n in ((True, [2, 3], 1), (False, [-1, -2], 2)):
        found = run(pick, np.bool_(pred), X)
        assert found["y"].tolist() == y
        assert found["n"] == (None, n)


def test_a_tensor_makes_an_if_of_both_branches() -> None:
    concrete = opkernel.function(pick).get_concrete_function(BOOL, TensorSpec([None]))
    node = concrete.graph.get_operation_by_name("cond")
    assert node.type == "StatelessIf"
    assert [tensor.op.name for tensor in node.inputs] == ["pred", "x"]  # captured once
    assert [tensor.shape.as_list() for tensor in node.outputs] == [[], [None]]
    branches = {node.get_attr(name).name for name in ("then_branch", "else_branch")}
    assert branches == set(concrete.graph.function_library)


def test_a_value_calls_one_function_without_a_node() -> None:
    called = []
    with Graph().as_default() as graph:
        for pred in (True, np.bool_(False), np.array(1)):
            opkernel.cond(pred, lambda: called.append(True), lambda: called.append(False))
        assert graph.get_operations() == []
    assert called == [True, False, True]


def test_effects_in_branches_make_an_if_that_runs() -> None:
    def call(x: Any) -> Any:
        v = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[], shared_name="in_branches")
        raw_ops.AssignVariableOp(resource=v, value=0.0)
        opkernel.cond(
            x > 0,
            lambda: raw_ops.AssignAddVariableOp(resource=v, value=x),
            lambda: raw_ops.AssignSubVariableOp(resource=v, value=10.0),
        )
        return raw_ops.ReadVariableOp(resource=v, dtype=opkernel.float32)

    assert "If" in ops_of(call, SCALAR)
    assert traced(call, np.float32(3)) == 3
    assert traced(call, np.float32(-3)) == -10


def test_branches_without_results_give_the_operation() -> None:
    with Graph().as_default():
        pred = opkernel.placeholder("bool", [])
        assert isinstance(opkernel.cond(pred, lambda: None, lambda: None), Operation)


def test_shapes_are_what_both_branches_agree_in() -> None:
    with Graph().as_default():
        pred = opkernel.placeholder("bool", [])
        x = opkernel.placeholder("float32", [2, 3])
        assert opkernel.cond(pred, lambda: x, lambda: x[:1]).shape.as_list() == [None, 3]
        assert opkernel.cond(pred, lambda: x, lambda: x[0]).shape.rank is None


@pytest.mark.parametrize(
    "false_fn", [lambda x: -x, lambda x: (x, 1), lambda x: [x, 1.5], lambda x: [x, None]]
)
def test_branches_must_be_alike(false_fn: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="same structure and types"):
        traced(lambda x: opkernel.cond(x > 0, lambda: [x, 1], lambda: false_fn(x)), X[0])


def test_conditionals_nest() -> None:
    def sign(x: Any) -> Any:
        return opkernel.cond(
            x > 0, lambda: 1, lambda: opkernel.cond(x < 0, lambda: -1, lambda: x.graph and 0)
        )

    assert [traced(sign, np.float32(v)) for v in (5, -5, 0)] == [1, -1, 0]


def test_conditionals_in_plain_graphs_run() -> None:
    with Graph().as_default() as graph:
        x = opkernel.placeholder("float32", [], "x")
        y = opkernel.cond(x > 0, lambda: x * 2, lambda: x)
    with Session(graph) as session:
        assert [session.run(y, {x: value}) for value in (3, -3)] == [6, -3]


# switch_case


@pytest.mark.parametrize("run", [traced, lambda function, *args: function(*args)])
def test_the_index_chooses(run: Callable[..., Any]) -> None:
    def choose(i: Any) -> Any:
        return opkernel.switch_case(i, [lambda: 10, lambda: 20], default=lambda: 30)

    assert [run(choose, np.int32(i)) for i in (0, 1, 2, -1)] == [10, 20, 30, 30]


def test_without_a_default_the_last_branch_is_it() -> None:
    def choose(i: Any) -> Any:
        return opkernel.switch_case(i, {1: lambda: 20, 0: lambda: 10})

    assert [traced(choose, np.int32(i)) for i in (0, 1, 2, -1)] == [10, 20, 20, 20]
    assert opkernel.switch_case(0, [(1, lambda: 20), (0, lambda: 10)]) == 10
    assert ops_of(choose, INT) == ["StatelessCase"]


@pytest.mark.parametrize(
    ("branches", "message"),
    [
        ([], "branch_fns is empty"),
        ({}, "branch_fns is empty"),
        ({0: int, 2: int}, r"must have the numbers 0 to 1, not \[0, 2\]"),
        ({1: int}, r"must have the numbers 0 to 0, not \[1\]"),
        ([(0, int), (2, int)], r"must have the numbers 0 to 1, not \[0, 2\]"),
    ],
)
def test_branches_are_numbered_without_gaps(branches: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        opkernel.switch_case(0, branches)


def test_a_value_that_decides_is_a_scalar() -> None:
    for pred in (np.array([True, False]), [True, False], np.zeros(0)):
        with pytest.raises(ValueError, match="the predicate of 'choice' must be a scalar"):
            opkernel.cond(pred, int, int, name="choice")
    assert opkernel.cond(np.array([True]), lambda: 1, lambda: 2) == 1


# while_loop


@pytest.mark.parametrize("run", [traced, lambda function, *args: function(*args)])
def test_loops_turn_until_the_condition_fails(run: Callable[..., Any]) -> None:
    def power(x: Any, n: Any) -> Any:
        return opkernel.while_loop(
            lambda i, state: i < n,
            lambda i, state: (i + 1, {"product": state["product"] * x, "last": i}),
            (0, {"product": 1.0, "last": -1}),
        )

    i, state = run(power, np.float32(2), np.int32(5))
    assert (i, state["product"], state["last"]) == (5, 32, 4)
    assert run(power, np.float32(2), np.int32(0))[1] == {"product": 1, "last": -1}


def test_a_tensor_makes_a_while() -> None:
    concrete = opkernel.function(
        lambda x, n: opkernel.while_loop(lambda i, y: i < n, lambda i, y: [i + 1, y + x], [0, x])
    ).get_concrete_function(TensorSpec([2]), INT)
    node = concrete.graph.get_operation_by_name("while")
    assert node.type == "StatelessWhile"
    assert [tensor.op.name for tensor in node.inputs] == ["Const", "x", "n", "x"]
    assert [tensor.shape.as_list() for tensor in concrete.outputs] == [[], [2]]


def test_one_variable_may_come_by_itself() -> None:
    for run in (traced, lambda function, *args: function(*args)):
        assert run(lambda x: opkernel.while_loop(lambda v: v < 9, lambda v: v * 2, [x]), X[0]) == [
            16
        ]


@pytest.mark.parametrize("limit", [3, np.int64(3)])
def test_the_number_of_turns_may_be_limited(limit: Any) -> None:
    def call(x: Any, limit: Any) -> Any:
        return opkernel.while_loop(
            lambda v: v < 100, lambda v: v * 2, (x,), maximum_iterations=limit
        )

    for run in (traced, lambda function, *args: function(*args)):
        assert run(call, X[0], limit) == (8,)
        assert run(call, np.float32(60), limit) == (120,)


def test_a_limit_that_is_a_tensor_makes_a_while() -> None:
    graph = Graph()
    with graph.as_default():
        limit = opkernel.placeholder("int64", [])
    (found,) = opkernel.while_loop(
        lambda v: True, lambda v: v * 2, [np.float32(1)], maximum_iterations=limit
    )
    assert Session(graph).run(found, {limit: 5}) == 32


def test_numbers_in_a_body_take_the_types_of_the_variables() -> None:
    found = traced(
        lambda x: opkernel.while_loop(lambda i, y: i < 1, lambda i, y: (i + 1, 7), [0, x]), X[0]
    )
    assert (found[1], found[1].dtype) == (7, np.float32)


def test_shapes_that_change_must_be_said_to() -> None:
    def grow(x: Any, **options: Any) -> Any:
        return opkernel.while_loop(
            lambda v: raw_ops.Size(input=v) < 7,
            lambda v: raw_ops.ConcatV2(values=[v, v], axis=0),
            [x],
            **options,
        )

    with pytest.raises(ValueError, match="shape_invariants"):
        traced(grow, X)
    for shape in ([None], None, TensorSpec([None])):
        found = traced(functools.partial(grow, shape_invariants=[shape]), X)
        assert found[0].tolist() == [1, 2] * 4
    with pytest.raises(ValueError, match="enters the loop"):
        traced(lambda x: grow(x, shape_invariants=[[3]]), X)


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (lambda i, x: i, "must return values like those that it takes"),
        (lambda i, x: (i, (x, x)), "must return values like those that it takes"),
        (lambda i, x: (x, i), "is int32, but the body"),
    ],
)
def test_bodies_return_what_they_take(body: Callable[..., Any], match: str) -> None:
    with pytest.raises(TypeError, match=match):
        traced(lambda x: opkernel.while_loop(lambda i, x: i < 3, body, [0, x]), X[0])


def test_conditions_return_one_value() -> None:
    with pytest.raises(TypeError, match="one bool"):
        traced(lambda x: opkernel.while_loop(lambda x: (x > 1, x), lambda x: x, [x]), X[0])
    wrong: list[Any] = [[], X]
    for loop_vars in wrong:
        with pytest.raises(ValueError, match="loop_vars"):
            opkernel.while_loop(bool, bool, loop_vars)


def test_what_decides_is_a_scalar() -> None:
    def turn(x: Any) -> Any:
        return [x + 1]

    for decide in (
        lambda x: opkernel.cond(x > 0, lambda: x, lambda: x),
        lambda x: opkernel.switch_case(raw_ops.Cast(x=x, DstT="int32"), [lambda: x, lambda: x]),
        lambda x: opkernel.while_loop(lambda x: x < 3, turn, [x]),
    ):
        with pytest.raises(ValueError, match=r"must be a scalar, but has the shape \[2\]"):
            opkernel.function(decide)(np.zeros(2, np.float32))


def test_loops_and_conditionals_nest() -> None:
    def collatz(n: Any) -> Any:
        def body(n: Any, steps: Any) -> Any:
            return opkernel.cond(n % 2 > 0, lambda: 3 * n + 1, lambda: n // 2), steps + 1

        return opkernel.while_loop(lambda n, steps: n > 1, body, [n, 0])[1]

    def longest(limit: Any) -> Any:
        def body(n: Any, best: Any) -> Any:
            steps = collatz(n)
            return n + 1, opkernel.cond(steps > best, lambda: steps, lambda: best)

        return opkernel.while_loop(lambda n, best: n < limit, body, [1, 0])[1]

    assert traced(longest, np.int32(30)) == 111


def test_resources_are_known_inside_of_loops() -> None:
    def call(n: Any) -> Any:
        v = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[2], shared_name="in_loops")
        raw_ops.AssignVariableOp(resource=v, value=X)

        def body(i: Any) -> Any:
            value = raw_ops.ReadVariableOp(resource=v, dtype=opkernel.float32)
            assert value.shape.as_list() == [2]
            raw_ops.AssignVariableOp(resource=v, value=value * 2)
            return i + 1

        opkernel.while_loop(lambda i: i < n, body, [0])
        return raw_ops.ReadVariableOp(resource=v, dtype=opkernel.float32)

    assert "While" in ops_of(call, INT)
    assert traced(call, np.int32(3)).tolist() == [8, 16]


def test_errors_in_branches_tell_their_line() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        traced(lambda x: opkernel.cond(x[0] > 0, lambda: x[0, 0], lambda: x[0]), X)
    assert "while tracing cond_true" in caught.value.__notes__[0]
