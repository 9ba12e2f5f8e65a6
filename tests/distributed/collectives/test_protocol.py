"""What executors tell each other: in any order of arrival each member ends once, and nothing is left."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.distributed.collectives.network import Network

from opkernel.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    OpError,
    UnavailableError,
)
from opkernel.kernel import (
    CancellationManager,
    CollectiveMember,
    CollectiveParams,
    CollectiveType,
)
from opkernel.records import replace
from opkernel.types import DataType

SIZE = 5
SUM = CollectiveParams(
    CollectiveType.REDUCTION_COLLECTIVE, 1, SIZE, 7, DataType.DT_FLOAT, (300,), merge_op=np.add
)
INPUTS = [np.full(300, 10.0**rank, np.float32) for rank in range(SIZE)]
TOTAL = np.full(300, 11111, np.float32)
ROUTES = pytest.mark.parametrize("small_bytes", [0, 10**9], ids=["exchange", "leader"])
SEEDS = pytest.mark.parametrize("seed", range(100))


@dataclass
class Group:
    """A group of five on three tasks."""

    network: Network
    step: int = 1
    answers: dict[int, Any] = field(default_factory=dict)
    managers: list[CancellationManager] = field(default_factory=list)

    def task_of(self, rank):
        return self.network.tasks[rank % len(self.network.tasks)]

    def join(self, *ranks, params=SUM):
        for rank in ranks:
            self.managers.append(CancellationManager())
            executor = self.network.executors[self.task_of(rank)]
            device = f"{self.task_of(rank)}/device:CPU:0"
            member = CollectiveMember(device, f"session{rank}", self.step, "node", rank)
            executor.execute_async(
                member, params, INPUTS[rank], self._done(rank), self.managers[-1]
            )

    def _done(self, rank):
        def done(error, result):
            assert rank not in self.answers
            self.answers[rank] = result if error is None else error

        return done

    def errors(self):
        return {r: one for r, one in self.answers.items() if isinstance(one, OpError)}

    def check_results(self):
        for one in self.answers.values():
            if not isinstance(one, OpError):
                np.testing.assert_array_equal(one, TOTAL)


@pytest.fixture
def group(request) -> Iterator[Group]:
    callspec = getattr(request.node, "callspec", None)
    values = {} if callspec is None else callspec.params
    network = Network(3, values.get("seed", 0), values.get("small_bytes", 0))
    yield Group(network)
    network.close()


def all_end_and_the_next_step_works(group):
    """All members that are there have ended; the same keys serve again."""
    group.check_results()
    again = Group(group.network, group.step + 1)
    again.join(*range(SIZE))
    group.network.deliver()
    assert sorted(again.answers) == list(range(SIZE))
    return again


@ROUTES
@SEEDS
def test_all_get_the_sum(group, seed, small_bytes):
    for rank in group.network.rng.sample(range(SIZE), SIZE):
        group.join(rank)
        group.network.deliver(group.network.rng.randrange(4))
    group.network.deliver()
    assert sorted(group.answers) == list(range(SIZE))
    assert not group.errors()
    assert not all_end_and_the_next_step_works(group).errors()


@ROUTES
@SEEDS
def test_a_member_is_cancelled_at_any_moment(group, seed, small_bytes):
    group.join(*range(SIZE))
    group.network.deliver(group.network.rng.randrange(40))
    chosen = group.network.rng.randrange(SIZE)
    group.managers[chosen].start_cancel(AbortedError("no more"))
    group.network.deliver()
    assert sorted(group.answers) == list(range(SIZE))
    for rank, error in group.errors().items():
        assert type(error) is AbortedError
        assert "no more" in error.message
        assert rank == chosen or str(group.task_of(chosen)) in error.message
    group.check_results()


@ROUTES
@SEEDS
def test_a_task_dies_at_any_moment(group, seed, small_bytes):
    group.join(*range(SIZE))
    group.network.deliver(group.network.rng.randrange(40))
    dead = group.network.rng.choice(group.network.tasks)
    group.network.kill(dead)
    if group.network.rng.random() < 0.5:
        group.network.start(dead)
    group.network.deliver()
    group.network.check()
    alive = [rank for rank in range(SIZE) if group.task_of(rank) != dead]
    assert set(alive) <= set(group.answers)
    for rank in alive:
        answer = group.answers[rank]
        if isinstance(answer, OpError):
            assert type(answer) is UnavailableError
            assert str(dead) in answer.message
    group.check_results()


@ROUTES
def test_a_task_dies_before_its_member_comes(group, small_bytes):
    group.join(*range(SIZE))
    group.network.deliver()
    assert not group.errors()
    dead = group.task_of(4)  # also that of member 1
    waiting = Group(group.network, step=2)
    waiting.join(0, 2, 3)
    group.network.deliver()
    group.network.kill(dead)
    group.network.check()
    assert sorted(waiting.errors()) == [0, 2, 3]
    assert all(str(dead) in error.message for error in waiting.errors().values())
    group.network.start(dead)
    assert not all_end_and_the_next_step_works(waiting).errors()


def test_a_member_that_is_cancelled_before_it_comes_fails_all(group):
    group.join(0, 1, 2, 3)
    group.network.deliver()
    manager = CancellationManager()
    manager.start_cancel()
    executor = group.network.executors[group.task_of(4)]
    member = CollectiveMember(f"{group.task_of(4)}/device:CPU:0", node="late", rank=4)
    answers: list[Any] = []
    executor.execute_async(member, SUM, INPUTS[4], lambda *given: answers.append(given), manager)
    group.network.deliver()
    assert [type(error) for error, _ in answers] == [CancelledError]
    assert [type(error) for _, error in sorted(group.errors().items())] == [CancelledError] * 4


def test_an_aborted_executor_takes_nobody(group):
    group.join(0, 1)
    group.network.deliver()
    group.network.executors[group.task_of(1)].start_abort(AbortedError("closed"))
    group.join(4)  # of the same task
    group.network.deliver()
    assert {rank: type(error) for rank, error in group.errors().items()} == {
        0: AbortedError,
        1: AbortedError,
        4: AbortedError,
    }


def test_a_timeout_ends_all(group):
    late = replace(SUM, timeout_seconds=0.01)
    group.join(0, 1)
    group.join(2, params=late)
    while 2 not in group.answers:
        group.network.deliver()
    group.network.deliver()
    assert [type(error) for _, error in sorted(group.errors().items())] == (
        [DeadlineExceededError] * 3
    )
