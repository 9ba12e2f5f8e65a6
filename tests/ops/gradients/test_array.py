"""Gradients of the ops of opkernel.ops.array against finite differences."""

import numpy as np
import pytest

from opkernel.testing import check_gradient

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 3))
CUBE = RANDOM.normal(size=(2, 3, 4))
IMAGE = RANDOM.normal(size=(2, 4, 4, 2))


def ints(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("Identity", [X], {}),
        ("IdentityN", [[X, CUBE]], {}),
        ("PlaceholderWithDefault", [X], {"shape": None}),
        ("Reshape", [X, ints(3, 2)], {}),
        ("Reshape", [X, np.array([-1])], {}),
        ("ExpandDims", [X, np.array(1, np.int32)], {}),
        ("Squeeze", [X[:, None]], {"squeeze_dims": [1]}),
        ("Squeeze", [X[None]], {}),
        ("Transpose", [CUBE, ints(2, 0, 1)], {}),
        ("ConjugateTranspose", [X + 1j, ints(1, 0)], {}),
        ("Reverse", [X, np.array([True, False])], {}),
        ("ReverseV2", [X, ints(1)], {}),
        ("ReverseSequence", [CUBE, ints(2, 3)], {"seq_dim": 1, "batch_dim": 0}),
        ("Roll", [CUBE, ints(1, -2), ints(0, 2)], {}),
        ("Fill", [ints(2, 3), np.array(1.5)], {}),
        ("BroadcastTo", [X[:, None], ints(2, 4, 3)], {}),
        ("BroadcastTo", [X[0], ints(2, 1, 3)], {}),
        ("Tile", [X, ints(2, 3)], {}),
        ("Tile", [CUBE, np.array([1, 2, 1])], {}),
        ("Pad", [X, np.array([[1, 0], [2, 3]])], {}),
        ("PadV2", [X, np.array([[1, 0], [2, 3]], np.int32), np.array(0.5)], {}),
        ("MirrorPad", [X, np.array([[1, 0], [2, 1]])], {"mode": "REFLECT"}),
        ("MirrorPad", [X, np.array([[1, 0], [2, 3]])], {"mode": "SYMMETRIC"}),
        ("MirrorPadGrad", [CUBE[0], np.array([[1, 0], [1, 1]])], {"mode": "SYMMETRIC"}),
        ("Diag", [X], {}),
        ("DiagPart", [RANDOM.normal(size=(3, 3))], {}),
        ("MatrixBandPart", [CUBE, np.array(1), np.array(0)], {}),
        ("SpaceToBatch", [IMAGE, np.array([[1, 1], [0, 2]])], {"block_size": 2}),
        ("BatchToSpace", [CUBE[..., None].repeat(2, 0), np.array([[0, 1], [1, 0]])], {"block_size": 2}),
        ("SpaceToBatchND", [IMAGE, ints(2, 2), np.array([[0, 0], [1, 1]])], {}),
        ("BatchToSpaceND", [CUBE.repeat(2, 0), ints(2), np.array([[0, 1]])], {}),
        ("SpaceToDepth", [IMAGE], {"block_size": 2}),
        ("DepthToSpace", [IMAGE.repeat(2, 3)], {"block_size": 2}),
    ],
)  # fmt: skip
def test_of_moves(op, inputs, attrs):
    check_gradient(op, inputs, attrs, without=[2] if op == "PadV2" else [])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_of_putting_together_and_taking_apart(axis):
    place = np.array(axis, np.int32)
    check_gradient("Pack", [[X, X * 2]], {"axis": axis})
    check_gradient("Unpack", [X], {"axis": axis, "num": X.shape[axis]})
    check_gradient("Concat", [place, [X, X * 2]])
    check_gradient("ConcatV2", [[X, X * 2, X], place])
    check_gradient("Split", [place, np.kron(X, np.ones((2, 2)))], {"num_split": 2})
    sizes = np.array([1, X.shape[axis] - 1])
    check_gradient("SplitV", [X, sizes, place], {"num_split": 2})


def test_of_slices():
    check_gradient("Slice", [CUBE, ints(0, 1, 2), ints(2, -1, 1)])
    check_gradient("StridedSlice", [CUBE, ints(0, -1, 3), ints(2, 0, 0), ints(1, -1, -2)])
    attrs = {"shrink_axis_mask": 1, "new_axis_mask": 2, "ellipsis_mask": 4}
    check_gradient("StridedSlice", [CUBE, ints(1, 0, 0), ints(0, 0, 0), ints(1, 1, 1)], attrs)
    part = [ints(0, 1), ints(2, 3), ints(1, 1)]
    check_gradient("StridedSliceGrad", [ints(2, 3), *part, X[:, :2]])
    check_gradient("TensorStridedSliceUpdate", [X, *part, X[:, 1:]])
    check_gradient("TensorStridedSliceUpdate", [X, *part, X[0, 1:]])


OF_INT16 = np.array([1, 0], np.int16)


@pytest.mark.parametrize(
    "indices", [ints(1, 0, 1), np.array([[0], [1]], np.int64), np.array(1), OF_INT16]
)
def test_of_gathers(indices):
    if indices.dtype != np.int16:
        check_gradient("Gather", [CUBE, indices])
    for axis in (0, 1, 2, -1):
        check_gradient("GatherV2", [CUBE, indices, np.array(axis, np.int32)])


def test_of_gathers_in_batches():
    indices = np.array([[2, 0], [1, 1]], np.int32)
    for axis in (1, 2, -1):
        check_gradient("GatherV2", [CUBE, indices, np.array(axis, np.int32)], {"batch_dims": 1})
    deep = np.array([[[3, 0], [1, 1], [0, 2]]] * 2)
    check_gradient("GatherV2", [CUBE, deep, np.array(2, np.int32)], {"batch_dims": 2})


def test_of_points():
    check_gradient("GatherNd", [CUBE, np.array([[0, 1], [1, 2], [0, 1]])])
    check_gradient("GatherNd", [CUBE, np.array([[1], [1]])])
    check_gradient("GatherNd", [CUBE, np.array([[[0, 1, 2]], [[1, 2, 3]]])])


@pytest.mark.parametrize("op", ["Update", "Add", "Sub", "Max", "Min"])
def test_of_scatters_into_tensors(op):
    updates = np.array([[0.3, 2.4, -1.2]])
    check_gradient(f"TensorScatter{op}", [X, ints(1)[:, None], updates])


def test_of_scatters():
    places = np.array([[1], [3], [1]])
    check_gradient("ScatterNd", [places, CUBE[0, :, :2], np.array([5, 2])])
    check_gradient("ScatterNdNonAliasingAdd", [X, np.array([[0, 1], [0, 1]]), np.array([0.5, 1])])


def test_of_diagonals_of_matrices():
    zero, square = np.array(0.0), RANDOM.normal(size=(2, 3, 3))
    check_gradient("MatrixDiag", [X])
    check_gradient("MatrixDiagPart", [CUBE])
    check_gradient("MatrixSetDiag", [square, X])
    wide, band = ints(-1, 1), RANDOM.normal(size=(2, 3, 3))
    sizes = [np.array(3, np.int32), np.array(3, np.int32)]
    for version, attrs in (
        ("V2", {}),
        ("V3", {"align": "RIGHT_LEFT"}),
        ("V3", {"align": "LEFT_RIGHT"}),
    ):
        check_gradient(f"MatrixDiag{version}", [band, wide, *sizes, zero], attrs, without=[4])
        check_gradient(f"MatrixDiagPart{version}", [square, wide, zero], attrs, without=[2])
        check_gradient(f"MatrixSetDiag{version}", [square, band, wide], attrs)
