"""Allocators: what they give, count and refuse."""

import gc
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.errors import InternalError, InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import (
    Allocator,
    AllocatorAttributes,
    AllocatorMemoryType,
    AllocatorStats,
    CpuAllocator,
    TrackingAllocator,
    allocate,
    allocating_from,
    allocation_limit,
    cpu_allocator,
)
from opkernel.types import DataType, float32, float64, int8, string


class TestCpuAllocator:
    def test_gives_arrays_that_own_their_memory(self) -> None:
        array = CpuAllocator().allocate([2, 3], float32)
        assert array.shape == (2, 3)
        assert array.dtype == np.float32
        assert array.base is None
        assert CpuAllocator().allocate([2], string).tolist() == [None, None]

    def test_counts_what_is_alive(self) -> None:
        allocator = CpuAllocator()
        first = allocator.allocate([10], float32)
        second = allocator.allocate([25], float64)
        assert allocator.get_stats() == AllocatorStats(2, 240, 240, 200)
        del first
        assert allocator.get_stats() == AllocatorStats(2, 200, 240, 200)
        view = second[3:].reshape(2, 11)
        del second
        assert allocator.get_stats().bytes_in_use == 200
        del view
        assert allocator.get_stats() == AllocatorStats(2, 0, 240, 200)

    def test_counts_arrays_in_cycles_until_they_are_collected(self) -> None:
        allocator = CpuAllocator()
        cycle: list[Any] = [allocator.allocate([4], int8)]
        cycle.append(cycle)
        del cycle
        gc.collect()
        assert allocator.get_stats().bytes_in_use == 0

    def test_can_count_anew(self) -> None:
        allocator = CpuAllocator()
        kept = allocator.allocate([4], int8)
        allocator.allocate([100], int8)
        assert allocator.clear_stats()
        assert allocator.get_stats() == AllocatorStats(0, 4, 4, 0)
        assert kept.size == 4

    def test_knows_its_arrays(self) -> None:
        allocator = CpuAllocator()
        first, second = (allocator.allocate([size], float32) for size in (3, 5))
        assert allocator.tracks_allocation_sizes
        assert [allocator.requested_size(one) for one in (first, second[1:])] == [12, 20]
        assert [allocator.allocated_size(one) for one in (first, second[1:])] == [12, 20]
        assert [allocator.allocation_id(one) for one in (first, second)] == [1, 2]
        with pytest.raises(InvalidArgumentError, match=r"shape \[2\] was not allocated here"):
            allocator.requested_size(np.zeros(2))

    def test_says_what_it_is(self) -> None:
        assert cpu_allocator() is cpu_allocator()
        assert cpu_allocator().name == "cpu"
        assert cpu_allocator().memory_type is AllocatorMemoryType.HOST_PAGEABLE

    @pytest.mark.parametrize("alignment", [1, 2, 64, 4096])
    def test_aligns_bytes(self, alignment: int) -> None:
        allocator = CpuAllocator()
        array = allocator.allocate_raw(alignment, 100)
        assert array.ctypes.data % alignment == 0
        assert array.shape == (100,)
        assert array.dtype == np.uint8
        assert allocator.requested_size(array) == 100
        assert 100 <= allocator.allocated_size(array) < 100 + alignment
        assert allocator.get_stats().bytes_in_use == allocator.allocated_size(array)
        del array
        assert allocator.get_stats().bytes_in_use == 0

    @pytest.mark.parametrize(("alignment", "size"), [(0, 1), (3, 1), (-4, 1), (4, -1)])
    def test_refuses_bytes_that_make_no_sense(self, alignment: int, size: int) -> None:
        with pytest.raises(InvalidArgumentError):
            CpuAllocator().allocate_raw(alignment, size)

    def test_refuses_what_exceeds_its_limit_before_it_takes_it(self) -> None:
        allocator = CpuAllocator(bytes_limit=100)
        kept = allocator.allocate([20], float32)
        with pytest.raises(
            ResourceExhaustedError,
            match=r"OOM when allocating tensor with shape\[6\] and type float by allocator cpu: "
            r"24 bytes and the 80 in use are more than the limit of 100",
        ):
            allocator.allocate([6], float32)
        with pytest.raises(ResourceExhaustedError):
            allocator.allocate([1 << 60], float32)
        with pytest.raises(ResourceExhaustedError):
            allocator.allocate_raw(64, 21)
        assert allocator.get_stats() == AllocatorStats(1, 80, 80, 80, 100)
        del kept
        assert allocator.allocate([25], float32).nbytes == 100

    def test_says_that_the_machine_has_no_more(self) -> None:
        allocator = CpuAllocator()
        with (
            allocation_limit(1 << 62),
            pytest.raises(ResourceExhaustedError, match="OOM when allocating tensor"),
        ):
            allocator.allocate([1 << 58], float32)
        assert allocator.get_stats().bytes_in_use == 0

    def test_keeps_the_limit_for_one_tensor(self) -> None:
        with allocation_limit(10), pytest.raises(ResourceExhaustedError, match="limit of 10"):
            CpuAllocator().allocate([11], int8)

    @pytest.mark.parametrize("shape", [[-1], [1 << 40, 1 << 40]])
    def test_refuses_shapes_that_are_none(self, shape: list[int]) -> None:
        with pytest.raises(InvalidArgumentError):
            CpuAllocator().allocate(shape, int8)

    def test_counts_right_under_threads(self) -> None:
        allocator = CpuAllocator(bytes_limit=64 * 100)
        refused: list[int] = []

        def work() -> None:
            kept: list[Any] = []
            for turn in range(300):
                try:
                    kept.append(allocator.allocate([64], int8))
                except ResourceExhaustedError:
                    refused.append(1)
                if turn % 3 == 0:
                    kept.clear()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stats = allocator.get_stats()
        assert stats.num_allocs == 8 * 300 - len(refused)
        assert stats.bytes_in_use == 0
        assert stats.peak_bytes_in_use <= 6400


def test_stats_as_text() -> None:
    text = AllocatorStats(3, 20, 30, 10, 100).debug_string()
    assert text.splitlines() == [
        "Limit:                             100",
        "InUse:                              20",
        "MaxInUse:                           30",
        "NumAllocs:                           3",
        "MaxAllocSize:                       10",
    ]


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans()), max_size=30))
def test_what_is_in_use_is_what_was_allocated_less_what_was_dropped(
    steps: Sequence[tuple[int, bool]],
) -> None:
    allocator = CpuAllocator()
    tracking = TrackingAllocator(allocator)
    alive: list[Any] = []
    peak = total = 0
    for size, drops in steps:
        if drops and alive:
            alive.pop(0)
        alive.append(tracking.allocate([size], int8))
        total += size
        peak = max(peak, sum(array.nbytes for array in alive))
    in_use = sum(array.nbytes for array in alive)
    stats = allocator.get_stats()
    assert (stats.num_allocs, stats.bytes_in_use, stats.peak_bytes_in_use) == (
        len(steps), in_use, peak,
    )  # fmt: skip
    assert tracking.get_sizes() == (total, peak, in_use)
    assert sum(record.alloc_bytes for record in tracking.get_current_records()) == in_use


class Untracked(CpuAllocator):
    """An allocator that does not know its arrays."""

    tracks_allocation_sizes = False


class TestTrackingAllocator:
    def test_records_what_goes_through_it(self) -> None:
        inner = CpuAllocator()
        inner.allocate([1000], int8)
        tracking = TrackingAllocator(inner)
        first = tracking.allocate([12], int8)
        del first
        second = tracking.allocate([4], int8)
        assert tracking.get_sizes() == (16, 12, 4)
        assert tracking.requested_size(second) == 4
        assert tracking.allocated_size(second) == 4
        assert tracking.allocation_id(second) == 2
        del second
        assert tracking.get_sizes() == (16, 12, 0)
        records = tracking.get_current_records()
        assert [record.alloc_bytes for record in records] == [12, -12, 4, -4]
        micros = [record.alloc_micros for record in records]
        assert micros == sorted(micros)
        assert micros[0] > 0

    def test_charges_what_the_allocator_took(self) -> None:
        tracking = TrackingAllocator(CpuAllocator())
        array = tracking.allocate_raw(64, 10)
        assert tracking.requested_size(array) == 10
        assert tracking.get_sizes() == (73, 73, 73)
        del array
        assert tracking.get_sizes() == (73, 73, 0)

    def test_charges_what_was_asked_for_if_the_allocator_does_not_know(self) -> None:
        tracking = TrackingAllocator(Untracked())
        array = tracking.allocate_raw(64, 10)
        assert tracking.get_sizes() == (10, 10, 10)
        assert array.size == 10

    def test_records_nothing_that_was_refused(self) -> None:
        tracking = TrackingAllocator(CpuAllocator(bytes_limit=10))
        with pytest.raises(ResourceExhaustedError):
            tracking.allocate([12], int8)
        assert tracking.get_sizes() == (0, 0, 0)
        assert tracking.get_current_records() == []

    def test_passes_the_rest_on(self) -> None:
        inner = CpuAllocator()
        tracking = TrackingAllocator(inner)
        assert tracking.name == "cpu"
        assert tracking.memory_type is AllocatorMemoryType.HOST_PAGEABLE
        assert tracking.tracks_allocation_sizes
        tracking.allocate([12], int8)
        assert tracking.get_stats() == inner.get_stats() == AllocatorStats(1, 0, 12, 12)
        assert tracking.clear_stats()
        assert inner.get_stats().num_allocs == 0


class Plain(Allocator):
    """An allocator of somebody, who does not count."""

    name = "plain"
    memory_type = AllocatorMemoryType.HOST_PINNED

    def allocate(self, shape: Sequence[int], dtype: DataType) -> Any:
        return np.zeros(tuple(shape), dtype.numpy_dtype)

    def allocate_raw(self, alignment: int, num_bytes: int) -> Any:
        return np.zeros(num_bytes, np.uint8)


class TestAllocatorsThatDoNotCount:
    def test_track_nothing(self) -> None:
        allocator = Plain()
        array = allocator.allocate([3], float32)
        assert not allocator.tracks_allocation_sizes
        assert allocator.get_stats() is None
        assert not allocator.clear_stats()
        for size in (allocator.requested_size, allocator.allocated_size, allocator.allocation_id):
            with pytest.raises(
                InvalidArgumentError, match="Allocator plain does not track its arrays"
            ):
                size(array)

    def test_can_be_followed(self) -> None:
        tracking = TrackingAllocator(Plain())
        kept = tracking.allocate([3], float32)
        bytes_ = tracking.allocate_raw(64, 100)
        assert tracking.get_sizes() == (112, 112, 112)
        assert [tracking.requested_size(one) for one in (kept, bytes_)] == [12, 100]
        assert [tracking.allocated_size(one) for one in (kept, bytes_)] == [12, 100]
        assert [tracking.allocation_id(one) for one in (kept, bytes_)] == [1, 2]
        assert tracking.memory_type is AllocatorMemoryType.HOST_PINNED
        assert (tracking.get_stats(), tracking.clear_stats()) == (None, False)
        del kept
        assert tracking.get_sizes() == (112, 112, 100)
        records = [record.alloc_bytes for record in tracking.get_current_records()]
        assert records == [12, 100, -12]


def test_statistics_as_tensorflow_prints_them() -> None:
    allocator = CpuAllocator(bytes_limit=1000)
    kept = allocator.allocate([10], float32)
    allocator.allocate([20], float32)
    assert allocator.get_stats().debug_string() == (
        "Limit:                            1000\n"
        "InUse:                              40\n"
        "MaxInUse:                          120\n"
        "NumAllocs:                           2\n"
        "MaxAllocSize:                       80\n"
    )
    assert (
        CpuAllocator()
        .get_stats()
        .debug_string()
        .startswith("Limit:                               0\n")
    )
    assert kept.size == 10


def test_records_have_the_time_in_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_700_000_000_123_456_789)
    tracking = TrackingAllocator(Plain())
    tracking.allocate([3], float32)
    assert [one.alloc_micros for one in tracking.get_current_records()] == [
        1_700_000_000_123_456
    ] * 2


def test_kernels_can_be_made_to_allocate_from_an_allocator() -> None:
    allocator = CpuAllocator(bytes_limit=100)
    with allocating_from(allocator):
        array = allocate([20], float32)
        assert allocator.get_stats().bytes_in_use == array.nbytes == 80
        with pytest.raises(ResourceExhaustedError, match="limit of 100"):
            allocate([20], float32)
        with allocation_limit(10), pytest.raises(ResourceExhaustedError, match="limit of 10"):
            allocate([3], float32)
    allocate([20], float32)
    assert allocator.get_stats().num_allocs == 1


def test_kinds_of_memory_have_the_numbers_of_tensorflow() -> None:
    assert {name: kind.value for name, kind in AllocatorMemoryType.__members__.items()} == {
        "UNKNOWN": 0,
        "DEVICE": 1,
        "HOST_PAGEABLE": 2,
        "HOST_PINNED": 3,
    }


def test_without_arrays_all_counts_are_0() -> None:
    assert AllocatorStats() == AllocatorStats(0, 0, 0, 0, None)
    assert CpuAllocator().get_stats() == AllocatorStats()


class TestAllocatorAttributes:
    @pytest.mark.parametrize("value", range(8))
    def test_each_wish_is_a_bit(self, value: int) -> None:
        """As in TensorFlow's AllocatorAttributes: on_host, nic_compatible, gpu_compatible."""
        wishes = [bool(value >> bit & 1) for bit in range(3)]
        attrs = AllocatorAttributes(*wishes)
        assert attrs.value == value
        assert attrs.merge(AllocatorAttributes()) == AllocatorAttributes().merge(attrs) == attrs
        for other in range(8):
            others = AllocatorAttributes(*[bool(other >> bit & 1) for bit in range(3)])
            assert attrs.merge(others).value == value | other
            assert attrs.is_equal_or_less_restrictive_than(others) is (value | other == other)

    def test_merging_asks_for_both(self) -> None:
        merged = AllocatorAttributes(on_host=True).merge(AllocatorAttributes(gpu_compatible=True))
        assert merged == AllocatorAttributes(on_host=True, gpu_compatible=True)
        assert merged.value == 5

    def test_one_scope_stays(self) -> None:
        scoped = AllocatorAttributes(scope_id=3)
        for one, other in [(scoped, AllocatorAttributes()), (AllocatorAttributes(), scoped)]:
            assert one.merge(other) == scoped
        assert scoped.merge(scoped) == scoped
        with pytest.raises(InternalError, match=r"this.scope_id=3 and other.scope_id=4"):
            scoped.merge(AllocatorAttributes(scope_id=4))

    def test_restrictiveness(self) -> None:
        none, host = AllocatorAttributes(), AllocatorAttributes(on_host=True)
        both = AllocatorAttributes(on_host=True, nic_compatible=True)
        assert none.is_equal_or_less_restrictive_than(host)
        assert host.is_equal_or_less_restrictive_than(host)
        assert host.is_equal_or_less_restrictive_than(both)
        assert not both.is_equal_or_less_restrictive_than(host)
        assert not host.is_equal_or_less_restrictive_than(AllocatorAttributes(gpu_compatible=True))

    def test_as_text(self) -> None:
        assert AllocatorAttributes(on_host=True, scope_id=2).debug_string() == (
            "AllocatorAttributes(on_host=1 nic_compatible=0 gpu_compatible=0 value=1 scope_id=2)"
        )


def test_data_types_of_objects_are_counted_by_their_pointers() -> None:
    allocator = CpuAllocator()
    array = allocator.allocate([3], DataType.DT_RESOURCE)
    assert allocator.get_stats().bytes_in_use == array.nbytes
