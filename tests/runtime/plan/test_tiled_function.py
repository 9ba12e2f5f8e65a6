"""TiledFunction itself: when it computes, what it allocates, whose memory it takes over."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkernel.runtime.plan.pointwise import PointwiseFunction
from opkernel.runtime.plan.tiled import TiledFunction, TiledNode

F32 = np.dtype(np.float32)
N = 1 << 20


def step(ufunc: np.ufunc, *inputs: int) -> TiledNode:
    return TiledNode(PointwiseFunction(ufunc, ufunc, F32, True), inputs)


def polynomial(dying: tuple[int, ...] = ()) -> TiledFunction:
    """(x * y + y) * x - y of two inputs."""
    steps = [
        step(np.multiply, 0, 1),
        step(np.add, 2, 1),
        step(np.multiply, 3, 0),
        step(np.subtract, 4, 1),
    ]
    return TiledFunction(2, steps, [3], dying)


def expected(x: Any, y: Any) -> Any:
    return (x * y + y) * x - y


def ones(*shape: int) -> Any:
    return np.random.default_rng(3).random(shape, np.float32)


@pytest.mark.parametrize(
    ("x", "y", "is_tiled"),
    [
        ((N,), (N,), True),
        ((N,), (), True),
        ((1, N), (N,), True),
        ((N // 64, 64), (64,), True),
        ((N // 64, 64), (N // 64, 1), True),
        ((8, 128, 16, 64), (8, 1, 1, 64), True),
        ((8, 128, 16, 64), (8, 128, 1, 1), True),
        ((2, 2, N // 4), (2, 1, N // 4), False),  # would be two rows only, of more than a tile
        ((1000,), (1000,), False),
        ((0, 4), (4,), False),
        ((N,), (3,), False),
    ],
)
def test_when_it_computes(x: Any, y: Any, is_tiled: bool) -> None:
    a, b = ones(*x), ones(*y)
    result = polynomial()(a, b)
    assert (result is not None) == is_tiled
    if result is not None:
        np.testing.assert_array_equal(result, expected(a, b))


def test_it_allocates_the_result_and_some_tiles() -> None:
    a, b, function = ones(8 * N), ones(8 * N), polynomial()
    function(a, b)
    tracemalloc.start()
    result = function(a, b)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.nbytes == 32 * N
    assert peak < 1.1 * result.nbytes


def called(function: TiledFunction, make: Callable[[], Any], keep: Callable[[Any], Any]) -> bool:
    """Whether a call with an array that `keep` may keep gives the result in its memory."""

    def plan() -> bool:
        x = make()
        kept = keep(x)
        address, before = x.ctypes.data, x.copy()
        result = function(x, y)
        np.testing.assert_array_equal(result, expected(before, y))
        del kept
        return bool(result.ctypes.data == address)

    y = ones(N)
    return plan()


def test_a_result_takes_over_an_array_that_only_the_plan_has() -> None:
    function = polynomial(dying=(0,))
    first = called(function, lambda: ones(N), lambda x: None)
    assert [first, called(function, lambda: ones(N), lambda x: None)] == [False, True]
    assert not called(function, lambda: ones(N), lambda x: x)
    assert not called(function, lambda: ones(N), lambda x: x[3:])
    assert not called(function, lambda: ones(2, N)[1], lambda x: None)
    assert not called(polynomial(), lambda: ones(N), lambda x: None)


def test_an_array_is_not_taken_over_while_it_is_still_read() -> None:
    """The first step's result is wanted, and the last step reads the input once more."""
    steps = [step(np.multiply, 0, 0), step(np.add, 1, 1), step(np.subtract, 2, 0)]
    function = TiledFunction(1, steps, [0, 2], dying=[0])
    for _ in range(2):
        x = ones(N)
        before = x.copy()
        square, last = function(x)
        np.testing.assert_array_equal(square, before * before)
        np.testing.assert_array_equal(last, 2 * (before * before) - before)


def test_what_raises_is_left_to_the_nodes() -> None:
    def refuse(*inputs: Any, out: Any) -> None:
        raise ValueError("no")

    steps = [
        step(np.negative, 0),
        TiledNode(PointwiseFunction(np.negative, refuse, F32, False), (1,)),
    ]
    assert TiledFunction(1, steps, [1])(ones(N)) is None
    assert TiledFunction(1, steps, [0, 1])(ones(N)) == (None, None)
