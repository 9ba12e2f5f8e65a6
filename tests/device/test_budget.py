"""A budget: bytes at once, time, work; what it counts, and what it asks of the budget around it."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opkernel.device import allocation
from opkernel.device import budget as budgets
from opkernel.device.allocation import allocation_policy, current_allocation_limit
from opkernel.device.budget import Budget, check_time, current_budget, owner_of, spending
from opkernel.errors import DeadlineExceededError, ResourceExhaustedError
from opkernel.kernel import (
    allocate,
    allocation_limit,
    check_allocation,
    counted,
    shard,
    under_budget,
)
from opkernel.types import decoded_charge, float32, int8


def test_budgets_within_budgets() -> None:
    outer = Budget(1000, deadline=5.0)
    inner = Budget(2000, deadline=9.0, outer=outer)
    assert inner.memory_limit_bytes == 1000
    assert inner.deadline == 5.0
    array = np.zeros(800, np.uint8)
    inner.hold(array)
    with pytest.raises(ResourceExhaustedError):
        inner.check_memory(300, "more")
    outer.check_memory(300, "what the inner one holds is its own")
    del array
    inner.check_memory(1000, "all")


def test_parts_of_a_kernels_work_are_not_begun_late() -> None:
    done: list[int] = []
    with under_budget(Budget(deadline=0.0)), pytest.raises(DeadlineExceededError):
        shard(done.append, range(100))
    assert not done


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which the test sets."""
    time = [10.0]
    monkeypatch.setattr(budgets, "time", SimpleNamespace(monotonic=lambda: time[0]))
    return time


class TestMemory:
    def test_a_budget_has_its_limit_and_not_a_byte_more(self) -> None:
        budget = Budget(100)
        budget.check_memory(100, "all")
        with pytest.raises(ResourceExhaustedError) as raised:
            budget.check_memory(101, "a thing")
        assert raised.value.message == (
            "OOM when allocating a thing: 101 bytes are more than the limit of 100"
        )

    def test_an_array_counts_until_it_is_collected(self) -> None:
        budget, array = Budget(100), np.zeros(60, np.int8)
        budget.hold(array)
        assert budget.counts(array)
        with pytest.raises(ResourceExhaustedError, match="41 bytes and the 60 in use are more"):
            budget.check_memory(41, "more")
        budget.check_memory(40, "the rest")
        del array
        budget.check_memory(100, "all")

    def test_an_array_counts_once_with_all_that_look_into_it(self) -> None:
        budget, array = Budget(100), np.zeros((6, 10), np.int8)
        views = [array, array[1:], array[2:].T, array.reshape(-1)[:1]]
        for view in views:
            budget.hold(view)
        budget.check_memory(40, "the rest")
        view = views[-1]
        del array, views[:]
        with pytest.raises(ResourceExhaustedError):
            budget.check_memory(41, "more")
        del view
        budget.check_memory(100, "all")

    def test_objects_of_an_array_count_with_it(self) -> None:
        budget, array = Budget(100), np.zeros(2, object)
        budget.hold(array, 50)
        with pytest.raises(ResourceExhaustedError, match="the 66 in use"):
            budget.check_memory(35, "more")
        del array
        budget.check_memory(100, "all")

    def test_what_is_too_much_is_not_held(self) -> None:
        budget, array = Budget(59), np.zeros(60, np.int8)
        with pytest.raises(ResourceExhaustedError, match=r"what holds int8\[60\]: 60 bytes"):
            budget.hold(array)
        assert not budget.counts(array)
        budget.check_memory(59, "all")

    @pytest.mark.parametrize("value", [3, b"text", np.float32(1), None, [np.zeros(999)]])
    def test_other_values_than_arrays_count_nothing(self, value: Any) -> None:
        budget = Budget(0)
        budget.hold(value)
        assert owner_of(value) is None

    def test_reserved_memory_counts_until_it_is_given_back(self) -> None:
        budget = Budget(100)
        budget.reserve(60, "a part")
        with pytest.raises(ResourceExhaustedError, match="the 60 in use"):
            budget.check_memory(41, "more")
        budget.give_back(60)
        budget.check_memory(100, "all")

    def test_what_was_reserved_before_is_a_part_of_the_whole(self) -> None:
        budget = Budget(100)
        budget.reserve(60, "a part")
        budget.reserve(100, "the whole", instead_of=60)
        budget.give_back(100)
        budget.check_memory(100, "all")

    def test_what_is_refused_is_not_reserved(self) -> None:
        budget = Budget(100)
        with pytest.raises(ResourceExhaustedError):
            budget.reserve(101, "too much")
        budget.check_memory(100, "all")

    def test_without_a_limit_anything_is_held_and_counted(self) -> None:
        budget, array = Budget(), np.zeros(1000)
        assert budget.memory_limit_bytes is None
        budget.hold(array)
        budget.reserve(1 << 60, "much")
        assert budget.counts(array)


class TestOuterBudgets:
    @pytest.mark.parametrize(
        ("inner", "outer", "limit"),
        [(10, 20, 10), (20, 10, 10), (None, 10, 10), (10, None, 10), (None, None, None), (0, 5, 0)],
    )
    def test_the_smaller_limit_counts(
        self, inner: int | None, outer: int | None, limit: int | None
    ) -> None:
        assert Budget(inner, outer=Budget(outer)).memory_limit_bytes == limit

    @pytest.mark.parametrize(
        ("inner", "outer", "deadline"),
        [(1.0, 2.0, 1.0), (2.0, 1.0, 1.0), (None, 1.0, 1.0), (1.0, None, 1.0), (None, None, None)],
    )
    def test_the_earlier_deadline_counts(
        self, inner: float | None, outer: float | None, deadline: float | None
    ) -> None:
        assert Budget(deadline=inner, outer=Budget(deadline=outer)).deadline == deadline

    def test_an_inner_budget_has_what_the_outer_one_has_left(self) -> None:
        outer = Budget(100)
        array = np.zeros(60, np.int8)
        outer.hold(array)
        inner = Budget(90, outer=outer)
        assert inner.counts(array)
        inner.hold(array)  # which counts already
        inner.check_memory(40, "the rest")
        with pytest.raises(
            ResourceExhaustedError, match="the 60 in use are more than the limit of 100"
        ):
            inner.check_memory(41, "more")
        with pytest.raises(ResourceExhaustedError, match="91 bytes are more than the limit of 90"):
            inner.check_memory(91, "more")
        assert not inner.counts(np.zeros(1))

    def test_what_both_hold_counts_for_the_outer_limit(self) -> None:
        outer = Budget(100)
        inner = Budget(None, outer=outer)
        arrays = np.zeros(50, np.int8), np.zeros(30, np.int8)
        outer.hold(arrays[0])
        inner.hold(arrays[1])
        inner.check_memory(20, "the rest")
        with pytest.raises(ResourceExhaustedError, match="the 80 in use"):
            inner.check_memory(21, "more")

    def test_a_step_leaves_what_lasts_to_the_budget_around_it(self) -> None:
        outer = Budget(100)
        assert Budget(outer=outer, is_of_step=True).lasting is outer
        for budget in (Budget(outer=outer), Budget(is_of_step=True), outer):
            assert budget.lasting is budget


class TestLimitOfEach:
    """A limit for each tensor: nothing is counted."""

    def test_arrays_do_not_add_up(self) -> None:
        budget = Budget(100, of_each=True)
        array = np.zeros(100, np.int8)
        for _ in range(3):
            budget.hold(array)
            budget.hold(array.copy())
            budget.reserve(100, "a part")
        budget.give_back(100)
        assert not budget.counts(array)
        budget.check_memory(100, "one more")
        with pytest.raises(
            ResourceExhaustedError, match="101 bytes are more than the limit of 100"
        ):
            budget.check_memory(101, "a large one")

    def test_the_budget_around_it_counts_them(self) -> None:
        outer = Budget(250)
        inner = Budget(100, outer=outer, of_each=True)
        array = np.zeros(100, np.int8)
        inner.hold(array)
        assert outer.counts(array)
        inner.reserve(80, "a part")
        with pytest.raises(ResourceExhaustedError, match="the 180 in use"):
            inner.check_memory(71, "more")
        inner.give_back(80)
        inner.check_memory(100, "another")

    def test_what_a_file_holds_as_it_is_may_be_larger(self) -> None:
        Budget(100, of_each=True).check_memory(1000, "stored", is_stored=True)
        with pytest.raises(ResourceExhaustedError):
            Budget(100).check_memory(1000, "stored", is_stored=True)
        inner = Budget(10, outer=Budget(100), of_each=True)
        with pytest.raises(ResourceExhaustedError):
            inner.check_memory(1000, "stored", is_stored=True)

    def test_the_limit_of_a_block(self) -> None:
        with allocation_limit(24):
            kept = [allocate([6], float32) for _ in range(3)]
            with pytest.raises(ResourceExhaustedError):
                check_allocation([7], float32)
        assert len(kept) == 3
        check_allocation([7], float32)


class TestTime:
    def test_time_is_up_after_the_deadline(self, now: list[float]) -> None:
        budget = Budget(deadline=10.0)
        budget.check_time("working")
        assert budget.seconds_left == 0
        now[0] = 8.5
        assert budget.seconds_left == 1.5
        now[0] = math.nextafter(10, 11)
        assert budget.seconds_left == 0
        with pytest.raises(DeadlineExceededError, match=r"^Timed out while working$"):
            budget.check_time("working")
        with pytest.raises(DeadlineExceededError, match=r"^Timed out while optimizing 'f'$"):
            budget.check_time("optimizing", "f")

    def test_without_a_deadline_there_is_time(self) -> None:
        assert Budget().seconds_left is None
        Budget(10).check_time("working")
        check_time("working without a budget")

    def test_a_thread_looks_at_its_budget(self) -> None:
        with spending(Budget(deadline=0.0)) as budget:
            assert current_budget() is budget
            with pytest.raises(DeadlineExceededError, match="while folding 'f'"):
                check_time("folding", "f")
        assert current_budget() is None


class TestWork:
    def test_work_is_spent_to_the_end(self) -> None:
        budget = Budget(work=100)
        assert budget.counts_work
        budget.spend(60)
        budget.spend(40)
        with pytest.raises(
            ResourceExhaustedError, match="more than the budget for work in advance"
        ):
            budget.spend(1)

    def test_the_budget_around_it_pays_too(self) -> None:
        outer = Budget(work=100)
        inner = Budget(work=80, outer=outer)
        between = Budget(outer=outer)
        assert between.counts_work
        inner.spend(80)
        between.spend(20)
        for budget in (between, Budget(work=50, outer=outer)):
            with pytest.raises(ResourceExhaustedError):
                budget.spend(1)

    def test_in_most_budgets_work_does_not_count(self) -> None:
        budget = Budget(100, outer=Budget(100))
        assert not budget.counts_work
        budget.spend(1 << 60)


def test_an_array_that_a_kernel_makes_beside_others_may_be_counted() -> None:
    array = np.zeros(60, np.int8)
    assert counted(array) is array
    with under_budget(Budget()) as budget:
        counted(array)
        assert not budget.counts(array)
    with under_budget(Budget(100)) as budget:
        assert counted(array) is array
        assert budget.counts(array)


def charge(num_bytes: int, *, is_stored: bool = False) -> None:
    """What the decoding of a tensor does before it makes one."""
    charge_decoded = decoded_charge.get()
    assert charge_decoded is not None
    charge_decoded(num_bytes, "a tensor", is_stored)


def test_what_is_decoded_is_charged() -> None:
    with spending(Budget(100)):
        charge(100)
        with pytest.raises(ResourceExhaustedError, match="OOM when allocating a tensor: 101 bytes"):
            charge(101)
    with allocation_limit(100):
        charge(101, is_stored=True)
        with pytest.raises(ResourceExhaustedError):
            charge(101)
    with spending(Budget(deadline=0.0)), pytest.raises(DeadlineExceededError, match="decoding a t"):
        charge(1)


def test_one_tensor_may_take_half_of_the_machine(monkeypatch: Any) -> None:
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr("os.sysconf", sizes.__getitem__)
    assert allocation._default_limit() == 2_048_000
    for error in (ValueError, OSError, AttributeError):

        def fail(name: str, error: type[Exception] = error) -> int:
            raise error(name)

        monkeypatch.setattr("os.sysconf", fail)
        assert allocation._default_limit() == 8 << 30


@pytest.mark.parametrize("limit", [None, 50])
def test_a_budget_without_a_limit_leaves_that_of_the_machine(limit: int | None) -> None:
    machine = current_allocation_limit()
    assert machine == allocation_policy()[0]
    with under_budget(Budget(limit)):
        assert current_allocation_limit() == (machine if limit is None else limit)
        assert allocation_policy()[0] == (machine if limit is None else 0)
        assert check_allocation([50], int8) == (50,)
