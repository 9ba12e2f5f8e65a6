"""Collective ops: sessions on threads of their own meet by the keys that their nodes name."""

import itertools
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

from opkernel import Session, float32, gradients, raw_ops
from opkernel.errors import (
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)
from opkernel.graph import Graph
from opkernel.kernel import CancellationManager, LocalCollectiveExecutor, Step
from opkernel.runtime import LocalDevice, RunOptions
from opkernel.testing import run_op
from opkernel.types import dtype_of_array

WAIT_S = 300.0
KEYS = [np.int32(2), np.int32(1), np.int32(100)]
V1_KEYS = {"group_size": 2, "group_key": 1, "instance_key": 100}
_instance_keys = itertools.count(1000)
NCCL = {"reduction": "sum", "num_devices": 2, "shared_name": "c0"}


@pytest.fixture
def executor():
    return LocalCollectiveExecutor()


def together(*functions) -> list[Any]:
    """What the functions return or raise, each on a thread of its own."""
    answers: list[Any] = [None] * len(functions)

    def call(index):
        try:
            answers[index] = functions[index]()
        except Exception as error:
            answers[index] = error

    threads = [threading.Thread(target=call, args=(i,), daemon=True) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    return answers


def constant(graph, value):
    attrs = {"value": value, "dtype": dtype_of_array(value)}
    return graph.create_op("Const", attrs=attrs).outputs[0]


def session_of(op, inputs=(), executor=None, **attrs):
    """A session whose node 'y' is the op, with constants as inputs."""
    graph = Graph()
    tensors = [v if isinstance(v, list) else constant(graph, np.asarray(v)) for v in inputs]
    graph.create_op(op, tensors, name="y", attrs=attrs)
    return Session(graph, collective_executor=executor)


def run_sessions(sessions, options=None):
    """What node 'y' of each gives, as lists, or the error."""
    answers = together(*[lambda s=session: s.run("y:0", options=options) for session in sessions])
    for session in sessions:
        session.close()
    return lists(answers)


def floats(*values):
    return np.array(values, np.float32)


def lists(answers):
    return [answer if isinstance(answer, Exception) else answer.tolist() for answer in answers]


class TestNcclAllReduce:
    def test_four_sessions_get_the_sum(self):
        sessions = [
            session_of("NcclAllReduce", [floats(i, 1)], **{**NCCL, "num_devices": 4})
            for i in range(4)
        ]
        assert run_sessions(sessions) == [[6, 4]] * 4

    @pytest.mark.parametrize(
        ("reduction", "reduced"),
        [("sum", [4, 1]), ("prod", [3, -12]), ("min", [1, -3]), ("max", [3, 4])],
    )
    def test_reductions(self, executor, reduction, reduced):
        attrs = {**NCCL, "reduction": reduction}
        sessions = [
            session_of("NcclAllReduce", [values], executor, **attrs)
            for values in (floats(1, 4), floats(3, -3))
        ]
        assert run_sessions(sessions) == [reduced] * 2

    def test_step_after_step(self, executor):
        sessions = [session_of("NcclAllReduce", [floats(i)], executor, **NCCL) for i in (1, 2)]
        answers = together(
            *[lambda s=s: [s.run("y:0").tolist() for _ in range(20)] for s in sessions]
        )
        assert answers == [[[3]] * 20] * 2

    def test_the_gradient_of_each_input_is_that_of_all_sums(self, executor):
        sessions = []
        for scale in (floats(2, 3), floats(10, 20)):
            graph = Graph()
            with graph.as_default():
                x = constant(graph, floats(1, 1))
                total = raw_ops.NcclAllReduce(input=x, **NCCL)
                scaled = raw_ops.Mul(x=total, y=constant(graph, scale))
                raw_ops.Identity(input=gradients(scaled, x)[0], name="y")
            sessions.append(Session(graph, collective_executor=executor))
        assert run_sessions(sessions) == [[12, 23]] * 2

    def test_only_sums_have_a_gradient(self):
        with Graph().as_default() as graph:
            x = constant(graph, floats(1))
            largest = raw_ops.NcclAllReduce(input=x, **{**NCCL, "reduction": "max"})
            with pytest.raises(UnimplementedError, match="sum"):
                gradients(largest, x)

    def test_one_that_does_not_fit_fails_all(self, executor):
        sessions = [
            session_of("NcclAllReduce", [values], executor, **{**NCCL, "num_devices": 3})
            for values in (floats(1), floats(1), floats(1, 2))
        ]
        for answer in run_sessions(sessions):
            assert type(answer) is InvalidArgumentError
            assert answer.node == "y"
            assert "Shape mismatch in the collective instance c0" in answer.message

    def test_one_that_runs_out_of_time_fails_all(self, executor):
        sessions = [
            session_of("NcclAllReduce", [floats(1)], executor, **{**NCCL, "num_devices": 3})
            for _ in range(3)
        ]
        # First all of them, which builds their programs: the limit is too short for that.
        assert together(*[partial(session.run, "y:0") for session in sessions]) == [3, 3, 3]
        limited = RunOptions(timeout_in_ms=500)
        answers = together(
            lambda: sessions[0].run("y:0"), lambda: sessions[1].run("y:0", options=limited)
        )
        assert isinstance(answers[0], DeadlineExceededError | CancelledError)
        assert type(answers[1]) is DeadlineExceededError
        for session in sessions:
            session.close()

    def test_sessions_with_executors_of_their_own_do_not_meet(self):
        sessions = [
            session_of("NcclAllReduce", [floats(1)], LocalCollectiveExecutor(), **NCCL)
            for _ in range(2)
        ]
        answers = run_sessions(sessions, RunOptions(timeout_in_ms=20))
        assert [type(answer) for answer in answers] == [DeadlineExceededError] * 2

    @pytest.mark.parametrize("num_devices", [0, -1])
    def test_a_group_has_members(self, num_devices):
        with pytest.raises(InvalidArgumentError, match="num_devices must be positive"):
            run_op("NcclAllReduce", [floats(1)], attrs={**NCCL, "num_devices": num_devices})


class TestFirstVersion:
    def test_reduce(self, executor):
        attrs = {**V1_KEYS, "merge_op": "Add", "final_op": "Div", "subdiv_offsets": [0]}
        sessions = [
            session_of("CollectiveReduce", [value], executor, **attrs)
            for value in (floats(1, 2), floats(4, 2))
        ]
        assert run_sessions(sessions) == [[2.5, 2]] * 2

    def test_gather(self, executor):
        sessions = [
            session_of("CollectiveGather", [value], executor, **V1_KEYS, shape=[2, 2])
            for value in (floats([1, 2]), floats([3, 4]))
        ]
        assert run_sessions(sessions) == [[[1, 2], [3, 4]]] * 2

    def test_broadcast(self, executor):
        attrs = {**V1_KEYS, "shape": [2]}
        sessions = [
            session_of("CollectiveBcastSend", [floats(1, 2)], executor, **attrs),
            session_of("CollectiveBcastRecv", [], executor, **attrs, T=float32),
        ]
        assert run_sessions(sessions) == [[1, 2]] * 2

    def test_a_broadcast_of_another_shape_than_declared(self):
        attrs = {**V1_KEYS, "shape": [3]}
        step = Step()
        step.collective_executor = LocalCollectiveExecutor()
        with pytest.raises(InternalError, match="Declared shape of op node does not match"):
            run_op("CollectiveBcastSend", [floats(1, 2)], attrs=attrs, step=step)

    def test_versions_meet(self, executor):
        v1 = {**V1_KEYS, "merge_op": "Add", "final_op": "Id", "subdiv_offsets": [0]}
        v2 = {"merge_op": "Add", "final_op": "Id"}
        sessions = [
            session_of("CollectiveReduce", [floats(1)], executor, **v1),
            session_of("CollectiveReduceV2", [floats(2), *KEYS, []], executor, **v2),
        ]
        assert run_sessions(sessions) == [[3]] * 2


class TestSecondVersion:
    """Called one by one; members meet in the executor of the process."""

    @pytest.fixture
    def keys(self):
        """Keys of a group of two that no other test has."""
        return {"group_size": 2, "group_key": 1, "instance_key": next(_instance_keys)}

    @staticmethod
    def call(op, tensors, keys, **attrs):
        function = getattr(raw_ops, f"Collective{op}V2")
        calls = [lambda t=tensor: function(input=t, **keys, **attrs) for tensor in tensors]
        return lists(together(*calls))

    @pytest.mark.parametrize(
        ("merge_op", "merged"),
        [("Add", [4, 1]), ("Mul", [3, -12]), ("Min", [1, -3]), ("Max", [3, 4])],
    )
    def test_reduce(self, keys, merge_op, merged):
        attrs = {"ordering_token": [], "merge_op": merge_op, "final_op": "Id"}
        assert self.call("Reduce", [floats(1, 4), floats(3, -3)], keys, **attrs) == [merged] * 2

    @pytest.mark.parametrize(
        ("dtype", "mean"),
        [(np.int32, [-1, 1]), (np.float32, [-1.5, 1.5]), (np.float16, [-1.5, 1.5])],
    )
    def test_the_mean_of_integers_is_rounded_towards_zero(self, keys, dtype, mean):
        attrs = {"ordering_token": [], "merge_op": "Add", "final_op": "Div"}
        tensors = [np.array([1, -2], dtype), np.array([-4, 5], dtype)]
        assert self.call("Reduce", tensors, keys, **attrs) == [mean] * 2

    def test_gather(self, keys):
        tensors = [floats([1, 2]), floats([1, 2])]
        gathered = [[1, 2], [1, 2]]
        assert self.call("Gather", tensors, keys, ordering_token=[]) == [gathered] * 2

    def test_all_to_all(self, keys):
        tensors = [floats([1, 2], [3, 4])] * 2
        answers = self.call("AllToAll", tensors, keys, ordering_token=[])
        assert sorted(answers) == [[[1, 2], [1, 2]], [[3, 4], [3, 4]]]

    def test_reduce_scatter(self, keys):
        attrs = {"ordering_token": [], "merge_op": "Add", "final_op": "Id"}
        answers = self.call("ReduceScatter", [floats(1, 2, 3, 4)] * 2, keys, **attrs)
        assert sorted(answers) == [[2, 4], [6, 8]]

    def test_broadcast(self, keys):
        shape = np.array([2], np.int64)
        answers = together(
            lambda: raw_ops.CollectiveBcastSendV2(input=floats(1, 2), **keys),
            lambda: raw_ops.CollectiveBcastRecvV2(T=float32, shape=shape, **keys),
        )
        assert lists(answers) == [[1, 2]] * 2

    def test_a_timeout_fails_all(self, keys):
        attrs = {"ordering_token": [], "merge_op": "Add", "final_op": "Id", "timeout_seconds": 0.02}
        (answer,) = self.call("Reduce", [floats(1)], keys, **attrs)
        assert type(answer) is DeadlineExceededError
        assert "Collective has timed out waiting for other workers." in answer.message

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"group_size": 0}, "group_size must be positive integer but got 0"),
            ({"group_size": [2]}, "Unexpected dimensions on input group_size, got [1]"),
            ({"group_key": [2]}, "Unexpected dimensions on input group_key, got [1]"),
            ({"instance_key": [2]}, "Unexpected dimensions on input instance_key, got [1]"),
        ],
    )
    def test_wrong_keys(self, keys, change, message):
        (answer,) = self.call("Gather", [floats(1)], {**keys, **change}, ordering_token=[])
        assert type(answer) is InvalidArgumentError
        assert message in answer.message

    def test_a_gather_wants_rows(self, keys):
        inputs = [np.float32(1), *map(np.int32, keys.values()), []]
        step = Step()
        step.collective_executor = LocalCollectiveExecutor()
        with pytest.raises(InvalidArgumentError, match="input should have rank > 0, received 0"):
            run_op("CollectiveGatherV2", inputs, step=step)

    @pytest.mark.parametrize(
        ("shape", "error", "message"),
        [
            ([-1], InvalidArgumentError, "-1"),
            ([[2]], InvalidArgumentError, "shape must be a vector"),
            ([2**40], ResourceExhaustedError, "1099511627776"),
        ],
    )
    def test_wrong_shapes(self, keys, shape, error, message):
        inputs = [*map(np.int32, keys.values()), np.array(shape, np.int64)]
        step = Step()
        step.collective_executor = LocalCollectiveExecutor()
        with pytest.raises(error, match=message):
            run_op("CollectiveBcastRecvV2", inputs, attrs={"T": float32}, step=step)

    def test_without_an_executor(self, keys):
        inputs = [floats(1), *map(np.int32, keys.values()), []]
        with pytest.raises(InternalError, match="Failed to get CollectiveExecutor"):
            run_op("CollectiveGatherV2", inputs, step=Step())

    def test_a_step_that_ends_leaves_nobody_waiting(self, keys):
        executor, manager = LocalCollectiveExecutor(), CancellationManager()
        step = Step()
        step.collective_executor, step.cancellation_manager = executor, manager
        inputs = [floats(1), *map(np.int32, keys.values()), []]
        threading.Timer(0.02, manager.start_cancel).start()
        with pytest.raises(CancelledError, match="op cancelled"):
            run_op("CollectiveGatherV2", inputs, step=step)


def communicators(executor, ranks, body):
    """What `body(run, rank)` gives for each rank; `run` runs an op, with the communicator first."""

    def member(rank):
        device = LocalDevice("CPU", np)
        step = Step()
        step.collective_executor = executor

        def run(op, inputs, **attrs):
            return run_op(op, inputs, attrs=attrs, step=step, device=device).outputs[0]

        group = [np.int32(value) for value in (5, rank, len(ranks))]
        return body(run, run("CollectiveInitializeCommunicator", group), rank)

    return together(*[lambda r=rank: member(r) for rank in ranks])


NO_GROUPS = np.zeros((0, 0), np.int32)


class TestCommunicators:
    def test_one_collective_after_the_other(self, executor):
        def body(run, communicator, rank):
            total = run("CollectiveReduceV3", [floats(rank), communicator, NO_GROUPS], **add)
            rows = floats([10 * rank], [10 * rank + 1])
            row = run("CollectiveAllToAllV3", [rows, communicator, NO_GROUPS])
            return total.tolist(), row.tolist()

        add = {"reduction": "Add"}
        answers = communicators(executor, [1, 0], body)
        assert answers == [([1], [[1], [11]]), ([1], [[0], [10]])]

    def test_ranks_differ(self, executor):
        answers = communicators(executor, [0, 0], lambda run, communicator, rank: communicator)
        for answer in answers:
            assert type(answer) is InvalidArgumentError
            assert "the ranks of a group of 2 must all differ, but are [0, 0]" in answer.message

    def test_a_place_is_taken_once(self, executor):
        def again(run, communicator, rank):
            run("CollectiveInitializeCommunicator", [np.int32(value) for value in (5, 0, 1)])

        (answer,) = communicators(executor, [0], again)
        assert type(answer) is AlreadyExistsError

    def test_groups_of_a_communicator(self, executor):
        def body(run, communicator, rank):
            groups = np.zeros((1, 1), np.int32)
            run("CollectiveReduceV3", [floats(1), communicator, groups], reduction="Add")

        (answer,) = communicators(executor, [0], body)
        assert type(answer) is UnimplementedError

    @pytest.mark.parametrize(
        ("group", "message"),
        [
            ((5, -1, 2), "rank must be non-negative integer but got -1"),
            ((5, 2, 2), "rank must be less than group size but got 2 >= 2"),
            ((5, 0, 0), "group_size must be positive integer but got 0"),
        ],
    )
    def test_wrong_places(self, executor, group, message):
        step = Step()
        step.collective_executor = executor
        with pytest.raises(InvalidArgumentError, match=message):
            run_op("CollectiveInitializeCommunicator", list(map(np.int32, group)), step=step)


class TestAssignGroup:
    @staticmethod
    def run(groups, device, base_key):
        inputs = [np.array(groups, np.int32), np.int32(device), np.int32(base_key)]
        return [int(output) for output in run_op("CollectiveAssignGroupV2", inputs).outputs]

    def test_the_row_of_the_device(self):
        groups = [[0, 2, 4], [1, 3, 5]]
        assert self.run(groups, 4, 10) == [3, 10]
        assert self.run(groups, 1, 10) == [3, 11]

    @pytest.mark.parametrize(
        ("groups", "device", "base_key", "message"),
        [
            ([[0, 1]], 2, 1, r"device_index 2 is not found in group_assignment \[\[0, 1\]\]"),
            ([[0, 7]], 1, 1, r"Not all items in group_assignment \[\[0, 7\]\] is within"),
            ([[0], [1]], 1, -1, "reserved group_key = 0 is not allowed: group_id = 1"),
            ([0, 1], 1, 1, r"group_assignment must be a 2-d Tensor, .* of shape: \[2\]"),
        ],
    )
    def test_wrong_groups(self, groups, device, base_key, message):
        with pytest.raises(InvalidArgumentError, match=message):
            self.run(groups, device, base_key)
