import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, NotFoundError

TENSOR = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
DTYPES = [np.int16, np.int32, np.int64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [1, [1, 0], [[0, 1], [1, 1]], []])
def test_gather(axis, indices, dtype):
    indices = np.array(indices, dtype)
    result = raw_ops.GatherV2(params=TENSOR, indices=indices, axis=axis)
    np.testing.assert_array_equal(result, np.take(TENSOR, indices.astype(int), axis))


@pytest.mark.parametrize(("batch_dims", "axis"), [(1, 1), (1, 2), (2, 2), (-1, 2)])
def test_each_of_a_batch_has_its_own_indices(batch_dims, axis):
    indices = np.array([[0, 1, 2], [2, 2, 0]])
    result = raw_ops.GatherV2(params=TENSOR, indices=indices, axis=axis, batch_dims=batch_dims)
    one_by_one = [
        np.take(TENSOR[place], indices[place], axis - len(place))
        for place in np.ndindex(indices.shape[:batch_dims])
    ]
    np.testing.assert_array_equal(result.reshape(np.shape(one_by_one)), one_by_one)


@pytest.mark.parametrize(
    ("batch_dims", "rank", "stated"), [(-2, 4, 6), (-1, 3, 5), (0, 4, 4), (1, 3, 3), (2, 2, 2)]
)
def test_the_rank_where_the_axis_is_unknown(batch_dims, rank, stated):
    """As by TensorFlow, a negative `batch_dims` is stated to add dimensions; no value has them."""
    with opkernel.Graph().as_default() as graph:
        axis = opkernel.placeholder(opkernel.int32, [])
        params = opkernel.placeholder(opkernel.float32, [2, 3, 4])
        indices = np.zeros((2, 3), np.int32)
        result = raw_ops.GatherV2(params=params, indices=indices, axis=axis, batch_dims=batch_dims)
        ranks = opkernel.Session(graph).run(
            [raw_ops.Rank(input=result), raw_ops.Shape(input=result)], {params: TENSOR, axis: 2}
        )
    assert result.shape.rank == stated
    assert (ranks[0], len(ranks[1])) == (rank, rank)


def test_a_gathered_string_is_the_string():
    words = np.array([b"a\0", b"b"], object)
    assert raw_ops.Gather(params=words, indices=np.int32(0)) == b"a\0"
    assert raw_ops.Gather(params=words, indices=[[1], [0]]).tolist() == [[b"b"], [b"a\0"]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [3, -1, -3])
def test_indices_do_not_count_from_the_end(bad, dtype):
    indices = np.array([[0, 2], [bad, 1]], dtype)
    with pytest.raises(InvalidArgumentError, match=rf"indices\[1,0\] = {bad} is not in \[0, 3\)"):
        raw_ops.GatherV2(params=TENSOR, indices=indices, axis=1)
    with pytest.raises(InvalidArgumentError, match=rf"indices = {bad} is not in \[0, 3\)"):
        raw_ops.GatherV2(params=TENSOR, indices=dtype(bad), axis=1)


def test_a_negative_narrow_index_is_bad_in_a_long_tensor_too():
    with pytest.raises(InvalidArgumentError, match=r"indices\[0\] = -1 is not in \[0, 70000\)"):
        raw_ops.GatherV2(params=np.zeros(70000), indices=np.array([-1], np.int16), axis=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"axis": 3}, "params must be at least 4 dimensional"),
        ({"axis": -4}, "params must be at least 4 dimensional"),
        ({"axis": [0, 1]}, "axis must be scalar"),
        (
            {"axis": 0, "batch_dims": 1},
            r"batch_dims \(1\) must be less than or equal to axis \(0\)",
        ),
        ({"axis": 2, "batch_dims": 3}, r"batch_dims in the range \[-2, 2\], but got 3"),
        ({"axis": 2, "batch_dims": 2}, r"params.shape\[1\]: 3 should be equal to .*\[1\]: 1"),
    ],
)
def test_gather_refuses(arguments, message):
    indices = np.zeros((2, 1), np.int32)
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.GatherV2(params=TENSOR, indices=indices, **arguments)


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([[1, 0], [0, 2]], [TENSOR[1, 0], TENSOR[0, 2]]),
        ([1, 2, 3], 23),
        ([[[1]]], [[TENSOR[1]]]),
        (np.zeros((2, 0)), [TENSOR, TENSOR]),
    ],
)
def test_gather_nd(indices, expected):
    result = raw_ops.GatherNd(params=TENSOR, indices=np.array(indices, np.int32))
    np.testing.assert_array_equal(result, expected)


def test_gather_nd_with_bad_indices():
    arguments = {"params": np.array([5.0, 6]), "indices": [[[1]], [[2]]]}
    with pytest.raises(InvalidArgumentError, match=r"indices\[1,0\] = \[2\] .* param shape \[2\]"):
        raw_ops.GatherNd(**arguments)
    ignored = raw_ops.GatherNd(**arguments, bad_indices_policy="IGNORE")
    assert ignored.tolist() == [[6], [0]]
    with pytest.raises(NotFoundError):
        raw_ops.GatherNd(**arguments, bad_indices_policy="SHRUG")


@pytest.mark.parametrize(
    ("params", "indices", "message"),
    [
        (np.float32(1), [0], "params must be at least a vector"),
        (TENSOR, 0, "indices must be at least a vector"),
        (TENSOR, [0, 0, 0, 0], "must be <= params rank; saw: 4 vs. 3"),
        (TENSOR[:, :0], [[0]], r"params is empty.  Params shape: \[2,0,4\]"),
    ],
)
def test_gather_nd_refuses(params, indices, message):
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.GatherNd(params=params, indices=indices)
