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
    with opkernel.Session(b.graph, jit="xla!", **options) as session:
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


def squares(test="Less", limit=lambda b: b.constant(3), step=1, start=0):
    """y = x ** 8 by three squares; the gradient takes the value of each turn from a list."""
    b = Builder()
    x = b.op("Placeholder", name="x", dtype=FLOAT, shape=[2])
    _, y = b.while_loop(
        lambda i, y: b.op(test, i, limit(b)),
        lambda i, y: [b.op("AddV2", i, b.constant(step)), b.op("Square", y)],
        [b.constant(start), x],
    )
    return b, x, y, b.op("Neg", opkernel.gradients([y], [x])[0])


@pytest.mark.parametrize(
    ("test", "limit", "step", "start"),
    [("Less", 3, 1, 0), ("LessEqual", 2, 1, 0), ("Less", 8, 2, 3), ("LessEqual", 7, 3, -1)],
)
def test_the_list_of_a_loop_that_counts_gets_a_largest_size(test, limit, step, start):
    b, x, y, dx = squares(test, lambda b: b.constant(limit), step, start)
    assert left(b, [y, dx], [x]) == {}
    given_x = np.array([1.5, -0.5], "f4")
    found = run(b, [y, dx], {x: given_x})
    np.testing.assert_allclose(found[0], given_x**8, rtol=1e-5)
    np.testing.assert_allclose(found[1], -8 * given_x**7, rtol=1e-5)


@pytest.mark.parametrize(("turns", "is_compiled"), [(4, True), (200_000, False)])
def test_the_stack_of_a_loop_that_counts_gets_a_largest_size(turns, is_compiled):
    """Squares are pushed, turn by turn; the last come first, and each is added to half of the sum."""
    b = Builder()
    stack = b.op("StackV2", b.constant(-1), elem_type=FLOAT, name="stack")

    def push(i, handle):
        square = b.op("Cast", b.op("Mul", i, i), DstT=FLOAT)
        pushed = b.operation("StackPushV2", handle, square)
        return [b.operation("AddV2", i, b.constant(1), after=[pushed]).outputs[0]]

    def pop(i, total, handle):
        popped = b.operation("StackPopV2", handle, after=[i.op], elem_type=FLOAT).outputs[0]
        half = b.op("Mul", total, b.constant(0.5))
        return [b.op("AddV2", i, b.constant(1)), b.op("AddV2", half, popped)]

    (count,) = b.while_loop(
        lambda i, handle: b.op("Less", i, b.constant(turns)), push, [b.constant(0)], [stack]
    )
    first = b.op("Sub", count, b.constant(4))
    _, total = b.while_loop(
        lambda i, total, handle: b.op("Less", i, b.constant(turns)),
        pop,
        [first, b.constant(0.0)],
        [stack],
    )
    y = b.op("Neg", total)
    assert ("its list has no largest size" in left(b, [y], []).values()) is not is_compiled
    if is_compiled:
        assert left(b, [y], []) == {}
        assert run(b, [y], {})[0] == -(((9 / 2 + 4) / 2 + 1) / 2 + 0)


def test_a_list_without_a_largest_size_stays_outside(caplog):
    fed = []

    def limit(b):
        fed.append(b.op("Enter", b.placeholder("n", INT32), is_constant=True, frame_name="loop_1"))
        return fed[0]

    b, x, y, dx = squares(limit=limit)
    n = b.graph.get_tensor_by_name("n:0")
    assert "its list has no largest size" in left(b, [y, dx], [x, n]).values()
    given_x = np.array([1.5, -0.5], "f4")
    found = run(b, [y, dx], {x: given_x, n: 3})
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
