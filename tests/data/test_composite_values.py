"""Elements with ragged and sparse tensors, in Python, graphs and traced functions. Literals are TensorFlow's."""

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors
from opkernel.data import (
    Dataset,
    DatasetSpec,
    RaggedFeature,
    RaggedTensorSpec,
    RowSplits,
    SparseTensorSpec,
    VarLenFeature,
    make_initializable_iterator,
    parse_example_dataset,
)
from opkernel.endpoints.ragged import RaggedTensor
from opkernel.endpoints.sparse import SparseTensor
from opkernel.types import variant_from_proto

INT, INT32, STRING = opkernel.int64, opkernel.int32, opkernel.string
RAGGED = RaggedTensor(np.array([1, 2, 3]), np.array([0, 2, 3]))
SPARSE = SparseTensor(np.array([[0, 1]]), np.array([1.5], np.float32), np.array([2, 2]))
BOTH = Dataset.from_tensors({"r": RAGGED, "s": SPARSE})
OtherSparse = namedtuple("OtherSparse", ["indices", "values", "dense_shape"])  # noqa: PYI024 - as other libraries make it
OtherRagged = namedtuple("OtherRagged", ["values", "row_splits"])  # noqa: PYI024 - as other libraries make it


def listed(value: Any) -> Any:
    """Ragged tensors as nested lists, sparse ones as three lists."""
    if isinstance(value, dict):
        return {key: listed(part) for key, part in value.items()}
    if isinstance(value, RaggedTensor):
        return value.to_list()
    return [listed(part) for part in value] if isinstance(value, tuple) else value.tolist()


def test_what_elements_are_given_as() -> None:
    for given in (SPARSE, OtherSparse(*SPARSE), OtherSparse([[0, 1]], SPARSE.values, [2, 2])):
        (found,) = Dataset.from_tensors(given)
        assert isinstance(found, SparseTensor)
        assert listed(found) == [[[0, 1]], [1.5], [2, 2]]
    for one in (RAGGED, OtherRagged(*RAGGED), OtherRagged([1, 2, 3], [0, 2, 3])):
        (row,) = Dataset.from_tensors(one)
        assert isinstance(row, RaggedTensor)
        assert listed(row) == [[1, 2], [3]]


def test_specs_are_the_same_for_the_same_facts() -> None:
    spec = RaggedTensorSpec([2, None], INT, row_splits_dtype=INT32)
    assert (spec.ragged_rank, spec.dtype, spec.row_splits_dtype) == (1, INT, INT32)
    assert spec == RaggedTensorSpec([2, None], INT, 1, INT32)
    assert spec != RaggedTensorSpec([2, None], INT, 1)
    assert hash(SparseTensorSpec([2], INT)) == hash(SparseTensorSpec([2], INT))
    assert repr(spec) == "RaggedTensorSpec([2, None], int64, ragged_rank=1, row_splits_dtype=int32)"
    assert repr(SparseTensorSpec(None, STRING)) == "SparseTensorSpec(None, string)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "ragged_rank"),
        ({"shape": [2, None], "ragged_rank": 2}, "less than the rank"),
        ({"shape": [2, None], "row_splits_dtype": opkernel.float32}, "int32 or int64"),
    ],
)
def test_wrong_specs(arguments: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RaggedTensorSpec(**arguments)


def test_rows_of_one_length_stay_known() -> None:
    batches = Dataset.from_tensors(RAGGED).batch(2, True)
    known = RaggedTensorSpec([2, 2, None], INT, 2)
    assert batches.element_spec == known
    assert batches.map(lambda x: x).element_spec == known
    other = batches.map(
        lambda x: x.with_flat_values(opkernel.cast(x.flat_values, opkernel.float32))
    )
    assert other.element_spec == RaggedTensorSpec([2, 2, None], opkernel.float32, 2)
    assert batches.map(lambda x: x.values).element_spec == RaggedTensorSpec([None, None], INT)


def test_sizes_of_sparse_tensors_stay_known() -> None:
    batches = Dataset.from_tensors(SPARSE).batch(2)
    known = SparseTensorSpec([None, 2, 2], opkernel.float32)
    assert batches.map(lambda x: x).element_spec == known


def test_sparse_tensors_may_be_larger_than_other_tensors() -> None:
    size = 1 << 62
    wide = Dataset.from_tensors(SparseTensor(np.array([[5]]), np.array([1]), np.array([size])))
    (batch,) = wide.repeat(3).batch(3, True)
    assert listed(batch) == [[[0, 5], [1, 5], [2, 5]], [1, 1, 1], [3, size]]
    assert wide.element_spec == SparseTensorSpec([size], INT)
    with pytest.raises(errors.InvalidArgumentError, match="below -1"):
        Dataset.from_tensors(SparseTensor(np.array([[5]]), np.array([1]), np.array([-2])))


@pytest.mark.parametrize(
    "wrong",
    [
        RaggedTensor(np.arange(3), np.array([0, 4])),
        RaggedTensor(np.arange(3), np.zeros(0, np.int64)),
        RaggedTensor(np.arange(3), np.array([0.0, 3.0])),
        RaggedTensor(None, np.array([0, 3])),
        RaggedTensor(RaggedTensor(np.arange(3), np.array([0, 3], np.int32)), np.array([0, 1])),
        SparseTensor(np.array([0, 1]), np.array([1]), np.array([2, 2])),
        SparseTensor(np.array([[0, 1, 2]]), np.array([1]), np.array([2, 2])),
        SparseTensor(None, None, None),
    ],
)
def test_parts_that_do_not_fit_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"[a-z]+ "):
        list(Dataset.from_tensors(wrong))


def test_rows_without_levels_are_tensors() -> None:
    rows = Dataset.from_tensor_slices(RAGGED)
    assert rows.element_spec == RaggedTensorSpec([None], INT, 0)
    assert rows.map(lambda x: x).element_spec == opkernel.TensorSpec([None], INT)
    assert [one.tolist() for one in rows] == [[1, 2], [3]]
    numbers = rows.unbatch()
    assert numbers.element_spec == RaggedTensorSpec([], INT, -1)
    assert [one.tolist() for one in numbers.batch(2)] == [[1, 2], [3]]
    with pytest.raises(TypeError, match="Incompatible"):
        rows.concatenate(rows.map(lambda x: x))


def test_rows_of_batches_of_one_size() -> None:
    batches = Dataset.from_tensors(RAGGED).repeat(3).batch(2, True)
    assert batches.rebatch(1).element_spec == RaggedTensorSpec([1, 2, None], INT, 2)
    assert batches.rebatch(3).element_spec == RaggedTensorSpec([None, 2, None], INT, 2)
    numbers = Dataset.range(8).batch(4, True)
    assert numbers.rebatch([2, 2]).element_spec == opkernel.TensorSpec([2], INT)
    assert numbers.rebatch([2, 1]).element_spec == opkernel.TensorSpec([None], INT)
    assert numbers.rebatch(3, True).element_spec == opkernel.TensorSpec([3], INT)


def test_datasets_of_datasets_keep_their_specs() -> None:
    windows = Dataset.from_tensors(RAGGED).window(1)
    assert windows.concatenate(windows).element_spec == DatasetSpec(
        RaggedTensorSpec([2, None], INT)
    )


def test_features_of_examples() -> None:
    examples = [
        opkernel.io.example_from_values(
            {"v": [*range(1, n + 1)], "w": [b"x"] * (n % 2), "n": [0, n]}
        ).SerializeToString()
        for n in (1, 2, 3)
    ]
    features: dict[str, Any] = {
        "w": VarLenFeature(STRING),
        "r": RaggedFeature(INT, "v"),
        "q": RaggedFeature(INT, "v", [RowSplits("n")]),
    }
    parsed = Dataset.from_tensor_slices(examples).batch(2).apply(parse_example_dataset(features))
    assert parsed.element_spec == {
        "q": RaggedTensorSpec([None, None, None], INT, 2, INT32),
        "r": RaggedTensorSpec([None, None], INT, 1, INT32),
        "w": SparseTensorSpec([None, None], STRING),
    }
    (whole,) = parsed.rebatch(3)
    assert listed(whole) == {
        "q": [[[1]], [[1, 2]], [[1, 2, 3]]],
        "r": [[1], [1, 2], [1, 2, 3]],
        "w": [[[0, 0], [2, 0]], [b"x", b"x"], [3, 1]],
    }
    assert [listed(one["q"]) for one in parsed.unbatch()] == [[[1]], [[1, 2]], [[1, 2, 3]]]


def test_generators() -> None:
    spec = {"r": RaggedTensorSpec([None, None], INT), "s": SparseTensorSpec(None, opkernel.float32)}
    made = Dataset.from_generator(
        lambda: iter([{"r": RAGGED, "s": SPARSE}] * 2), output_signature=spec
    )
    assert made.element_spec == spec
    (batch,) = made.batch(2)
    assert listed(batch) == {
        "r": [[[1, 2], [3]]] * 2,
        "s": [[[0, 0, 1], [1, 0, 1]], [1.5, 1.5], [2, 2, 2]],
    }
    rows = Dataset.from_generator(
        lambda: iter([[1], [1, 2]]), output_signature=RaggedTensorSpec([None], INT)
    )
    assert [listed(one) for one in rows.batch(2)] == [[[1], [1, 2]]]


@pytest.mark.parametrize(
    "spec",
    [
        RaggedTensorSpec([None, None], INT32),
        RaggedTensorSpec([3, None], INT),
        RaggedTensorSpec([2, None, None], INT),
        RaggedTensorSpec([2, None], INT, row_splits_dtype=INT32),
        SparseTensorSpec(None, INT),
        opkernel.TensorSpec([None], INT),
    ],
)
def test_what_generators_give_fits_the_signature(spec: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="yielded an element"):
        list(Dataset.from_generator(lambda: iter([RAGGED]), output_signature=spec))


@pytest.mark.parametrize("wrong", [5, [1, 2], SPARSE])
def test_generators_of_other_values(wrong: Any) -> None:
    spec = RaggedTensorSpec([None, None], INT)
    with pytest.raises(errors.InvalidArgumentError):
        list(Dataset.from_generator(lambda: iter([wrong]), output_signature=spec))


def test_states() -> None:
    grown = Dataset.range(3).reduce(
        RaggedTensor(np.zeros(0, np.int64), np.zeros(1, np.int64)),
        lambda state, x: RaggedTensor(
            opkernel.concat([state.values, opkernel.fill([2], x)], 0),
            opkernel.concat([state.row_splits, state.row_splits[-1:] + 2], 0),
        ),
    )
    assert listed(grown) == [[0, 0], [1, 1], [2, 2]]
    kept = Dataset.range(2).scan(SPARSE, lambda state, x: (state, (state, x)))
    assert kept.element_spec[0] == SparseTensorSpec([2, 2], opkernel.float32)
    assert [listed(one) for one in kept] == [[[[[0, 1]], [1.5], [2, 2]], n] for n in (0, 1)]


def test_elements_are_the_callers_own() -> None:
    for dataset in (Dataset.from_tensors(SPARSE), Dataset.from_tensors(RAGGED)):
        before = [listed(one) for one in dataset]
        for one in dataset:
            one[0][:] = 7
            one[1][:] = 0
        assert [listed(one) for one in dataset] == before


def test_single_elements_and_numbers() -> None:
    expected = {"r": [[1, 2], [3]], "s": [[[0, 1]], [1.5], [2, 2]]}
    assert listed(BOTH.get_single_element()) == expected
    assert listed(BOTH.at(0)) == expected
    assert [listed(one) for one in BOTH.as_numpy_iterator()] == [expected]
    assert listed(iter(BOTH).get_next_as_optional().get_value()) == expected
    shuffled = Dataset.from_tensor_slices(RAGGED).global_shuffle(seed=1)
    assert sorted(listed(one) for one in shuffled) == [[1, 2], [3]]


def test_a_saved_pass_goes_on() -> None:
    elements = iter(BOTH.repeat(5).enumerate().shuffle(3, 1).batch(2))
    next(elements)
    state = elements.save()
    rest = [listed(one) for one in elements]
    elements.restore(variant_from_proto(state.to_proto()))  # type: ignore[arg-type]  # is a state
    assert [listed(one) for one in elements] == rest
    assert len(rest) == 2


def test_traced_functions() -> None:
    batches = BOTH.batch(1)

    @opkernel.function
    def next_of(elements: Any) -> Any:
        element = next(elements)
        return element["r"], element["s"].values

    @opkernel.function
    def sum_of_all() -> Any:
        total = opkernel.constant(0, INT)
        for element in batches:
            total = total + opkernel.reduce_sum(element["r"].flat_values)
        return total

    ragged, values = next_of(iter(batches))
    assert (listed(ragged), listed(values)) == ([[[1, 2], [3]]], [1.5])
    assert sum_of_all() == 6


def test_graphs_for_sessions() -> None:
    with opkernel.Graph().as_default() as graph:
        batches = Dataset.from_tensors({"r": RAGGED, "s": SPARSE}).batch(1)
        iterator = make_initializable_iterator(batches)
        element = iterator.get_next()
        outside = next(iter(BOTH))
    assert listed(outside)["r"] == [[1, 2], [3]]
    with opkernel.Session(graph) as session:
        session.run(iterator.initializer)
        found = session.run(element)
    assert listed(found) == {"r": [[[1, 2], [3]]], "s": [[[0, 0, 1]], [1.5], [1, 2, 2]]}


def test_padded_batches_are_of_tensors() -> None:
    for dataset in (Dataset.from_tensors(RAGGED), BOTH, Dataset.from_tensor_slices(RAGGED)):
        with pytest.raises(TypeError, match="`padded_batch` pads tensors"):
            dataset.padded_batch(2)


def test_what_has_no_rows_is_not_cut() -> None:
    vector = SparseTensor(np.array([[1]]), np.array([1]), np.array([2]))
    with pytest.raises(errors.InvalidArgumentError, match="Rank of input SparseTensor"):
        Dataset.from_tensor_slices(vector)
    with pytest.raises(ValueError, match="rank of at least 1"):
        Dataset.range(2).unbatch()
    with pytest.raises(ValueError, match="Slicing dataset elements"):
        Dataset.range(2).window(1).unbatch()
