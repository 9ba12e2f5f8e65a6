"""What each pass does to small graphs, and that they give the same as before."""

from typing import Any

import numpy as np
import pytest
from tests.optimization.optimizing import check_same, ops_of, optimized
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel.types import DataType, PartialTensorShape, tensor_from_proto

X = np.array([[1.5, -0.0, np.nan], [-np.inf, 2e-38, 7.0]], np.float32)


def image(b, *dims, name="x"):
    return b.op("Placeholder", name=name, dtype=FLOAT, shape=PartialTensorShape(dims))


def floats(b, *shape, seed=1, low=-1.0):
    return b.constant(np.random.default_rng(seed).uniform(low, 1, shape), "f4")


# Identities and control edges


def test_identities_are_passed_by_but_those_that_are_fetched_or_beside_control_flow():
    b = Builder()
    x = b.placeholder("x")
    y = b.op("Identity", b.op("Neg", b.op("StopGradient", b.op("Identity", x))), name="y")
    assert ops_of(optimized(b, y, "identities")) == ["Identity", "Neg"]
    (z,) = b.cond(b.op("Less", x, x), lambda x: [b.op("Identity", x)], lambda x: [x], [x])
    assert "Identity" in ops_of(optimized(b, z, "identities"))
    check_same(b, [y, z], {x: 1.0})


def test_waiting_for_what_does_nothing_is_waiting_for_what_that_waits_for():
    b = Builder()
    x = b.placeholder("x")
    v = b.op("VarHandleOp", dtype=FLOAT, shape=[], name="v")
    assign = b.operation("AssignVariableOp", v, x, dtype=FLOAT, name="assign")
    group = b.operation("NoOp", after=[assign, b.constant(1.0).op])
    passed_on = b.operation("Identity", b.constant(2.0), after=[group])
    y = b.operation("ReadVariableOp", v, dtype=FLOAT, after=[passed_on], name="y").outputs[0]
    graph = optimized(b, y, "control_edges")
    assert ops_of(graph) == ["AssignVariableOp", "ReadVariableOp", "VarHandleOp"]
    assert [op.name for op in graph.fetches[0].op.control_inputs] == ["assign"]
    check_same(b, y, {x: 3.0})


# Shapes


def test_shapes_that_are_known_and_what_follows_from_them_are_constants():
    b = Builder()
    x = image(b, None, 3, 4)
    shape = b.op("Shape", x, name="shape")
    one, two = b.constant([1], "i4"), b.constant([2], "i4")
    size = b.op("StridedSlice", shape, one, two, b.constant([1], "i4"), shrink_axis_mask=1)
    first = b.op("StridedSlice", shape, b.constant([0], "i4"), one, one, shrink_axis_mask=1)
    rank, count = b.op("Rank", x), b.op("Size", b.op("Neg", floats(b, 2, 5)))
    target = b.op("Pack", [first, b.constant(12)])
    flat = b.op("Reshape", x, target)
    fetches = [b.op("Neg", t) for t in (size, rank, count, flat)]
    graph = optimized(b, fetches, "shape_materialization")
    assert ops_of(graph) == ["Neg", "Reshape"]
    reshape = graph.fetches[3].op.inputs[0].op
    value = tensor_from_proto(reshape.inputs[1].op.get_attr("value"))
    assert value.tolist() == [-1, 12]
    check_same(b, fetches, {x: np.zeros((2, 3, 4), "f4")})
    check_same(b, fetches, {x: np.zeros((0, 3, 4), "f4")})


def test_shapes_in_a_branch_stay_in_their_branch():
    b = Builder()
    x, p = image(b, 2, 3), b.placeholder("p", DataType.DT_BOOL)
    (y,) = b.cond(
        p,
        lambda x: [b.op("Shape", b.op("Neg", x))],
        lambda x: [b.op("Shape", b.op("Transpose", x, b.constant([1, 0], "i4")))],
        [x],
    )
    for value in (True, False):
        check_same(b, y, {x: X, p: value})


# Arithmetic


@pytest.mark.parametrize(
    ("build", "ops"),
    [
        (lambda b, x: b.op("Mul", x, b.constant(1.0)), []),
        (lambda b, x: b.op("Mul", b.constant([1.0, 1.0, 1.0], "f4"), x), []),
        (lambda b, x: b.op("AddV2", x, b.constant(-0.0)), []),
        (lambda b, x: b.op("AddV2", x, b.constant(0.0)), ["AddV2"]),
        (lambda b, x: b.op("Sub", x, b.constant(0.0)), []),
        (lambda b, x: b.op("Sub", x, b.constant(-0.0)), ["Sub"]),
        (lambda b, x: b.op("RealDiv", x, b.constant(1.0)), []),
        (lambda b, x: b.op("Pow", x, b.constant(1.0)), []),
        (lambda b, x: b.op("Pow", x, b.constant(2.0)), ["Square"]),
        (lambda b, x: b.op("Pow", x, b.constant(3.0)), ["Mul", "Square"]),
        (lambda b, x: b.op("Mul", x, b.constant(np.ones((1, 1, 1), "f4"))), ["Mul"]),
        (lambda b, x: b.op("Neg", b.op("Neg", x)), []),
        (lambda b, x: b.op("Abs", b.op("Neg", x)), ["Abs"]),
        (lambda b, x: b.op("Relu", b.op("Relu", x)), ["Relu"]),
        (lambda b, x: b.op("Cast", x, SrcT=FLOAT, DstT=FLOAT), []),
        (lambda b, x: b.op("Mul", b.op("Mul", x, b.constant(3.0)), b.constant(5.0)), ["Mul"]),
        (
            lambda b, x: b.op("Mul", b.op("Mul", x, b.constant(1e30)), b.constant(1e-30)),
            ["Mul", "Mul"],
        ),
        (lambda b, x: b.op("Reshape", x, b.constant([2, 3], "i4")), []),
        (
            lambda b, x: b.op(
                "Reshape", b.op("Reshape", x, b.constant([6], "i4")), b.constant([3, 2], "i4")
            ),
            ["Reshape"],
        ),
        (
            lambda b, x: b.op("Squeeze", b.op("ExpandDims", x, b.constant(0))),
            ["ExpandDims", "Squeeze"],
        ),
        (lambda b, x: b.op("Tile", x, b.constant([1, 1], "i4")), []),
        (lambda b, x: b.op("Pad", x, b.constant(np.zeros((2, 2), "i4"))), []),
        (lambda b, x: b.op("Max", x, b.constant(np.zeros(0, "i4"))), []),
        (lambda b, x: b.op("AddN", [x]), []),
        (lambda b, x: b.op("Pack", list(b.operation("Unpack", x, num=2).outputs)), []),
        (
            lambda b, x: b.op("Neg", b.operation("Unpack", b.op("Pack", [x, x]), num=2).outputs[1]),
            ["Neg"],
        ),
    ],
)
def test_arithmetic_that_changes_nothing_goes_and_keeps_every_bit(build, ops):
    b = Builder()
    x = image(b, 2, 3)
    y = b.op("Sign", build(b, x))
    assert ops_of(optimized(b, y, "arithmetic")) == sorted([*ops, "Sign"])
    result = build(b, x)
    check_same(b, result, {x: X}, "arithmetic")
    if not {"Square", "Mul"} & set(ops):
        with opkernel.Session(b.graph) as session:
            plain = opkernel.Session(b.graph, optimize=False).run(result, {x: X})
            assert session.run(result, {x: X}).tobytes() == plain.tobytes()


def test_integers_may_be_added_to_nothing():
    b = Builder()
    n = b.placeholder("n", INT32)
    y = b.op("Neg", b.op("AddV2", n, b.constant(0)))
    assert ops_of(optimized(b, y, "arithmetic")) == ["Neg"]


# Transposes and layout


def test_transposes_that_undo_each_other_go_with_what_is_between_them_turned():
    b = Builder()
    x, z = image(b, 2, 3, 4, 5), image(b, 2, 3, 4, 5, name="z")

    def branch(x):
        first = b.op("Transpose", x, b.constant([0, 2, 3, 1], "i4"))
        shifted = b.op("AddV2", b.op("Relu", first), floats(b, 3))
        padded = b.op("Pad", shifted, b.constant([[0, 0], [1, 1], [2, 0], [0, 0]], "i4"))
        return b.op("Mean", padded, b.constant([1, -2], "i4"), keep_dims=True)

    joined = b.op("ConcatV2", [branch(x), branch(z)], b.constant(3))
    back = b.op("Transpose", joined, b.constant([0, 3, 1, 2], "i4"), name="back")
    y = b.op("Neg", back)
    once = ["AddV2", "Mean", "Pad", "Relu"]
    assert ops_of(optimized(b, y)) == sorted([*once, *once, "ConcatV2", "Neg"])
    values = np.random.default_rng(0).normal(size=(2, 2, 3, 4, 5)).astype("f4")
    check_same(b, y, {x: values[0], z: values[1]})


def test_two_transposes_are_one():
    b = Builder()
    x = image(b, None, 3, 4)
    twice = b.op(
        "Transpose", b.op("Transpose", x, b.constant([1, 2, 0], "i4")), b.constant([1, 0, 2], "i4")
    )
    y = b.op("Neg", twice)
    assert ops_of(optimized(b, y, "transposes")) == ["Neg", "Transpose"]
    check_same(b, y, {x: np.arange(24, dtype="f4").reshape(2, 3, 4)})
    undone = b.op(
        "Transpose",
        b.op("Relu", b.op("Transpose", x, b.constant([1, 2, 0], "i4"))),
        b.constant([2, 0, 1], "i4"),
    )
    assert ops_of(optimized(b, b.op("Neg", undone), "transposes")) == ["Neg", "Relu"]


def channels_first_net(b):
    """A net of channels-first images, and the same by channels-last ops."""
    x = image(b, 2, 3, 8, 8)
    filters, more = floats(b, 3, 3, 3, 4), floats(b, 3, 3, 4, 4, seed=2)
    stats = [floats(b, 4, seed=seed, low=0.5) for seed in range(4)]
    results = []
    for data_format in ("NCHW", "NHWC"):
        is_first = data_format == "NCHW"

        def axes(*sizes, is_first=is_first):
            return [1, 1, *sizes] if is_first else [1, *sizes, 1]

        y = x if is_first else b.op("Transpose", x, b.constant([0, 2, 3, 1], "i4"))
        form = {"data_format": data_format}
        y = b.op("Conv2D", y, filters, strides=axes(1, 2), padding="SAME", **form)
        y = b.op("FusedBatchNormV3", y, *stats, is_training=False, **form)
        y = b.op("BiasAdd", b.op("Relu", y), stats[0], **form)
        y = b.op("MaxPool", y, ksize=axes(2, 2), strides=axes(1, 1), padding="VALID", **form)
        paddings = [0, 0, 0, 0, 1, 0, 2, 1] if is_first else [0, 0, 1, 0, 2, 1, 0, 0]
        y = b.op(
            "Conv2D", y, more, strides=axes(1, 1), padding="EXPLICIT", **form,
            explicit_paddings=paddings, name=f"last_{data_format}",
        )  # fmt: skip
        results.append(y)
    return x, *results


def test_channels_first_nets_need_two_transposes():
    b = Builder()
    x, first, last = channels_first_net(b)
    value = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype("f4")
    graph = optimized(b, first)
    assert ops_of(graph).count("Transpose") == 2
    with opkernel.Session(b.graph) as session:
        found, expected = session.run([first, last], {x: value})
    np.testing.assert_allclose(found, expected.transpose(0, 3, 1, 2), rtol=1e-4, atol=1e-5)
    with opkernel.Session(b.graph, optimize=False) as session:
        np.testing.assert_allclose(session.run(first, {x: value}), found, rtol=1e-4, atol=1e-5)


# Folding and fusion


@pytest.mark.parametrize(
    ("op", "shape", "filters", "attrs"),
    [
        ("Conv2D", (1, 5, 5, 3), (2, 2, 3, 4), {"strides": [1, 1, 1, 1], "padding": "SAME"}),
        (
            "DepthwiseConv2dNative",
            (1, 5, 5, 2),
            (2, 2, 2, 2),
            {"strides": [1, 1, 1, 1], "padding": "SAME"},
        ),
        ("MatMul", (3, 5), (5, 4), {}),
        ("Conv3D", (1, 3, 3, 3, 2), (2, 2, 2, 2, 4), {"strides": [1] * 5, "padding": "VALID"}),
    ],
)
def test_scales_and_shifts_of_channels_end_as_one_bias(op, shape, filters, attrs):
    b = Builder()
    x = image(b, *shape)
    y = b.op(op, x, floats(b, *filters), **attrs)
    y = b.op("Mul", y, floats(b, 4, seed=3))
    y = b.op("Sub", b.op("AddV2", floats(b, *(1,) * (len(shape) - 1), 4), y), b.constant(0.5))
    y = b.op("Sub", b.constant(2.0), y)
    assert ops_of(optimized(b, y, "batch_norm_folding")) == sorted([op, "BiasAdd"])
    value = np.random.default_rng(0).normal(size=shape).astype("f4")
    check_same(b, y, {x: value}, "batch_norm_folding", rtol=1e-4)
    check_same(b, y, {x: value}, rtol=1e-4)


@pytest.mark.parametrize("version", ["", "V2", "V3"])
def test_batch_norms_are_folded_but_in_training(version):
    b = Builder()
    x = image(b, 2, 4, 4, 3)
    conv: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "VALID"}
    stats = [floats(b, 5, seed=seed, low=0.5) for seed in range(4)]
    for training, left in (
        (False, ["BiasAdd", "Conv2D"]),
        (True, ["Conv2D", f"FusedBatchNorm{version}"]),
    ):
        y = b.op("Conv2D", x, floats(b, 2, 2, 3, 5), **conv)
        y = b.op(f"FusedBatchNorm{version}", y, *stats, is_training=training)
        y = b.op("Neg", y)
        assert ops_of(optimized(b, y, "batch_norm_folding")) == sorted([*left, "Neg"])
        check_same(
            b, y, {x: np.random.default_rng(0).normal(size=(2, 4, 4, 3)).astype("f4")}, rtol=1e-4
        )


@pytest.mark.parametrize(
    "activation", ["Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid", "Neg"]
)
@pytest.mark.parametrize("op", ["Conv2D", "MatMul"])
def test_a_product_its_bias_and_its_activation_are_one(op, activation):
    b = Builder()
    shape = (1, 4, 4, 3) if op == "Conv2D" else (4, 3)
    x = image(b, *shape)
    if op == "Conv2D":
        y = b.op(op, x, floats(b, 2, 2, 3, 5), strides=[1, 1, 1, 1], padding="SAME")
    else:
        y = b.op(op, x, floats(b, 5, 3), transpose_b=True)
    y = b.op(activation, b.op("BiasAdd", y, floats(b, 5)), name="y")
    fused = activation not in (("Tanh", "Sigmoid", "Neg") if op == "Conv2D" else ("Neg",))
    assert ops_of(optimized(b, y)) == sorted([f"_Fused{op}", *([] if fused else [activation])])
    check_same(b, y, {x: np.random.default_rng(0).normal(size=shape).astype("f4")})


def test_what_is_asked_for_or_taken_elsewhere_is_not_fused():
    b = Builder()
    x = image(b, 4, 3)
    product = b.op("MatMul", x, floats(b, 3, 5))
    biased = b.op("BiasAdd", product, floats(b, 5))
    y = b.op("Relu", biased)
    assert ops_of(optimized(b, [y, biased])) == ["Relu", "_FusedMatMul"]
    assert ops_of(optimized(b, [y, product])) == ["BiasAdd", "MatMul", "Relu"]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_depthwise_convolutions_take_their_bias_and_activation(padding):
    b = Builder()
    x = image(b, None, 5, 5, 3)
    y = b.op(
        "DepthwiseConv2dNative", x, floats(b, 2, 2, 3, 2), strides=[1, 2, 2, 1], padding=padding
    )
    y = b.op("Relu6", b.op("BiasAdd", y, floats(b, 6)))
    assert ops_of(optimized(b, y)) == ["_FusedDepthwiseConv2dNative"]
    check_same(b, y, {x: np.random.default_rng(0).normal(size=(2, 5, 5, 3)).astype("f4")})


@pytest.mark.parametrize("op", ["Conv2D", "MatMul"])
def test_a_tensor_of_the_same_shape_is_added_at_once(op):
    b = Builder()
    if op == "Conv2D":
        x = image(b, None, 4, 4, 3)
        y = b.op(op, x, floats(b, 3, 3, 3, 3), strides=[1, 1, 1, 1], padding="SAME")
    else:
        x = image(b, None, 3)
        y = b.op(op, x, floats(b, 3, 3))
    y = b.op("Relu", b.op("AddV2", x, b.op("BiasAdd", y, floats(b, 3))))
    assert ops_of(optimized(b, y)) == [f"_Fused{op}"]
    shape = (2, 4, 4, 3) if op == "Conv2D" else (2, 3)
    check_same(b, y, {x: np.random.default_rng(0).normal(size=shape).astype("f4")})


def test_a_tensor_of_perhaps_another_shape_is_not():
    b = Builder()
    x, z = image(b, None, 3), image(b, None, 3, name="z")
    y = b.op("AddV2", z, b.op("BiasAdd", b.op("MatMul", x, floats(b, 3, 3)), floats(b, 3)))
    assert ops_of(optimized(b, y)) == ["AddV2", "_FusedMatMul"]
    check_same(b, y, {x: np.ones((4, 3), "f4"), z: np.ones((1, 3), "f4")})


def exact_gelu(b, x):
    return b.op(
        "Mul",
        b.op("Mul", b.constant(0.5), x),
        b.op("AddV2", b.constant(1.0), b.op("Erf", b.op("Mul", x, b.constant(0.5**0.5)))),
    )


def exact_gelu_with_a_division(b, x):
    erf = b.op("Erf", b.op("RealDiv", x, b.constant(2**0.5)))
    twice = b.op("Mul", b.op("AddV2", erf, b.constant(1.0)), x)
    return b.op("Mul", twice, b.constant(0.5))


def near_gelu(b, x):
    cubic = b.op("Mul", b.constant(0.044715), b.op("Pow", x, b.constant(3.0)))
    argument = b.op("Mul", b.constant((2 / np.pi) ** 0.5), b.op("AddV2", x, cubic))
    share = b.op("AddV2", b.constant(1.0), b.op("Tanh", argument))
    return b.op("Mul", b.op("Mul", b.constant(0.5), x), share)


@pytest.mark.parametrize(
    ("gelu", "name"),
    [
        (exact_gelu, "GeluExact"),
        (exact_gelu_with_a_division, "GeluExact"),
        (near_gelu, "GeluApproximate"),
    ],
)
def test_gelu_is_found_in_its_arithmetic_and_fused(gelu, name):
    b = Builder()
    x = image(b, None, 3)
    product = b.op("BiasAdd", b.op("MatMul", x, floats(b, 3, 5)), floats(b, 5))
    y = gelu(b, product)
    graph = optimized(b, y)
    assert ops_of(graph) == ["_FusedMatMul"]
    (fused,) = (op for op in graph.operations if op.type == "_FusedMatMul")
    assert fused.get_attr("fused_ops") == [b"BiasAdd", name.encode()]
    value = np.random.default_rng(0).normal(size=(7, 3)).astype("f4")
    check_same(b, y, {x: value})
    kept = optimized(b, [y, product])
    assert ops_of(kept).count("_FusedMatMul") == 1
    assert len(ops_of(kept)) > 1
    check_same(b, [y, product], {x: value})


def test_what_is_almost_gelu_is_computed_as_it_stands():
    b = Builder()
    x = image(b, None, 3)
    product = b.op("BiasAdd", b.op("MatMul", x, floats(b, 3, 5)), floats(b, 5))
    erf = b.op("Erf", b.op("Mul", product, b.constant(0.7)))
    y = b.op("Mul", b.op("Mul", b.constant(0.5), product), b.op("AddV2", b.constant(1.0), erf))
    assert "Erf" in ops_of(optimized(b, y))
    check_same(b, y, {x: np.ones((2, 3), "f4")})


# Loops, branches and functions


def test_what_is_the_same_in_every_turn_is_computed_before_the_loop():
    b = Builder()
    x, w = image(b, 2, 2), image(b, 2, 2, name="w")

    def body(i, x, w):
        matrix = b.op("AddV2", b.op("MatMul", w, w), b.op("Exp", w))
        return [b.op("AddV2", i, b.constant(1)), b.op("MatMul", x, matrix)]

    _, y = b.while_loop(
        lambda i, x, w: b.op("Less", i, b.constant(3)), body, [b.constant(0), x], [w]
    )
    graph = optimized(b, y, "loop_invariants")
    assert [c.node for c in graph.changes] == ["AddV2"]
    before = {op.type for op in graph.operations if op.name.endswith("/invariant")}
    assert before == {"MatMul", "Exp", "AddV2"}
    feeds = {x: np.eye(2, dtype="f4"), w: np.array([[0, 1], [1, 0]], "f4")}
    check_same(b, y, feeds, "loop_invariants")
    check_same(b, y, feeds)


def test_a_loop_variable_that_is_set_to_the_same_each_turn_ends_with_the_loop():
    b = Builder()
    x, w = image(b), image(b, name="w")

    def body(i, x, w):
        assert b.pivot is not None
        doubled = b.operation("Mul", w, b.constant(2.0), after=[b.pivot.op])
        return [b.op("AddV2", i, b.constant(1)), doubled.outputs[0]]

    _, y = b.while_loop(
        lambda i, x, w: b.op("Less", i, b.constant(3)), body, [b.constant(0), x], [w]
    )
    check_same(b, y, {x: 1.0, w: 4.0})


def test_functions_without_state_are_inlined_however_deep():
    b = Builder()
    inner = define(b, "inner", [FLOAT], lambda g, x: [g.op("Mul", x, g.constant(2.0))])
    outer = define(
        b,
        "outer",
        [FLOAT],
        lambda g, x: [g.op("PartitionedCall", [g.op("Neg", x)], f=inner, Tout=[FLOAT])],
    )
    x = b.placeholder("x")
    y = b.op("Identity", b.op("PartitionedCall", [x], f=outer, Tout=[FLOAT]))
    assert ops_of(optimized(b, y)) == ["Identity", "Mul", "Neg"]
    check_same(b, y, {x: 3.0})


def test_a_function_that_calls_itself_is_inlined_so_far_and_still_called():
    b = Builder()
    x = b.placeholder("x")
    stop = define(b, "stop", [FLOAT], lambda g, x: [g.op("Identity", x)])
    name = opkernel.proto.NameAttrList(name="halve")
    more = define(
        b,
        "more",
        [FLOAT],
        lambda g, x: [
            g.op("PartitionedCall", [g.op("Mul", x, g.constant(0.5))], f=name, Tout=[FLOAT])
        ],
    )
    define(
        b,
        "halve",
        [FLOAT],
        lambda g, x: [
            g.op(
                "StatelessIf",
                g.op("Less", x, g.constant(1.0)),
                [x],
                then_branch=stop,
                else_branch=more,
                Tout=[FLOAT],
            )
        ],
    )
    y = b.op("Neg", b.op("PartitionedCall", [x], f=name, Tout=[FLOAT]))
    check_same(b, y, {x: 1000.0})


def test_an_if_whose_choice_is_known_is_its_branch():
    b = Builder()
    twice = define(b, "twice", [FLOAT], lambda g, x: [g.op("AddV2", x, x)])
    minus = define(b, "minus", [FLOAT], lambda g, x: [g.op("Neg", x)])
    x = b.placeholder("x")
    attrs: dict[str, Any] = {"then_branch": twice, "else_branch": minus, "Tout": [FLOAT]}
    for value, op in ((True, "AddV2"), (False, "Neg")):
        y = b.op("Exp", b.op("StatelessIf", b.constant(value), [x], **attrs))
        assert ops_of(optimized(b, y)) == sorted([op, "Exp"])
        check_same(b, y, {x: 1.0})
    for index, op in ((0, "AddV2"), (1, "Neg"), (7, "Neg"), (-1, "Neg")):
        case = b.op("StatelessCase", b.constant(index), [x], branches=[twice, minus], Tout=[FLOAT])
        y = b.op("Exp", case)
        assert ops_of(optimized(b, y)) == sorted([op, "Exp"])
        check_same(b, y, {x: 1.0})
