"""Sessions with `jit="xla"` compile loops and conditionals of TensorFlow 1 as a whole."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.optimization.control_flow.random_program import blocks, evaluate, grow
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder

import opkernel
from opkernel.engines import clusters_of
from opkernel.runtime.engines.engine import engine_named

pytestmark = pytest.mark.jax
pytest.importorskip("jax")


def run(b, fetches, feeds, **options):
    with opkernel.Session(b.graph, jit="xla", **options) as session:
        for _ in range(2):
            found = session.run(fetches, feeds)
    return found


def left(b, fetches, feeds):
    """What stays outside of clusters, but for feeds."""
    found = clusters_of(b.graph, fetches, feeds, engine=engine_named("xla"))
    return {name: why for name, why in found.outside.items() if why != "it is fed"}


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(blocks(2, 2), st.lists(st.integers(0, 96), min_size=3, max_size=3))
def test_random_programs_have_the_values_that_python_computes(block, values):
    b = Builder()
    feeds = [b.op("Placeholder", name=name, dtype=INT32, shape=[]) for name in "xyz"]
    fetches = [b.op("Identity", tensor) for tensor in grow(b, block, feeds)]
    assert run(b, fetches, dict(zip(feeds, values, strict=True))) == evaluate(block, values)


def test_a_list_without_a_largest_size_stays_outside(caplog):
    """y = x ** 8 by three squares; the gradient takes the value of each turn from a list that may grow."""
    b = Builder()
    x = b.op("Placeholder", name="x", dtype=FLOAT, shape=[2])
    _, y = b.while_loop(
        lambda i, y: b.op("Less", i, b.constant(3)),
        lambda i, y: [b.op("AddV2", i, b.constant(1)), b.op("Square", y)],
        [b.constant(0), x],
    )
    dx = b.op("Neg", opkernel.gradients([y], [x])[0])
    whys = left(b, [y, dx], [x])
    assert "its list has no largest size" in whys.values()
    given_x = np.array([1.5, -0.5], "f4")
    found = run(b, [y, dx], {x: given_x})
    np.testing.assert_allclose(found[0], given_x**8, rtol=1e-5)
    np.testing.assert_allclose(found[1], -8 * given_x**7, rtol=1e-5)
    assert "does not compile" not in caplog.text


def test_a_tensor_array_is_written_in_a_loop_and_read_behind_it():
    b = Builder()
    n = b.constant(4)
    array = b.operation("TensorArrayV3", n, dtype=FLOAT, element_shape=[], name="array")
    handle, flow = array.outputs
    _, flow = b.while_loop(
        lambda i, flow, handle, n: b.op("Less", i, n),
        lambda i, flow, handle, n: [
            b.op("AddV2", i, b.constant(1)),
            b.op("TensorArrayWriteV3", handle, i, b.op("Cast", i, DstT=FLOAT), flow),
        ],
        [b.constant(0), flow],
        [handle, n],
    )
    indices = b.op("Range", b.constant(0), n, b.constant(1))
    x = b.op("TensorArrayGatherV3", handle, indices, flow, dtype=FLOAT, element_shape=[])
    y = b.op("Neg", x)
    assert left(b, [y], []) == {}
    np.testing.assert_array_equal(run(b, [y], {})[0], [0, -1, -2, -3])


def test_a_list_that_something_outside_takes_stays_outside():
    b = Builder()
    shape = b.constant(np.zeros(0, "i4"))
    items = b.op("TensorListReserve", shape, b.constant(2), element_dtype=FLOAT)
    items = b.op("TensorListSetItem", items, b.constant(0), b.placeholder("x"))
    size = b.op("TensorListLength", items)
    text = b.op(
        "AsString", b.op("TensorListGetItem", items, b.constant(0), shape, element_dtype=FLOAT)
    )
    again = b.op("StringToNumber", text, out_type=FLOAT)
    items = b.op("TensorListSetItem", items, b.constant(1), again)
    y = b.op("TensorListStack", items, shape, element_dtype=FLOAT, num_elements=-1)
    x = b.graph.get_tensor_by_name("x:0")
    found = run(b, [y, size], {x: 3.0})
    np.testing.assert_array_equal(found[0], [3, 3])
    assert found[1] == 2
    outside = left(b, [y, size], [x])
    assert any("a list passes between" in why for why in outside.values())


@pytest.mark.parametrize("taken", [True, False])
def test_variables_in_loops_and_branches_change_as_often_as_without(taken):
    b = Builder()
    p = b.placeholder("p", BOOL)
    handle = b.op("VarHandleOp", dtype=FLOAT, shape=[], shared_name="v")
    start = b.operation("AssignVariableOp", handle, b.constant(0.0), dtype=FLOAT)
    first = b.operation("Identity", b.constant(0), after=[start]).outputs[0]

    inside = handle

    def count(i):
        one = b.constant(1.0)
        add = b.operation("AssignAddVariableOp", inside, one, dtype=FLOAT, after=[i.op])
        return b.operation("Identity", i, after=[add]).outputs[0]

    def turn(i, p, handle):
        nonlocal inside
        inside = handle
        (i,) = b.cond(p, lambda i: [count(i)], lambda i: [i], [i])
        return [b.op("AddV2", i, b.constant(1))]

    (i,) = b.while_loop(
        lambda i, p, handle: b.op("Less", i, b.constant(3)), turn, [first], [p, handle]
    )
    read = b.operation("ReadVariableOp", handle, dtype=FLOAT, after=[i.op]).outputs[0]
    assert run(b, [i, read], {p: taken}) == [3, 3.0 * taken]
