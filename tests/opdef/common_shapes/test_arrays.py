"""Reductions, concatenation, slices, gathers, scatters, and what resources hold."""

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import common_shapes
from opkernel.types import DataType, PartialTensorShape


def ints(*values, dtype=np.int32):
    return np.array(values, dtype)


@pytest.mark.parametrize(
    ("shape", "axes", "keep_dims", "output"),
    [
        ("[2,4,5]", ints(1), False, "[d0_0,d0_2]"),
        ("[2,4,5]", np.int32(-1), False, "[d0_0,d0_1]"),
        ("[2,4,5]", ints(0, 1, 2), False, "[]"),
        ("[2,4,5]", ints(-2, -1), True, "[d0_0,1,1]"),
        ("[2,4,5]", ints(1, 1), False, "[d0_0,d0_2]"),
        ("[2,4,5]", ints(1, dtype=np.int64), True, "[d0_0,1,d0_2]"),
        ("[2,4,5]", ints(), False, "[d0_0,d0_1,d0_2]"),
        ("[2,4,5]", None, False, "?"),
        ("[2,4,5]", None, True, "[?,?,?]"),
        ("?", ints(1), True, "?"),
    ],
)
def test_reduction(infer, shape, axes, keep_dims, output):
    axes_shape = "[]" if axes is not None and axes.ndim == 0 else "[?]"
    attrs = {"keep_dims": keep_dims}
    fn = common_shapes.reduction_shape
    assert infer(fn, shape, axes_shape, attrs=attrs, constants={1: axes}) == output


@pytest.mark.parametrize(
    ("axes", "facts"),
    [
        (ints(3), "Invalid reduction dimension 3 for input with 3 dimensions"),
        (ints(-4), "Invalid reduction dimension -4 for input with 3 dimensions"),
        (np.array([1.0]), "int32 or int64"),
    ],
)
def test_reduction_refuses(infer, axes, facts):
    with pytest.raises(InvalidArgumentError, match=facts):
        infer(
            common_shapes.reduction_shape,
            "[2,4,5]",
            "[1]",
            attrs={"keep_dims": False},
            constants={1: axes},
        )


def test_old_graphs_may_hold_axes_in_a_matrix(infer):
    fn, attrs = common_shapes.reduction_shape, {"keep_dims": False}
    constants = {1: ints(-1, -2).reshape(2, 1)}
    old = infer(fn, "[2,4,5]", "[2,1]", attrs=attrs, constants=constants, graph_def_version=20)
    assert old == "[d0_0]"
    with pytest.raises(InvalidArgumentError, match="at most rank 1 but is rank 2"):
        infer(fn, "[2,4,5]", "[2,1]", attrs=attrs, constants=constants, graph_def_version=21)
    with pytest.raises(InvalidArgumentError, match="at most rank 1 but is rank 2"):
        infer(fn, "[2,4,5]", "[2,1]", attrs=attrs, constants=constants)


@pytest.mark.parametrize(
    ("shapes", "axis", "output"),
    [
        (["[1,?,3]", "[?,2,3]"], 0, "[?,d1_1,d1_2]"),
        (["[1,2,3]", "[1,5,3]"], 1, "[d0_0,7,d0_2]"),
        (["[1,2,3]", "[1,2,4]"], -1, "[d0_0,d0_1,7]"),
        (["[1,2,3]", "[5,2,3]"], -3, "[6,d0_1,d0_2]"),
        (["?", "[1,5]"], 1, "[d1_0,?]"),
        (["[2]", "[3]", "[4]"], 0, "[9]"),
        (["?", "[1,2]"], None, "[?,?]"),
        (["?", "?"], None, "?"),
        (["?", "?"], 0, "?"),
    ],
)
def test_concat(infer, shapes, axis, output):
    constant = None if axis is None else np.int32(axis)
    last = common_shapes.concat_v2_shape
    assert infer(last, *shapes, "[]", constants={len(shapes): constant}) == output
    first = infer(common_shapes.concat_shape, "[]", *shapes, constants={0: constant})
    moved = output
    for i in reversed(range(len(shapes))):
        moved = moved.replace(f"d{i}_", f"d{i + 1}_")
    assert first == moved


@pytest.mark.parametrize(
    ("shapes", "axis", "facts"),
    [
        (["[1,2]", "[1,2,3]"], None, "rank 2 but is rank 3"),
        (["[]", "[]"], None, "Can't concatenate scalars"),
        (["[]", "[]"], 0, "at least rank 1 but is rank 0"),
        (["[]", "[]"], -1, "at least rank 1 but is rank 0"),
        (["[1]", "[1]"], 1, "at least rank 2 but is rank 1"),
        (["[1,2]", "[3,3]"], 0, "must be equal, but are 2 and 3"),
        (["[1,2]", "[1,2]"], 2, "at least rank 3 but is rank 2"),
        (["[1,2]", "[1,2]"], -3, "at least rank 3 but is rank 2"),
    ],
)
def test_concat_refuses(infer, shapes, axis, facts):
    constants = {2: None if axis is None else np.int32(axis)}
    with pytest.raises(InvalidArgumentError, match=facts):
        infer(common_shapes.concat_v2_shape, *shapes, "[]", constants=constants)


def test_concat_wants_a_scalar_axis(infer):
    with pytest.raises(InvalidArgumentError, match="rank 0 but is rank 1"):
        infer(common_shapes.concat_v2_shape, "[1]", "[1]", "[1]")


def test_quantised_concat_reads_the_axis_after_its_inputs(infer):
    def fn(c):
        common_shapes.quantized_concat_v2_shape(c, 2)

    constants = {2: np.int32(0)}
    assert infer(fn, "[1,2]", "[3,2]", "[]", "[]", "[]", constants=constants) == "[4,d0_1]"


@pytest.mark.parametrize(
    ("shape", "begin", "size", "output"),
    [
        ("[2,3,4,5]", ints(0, 1, 2, 1), ints(1, 2, -1, -1), "[1,2,2,4]"),
        ("[2,?]", ints(0, 1), ints(-1, -1), "[d0_0,?]"),
        ("[2,3]", None, ints(1, 2), "[1,2]"),
        ("[2,3]", None, ints(-1, 2), "[?,2]"),
        ("[2,3]", ints(0, 1), None, "[?,?]"),
        ("?", None, None, "?"),
    ],
)
def test_slice(infer, shape, begin, size, output):
    known = [v for v in (begin, size) if v is not None]
    length = f"[{known[0].size}]" if known else "[?]"
    constants = {1: begin, 2: size}
    found = infer(common_shapes.slice_shape, shape, length, length, constants=constants)
    assert found == output


def test_slice_of_partly_known_size(infer):
    fn = common_shapes.slice_shape
    assert infer(fn, "[4,5]", "[2]", "[2]", as_shapes={2: "[?,3]"}) == "[?,3]"


@pytest.mark.parametrize(
    ("shapes", "size", "facts"),
    [
        (["[2,3]", "[1]", "[2]"], None, "must be equal, but are 1 and 2"),
        (["[2,3]", "[3]", "[3]"], None, "rank 3 but is rank 2"),
        (["[2,3]", "[2]", "[2]"], ints(1, -2), "dimension 1 of length 3.*was -2"),
        (["[2,3]", "[]", "[2]"], None, "rank 1 but is rank 0"),
    ],
)
def test_slice_refuses(infer, shapes, size, facts):
    with pytest.raises(InvalidArgumentError, match=facts):
        infer(common_shapes.slice_shape, *shapes, constants={2: size})


@pytest.mark.parametrize(
    ("params", "indices", "output"),
    [
        ("[1,2,3]", "[7,2]", "[d1_0,d0_2]"),
        ("[1,2,3]", "[7,8,3]", "[d1_0,d1_1]"),
        ("[1,2,3]", "[0]", "[d0_0,d0_1,d0_2]"),
        ("?", "[7,2]", "?"),
        ("[1,2,3]", "[7,?]", "?"),
    ],
)
def test_gather_nd(infer, params, indices, output):
    assert infer(common_shapes.gather_nd_shape, params, indices) == output


def test_gather_nd_refuses_more_indices_than_dimensions(infer):
    with pytest.raises(InvalidArgumentError, match=r"shape: \[1,4\] and params shape: \[1,2,3\]"):
        infer(common_shapes.gather_nd_shape, "[1,2,3]", "[1,4]")


def test_gather_nd_of_a_variable(infer):
    held = [[(PartialTensorShape([4, 5]), DataType.DT_FLOAT)]]
    fn, attrs = common_shapes.gather_nd_shape, {"dtype": DataType.DT_FLOAT}
    assert infer(fn, "[]", "[7,1]", attrs=attrs, handle_shapes=held) == "[d1_0,5]"
    attrs = {"dtype": DataType.DT_INT32}
    with pytest.raises(InvalidArgumentError, match="Expected float got int32"):
        infer(fn, "[]", "[7,1]", attrs=attrs, handle_shapes=held)


def scatter(c):
    common_shapes.scatter_nd_shape(c, c.input(0), c.input(1), c.input(2))


@pytest.mark.parametrize(
    ("indices", "updates", "shape"),
    [
        ("[7,1]", "[7,3]", "[4,3]"),
        ("[7,2]", "[7]", "[4,3]"),
        ("[7,?]", "[8,9]", "[4,3]"),
        ("?", "[7]", "[4,3]"),
        ("[0,1]", "[0,3]", "[0,3]"),
        ("[7,1]", "[7,1]", "[1,1]"),
        ("[7,1]", "[]", "[4,3]"),
    ],
)
def test_scatter_nd(infer, indices, updates, shape):
    assert infer(scatter, indices, updates, shape) == "in2"


@pytest.mark.parametrize(
    ("indices", "updates", "shape", "facts"),
    [
        ("[7,1]", "[8,3]", "[4,3]", r"Dimensions \[0,1\) of indices\[shape=\[7,1\]\] = \[7\]"),
        ("[7,1]", "[7,5]", "[4,3]", r"Dimensions \[1,2\) of input\[shape=\[4,3\]\] = \[3\]"),
        ("[7,1]", "[7,3]", "[0,3]", "specified for empty input"),
        ("[0,1]", "[7,3]", "[0,3]", "specified for empty input"),
        ("[7,1]", "[0,3]", "[0,3]", "specified for empty input"),
        ("[1,1]", "[0]", "[0,3]", "specified for empty input"),
        ("[0,1]", "[1]", "[0]", "specified for empty input"),
        ("[7,1]", "[8]", "[4]", r"Dimensions \[0,1\) of indices"),
    ],
)
def test_scatter_nd_refuses(infer, indices, updates, shape, facts):
    with pytest.raises(InvalidArgumentError, match=facts):
        infer(scatter, indices, updates, shape)


@pytest.mark.parametrize(
    ("data", "ids", "count", "output"),
    [
        ("[2,3,4]", "[2]", np.int32(7), "[7,d0_1,d0_2]"),
        ("[2,3,4]", "[2,?]", np.int32(7), "[7,d0_2]"),
        ("[2,3,4]", "[2,3,4]", None, "[?]"),
        ("[2,3]", "?", np.int32(7), "?"),
        ("?", "[2]", np.int32(7), "?"),
    ],
)
def test_segment_reduction(infer, data, ids, count, output):
    fn = common_shapes.segment_reduction_with_num_segments_shape
    assert infer(fn, data, ids, "[]", constants={2: count}) == output


def test_segment_reduction_refuses(infer):
    fn = common_shapes.segment_reduction_with_num_segments_shape
    with pytest.raises(InvalidArgumentError, match="must be equal, but are 2 and 3"):
        infer(fn, "[2,3]", "[3]", "[]")
    with pytest.raises(InvalidArgumentError, match="must be non-negative but is -1"):
        infer(fn, "[2,3]", "[2]", "[]", constants={2: np.int32(-1)})


def test_reduce_scatter(infer):
    fn = common_shapes.reduce_scatter_shape
    assert infer(fn, "[8,3]", "[1,4]", "[]", constants={2: np.int32(0)}) == "[2,d0_1]"
    assert infer(fn, "[8,3]", "[1,4]", "[]") == "?"
    with pytest.raises(InvalidArgumentError, match="evenly divisible by 4 but is 3"):
        infer(fn, "[8,3]", "[1,4]", "[]", constants={2: np.int32(1)})
    with pytest.raises(InvalidArgumentError, match="should be rank 2"):
        infer(fn, "[8,3]", "[4]", "[]", constants={2: np.int32(0)})


@pytest.mark.parametrize(
    ("axes", "keep_dims", "output"),
    [(ints(1), False, "[2,4]"), (ints(-1, 0), True, "[1,3,1]"), (None, True, "?")],
)
def test_sparse_reduce(infer, axes, keep_dims, output):
    shapes = ["[?,3]", "[?]", "[3]", "[?]"]
    constants = {2: ints(2, 3, 4, dtype=np.int64), 3: axes}
    attrs = {"keep_dims": keep_dims}
    fn = common_shapes.sparse_reduce_shape
    assert infer(fn, *shapes, attrs=attrs, constants=constants) == output


def test_sparse_reductions_of_what_no_tensor_can_be(infer):
    fn, attrs = common_shapes.sparse_reduce_shape, {"keep_dims": False}
    shapes = ["[?,3]", "[?]", "[?]", "[?]"]
    for count, output in ((253, "[1]"), (254, "[1,1]"), (255, "?")):
        constants = {2: ints(*[1] * count, dtype=np.int64), 3: ints(*range(252))}
        assert infer(fn, *shapes, attrs=attrs, constants=constants) == output
    with pytest.raises(InvalidArgumentError, match="Number of dims in shape tensor must not be 0"):
        infer(fn, *shapes, attrs=attrs, constants={2: ints(dtype=np.int64), 3: ints(0)})
    assert infer(fn, *shapes, attrs=attrs, constants={2: ints(2, 3)}) == "?"
    assert infer(fn, *shapes, attrs=attrs, constants={3: ints(0)}) == "?"


@pytest.mark.parametrize(
    ("shapes", "facts"),
    [
        (["[2,3]", "[2]", "[3]"], None),
        (["?", "?", "?"], None),
        (["[?,3]", "[2]", "[3]"], None),
        (["[5,3]", "[10]", "[3]"], r"index \(5\) and values \(10\)"),
        (["[5,3]", "[5]", "[4]"], r"Index rank \(3\) and shape rank \(4\)"),
        (["[5]", "[5]", "[4]"], "rank 2 but is rank 1"),
        (["[5,3]", "[5,1]", "[3]"], "rank 1 but is rank 2"),
    ],
)
def test_sparse_tensors_are_checked(context, shapes, facts):
    c = context(shapes)
    inputs = [c.input(i) for i in range(3)]
    if facts is None:
        common_shapes.validate_sparse_tensor(c, *inputs)
    else:
        with pytest.raises(InvalidArgumentError, match=facts):
            common_shapes.validate_sparse_tensor(c, *inputs)


def test_an_unknown_variable_holds_something_unknown(context):
    (held,) = common_shapes.validate_variable_resource_handle(context(["[]"]))
    assert (repr(held.shape), held.dtype) == ("?", DataType.DT_INVALID)


def test_dataset_iterators_have_the_shapes_of_their_attr(infer):
    fn = common_shapes.dataset_iterator_shape
    attrs = {"output_shapes": [PartialTensorShape([2, None]), PartialTensorShape(None)]}
    assert infer(fn, "[]", outputs=2, attrs=attrs) == "[2,?];?"
    with pytest.raises(InvalidArgumentError, match=r"2 vs. 1"):
        infer(fn, "[]", attrs=attrs)


def test_ranges_of_quantised_values(infer):
    fn = common_shapes.quantize_v2_shape
    assert infer(fn, "[2,3]", "[]", "[]", outputs=3) == "in0;in2;in2"
    assert infer(fn, "[2,3]", "[3]", "[3]", outputs=3, attrs={"axis": 1}) == "in0;in2;in2"
    with pytest.raises(InvalidArgumentError, match="must be equal, but are 2 and 3"):
        infer(fn, "[2,3]", "[2]", "[2]", outputs=3, attrs={"axis": 1})
    with pytest.raises(InvalidArgumentError, match="at least -1, got -2"):
        infer(fn, "[2,3]", "[2]", "[2]", outputs=3, attrs={"axis": -2})
