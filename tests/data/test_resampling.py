"""Elements of classes in other proportions. Literals are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors
from opkernel.data import Dataset

SOURCE = Dataset.range(60).map(lambda x: x * x % 7)
EVEN = "014224110114224101422411101422410141122411014122411014224101412211410142"
ONE_CLASS = "0422404224042240422404224042240422404224042"
ESTIMATED = "0142241014122410142241101422410142241101142241014212410142241101"


def parity(x: Any) -> Any:
    return opkernel.cast(x % 2, opkernel.int32)


def numbers(dataset: Any) -> str:
    """The elements, where each has its own class."""
    pairs = [(int(kind), int(number)) for kind, number in dataset]
    assert all(kind == number % 2 for kind, number in pairs)
    return "".join(str(number) for _, number in pairs)


@pytest.mark.parametrize(
    ("target", "initial", "expected"),
    [
        ([0.5, 0.5], [0.7, 0.3], EVEN),
        ([1.0, 0.0], [0.7, 0.3], ONE_CLASS),
        ([0.7, 0.3], [0.7, 0.3], "".join(str(n * n % 7) for n in range(60))),
        ([0.5, 0.5], None, ESTIMATED),
    ],
)
def test_proportions(target: Any, initial: Any, expected: str) -> None:
    dataset = SOURCE.rejection_resample(parity, target, initial, seed=3)
    assert dataset.element_spec == (
        opkernel.TensorSpec([], opkernel.int32),
        opkernel.TensorSpec([], opkernel.int64),
    )
    assert numbers(dataset) == expected
    assert numbers(dataset) == expected


def test_elements_of_several_tensors() -> None:
    pairs = Dataset.zip((SOURCE, SOURCE.map(lambda x: x + 1)))
    of_pairs = pairs.rejection_resample(lambda a, _: parity(a), [0.5, 0.5], [0.7, 0.3], seed=3)
    found = [(int(kind), (int(a), int(b))) for kind, (a, b) in of_pairs.take(4)]
    assert found == [(0, (0, 1)), (1, (1, 2)), (0, (4, 5)), (0, (2, 3))]
    named = pairs.map(lambda a, b: {"a": a, "b": b})
    of_named = named.rejection_resample(lambda x: parity(x["a"]), [0.5, 0.5], [0.7, 0.3], seed=3)
    assert [int(x["b"]) for _, x in of_named.take(4)] == [1, 2, 5, 3]


def test_shares_that_are_fed() -> None:
    with opkernel.Graph().as_default() as graph:
        target = opkernel.placeholder(opkernel.float32, [2])
        source = Dataset.range(60).map(lambda x: x * x % 7)
        dataset = source.rejection_resample(parity, target, [0.7, 0.3], seed=3)
        iterator = opkernel.data.make_initializable_iterator(dataset.batch(100))
        kinds, _ = iterator.get_next()
    with opkernel.Session(graph) as session:
        session.run(iterator.initializer, {target: np.array([1, 0], np.float32)})
        assert set(session.run(kinds).tolist()) == {0}


def test_wrong_shares() -> None:
    with pytest.raises(ValueError, match="vector"):
        SOURCE.rejection_resample(parity, 0.5)
    with pytest.raises(errors.InvalidArgumentError):
        SOURCE.rejection_resample(parity, [0.5, 0.5], [0.5, 0.3, 0.2])
    with pytest.raises(errors.OpError):
        SOURCE.rejection_resample(parity, "a")
    with pytest.raises(TypeError):
        SOURCE.rejection_resample(5, [0.5, 0.5])  # type: ignore[arg-type]  # what is refused
