"""Kernels for XLA of the array ops: what values known only at run time do, and what is refused."""

from typing import Any

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.opdef import global_op_registry
from opkernel.testing.op_runs import node_of
from opkernel.types import as_dtype
from opkernel.xla import XlaArgument, XlaCompiler

pytestmark = pytest.mark.jax

MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


def compiled(op: str, *inputs: Any, constants: tuple[int, ...] = (), **attrs: Any) -> Any:
    """The first output of an op; the inputs at the places `constants` are known at compile time."""
    arrays = [np.asarray(value) for value in inputs]
    arguments = [
        XlaArgument.of_constant(array)
        if place in constants
        else XlaArgument.parameter(as_dtype(array.dtype), array.shape)
        for place, array in enumerate(arrays)
    ]
    node = node_of(global_op_registry().look_up_op_def(op), attrs)
    results, _ = XlaCompiler().compile_single_op(node, arguments).run(arrays)
    return results[0]


def ints(*values: int) -> Any:
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("begin", "block"), [((1, 2), [[6, 7], [10, 11]]), ((2, 9), [[6, 7], [10, 11]])]
)
def test_a_block_may_start_anywhere_and_is_moved_inside(begin: Any, block: Any) -> None:
    found = compiled(
        "Slice",
        MATRIX,
        ints(*begin),
        ints(2, 2),
        constants=(2,),
        T=as_dtype("float"),
        Index=as_dtype("int32"),
    )
    np.testing.assert_array_equal(found, block)


def test_what_is_left_behind_an_unknown_start_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="must be a compile-time constant"):
        compiled(
            "Slice",
            MATRIX,
            ints(1, 0),
            ints(-1, 2),
            constants=(2,),
            T=as_dtype("float"),
            Index=as_dtype("int32"),
        )


STRIDED = {"T": as_dtype("float"), "Index": as_dtype("int32")}


@pytest.mark.parametrize(("row", "taken"), [(1, 1), (-1, 2), (7, 2)])
def test_the_index_of_a_row_may_be_known_late(row: int, taken: int) -> None:
    """`x[row, ::-1, None]`."""
    found = compiled(
        "StridedSlice",
        *(MATRIX, ints(row, 0, 0), ints(row + 1, 0, 0), ints(1, -1, 1)),
        constants=(3,),
        **STRIDED,
        begin_mask=2,
        end_mask=2,
        new_axis_mask=4,
        shrink_axis_mask=1,
    )
    np.testing.assert_array_equal(found, MATRIX[taken, ::-1, None])


def test_the_length_of_a_slice_must_be_known() -> None:
    with pytest.raises(InvalidArgumentError, match="must be a compile-time constant"):
        compiled("StridedSlice", MATRIX, ints(0), ints(2), ints(1), constants=(3,), **STRIDED)


def test_a_gradient_and_an_update_at_a_late_index() -> None:
    at = ints(1), ints(2), ints(1)
    row = np.full(4, 9, np.float32)
    expected = np.zeros((3, 4), np.float32)
    expected[1] = 9
    found = compiled(
        "StridedSliceGrad", ints(3, 4), *at, row, constants=(0, 3), **STRIDED, shrink_axis_mask=1
    )
    np.testing.assert_array_equal(found, expected)
    found = compiled(
        "TensorStridedSliceUpdate", MATRIX, *at, row, constants=(3,), **STRIDED, shrink_axis_mask=1
    )
    np.testing.assert_array_equal(found, np.where(expected == 9, expected, MATRIX))


@pytest.mark.parametrize("bad", [-1, 3])
def test_updates_out_of_bounds_are_dropped(bad: int) -> None:
    indices, updates = np.array([[bad], [1]], np.int32), np.ones((2, 4), np.float32)
    expected = MATRIX + np.array([[0], [1], [0]], np.float32)
    types: dict[str, Any] = {"T": as_dtype("float"), "Tindices": as_dtype("int32")}
    found = compiled("TensorScatterAdd", MATRIX, indices, updates, **types)
    np.testing.assert_array_equal(found, expected)
    found = compiled(
        "UnsortedSegmentSum", updates, ints(bad, 1), np.int32(3), constants=(2,), **types
    )
    np.testing.assert_array_equal(found, expected - MATRIX)


@pytest.mark.parametrize(("index", "taken"), [(-1, 0), (3, 2)])
def test_rows_out_of_bounds_are_those_at_the_border(index: int, taken: int) -> None:
    types: dict[str, Any] = {"Tparams": as_dtype("float"), "Tindices": as_dtype("int32")}
    np.testing.assert_array_equal(
        compiled(
            "GatherV2",
            MATRIX,
            ints(index),
            np.int32(0),
            constants=(2,),
            **types,
            Taxis=as_dtype("int32"),
        ),
        MATRIX[[taken]],
    )
    np.testing.assert_array_equal(compiled("GatherNd", MATRIX, ints(index), **types), MATRIX[taken])
    ignored = compiled("GatherNd", MATRIX, ints(index), **types, bad_indices_policy="IGNORE")
    np.testing.assert_array_equal(ignored, np.zeros(4))


def test_segments_of_sorted_ids() -> None:
    """[0 + 4, no rows, 8]."""
    types: dict[str, Any] = {"T": as_dtype("float"), "Tindices": as_dtype("int32")}
    found = compiled(
        "SegmentSumV2", MATRIX[:, 0], ints(0, 0, 2), np.int32(3), constants=(2,), **types
    )
    np.testing.assert_array_equal(found, [4, 0, 8])


def test_images_with_the_depth_first() -> None:
    images = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    attrs: dict[str, Any] = {"T": as_dtype("float"), "block_size": 2, "data_format": "NCHW"}
    deep = compiled("SpaceToDepth", images, **attrs)
    expected = images.reshape(1, 1, 2, 2, 2, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 4, 2, 2)
    np.testing.assert_array_equal(deep, expected)
    np.testing.assert_array_equal(compiled("DepthToSpace", deep, **attrs), images)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float64", "complex64"),
        ("complex64", "float64"),
        ("complex128", "int16"),
        ("int8", "int64"),
    ],
)
def test_bytes_are_read_anew(source: str, target: str) -> None:
    tensor = np.arange(1, 25, dtype=source).reshape(3, 8)
    found = compiled("Bitcast", tensor, T=as_dtype(source), type=as_dtype(target))
    expected = np.frombuffer(tensor.tobytes(), target)
    assert found.dtype == target
    assert found.shape[0] == 3
    np.testing.assert_array_equal(found.reshape(-1).view(np.uint8), expected.view(np.uint8))


def test_an_assertion_is_left_out() -> None:
    node = node_of(global_op_registry().look_up_op_def("Assert"), {"T": [as_dtype("float")]})
    false = np.array(False)
    arguments = [
        XlaArgument.parameter(as_dtype("bool"), ()),
        XlaArgument.parameter(as_dtype("float"), (3, 4)),
    ]
    assert XlaCompiler().compile_single_op(node, arguments).run([false, MATRIX]) == ([], [])


@pytest.mark.parametrize("op", ["Where", "Unique"])
def test_sizes_that_depend_on_values_are_refused(op: str) -> None:
    attrs: dict[str, Any] = {} if op == "Where" else {"out_idx": as_dtype("int32")}
    with pytest.raises(UnimplementedError, match="size of its output depends on the values"):
        compiled(op, ints(0, 2, 2), T=as_dtype("int32"), **attrs)
    found = compiled(op, ints(0, 2, 2), constants=(0,), T=as_dtype("int32"), **attrs)
    assert found.tolist() == ([[1], [2]] if op == "Where" else [0, 2])


def test_shapes_are_checked_when_the_program_is_compiled() -> None:
    with pytest.raises(OpError):
        compiled(
            "TensorScatterAdd",
            MATRIX,
            ints(1, 1)[:, None],
            MATRIX,
            T=as_dtype("float"),
            Tindices=as_dtype("int32"),
        )
    with pytest.raises(InvalidArgumentError, match="data format"):
        compiled(
            "SpaceToDepth",
            np.zeros((1, 1, 2, 2, 4), np.int8),
            T=as_dtype("int8"),
            block_size=2,
            data_format="NCHW_VECT_C",
        )
