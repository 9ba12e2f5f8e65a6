"""Staging areas and staging maps; expected values and errors are TensorFlow's."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.ops.data_flow.waiting_steps import WAIT_S, no_threads_left, started

from opkernel import Graph, RunOptions, Session, raw_ops
from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from opkernel.types import float32, int32, int64

SOON = RunOptions(timeout_in_ms=100)


class Stage:
    """A staging area of floats and integers, and steps of a session on it."""

    def __init__(self, **attrs: Any) -> None:
        dtypes = [float32, int32]
        attrs = {"shared_name": "s", **attrs}
        with Graph().as_default() as graph:
            self.values = [raw_ops.Placeholder(dtype=dtype) for dtype in dtypes]
            self.index = raw_ops.Placeholder(dtype=int32)
            self._put = raw_ops.Stage(values=self.values, **attrs)
            self._get = raw_ops.Unstage(dtypes=dtypes, **attrs)
            self._peek = raw_ops.StagePeek(index=self.index, dtypes=dtypes, **attrs)
            self._size = raw_ops.StageSize(dtypes=dtypes, **attrs)
            self._clear = raw_ops.StageClear(dtypes=dtypes, **attrs)
            self.too_few = raw_ops.Unstage(dtypes=dtypes[:1], **attrs)
        self.session = Session(graph)

    def put(self, *values: Any, **kwargs: Any) -> None:
        self.session.run(self._put, dict(zip(self.values, values, strict=True)), **kwargs)

    def get(self, **kwargs: Any) -> list[Any]:
        return [np.asarray(v).tolist() for v in self.session.run(list(self._get), **kwargs)]

    def peek(self, index: Any) -> list[Any]:
        values = self.session.run(list(self._peek), {self.index: index})
        return [np.asarray(v).tolist() for v in values]

    def clear(self) -> None:
        self.session.run(self._clear)

    @property
    def size(self) -> int:
        return int(self.session.run(self._size))


def test_tensors_leave_in_order_and_may_be_looked_at() -> None:
    stage = Stage()
    stage.put(1, 2)
    stage.put([3], 4)
    assert stage.size == 2
    assert stage.peek(1) == [[3], 4]
    assert [stage.get(), stage.get()] == [[1, 2], [[3], 4]]
    stage.put(5, 6)
    stage.clear()
    assert stage.size == 0


def test_takers_and_lookers_wait() -> None:
    stage = Stage()
    looking, taking = started(stage.peek, 1), started(stage.get)
    stage.put(1, 2)
    assert taking.result(WAIT_S) == [1, 2]
    stage.put(3, 4)
    assert not looking.done()
    stage.put(5, 6)
    assert looking.result(WAIT_S) == [5, 6]
    assert stage.size == 2


def test_a_full_area_makes_wait() -> None:
    stage = Stage(capacity=1)
    stage.put(1, 1)
    putting = started(stage.put, 2, 2)
    assert not putting.done()
    assert stage.get() == [1, 1]
    putting.result(WAIT_S)
    putting = started(stage.put, 3, 3)
    stage.clear()
    putting.result(WAIT_S)
    assert stage.get() == [3, 3]


def test_small_tensors_may_overtake_those_that_there_is_no_memory_for() -> None:
    stage = Stage(memory_limit=24)
    stage.put([1, 2], 0)  # 12 bytes
    waiting = started(stage.put, [3, 4, 5], 0)
    stage.put([6], 0)
    assert stage.size == 2
    assert stage.get() == [[1, 2], 0]
    waiting.result(WAIT_S)
    assert [stage.get(), stage.get()] == [[[6], 0], [[3, 4, 5], 0]]
    with pytest.raises(ResourceExhaustedError, match=r"'28' bytes into .* limit of '24'"):
        stage.put(np.zeros(6), 0)


def test_wrong_uses() -> None:
    stage = Stage()
    stage.put(1, 2)
    with pytest.raises(InvalidArgumentError, match=r"Mismatch stage/unstage: 2 vs\. 1"):
        stage.session.run(stage.too_few[0])
    with pytest.raises(InvalidArgumentError, match="index must be scalar"):
        stage.peek([0])
    with pytest.raises(InvalidArgumentError, match="must not be negative"):
        stage.peek(-1)


def test_waits_end_with_their_step() -> None:
    stage = Stage(capacity=1)
    with no_threads_left():
        with pytest.raises(DeadlineExceededError):
            stage.get(options=SOON)
        stage.put(1, 1)
        with pytest.raises(DeadlineExceededError):
            stage.put(2, 2, options=SOON)
        assert stage.get() == [1, 1]
        waiting = started(stage.get)
        stage.session.close()
        with pytest.raises(CancelledError):
            waiting.result(WAIT_S)


def test_what_the_caller_writes_does_not_reach_the_area() -> None:
    stage, given = Stage(), np.array([1, 2], np.float32)
    stage.put(given, 0)
    given[:] = 7
    stage.session.run(stage._peek[0], {stage.index: 0})[:] = 8
    assert stage.get() == [[1, 2], 0]


class Staged:
    """A staging map of floats and integers, and steps of a session on it."""

    def __init__(self, kind: str = "", **attrs: Any) -> None:
        dtypes = [float32, int32]
        attrs = {"shared_name": "m", **attrs}
        self.op = lambda name: getattr(raw_ops, f"{kind}Map{name}")
        with Graph().as_default() as graph:
            self.key, self.indices = (raw_ops.Placeholder(dtype=dtype) for dtype in (int64, int32))
            self.values = [raw_ops.Placeholder(dtype=dtype) for dtype in dtypes]
            at = {"key": self.key, "indices": self.indices, **attrs}
            any_key = {"indices": self.indices, **attrs}
            parts = {(0, 1): dtypes, (0,): dtypes[:1], (1,): dtypes[1:]}
            self.puts = {
                part: self.op("Stage")(values=[self.values[i] for i in part], dtypes=dtypes, **at)
                for part in parts
            }
            self.takes = {p: self.op("Unstage")(dtypes=some, **at) for p, some in parts.items()}
            self.peeks = {p: self.op("Peek")(dtypes=some, **at) for p, some in parts.items()}
            self.any = self.op("UnstageNoKey")(dtypes=dtypes, **any_key)
            self.sizes_of = [
                self.op(name)(dtypes=dtypes, **attrs) for name in ("Size", "IncompleteSize")
            ]
            self.clear_op = self.op("Clear")(dtypes=dtypes, **attrs)
        self.session = Session(graph)

    def put(self, key: Any, values: Any, part: Any = (0, 1), indices: Any = None) -> None:
        feed = {self.key: key, self.indices: part if indices is None else indices}
        feed |= {self.values[i]: value for i, value in zip(part, values, strict=True)}
        self.session.run(self.puts[part], feed)

    def _got(self, ops: Any, key: Any, part: Any, indices: Any, **kwargs: Any) -> list[Any]:
        feed = {self.key: key, self.indices: part if indices is None else indices}
        values = self.session.run(list(ops[part]), feed, **kwargs)
        return [np.asarray(v).tolist() for v in values]

    def take(self, key: Any, part: Any = (0, 1), indices: Any = None, **kwargs: Any) -> list[Any]:
        return self._got(self.takes, key, part, indices, **kwargs)

    def peek(self, key: Any, part: Any = (0, 1), indices: Any = None) -> list[Any]:
        return self._got(self.peeks, key, part, indices)

    def take_any(self) -> list[Any]:
        key, values = self.session.run(self.any, {self.indices: [0, 1]})
        return [int(key), *(np.asarray(v).tolist() for v in values)]

    @property
    def sizes(self) -> list[int]:
        """How many keys are complete, and how many incomplete."""
        return [int(size) for size in self.session.run(self.sizes_of)]


@pytest.fixture(params=["", "Ordered"])
def staged(request: pytest.FixtureRequest) -> Iterator[Staged]:
    made = Staged(request.param)
    yield made
    made.session.close()


def test_tensors_leave_by_key(staged: Staged) -> None:
    for key, values in ((5, (1, 2)), (1, (3, 4)), (9, (5, 6))):
        staged.put(key, values)
    assert staged.sizes == [3, 0]
    assert staged.peek(5) == [1, 2]
    assert staged.take(5) == [1, 2]
    assert sorted([staged.take_any(), staged.take_any()]) == [[1, 3, 4], [9, 5, 6]]
    assert staged.sizes == [0, 0]


def test_an_ordered_map_gives_the_smallest_key() -> None:
    staged = Staged("Ordered")
    for key in (5, -1, 9):
        staged.put(key, (key, key))
    assert [staged.take_any()[0] for _ in range(3)] == [-1, 5, 9]


def test_takers_wait_for_their_key(staged: Staged) -> None:
    waiting = started(staged.take, 7)
    looking = started(staged.peek, 8)
    staged.put(6, (1, 1))
    assert not waiting.done()
    staged.put(7, (2, 2))
    assert waiting.result(WAIT_S) == [2, 2]
    assert not looking.done()
    staged.put(8, (3, 3))
    assert looking.result(WAIT_S) == [3, 3]


def test_a_key_may_come_and_go_in_parts(staged: Staged) -> None:
    staged.put(1, (1.5,), (0,))
    assert staged.sizes == [0, 1]
    with pytest.raises(InvalidArgumentError, match="index '0' for key '1' was already initialized"):
        staged.put(1, (2.5,), (0,))
    staged.put(1, (3,), (1,))
    assert staged.sizes == [1, 0]
    assert staged.take(1, (0,)) == [1.5]
    with pytest.raises(InvalidArgumentError, match="'0' for key '1' has already been removed"):
        staged.take(1, (0,))
    assert staged.take(1, (1,)) == [3]
    assert staged.sizes == [0, 0]


def test_a_key_that_is_there_stays_as_it_is(staged: Staged) -> None:
    staged.put(6, (1, 2))
    staged.put(6, (3, 4))
    assert staged.take(6) == [1, 2]
    assert staged.sizes == [0, 0]


def test_a_full_map_makes_wait() -> None:
    staged = Staged(capacity=1)
    staged.put(1, (1, 2))
    waiting = started(staged.put, 2, (3, 4))
    assert staged.sizes == [1, 0]
    assert staged.take_any() == [1, 1, 2]
    waiting.result(WAIT_S)
    waiting = started(staged.put, 3, (5, 6))
    staged.session.run(staged.clear_op)
    waiting.result(WAIT_S)
    assert staged.take_any() == [3, 5, 6]


@pytest.mark.parametrize(
    ("key", "part", "indices", "message"),
    [
        (3, (1,), [5], "Index '5' for key '3' was out of bounds '2'"),
        (3, (0, 1), [1, 0], "Indices are not strictly ordered"),
        (3, (0,), np.zeros(0, np.int32), "Indices are empty"),
        ([1, 2], (0, 1), None, r"key must be an int64 scalar, got .* \[2\]"),
        (np.zeros(0, np.int64), (0, 1), None, "key must not be empty"),
        (3, (0,), [0, 1], "number of values must equal that of indices"),
    ],
)
def test_keys_and_indices_are_checked(key: Any, part: Any, indices: Any, message: str) -> None:
    staged = Staged()
    with pytest.raises(InvalidArgumentError, match=message):
        staged.put(key, (1,) * len(part), part, indices)
    assert staged.sizes == [0, 0]


def test_waits_for_keys_end_with_their_step() -> None:
    staged = Staged()
    with pytest.raises(DeadlineExceededError):
        staged.take(1, options=SOON)
    staged.put(1, (1, 2))
    assert staged.take(1) == [1, 2]


def test_memory_is_that_of_all_tensors() -> None:
    staged = Staged(memory_limit=16)
    with pytest.raises(ResourceExhaustedError, match="'20' bytes"):
        staged.put(1, ([1, 2, 3, 4], 5))
    staged.put(1, ([1, 2], 5))
    waiting = started(staged.put, 2, ([1, 2], 5))
    staged.peek(1)
    assert staged.sizes == [1, 0]
    staged.take(1)
    waiting.result(WAIT_S)
