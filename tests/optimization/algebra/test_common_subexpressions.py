"""Common subexpressions: TensorFlow's optimizer_cse_test."""

import numpy as np
import pytest
from tests.optimization.optimizing import ops_of, optimized
from tests.runtime.dataflow.loop_builders import FLOAT, Builder

import opkernel
from opkernel.optimization.algebra.common_subexpressions import equivalent_operations


def doubles(b: Builder) -> list[tuple[str, str]]:
    found = equivalent_operations(b.graph.get_operations())
    return [(double.name, kept.name) for double, kept in found.items()]


@pytest.fixture
def b() -> Builder:
    builder = Builder()
    builder.placeholder("x")
    builder.placeholder("y")
    return builder


def test_equal_operations_are_one_and_consumers_take_it(b):
    products = [mul(b, name) for name in "cde"]
    total = b.op("AddN", products, name="total")
    assert doubles(b) == [("d", "c"), ("e", "c")]
    graph = optimized(b, total, "common_subexpressions")
    assert [tensor.name for tensor in graph.fetches[0].op.inputs] == ["c:0"] * 3


def mul(b: Builder, name: str, swapped: bool = False):
    x, y = (b.graph.get_tensor_by_name(f"{name}:0") for name in "xy")
    return b.op("Mul", *((y, x) if swapped else (x, y)), name=name)


def test_equal_operations_of_several_devices_stay_on_each(b):
    """As TensorFlow's DedupComputations has it; its optimizer_cse looks at no devices."""
    products = [mul(b, name) for name in "cde"]
    for product, device in zip(products, ("/cpu:0", "/cpu:1", "/cpu:1"), strict=True):
        product.op.set_device(device)
    total = b.op("AddN", products, name="total")
    assert doubles(b) == [("d", "c"), ("e", "c")]
    graph = optimized(b, total, "common_subexpressions")
    assert [tensor.name for tensor in graph.fetches[0].op.inputs] == ["c:0", "d:0", "d:0"]


def test_inputs_of_commutative_ops_come_in_any_order(b):
    mul(b, "c")
    mul(b, "d", swapped=True)
    x, y = b.graph.get_tensor_by_name("x:0"), b.graph.get_tensor_by_name("y:0")
    b.op("Sub", x, y, name="s")
    b.op("Sub", y, x, name="t")
    assert doubles(b) == [("d", "c")]


def test_other_ops_other_attrs_and_other_inputs_stay_apart(b):
    x, y = b.graph.get_tensor_by_name("x:0"), b.graph.get_tensor_by_name("y:0")
    for name, input_ in (("a", x), ("b", y)):
        b.op("Neg", input_, name=name)
    b.op("Abs", x)
    for transposed in (False, True):
        b.op("MatMul", x, y, transpose_a=transposed)
    assert doubles(b) == []


def test_constants_are_one_where_type_shape_and_value_agree(b):
    for name, value in (
        ("a", np.float32(1)),
        ("b", np.float32(1)),
        ("c", np.float32(2)),
        ("d", np.int32(1)),
        ("e", np.int64(1)),
        ("f", np.ones(1, "i4")),
        ("g", np.ones(1, "i4")),
    ):
        b.constant(value, name=name)
    assert doubles(b) == [("b", "a"), ("g", "f")]


def test_what_has_state_or_waits_for_others_stays_apart(b):
    shape = b.constant([2], "i4")
    for name in "rs":
        b.op("RandomUniform", shape, dtype=FLOAT, name=name)
    c, d = mul(b, "c"), mul(b, "d")
    d.op.add_control_input(b.graph.get_operation_by_name("r"))
    assert doubles(b) == []
    assert c.op is not d.op


def test_what_is_fetched_keeps_its_name(b):
    c, d = mul(b, "c"), mul(b, "d")
    graph = optimized(b, [c, d])
    assert [tensor.name for tensor in graph.fetches] == ["c:0", "d:0"]
    assert ops_of(graph) == ["Identity", "Mul"]
    with opkernel.Session(b.graph) as session:
        assert session.run([c, d], {"x:0": 2.0, "y:0": 3.0}) == [6, 6]


def test_those_who_wait_for_a_double_wait_for_the_other(b):
    c, d = mul(b, "c"), mul(b, "d")
    total = b.op("AddV2", c, d)
    last = b.operation("Neg", total, after=[d.op])
    graph = optimized(b, last.outputs[0], "common_subexpressions")
    assert ops_of(graph) == ["AddV2", "Mul", "Neg"]


def test_many_alike_take_no_time_to_speak_of(b):
    x = b.graph.get_tensor_by_name("x:0")
    total = b.op("AddN", [b.op("Neg", x) for _ in range(5000)])
    assert ops_of(optimized(b, total, "common_subexpressions")) == ["AddN", "Neg"]
