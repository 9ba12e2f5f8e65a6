"""Elements with sparse and ragged values: stages that cut or join tensors refuse them, others pass them on."""

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors
from opkernel.data import (
    Dataset,
    RaggedFeature,
    RaggedTensorValue,
    SparseTensorValue,
    VarLenFeature,
    parse_example_dataset,
)
from opkernel.graph.tracing.nested_structure import flatten

RAGGED = RaggedTensorValue(np.array([1, 2, 3, 4]), np.array([0, 1, 1, 4]))
SPARSE = SparseTensorValue(np.array([[0, 0], [1, 1]]), np.array([1, 2]), np.array([2, 2]))
Other = namedtuple("Other", ["indices", "values", "dense_shape"])  # noqa: PYI024 - as other libraries make it
ELEMENTS = {
    "RaggedTensorValue": RAGGED,
    "SparseTensorValue": SPARSE,
    "RaggedTensor": opkernel.ragged.RaggedTensor(*RAGGED),
    "SparseTensor": opkernel.sparse.SparseTensor(*SPARSE),
    "Other": Other(*SPARSE),
    "RaggedTensorValue of rows of rows": RaggedTensorValue(RAGGED, np.array([0, 2, 3])),
    "SparseTensorValue in a dict": {"a": np.arange(3), "b": (np.arange(3), SPARSE)},
}
STAGES: dict[str, Any] = {
    "batch": lambda d: d.batch(2),
    "batch side by side": lambda d: d.batch(2, num_parallel_calls=2),
    "padded_batch": lambda d: d.padded_batch(2),
    "unbatch": lambda d: d.unbatch(),
    "rebatch": lambda d: d.rebatch(2),
    "window": lambda d: d.window(2),
}


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("stage", STAGES)
def test_stages_that_cut_or_join_refuse_composites(stage: str, element: str) -> None:
    dataset = Dataset.from_tensors(ELEMENTS[element])
    words = f"`{stage.split()[0]}` takes no elements with a {element.split()[0]}"
    with pytest.raises(errors.UnimplementedError, match=words):
        STAGES[stage](dataset)


@pytest.mark.parametrize("element", ELEMENTS)
def test_composites_are_not_sliced(element: str) -> None:
    words = f"`from_tensor_slices` takes no elements with a {element.split()[0]}"
    with pytest.raises(errors.UnimplementedError, match=words):
        Dataset.from_tensor_slices(ELEMENTS[element])


@pytest.mark.parametrize(
    "feature", [VarLenFeature(opkernel.int64), RaggedFeature(opkernel.int64, "v")]
)
@pytest.mark.parametrize("stage", STAGES)
def test_features_of_examples_are_refused_as_well(stage: str, feature: Any) -> None:
    example = opkernel.io.example_from_values({"v": [1, 2]}).SerializeToString()
    parsed = Dataset.from_tensors([example]).apply(parse_example_dataset({"v": feature}))
    with pytest.raises(errors.UnimplementedError, match=stage.split()[0]):
        STAGES[stage](parsed)


@pytest.mark.parametrize("element", ELEMENTS)
def test_other_stages_pass_composites_on(element: str) -> None:
    dataset = Dataset.from_tensors(ELEMENTS[element]).repeat(4).shuffle(2).cache().skip(1)
    dataset = dataset.map(lambda *parts: parts[0] if len(parts) == 1 else parts).prefetch(1).take(1)
    (found,) = dataset
    flat, expected = flatten(found), flatten(ELEMENTS[element])
    assert [one.tolist() for one in flat] == [one.tolist() for one in expected]
