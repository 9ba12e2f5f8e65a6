"""Memory that is being made counts beside what is held, until it is given back."""

from contextlib import suppress

import numpy as np
import pytest

from opkernel.device.budget import Budget, spending
from opkernel.device.made_bytes import GrowingArray, check_bytes, making_bytes
from opkernel.device.string_tensors import gather_bytes, joining, map_strings, string_tensor
from opkernel.errors import ResourceExhaustedError
from opkernel.types import DataType

LIMIT = 1 << 20


def left(budget: Budget) -> int:
    """What a budget has left, to 4 KiB."""
    size = 0
    for step in (1 << bit for bit in range(24, 11, -1)):
        try:
            budget.check_memory(size + step, "a try")
            size += step
        except ResourceExhaustedError:
            pass
    return size


def test_what_is_being_made_counts_until_the_end_of_the_block() -> None:
    with spending(Budget(LIMIT)) as budget:
        with making_bytes("a thing", LIMIT // 2) as made:
            assert left(budget) <= LIMIT // 2
            made.add(LIMIT // 4)
            with pytest.raises(ResourceExhaustedError, match="a thing"):
                made.add(LIMIT // 2)
        assert left(budget) >= LIMIT - 8192


def test_a_refusal_leaves_nothing_counted() -> None:
    with spending(Budget(LIMIT)) as budget:
        with pytest.raises(ResourceExhaustedError), making_bytes("a thing", 2 * LIMIT):
            pass
        assert left(budget) >= LIMIT - 8192
        check_bytes(LIMIT // 2, "a thing")
        with pytest.raises(ResourceExhaustedError):
            check_bytes(2 * LIMIT, "a thing")


def test_an_outer_budget_counts_what_an_inner_one_makes() -> None:
    with (
        spending(Budget(LIMIT)) as outer,
        spending(Budget(4 * LIMIT, outer=outer)),
        making_bytes("a thing", LIMIT // 2),
        pytest.raises(ResourceExhaustedError),
    ):
        check_bytes(3 * LIMIT // 4, "another")


def test_strings_are_not_made_far_beyond_the_limit() -> None:
    made = 0

    def texts() -> object:
        nonlocal made
        for _ in range(1000):
            made += 10_000
            yield bytes(10_000)

    with spending(Budget(LIMIT)), pytest.raises(ResourceExhaustedError):
        string_tensor((1000,), texts())  # type: ignore[arg-type]  # a generator of bytes
    assert made < 1.2 * LIMIT


def test_tensors_of_strings_hold_their_content() -> None:
    with spending(Budget(LIMIT)) as budget:
        tensor = string_tensor((2, 2), [bytes(50_000 + i) for i in range(4)])
        assert [[len(text) for text in row] for row in tensor] == [
            [50_000, 50_001],
            [50_002, 50_003],
        ]
        assert left(budget) < LIMIT - 200_000
        del tensor
        assert left(budget) >= LIMIT - 8192


def test_strings_without_a_budget() -> None:
    assert string_tensor((), [b"a"]).shape == ()
    assert map_strings(bytes.upper, np.array([[b"a", b"b"]], object)).tolist() == [[b"A", b"B"]]
    assert joining(b"-")([b"a", b"b"]) == b"a-b"
    assert gather_bytes(iter([b"a", b"b"]), "a text") == b"ab"


@pytest.mark.parametrize(
    "make",
    [
        lambda: joining(b"")([bytes(10_000)] * 1000),
        lambda: gather_bytes((bytes(10_000) for _ in range(1000)), "a text"),
        lambda: map_strings(lambda text: text * 10_000, np.array([b"x"] * 1000, object)),
    ],
)
def test_a_long_string_is_refused(make) -> None:
    with spending(Budget(LIMIT)), pytest.raises(ResourceExhaustedError):
        make()


def test_an_array_grows_within_the_budget() -> None:
    with spending(Budget(LIMIT)), making_bytes("numbers") as made:
        array = GrowingArray(DataType.DT_INT64, made)
        for piece in ([1, 2], [], [3]):
            array.extend(np.array(piece, np.int64))
        assert array.finished().tolist() == [1, 2, 3]
        array = GrowingArray(DataType.DT_INT64, made)
        array.extend(np.zeros(LIMIT // 16, np.int64))
        with pytest.raises(ResourceExhaustedError):
            array.extend(np.zeros(LIMIT // 16, np.int64))


def test_few_bytes_ask_nobody() -> None:
    """The budget is asked after each 64 KiB that were made."""
    with spending(Budget(10)), making_bytes("a thing") as made:
        made.add(1 << 16)
        assert made.total == 1 << 16
        with pytest.raises(ResourceExhaustedError, match="a thing: 65537 bytes"):
            made.add(1)


def test_what_a_thread_without_a_limit_makes_is_counted_for_nobody() -> None:
    for budget in (None, Budget()):
        if budget is None:
            with making_bytes("a thing", 1 << 40) as made:
                check_bytes(1 << 40, "another")
        else:
            with spending(budget), making_bytes("a thing", 1 << 40) as made:
                check_bytes(1 << 40, "another")
        assert made.total == 1 << 40


def test_a_string_counts_with_its_object_and_its_place() -> None:
    texts = [b"", b"a", b"ab" * 50, b"b", b"ab"]  # those of a byte or none exist once
    with spending(Budget(LIMIT)) as budget:
        tensor = string_tensor((5,), texts)
        with pytest.raises(ResourceExhaustedError) as raised:
            budget.check_memory(LIMIT, "more")
        assert tensor.tolist() == texts
    assert f"the {100 + 41 + 2 + 41 + 3 * 8} in use" in raised.value.message


@pytest.mark.parametrize(("length", "fits"), [(1 << 17, True), ((1 << 17) + 1, False)])
def test_parts_are_joined_where_there_is_memory_for_the_whole(length: int, fits: bool) -> None:
    parts = [b"a" * (length // 2 - 1), b"b" * (length - length // 2 - 1)]
    with spending(Budget(1 << 17)):
        join = joining(b"--")
        if fits:
            assert join(parts) == parts[0] + b"--" + parts[1]
        else:
            with pytest.raises(ResourceExhaustedError, match=f"a string: {length} bytes"):
                join(parts)
        assert join([]) == joining(bytes(1 << 18))([]) == b""
        assert join([b"one"]) == b"one"


def test_an_array_grows_by_an_eighth_more_than_it_needs() -> None:
    with making_bytes("numbers") as made:
        array = GrowingArray(DataType.DT_INT64, made)
        array.extend(np.arange(80))
        assert made.total == 90 * 8
        array.extend(np.arange(10))
        assert made.total == 90 * 8
        array.extend(np.arange(1))
        assert made.total == (91 + 91 // 8) * 8
        found = array.finished()
    assert found.tolist() == [*range(80), *range(10), 0]
    assert found.dtype == np.int64


def test_nothing_more_or_less_is_counted_after_the_block() -> None:
    with spending(Budget(LIMIT)) as budget:
        for size in (0, 1 << 15, 1 << 17, LIMIT, 2 * LIMIT):
            with suppress(ResourceExhaustedError), making_bytes("a thing", size) as made:
                made.add(1 << 17)
                made.add(1)
            budget.check_memory(LIMIT, "all")
            with pytest.raises(ResourceExhaustedError, match=f"{LIMIT + 1} bytes are more"):
                budget.check_memory(LIMIT + 1, "too much")
