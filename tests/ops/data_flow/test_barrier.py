"""Barriers; expected values and errors are TensorFlow's."""

from typing import Any

import numpy as np
import pytest
from tests.ops.data_flow.waiting_steps import WAIT_S, started

from opkernel import Graph, RunOptions, Session, raw_ops
from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OutOfRangeError,
)
from opkernel.types import PartialTensorShape, float32, int32, string

FIRST = -(2**63)  # the number of the first insertion


class Barrier:
    """A barrier of a vector of two floats and an integer, and steps of a session on it."""

    def __init__(self, **attrs: Any) -> None:
        shapes = [PartialTensorShape([2]), PartialTensorShape([])]
        types = [float32, int32]
        attrs = {"component_types": types, "shapes": shapes, "shared_name": "b", **attrs}
        self.graph = Graph()
        with self.graph.as_default():
            handle = raw_ops.Barrier(**attrs)
            self.keys, self.n = raw_ops.Placeholder(dtype=string), raw_ops.Placeholder(dtype=int32)
            self.values = [raw_ops.Placeholder(dtype=dtype) for dtype in types]
            self._inserts = [
                raw_ops.BarrierInsertMany(
                    handle=handle, keys=self.keys, values=value, component_index=i
                )
                for i, value in enumerate(self.values)
            ]
            self._takes = [
                raw_ops.BarrierTakeMany(
                    handle=handle,
                    num_elements=self.n,
                    component_types=types,
                    allow_small_batch=small,
                )
                for small in (False, True)
            ]
            self._closes = [
                raw_ops.BarrierClose(handle=handle, cancel_pending_enqueues=cancel)
                for cancel in (False, True)
            ]
            self._sizes = [
                raw_ops.BarrierReadySize(handle=handle),
                raw_ops.BarrierIncompleteSize(handle=handle),
            ]
        self.session = Session(self.graph)

    def insert(self, component: int, keys: list[bytes], values: Any) -> None:
        feed = {self.keys: np.array(keys, object), self.values[component]: values}
        self.session.run(self._inserts[component], feed)

    def take(self, n: int, *, small: bool = False, **kwargs: Any) -> list[Any]:
        taken = self.session.run(self._takes[small], {self.n: n}, **kwargs)
        indices, keys, values = taken
        return [[i - FIRST for i in indices.tolist()], keys.tolist(), *(v.tolist() for v in values)]

    def close(self, *, cancel: bool = False) -> None:
        self.session.run(self._closes[cancel])

    @property
    def sizes(self) -> list[int]:
        """How many keys are ready, and how many incomplete."""
        return [int(size) for size in self.session.run(self._sizes)]


def test_keys_leave_when_they_have_all_values_those_that_came_first_before_others() -> None:
    barrier = Barrier()
    barrier.insert(0, [b"a", b"b"], [[1, 2], [3, 4]])
    assert barrier.sizes == [0, 2]
    barrier.insert(1, [b"b", b"c"], [20, 30])
    assert barrier.sizes == [1, 2]
    barrier.insert(1, [b"a"], [10])
    barrier.insert(0, [b"c"], [[5, 6]])
    assert barrier.take(2) == [[0, 0], [b"b", b"a"], [[3, 4], [1, 2]], [20, 10]]
    assert barrier.take(1) == [[1], [b"c"], [[5, 6]], [30]]
    assert barrier.take(0) == [[], [], [], []]


def test_values_are_checked() -> None:
    barrier = Barrier()
    barrier.insert(0, [b"a"], [[1, 2]])
    with pytest.raises(InvalidArgumentError, match="Key a already has a value for component 0"):
        barrier.insert(0, [b"a"], [[1, 1]])
    barrier.insert(0, [b"d"], [[5]])
    with pytest.raises(InvalidArgumentError, match=r"component 2\. Expected \[2\], got \[1\]"):
        barrier.insert(1, [b"d"], [5])
    with pytest.raises(InvalidArgumentError, match=r"no elements are not supported b: .*\[1,0\]"):
        barrier.insert(0, [b"e"], np.zeros((1, 0)))
    with pytest.raises(
        InvalidArgumentError, match=r"keys of shape \[2\] and values of shape \[1\]"
    ):
        barrier.insert(1, [b"e", b"f"], [1])
    with pytest.raises(InvalidArgumentError, match="must not be negative"):
        barrier.take(-1)
    assert barrier.sizes == [0, 1]


def test_a_take_waits() -> None:
    barrier = Barrier()
    taking = started(barrier.take, 2)
    barrier.insert(0, [b"a", b"b"], [[1, 2], [3, 4]])
    barrier.insert(1, [b"a"], [1])
    assert not taking.done()
    barrier.insert(1, [b"b"], [2])
    assert taking.result(WAIT_S)[1] == [b"a", b"b"]
    with pytest.raises(DeadlineExceededError):
        barrier.take(1, options=RunOptions(timeout_in_ms=100))


def test_a_take_ends_though_the_insertion_that_it_waits_for_fails_later() -> None:
    barrier = Barrier()
    barrier.insert(0, [b"a", b"b"], [[1, 2], [3, 4]])
    barrier.insert(1, [b"b"], [20])
    barrier.take(1)
    barrier.insert(1, [b"c"], [30])
    future = started(barrier.take, 1)
    with pytest.raises(InvalidArgumentError, match="already has a value"):
        barrier.insert(1, [b"a", b"c"], [10, 31])
    assert future.result(WAIT_S) == [[0], [b"a"], [[1, 2]], [10]]


def test_a_closed_barrier_completes_the_keys_that_it_has() -> None:
    barrier = Barrier()
    barrier.insert(0, [b"a"], [[1, 2]])
    barrier.close()
    with pytest.raises(CancelledError, match=r"Barrier 'b' is already closed\."):
        barrier.close()
    taking = started(barrier.take, 1)
    with pytest.raises(CancelledError, match=r"brand new key: e.*incomplete keys: 1"):
        barrier.insert(0, [b"e"], [[1, 1]])
    with pytest.raises(OutOfRangeError, match=r"\(requested 2, total size 1\)"):
        barrier.take(2)
    barrier.insert(1, [b"a"], [5])
    assert taking.result(WAIT_S) == [[0], [b"a"], [[1, 2]], [5]]
    with pytest.raises(CancelledError, match="Number of new insertions: 1"):
        barrier.insert(1, [b"a"], [5])
    with pytest.raises(OutOfRangeError, match=r"'b' is closed .* \(requested 0, total size 0\)"):
        barrier.take(1, small=True)
    barrier.insert(1, [], np.zeros(0, np.int32))


def test_a_cancelled_barrier_forgets_the_keys_that_lack_values() -> None:
    barrier = Barrier()
    barrier.insert(0, [b"a", b"b"], [[1, 2], [3, 4]])
    barrier.insert(1, [b"b"], [2])
    waiting = started(barrier.take, 3)
    barrier.close(cancel=True)
    with pytest.raises(OutOfRangeError, match="PriorityQueue 'b_queue' is closed"):
        waiting.result(WAIT_S)
    assert barrier.sizes == [1, 0]
    with pytest.raises(CancelledError, match="Pending enqueues cancelled: 1"):
        barrier.insert(1, [b"a"], [5])
    assert barrier.take(5, small=True)[1] == [b"b"]


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"shapes": []}, "All of the component shapes must be specified"),
        ({"capacity": 3}, "Barrier only accepts capacity=-1"),
    ],
)
def test_barriers_that_cannot_be(attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        _ = Barrier(**attrs).sizes


def test_types_are_those_of_the_barrier() -> None:
    with Graph().as_default() as graph:
        attrs = {"shapes": [PartialTensorShape([])], "shared_name": "s"}
        barrier = raw_ops.Barrier(component_types=[float32], **attrs)
        other = raw_ops.Barrier(component_types=[int32], **attrs)
        key = np.array([b"a"], object)
        wrong_type, wrong_index = (
            raw_ops.BarrierInsertMany(handle=barrier, keys=key, values=value, component_index=i)
            for value, i in ((np.int32([1]), 0), (np.float32([1]), 1))
        )
    with Session(graph) as session:
        with pytest.raises(InvalidArgumentError, match="Signature mismatch, have: string_ref"):
            session.run(wrong_type)
        with pytest.raises(InvalidArgumentError, match="component ID is out of range 1"):
            session.run(wrong_index)
        with pytest.raises(InvalidArgumentError, match="Shared barrier 's' has component types"):
            session.run(other)
