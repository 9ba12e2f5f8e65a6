"""Elements of several datasets in turn, and counters. Literals are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors
from opkernel.data import Dataset

SOURCES = [Dataset.range(10), Dataset.range(100, 110), Dataset.range(200, 210)]
WEIGHTS = Dataset.from_tensor_slices([[0.9, 0.05, 0.05], [0.05, 0.05, 0.9]]).repeat()
PAIRS = Dataset.from_tensors(np.float32(0.25)).repeat().map(lambda p: [(p, 1 - p)])


def values(dataset: Any) -> Any:
    return [np.asarray(one).tolist() for one in dataset]


# fmt: off
ALIKE = [
    *(0, 1, 2, 200, 201, 3, 202, 100, 4, 5, 101, 203, 102, 103, 104, 204, 205, 105, 206, 207, 6, 7, 8, 208, 9, 209),
    *(106, 107, 108, 109),
]
STOPPED = [100, 0, 200, 1, 2, 101, 102, 201, 3, 202, 203, 204, 4, 5, 6, 7, 103, 8, 9]
WITHOUT_ONE = [200, 0, 201, 1, 2, 202, 203, 204, 3, 205, 206, 207, 4, 5, 6, 7, 208, 8, 9, 209]
OF_DATASET = [
    *(0, 200, 1, 201, 2, 202, 3, 203, 4, 204, 100, 101, 5, 205, 6, 206, 7, 8, 9, 207, 208, 209, 102, 103, 104, 105),
    *(106, 107, 108, 109),
]
OF_PAIRS = [100, 101, 102, 0, 103, 104, 105, 106, 107, 1, 108, 2, 109, 3, 4, 5, 6, 7, 8, 9]
PASSES = [
    [0, 200, 201, 100, 101, 102, 202, 203, 103, 1, 2, 204, 104, 205, 105, 206, 3, 207, 4, 106, 208, 5, 6, 7, 209, 107],
    [200, 201, 100, 101, 202, 203, 204, 0, 1, 2, 102, 3, 103, 205, 4, 5, 104, 206, 6, 105, 106, 207, 7, 8, 9, 107],
]
# fmt: on


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"datasets": SOURCES, "seed": 5}, ALIKE),
        (
            {
                "datasets": SOURCES,
                "weights": [0.5, 0.25, 0.25],
                "seed": 7,
                "stop_on_empty_dataset": True,
            },
            STOPPED,
        ),
        ({"datasets": SOURCES, "weights": [0.5, 0.0, 0.5], "seed": 7}, WITHOUT_ONE),
        ({"datasets": SOURCES, "weights": np.array([0.5, 0.0, 0.5]), "seed": 7}, WITHOUT_ONE),
        ({"datasets": SOURCES, "weights": [0.0, 0.0, 0.0], "seed": 7}, []),
        ({"datasets": SOURCES, "weights": WEIGHTS, "seed": 3}, OF_DATASET),
        ({"datasets": SOURCES[:2], "weights": PAIRS, "seed": 3}, OF_PAIRS),
        ({"datasets": SOURCES[:1], "seed": 3}, [*range(10)]),
    ],
)
def test_samples(arguments: Any, expected: Any) -> None:
    dataset = Dataset.sample_from_datasets(**arguments)
    assert values(dataset) == expected
    assert values(dataset) == expected


def test_each_pass_draws_anew_where_asked() -> None:
    dataset = Dataset.sample_from_datasets(SOURCES, seed=5, rerandomize_each_iteration=True)
    assert [values(dataset)[:26] for _ in range(2)] == PASSES


def test_samples_in_a_graph() -> None:
    with opkernel.Graph().as_default() as graph:
        weights = opkernel.placeholder(opkernel.float32, [2])
        sources = [Dataset.range(3), Dataset.range(10, 13)]
        dataset = Dataset.sample_from_datasets(sources, weights, 1, stop_on_empty_dataset=True)
        iterator = opkernel.data.make_initializable_iterator(dataset.batch(9))
        batch = iterator.get_next()
    with opkernel.Session(graph) as session:
        session.run(iterator.initializer, {weights: [0.0, 1.0]})
        assert session.run(batch).tolist() == [10, 11, 12]


def test_the_spec_covers_all_datasets() -> None:
    sources = [Dataset.from_tensors([1]), Dataset.from_tensors([1, 2])]
    expected = opkernel.TensorSpec([None], opkernel.int32)
    assert Dataset.sample_from_datasets(sources).element_spec == expected
    assert Dataset.choose_from_datasets(sources, Dataset.range(2)).element_spec == expected


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([],), ValueError),
        ((SOURCES, [0.5]), ValueError),
        ((SOURCES, 0.5), ValueError),
        ((SOURCES, [1, 2, 3]), TypeError),
        ((SOURCES, ["a", "b", "c"]), TypeError),
        (([SOURCES[0], Dataset.from_tensors(1.0)],), TypeError),
        (([SOURCES[0], Dataset.from_tensors((1, 2))],), TypeError),
        (([SOURCES[0], 5],), TypeError),
        ((SOURCES, None, "x"), TypeError),
    ],
)
def test_wrong_samples(arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Dataset.sample_from_datasets(*arguments)


def test_counters() -> None:
    assert values(Dataset.counter().take(3)) == [0, 1, 2]
    assert values(Dataset.counter(2, 5).take(3)) == [2, 7, 12]
    halves = Dataset.counter(1.5, -0.5, opkernel.float32)
    assert values(halves.take(3)) == [1.5, 1.0, 0.5]
    assert halves.element_spec == opkernel.TensorSpec([], opkernel.float32)
    assert Dataset.counter().cardinality() == -1
    assert values(Dataset.counter([1, 2]).take(2)) == [[1, 2], [2, 3]]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((1.5,), TypeError),
        (("a",), TypeError),
        ((0, 1.5, opkernel.int32), TypeError),
        ((2**70,), errors.InvalidArgumentError),
    ],
)
def test_wrong_counters(arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Dataset.counter(*arguments)
