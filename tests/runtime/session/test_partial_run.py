"""Partial runs: fed and fetched from in parts; codes and texts are those of TensorFlow's."""

import threading

import numpy as np
import pytest
from tests.blocked import wait_until_blocked
from tests.runtime.dataflow.kernels import Later, WaitsForCancellation, register
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder
from tests.runtime.dataflow.test_loops import counted

import opkernel
from opkernel.errors import (
    CancelledError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
)
from opkernel.kernel import OpKernel

LATER, WAITS, COUNTS = "PartialLater", "PartialWaits", "PartialCounts"


@pytest.fixture(scope="module", autouse=True)
def ops():
    register(LATER, Later)
    register(WAITS, WaitsForCancellation)


@pytest.fixture
def builder():
    """c = x + 2, d = c * y, e = -d."""
    b = Builder()
    x, y = b.placeholder("x"), b.placeholder("y")
    c = b.op("Add", x, b.constant(2.0), name="c")
    b.op("Neg", b.op("Mul", c, y, name="d"), name="e")
    return b


@pytest.fixture
def session(builder):
    with opkernel.Session(builder.graph) as session:
        yield session


def test_feeds_come_as_they_are_needed(session):
    handle = session.partial_run_setup(["c:0", "d:0", "e:0"], ["x:0", "y:0"])
    assert session.partial_run(handle, "c:0", {"x:0": 1.0}) == 3
    assert session.partial_run(handle, {"d": "d:0"}, {"y:0": 5.0}) == {"d": 15}
    assert session.partial_run(handle, ["e:0"]) == [-15]
    with pytest.raises(InvalidArgumentError, match="Must run 'setup' before"):
        session.partial_run(handle, "e:0")


def test_several_runs_go_on_side_by_side(session):
    handles = [session.partial_run_setup("d:0", ["x:0", "y:0"]) for _ in range(2)]
    for number, handle in enumerate(handles):
        session.partial_run(handle, [], {"x:0": float(number)})
    assert [session.partial_run(handle, "d:0", {"y:0": 10.0}) for handle in handles] == [20, 30]


def test_any_output_may_be_fed():
    b = Builder()
    split = b.operation("Split", b.constant(0), b.placeholder("x"), num_split=2, name="split")
    b.op("AddV2", *split.outputs, name="sum")
    with opkernel.Session(b.graph) as session:
        handle = session.partial_run_setup("sum:0", ["split:0", "split:1"])
        session.partial_run(handle, [], {"split:1": [2.0]})
        assert session.partial_run(handle, "sum:0", {"split:0": [1.0]}) == [3]


@pytest.mark.parametrize(
    ("fetches", "feeds", "message"),
    [
        (["c:0"], {}, "Fetch x:0 can't be computed from the feeds that have been fed so far"),
        (["d:0"], {"x:0": 1.0}, "Fetch y:0 can't be computed"),
        (["e:0"], {"x:0": 1.0}, "The fetch e:0 was not specified in partial_run_setup"),
        (["c:0"], {"c:0": 1.0}, "The feed c:0 was not specified in partial_run_setup"),
        (["c:0"], {"x:0": [[1.0]]}, "Cannot feed value of shape"),
    ],
)
def test_a_mistake_leaves_the_run_as_it_is(builder, fetches, feeds, message):
    builder.graph.get_tensor_by_name("x:0").set_shape([])
    with opkernel.Session(builder.graph) as session:
        handle = session.partial_run_setup(["c:0", "d:0"], ["x:0", "y:0"])
        with pytest.raises(InvalidArgumentError, match=message):
            session.partial_run(handle, fetches, feeds)
        assert session.partial_run(handle, "c:0", {"x:0": 1.0}) == 3
        with pytest.raises(InvalidArgumentError, match="The feed x:0 has already been fed"):
            session.partial_run(handle, "d:0", {"x:0": 1.0})
        with pytest.raises(InvalidArgumentError, match="The fetch c:0 has already been fetched"):
            session.partial_run(handle, "c:0")
        assert session.partial_run(handle, "d:0", {"y:0": 2.0}) == 6


def test_there_must_be_something_to_run(session):
    with pytest.raises(InvalidArgumentError, match="at least one target to fetch or execute"):
        session.partial_run_setup([], ["x:0"])
    with pytest.raises(NotFoundError, match="zz"):
        session.partial_run_setup("zz:0")


def test_each_operation_runs_once_and_targets_run_too():
    class Counts(OpKernel):
        runs = 0

        def compute(self, ctx):
            Counts.runs += 1
            ctx.set_output(0, ctx.input(0))

    register(COUNTS, Counts)
    b = Builder()
    x, y = b.placeholder("x"), b.placeholder("y")
    counts = b.op(COUNTS, x, name="counts")
    b.op("Add", counts, y, name="sum")
    target = b.op(COUNTS, y, name="target").op
    with opkernel.Session(b.graph) as session:
        handle = session.partial_run_setup(["counts:0", "sum:0", target], ["x:0", "y:0"])
        assert session.partial_run(handle, "counts:0", {"x:0": 1.0}) == 1
        assert session.partial_run(handle, "sum:0", {"y:0": 2.0}) == 3
    assert Counts.runs == 2


def test_loops_and_kernels_that_wait_run_in_parts_too():
    b = Builder()
    (y,) = counted(
        b, b.placeholder("n", INT32), lambda i, x: [b.op("AddV2", x, x)], [b.placeholder("x")]
    )
    late = b.op(LATER, y)
    with opkernel.Session(b.graph) as session:
        handle = session.partial_run_setup([y, late], ["n:0", "x:0"])
        session.partial_run(handle, [], {"x:0": 1.0})
        assert session.partial_run(handle, [late, y], {"n:0": 4}) == [16, 16]


def test_a_dead_fetch_is_refused():
    b = Builder()
    dead = b.operation("Switch", b.placeholder("x"), b.constant(False), name="s").outputs[1]
    with opkernel.Session(b.graph) as session:
        handle = session.partial_run_setup(dead, ["x:0"])
        with pytest.raises(InvalidArgumentError, match="returned for s:1 was not valid"):
            session.partial_run(handle, dead, {"x:0": 1.0})


def test_an_error_ends_the_run_and_nothing_else(session, builder):
    b = builder
    bad = b.op("Reshape", b.placeholder("z"), b.constant([2, 2], np.int32), name="bad")
    handle = session.partial_run_setup([bad, "c:0"], ["z:0", "x:0"])
    other = session.partial_run_setup("c:0", ["x:0"])
    with pytest.raises(OpError, match="node 'bad'"):
        session.partial_run(handle, bad, {"z:0": [1.0]})
    with pytest.raises(InvalidArgumentError, match="Must run 'setup'"):
        session.partial_run(handle, "c:0", {"x:0": 1.0})
    assert session.partial_run(other, "c:0", {"x:0": 1.0}) == 3


def test_kernels_are_watched_in_a_sanitized_session(builder):
    class Writes(OpKernel):
        def compute(self, ctx):
            ctx.input(0)[...] = 3
            ctx.set_output(0, ctx.input(0))

    register("PartialWrites", Writes)
    builder.op("PartialWrites", builder.graph.get_tensor_by_name("c:0"), name="writes")
    with opkernel.Session(builder.graph, sanitize=True) as session:
        handle = session.partial_run_setup(["c:0", "writes:0"], ["x:0"])
        with pytest.raises(InternalError, match="writes to an input"):
            session.partial_run(handle, "writes:0", {"x:0": [1.0]})


def test_close_ends_what_waits():
    b = Builder()
    waits = b.op(WAITS, b.placeholder("x"))
    session = opkernel.Session(b.graph)
    handle = session.partial_run_setup(waits, ["x:0"])
    session.partial_run_setup(waits, ["x:0"])  # nobody goes on with this one
    errors = []

    def go_on() -> None:
        try:
            session.partial_run(handle, waits, {"x:0": 1.0})
        except OpError as error:
            errors.append(error)

    thread = threading.Thread(target=go_on)
    thread.start()
    wait_until_blocked(thread)
    session.close()
    thread.join(300)
    assert isinstance(errors[0], CancelledError)
    assert "Session has been closed" in str(errors[0])


def test_a_feed_of_another_type_is_refused(session):
    handle = session.partial_run_setup("c:0", ["x:0"])
    with pytest.raises(InvalidArgumentError, match="x:0"):
        session.partial_run(handle, "c:0", {"x:0": "text"})
    assert session.partial_run(handle, "c:0", {"x:0": np.array(1, FLOAT.as_numpy_dtype)}) == 3
