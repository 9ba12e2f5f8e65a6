"""Chains that a shorter one computes: what TensorFlow's arithmetic optimizer does, rule by rule."""

from typing import Any

import numpy as np
import pytest
from tests.optimization.optimizing import check_same, ops_of, optimized
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder

from opkernel.types import DataType, PartialTensorShape, as_dtype

X = np.array([[1.5, -0.0, 3.25], [-7.5, 2e-38, 7.0]], np.float32)
BOOL = DataType.DT_BOOL


def tensor(b, *dims, name="x", dtype=FLOAT):
    return b.op("Placeholder", name=name, dtype=dtype, shape=PartialTensorShape(dims))


def cast(b, x, dtype):
    return b.op("Cast", x, SrcT=x.dtype, DstT=dtype)


def sliced(b, x, begin, end, strides=(1,), **masks):
    bounds = [b.constant(np.array(part, "i4")) for part in (begin, end, strides)]
    return b.op("StridedSlice", x, *bounds, **masks)


def check(make, ops, feeds: Any = X, dims=(None, 3), rtol=1e-6):
    """The ops that are left of what `make` makes, whose results stay the same."""
    b = Builder()
    x = tensor(b, *dims, dtype=as_dtype(feeds.dtype))
    y = make(b, x)
    assert ops_of(optimized(b, y, "arithmetic")) == sorted(ops)
    check_same(b, y, {x: feeds}, "arithmetic", rtol=rtol)
    check_same(b, y, {x: feeds}, rtol=rtol)


@pytest.mark.parametrize(("make", "ops"), [
    (lambda b, x: b.op("AddN", [x, x, x]), ["Mul"]),
    (lambda b, x: b.op("AddN", [x, x, b.op("Neg", x)]), ["AddN", "Neg"]),
    (lambda b, x: b.op("AddV2", x, b.op("Neg", b.op("Exp", x))), ["Exp", "Sub"]),
    (lambda b, x: b.op("AddV2", b.op("Neg", x), b.constant(2.0)), ["Sub"]),
    (lambda b, x: b.op("Sub", x, b.op("Neg", b.op("Exp", x))), ["AddV2", "Exp"]),
    (lambda b, x: b.op("Sub", b.op("Neg", x), x), ["Neg", "Sub"]),
    (lambda b, x: b.op("Log", b.op("AddV2", b.constant(1.0), b.op("Square", x))), ["Log1p", "Square"]),
    (lambda b, x: b.op("Log", b.op("AddV2", b.constant(2.0), b.op("Square", x))),
     ["AddV2", "Log", "Square"]),
    (lambda b, x: b.op("Sub", b.op("Exp", x), b.constant([[1.0]], "f4")), ["Expm1"]),
    (lambda b, x: b.op("Sub", b.op("Exp", x), b.constant([1.0, 2.0, 1.0], "f4")), ["Exp", "Sub"]),
    (lambda b, x: b.op("Pow", x, b.constant(-1.0)), ["Reciprocal"]),
    (lambda b, x: b.op("Pow", x, b.constant(0.5)), ["Pow"]),
    (lambda b, x: b.op("Pow", b.op("Square", x), b.constant(0.5)), ["Sqrt", "Square"]),
    (lambda b, x: b.op("Pow", b.op("AddV2", b.op("Exp", x), b.constant(1e-3)), b.constant(-0.5)),
     ["AddV2", "Exp", "Rsqrt"]),
    (lambda b, x: b.op("Pow", b.op("AddV2", b.op("Exp", x), b.constant(-1.0)), b.constant(0.5)),
     ["AddV2", "Exp", "Pow"]),
    (lambda b, x: b.op("LogicalNot", b.op("Equal", x, b.constant(1.5))), ["NotEqual"]),
    (lambda b, x: b.op("LogicalNot", b.op("Less", x, b.constant(1.5))), ["Less", "LogicalNot"]),
    (lambda b, x: b.op("Max", b.op("Exp", x), b.constant([-1], "i4")), ["Exp", "Max"]),
    (lambda b, x: b.op("Max", b.op("Square", x), b.constant(1)), ["Max", "Square"]),
])  # fmt: skip
def test_sums_products_and_powers(make, ops):
    check(make, ops)


def test_the_largest_is_found_before_a_function_that_grows():
    b = Builder()
    x = tensor(b, None, 3)
    y = b.op("Max", b.op("Exp", x), b.constant([1], "i4"), name="y")
    assert optimized(b, y, "arithmetic").fetches[0].op.type == "Exp"
    z = b.op("Max", b.op("Exp", x), b.constant([0], "i4"))
    assert optimized(b, z, "arithmetic").fetches[0].op.type == "Max"  # perhaps of nothing
    for value in (X, X[:0]):
        check_same(b, [y, z], {x: value})


@pytest.mark.parametrize("op", ["AddV2", "AddN"])
def test_a_common_factor_is_multiplied_with_once(op):
    def total(b, *terms):
        return b.op(op, list(terms)) if op == "AddN" else b.op(op, *terms)

    def make(b, x):
        a, c = b.op("Sin", x), b.op("Cos", x)
        return total(b, b.op("Mul", a, x), b.op("Mul", c, a))

    check(make, ["Cos", "Mul", "Sin", op], rtol=1e-5)

    def of_other_shapes(b, x):
        a = b.op("Sin", x)
        return total(b, b.op("Mul", a, x), b.op("Mul", b.constant([1.0, 2, 3], "f4"), a))

    check(of_other_shapes, ["Mul", "Mul", "Sin", op])

    def taken_elsewhere(b, x):
        first = b.op("Mul", x, x)
        return b.op("Sub", first, total(b, first, b.op("Mul", x, b.op("Sin", x))))

    check(taken_elsewhere, ["Mul", "Mul", "Sin", "Sub", op])


@pytest.mark.parametrize(("dtype", "wide", "ops"), [
    ("i4", DataType.DT_INT64, []),
    ("i4", DataType.DT_DOUBLE, []),
    ("f4", DataType.DT_DOUBLE, []),
    ("f2", DataType.DT_FLOAT, []),
    ("?", DataType.DT_FLOAT, []),
    ("i4", DataType.DT_FLOAT, ["Cast", "Cast"]),
    ("i8", DataType.DT_DOUBLE, ["Cast", "Cast"]),
    ("i8", DataType.DT_INT32, ["Cast", "Cast"]),
    ("i4", DataType.DT_UINT32, ["Cast", "Cast"]),
])  # fmt: skip
def test_casts_to_a_type_that_holds_all_values_and_back_go(dtype, wide, ops):
    values = {"i4": [2**31 - 1, -5], "i8": [2**62 + 1, -5], "?": [True, False]}
    value = np.array(values.get(dtype, [0.1, -7e-5]), dtype)
    check(
        lambda b, x: b.op("Identity", cast(b, cast(b, x, wide), x.dtype)),
        [*ops, "Identity"],
        value,
        dims=(None,),
    )


@pytest.mark.parametrize(("make", "ops"), [
    (lambda b, x: b.op("Bitcast", b.op("Bitcast", x, type=INT32), type=DataType.DT_UINT32), ["Bitcast"]),
    (lambda b, x: b.op("Abs", b.op("Bitcast", b.op("Bitcast", x, type=INT32), type=FLOAT)), ["Abs"]),
    (lambda b, x: b.op("Prod", b.op("Shape", x), b.constant([0], "i4")), ["Size"]),
    (lambda b, x: b.op("Prod", b.op("Shape", x), b.constant(np.zeros(0, "i4"))), ["Identity", "Shape"]),
    (lambda b, x: b.op("ConcatV2", [b.op("ConcatV2", [x, x], b.constant(1)), b.op("Neg", x),
                       b.op("ConcatV2", [x, x], b.constant(-1))], b.constant(-1)), ["ConcatV2", "Neg"]),
    (lambda b, x: b.op("ConcatV2", [b.op("ConcatV2", [x, x], b.constant(0)),
                       b.op("ConcatV2", [x, x], b.constant(0))], b.constant(1)), ["ConcatV2"] * 3),
    (lambda b, x: b.op("MatMul", x, b.op("Transpose", b.op("Neg", x), b.constant([1, 0], "i4"))),
     ["MatMul", "Neg"]),
    (lambda b, x: b.op("MatMul", b.op("Transpose", x, b.constant([1, 0], "i4")), x), ["MatMul"]),
    (lambda b, x: b.op("Abs", b.op("SelectV2", b.constant([[True], [True]]), x, b.op("Neg", x))),
     ["Abs", "Neg", "SelectV2"]),
    (lambda b, x: b.op("Abs", b.op("SelectV2", b.constant(False), x, b.op("Reshape", x, b.constant([2, 3], "i4")))),
     ["Abs", "Reshape", "SelectV2"]),
    (lambda b, x: b.op("Abs", b.op("SelectV2", b.constant(False), b.constant(X), b.op("Reshape", x, b.constant([2, 3], "i4")))),
     ["Abs", "Reshape"]),
    (lambda b, x: b.op("Abs", b.operation("Split", b.constant(0), x, num_split=1).outputs[0]), ["Abs"]),
])  # fmt: skip
def test_what_is_moved_twice_is_moved_once_or_not_at_all(make, ops):
    check(make, ops)


def test_batches_of_transposed_matrices():
    def make(b, x):
        y = b.op("Transpose", b.op("Neg", x), b.constant([0, 2, 1], "i4"))
        return b.op("BatchMatMulV2", x, y)

    check(make, ["BatchMatMulV2", "Neg"], np.arange(12, dtype="f4").reshape(2, 2, 3), (None, 2, 3))

    def other(b, x):
        y = b.op("Transpose", b.op("Neg", x), b.constant([1, 0, 2], "i4"))
        return b.op("BatchMatMulV2", x, y)

    check(
        other,
        ["BatchMatMulV2", "Neg", "Transpose"],
        np.arange(8, dtype="f4").reshape(2, 2, 2),
        (2, 2, 2),
    )


def test_what_was_packed_is_taken_out_by_its_index():
    b = Builder()
    x, n = tensor(b, None, 3), tensor(b, name="n", dtype=INT32)
    rows = sliced(b, b.op("Shape", x), [0], [1], shrink_axis_mask=1)
    packed = b.op("Pack", [rows, n, b.constant(7)])
    for index, ops in ((1, ["Neg"]), (-1, ["Neg"]), (0, ["Neg", "Shape", "StridedSlice"])):
        y = b.op("Neg", sliced(b, packed, [index], [index + 1], shrink_axis_mask=1))
        assert ops_of(optimized(b, y, "arithmetic")) == ops
        check_same(b, y, {x: X, n: 5})
    part = b.op("Neg", sliced(b, packed, [0], [2]))
    assert "Pack" in ops_of(optimized(b, part, "arithmetic"))


def test_a_slice_of_everything_goes():
    def whole(b, x):
        return b.op("Neg", sliced(b, x, [0, 0], [2, 9], [1, 1]))

    check(whole, ["Neg"], dims=(2, 3))
    check(whole, ["Neg", "StridedSlice"])
    check(
        lambda b, x: b.op("Neg", sliced(b, x, [1, 2], [-3, -4], [-1, -1])),
        ["Neg", "StridedSlice"],
        dims=(2, 3),
    )


def test_bfloat16_cannot_count_to_257():
    b = Builder()
    x = tensor(b, None, dtype=DataType.DT_BFLOAT16)
    for count, op in ((3, "Mul"), (257, "AddN")):
        assert ops_of(optimized(b, b.op("AddN", [x] * count), "arithmetic")) == [op]


def test_rules_keep_away_from_branches():
    b = Builder()
    x, p = b.placeholder("x"), b.placeholder("p", BOOL)

    def branch(x):
        one = b.constant(1.0)
        return [b.op("Log", b.op("AddV2", b.op("AddN", [x, x]), one))]

    (y,) = b.cond(p, branch, lambda x: [b.op("Sub", b.op("Exp", x), b.constant(1.0))], [x])
    for value in (True, False):
        check_same(b, y, {x: 0.5, p: value}, "arithmetic")
        check_same(b, y, {x: 0.5, p: value})
