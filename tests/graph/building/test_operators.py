"""Tensors as operands, and slices of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, Tensor, TensorSpec
from opkernel.errors import InvalidArgumentError

X = np.arange(6, dtype=np.float32).reshape(2, 3)
N = np.arange(-3, 3, dtype=np.int32)
B = np.array([True, False])


def evaluated(function: Callable[..., Any], *values: Any) -> Any:
    with Graph().as_default() as graph:
        feeds = [opkernel.placeholder(np.asarray(v).dtype, np.shape(v)) for v in values]
        results = function(*feeds)
        return Session(graph).run(results, dict(zip(feeds, values, strict=True)))


def made_by(function: Callable[..., Any], *values: Any) -> list[str]:
    """The ops that a function makes, without constants."""
    specs = [TensorSpec(np.shape(v), np.asarray(v).dtype) for v in values]
    ops = opkernel.function(function).get_concrete_function(*specs).graph.get_operations()
    return [op.type for op in ops if op.type not in ("Const", "Placeholder")]


SAME_IN_NUMPY: list[tuple[Callable[..., Any], Any, list[str]]] = [
    (lambda x: x + 1, X, ["AddV2"]),
    (lambda x: 1 + x, X, ["AddV2"]),
    (lambda x: x - X, X, ["Sub"]),
    (lambda x: X - 2 * x, X, ["Mul", "Sub"]),
    (lambda x: x / 2, X, ["RealDiv"]),
    (lambda x: 2 / (x + 1), X, ["AddV2", "RealDiv"]),
    (lambda x: x // 2, N, ["FloorDiv"]),
    (lambda x: 7 % (x + 4), N, ["AddV2", "FloorMod"]),
    (lambda x: x**2, X, ["Pow"]),
    (lambda x: 2.0**x, X, ["Pow"]),
    (lambda x: x @ X.T, X, ["MatMul"]),
    (lambda x: X.T @ x, X, ["MatMul"]),
    (lambda x: x[None] @ X.T[None], X, ["StridedSlice", "BatchMatMulV2"]),
    (lambda x: -abs(-x), X, ["Neg", "Abs", "Neg"]),
    (lambda x: abs(x), np.array([3 + 4j], np.complex64), ["ComplexAbs"]),
    (lambda x: ~x, N, ["Invert"]),
    (lambda x: (x & 3) | 8, N, ["BitwiseAnd", "BitwiseOr"]),
    (lambda x: 5 ^ x, N, ["BitwiseXor"]),
    (lambda x: ~x, B, ["LogicalNot"]),
    (lambda x: x & True | x, B, ["LogicalAnd", "LogicalOr"]),
    (lambda x: x ^ True, B, ["LogicalOr", "LogicalAnd", "LogicalNot", "LogicalAnd"]),
    (lambda x: x < 2, X, ["Less"]),
    (lambda x: 2 <= x, X, ["GreaterEqual"]),  # noqa: SIM300  # the point of it
    (lambda x: x > X, X, ["Greater"]),
    (lambda x: x <= 2, X, ["LessEqual"]),
]


@pytest.mark.parametrize(("function", "value", "ops"), SAME_IN_NUMPY)
def test_operators_do_as_numpy_with_tensorflows_ops(
    function: Callable[..., Any], value: Any, ops: list[str]
) -> None:
    wanted = function(value)
    found = evaluated(function, value)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert made_by(function, value) == ops


@pytest.mark.parametrize(
    ("dtype", "quotient"), [("int8", "float32"), ("uint16", "float32"), ("int64", "float64")]
)
def test_integers_are_divided_as_floats(dtype: str, quotient: str) -> None:
    found = evaluated(lambda x: x / 2, np.array([1, 3], dtype))
    assert (found.dtype, found.tolist()) == (quotient, [0.5, 1.5])


def test_text_is_joined() -> None:
    concrete = opkernel.function(lambda s: s + "b").get_concrete_function(
        TensorSpec([1], opkernel.string)
    )
    assert concrete(np.array([b"a"], object)).tolist() == [b"ab"]
    assert [op.type for op in concrete.graph.get_operations()][-1] == "Add"


def test_other_operands_take_the_type_of_the_tensor() -> None:
    doubles = np.array([1.5, 2.5, 3.5])
    for operand in (2, doubles, doubles.tolist(), np.int64(2), doubles[0]):
        assert evaluated(lambda x, y=operand: x + y, X).dtype == np.float32
        assert evaluated(lambda x, y=operand: y * x, X).dtype == np.float32


@pytest.mark.parametrize(
    "operand", [1.5, np.array([1.5], np.float32), [0.5], 2**40, np.int64(2**40), None, B]
)
def test_operands_that_do_not_fit_are_refused(operand: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="int32"):
        evaluated(lambda x: x + operand, N)


def test_tensors_of_two_types_do_not_mix() -> None:
    with pytest.raises(InvalidArgumentError, match="float32"):
        evaluated(lambda x, n: x + n, X, N[:3])


def test_tensors_are_equal_to_themselves_alone() -> None:
    with Graph().as_default():
        x = opkernel.placeholder("float32", [2])
        same = opkernel.raw_ops.Identity(input=x)
        assert x == x.op.outputs[0]
        assert x != same
        assert len({x, same}) == 2
        assert isinstance(opkernel.raw_ops.Equal(x=x, y=same), Tensor)


def test_tensors_have_no_value() -> None:
    with Graph().as_default():
        x = opkernel.placeholder("float32", [2])
        with pytest.raises(TypeError, match=r"opkernel\.cond"):
            bool(x > 1)
        with pytest.raises(TypeError, match="symbolic"):
            list(x)


SLICES: list[Callable[[Any], Any]] = [
    lambda x: x[0],
    lambda x: x[-1],
    lambda x: x[1, 2],
    lambda x: x[np.int64(1)],
    lambda x: x[:, 1:],
    lambda x: x[::-1, ::2],
    lambda x: x[..., 0],
    lambda x: x[None],
    lambda x: x[:, None, 1:3, None],
    lambda x: x[..., None, -2:],
    lambda x: x[1:1],
    lambda x: x[()],
    lambda x: x[x > 2],
    lambda x: x[np.array([True, False])],
]


@pytest.mark.parametrize("function", SLICES)
def test_slices_are_those_of_numpy(function: Callable[[Any], Any]) -> None:
    wanted = function(X)
    found = evaluated(function, X)
    np.testing.assert_array_equal(found, wanted)
    assert np.shape(found) == np.shape(wanted)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_bounds_may_be_tensors(dtype: str) -> None:
    i = np.array(1, dtype)
    found = evaluated(lambda x, i: [x[i], x[i:, 0], x[:, : i + 1], x[0, i], x[::i]], X, i)
    wanted = [X[1], X[1:, 0], X[:, :2], X[0, 1], X]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_bounds_may_be_of_two_types() -> None:
    for i, j in ((np.int32(0), np.int64(1)), (np.int64(0), np.int32(1))):
        found = evaluated(lambda x, i, j: [x[i:j], x[j, i:], x[: 2**40 : j, i]], X, i, j)
        for one, other in zip(found, [X[0:1], X[1, 0:], X[:, 0]], strict=True):
            np.testing.assert_array_equal(one, other)


def test_bounds_may_be_beyond_32_bits() -> None:
    assert evaluated(lambda x: x[: 2**40], X).shape == (2, 3)


@pytest.mark.parametrize("key", [1.5, [0, 1], True, "a", slice(0, 1.5)])
def test_what_is_no_index_is_refused(key: Any) -> None:
    with pytest.raises(TypeError, match="valid indices"):
        evaluated(lambda x: x[key], X)


def test_shapes_of_slices_are_known() -> None:
    with Graph().as_default():
        x = opkernel.placeholder("float32", [None, 3])
        assert x[:, 1:].shape.as_list() == [None, 2]
        assert x[0].shape.as_list() == [3]
        with pytest.raises(InvalidArgumentError, match="2 dims"):
            x[0, 0, 0]


def test_nodes_are_named_after_the_operators() -> None:
    with Graph().as_default() as graph:
        n = opkernel.placeholder("int32", [2], "n")
        assert [t.name for t in (n + 1, n / 2, n[0], n > 1)] == [
            "add:0",
            "truediv:0",
            "strided_slice:0",
            "Greater:0",
        ]
        assert graph.get_operation_by_name("add/y").type == "Const"
        assert graph.get_operation_by_name("truediv/Cast_1").type == "Cast"
        assert graph.get_operation_by_name("strided_slice/stack_1").type == "Const"
