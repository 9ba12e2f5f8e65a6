"""Who hears that a task has died."""

from concurrent.futures import Future
from typing import Any

import pytest

from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.distributed.collectives.resolver import PeerWatch
from opkernel.errors import UnavailableError

OWN, PEER = TaskName("worker", 0), TaskName("worker", 1)


class Watch(PeerWatch):
    """A watch whose questions a test answers."""

    def __init__(self):
        super().__init__(OWN, self.question, period_s=1000.0)
        self.questions = []

    def question(self, task):
        self.questions.append((task, Future()))
        return self.questions[-1][1]


@pytest.fixture
def watch():
    watch = Watch()
    yield watch
    watch.close()


def test_an_answer_is_for_those_who_waited_when_it_was_asked(watch):
    lost: list[Any] = []
    watch.watch({PEER: 1, OWN: 7}, lambda error: lost.append(("first", error.message)))
    watch.check()
    watch.watch({PEER: 2}, lambda error: lost.append(("second", error.message)))
    watch.check()
    ((task, answer),) = watch.questions  # none to the own task, and no second one before the answer
    assert task == PEER
    answer.set_exception(UnavailableError("gone"))
    assert lost == [("first", "gone")]
    watch.check()
    watch.questions[-1][1].set_result(2)
    assert len(lost) == 1


def test_a_restart_is_a_death(watch):
    lost: list[Any] = []
    watch.watch({PEER: 1}, lost.append)
    watch.check()
    watch.questions[-1][1].set_result(2)
    assert [error.message for error in lost] == [f"{PEER} has restarted"]
    watch.check()
    assert len(watch.questions) == 1  # nobody depends on it any more


def test_who_has_ended_hears_nothing(watch):
    lost: list[Any] = []
    end = watch.watch({PEER: 1}, lost.append)
    watch.check()
    end()
    watch.questions[-1][1].set_result(2)
    assert lost == []
