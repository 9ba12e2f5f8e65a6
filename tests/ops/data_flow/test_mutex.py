"""Locks that steps take; behaviour as TensorFlow's."""

from typing import Any

import numpy as np
import pytest
from tests.ops.data_flow.waiting_steps import WAIT_S, started

from opkernel import Graph, RunOptions, Session, raw_ops
from opkernel.errors import DeadlineExceededError, InvalidArgumentError, UnimplementedError
from opkernel.types import float32, int32, tensor_to_proto


class Section:
    """A critical section that takes one element from a queue, and gives one over it."""

    def __init__(self) -> None:
        with Graph().as_default() as graph:
            mutex = raw_ops.MutexV2(shared_name="m")
            queue = raw_ops.FIFOQueueV2(component_types=[float32])
            self.x = raw_ops.Placeholder(dtype=float32)
            self.put = raw_ops.QueueEnqueueV2(handle=queue, components=[self.x])
            lock = raw_ops.MutexLock(mutex=mutex)
            with graph.control_dependencies([lock.op]):
                element = raw_ops.QueueDequeueV2(handle=queue, component_types=[float32])[0]
                inverse = raw_ops.CheckNumerics(
                    tensor=raw_ops.Reciprocal(x=element), message="broken"
                )
            with graph.control_dependencies([inverse.op]):
                self.inside = [inverse, raw_ops.ConsumeMutexLock(mutex_lock=lock)]
            self.alone = raw_ops.ConsumeMutexLock(mutex_lock=raw_ops.MutexLock(mutex=mutex))
        self.session = Session(graph)

    def run(self, **kwargs: Any) -> float:
        return float(self.session.run(self.inside, **kwargs)[0])

    def feed(self, value: float) -> None:
        self.session.run(self.put, {self.x: value})


def test_one_step_is_inside_at_a_time() -> None:
    section = Section()
    first, second = started(section.run), started(section.session.run, section.alone)
    assert not second.done()  # the first is inside, and waits for an element
    section.feed(4)
    assert first.result(WAIT_S) == 0.25
    second.result(WAIT_S)


def test_a_step_that_fails_inside_gives_the_lock_back() -> None:
    section = Section()
    section.feed(0)
    with pytest.raises(InvalidArgumentError, match="broken") as kept:
        section.run()
    section.feed(2)
    assert section.run() == 0.5
    assert kept.value.op == "CheckNumerics"


def test_a_step_that_is_late_gives_the_lock_back_or_its_place_in_the_line() -> None:
    section, soon = Section(), RunOptions(timeout_in_ms=100)
    with pytest.raises(DeadlineExceededError):
        section.run(options=soon)
    inside = started(section.run)
    with pytest.raises(DeadlineExceededError):
        section.session.run(section.alone, options=soon)
    section.feed(2)
    assert inside.result(WAIT_S) == 0.5
    section.session.run(section.alone)


def test_a_lock_is_consumed_by_one() -> None:
    with Graph().as_default() as graph:
        lock = raw_ops.MutexLock(mutex=raw_ops.MutexV2())
        packed = raw_ops.Pack(values=[lock, lock])
        both = raw_ops.ConsumeMutexLock(mutex_lock=packed)
        with graph.control_dependencies([packed.op]):
            shared = raw_ops.ConsumeMutexLock(mutex_lock=lock)
        no_lock = raw_ops.ConsumeMutexLock(
            mutex_lock=raw_ops.EmptyTensorList(
                element_shape=np.int32(-1), max_num_elements=np.int32(-1), element_dtype=int32
            )
        )
    with Session(graph) as session:
        for fetch, message in (
            (both, r"Expected input to be a scalar, saw shape: \[2\]"),
            (no_lock, "Expected input to contain a SharedLockReleaser object"),
            ([shared, packed], "Expected use count of lock to be 1, but saw: 3"),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                session.run(fetch)


def test_eager_calls_keep_a_lock_as_long_as_they_have_it() -> None:
    mutex = raw_ops.MutexV2(shared_name="eager")
    lock = raw_ops.MutexLock(mutex=mutex)
    raw_ops.ConsumeMutexLock(mutex_lock=lock)
    waiting = started(raw_ops.MutexLock, mutex=mutex)
    assert not waiting.done()
    with pytest.raises(UnimplementedError, match="cannot be stored"):
        tensor_to_proto(np.array([lock], object))
    del lock
    assert waiting.result(WAIT_S) is not None
