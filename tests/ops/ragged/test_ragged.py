"""Ops on ragged tensors: RaggedTensorToTensor, ...ToSparse, ...ToVariant, RaggedGather, RaggedRange and others."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.testing import check_gradient

VALUES = np.array([1, 2, 3, 4], np.float32)
SPLITS = np.array([0, 3, 3, 4], np.int64)


def to_tensor(shape: Any, values: Any, default: Any, partitions: Any, kinds: list[str]) -> Any:
    return raw_ops.RaggedTensorToTensor(
        shape=np.array(shape, np.int64),
        values=values,
        default_value=np.asarray(default, values.dtype),
        row_partition_tensors=[np.array(one, np.int64) for one in partitions],
        row_partition_types=kinds,
    )


def test_rows_become_those_of_a_tensor() -> None:
    rows = [[1, 2, 3], [9, 9, 9], [4, 9, 9]]
    assert to_tensor(-1, VALUES, 9, [SPLITS], ["ROW_SPLITS"]).tolist() == rows
    by_ids = to_tensor(-1, VALUES, 9, [3, [0, 0, 0, 2]], ["FIRST_DIM_SIZE", "VALUE_ROWIDS"])
    assert by_ids.tolist() == rows
    assert to_tensor([2, 2], VALUES, 9, [SPLITS], ["ROW_SPLITS"]).tolist() == [[1, 2], [9, 9]]
    assert to_tensor([4, -1], VALUES, 9, [SPLITS], ["ROW_SPLITS"])[3].tolist() == [9, 9, 9]


def test_nested_rows_and_inner_dimensions() -> None:
    values = np.arange(8).reshape(4, 2)
    nested = to_tensor(-1, values, [7, 8], [[0, 2, 3], [0, 1, 3, 4]], ["ROW_SPLITS"] * 2)
    assert nested.tolist() == [
        [[[0, 1], [7, 8]], [[2, 3], [4, 5]]],
        [[[6, 7], [7, 8]], [[7, 8], [7, 8]]],
    ]


@pytest.mark.parametrize(
    ("shape", "partition", "kinds"),
    [
        ([4], [0, 4], ["ROW_SPLITS"]),
        ([-1, -1], [0, 1, 5], ["ROW_SPLITS"]),
        ([-1, -1], [0, 4], ["VALUE_ROWIDS"]),
        ([-1, -1], [0, 4], ["ROW_LIMITS"]),
        ([-1, -1], [0, 3, 1, 4], ["ROW_SPLITS"]),
        (-2, [0, 4], ["ROW_SPLITS"]),
    ],
)
def test_parts_that_do_not_fit_are_refused(shape: Any, partition: Any, kinds: list[str]) -> None:
    with pytest.raises(InvalidArgumentError):
        to_tensor(shape, VALUES, 0, [partition], kinds)


def test_gradient_of_to_tensor() -> None:
    partition = [np.array([0, 2, 3], np.int64)]
    check_gradient(
        "RaggedTensorToTensor",
        [np.array([-1, 2, 2]), np.array([[1.0, 2], [3, 4], [5, 6]]), np.array(7.0), partition],
        {"row_partition_types": ["ROW_SPLITS"]},
    )


def test_to_sparse() -> None:
    values = np.array([[1, 2], [3, 4], [5, 6]])
    indices, flat, shape = raw_ops.RaggedTensorToSparse(
        rt_nested_splits=[np.array([0, 0, 2, 3])], rt_dense_values=values
    )
    assert indices.tolist() == [[1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1], [2, 0, 0], [2, 0, 1]]
    assert (flat.tolist(), shape.tolist()) == ([1, 2, 3, 4, 5, 6], [3, 2, 2])
    for splits in ([], [1, 3], [0, 2, 1, 3], [0, 2]):
        with pytest.raises(InvalidArgumentError):
            raw_ops.RaggedTensorToSparse(
                rt_nested_splits=[np.array(splits, np.int64)], rt_dense_values=values
            )


def test_gather() -> None:
    splits, values = raw_ops.RaggedGather(
        params_nested_splits=[SPLITS],
        params_dense_values=VALUES,
        indices=np.array([[2, 0], [1, 0]]),
        OUTPUT_RAGGED_RANK=2,
    )
    assert [one.tolist() for one in splits] == [[0, 2, 4], [0, 1, 4, 4, 7]]
    assert values.tolist() == [4, 1, 2, 3, 1, 2, 3]
    with pytest.raises(InvalidArgumentError, match=r"indices\[0\] = 3 is not in \[0, 3\)"):
        raw_ops.RaggedGather(
            params_nested_splits=[SPLITS],
            params_dense_values=VALUES,
            indices=[3],
            OUTPUT_RAGGED_RANK=1,
        )


def test_gradient_of_gather() -> None:
    check_gradient(
        "RaggedGather",
        [[SPLITS], VALUES.astype(np.float64), np.array([2, 0, 0])],
        {"OUTPUT_RAGGED_RANK": 1},
    )


def test_range() -> None:
    splits, values = raw_ops.RaggedRange(starts=[0, 5, 8], limits=[3, 5, 2], deltas=[1, 1, -2])
    assert (splits.tolist(), values.tolist()) == ([0, 3, 3, 6], [0, 1, 2, 8, 6, 4])
    scalars = raw_ops.RaggedRange(
        starts=np.float32(0), limits=np.float32(1), deltas=np.float32(0.4)
    )
    third = np.float32(0.4) + np.float32(0.4)
    assert scalars.rt_dense_values.tolist() == [0, np.float32(0.4), third]
    with pytest.raises(InvalidArgumentError, match="delta != 0"):
        raw_ops.RaggedRange(starts=[0], limits=[3], deltas=[0])
    with pytest.raises(opkernel.errors.OpError):
        raw_ops.RaggedRange(starts=[0], limits=[2**62], deltas=[1])


def test_empty_rows_are_filled() -> None:
    rowids, values, is_empty, places = raw_ops.RaggedFillEmptyRows(
        value_rowids=[3, 0, 3], values=[1.0, 2.0, 3.0], nrows=5, default_value=-1.0
    )
    assert rowids.tolist() == [0, 1, 2, 3, 3, 4]
    assert values.tolist() == [2, -1, -1, 1, 3, -1]
    assert is_empty.tolist() == [False, True, True, False, True]
    assert places.tolist() == [3, 0, 4]
    given, default = raw_ops.RaggedFillEmptyRowsGrad(
        reverse_index_map=places, grad_values=[1.0, 2, 3, 4, 5, 6]
    )
    assert (given.tolist(), default) == ([4, 1, 5], 11)
    with pytest.raises(InvalidArgumentError):
        raw_ops.RaggedFillEmptyRows(value_rowids=[5], values=[1.0], nrows=5, default_value=0.0)


def cross(
    order: str,
    hashed: bool,
    out_values_type: str = "",
    hash_key: int = 956888297470,
    **given: Any,
) -> Any:
    kinds = ("ragged_values", "ragged_row_splits", "sparse_indices", "sparse_values")
    inputs = {kind: given.get(kind, []) for kind in (*kinds, "sparse_shape", "dense_inputs")}
    return raw_ops.RaggedCross(
        **inputs,
        input_order=order,
        hashed_output=hashed,
        num_buckets=0,
        hash_key=hash_key,
        out_values_type=out_values_type or ("int64" if hashed else "string"),
        out_row_splits_type="int64",
    )


def test_cross() -> None:
    words = np.array([b"a", b"b", b"c"], object)
    given = {
        "ragged_values": [words],
        "ragged_row_splits": [np.array([0, 2, 3])],
        "dense_inputs": [np.array([[1, 2], [3, 4]])],
    }
    values, splits = cross("RD", False, **given)
    assert values.tolist() == [b"a_X_1", b"a_X_2", b"b_X_1", b"b_X_2", b"c_X_3", b"c_X_4"]
    assert splits.tolist() == [0, 4, 6]
    hashed, _ = cross("RD", True, **given)
    assert len(set(hashed.tolist())) == 6


@pytest.mark.parametrize("hashed", [True, False])
def test_the_type_of_a_cross_decides_whether_it_is_hashed(hashed: bool) -> None:
    given = {
        "ragged_values": [np.array([b"a", b"b"], object)],
        "ragged_row_splits": [np.array([0, 1, 2])],
        "dense_inputs": [np.array([[b"c"], [b"d"]], object)],
    }
    numbers, _ = cross("RD", hashed, out_values_type="int64", hash_key=7, **given)
    assert numbers.tolist() == [4406271492663848617, 2066698327520424790]
    assert cross("RD", hashed, out_values_type="string", **given)[0].tolist() == [
        b"a_X_c",
        b"b_X_d",
    ]


ROWS = st.lists(st.lists(st.integers(-9, 9), max_size=3), max_size=4)


@given(ROWS)
def test_variants_hold_rows(rows: list[list[int]]) -> None:
    splits = np.cumsum([0, *map(len, rows)])
    values = np.array([n for row in rows for n in row], np.int32)
    encoded = raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[splits], rt_dense_values=values, batched_input=True
    )
    assert encoded.shape == (len(rows),)
    (back,), flat = raw_ops.RaggedTensorFromVariant(
        encoded_ragged=encoded,
        input_ragged_rank=-1,
        output_ragged_rank=1,
        Tvalues="int32",
        Tsplits="int64",
    )
    assert (back.tolist(), flat.tolist()) == (splits.tolist(), values.tolist())


def test_a_variant_of_another_type_is_refused() -> None:
    encoded = raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[SPLITS], rt_dense_values=VALUES, batched_input=False
    )
    with pytest.raises(InvalidArgumentError, match="dtype"):
        raw_ops.RaggedTensorFromVariant(
            encoded_ragged=encoded,
            input_ragged_rank=1,
            output_ragged_rank=1,
            Tvalues="int32",
            Tsplits="int64",
        )


def scalars(*values: float) -> Any:
    """Variants of scalars."""
    return raw_ops.Pack(
        values=[
            raw_ops.RaggedTensorToVariant(
                rt_nested_splits=[], rt_dense_values=np.float32(one), batched_input=False
            )
            for one in values
        ]
    )


def taken_out(variants: Any, output_ragged_rank: int, input_ragged_rank: int = -1) -> Any:
    splits, values = raw_ops.RaggedTensorFromVariant(
        encoded_ragged=variants,
        input_ragged_rank=input_ragged_rank,
        output_ragged_rank=output_ragged_rank,
        Tvalues="float32",
        Tsplits="int64",
    )
    return [one.tolist() for one in splits], values.tolist()


@pytest.mark.parametrize("input_ragged_rank", [-1, 0])
def test_variants_without_rows_are_stacked(input_ragged_rank: int) -> None:
    """The values are TensorFlow's: batches of batches become one dimension."""
    numbers = scalars(1, 2)
    twice = raw_ops.Pack(values=[numbers, numbers])
    assert taken_out(numbers, 0, input_ragged_rank) == ([], [1, 2])
    assert taken_out(twice, 0, input_ragged_rank) == ([], [1, 2, 1, 2])
    assert taken_out(numbers[:0], 0, input_ragged_rank) == ([], [])
    rows = raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[], rt_dense_values=np.ones((2, 2), np.float32), batched_input=True
    )
    assert taken_out(rows, 0, input_ragged_rank) == ([], [[1, 1], [1, 1]])


def test_variants_of_other_shapes_are_no_rows() -> None:
    uneven = raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[SPLITS], rt_dense_values=VALUES, batched_input=True
    )
    with pytest.raises(InvalidArgumentError, match="compatible shapes"):
        taken_out(uneven, 0)
    with pytest.raises(InvalidArgumentError, match="scalar element"):
        taken_out(scalars(1, 2), 1)
    with pytest.raises(InvalidArgumentError, match="must be >= 0"):
        taken_out(raw_ops.Pack(values=[scalars(1)] * 2), 1)


@pytest.mark.parametrize("splits", [[0], [0, 1, 2, 3], [0, 2, 3, 3]])
def test_a_gradient_of_rows_that_are_scalars_has_the_scalars(splits: list[int]) -> None:
    found = raw_ops.RaggedTensorToVariantGradient(
        encoded_ragged_grad=scalars(1, 2, 3),
        row_splits=np.array(splits, np.int64),
        dense_values_shape=np.array([3], np.int32),
        Tvalues=opkernel.float32,
    )
    assert found.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [([], 1), ([2], [1, 2]), ([4], [1, 2, 3, 0]), ([3, 1], [[1], [2], [3]])],
)
def test_a_gradient_of_rows_takes_the_shape_that_is_given(shape: list[int], expected: Any) -> None:
    """The values are TensorFlow's: it leaves out what has no room."""
    found = raw_ops.RaggedTensorToVariantGradient(
        encoded_ragged_grad=scalars(1, 2, 3),
        row_splits=np.array([0], np.int64),
        dense_values_shape=np.array(shape, np.int32),
        Tvalues=opkernel.float32,
    )
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("splits", "shape", "message"),
    [
        ([], [3], "must have at least one splits"),
        ([1, 2, 3], [3], "first element of ragged splits must be 0"),
        ([0, 3, 2], [3], "must be monotonically increasing"),
    ],
)
def test_a_gradient_of_rows_refuses_other_splits_and_shapes(
    splits: list[int], shape: list[int], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.RaggedTensorToVariantGradient(
            encoded_ragged_grad=scalars(1, 2, 3),
            row_splits=np.array(splits, np.int64),
            dense_values_shape=np.array(shape, np.int32),
            Tvalues=opkernel.float32,
        )


def test_zeros_like_takes_no_vector_of_variants() -> None:
    with pytest.raises(InvalidArgumentError, match="non-scalar Tensor with dtype=DT_VARIANT"):
        raw_ops.ZerosLike(x=scalars(1, 2))
