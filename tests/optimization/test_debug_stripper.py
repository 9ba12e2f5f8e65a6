"""What only watches over values goes where that is asked for, and nowhere else."""

import numpy as np
import pytest
from tests.optimization.optimizing import check_same, ops_of, optimized
from tests.runtime.dataflow.loop_builders import FLOAT, Builder

import opkernel
from opkernel.errors import InvalidArgumentError
from opkernel.optimization import optimization_passes
from opkernel.proto import ConfigProto, RewriterConfig


def watched():
    """-x, once x > 0 was asserted, the numbers checked and printed."""
    b = Builder()
    x = b.placeholder("x")
    message = b.constant(np.array(b"negative", object))
    is_right = b.op("Greater", x, b.constant(0.0))
    asserted = b.operation("Assert", is_right, [message], T=[opkernel.string])
    checked = b.op("CheckNumerics", x, message="not a number")
    printed = b.op("Print", checked, [x], U=[FLOAT])
    return b, x, b.operation("Neg", printed, after=[asserted], name="y").outputs[0]


def test_it_runs_where_it_is_asked_for_alone():
    b, x, y = watched()
    assert "Assert" in ops_of(optimized(b, y))
    names = {one.name for one in optimization_passes()}
    assert ops_of(optimized(b, y, *names)) == ["Neg"]
    check_same(b, y, {x: 2.0}, "debug_stripper")
    config = ConfigProto()
    config.graph_options.rewrite_options.debug_stripper = RewriterConfig.ON
    for options in ({"optimize": names}, {"config": config}, {"optimize": {"debug_stripper"}}):
        with opkernel.Session(b.graph, **options) as session:
            assert session.run(y, {x: -1.0}) == 1
            assert np.isnan(session.run(y, {x: np.nan}))
    with opkernel.Session(b.graph) as session, pytest.raises(InvalidArgumentError):
        session.run(y, {x: -1.0})


def test_effects_on_the_way_to_what_was_watched_stay():
    b = Builder()
    handle = b.op("VarHandleOp", dtype=FLOAT, shape=[], name="v")
    assign = b.operation("AssignVariableOp", handle, b.constant(1.0), dtype=FLOAT)
    added = b.operation("AssignAddVariableOp", handle, b.constant(1.0), dtype=FLOAT, after=[assign])
    read = b.operation("ReadVariableOp", handle, dtype=FLOAT, after=[added])
    is_right = b.op("Greater", b.op("Exp", read.outputs[0]), b.constant(0.0))
    message = b.constant(np.array(b"negative", object))
    asserted = b.operation("Assert", is_right, [message], T=[opkernel.string])
    y = b.operation("ReadVariableOp", handle, dtype=FLOAT, after=[asserted]).outputs[0]
    left = ops_of(optimized(b, y, "debug_stripper"))
    assert "Exp" not in left
    assert left.count("AssignAddVariableOp") == 1
    check_same(b, y, {}, "debug_stripper")


def test_in_loops_and_on_branches():
    b = Builder()
    x = b.placeholder("x")
    message = b.constant(np.array(b"negative", object))

    def body(i, x, message):
        is_right = b.op("Greater", x, b.constant(0.0))
        asserted = b.operation("Assert", is_right, [message], T=[opkernel.string])
        added = b.operation("AddV2", x, b.constant(1.0), after=[asserted])
        return [b.op("AddV2", i, b.constant(1)), added.outputs[0]]

    _, y = b.while_loop(
        lambda i, x, message: b.op("Less", i, b.constant(3)), body, [b.constant(0), x], [message]
    )
    check_same(b, y, {x: 1.0}, "debug_stripper")
    for executor in ("", "DATAFLOW"):
        with opkernel.Session(
            b.graph, optimize={"debug_stripper"}, executor_type=executor
        ) as session:
            assert session.run(y, {x: -9.0}) == -6
