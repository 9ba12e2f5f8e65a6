"""DynamicPartition and DynamicStitch."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import allocation_limit


def ints(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


@given(st.lists(st.integers(0, 3), max_size=12))
def test_stitching_the_partitions_gives_the_data_again(numbers: list[int]) -> None:
    data = np.arange(2 * len(numbers), dtype=np.float32).reshape(-1, 2)
    partitions = np.array(numbers, np.int32)
    parts = raw_ops.DynamicPartition(data=data, partitions=partitions, num_partitions=4)
    places = np.arange(len(numbers), dtype=np.int32)
    indices = raw_ops.DynamicPartition(data=places, partitions=partitions, num_partitions=4)
    for op in (raw_ops.DynamicStitch, raw_ops.ParallelDynamicStitch):
        merged = op(indices=indices, data=parts)
        np.testing.assert_array_equal(merged, data)
        assert merged.dtype == np.float32


def test_partitions_of_any_rank() -> None:
    data = np.arange(8).reshape(2, 2, 2)
    parts = raw_ops.DynamicPartition(data=data, partitions=ints([1, 0], [1, 1]), num_partitions=3)
    assert [part.tolist() for part in parts] == [[[2, 3]], [[0, 1], [4, 5], [6, 7]], []]
    parts = raw_ops.DynamicPartition(data=ints(7, 8), partitions=np.int32(1), num_partitions=2)
    assert [part.tolist() for part in parts] == [[], [[7, 8]]]


def test_partition_numbers_are_checked() -> None:
    data = ints(1, 2)
    for partitions, message in (
        (ints(0, 5), r"partitions\[1\] = 5 is not in \[0, 2\)"),
        (ints(0, -1), r"partitions\[1\] = -1 is not"),
        (np.int32(2), r"partitions = 2 is not"),
        (ints(0), r"data.shape = \[2\], partitions.shape = \[1\]"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            raw_ops.DynamicPartition(data=data, partitions=partitions, num_partitions=2)


def stitched(indices: list[Any], data: list[Any]) -> Any:
    return raw_ops.DynamicStitch(indices=indices, data=data)


def test_stitch() -> None:
    indices = [np.int32(2), ints([0, 4], [4, 1])]
    data = [ints(1, 2), np.arange(8, dtype=np.int32).reshape(2, 2, 2)]
    # Of two rows for an index the last counts; a row that none names is zeros.
    assert stitched(indices, data).tolist() == [[0, 1], [6, 7], [1, 2], [0, 0], [4, 5]]
    text = stitched([ints(1)], [np.array([b"a"], object)])
    assert text.tolist() == [b"", b"a"]
    assert stitched([np.zeros(0, np.int32)], [np.zeros((0, 3))]).shape == (0, 3)


def test_stitch_errors() -> None:
    for indices, data, message in (
        ([ints(-1)], [ints(1)], r"indices\[0\] is out of range"),
        ([ints(0)], [ints(1, 2)], r"data\[0\].shape = \[2\] does not start with"),
        ([ints(0), ints(1)], [ints([1, 2]), ints([1])], r"Need data\[0\].shape\[1:\]"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            stitched(indices, data)
    with allocation_limit(1 << 20), pytest.raises(ResourceExhaustedError):
        stitched([ints(2**31 - 1)], [ints(1)])
