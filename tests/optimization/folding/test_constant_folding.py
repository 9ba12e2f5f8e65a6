"""Constant folding: TensorFlow's constant_folding_test, and what must not be folded."""

import numpy as np
import pytest
from tests.optimization.optimizing import check_same, ops_of, optimized
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder

import opkernel
from opkernel.graph import Operation
from opkernel.types import tensor_from_proto


def matrices():
    """Products of constants, each taken by a node that is not constant."""
    b = Builder()
    a, c = b.constant([[1.0, 0.0], [0.0, 1.0]], "f4"), b.constant([[1.0, 2.0], [3.0, 4.0]], "f4")
    x = b.placeholder("x")
    m1 = b.op("MatMul", a, c, name="m1")
    m2 = b.op("MatMul", c, b.constant([[0.0, 1.0], [1.0, 0.0]], "f4"), name="m2")
    return b, x, b.op("AddV2", x, m1, name="s1"), b.op("AddV2", x, m2, name="s2")


def constants_of(op: Operation):
    return [
        (tensor.op.name, tensor_from_proto(tensor.op.get_attr("value")).tolist())
        for tensor in op.inputs
        if tensor.op.type == "Const"
    ]


def test_what_depends_on_constants_is_computed():
    b, _, s1, s2 = matrices()
    graph = optimized(b, [s1, s2], "constant_folding")
    assert ops_of(graph) == ["AddV2", "AddV2"]
    ((name1, value1),) = constants_of(graph.fetches[0].op)
    ((name2, value2),) = constants_of(graph.fetches[1].op)
    assert name1.startswith("m1__cf__")
    assert name2.startswith("m2__cf__")
    assert name1[8:] != name2[8:]
    assert (value1, value2) == ([[1, 2], [3, 4]], [[2, 1], [4, 3]])


def test_of_two_outputs_both_are_folded_or_the_one_that_is_taken():
    b = Builder()
    one, two = b.constant([1], "i4"), b.constant([2, 2], "i4")
    axes = b.operation("BroadcastGradientArgs", one, two, name="axes")
    zero = b.placeholder("zero", INT32)
    first, second = (b.op("AddV2", output, zero) for output in axes.outputs)
    graph = optimized(b, [first, second], "constant_folding")
    values = [value for t in graph.fetches for _, value in constants_of(t.op)]
    assert values == [[0, 1], []]
    graph = optimized(b, [second], "constant_folding")
    assert [value for _, value in constants_of(graph.fetches[0].op)] == [[]]


def test_what_is_fetched_becomes_a_constant_of_its_name():
    b = Builder()
    y = b.op("AddV2", b.constant(1.0), b.constant(2.0), name="y")
    graph = optimized(b, y, "constant_folding")
    assert [(op.name, op.type) for op in graph.operations] == [("y", "Const")]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("RandomUniform", [[2, 2]], {"dtype": FLOAT}),
        ("PlaceholderWithDefault", [[2, 2]], {"shape": [2]}),
        ("Fill", [[3000, 1000], 1], {}),
    ],
)
def test_what_has_state_is_a_placeholder_or_too_large_stays(op, inputs, attrs):
    b = Builder()
    tensor = b.op(op, *(b.constant(np.array(value, "i4")) for value in inputs), **attrs)
    assert op in ops_of(optimized(b, b.op("Identity", tensor), "constant_folding"))


def test_control_flow_and_internal_ops_stay():
    b = Builder()
    x = b.placeholder("x")
    switch = b.operation("Switch", b.constant(1.0), b.op("Less", x, x))
    passed = b.op("Neg", switch.outputs[0])
    summed = b.op("_UnaryOpsComposition", b.constant(0.5),
                  op_names=["Exp", "Neg"], name="internal")  # fmt: skip
    graph = optimized(b, [passed, b.op("Identity", summed)], "constant_folding")
    assert {"Switch", "Neg", "_UnaryOpsComposition"} <= set(ops_of(graph))


def test_results_up_to_ten_mebibytes_are_kept():
    for rows, is_kept in ((10 << 8, True), ((10 << 8) + 1, False)):
        b = Builder()
        shape = b.constant(np.array([rows, 1024], "i4"))
        filled = b.op("Identity", b.op("Fill", shape, b.constant(np.float32(1))))
        assert (ops_of(optimized(b, filled, "constant_folding")) == []) == is_kept


def test_what_fails_stays_and_fails_in_the_step():
    b = Builder()
    wrong = b.op("FloorDiv", b.constant(1), b.constant(0), name="wrong")
    y = b.op("Neg", wrong)
    assert ops_of(optimized(b, y)) == ["FloorDiv", "Neg"]
    with pytest.raises(opkernel.errors.InvalidArgumentError, match="wrong"):
        opkernel.Session(b.graph).run(y)


def test_a_fed_constant_is_none():
    b = Builder()
    c = b.constant(1.0, name="c")
    y = b.op("AddV2", c, b.constant(2.0))
    assert opkernel.Session(b.graph).run(y, {c: 5.0}) == 7
    shape = b.constant([2, 3], "i4", name="shape")
    z = b.op("Shape", b.op("Reshape", b.constant(np.zeros(6, "f4")), shape))
    assert opkernel.Session(b.graph).run(z, {shape: [6, 1]}).tolist() == [6, 1]


def test_what_was_waited_for_is_still_waited_for():
    b = Builder()
    v = b.op("VarHandleOp", dtype=FLOAT, shape=[], name="v")
    assign = b.operation("AssignVariableOp", v, b.constant(1.0), dtype=FLOAT, name="assign")
    one = b.constant(1.0)
    one.op.add_control_input(assign)
    sum_ = b.op("AddV2", one, b.constant(2.0))
    read = b.operation("ReadVariableOp", v, dtype=FLOAT, after=[sum_.op])
    y = b.op("AddV2", sum_, read.outputs[0])
    assert opkernel.Session(b.graph).run(y) == 4
    check_same(b, y, {}, "constant_folding")
