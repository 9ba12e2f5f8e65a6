"""The service with a clock of its own: states of tasks, errors, barriers, time."""

from typing import Any

import pytest

from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.distributed.coordination.coordination_service import CoordinationService
from opkernel.distributed.coordination.coordination_state import (
    CoordinatedTaskState,
    CoordinationConfig,
)
from opkernel.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
    UnknownError,
)

TASKS = [TaskName("worker", index) for index in range(3)]
A, B, C = TASKS
STRANGER = TaskName("ps", 0)


class Clock:
    """A time that tests set."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def service(clock):
    return connected(clock)


def connected(clock, **config):
    service = CoordinationService(TASKS, CoordinationConfig(**config), clock)
    for number, task in enumerate(TASKS):
        service.register_task(task, number)
    return service


def error_of(future) -> Any:
    assert future.done()
    return future.exception()


def states(service):
    return [one.state.name for one in service.get_task_state()]


class TestTasks:
    def test_a_task_may_register_again(self, service):
        assert service.register_task(A, 0) == service.incarnation
        assert states(service) == ["CONNECTED"] * 3

    def test_a_task_that_has_restarted_is_in_error(self, service):
        poll = service.poll_for_error(B)
        with pytest.raises(AbortedError, match="has likely restarted"):
            service.register_task(A, 17)
        assert states(service) == ["ERROR", "CONNECTED", "CONNECTED"]
        assert poll.result(0).task == A
        assert poll.result(0).state is CoordinatedTaskState.ERROR
        with pytest.raises(AbortedError, match="must be reset first"):
            service.register_task(A, 17)
        service.reset_task(A)
        service.register_task(A, 17)
        assert states(service) == ["CONNECTED"] * 3

    def test_a_task_of_a_recoverable_job_may_restart(self, clock):
        service = connected(clock, recoverable_jobs=["worker"])
        poll = service.poll_for_error(B)
        service.register_task(A, 17)
        service.report_task_error(A, UnknownError("x"))
        service.register_task(A, 18)
        assert states(service) == ["CONNECTED"] * 3
        assert not poll.done()

    @pytest.mark.parametrize(
        "call",
        [
            lambda s: s.register_task(STRANGER, 1),
            lambda s: s.record_heartbeat(STRANGER, 1),
            lambda s: s.get_task_state([STRANGER]),
            lambda s: s.reset_task(STRANGER),
        ],
    )
    def test_strangers(self, service, call):
        with pytest.raises(InvalidArgumentError, match="Unexpected task /job:ps"):
            call(service)

    def test_a_task_without_heartbeats_is_in_error(self, service, clock):
        poll = service.poll_for_error(C)
        clock.now += 9.0
        service.record_heartbeat(A, 0)
        service.record_heartbeat(C, 2)
        assert service.check() == pytest.approx(1.0)
        assert states(service) == ["CONNECTED"] * 3
        clock.now += 1.0
        service.check()
        assert states(service) == ["CONNECTED", "ERROR", "CONNECTED"]
        assert type(poll.result(0).error) is UnavailableError
        assert f"Task {B} heartbeat timeout" in poll.result(0).error.message
        with pytest.raises(UnavailableError, match="heartbeat timeout"):
            service.record_heartbeat(B, 1)

    def test_heartbeats_of_an_earlier_incarnation(self, service):
        with pytest.raises(AbortedError, match="another incarnation"):
            service.record_heartbeat(A, 99)
        assert states(service)[0] == "ERROR"

    def test_heartbeats_of_a_task_that_is_not_connected(self, service):
        service.reset_task(A)
        with pytest.raises(InvalidArgumentError, match="must be registered"):
            service.record_heartbeat(A, 0)

    def test_reported_errors(self, service):
        service.report_task_error(B, UnknownError("out of luck"))
        found = service.get_task_state([B])[0]
        assert (found.state, found.error.message) == (CoordinatedTaskState.ERROR, "out of luck")
        with pytest.raises(FailedPreconditionError, match="not connected"):
            service.report_task_error(B, UnknownError("again"))

    def test_all_tasks_with_their_devices(self, service):
        waiting = [service.wait_for_all_tasks(task, [f"{task}/device:CPU:0"]) for task in TASKS]
        assert [one.result(0) for one in waiting] == [[f"{t}/device:CPU:0" for t in TASKS]] * 3

    def test_all_tasks_in_time(self, clock):
        service = connected(clock, cluster_register_timeout_s=5.0)
        waiting = service.wait_for_all_tasks(A, [])
        clock.now += 5.0
        service.check()
        assert type(error_of(waiting)) is DeadlineExceededError

    def test_shutdown_of_one(self, service):
        assert service.shutdown_task(A).result(0) is None
        assert states(service) == ["DISCONNECTED", "CONNECTED", "CONNECTED"]
        with pytest.raises(FailedPreconditionError, match="already disconnected"):
            service.shutdown_task(A)

    def test_shutdown_of_all_together(self, clock):
        service = connected(clock, shutdown_barrier_timeout_s=5.0)
        waiting = [service.shutdown_task(task) for task in (A, B)]
        assert not any(one.done() for one in waiting)
        waiting.append(service.shutdown_task(C))
        assert [one.result(0) for one in waiting] == [None] * 3
        assert states(service) == ["DISCONNECTED"] * 3

    def test_shutdown_that_others_do_not_join(self, clock):
        service = connected(clock, shutdown_barrier_timeout_s=5.0)
        waiting = service.shutdown_task(A)
        clock.now += 5.0
        service.check()
        assert type(error_of(waiting)) is DeadlineExceededError
        assert states(service)[0] == "DISCONNECTED"


class TestBarriers:
    def test_all_come(self, service):
        waiting = [service.wait_at_barrier(task, "b", 10.0) for task in (A, B)]
        again = service.wait_at_barrier(A, "b", 10.0)
        assert not any(one.done() for one in waiting)
        waiting += [again, service.wait_at_barrier(C, "b", 10.0)]
        assert [one.result(0) for one in waiting] == [None] * 4
        assert service.wait_at_barrier(A, "b", 10.0).result(0) is None  # it is over

    def test_some_take_part(self, service):
        waiting = [service.wait_at_barrier(task, "b", 10.0, [A, C]) for task in (A, C)]
        assert [one.result(0) for one in waiting] == [None] * 2

    def test_one_is_late(self, service, clock):
        waiting = [service.wait_at_barrier(task, "b", 4.0) for task in (A, B)]
        assert service.check() == pytest.approx(4.0)
        clock.now += 4.0
        service.check()
        for one in waiting:
            assert type(error_of(one)) is DeadlineExceededError
            assert f"1 of 3 tasks have not come: {C}" in one.exception().message
        late = service.wait_at_barrier(C, "b", 4.0)
        assert type(error_of(late)) is DeadlineExceededError

    def test_one_dies(self, service, clock):
        waiting = service.wait_at_barrier(A, "b", 100.0)
        service.report_task_error(B, UnknownError("out of luck"))
        assert type(error_of(waiting)) is InternalError
        assert f"a task is in error: {B}: out of luck" in waiting.exception().message
        other = service.wait_at_barrier(C, "c", 100.0)
        assert "already in error before the barrier was called" in error_of(other).message

    def test_one_restarts(self, service):
        waiting = service.wait_at_barrier(A, "b", 100.0)
        with pytest.raises(AbortedError):
            service.register_task(B, 17)
        assert type(error_of(waiting)) is InternalError

    def test_one_disconnects(self, service):
        waiting = service.wait_at_barrier(A, "b", 100.0)
        service.reset_task(B)
        assert f"a task has disconnected: {B}" in error_of(waiting).message

    @pytest.mark.parametrize(
        ("first", "second", "message"),
        [
            ((A, [A, B]), (C, [A, B]), r"A non-participating task \(.*task:2\) called the barrier"),
            ((A, [A, B]), (B, [B]), "Conflicting tasks specified"),
            ((A, [A, STRANGER]), (B, [A, B]), "that is not in the cluster"),
        ],
    )
    def test_disagreement_fails_all(self, service, first, second, message):
        waiting = [service.wait_at_barrier(t, "b", 10.0, tasks) for t, tasks in (first, second)]
        for one in waiting:
            with pytest.raises(InvalidArgumentError, match=message):
                one.result(0)

    def test_cancelled(self, service):
        waiting = service.wait_at_barrier(A, "b", 10.0)
        service.cancel_barrier(B, "b")
        assert type(error_of(waiting)) is CancelledError
        assert f"is cancelled by task: {B}" in waiting.exception().message
        with pytest.raises(FailedPreconditionError, match="passed with status code: CANCELLED"):
            service.cancel_barrier(A, "b")

    def test_cancelled_before_any_task_has_come(self, service):
        service.cancel_barrier(B, "b")
        assert type(error_of(service.wait_at_barrier(A, "b", 10.0))) is CancelledError


class TestValues:
    def test_values(self, service):
        values = service.values
        waiting = values.get("job/a")
        values.insert("/job//a/", "1", False)
        assert waiting.result(0) == "1"
        assert values.get("job/a").result(0) == "1"
        with pytest.raises(AlreadyExistsError, match="Config key job/a already exists"):
            values.insert("job/a", "2", False)
        values.insert("job/a", b"3", True)
        assert values.try_get("job/a") == b"3"

    def test_directories(self, service):
        values = service.values
        for key in ("a", "a/b", "a/b/c", "ab"):
            values.insert(key, key, False)
        assert values.get_dir("a") == {"a/b": "a/b", "a/b/c": "a/b/c"}
        assert len(values.get_dir("")) == 4
        assert values.get_dir("x") == {}
        values.delete("a/b")
        assert values.get_dir("") == {"a": "a", "ab": "ab"}
        values.delete("x")

    def test_missing(self, service):
        with pytest.raises(NotFoundError, match="Config key x not found"):
            service.values.try_get("x")
        with pytest.raises(DeadlineExceededError, match="timed out with key: x"):
            service.values.get("x", 0.01).result(300)
