import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opkernel import Graph, raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.types import bfloat16, int64

NAN, INF = np.nan, np.inf


def top_k(x, k, **attrs):
    values, indices = raw_ops.TopKV2(input=np.asarray(x), k=np.int32(k), **attrs)
    return values.tolist(), indices.tolist()


def test_equal_elements_keep_their_order():
    assert top_k(np.array([1, 3, 2, 3, 3], np.int32), 4) == ([3, 3, 3, 2], [1, 3, 4, 2])
    assert top_k(np.zeros(5, np.float32), 3) == ([0, 0, 0], [0, 1, 2])


def test_all_of_unsigned_and_of_the_lowest():
    assert top_k(np.array([0, 255, 7], np.uint8), 3) == ([255, 7, 0], [1, 2, 0])
    assert top_k(np.array([-128, 127, -128], np.int8), 2) == ([127, -128], [1, 0])
    assert top_k(np.array([-INF, INF, -INF], np.float32), 2) == ([INF, -INF], [1, 0])


def test_index_type_and_bfloat16():
    x = np.arange(4).astype(bfloat16.numpy_dtype)
    values, indices = raw_ops.TopKV2(input=x, k=np.int64(2), index_type=int64)
    assert values.dtype == x.dtype
    assert indices.dtype == np.int64
    assert indices.tolist() == [3, 2]


def columns_of_top(row, k, is_sorted=True):
    return top_k(np.array(row, np.float32), k, sorted=is_sorted)[1]


def test_nan_stands_where_the_comparisons_of_tensorflow_leave_it():
    assert columns_of_top([NAN, NAN, 1, 1], 3, True) == [0, 1, 2]
    assert columns_of_top([3, NAN, 0, NAN], 3, False) == [2, 1, 0]
    assert columns_of_top([NAN, 0, NAN, NAN], 1, False) == [0]
    assert columns_of_top(
        [NAN, NAN, NAN, NAN, -INF, -INF, -INF, NAN, -INF, NAN, NAN, NAN, NAN, NAN, -INF, NAN, NAN],
        2,
        True,
    ) == [0, 1]
    assert columns_of_top([NAN, NAN, NAN, 1], 4, False) == [0, 1, 2, 3]
    assert columns_of_top(
        [NAN, 29, 9, 11, 10, 17, 17, 8, 6, NAN, 29, 29, 7, 1, 12, 27, 6], 17, True
    ) == [1, 5, 6, 3, 4, 2, 7, 16, 0, 10, 11, 15, 14, 12, 13, 9, 8]
    assert columns_of_top(
        [2, NAN, 1, NAN, NAN, 3, NAN, NAN, NAN, 1, NAN, NAN, 3, 1, 5, 3, 0], 8, False
    ) == [7, 4, 6, 3, 0, 5, 2, 1]
    assert columns_of_top(
        [0, NAN, NAN, NAN, NAN, 0, NAN, 1, NAN, 1, NAN, NAN, 0, 0, NAN, NAN, 1], 1, False
    ) == [7]


def test_unsorted_is_in_the_order_of_tensorflow():
    x = np.array([[0.1, 0.3, 0.2, 0.4], [0.1, 0.4, 0.3, 0.2]])
    assert top_k(x, 3, sorted=False)[1] == [[2, 1, 3], [3, 1, 2]]
    assert top_k(np.array([2, 3, 1, 0, 4]), 3, sorted=False)[1] == [0, 1, 4]
    assert top_k(np.array([0, 4, 2, 1, 3]), 3, sorted=False)[1] == [2, 1, 4]


@given(
    x=hnp.arrays(
        np.int16, st.tuples(st.integers(1, 3), st.integers(1, 200)), elements=st.integers(-5, 5)
    ),
    data=st.data(),
    is_sorted=st.booleans(),
)
def test_against_a_stable_sort(x, data, is_sorted):
    k = data.draw(st.integers(0, x.shape[1]))
    wanted = [
        [i for _, i in sorted((-value, i) for i, value in enumerate(row))][:k] for row in x.tolist()
    ]
    values, indices = raw_ops.TopKV2(input=x, k=np.int32(k), sorted=is_sorted)
    assert np.take_along_axis(x, indices, 1).tolist() == values.tolist()
    found = indices.tolist() if is_sorted else [sorted(row) for row in indices.tolist()]
    assert found == (wanted if is_sorted else [sorted(row) for row in wanted])


@pytest.mark.parametrize(
    ("shape", "k", "message"),
    [
        ((2, 3), 4, "input must have at least k columns. Had 3, needed 4"),
        ((2, 3), -1, "Need k >= 0, got -1"),
        ((), 0, "input must be >= 1-D"),
        ((3,), [1], "k must be scalar"),
    ],
)
def test_wrong_k(shape, k, message):
    with pytest.raises(InvalidArgumentError, match=message):
        top_k(np.zeros(shape, np.float32), k)


def test_approx_top_k_is_exact():
    values, indices = raw_ops.ApproxTopK(input=np.array([[1, 5, 3]], np.float32), k=2)
    assert values.tolist() == [[5, 3]]
    assert indices.tolist() == [[1, 2]]


def test_in_top_k():
    predictions = np.array([[0.1, 0.3, 0.2], [0.5, 0.5, 0.1], [NAN, 1, 0], [1, 2, 3]], np.float32)
    targets = np.array([2, 1, 1, 3], np.int32)
    for k, expected in [(1, [False, True, False, False]), (2, [True, True, False, False])]:
        args = {"predictions": predictions, "targets": targets}
        assert raw_ops.InTopK(**args, k=k).tolist() == expected
        assert raw_ops.InTopKV2(**args, k=np.int32(k)).tolist() == expected
    with pytest.raises(InvalidArgumentError, match="4 must match length of targets 2"):
        raw_ops.InTopK(predictions=predictions, targets=targets[:2], k=1)


def test_nth_element():
    x = np.array([[4, 1, 3], [9, 9, 0]], np.int32)
    assert raw_ops.NthElement(input=x, n=1).tolist() == [3, 9]
    assert raw_ops.NthElement(input=x, n=0, reverse=True).tolist() == [4, 9]
    with pytest.raises(InvalidArgumentError, match="last dimension > n = 3"):
        raw_ops.NthElement(input=x, n=3)


def test_a_recall_of_nan_is_let_pass_where_it_is_not_used():
    x = np.array([[1, 5, 3]], np.float32)
    values, _ = raw_ops.ApproxTopK(input=x, k=2, recall_target=float("nan"))
    assert values.tolist() == [[5, 3]]
    with Graph().as_default():
        assert raw_ops.ApproxTopK(input=x, k=2, recall_target=float("nan"))[0].shape.as_list() == [
            1,
            2,
        ]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.uint8])
@pytest.mark.parametrize("levels", [1, 3, 10**6], ids=["all equal", "many equal", "different"])
@pytest.mark.parametrize("k", [1, 7, 300, 3000])
def test_long_rows(dtype, levels, k):
    draw = np.random.default_rng(k)
    x = (draw.integers(0, levels, (2, 5000)) % 60_000).astype(dtype)
    x[1].sort()
    if x.dtype.kind == "f":
        x[:, ::3] = -np.inf
    expected = [sorted(range(5000), key=lambda i: (-row[i], i))[:k] for row in x.tolist()]
    values, places = raw_ops.TopKV2(input=x, k=np.int32(k))
    np.testing.assert_array_equal(places, np.int32(expected), strict=True)
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, 1), strict=True)
