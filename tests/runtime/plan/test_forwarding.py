"""Plans write results over operands that die, where nobody can tell."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.graph import get_default_graph

B = np.array([1, 2, 3], np.float32)
X = np.array([[-4, 5, -6], [0.5, 0.25, 8]], np.float32)


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with opkernel.Graph().as_default() as graph:
        yield graph


def placeholder(**attrs: Any) -> Any:
    return raw_ops.Placeholder(dtype=opkernel.float32, name="x", **attrs)


def run(fetches: Any, value: Any = X) -> Any:
    with opkernel.Session(get_default_graph(), optimize=False) as session:
        return session.run(fetches, {"x:0": value})


def source(fetches: Any) -> str:
    with opkernel.Session(get_default_graph(), optimize=False) as session:
        return session.plan(fetches, ["x:0"]).source


def test_a_chain_needs_no_more_than_one_array() -> None:
    y = raw_ops.AddV2(x=placeholder(), y=B, name="sum")
    y = raw_ops.Mul(x=y, y=np.float32(2), name="twice")
    y = raw_ops.Relu(features=y, name="relu")
    text = source(y)
    assert "twice = multiply(sum_1, " in text
    assert ", sum_1); del sum_1" in text
    assert "out=twice); del twice" in text
    np.testing.assert_array_equal(run(y), np.maximum((X + B) * 2, 0))


def test_what_is_fed_is_left_alone() -> None:
    x = placeholder(shape=[2, 3])
    fed = X.copy()
    np.testing.assert_array_equal(run(raw_ops.AddV2(x=x, y=B), fed), X + B)
    np.testing.assert_array_equal(fed, X)


def keeps_view(y: Any) -> tuple[Any, Any]:
    return raw_ops.Reshape(tensor=y, shape=[6]), (X + B).reshape(6)


def keeps_itself(y: Any) -> tuple[Any, Any]:
    return raw_ops.Identity(input=y), X + B


def keeps_for_later(y: Any) -> tuple[Any, Any]:
    return raw_ops.Sub(x=raw_ops.Exp(x=B), y=y), np.exp(B) - (X + B)


def keeps_in_a_list(y: Any) -> tuple[Any, Any]:
    packed = raw_ops.Pack(values=[raw_ops.Squeeze(input=y), B + np.zeros((2, 1), np.float32)])
    return packed, np.stack([X + B, np.stack([B, B])])


@pytest.mark.parametrize("keep", [keeps_view, keeps_itself, keeps_for_later, keeps_in_a_list])
def test_what_anybody_still_sees_is_not_written_to(keep: Callable[[Any], Any]) -> None:
    y = raw_ops.AddV2(x=placeholder(), y=B)
    kept, expected = keep(y)
    doubled = raw_ops.Mul(x=y, y=np.float32(2))
    for fetches in ([kept, doubled], [doubled, kept]):
        results = dict(zip(fetches, run(fetches), strict=True))
        np.testing.assert_allclose(results[kept], expected, rtol=1e-6)
        np.testing.assert_array_equal(results[doubled], (X + B) * 2)


@pytest.mark.parametrize("operand", [np.ones((4, 1, 1)), np.ones((2, 3)), X[:, :1]])
def test_a_result_of_another_shape_has_its_own_memory(operand: Any) -> None:
    operand = operand.astype(np.float32)
    y = raw_ops.AddV2(x=placeholder(), y=B)
    y = raw_ops.Sub(x=raw_ops.Mul(x=y, y=operand), y=B)
    for value in (X, X[0], X[0, 0]):
        np.testing.assert_array_equal(run(y, value), (value + B) * operand - B)


def test_a_result_of_another_type_has_its_own_memory() -> None:
    y = raw_ops.AddV2(x=placeholder(), y=B)
    less = raw_ops.Less(x=y, y=B)
    np.testing.assert_array_equal(run(raw_ops.LogicalNot(x=less)), X + B >= B)


def test_numbers_stay_numbers() -> None:
    y = raw_ops.Mul(x=raw_ops.AddV2(x=placeholder(), y=np.float32(1)), y=np.float32(3))
    assert run(y, np.float32(2)) == 9
    np.testing.assert_array_equal(run(y, B), (B + 1) * 3)


def test_on_branches() -> None:
    x = placeholder()
    y = raw_ops.AddV2(x=x, y=B)
    positive = raw_ops.Greater(x=raw_ops.Sum(input=x, axis=[0, 1]), y=np.float32(0))
    no, yes = raw_ops.Switch(data=y, pred=positive)
    merged = raw_ops.Merge(inputs=[raw_ops.Mul(x=no, y=B), raw_ops.Sub(x=yes, y=B)])[0]
    both = raw_ops.AddV2(x=merged, y=y)
    np.testing.assert_array_equal(run(both), X + X + B)
    np.testing.assert_array_equal(run(both, -X), (B - X) * B + (B - X))


def test_in_loops() -> None:
    def body(i: Any, y: Any, last: Any) -> Any:
        halved = raw_ops.Mul(x=raw_ops.AddV2(x=y, y=B), y=np.float32(0.5))
        return raw_ops.AddV2(x=i, y=np.int32(1)), raw_ops.Relu(features=halved), y

    results = opkernel.while_loop(
        lambda i, y, last: raw_ops.Less(x=i, y=np.int32(5)),
        body,
        [np.int32(0), placeholder(shape=[2, 3]), np.zeros((2, 3), np.float32)],
    )
    expected, last = X, X
    for _ in range(5):
        expected, last = np.maximum((expected + B) * np.float32(0.5), 0), expected
    _, y, before = run(list(results))
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(before, last)


def test_plans_of_several_functions() -> None:
    y = first = raw_ops.AddV2(x=placeholder(), y=B)
    for _ in range(900):
        y = raw_ops.Mul(x=raw_ops.AddV2(x=y, y=B), y=np.float32(0.5))
    y = raw_ops.Sub(x=y, y=first)
    expected = X + B
    for _ in range(900):
        expected = (expected + B) * np.float32(0.5)
    assert "part_1" in source(y)
    np.testing.assert_array_equal(run(y), expected - (X + B))
