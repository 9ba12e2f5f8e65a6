"""Ops of users with certain traits are rewritten as TensorFlow's with the same ones are."""

import numpy as np
import pytest
from tests.optimization.optimizing import check_same, ops_of, optimized
from tests.runtime.dataflow.loop_builders import Builder

import opkernel
from opkernel.opdef import OpTraits, unchanged_shape
from opkernel.opdef.common_shapes import broadcast_binary_op_shape, reduction_shape

X = np.array([[1.0, -2.0, 3.0, -4.0], [5.0, 6.0, -7.0, 8.0]], "f4")


def declare(name, traits, kernel, shape_fn=unchanged_shape, output="y: float", **options):
    handle = opkernel.register_op(
        f"Traits{name}", inputs=options.pop("inputs", ["x: float"]), outputs=[output],
        shape_fn=shape_fn, traits=traits, **options,
    )  # fmt: skip
    opkernel.register_kernel(handle, device="CPU")(kernel)


def extent_shape(c):
    c.set_output(0, c.vector(c.rank(c.input(0)) if c.rank_known(c.input(0)) else None))


def doubled(op, index, inputs):
    return np.frompyfunc(lambda e: 2 * e if isinstance(e, int) else None, 1, 1)(inputs[0])


TWO = ["x: float", "y: float"]
declare("Turned", "pointwise cannot_fail involution", lambda x: -x)
declare("Clipped", "pointwise cannot_fail idempotent growing", lambda x: np.maximum(x, 1))
declare("Even", "pointwise cannot_fail even", lambda x: x * x)
declare("Opaque", "", lambda x: -x)
declare("Same", "passes_on", lambda x: x)
declare("Watched", "debug_only", lambda x: x, is_stateful=True)
declare("Plus", "pointwise cannot_fail", lambda x, y: x + y, broadcast_binary_op_shape,
        inputs=TWO, output="z: float", is_commutative=True)  # fmt: skip
declare("Minus", "pointwise cannot_fail", lambda x, y: x - y, broadcast_binary_op_shape,
        inputs=TWO, output="z: float")  # fmt: skip
declare("Total", "reduces cannot_fail",
        lambda x, axes, *, keep_dims: x.sum(tuple(axes.ravel()), keepdims=keep_dims),
        reduction_shape, inputs=["x: float", "axes: int32"], attrs=["keep_dims: bool = false"],
        )  # fmt: skip
declare("Extent", "reads_shapes_only value_rule=sizes", lambda x: np.array(x.shape, np.int32),
        extent_shape, output="y: int32")  # fmt: skip
declare("Twice", OpTraits(value_rule=doubled), lambda x: 2 * x,
        inputs=["x: int32"], output="y: int32")  # fmt: skip
declare("Flat", "reshapes cannot_fail", lambda x: x.flatten(),
        lambda c: c.set_output(0, c.vector(8)))  # fmt: skip


def shaped(b, name, dims):
    return b.op("Placeholder", name=name, dtype=opkernel.float32, shape=dims)


def transposed(b, x, *axes):
    return b.op("Transpose", x, b.constant(np.array(axes, np.int32)))


@pytest.mark.parametrize(
    ("op", "passes", "left"),
    [
        ("TraitsTurned", "arithmetic", []),
        ("TraitsClipped", "arithmetic", ["TraitsClipped"]),
        ("TraitsSame", "identities", []),
        ("TraitsOpaque", "arithmetic", ["TraitsOpaque", "TraitsOpaque"]),
        ("TraitsOpaque", "identities", ["TraitsOpaque", "TraitsOpaque"]),
    ],
)
def test_what_is_done_twice(op, passes, left):
    b = Builder()
    x = b.placeholder("x")
    y = b.op("Exp", b.op(op, b.op(op, x)))
    assert ops_of(optimized(b, y, passes)) == ["Exp", *left]
    check_same(b, y, {x: X}, passes)


def test_signs_before_even_functions_do_not_count():
    b = Builder()
    x = b.placeholder("x")
    y = b.op("TraitsEven", b.op("Neg", x))
    assert ops_of(optimized(b, y, "arithmetic")) == ["TraitsEven"]
    check_same(b, y, {x: X}, "arithmetic")


def test_the_largest_is_taken_before_what_grows():
    b = Builder()
    x = shaped(b, "x", [2, 4])
    y = b.op("Max", b.op("TraitsClipped", x), b.constant(np.int32(1)))
    graph = optimized(b, y, "arithmetic")
    assert graph.fetches[0].op.type == "TraitsClipped"
    check_same(b, y, {x: X}, "arithmetic")


@pytest.mark.parametrize("op", ["TraitsTurned", "TraitsSame", "TraitsOpaque"])
def test_between_transposes(op):
    b = Builder()
    x = shaped(b, "x", [2, 4])
    y = b.op("Exp", transposed(b, b.op(op, transposed(b, x, 1, 0)), 1, 0))
    is_known = op != "TraitsOpaque"
    left = ["Exp"] + (["Transpose"] * 2 if not is_known else []) + [op]
    assert ops_of(optimized(b, y, "transposes")) == sorted(left)
    check_same(b, y, {x: X}, "transposes")


def test_two_tensors_and_reductions_between_transposes():
    b = Builder()
    x = shaped(b, "x", [2, 4])
    pair = [transposed(b, x, 1, 0), transposed(b, b.op("Exp", x), 1, 0)]
    total = b.op("TraitsTotal", b.op("TraitsMinus", *pair), b.constant(np.int32(0)), keep_dims=True)
    y = transposed(b, total, 1, 0)
    left = ["Exp", "TraitsMinus", "TraitsTotal"]
    assert [op for op in ops_of(optimized(b, y, "transposes")) if op != "Identity"] == left
    check_same(b, y, {x: X}, "transposes")


def test_operands_in_any_order_are_the_same_where_the_op_is_commutative():
    for op, count in (("TraitsPlus", 1), ("TraitsMinus", 2)):
        b = Builder()
        x, z = b.placeholder("x"), b.placeholder("z")
        y = b.op("Mul", b.op(op, x, z), b.op(op, z, x))
        assert ops_of(optimized(b, y, "common_subexpressions")) == ["Mul", *[op] * count]
        check_same(b, y, {x: X, z: X + 1}, "common_subexpressions")


def test_parts_go_through_a_function_together():
    b = Builder()
    x = b.placeholder("x")
    split = b.operation("Split", b.constant(1), x, num_split=2)
    y = b.op("Sub", *[b.op("TraitsClipped", part) for part in split.outputs])
    assert ops_of(optimized(b, y, "hoist_unary_over_split")) == ["Split", "Sub", "TraitsClipped"]
    check_same(b, y, {x: X}, "hoist_unary_over_split")


def test_shapes_that_are_known_are_constants_and_those_that_are_not_are_followed():
    b = Builder()
    x = shaped(b, "x", [2, 4])
    extent = b.op("TraitsExtent", x)
    assert ops_of(optimized(b, extent, "shape_materialization")) == []
    check_same(b, extent, {x: X}, "shape_materialization")
    partly = b.op("TraitsExtent", shaped(b, "z", [None, 4]))
    assert b.op("Fill", partly, b.constant(1.0)).shape.as_list() == [None, 4]


def test_a_value_rule_of_ones_own():
    b = Builder()
    extent = b.op("Shape", shaped(b, "z", [None, 4]))
    assert b.op("Fill", b.op("TraitsTwice", extent), b.constant(1.0)).shape.as_list() == [None, 8]


def test_what_watches_goes_on_request():
    b = Builder()
    x = b.placeholder("x")
    y = b.op("Exp", b.op("TraitsWatched", x))
    assert "TraitsWatched" in ops_of(optimized(b, y))
    assert ops_of(optimized(b, y, "debug_stripper", "identities")) == ["Exp"]


def test_what_reshapes_before_a_reshape_is_left_out():
    b = Builder()
    x = shaped(b, "x", [2, 4])
    y = b.op("Reshape", b.op("TraitsFlat", x), b.constant(np.array([4, 2], np.int32)))
    assert ops_of(optimized(b, y, "arithmetic")) == ["Reshape"]
    check_same(b, y, {x: X}, "arithmetic")
