"""Calls drawn at random, with what TensorFlow 2.21 answered: odd shapes, infinite numbers, NaN, indices out of range."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.types import DataType

NAN, INF = np.nan, np.inf
LOWEST = float(np.finfo(np.float32).min)


def f32(values: Any) -> Any:
    return np.asarray(values, np.float32)


def i64(values: Any) -> Any:
    return np.asarray(values, np.int64)


def strings(*values: bytes) -> Any:
    return np.array(values, object)


def largest(row: list[float]) -> Any:
    """The largest of the two halves of a row."""
    values, _, _ = raw_ops.FractionalMaxPool(
        value=f32(row).reshape(1, 1, 4, 1),
        pooling_ratio=[1.0, 1.0, 2.0, 1.0],
        deterministic=True,
        seed=1,
        seed2=2,
    )
    return values


def to_the_largest(output: float) -> Any:
    return raw_ops.FractionalMaxPoolGrad(
        orig_input=f32([1, 2, 3, 4]).reshape(1, 2, 2, 1),
        orig_output=f32([[[[output]]]]),
        out_backprop=f32([[[[1]]]]),
        row_pooling_sequence=[0, 2],
        col_pooling_sequence=[0, 2],
    )


def set_sizes(indices: Any, values: Any, shape: Any) -> Any:
    return raw_ops.SetSize(
        set_indices=i64(indices),
        set_values=np.array(values, np.int32),
        set_shape=i64(shape),
        validate_indices=False,
    )


def least_squares(matrix: Any, fast: bool) -> Any:
    rhs = np.ones((len(matrix), 1), matrix.dtype)
    return raw_ops.MatrixSolveLs(matrix=matrix, rhs=rhs, l2_regularizer=0.0, fast=fast)


def perturbed(diagonals: Any) -> Any:
    return raw_ops.TridiagonalSolve(
        diagonals=f32(diagonals), rhs=f32([[1, 2], [1, 2]]), perturb_singular=True
    )


def tridiagonal(diagonals: Any, partial_pivoting: bool) -> Any:
    rhs = np.ones((diagonals.shape[1], 1), diagonals.dtype)
    return raw_ops.TridiagonalSolve(diagonals=diagonals, rhs=rhs, partial_pivoting=partial_pivoting)


def n_grams(data: Any, splits: Any) -> Any:
    attrs = {"separator": " ", "left_pad": "", "right_pad": "", "ngram_widths": [1]}
    return raw_ops.StringNGrams(
        data=data, data_splits=i64(splits), pad_width=0, preserve_short_sequences=False, **attrs
    )


def counts(indices: Any, values: Any, shape: Any) -> Any:
    return raw_ops.SparseCountSparseOutput(
        indices=i64(indices).reshape(len(values), len(shape)),
        values=np.array(values, np.int32),
        dense_shape=i64(shape),
        weights=np.zeros(0, np.int32),
        binary_output=False,
    )


def example_of_a(**keys: Any) -> Any:
    """The feature `a`, the number 7, parsed with the keys that are given."""
    none = np.zeros(0, object)
    given = {"sparse_keys": none, "dense_keys": none, "ragged_keys": none, **keys}
    sparse, dense = given["sparse_keys"].size, given["dense_keys"].size
    return raw_ops.ParseExampleV2(
        serialized=strings(b"\n\x0c\n\n\n\x01a\x12\x05\x1a\x03\n\x01\x07"),
        names=none,
        **given,
        dense_defaults=[i64([0])] * dense,
        num_sparse=sparse,
        sparse_types=[DataType.DT_INT64] * sparse,
        ragged_value_types=[],
        ragged_split_types=[],
        dense_shapes=[[1]] * dense,
    )


ANSWERS: list[tuple[Callable[[], Any], Any]] = [
    (lambda: largest([NAN, 1, 2, 3]).ravel(), [1, 3]),
    (lambda: largest([NAN, NAN, 1, 2]).ravel(), [LOWEST, 2]),
    (lambda: largest([-INF, -INF, 1, 2]).ravel(), [LOWEST, 2]),
    (lambda: to_the_largest(4).ravel(), [0, 0, 0, 1]),
    (lambda: set_sizes([[0, 0], [1, 0], [0, 1]], [1, 2, 3], [2, 2]), [1, 1]),
    (lambda: set_sizes([[0, 0], [0, 1], [1, 0], [0, 0]], [1, 5, 2, 3], [2, 2]), [1, 1]),
    (lambda: set_sizes([[0, 0], [0, 0]], [1, 5], [1, 1]), [2]),
    (lambda: raw_ops.LogMatrixDeterminant(input=f32([[-INF]])), [-1, INF]),
    (lambda: raw_ops.LogMatrixDeterminant(input=f32([[1, 2], [INF, 1]])), [-1, INF]),
    (lambda: raw_ops.LogMatrixDeterminant(input=f32([[INF, INF], [1, 1]])), [NAN, NAN]),
    (lambda: raw_ops.LogMatrixDeterminant(input=f32([[0]])), [0, -INF]),
    (lambda: least_squares(f32([[1, 2], [3, NAN]]), True).ravel(), [NAN, NAN]),
    (lambda: least_squares(f32([[1, 2], [3, NAN]]), False).ravel(), [0, 0]),
    (lambda: least_squares(f32([[1, 2], [3, INF]]).astype(complex), False).ravel(), [0, 0]),
    (lambda: tridiagonal(f32([[0, 3], [0, 0], [3, 0]]), True).ravel(), [NAN, NAN]),
    (lambda: tridiagonal(f32([[0, 3], [0, 0], [3, 0]]).astype(complex), True).ravel(), [0, 0]),
    (lambda: tridiagonal(f32([[1, 0], [0, 1], [0, 2]]).astype(complex), False).ravel(), [0, 0]),
    (lambda: counts([], [], [3, 4, 5])[2], [3, 1]),
    (lambda: counts([[1, 0, 2], [1, 3, 0]], [7, 7], [3, 4, 5])[0], [[1, 7]]),
    (lambda: example_of_a(dense_keys=strings(b"a").reshape(()))[3][0], [[7]]),
    (lambda: example_of_a(dense_keys=strings(b"a").reshape(1, 1))[3][0], [[7]]),
    (lambda: example_of_a(sparse_keys=strings(b"a").reshape(1, 1))[1][0], [7]),
    (
        lambda: raw_ops.AvgPool3DGrad(
            orig_input_shape=np.array([1, 1, 2, 1, 1], np.int32),
            grad=np.zeros((1, 2, 0, 1, 1), np.float32),
            ksize=[1] * 5,
            strides=[1, 3, 1, 1, 1],
            padding="VALID",
        ).ravel(),
        [0, 0],
    ),
    (
        lambda: raw_ops.RaggedTensorToTensor(
            shape=np.array([2, 2], np.int32),
            values=f32([]),
            default_value=f32(0.5),
            row_partition_tensors=[np.array([2, 0, 0], np.int32)],
            row_partition_types=["ROW_SPLITS"],
        ),
        [[0.5, 0.5], [0.5, 0.5]],
    ),
    (
        lambda: (
            raw_ops.UnsortedSegmentJoin(
                inputs=np.zeros((0, 0), object),
                segment_ids=np.zeros(0, np.int32),
                num_segments=np.int32(2**31 - 1),
            ).shape
        ),
        [2**31 - 1, 0],
    ),
]

ANSWERS += [
    (
        lambda: perturbed([[0, 3], [0, 0], [3, 0]]),
        [[2.8356864755178605e37, 5.671372951035721e37]] * 2,
    ),
    (lambda: perturbed([[1, NAN], [2, 1], [NAN, 2]]), [[0.5, 1], [0, 0]]),
    (lambda: perturbed([[1e30, 0], [1, 1], [0, 1]]), [[1, 2], [0, 0]]),
    (lambda: perturbed([[1, 0], [INF, 1], [0, 2]]), [[NAN, NAN], [NAN, NAN]]),
    (
        lambda: (
            raw_ops.RandomUniformInt(
                shape=np.int32([2, 0]), minval=np.int32(5), maxval=np.int32(1)
            ).shape
        ),
        [2, 0],
    ),
    (lambda: raw_ops.RandomPoissonV2(shape=np.int32([2]), rate=f32([])).shape, [2, 0]),
    (lambda: raw_ops.RandomPoissonV2(shape=np.int32([0]), rate=f32([NAN])).shape, [0, 1]),
    (
        lambda: raw_ops.NthElement(input=np.zeros((0, 4, 5), np.int8), n=4).shape,
        [0, 4],
    ),
    (
        lambda: raw_ops.QuantizeAndDequantizeV3(
            input=f32([1, 2]), input_min=f32([2, 1]), input_max=f32([1, 3]), num_bits=8, axis=0
        ),
        f32([1, 2.007874011993408]),
    ),
]

REFUSALS: list[tuple[Callable[[], Any], type[Exception]]] = [
    (lambda: to_the_largest(3), InvalidArgumentError),
    (lambda: to_the_largest(NAN), InvalidArgumentError),
    (lambda: set_sizes([[0, 5]], [1], [1, 1]), InternalError),
    (lambda: set_sizes([[2, 0]], [1], [2, 1]), InternalError),
    (lambda: least_squares(f32([[0, 0], [0, 0]]), True), InvalidArgumentError),
    (lambda: n_grams(strings(), [0, 1, 1]), InvalidArgumentError),
    (lambda: n_grams(strings(), [5]), InvalidArgumentError),
    (
        lambda: raw_ops.MaxPoolV2(
            input=np.ones((1, 2, 2, 1), np.float32),
            ksize=np.int32([0, 1, 1, 1]),
            strides=np.int32([1, 1, 1, 1]),
            padding="SAME",
        ),
        InvalidArgumentError,
    ),
    (
        lambda: raw_ops.DynamicStitch(
            indices=[np.int32([6, 2**31 - 1])], data=[np.zeros((2, 2), np.uint16)]
        ),
        InvalidArgumentError,
    ),
    (
        lambda: raw_ops.GuaranteeConst(
            input=raw_ops.VarHandleOp(dtype=DataType.DT_FLOAT, shape=[])
        ),
        InvalidArgumentError,
    ),
    (
        lambda: raw_ops.Substr(input=strings(b"hello"), pos=-4, len=-1, unit="UTF8_CHAR"),
        InvalidArgumentError,
    ),
    (
        lambda: raw_ops.DecodeProtoV2(
            bytes=strings(),
            message_type="tensorflow.TensorShapeProto",
            field_names=[],
            output_types=[],
        ),
        InvalidArgumentError,
    ),
    (
        lambda: raw_ops.SparseDenseCwiseDiv(
            sp_indices=i64([[0]]), sp_values=f32([1]), sp_shape=i64([2]), dense=f32([0, 1])
        ),
        InvalidArgumentError,
    ),
    (
        lambda: raw_ops.SparseSparseMaximum(
            a_indices=np.zeros((0, 0), np.int64),
            a_values=f32([]),
            a_shape=i64([]),
            b_indices=np.zeros((0, 0), np.int64),
            b_values=f32([]),
            b_shape=i64([]),
        ),
        InvalidArgumentError,
    ),
    (
        lambda: raw_ops.SparseBincount(
            indices=np.zeros((2, 0), np.int64),
            values=np.array([0, 1], np.int32),
            dense_shape=i64([]),
            size=np.int32(2),
            weights=f32([]),
        ),
        InvalidArgumentError,
    ),
    (
        lambda: raw_ops.FusedPadConv2D(
            input=np.ones((1, 3, 3, 2), np.float32),
            paddings=np.zeros((4, 2), np.int32),
            filter=np.ones((1, 1, 2, 1), np.float32),
            mode="REFLECT",
            strides=[1, 1, 1, 3],
            padding="VALID",
        ),
        InvalidArgumentError,
    ),
]


@pytest.mark.parametrize(("call", "expected"), ANSWERS)
def test_the_answer_is_that_of_tensorflow(call: Callable[[], Any], expected: Any) -> None:
    np.testing.assert_array_equal(np.asarray(call()), expected)


@pytest.mark.parametrize(("call", "error"), REFUSALS)
def test_the_refusal_is_that_of_tensorflow(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_parse_example_takes_keys_of_one_element(shape: tuple[int, ...]) -> None:
    *_, values = raw_ops.ParseExample(
        serialized=strings(b"\n\x0c\n\n\n\x01a\x12\x05\x1a\x03\n\x01\x07"),
        names=np.zeros(0, object),
        sparse_keys=[],
        dense_keys=[strings(b"a").reshape(shape)],
        dense_defaults=[i64([0])],
        sparse_types=[],
        dense_shapes=[[1]],
    )
    assert values[0].tolist() == [[7]]


def a_list() -> Any:
    """A variant: a list of tensors that is empty."""
    return raw_ops.EmptyTensorList(
        element_shape=np.int32([]), max_num_elements=np.int32(-1), element_dtype=DataType.DT_FLOAT
    )


def test_tile_repeats_variants() -> None:
    tiled = raw_ops.Tile(input=raw_ops.Pack(values=[a_list()]), multiples=np.int32([3]))
    lists = raw_ops.Unpack(value=tiled, num=3)
    assert [raw_ops.TensorListLength(input_handle=one) for one in lists] == [0, 0, 0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: raw_ops.ExpandDims(input=x, axis=np.int32(0)),
        lambda x: raw_ops.Squeeze(input=x),
        lambda x: raw_ops.DeepCopy(x=x),
    ],
)
def test_ops_that_refuse_variants_in_tensorflow_refuse_them(call: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"[Vv]ariant"):
        call(a_list())


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_matrices_that_are_not_singular_are_solved_though_pivots_may_be_moved(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    diagonals, rhs = rng.normal(size=(5, 3, 6)).astype(dtype), rng.normal(size=(5, 6, 2))
    diagonals[..., 2, 2] = diagonals[..., 1, 3] = 0
    above, main, below = (diagonals[:, i] for i in range(3))
    matrices = np.zeros((5, 6, 6), dtype)
    places = np.arange(6)
    matrices[:, places, places] = main
    matrices[:, places[:-1], places[1:]] = above[:, :-1]
    matrices[:, places[1:], places[:-1]] = below[:, 1:]
    x = raw_ops.TridiagonalSolve(diagonals=diagonals, rhs=rhs.astype(dtype), perturb_singular=True)
    np.testing.assert_allclose(matrices @ x, rhs, atol=1e-9)
