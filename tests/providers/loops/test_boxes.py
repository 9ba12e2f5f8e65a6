"""Loops that select boxes give what NumPy gives: many boxes, equal scores, boxes that lie on one another."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.ops.libstdcxx_order import sort_order
from opkernel.providers.loops import loops_run
from opkernel.providers.loops.boxes import partition

pytest.importorskip("numba")

f32 = np.float32
FORMS: tuple[Any, ...] = ("numpy", "plain", "compiled")


def boxes(draw: np.random.Generator, *shape: int, size: float = 0.1) -> Any:
    centers, half = draw.random((*shape, 2)), draw.random((*shape, 2)) * size
    return np.concatenate([centers - half, centers + half], -1).astype(f32)


def results(op: str, **arguments: Any) -> list[list[Any]]:
    """What each form gives."""
    found = []
    for form in FORMS:
        with loops_run(form):
            result = getattr(raw_ops, op)(**arguments)
        found.append([*result] if isinstance(result, tuple) else [result])
    return found


def assert_equal(found: list[list[Any]]) -> None:
    for other in found[1:]:
        for one, another in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, another, strict=True)


@pytest.mark.parametrize("levels", [3, 10**6], ids=["equal", "different"])
@pytest.mark.parametrize("sigma", [0, 0.5, 3], ids=["hard", "narrow", "wide"])
def test_many_boxes(levels: int, sigma: float) -> None:
    draw = np.random.default_rng(1)
    scores = (draw.integers(-levels // 4, levels, 400) / levels).astype(f32)
    found = results(
        "NonMaxSuppressionV5",
        boxes=boxes(draw, 400),
        scores=scores,
        max_output_size=np.int32(300),
        iou_threshold=f32(0.3),
        score_threshold=f32(-0.2),
        soft_nms_sigma=f32(sigma),
    )
    assert_equal(found)
    assert len(found[0][0]) > 50


@pytest.mark.parametrize("sigma", [0, 0.5])
def test_boxes_without_numbers_and_empty_ones(sigma: float) -> None:
    draw = np.random.default_rng(2)
    some = boxes(draw, 200, size=0.3)
    some[draw.random(some.shape) < 0.1] = np.inf
    some[draw.random(some.shape) < 0.05] = np.nan
    some[::9, 2:] = some[::9, :2]
    assert_equal(
        results(
            "NonMaxSuppressionV5",
            boxes=some,
            scores=draw.standard_normal(200).astype(f32),
            max_output_size=np.int32(200),
            iou_threshold=f32(0),
            score_threshold=f32(-np.inf),
            soft_nms_sigma=f32(sigma),
        )
    )


@pytest.mark.parametrize("variants", [1, 7])
@pytest.mark.parametrize("levels", [4, 10**6], ids=["equal", "different"])
@pytest.mark.parametrize("threshold", [-2, 0.3])
def test_many_boxes_of_classes(variants: int, levels: int, threshold: float) -> None:
    draw = np.random.default_rng(3)
    found = results(
        "CombinedNonMaxSuppression",
        boxes=boxes(draw, 2, 120, variants),
        scores=(draw.integers(0, levels, (2, 120, 7)) / levels).astype(f32),
        max_output_size_per_class=np.int32(150),
        max_total_size=np.int32(200),
        iou_threshold=f32(0.2),
        score_threshold=f32(threshold),
    )
    assert_equal(found)
    assert found[0][3].tolist() == [200, 200]


def sorted_by_definition(scores: list[float]) -> list[int]:
    """std::sort of GCC's library, element by element, without its sorting by heap."""
    order = list(range(len(scores)))

    def divide(first: int, last: int) -> int:
        a, b, c = first + 1, first + (last - first) // 2, last - 1
        by_score = sorted([a, b, c], key=lambda place: scores[order[place]])
        values = [scores[order[place]] for place in (a, b, c)]
        if len(set(values)) == 3:
            median = by_score[1]
        elif values[0] > values[1]:
            median = b if values[1] > values[2] else c if values[0] > values[2] else a
        else:
            median = a if values[0] > values[2] else c if values[1] > values[2] else b
        order[first], order[median] = order[median], order[first]
        pivot, low, high = scores[order[first]], first + 1, last
        while True:
            while scores[order[low]] > pivot:
                low += 1
            high -= 1
            while pivot > scores[order[high]]:
                high -= 1
            if low >= high:
                return low
            order[low], order[high] = order[high], order[low]
            low += 1

    def part(first: int, last: int) -> None:
        while last - first > 16:
            cut = divide(first, last)
            part(cut, last)
            last = cut

    part(0, len(order))
    return sorted(order, key=lambda number: -scores[number])


@pytest.mark.parametrize("count", [16, 17, 500, 3000])
@pytest.mark.parametrize("levels", [1, 5, 300])
def test_the_order_of_equal_elements(count: int, levels: int) -> None:
    scores = np.random.default_rng(count).integers(0, levels, count).astype(f32)
    expected = sorted_by_definition(scores.tolist())
    for first in (count, count // 3):
        assert sort_order(scores, first).tolist() == expected[:first]
        for form in FORMS:
            with loops_run(form):
                assert sort_order(scores, first, partition).tolist() == expected[:first]


def hard_to_divide(count: int) -> Any:
    """Each median of three is one of the lowest (Musser, Introspective sorting and selection algorithms, 1997)."""
    half = count // 2
    values = [0] * count
    for i in range(1, half + 1):
        values[i - 1] = i if i % 2 else half + i - 1
        values[half + i - 1] = 2 * i
    return -np.floor(np.array(values) / 2).astype(f32)


def test_parts_that_are_sorted_by_a_heap() -> None:
    scores = hard_to_divide(4000)
    orders = []
    for form in FORMS:
        with loops_run(form):
            orders.append(sort_order(scores, None, partition).tolist())
    assert orders[0] == orders[1] == orders[2]
    assert (np.diff(scores[orders[0]]) <= 0).all()
    assert sorted(orders[0]) == list(range(4000))
