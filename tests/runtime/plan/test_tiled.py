"""Groups of element-wise nodes give what the nodes give one by one."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.graph import get_default_graph
from opkernel.kernel import intra_op_parallelism

RNG = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape, np.float32)


def chain(a: Any, b: Any, c: Any) -> Any:
    """Six nodes."""
    y = raw_ops.Mul(x=a, y=b)
    y = raw_ops.AddV2(x=y, y=c)
    y = raw_ops.Tanh(x=y)
    y = raw_ops.Sub(x=y, y=a)
    y = raw_ops.Sigmoid(x=y)
    return raw_ops.Mul(x=y, y=y)


def placeholder(name: str, dtype: Any = opkernel.float32, shape: Any = None) -> Any:
    return raw_ops.Placeholder(dtype=dtype, shape=shape, name=name)


def both(fetches: Any, feeds: dict[Any, Any]) -> tuple[Any, Any]:
    """The results of a plan, and of the dataflow executor, which computes one node at a time."""
    graph = get_default_graph()
    with opkernel.Session(graph, optimize=False) as session:
        grouped = session.run(fetches, feeds)
        again = session.run(fetches, feeds)
    np.testing.assert_equal(grouped, again)
    with opkernel.Session(graph, optimize=False, executor_type="DATAFLOW") as session:
        return grouped, session.run(fetches, feeds)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with opkernel.Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        ((200_001,), (200_001,), ()),
        ((200_001,), (1,), (200_001,)),
        ((1, 200_001), (1, 1), (200_001,)),
        ((3, 70_000), (3, 1), (70_000,)),
        ((300, 700), (300, 1), (700,)),
        ((300, 700), (1, 700), (300, 700)),
        ((1, 30, 40, 150), (150,), (1, 1, 1, 150)),
        ((4, 30, 40, 50), (4, 1, 1, 50), (50,)),
        ((2, 3, 500, 100), (3, 1, 100), (2, 1, 500, 1)),
        ((500, 1), (1, 600), (600,)),
        ((0, 600), (600,), ()),
        ((7,), (7,), ()),
    ],
)
def test_any_shapes(a: Any, b: Any, c: Any, threads: int) -> None:
    x, y, z = (placeholder(name) for name in "abc")
    with intra_op_parallelism(threads):
        grouped, alone = both(
            chain(x, y, z),
            {x: floats(*a), y: floats(*b), z: np.float32(0.5) if c == () else floats(*c)},
        )
    np.testing.assert_array_equal(grouped, alone)
    assert grouped.dtype == np.float32


@pytest.mark.parametrize("layout", ["F", "reversed", "every other"])
def test_arrays_that_are_not_contiguous(layout: str) -> None:
    x, y, z = (placeholder(name) for name in "abc")
    a = floats(600, 700)
    a = {"F": np.asfortranarray(a), "reversed": a[::-1], "every other": a[:, ::2]}[layout]
    grouped, alone = both(chain(x, y, z), {x: a, y: np.float32(2), z: floats(1)})
    np.testing.assert_array_equal(grouped, alone)


def test_several_results_and_types() -> None:
    x, y = placeholder("x"), placeholder("y", shape=[None])
    total = raw_ops.AddV2(x=x, y=y)
    is_less = raw_ops.Less(x=total, y=y)
    both_ = raw_ops.LogicalAnd(x=is_less, y=raw_ops.GreaterEqual(x=total, y=x))
    chosen = raw_ops.SelectV2(condition=both_, t=total, e=y)
    rounded = raw_ops.Cast(x=raw_ops.Mul(x=chosen, y=total), DstT=opkernel.int32)
    column = raw_ops.Sum(input=total, axis=np.int32(0))
    fetches = [chosen, rounded, both_, total, column]
    grouped, alone = both(fetches, {x: floats(300, 700), y: floats(700)})
    for one, other in zip(grouped, alone, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_steps_that_are_smaller_than_the_whole() -> None:
    """The mean and the variance of rows, as LayerNorm has them."""
    x, mean, variance = placeholder("x"), placeholder("mean"), placeholder("variance")
    scale = raw_ops.Mul(
        x=raw_ops.Rsqrt(x=raw_ops.AddV2(x=variance, y=np.float32(1e-5))),
        y=np.full(700, 2, np.float32),
    )
    y = raw_ops.Mul(x=raw_ops.Sub(x=x, y=mean), y=scale)
    y = raw_ops.AddV2(x=y, y=np.arange(700, dtype=np.float32))
    a = floats(8, 60, 700)
    feeds = {x: a, mean: a.mean(-1, keepdims=True), variance: a.var(-1, keepdims=True)}
    grouped, alone = both([y, scale], feeds)
    np.testing.assert_array_equal(grouped[0], alone[0])
    np.testing.assert_array_equal(grouped[1], alone[1])


@pytest.mark.parametrize("dtype", ["half", "double", "bfloat16", "complex64", "int32"])
def test_other_types(dtype: str) -> None:
    dtype_ = opkernel.DataType.from_string(dtype)
    x = placeholder("x", dtype_)
    y = raw_ops.Mul(x=x, y=x)
    y = raw_ops.Sub(x=raw_ops.AddV2(x=y, y=x), y=raw_ops.Mul(x=y, y=y))
    y = raw_ops.SquaredDifference(x=y, y=x)
    y = raw_ops.Neg(x=y)
    value = floats(200_000).astype(dtype_.numpy_dtype)
    grouped, alone = both(y, {x: value})
    np.testing.assert_array_equal(grouped, alone)
    assert grouped.dtype == dtype_.numpy_dtype


def test_what_is_fed_stays_as_it_is() -> None:
    x = placeholder("x")
    y = chain(x, np.float32(2), np.float32(1))
    value = floats(300_000)
    before = value.copy()
    first, second = both(y, {x: value})
    np.testing.assert_array_equal(value, before)
    assert not np.shares_memory(first, value)
    assert not np.shares_memory(first, second)


def test_a_result_takes_over_memory_that_nobody_else_sees() -> None:
    """What a node computed and the group alone reads; a view of it is somebody else."""
    x = placeholder("x")
    owned = raw_ops.Cumsum(x=x, axis=np.int32(0))
    shared = raw_ops.Cumsum(x=x, axis=np.int32(0), reverse=True)
    view = raw_ops.Reshape(tensor=shared, shape=np.array([-1], np.int32))
    fetches = [
        chain(owned, np.float32(2), np.float32(1)),
        view,
        chain(shared, owned, np.float32(1)),
    ]
    value = floats(300, 700)
    grouped, alone = both(fetches, {x: value})
    for one, other in zip(grouped, alone, strict=True):
        np.testing.assert_array_equal(one, other)


def test_steps_do_not_share_results() -> None:
    """Each step gives memory of its own, whatever an earlier step's result is used for."""
    x = placeholder("x")
    y = chain(raw_ops.Cumsum(x=x, axis=np.int32(0)), np.float32(2), np.float32(1))
    values = [floats(300_000) for _ in range(4)]
    with opkernel.Session() as session:
        results = [session.run(y, {x: value}) for value in values]
        again = [session.run(y, {x: value}) for value in values]
    for one, other in zip(results, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_error_names_the_node_that_failed() -> None:
    x, y = placeholder("x"), placeholder("y")
    total = raw_ops.AddV2(x=raw_ops.Mul(x=x, y=x), y=x)
    failing = raw_ops.Mul(x=total, y=y, name="failing")
    result = raw_ops.Tanh(x=raw_ops.Neg(x=failing))
    with opkernel.Session() as session:
        assert session.run(result, {x: floats(200_000), y: floats(1)}).shape == (200_000,)
        for _ in range(2):
            with pytest.raises(
                InvalidArgumentError, match=r"\[200000\] vs. \[7\].*'failing'"
            ) as info:
                session.run(result, {x: floats(200_000), y: floats(7)})
            assert info.value.node == "failing"


def test_an_error_of_a_value_names_the_node_that_failed() -> None:
    x, y = placeholder("x", opkernel.int32), placeholder("y", opkernel.int32)
    quotient = raw_ops.FloorDiv(x=raw_ops.AddV2(x=x, y=x), y=y, name="quotient")
    result = raw_ops.Cast(x=raw_ops.Neg(x=raw_ops.Mul(x=quotient, y=x)), DstT=opkernel.float32)
    result = raw_ops.Tanh(x=result)
    ones = np.ones(200_000, np.int32)
    divisors = ones.copy()
    with opkernel.Session() as session:
        np.testing.assert_array_equal(
            session.run(result, {x: ones, y: divisors}), np.tanh(np.full(200_000, -2, np.float32))
        )
        divisors[150_000] = 0
        with pytest.raises(InvalidArgumentError, match="quotient"):
            session.run(result, {x: ones, y: divisors})


def test_groups_in_loops_and_branches() -> None:
    x, n = placeholder("x", shape=[None]), placeholder("n", opkernel.int32, [])

    def body(i: Any, y: Any) -> Any:
        step = raw_ops.Mul(x=raw_ops.Tanh(x=raw_ops.AddV2(x=y, y=x)), y=np.float32(0.5))
        return raw_ops.AddV2(x=i, y=np.int32(1)), raw_ops.Sub(x=raw_ops.Mul(x=step, y=x), y=y)

    _, y = opkernel.while_loop(lambda i, y: raw_ops.Less(x=i, y=n), body, [np.int32(0), x])
    value = floats(200_000)
    grouped, alone = both(y, {x: value, n: np.int32(5)})
    np.testing.assert_array_equal(grouped, alone)


@pytest.mark.parametrize("bound", [0.25, -np.inf, np.inf, np.nan, 0.0])
@pytest.mark.parametrize("number_first", [False, True])
@pytest.mark.parametrize("op", ["Maximum", "Minimum"])
def test_extremes_with_a_number(op: str, number_first: bool, bound: float) -> None:
    x, number = placeholder("x"), np.float32(bound)
    operands = (number, x) if number_first else (x, number)
    extreme = getattr(raw_ops, op)(x=operands[0], y=operands[1])
    y = raw_ops.Relu(features=raw_ops.AddV2(x=raw_ops.Mul(x=extreme, y=x), y=np.float32(1)))
    value = floats(200_001)
    value[:4] = np.nan, np.inf, -np.inf, 0.25
    grouped, one_by_one = both(y, {x: value})
    np.testing.assert_array_equal(grouped, one_by_one)


def test_several_results_of_several_types() -> None:
    x, c = placeholder("x"), placeholder("c", opkernel.float64)
    a = raw_ops.Mul(x=x, y=x)
    b = raw_ops.Sub(x=raw_ops.AddV2(x=a, y=x), y=a)
    d = raw_ops.Exp(x=raw_ops.Neg(x=b))
    e = raw_ops.Tanh(x=raw_ops.Mul(x=raw_ops.AddV2(x=c, y=c), y=raw_ops.Sin(x=c)))
    f = raw_ops.Mul(x=e, y=raw_ops.Sub(x=e, y=c))
    g = raw_ops.Less(x=d, y=a)
    feeds = {x: floats(300_000), c: floats(300_000).astype(np.float64)}
    for fetches in ([a, d, g], [d, b, f], [f, a, g, d], [e, f]):
        grouped, one_by_one = both(fetches, feeds)
        for ours, theirs in zip(grouped, one_by_one, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_large_results_do_not_change_when_the_next_is_computed() -> None:
    x = placeholder("x")
    y = raw_ops.AddV2(x=raw_ops.Mul(x=raw_ops.AddV2(x=x, y=x), y=x), y=np.float32(1))
    y = raw_ops.Sub(x=y, y=x)
    value = floats(1 << 23)
    with opkernel.Session(get_default_graph()) as session:
        first = session.run(y, {x: value})
        row = session.run(y, {x: value + 1})[5:9]
        again = session.run(y, {x: value})
        session.run(y, {x: value + 2})
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, (value + value) * value + 1 - value)
    value = value[5:9] + 1
    np.testing.assert_array_equal(row, (value + value) * value + 1 - value)


@pytest.mark.parametrize(
    "op", ["TanhGrad", "SigmoidGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"]
)
def test_what_takes_inputs_of_one_size_and_other_shapes_is_computed_alone(op: str) -> None:
    """The gradients of unary ops give the shape of `y`, whatever that of `dy` is."""
    y, dy = placeholder("y"), placeholder("dy")
    z = getattr(raw_ops, op)(y=y, dy=dy)
    for _ in range(4):
        z = raw_ops.AddV2(x=z, y=np.float32(1))
    grouped, alone = both(z, {y: floats(200_000), dy: floats(1, 200_000)})
    assert grouped.shape == alone.shape == (200_000,)
    np.testing.assert_array_equal(grouped, alone)


@pytest.mark.parametrize("shape", [(200_001,), (200_001, 1), (1, 200_001)])
def test_inputs_of_one_size_that_are_not_to_be_broadcast(shape: tuple[int, ...]) -> None:
    """TanhGrad and its like take gradients of another shape, element by element in their order."""
    y, dy = placeholder("y"), placeholder("dy")
    z = raw_ops.TanhGrad(y=y, dy=dy)
    for _ in range(3):
        z = raw_ops.Mul(x=z, y=np.float32(0.5))
    feeds = {y: floats(*shape), dy: floats(1, 200_001)}
    grouped, single = both(z, feeds)
    assert grouped.shape == shape
    expected = feeds[dy].ravel() * (1 - feeds[y].ravel() ** 2) / 8
    np.testing.assert_allclose(grouped.ravel(), expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(grouped, single)


def test_gradients_of_activations_of_other_shapes_are_refused() -> None:
    gradients, features = placeholder("gradients"), placeholder("features")
    z = raw_ops.ReluGrad(gradients=gradients, features=features)
    for _ in range(3):
        z = raw_ops.Mul(x=z, y=np.float32(0.5))
    with opkernel.Session(get_default_graph()) as session:
        ones = {gradients: floats(200_001), features: floats(200_001)}
        assert session.run(z, ones).shape == (200_001,)
        with pytest.raises(InvalidArgumentError, match="ReluGrad"):
            session.run(z, {gradients: floats(200_001), features: floats(1)})
