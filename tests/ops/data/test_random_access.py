"""Elements by their numbers, and whole datasets in random order. Expected elements and orders are TensorFlow's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors, raw_ops
from opkernel.data import Dataset
from opkernel.data.structured_function import StructuredFunction, call_op
from opkernel.types import variant_from_proto

INT64 = opkernel.TensorSpec([], opkernel.int64)
NUMBERS: dict[str, Any] = {"output_types": [opkernel.int64], "output_shapes": [[]]}


def ints(dataset: Any, most: int = 40) -> list[Any]:
    return [np.asarray(one).tolist() for one in dataset.take(most)]


@pytest.mark.parametrize(
    ("dataset", "index", "expected"),
    [
        (Dataset.range(3, 20, 4), 2, 11),
        (Dataset.from_tensor_slices([7, 8, 9]), 1, 8),
        (Dataset.range(5).map(lambda x: x * 2), 2, 4),
        (Dataset.range(5).map(lambda x: x * 2, num_parallel_calls=2), 2, 4),
        (Dataset.range(5).batch(2), 2, [4]),
        (Dataset.range(4).batch(2, drop_remainder=True).unbatch(), 3, 3),
        (Dataset.range(6).skip(2).take(3), 1, 3),
        (Dataset.range(7).shard(3, 1), 1, 4),
        (Dataset.range(3).concatenate(Dataset.range(5, 7)), 4, 6),
        (Dataset.range(3).repeat(2), 4, 1),
        (Dataset.range(5).prefetch(2).cache(), 3, 3),
        (Dataset.zip((Dataset.range(3), Dataset.range(4, 9))), 2, [2, 6]),
    ],
)
def test_an_element_of_a_number(dataset: Any, index: int, expected: Any) -> None:
    assert np.asarray(dataset.at(index)).tolist() == expected
    size = int(dataset.cardinality())
    for outside in (-1, size, size + 90):
        with pytest.raises(errors.OutOfRangeError):
            dataset.at(outside)


@pytest.mark.parametrize(
    ("reshuffles", "expected"), [(True, [2, 4, 0, 3, 1]), (False, [0, 1, 4, 3, 2])]
)
def test_a_shuffle_gives_its_elements_by_numbers(reshuffles: bool, expected: list[int]) -> None:
    """The size of the buffer does not matter, and passes have other orders."""
    shuffled = Dataset.range(5).shuffle(3, seed=1, reshuffle_each_iteration=reshuffles)
    assert [int(shuffled.at(index)) for index in range(5)] == expected


@pytest.mark.parametrize(
    ("dataset", "error"),
    [
        (Dataset.range(4).filter(lambda x: x > 1), errors.UnimplementedError),
        (Dataset.range(4).filter(lambda x: x > 1).prefetch(1), errors.FailedPreconditionError),
        (Dataset.range(4).batch(2, num_parallel_calls=2), errors.UnimplementedError),
        (Dataset.range(4).padded_batch(2, []), errors.UnimplementedError),
        (Dataset.range(4).flat_map(lambda x: Dataset.range(x)), errors.UnimplementedError),
        (Dataset.range(3).repeat(), errors.FailedPreconditionError),
        (Dataset.range(4).batch(2).unbatch(), errors.FailedPreconditionError),
    ],
)
def test_some_datasets_have_no_random_access(dataset: Dataset, error: type[errors.OpError]) -> None:
    with pytest.raises(error):
        dataset.at(0)


@pytest.mark.parametrize(
    ("dataset", "passes"),
    [
        (Dataset.range(6), [[4, 0, 2, 1, 3, 5], [1, 0, 3, 5, 4, 2]]),
        (Dataset.range(5).map(lambda x: x * 2), [[8, 0, 4, 2, 6], [2, 0, 6, 4, 8]]),
        (Dataset.range(3).repeat(2), [[1, 0, 2, 1, 0, 2], [1, 0, 0, 2, 1, 2]]),
        (Dataset.range(3).concatenate(Dataset.range(5, 7)), [[6, 0, 2, 1, 5], [1, 0, 5, 2, 6]]),
        (Dataset.range(6).skip(2), [[5, 2, 4, 3], [3, 2, 5, 4]]),
        (Dataset.range(5).batch(2, drop_remainder=True), [[[2, 3], [0, 1]], [[2, 3], [0, 1]]]),
        (Dataset.from_tensors(3), [[3], [3]]),
    ],
)
def test_a_whole_dataset_in_random_order(dataset: Dataset, passes: list[Any]) -> None:
    shuffled = dataset.global_shuffle(seed=7)
    assert [ints(shuffled), ints(shuffled)] == passes


def test_a_long_dataset_in_random_order() -> None:
    shuffled = Dataset.range(1000).global_shuffle(seed=5)
    found = ints(shuffled, 1000)
    assert found[:10] == [516, 290, 460, 918, 37, 430, 32, 44, 602, 13]
    assert sorted(found) == [*range(1000)]


def test_the_same_order_in_each_pass() -> None:
    shuffled = Dataset.range(11).global_shuffle(seed=5, reshuffle_each_iteration=False)
    assert [ints(shuffled), ints(shuffled)] == [[8, 6, 10, 3, 9, 0, 4, 1, 5, 7, 2]] * 2


def test_epochs_have_orders_of_their_own() -> None:
    shuffled = Dataset.range(4).global_shuffle(seed=5).repeat(3)
    assert ints(shuffled) == [2, 0, 3, 1, 2, 0, 3, 1, 0, 1, 2, 3]


@pytest.mark.parametrize("count", [0, 3, 511, 512, 513, 999])
def test_a_pass_in_random_order_is_saved(count: int) -> None:
    elements = iter(Dataset.range(1000).global_shuffle(seed=5))
    for _ in range(count):
        next(elements)
    state = variant_from_proto(elements.save().to_proto())
    rest = [int(one) for one in elements]
    elements.restore(state)
    assert [int(one) for one in elements] == rest


def test_an_element_that_fails_is_one_of_the_order() -> None:
    def inverse(x: Any) -> Any:
        number = opkernel.cast(x - 1, opkernel.float32)
        return raw_ops.CheckNumerics(tensor=1.0 / number, message="no number")

    elements = iter(Dataset.range(3).map(inverse).global_shuffle(seed=7))
    with pytest.raises(errors.InvalidArgumentError):
        next(elements)
    assert [float(one) for one in elements] == [-1, 1]


@pytest.mark.parametrize(
    ("dataset", "error"),
    [
        (Dataset.range(5).batch(2), errors.FailedPreconditionError),
        (Dataset.range(5).shuffle(2), errors.FailedPreconditionError),
        (Dataset.range(5).filter(lambda x: x > 1), errors.FailedPreconditionError),
        (Dataset.range(5).filter(lambda x: x > 1).prefetch(1), errors.FailedPreconditionError),
        (Dataset.range(5).repeat(), errors.FailedPreconditionError),
        (Dataset.range(6).skip(-1), errors.FailedPreconditionError),
        (Dataset.range(6).skip(9), errors.InvalidArgumentError),
        (Dataset.range(0), errors.InvalidArgumentError),
    ],
)
def test_what_cannot_be_shuffled_as_a_whole(dataset: Dataset, error: type[errors.OpError]) -> None:
    with pytest.raises(error):
        dataset.global_shuffle()


Place = Callable[[Any], Any]
ROWS = Dataset.from_tensor_slices(np.arange(12, dtype=np.int64).reshape(4, 3))


def index_flat_map(place: Place, size: int) -> Dataset:
    functions = {
        "map_func": StructuredFunction(lambda x: x * 10, (ROWS.element_spec,), None, Dataset),
        "index_map_func": StructuredFunction(place, (INT64,), None, Dataset),
    }
    captured: dict[str, list[Any]] = {f"{name}_other_args": [] for name in functions}
    size_of = np.int64(size)
    made = call_op(
        *("IndexFlatMapDataset", functions),
        spec=INT64,
        input_dataset=ROWS.variant_tensor,
        output_cardinality=size_of,
        **captured,
    )
    return Dataset(made, INT64)


@pytest.mark.parametrize(
    ("place", "size", "elements", "shuffled"),
    [
        (
            *(lambda i: (i // 3, i % 3), 12, [*range(12)]),
            [8, 10, 2, 3, 1, 6, 9, 7, 4, 11, 0, 5],
        ),
        (lambda i: (i // 2, i % 2 + 1), 8, [1, 2, 4, 5, 7, 8, 10, 11], [7, 1, 4, 5, 2, 10, 8, 11]),
        (lambda i: (i // 3, i % 3), 5, [*range(12)], [4, 0, 2, 3, 1]),
        (lambda i: (i // 3, i % 3), 20, [*range(12)], [8]),
    ],
)
def test_rows_have_numbers(
    place: Place, size: int, elements: list[int], shuffled: list[int]
) -> None:
    flat = index_flat_map(place, size)
    assert flat.cardinality() == size
    assert ints(flat) == [10 * one for one in elements]
    assert ints(flat.global_shuffle(seed=3)) == [10 * one for one in shuffled]


@pytest.mark.parametrize("place", [lambda i: (i,), lambda i: (i, 1.0), lambda i: (i, i + 3)])
def test_a_place_is_a_number_and_a_row(place: Place) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        ints(index_flat_map(place, 4))


def weighted(datasets: list[Dataset], weights: list[float]) -> Dataset:
    variants = [one.variant_tensor for one in datasets]
    numbers = [np.float64(weight) for weight in weights]
    made = raw_ops.WeightedFlatMapDataset(input_datasets=variants, weights=numbers, **NUMBERS)
    return Dataset(made, INT64)


FOUR, TWENTY, SEVEN = Dataset.range(4), Dataset.range(100, 120), Dataset.range(1000, 1007)


@pytest.mark.parametrize(
    ("datasets", "weights", "expected"),
    [
        ([FOUR, TWENTY], [0.5, 0.5], [0, 1, 2, 3, 100, 101, 102, 103]),
        ([FOUR, TWENTY], [0.25, 0.75], [0, 100, 101, 102, 103]),
        ([FOUR, TWENTY, SEVEN], [0.2, 0.3, 0.5], [0, 100, 101, 1000, 1001, 1002, 1003]),
        ([FOUR, FOUR], [0.1, 0.9], [0, 1, 2, 3]),
        ([FOUR, Dataset.range(0)], [0.5, 0.5], []),
    ],
)
def test_weights_say_how_many_elements(
    datasets: list[Dataset], weights: list[float], expected: list[int]
) -> None:
    found = weighted(datasets, weights)
    assert found.cardinality() == len(expected)
    assert ints(found) == expected
    with pytest.raises(errors.FailedPreconditionError):
        found.global_shuffle()


@pytest.mark.parametrize(
    ("datasets", "weights"),
    [
        ([FOUR, TWENTY], [1.0, 0.0]),
        ([FOUR, TWENTY], [-1.0, 2.0]),
        ([FOUR, TWENTY, SEVEN], [0.5, 0.5]),
        ([FOUR, TWENTY.filter(lambda _: True)], [0.5, 0.5]),
        ([FOUR, TWENTY.repeat()], [0.5, 0.5]),
    ],
)
def test_wrong_weights(datasets: list[Dataset], weights: list[float]) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        weighted(datasets, weights)
