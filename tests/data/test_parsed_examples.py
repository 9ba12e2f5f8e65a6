"""parse_example_dataset with each kind of feature. Expected values and errors are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors
from opkernel.data import (
    Dataset,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    RaggedTensorSpec,
    RowLengths,
    RowLimits,
    RowSplits,
    RowStarts,
    SparseFeature,
    UniformRowLength,
    ValueRowIds,
    VarLenFeature,
    parse_example_dataset,
)
from opkernel.proto import Example

INT, FLOAT, STRING = opkernel.int64, opkernel.float32, opkernel.string


def example(**features: list[Any]) -> bytes:
    made = Example()
    for key, values in features.items():
        kind = {float: "float_list", int: "int64_list", bytes: "bytes_list"}[type(values[0])]
        getattr(made.features.feature[key], kind).value.extend(values)
    return made.SerializeToString()


BATCH = [
    example(
        d=[1.5, 2.5], i=[3], s=[b"a", b"b"], v=[1, 2, 3, 4, 5, 6], w=[1.0, 2.0], ix=[3, 1], iy=[0, 2],
        splits=[0, 2, 6], lengths=[2, 4], starts=[0, 2], limits=[2, 6], ids=[0, 0, 1, 1, 1, 3], two=[0, 1, 2],
    ),
    example(
        d=[3.5, 4.5], v=[7, 8], w=[5.0], ix=[2], iy=[1],
        splits=[0, 2], lengths=[2], starts=[0], limits=[2], ids=[0, 1], two=[0, 1],
    ),
]  # fmt: skip


def parsed(batch: list[bytes] = BATCH, **features: Any) -> dict[str, Any]:
    dataset = Dataset.from_tensors(np.array(batch, object)).apply(parse_example_dataset(features))
    (element,) = dataset
    return {key: listed(value) for key, value in element.items()}


def listed(value: Any) -> Any:
    return [listed(one) for one in value] if isinstance(value, tuple) else value.tolist()


def test_dense_features() -> None:
    found = parsed(
        d=FixedLenFeature([2], FLOAT),
        i=FixedLenFeature([], INT, 7),
        v=FixedLenSequenceFeature([2], INT, allow_missing=True, default_value=-1),
        s=FixedLenSequenceFeature([], STRING, allow_missing=True),
    )
    assert found == {
        "d": [[1.5, 2.5], [3.5, 4.5]],
        "i": [3, 7],
        "s": [[b"a", b"b"], [b"", b""]],
        "v": [[[1, 2], [3, 4], [5, 6]], [[7, 8], [-1, -1], [-1, -1]]],
    }


def test_sparse_features() -> None:
    found = parsed(
        s=VarLenFeature(STRING),
        one=SparseFeature("ix", "w", FLOAT, 10),
        sorted=SparseFeature("ix", "w", FLOAT, 10, already_sorted=True),
        both=SparseFeature(["ix", "iy"], "w", FLOAT, [10, 4]),
    )
    assert found == {
        "both": [[[0, 1, 2], [0, 3, 0], [1, 2, 1]], [2, 1, 5], [2, 10, 4]],
        "one": [[[0, 1], [0, 3], [1, 2]], [2, 1, 5], [2, 10]],
        "s": [[[0, 0], [0, 1]], [b"a", b"b"], [2, 2]],
        "sorted": [[[0, 3], [0, 1], [1, 2]], [1, 2, 5], [2, 10]],
    }


VALUES = [1, 2, 3, 4, 5, 6, 7, 8]
IN_ROWS = [[VALUES, [0, 2, 6, 8]], [0, 2, 3]]
PARTITIONS: list[tuple[list[Any], Any]] = [
    ([], [VALUES, [0, 6, 8]]),
    ([RowSplits("splits")], IN_ROWS),
    ([RowLengths("lengths")], IN_ROWS),
    ([RowStarts("starts")], IN_ROWS),
    ([RowLimits("limits")], IN_ROWS),
    ([ValueRowIds("ids")], [[VALUES, [0, 2, 5, 5, 6, 7, 8]], [0, 4, 6]]),
    ([UniformRowLength(2)], [[[1, 2], [3, 4], [5, 6], [7, 8]], [0, 3, 4]]),
    ([RowSplits("two"), RowSplits("splits")], [[[VALUES, [0, 2, 6, 8]], [0, 1, 2, 3]], [0, 2, 3]]),
]


@pytest.mark.parametrize("dtype", [opkernel.int32, INT])
@pytest.mark.parametrize(("partitions", "expected"), PARTITIONS)
def test_ragged_features(partitions: list[Any], expected: Any, dtype: Any) -> None:
    feature = RaggedFeature(INT, "v", partitions, dtype)
    assert parsed(q=feature) == {"q": expected}
    dataset = Dataset.from_tensors(np.array(BATCH, object)).apply(
        parse_example_dataset({"q": feature})
    )
    spec = dataset.element_spec["q"]
    assert isinstance(spec, RaggedTensorSpec)
    levels = 1 + sum(not isinstance(one, UniformRowLength) for one in partitions)
    assert (spec.ragged_rank, spec.row_splits_dtype) == (levels, dtype)


def test_partitions_have_to_fit_the_values() -> None:
    wrong = [example(v=[1, 2], lengths=[5])]
    with pytest.raises(errors.InvalidArgumentError, match="does not fit"):
        parsed(wrong, q=RaggedFeature(INT, "v", [RowLengths("lengths")]))


@pytest.mark.parametrize(
    "features",
    [
        {"v": 3},
        {"v": VarLenFeature(None)},
        {"v": FixedLenFeature(None, INT)},
        {"v": FixedLenFeature([None], INT)},
        {"v": FixedLenSequenceFeature([], INT)},
        {"v": VarLenFeature(INT), "q": RaggedFeature(INT, "v")},
        {"p": RaggedFeature(FLOAT, "v"), "q": RaggedFeature(INT, "v")},
        {"w": VarLenFeature(INT), "k": SparseFeature("ix", "w", FLOAT, 10)},
        {"k": SparseFeature("", "w", FLOAT, 10)},
    ],
)
def test_wrong_features(features: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"feature|asked for"):
        parsed(**features)


def test_other_datasets_cannot_be_parsed() -> None:
    with pytest.raises(TypeError, match="vectors of strings"):
        Dataset.range(3).apply(parse_example_dataset({"v": VarLenFeature(INT)}))


def test_subclasses_have_the_methods_that_make_datasets() -> None:
    lines = opkernel.data.TextLineDataset([])
    assert list(lines.enumerate()) == []
    assert [int(one) for one in type(lines).range(2)] == [0, 1]
