"""What `infer_shapes` knows of tensors in lists: what was put into them, in loops, too."""

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel.graph.inference.tensor_facts import NO_ITEMS, ZERO_ITEMS, Relaxation, TensorFacts
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.types import DataType, PartialTensorShape

VARIANT = DataType.DT_VARIANT


def reserved(b, *element_shape, count=3):
    shape = b.constant(np.array(element_shape), "i4")
    return b.op("TensorListReserve", shape, b.constant(count), element_dtype=FLOAT)


def read(b, handle, *element_shape, index=0):
    shape = b.constant(np.array(element_shape), "i4")
    return b.op("TensorListGetItem", handle, b.constant(index), shape, element_dtype=FLOAT)


def stacked(b, handle, *element_shape):
    shape = b.constant(np.array(element_shape), "i4")
    return b.op("TensorListStack", handle, shape, element_dtype=FLOAT)


def put(b, handle, item, index=0):
    return b.op("TensorListSetItem", handle, b.constant(index), item, element_dtype=FLOAT)


def rows(b, name="x"):
    return b.op("Placeholder", dtype=FLOAT, shape=PartialTensorShape([None, 4]), name=name)


def known(b, tensor, **shapes):
    shapes = {f"{name}:0": shape for name, shape in shapes.items()}
    return b.graph.infer_shapes(shapes)[tensor].as_list()


def test_tensors_have_the_shape_of_what_was_set():
    b = Builder()
    x = rows(b)
    handle = put(b, put(b, reserved(b, -1, 4), x), b.op("Neg", x), index=1)
    assert known(b, read(b, handle, -1, 4), x=[2, 4]) == [2, 4]
    assert known(b, stacked(b, handle, -1, 4), x=[2, 4]) == [None, 2, 4]
    assert known(b, read(b, handle, 7, 4), x=[2, 4]) == [7, 4]  # zeros, if it was not set


def test_what_a_reader_asks_for_counts_where_it_contradicts_what_was_set():
    """The step tells the error."""
    b = Builder()
    handle = put(b, reserved(b, -1, -1), rows(b))
    assert known(b, read(b, handle, -1, 5), x=[2, 4]) == [None, 5]
    assert known(b, read(b, handle, -1, 4), x=[2, 4]) == [2, 4]


def test_tensors_of_unknown_rank_stack_to_what_is_asked_for():
    b = Builder()
    x = b.op("Placeholder", dtype=FLOAT, name="x")
    handle = b.op("TensorListReserve", b.constant(-1), b.constant(3), element_dtype=FLOAT)
    handle = put(b, handle, x)
    assert known(b, stacked(b, handle, -1, 4)) == [None, None, 4]
    assert known(b, stacked(b, handle, -1, 4), x=[2, 4]) == [None, 2, 4]


def test_tensors_that_are_put_at_the_end_and_taken_from_there():
    b = Builder()
    x = rows(b)
    handle = b.op("EmptyTensorList", b.constant(-1), b.constant(-1), element_dtype=FLOAT)
    for item in (x, b.op("Neg", x)):
        handle = b.op("TensorListPushBack", handle, item, element_dtype=FLOAT)
    pop = b.operation("TensorListPopBack", handle, b.constant(-1), element_dtype=FLOAT)
    again = b.operation("TensorListPopBack", pop.outputs[0], b.constant(-1), element_dtype=FLOAT)
    for op in (pop, again):
        assert known(b, op.outputs[1], x=[2, 4]) == [2, 4]


def test_tensors_of_two_shapes_have_what_these_agree_in():
    b = Builder()
    x, y = rows(b), rows(b, "y")
    handle = put(b, put(b, reserved(b, -1, 4), x), y, index=1)
    assert known(b, read(b, handle, -1, 4), x=[2, 4], y=[3, 4]) == [None, 4]
    assert known(b, read(b, handle, -1, 4), x=[2, 4], y=[2, 4]) == [2, 4]
    p = b.placeholder("p", BOOL)
    handle = b.cond(
        p,
        lambda handle, x, y: [put(b, handle, x)],
        lambda handle, x, y: [put(b, handle, y)],
        [reserved(b, -1, 4), x, y],
    )[0]
    assert known(b, read(b, handle, -1, 4), x=[2, 4], y=[3, 4]) == [None, 4]
    assert known(b, read(b, handle, -1, 4), x=[2, 4], y=[2, 4]) == [2, 4]


def loop_over(b, x):
    """A list of three tensors that a loop makes of one."""
    return b.while_loop(
        lambda i, handle, x: b.op("Less", i, b.constant(3)),
        lambda i, handle, x: [
            b.op("AddV2", i, b.constant(1)),
            b.op("TensorListSetItem", handle, i, b.op("Tanh", x), element_dtype=FLOAT, name="set"),
        ],
        [b.constant(0), reserved(b, -1, 4)],
        [x],
    )[1]


def test_a_loop_after_a_loop_knows_what_that_has_made():
    b = Builder()
    x = rows(b)
    first = stacked(b, loop_over(b, x), -1, 4)
    index = [b.constant(np.array([n]), "i4") for n in (0, 1, 1)]
    row = b.op("StridedSlice", first, *index, shrink_axis_mask=1)
    second = stacked(b, loop_over(b, row), -1, 4)
    assert known(b, second, x=[5, 4]) == [None, 5, 4]
    assert known(b, second) == [None, None, 4]
    value = np.arange(8, dtype="f4").reshape(2, 4)
    assert b.run(second, {x: value}).shape == (3, 2, 4)


def test_lists_go_through_functions():
    b = Builder()
    x = rows(b)
    types = [INT32, VARIANT, FLOAT]
    less = define(b, "less", types, lambda g, i, handle, x: [g.op("Less", i, g.constant(3))])
    turn = define(
        b,
        "turn",
        types,
        lambda g, i, handle, x: [
            g.op("AddV2", i, g.constant(1)),
            g.op("TensorListSetItem", handle, i, g.op("Tanh", x), element_dtype=FLOAT),
            x,
        ],
    )
    variables = [b.constant(0), reserved(b, -1, 4), x]
    loop = b.operation("StatelessWhile", variables, cond=less, body=turn, T=types)
    assert known(b, stacked(b, loop.outputs[1], -1, 4), x=[5, 4]) == [None, 5, 4]


def test_lists_of_other_ops_are_what_these_say():
    b = Builder()
    x = rows(b)
    handle = put(b, reserved(b, -1, 4), x)
    longer = b.op("TensorListResize", handle, b.constant(9))
    assert known(b, read(b, longer, -1, 4), x=[2, 4]) == [None, 4]
    unstacked = b.op(
        "TensorListFromTensor", x, b.constant(np.array([4]), "i4"), element_dtype=FLOAT
    )
    assert known(b, read(b, unstacked, 4), x=[2, 4]) == [4]


@pytest.mark.parametrize("same", [True, False])
def test_a_stack_of_shapes_that_are_all_the_same_is_known(same):
    b = Builder()
    x = b.op("Placeholder", dtype=FLOAT, shape=PartialTensorShape([2, 4]), name="x")
    y = x if same else b.op("Reshape", x, b.constant(np.array([4, 2]), "i4"))
    handle = b.op("EmptyTensorList", b.constant(-1), b.constant(-1), element_dtype=INT32)
    for tensor in (x, y):
        shape = b.op("Shape", tensor)
        handle = b.op("TensorListPushBack", handle, shape, element_dtype=INT32)
    pop = b.operation("TensorListPopBack", handle, b.constant(-1), element_dtype=INT32)
    z = b.op("Identity", pop.outputs[1])
    reads = [op.type for op in opkernel.optimize_graph(b.graph, [z], [x]).operations]
    assert ("TensorListPopBack" in reads) is not same
    assert b.run(z, {x: np.zeros((2, 4), "f4")}).tolist() == ([2, 4] if same else [4, 2])


def test_tensors_that_were_not_set_have_no_value():
    relaxation = Relaxation()
    one = TensorFacts(ShapeAlgebra.make_shape([2]), None, np.array([3, 4], object))
    assert relaxation.items(NO_ITEMS, one) is one
    assert relaxation.items(one, NO_ITEMS) is one
    for either in ((ZERO_ITEMS, one), (one, ZERO_ITEMS)):
        items = relaxation.items(*either)
        assert items is not None
        assert (items.shape, items.value) == (one.shape, None)
    assert relaxation.items(None, one) is relaxation.items(one, None) is None
