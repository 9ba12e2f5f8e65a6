"""Groups that compute together in one process: who meets, what each gets, how failures spread."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from opkernel.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
)
from opkernel.kernel import (
    CancellationManager,
    CollectiveMember,
    CollectiveParams,
    CollectiveType,
    FrameAndIter,
    LocalCollectiveExecutor,
)
from opkernel.kernel.services.collective import collective_results
from opkernel.types import DataType

DEVICES = [f"/job:localhost/replica:0/task:0/device:CPU:{index}" for index in range(12)]
WAIT_S = 300.0
SUM = CollectiveParams(
    CollectiveType.REDUCTION_COLLECTIVE, 1, 2, 100, DataType.DT_FLOAT, (2,), merge_op=np.add
)
BROADCAST = replace(SUM, type=CollectiveType.BROADCAST_COLLECTIVE, merge_op=None)
GATHER = replace(SUM, type=CollectiveType.GATHER_COLLECTIVE, merge_op=None)


class Group:
    """Members that join one after the other, member i on device i."""

    def __init__(self, executor=None):
        self.executor = executor or LocalCollectiveExecutor()
        self.answers = {}
        self._ended = threading.Event()

    def join(self, index, tensor=(0, 0), params=SUM, manager=None, **member):
        def done(error, result):
            assert index not in self.answers
            self.answers[index] = error if error is not None else result
            self._ended.set()

        given = None if tensor is None else np.array(tensor, params.data_type.numpy_dtype)
        self.executor.execute_async(
            CollectiveMember(**{"device": DEVICES[index], **member}), params, given, done, manager
        )

    def lists(self):
        return {index: np.asarray(answer).tolist() for index, answer in self.answers.items()}

    def wait_for_one(self):
        assert self._ended.wait(WAIT_S)


class TestResults:
    def test_all_get_the_sum(self):
        group, params = Group(), replace(SUM, group_size=3)
        for index, tensor in enumerate([[1, 2], [10, 20], [100, 200]]):
            assert not group.answers
            group.join(index, tensor, params)
        assert group.lists() == {0: [111, 222], 1: [111, 222], 2: [111, 222]}

    @pytest.mark.parametrize(
        ("merge_op", "merged"),
        [(np.multiply, [3, -8]), (np.minimum, [1, -2]), (np.maximum, [3, 4])],
    )
    def test_other_ways_to_merge(self, merge_op, merged):
        group, params = Group(), replace(SUM, merge_op=merge_op)
        group.join(0, [1, -2], params)
        group.join(1, [3, 4], params)
        assert group.lists() == {0: merged, 1: merged}

    def test_the_final_op_sees_the_size_of_the_group(self):
        group = Group()
        params = replace(SUM, final_op=lambda total, size: total / np.float32(size))
        group.join(0, [1, 2], params)
        group.join(1, [3, 6], params)
        assert group.lists() == {0: [2, 4], 1: [2, 4]}

    def test_scalars(self):
        group, params = Group(), replace(SUM, shape=())
        group.join(0, 1, params)
        group.join(1, 2, params)
        assert group.lists() == {0: 3, 1: 3}
        assert group.answers[0].dtype == np.float32

    def test_a_group_of_one(self):
        group = Group()
        group.join(0, [1, 2], replace(SUM, group_size=1))
        assert group.lists() == {0: [1, 2]}

    def test_a_broadcast_gives_the_tensor_of_the_source(self):
        group, params = Group(), replace(BROADCAST, group_size=3)
        group.join(0, None, params)
        group.join(1, [1, 2], replace(params, is_source=True))
        group.join(2, None, params)
        assert group.lists() == {0: [1, 2], 1: [1, 2], 2: [1, 2]}

    def test_a_gather_is_in_the_order_of_the_devices(self):
        group, params = Group(), replace(GATHER, group_size=3)
        for index in (10, 9, 2):
            group.join(index, [index, 0], params)
        assert group.lists() == {key: [2, 0, 9, 0, 10, 0] for key in (2, 9, 10)}

    def test_on_one_device_it_is_in_the_order_of_sessions_and_nodes(self):
        group, params = Group(), replace(GATHER, group_size=3)
        places = [("session_10", "a"), ("session_9", "b"), ("session_9", "a")]
        for index, (session, node) in enumerate(places):
            group.join(
                index, [index, 0], params, device=DEVICES[0], session_handle=session, node=node
            )
        assert group.lists()[0] == [2, 0, 1, 0, 0, 0]

    def test_members_may_ask_for_a_rank(self):
        group = Group()
        group.join(0, [1, 2], GATHER, rank=1)
        group.join(1, [3, 4], GATHER, rank=0)
        assert group.lists()[0] == [3, 4, 1, 2]

    def test_all_to_all(self):
        group = Group()
        params = replace(GATHER, type=CollectiveType.ALL_TO_ALL_COLLECTIVE, shape=(2, 2))
        group.join(0, [[1, 2], [3, 4]], params)
        group.join(1, [[5, 6], [7, 8]], params)
        assert group.lists() == {0: [[1, 2], [5, 6]], 1: [[3, 4], [7, 8]]}

    def test_reduce_scatter(self):
        group = Group()
        params = replace(SUM, type=CollectiveType.REDUCE_SCATTER_COLLECTIVE, shape=(4,))
        group.join(0, [1, 2, 3, 4], params)
        group.join(1, [10, 20, 30, 40], params)
        assert group.lists() == {0: [11, 22], 1: [33, 44]}

    @pytest.mark.parametrize("params", [SUM, BROADCAST, GATHER])
    def test_no_two_members_share_memory(self, params):
        group = Group()
        group.join(0, params=replace(params, is_source=True))
        group.join(1, params=params)
        assert not np.shares_memory(group.answers[0], group.answers[1])


class TestMeeting:
    @pytest.mark.parametrize(
        "change", [{"group_key": 2}, {"instance_key": 101}, {"frame_iter": FrameAndIter(0, 1)}]
    )
    def test_members_of_other_instances_do_not_meet(self, change):
        group = Group()
        group.join(0)
        group.join(1, params=replace(SUM, **change))
        assert not group.answers

    def test_an_instance_may_come_again(self):
        executor = LocalCollectiveExecutor()
        for number in range(3):
            group, params = Group(executor), replace(SUM, shape=(number,))
            group.join(0, [1] * number, params)
            group.join(1, [2] * number, params)
            assert group.lists()[1] == [3] * number

    def test_steps_of_one_session_do_not_meet(self):
        group, step = Group(), {"session_handle": "s", "device": DEVICES[0]}
        group.join(0, [1, 1], **step, step_id=1, node="a")
        group.join(1, [10, 10], **step, step_id=2, node="a")
        group.join(2, [20, 20], **step, step_id=2, node="b")
        group.join(3, [2, 2], **step, step_id=1, node="b")
        assert group.lists() == {0: [3, 3], 3: [3, 3], 1: [30, 30], 2: [30, 30]}

    def test_sessions_meet(self):
        group = Group()
        group.join(0, [1, 1], session_handle="s", step_id=1)
        group.join(1, [2, 2], session_handle="t", step_id=2)
        assert group.lists() == {0: [3, 3], 1: [3, 3]}

    def test_many_threads(self):
        executor, rounds, members = LocalCollectiveExecutor(), 30, 8
        sums: list[list[list[float]]] = [[] for _ in range(members)]

        def take_part(index):
            for number in range(rounds):
                ended = threading.Event()

                def done(error, result, ended=ended):
                    sums[index].append(error or result.tolist())
                    ended.set()

                tensor = np.full(2, number * index, np.float32)
                params = replace(SUM, group_size=members)
                executor.execute_async(CollectiveMember(DEVICES[index]), params, tensor, done)
                assert ended.wait(WAIT_S)

        threads = [threading.Thread(target=take_part, args=(i,)) for i in range(members)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sums == [[[number * 28.0] * 2 for number in range(rounds)]] * members


class TestFailures:
    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            (
                {"shape": (3,)},
                InvalidArgumentError,
                (
                    "Shape mismatch in the collective instance 100 of group 1. Op at device "
                    f"{DEVICES[1]} expected shape [3] but another member in the group expected shape "
                    "[2]"
                ),
            ),
            (
                {"data_type": DataType.DT_INT32},
                InternalError,
                (
                    "The collective instance 100 of group 1 expected REDUCTION_COLLECTIVE of float "
                    f"but {DEVICES[1]} takes part in REDUCTION_COLLECTIVE of int32"
                ),
            ),
            (
                {"type": CollectiveType.GATHER_COLLECTIVE},
                InternalError,
                (
                    "The collective instance 100 of group 1 expected REDUCTION_COLLECTIVE of float "
                    f"but {DEVICES[1]} takes part in GATHER_COLLECTIVE of float"
                ),
            ),
            (
                {"group_size": 4},
                InternalError,
                (
                    f"Device {DEVICES[1]} is joining a group with size 4, but that group has size 3 "
                    "(group_key=1, collective instance 100 of group 1)"
                ),
            ),
            (
                {"merge_op": np.multiply},
                InvalidArgumentError,
                (
                    "The members of the collective instance 100 of group 1 reduce in different ways; "
                    f"the one at {DEVICES[1]} differs from those before"
                ),
            ),
        ],
    )
    def test_a_member_that_does_not_fit_fails_all(self, change, error, message):
        group, params = Group(), replace(SUM, group_size=3)
        group.join(0, params=params)
        group.join(1, params=replace(params, **change))
        assert set(group.answers) == {0, 1}
        group.join(2, params=params)  # comes too late
        for answer in group.answers.values():
            assert type(answer) is error
            assert answer.message == message
        assert len({id(answer) for answer in group.answers.values()}) == 3

    @pytest.mark.parametrize(
        ("sources", "message"),
        [
            ([], "Instance 100 of group 1 found no source for broadcast"),
            ([0, 1], "Instance 100 of group 1 already has source 0, received second claim from 1"),
        ],
    )
    def test_a_broadcast_has_one_source(self, sources, message):
        group = Group()
        for index in range(2):
            group.join(index, params=replace(BROADCAST, is_source=index in sources))
        for answer in group.answers.values():
            assert type(answer) is InternalError
            assert message in answer.message

    @pytest.mark.parametrize(
        ("collective", "message"),
        [
            (CollectiveType.ALL_TO_ALL_COLLECTIVE, "must be the same as the group size (2)"),
            (CollectiveType.REDUCE_SCATTER_COLLECTIVE, "must be a multiple of the group size (2)"),
        ],
    )
    @pytest.mark.parametrize("shape", [(), (3,)])
    def test_rows_that_cannot_be_divided(self, collective, message, shape):
        group, params = Group(), replace(SUM, type=collective, shape=shape)
        for index in range(2):
            group.join(index, np.zeros(shape), params)
        assert [type(answer) for answer in group.answers.values()] == [InvalidArgumentError] * 2
        assert message in group.answers[0].message

    def test_what_a_merge_op_raises_fails_all(self):
        def refuse(a, b):
            raise KeyError("no")

        group, params = Group(), replace(SUM, merge_op=refuse)
        group.join(0, params=params)
        group.join(1, params=params)
        assert [type(answer) for answer in group.answers.values()] == [InternalError] * 2

    def test_a_cancelled_member_fails_all(self):
        group, params, manager = Group(), replace(SUM, group_size=3), CancellationManager()
        group.join(0, params=params)
        group.join(1, params=params, manager=manager)
        manager.start_cancel()
        assert set(group.answers) == {0, 1}
        group.join(2, params=params)
        assert [type(answer) for answer in group.answers.values()] == [CancelledError] * 3

    def test_a_member_that_was_cancelled_before_fails_all(self):
        group, manager = Group(), CancellationManager()
        manager.start_cancel(AbortedError("the step has failed"))
        group.join(0, params=replace(SUM, group_size=3), manager=manager)
        group.join(1, params=replace(SUM, group_size=3))
        assert [type(answer) for answer in group.answers.values()] == [AbortedError] * 2

    def test_cancellation_after_the_end_does_nothing(self):
        group, manager = Group(), CancellationManager()
        group.join(0, [1, 2], manager=manager)
        group.join(1, [3, 4])
        manager.start_cancel()
        assert group.lists() == {0: [4, 6], 1: [4, 6]}

    def test_a_timeout_fails_all(self):
        group, params = Group(), replace(SUM, group_size=3)
        group.join(0, params=params)
        group.join(1, params=replace(params, timeout_seconds=0.01))
        group.wait_for_one()
        group.join(2, params=params)
        for answer in group.answers.values():
            assert type(answer) is DeadlineExceededError
            assert "Collective has timed out waiting for other workers." in answer.message

    def test_no_timer_outlives_its_instance(self):
        group, params = Group(), replace(SUM, timeout_seconds=60)
        before = threading.active_count()
        group.join(0, params=params)
        group.join(1, params=params)
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join(WAIT_S)
        assert threading.active_count() == before

    def test_a_session_may_try_again(self):
        group, manager = Group(), CancellationManager()
        group.join(0, session_handle="s", step_id=1, manager=manager)
        manager.start_cancel()
        group.join(1, [1, 2], session_handle="s", step_id=2)
        group.join(2, [3, 4], session_handle="t", step_id=3)
        assert group.lists()[1] == group.lists()[2] == [4, 6]

    def test_an_abort_fails_what_waits_and_what_comes(self):
        group = Group()
        group.join(0)
        group.executor.start_abort(AbortedError("lost a worker"))
        group.executor.start_abort(InternalError("another"))
        group.join(1)
        group.join(2, params=replace(SUM, instance_key=7))
        for answer in group.answers.values():
            assert type(answer) is AbortedError
            assert answer.message == "lost a worker"

    def test_failed_instances_are_not_kept_for_ever(self):
        executor = LocalCollectiveExecutor()
        executor_size = []
        for number in range(1200):
            manager = CancellationManager()
            Group(executor).join(0, params=replace(SUM, instance_key=number), manager=manager)
            manager.start_cancel()
            executor_size.append(len(executor._instances))
        assert max(executor_size) <= 1001

    @pytest.mark.parametrize("ids", [(100, 100), (100, 101)])
    def test_a_session_uses_an_instance_for_one_kind(self, ids):
        """Another step of the session may, with the key of another instance."""
        executor, kinds = LocalCollectiveExecutor(), (SUM, GATHER)
        for number, (key, params) in enumerate(zip(ids, kinds, strict=True)):
            group = Group(executor)
            member = {"session_handle": "s", "step_id": number}
            group.join(0, params=replace(params, instance_key=key, group_size=1), **member)
            is_other = number == 1 and ids[0] == ids[1]
            assert isinstance(group.answers[0], InternalError) is is_other
        if is_other:
            assert group.answers[0].message == (
                "The collective instance 100 of group 1 was used for REDUCTION_COLLECTIVE of float, "
                "and cannot be for GATHER_COLLECTIVE of float"
            )

    def test_a_communicator_may_use_its_key_for_any_kind(self):
        executor = LocalCollectiveExecutor()
        for params in (SUM, GATHER):
            group = Group(executor)
            group.join(0, params=replace(params, instance_key="by name", group_size=1))
            assert not isinstance(group.answers[0], Exception)

    def test_devices_of_a_group_are_of_one_type(self):
        group, params = Group(), replace(SUM, group_size=3)
        group.join(0, params=params)
        group.join(1, params=params, device=DEVICES[1].replace("CPU", "GPU"))
        for answer in group.answers.values():
            assert type(answer) is InternalError
            assert answer.message == (
                f"Device {DEVICES[1].replace('CPU', 'GPU')} is joining a group with device type GPU, but "
                "that group has type CPU (group_key=1, collective instance 100 of group 1)"
            )

    @pytest.mark.parametrize("change", [{"reduction": "Mul"}, {"final_op": np.negative}])
    def test_members_reduce_in_one_way(self, change):
        group, params = Group(), replace(SUM, group_size=3)
        group.join(0, params=params)
        group.join(1, params=replace(params, **change))
        assert [type(answer) for answer in group.answers.values()] == [InvalidArgumentError] * 2


class TestFormulas:
    """The results of each member, by the tensors of all."""

    TENSORS = tuple(np.arange(6, dtype=np.float32).reshape(3, 2) * 10**rank for rank in range(3))

    def results(self, kind, merge_op=None, final_op=None, shape=(3, 2)):
        params = replace(
            SUM, type=kind, group_size=3, shape=shape, merge_op=merge_op, final_op=final_op
        )
        return collective_results(params, self.TENSORS, [True, False, False])

    def test_sums_in_the_order_of_ranks(self):
        expected = self.TENSORS[0] * 111
        for merge_op in (np.add, lambda a, b: a + b):
            for result in self.results(CollectiveType.REDUCTION_COLLECTIVE, merge_op):
                np.testing.assert_array_equal(result, expected)
        found = self.results(CollectiveType.REDUCTION_COLLECTIVE, lambda a, b: a - b)
        np.testing.assert_array_equal(found[2], self.TENSORS[0] * (1 - 10 - 100))

    def test_the_tensors_of_members_are_left_alone(self):
        before = [tensor.copy() for tensor in self.TENSORS]
        for kind in CollectiveType:
            self.results(kind, np.add)
        for tensor, copy in zip(self.TENSORS, before, strict=True):
            np.testing.assert_array_equal(tensor, copy)

    def test_means_divide_by_the_number_of_members(self):
        def mean(total, size):
            return total / np.float32(size)

        for result in self.results(CollectiveType.REDUCTION_COLLECTIVE, np.add, mean):
            np.testing.assert_allclose(result, self.TENSORS[0] * 37)

    def test_parts_are_reduced_and_scattered(self):
        found = self.results(CollectiveType.REDUCE_SCATTER_COLLECTIVE, np.add)
        for rank, result in enumerate(found):
            np.testing.assert_array_equal(result, self.TENSORS[0][rank : rank + 1] * 111)

    def test_rows_change_places_with_members(self):
        for rank, result in enumerate(self.results(CollectiveType.ALL_TO_ALL_COLLECTIVE)):
            np.testing.assert_array_equal(result, [one[rank] for one in self.TENSORS])

    def test_tensors_are_gathered(self):
        for result in self.results(CollectiveType.GATHER_COLLECTIVE):
            np.testing.assert_array_equal(result, np.concatenate(self.TENSORS))

    def test_a_broadcast_keeps_the_source_s_and_copies_it_for_the_others(self):
        found = self.results(CollectiveType.BROADCAST_COLLECTIVE)
        assert found[0] is self.TENSORS[0]
        for result in found[1:]:
            assert not np.shares_memory(result, self.TENSORS[0])
            np.testing.assert_array_equal(result, self.TENSORS[0])

    def test_without_a_way_to_merge_there_is_no_sum(self):
        with pytest.raises(InternalError, match="collective instance 100 has no merge op"):
            self.results(CollectiveType.REDUCTION_COLLECTIVE)

    @pytest.mark.parametrize(("rows", "is_right"), [(3, True), (6, True), (4, False), (2, False)])
    def test_rows_are_divided_among_members(self, rows, is_right):
        params = replace(
            SUM, type=CollectiveType.REDUCE_SCATTER_COLLECTIVE, group_size=3, shape=(rows, 2)
        )
        tensors = [np.ones((rows, 2), np.float32)] * 3
        if is_right:
            results = collective_results(params, tensors, [False] * 3)
            assert [result.shape for result in results] == [(rows // 3, 2)] * 3
        else:
            with pytest.raises(InvalidArgumentError, match=rf"size \({rows}\) must be a multiple"):
                collective_results(params, tensors, [False] * 3)

    @pytest.mark.parametrize("rows", [2, 4, 6])
    def test_an_all_to_all_has_a_row_for_each_member(self, rows):
        params = replace(
            GATHER, type=CollectiveType.ALL_TO_ALL_COLLECTIVE, group_size=3, shape=(rows,)
        )
        with pytest.raises(InvalidArgumentError, match=rf"size \({rows}\) must be the same as"):
            collective_results(params, [np.ones(rows)] * 3, [False] * 3)

    def test_numbers_out_of_range_are_no_errors(self):
        params = replace(SUM, group_size=3, shape=())
        with np.errstate(all="raise"):
            huge = np.float32(3e38)
            results = collective_results(params, [huge] * 3, [False] * 3)
        assert all(np.isinf(result) for result in results)
