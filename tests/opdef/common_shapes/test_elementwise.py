import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.opdef import InferenceContext, ShapeAndType, common_shapes
from opkernel.proto import NodeDef, OpDef
from opkernel.types import DataType, PartialTensorShape

C = InferenceContext(OpDef(), NodeDef(), [])


def broadcast(*shapes, **options):
    first, second = (C.make_shape(s) if isinstance(s, list | tuple) else s for s in shapes)
    return common_shapes.broadcast_binary_op_output_shape(C, first, second, **options)


@pytest.mark.parametrize(
    ("inputs", "output"),
    [
        (("?", "[1,2]"), "?"),
        (("[1,2]", "?"), "?"),
        (("[]", "[2,3]"), "[d1_0,d1_1]"),
        (("[2,3]", "[]"), "[d0_0,d0_1]"),
        (("[2,1]", "[3]"), "[d0_0,d1_0]"),
        (("[1,4]", "[3,1]"), "[d1_0,d0_1]"),
        (("[1]", "[1,1]"), "[d1_0,d1_1]"),
        (("[?,1]", "[3,?]"), "[d1_0,d1_1]"),
        (("[?]", "[1]"), "[d0_0]"),
        (("[?]", "[?]"), "[?]"),
        (("[?]", "[0]"), "[?]"),
        (("[2,3]", "[2,3]"), "[d0_0,d0_1]"),
    ],
)
def test_broadcasting_keeps_the_handles_that_decide(infer, inputs, output):
    assert infer(common_shapes.broadcast_binary_op_shape, *inputs) == output
    assert infer(common_shapes.broadcast_binary_op_output_shape_fn(0), *inputs) == output


def test_an_unknown_dimension_broadcasts_with_itself():
    shape = C.make_shape([None])
    assert broadcast(shape, shape).dims == shape.dims


def test_shapes_that_cannot_be_broadcast():
    with pytest.raises(InvalidArgumentError, match="Dimensions must be equal, but are 2 and 3"):
        broadcast([2], [3])
    assert repr(broadcast([2], [3], incompatible_shape_error=False)) == "[]"
    assert repr(broadcast([None], [3], incompatible_shape_error=False)) == "?"
    assert repr(broadcast([1, 2], [3, 1], incompatible_shape_error=False)) == "[3,2]"


known = st.lists(st.integers(0, 3), max_size=4)


def numpy_broadcast(*shapes):
    try:
        return list(np.broadcast_shapes(*map(tuple, shapes)))
    except ValueError:
        return None


@given(known, known)
def test_known_shapes_broadcast_as_in_numpy(first, second):
    expected = numpy_broadcast(first, second)
    if expected is None:
        with pytest.raises(InvalidArgumentError):
            broadcast(first, second)
    else:
        assert [dim.value for dim in broadcast(first, second).dims] == expected


@given(known, known, known)
def test_broadcasting_is_associative(first, second, third):
    if numpy_broadcast(first, second, third) is not None:
        left = broadcast(broadcast(first, second), C.make_shape(third))
        right = broadcast(C.make_shape(first), broadcast(second, third))
        assert (
            repr(left) == repr(right) == repr(C.make_shape(numpy_broadcast(first, second, third)))
        )


@given(known, known, st.data())
def test_hiding_sizes_never_contradicts_the_known_answer(first, second, data):
    expected = numpy_broadcast(first, second)
    assume(expected is not None)
    hidden = [
        [data.draw(st.sampled_from([size, None])) for size in shape] for shape in (first, second)
    ]
    partial = broadcast(*hidden)
    C.merge(partial, C.make_shape(expected))


def test_unchanged_shapes(infer):
    fns = common_shapes
    assert infer(fns.unchanged_shape, "[2,?]") == "in0"
    assert infer(fns.unchanged_shape_with_rank(2), "[2,?]") == "in0"
    assert infer(fns.unchanged_shape_with_rank(2), "?") == "[?,?]"
    assert infer(fns.unchanged_shape_with_rank_at_least(1), "[2,?]") == "in0"
    assert infer(fns.unchanged_shape_with_rank_at_most(3), "[2,?]") == "in0"
    for fn in (
        fns.unchanged_shape_with_rank(3),
        fns.unchanged_shape_with_rank_at_least(3),
        fns.unchanged_shape_with_rank_at_most(1),
    ):
        with pytest.raises(InvalidArgumentError, match=r"rank [13] but is rank 2"):
            infer(fn, "[2,?]")
    assert infer(fns.merge_both_inputs_shape_fn, "[2,?]", "[?,3]") == "[d0_0,d1_1]"


def test_unchanged_shape_passes_on_what_a_resource_holds(context):
    c = context(["[]"])
    held = [ShapeAndType(c.make_shape([2]), DataType.DT_FLOAT)]
    c.set_input_handle_shapes_and_types(0, held)
    common_shapes.unchanged_shape(c)
    assert c.output_handle_shapes_and_types(0) == held


def test_shapes_that_do_not_depend_on_inputs(infer, context):
    fns = common_shapes
    assert infer(fns.unknown_shape, "[2]", outputs=2) == "?;?"
    assert infer(fns.scalar_shape, "[2]") == "[]"
    c = context(["[2]"])
    fns.no_outputs(c)
    assert c.output(0) is None


def test_shapes_given_by_attrs_and_tensors(infer):
    fns = common_shapes
    partial = PartialTensorShape([2, None])
    assert infer(fns.explicit_shape, attrs={"shape": partial}) == "[2,?]"
    shapes = [partial, PartialTensorShape(None)]
    assert infer(fns.explicit_shapes, outputs=2, attrs={"shapes": shapes}) == "[2,?];?"
    with pytest.raises(InternalError):
        infer(fns.explicit_shapes, attrs={"shapes": []})
    with pytest.raises(InvalidArgumentError, match="2 shapes given for 1 outputs"):
        infer(fns.explicit_shapes, attrs={"shapes": shapes})
    constants = {0: np.array([3, 4], np.int32)}
    assert infer(fns.random_shape, "[2]", constants=constants) == "[3,4]"
    assert infer(fns.random_shape, "[2]") == "[?,?]"
