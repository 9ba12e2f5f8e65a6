"""When fed shapes repeat, a session runs a plan for these shapes: what users see of it, and do not."""

import logging
import threading

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel.errors import InvalidArgumentError, OpError
from opkernel.kernel import OpKernel, register_kernel
from opkernel.opdef import register_op, unchanged_shape
from opkernel.optimization import Grouping, optimization_passes, register_optimization
from opkernel.proto import ConfigProto, NameAttrList, RewriterConfig, RunMetadata

ALL = {one.name for one in optimization_passes()}
OTHERS = ALL - {"shape_specialization"}


@pytest.fixture
def calls():
    """What the kernel of the op SeesShape, which gives what it takes, was called with."""
    seen = []
    op = register_op(
        "SeesShape", inputs=["x: int32"], outputs=["y: int32"], shape_fn=unchanged_shape
    )

    @register_kernel(op, device="CPU")
    def see(x):
        seen.append(x.tolist())
        return np.array(x)

    return seen


def rows_and_columns():
    """A graph that adds to a matrix its number of rows and columns."""
    b = Builder()
    x = b.op("Placeholder", dtype=FLOAT, shape=opkernel.PartialTensorShape([None, None]), name="x")
    sizes = b.op("SeesShape", b.op("Shape", x))
    total = b.op("Sum", sizes, b.constant([0], "i4"))
    return b, x, b.op("AddV2", x, b.op("Cast", total, SrcT=INT32, DstT=FLOAT), name="y")


def zeros(*shape):
    return np.zeros(shape, "f4")


def steps_that_look(calls, run, *shapes):
    """For each shape whether a step asked for the shape of what it was fed."""
    looked = []
    for shape in shapes:
        del calls[:]
        assert np.array_equal(run(zeros(*shape)), np.full(shape, sum(shape)))
        looked.append(bool(calls))
    return looked


def test_steps_after_the_third_with_a_shape_compute_no_shapes(calls):
    b, x, y = rows_and_columns()
    with opkernel.Session(b.graph) as session:

        def run(value):
            return session.run(y, {x: value})

        assert steps_that_look(calls, run, (2, 3), (2, 3)) == [True, True]
        run(zeros(2, 3))
        assert steps_that_look(calls, run, (2, 3), (2, 3)) == [False, False]
        assert steps_that_look(calls, run, (4, 3), (2, 3), (0, 3)) == [True, False, True]


def test_a_session_reports_since_when_steps_have_such_a_plan(calls):
    b, x, y = rows_and_columns()
    with opkernel.Session(b.graph) as session:
        run = session.make_callable(y, [x])
        steps_that_look(calls, run, (2, 3), (2, 3))
        assert session.report() == []
        steps_that_look(calls, run, (2, 3), (2, 3))
        assert [*map(str, session.report())] == [
            "y:0 fed [2, 3]: plan for the shapes since step 3 (shapes)"
        ]


def test_functions_of_make_callable_have_such_plans_too(calls):
    b, x, y = rows_and_columns()
    with opkernel.Session(b.graph) as session:
        call = session.make_callable(y, [x])
        for _ in range(3):
            call(zeros(2, 3))
        assert steps_that_look(calls, call, (2, 3), (3, 2), (2, 3)) == [False, True, False]


def toggles(**switches):
    proto = ConfigProto()
    for name, value in switches.items():
        setattr(proto.graph_options.rewrite_options, name, value)
    return proto


@pytest.mark.parametrize(
    "options",
    [
        {"optimize": False},
        {"optimize": OTHERS},
        {"config": toggles(shape_optimization=RewriterConfig.OFF)},
        {"config": opkernel.SessionConfig(operation_timeout_in_ms=60_000)},
        {"sanitize": True},
    ],
    ids=["no passes", "all others", "toggle", "timeout", "sanitize"],
)
def test_sessions_that_do_without(calls, options):
    b, x, y = rows_and_columns()
    with opkernel.Session(b.graph, **options) as session:
        looked = steps_that_look(calls, lambda value: session.run(y, {x: value}), *[(2, 3)] * 6)
    assert looked == [True] * 6


def test_steps_that_are_recorded_run_the_plan_for_their_shapes(calls):
    b, x, y = rows_and_columns()
    with opkernel.Session(b.graph) as session:
        for _ in range(4):
            session.run(y, {x: zeros(2, 3)})
        assert "Shape" not in recorded_nodes(session, y, {x: zeros(2, 3)})
        assert "Shape" in recorded_nodes(session, y, {x: zeros(4, 3)}), "these came once"


def recorded_nodes(session, fetches, feeds):
    metadata = RunMetadata()
    options = opkernel.RunOptions(trace_level=opkernel.RunOptions.FULL_TRACE)
    session.run(fetches, feeds, options, metadata)
    return {node.node_name for dev in metadata.step_stats.dev_stats for node in dev.node_stats}


def test_steps_that_are_run_in_parts_are_those_of_the_graph(calls):
    b, x, y = rows_and_columns()
    with opkernel.Session(b.graph) as session:
        for _ in range(4):
            session.run(y, {x: zeros(2, 3)})
        handle = session.partial_run_setup(y, [x])
        del calls[:]
        assert session.partial_run(handle, y, {x: zeros(2, 3)}).tolist() == [[5] * 3] * 2
        assert calls


def test_shapes_that_keep_changing_have_no_plans(calls):
    b, x, y = rows_and_columns()
    with opkernel.Session(b.graph) as session:
        run = session.make_callable(y, [x])
        shapes = [(rows, columns) for _ in range(2) for rows in range(15) for columns in range(15)]
        assert steps_that_look(calls, run, *shapes) == [True] * len(shapes)


def test_each_further_plan_asks_for_twice_as_many_steps_and_the_oldest_of_four_goes(calls):
    b, x, y = rows_and_columns()
    with opkernel.Session(b.graph) as session:
        run = session.make_callable(y, [x])
        for rows, steps in enumerate((3, 6, 12, 24)):
            looked = steps_that_look(calls, run, *[(rows, 3)] * (steps + 2))
            assert looked == [True] * steps + [False] * 2
        assert steps_that_look(calls, run, (0, 3), (1, 3), (2, 3), (3, 3)) == [False] * 4
        for _ in range(48):
            run(zeros(9, 9))
        shapes = (0, 3), (1, 3), (2, 3), (3, 3), (9, 9)
        assert steps_that_look(calls, run, *shapes) == [True, False, False, False, False]


def test_what_asks_for_no_shape_is_run_as_it_is():
    b = Builder()
    x = b.placeholder("x")
    y = b.op("Neg", b.op("Reshape", x, b.constant([-1], "i4")))
    with opkernel.Session(b.graph) as session:
        plans = [session.plan(y, [x], [shape]) for shape in ((3,), (2, 2))]
        assert plans == [session.plan(y, [x])] * 2


def test_the_plan_for_shapes_can_be_read(calls):
    b, x, y = rows_and_columns()
    with opkernel.Session(b.graph) as session:
        assert "Shape = " in session.plan(y, [x]).source
        plan = session.plan(y, [x], [(2, 3)])
        assert "Shape = " not in plan.source
        assert "y = " in plan.source
        for shapes in ([], [(2, 3), (2, 3)], [(2,)], [(2, -1)]):
            with pytest.raises(InvalidArgumentError):
                session.plan(y, [x], shapes)


# Errors.


def outcome(run, *values):
    """What a step gives, or what it says of the node that failed."""
    try:
        return [np.asarray(value).tolist() for value in run(*values)]
    except OpError as error:
        return type(error), error.node, error.op, error.message


def test_errors_are_those_of_the_general_plan_at_every_step():
    b = Builder()
    x, index = b.placeholder("x"), b.placeholder("index", INT32)
    rows = b.op("StridedSlice", b.op("Shape", x), *[b.constant([n], "i4") for n in (0, 1, 1)])
    square = b.op("Reshape", x, b.op("ConcatV2", [rows, rows], b.constant(0), name="sizes"))
    row = b.op("GatherV2", square, index, b.constant(0), name="row")
    steps = [(zeros(2, 2), 1), (zeros(2, 3), 1), (zeros(2, 2), 2), (zeros(2, 2), 1), (zeros(2), 0)]
    with opkernel.Session(b.graph) as session, opkernel.Session(b.graph, optimize=False) as other:
        run, run_other = (s.make_callable([row], [x, index]) for s in (session, other))
        for _ in range(6):
            for step in steps:
                assert outcome(run, *step) == outcome(run_other, *step)
        assert "Shape" not in session.plan([row], [x, index], [(2, 2), ()]).source
        assert outcome(run, zeros(2, 3), 1)[:2] == (InvalidArgumentError, "Reshape")
        assert outcome(run, zeros(2, 2), 2)[:2] == (InvalidArgumentError, "row")


def test_what_fails_to_make_a_plan_is_logged_and_changes_nothing(calls, caplog):
    @register_optimization(Grouping.POST_PARTITIONING, 99)
    def fails_where_shapes_are_known(editor):
        if any(editor.dims(op.outputs[0]) is not None for op in editor.feeds):
            raise RuntimeError("no such luck")

    b, x, y = rows_and_columns()
    try:
        with caplog.at_level(logging.INFO), opkernel.Session(b.graph) as session:
            run = session.make_callable(y, [x])
            assert steps_that_look(calls, run, *[(2, 3)] * 5) == [True] * 5
    finally:
        optimization_passes().unregister("fails_where_shapes_are_known")
    assert "no such luck" in caplog.text


# State.


def test_kernels_keep_their_state_from_plan_to_plan():
    op = register_op(
        "CountsOn",
        inputs=["x: float"],
        outputs=["y: float"],
        is_stateful=True,
        shape_fn=unchanged_shape,
    )

    @register_kernel(op, device="CPU")
    class CountsOn(OpKernel):
        count = 0

        def compute(self, ctx):
            self.count += 1
            ctx.set_output(0, ctx.input(0) + self.count)

    b = Builder()
    x = b.placeholder("x")
    y = b.op("CountsOn", b.op("Cast", b.op("Rank", x), SrcT=INT32, DstT=FLOAT))
    shapes = [()] * 5 + [(3,)] * 2 + [()] * 2 + [(3,)] * 8
    with opkernel.Session(b.graph) as session:
        found = [session.run(y, {x: zeros(*shape)}) for shape in shapes]
    assert found == [len(shape) + step for step, shape in enumerate(shapes, 1)]


def test_variables_and_queues_go_on():
    def results(optimize):
        b = Builder()
        x = b.placeholder("x")
        v = b.op("VarHandleOp", dtype=FLOAT, shape=[], shared_name="v")
        start = b.operation("AssignVariableOp", v, b.constant(0.0), dtype=FLOAT)
        size = b.op("Cast", b.op("Size", x), SrcT=INT32, DstT=FLOAT)
        add = b.operation("AssignAddVariableOp", v, size, dtype=FLOAT)
        total = b.operation("ReadVariableOp", v, dtype=FLOAT, after=[add]).outputs[0]
        queue = b.op("FIFOQueueV2", component_types=[INT32])
        put = b.operation("QueueEnqueueV2", queue, [b.op("Rank", x)], Tcomponents=[INT32])
        taken = b.operation("QueueSizeV2", queue, after=[put]).outputs[0]
        with opkernel.Session(b.graph, optimize=optimize) as session:
            session.run(start)
            fetches = [total, taken]
            return [session.run(fetches, {x: zeros(*shape)}) for shape in [(2, 2)] * 5 + [(3,)] * 2]

    for found, expected in zip(results(True), results(False), strict=True):
        for value, want in zip(found, expected, strict=True):
            assert np.array_equal(value, want)


# Changes.


def test_a_callable_is_what_it_was_when_the_graph_is_changed(calls):
    b, x, y = rows_and_columns()
    with opkernel.Session(b.graph) as session:
        call = session.make_callable(y, [x])
        call(zeros(2, 3))
        y.op.update_input(1, b.constant(0.5))
        for _ in range(5):
            assert call(zeros(2, 3)).tolist() == [[5] * 3] * 2
        assert session.run(y, {x: zeros(1, 1)}) == 0.5


def test_a_finalized_session_compiles_nothing(calls):
    b, x, y = rows_and_columns()
    with opkernel.Session(b.graph) as session:
        session.run(y, {x: zeros(2, 3)})
        session.finalize()
        looked = steps_that_look(calls, lambda value: session.run(y, {x: value}), *[(2, 3)] * 5)
    assert looked == [True] * 5


# Threads.


def test_sixteen_threads_feed_shapes_that_come_and_go():
    b, x, y = rows_and_columns_of_the_catalogue()
    wrong = []
    with opkernel.Session(b.graph) as session:

        def work(seed):
            random = np.random.default_rng(seed)
            for _ in range(150):
                shape = tuple(random.integers(0, 4, 2).tolist())
                if not np.array_equal(
                    session.run(y, {x: zeros(*shape)}), np.full(shape, sum(shape))
                ):
                    wrong.append(shape)

        threads = [threading.Thread(target=work, args=[seed]) for seed in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def rows_and_columns_of_the_catalogue():
    b = Builder()
    x = b.op("Placeholder", dtype=FLOAT, shape=opkernel.PartialTensorShape([None, None]), name="x")
    total = b.op("Sum", b.op("Shape", x), b.constant([0], "i4"))
    return b, x, b.op("AddV2", x, b.op("Cast", total, SrcT=INT32, DstT=FLOAT), name="y")


# Loops and functions.


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
def test_shapes_are_known_in_loops_and_in_functions(calls, executor):
    b = Builder()
    x = b.op("Placeholder", dtype=FLOAT, shape=opkernel.PartialTensorShape([None]), name="x")

    def add_size(g, x):
        size = g.op("SeesShape", g.op("Size", x))
        return g.op("AddV2", x, g.op("Cast", size, SrcT=INT32, DstT=FLOAT))

    less = define(b, "less", [INT32, FLOAT], lambda g, i, x: [g.op("Less", i, g.constant(3))])
    turn = define(
        b, "turn", [INT32, FLOAT], lambda g, i, x: [g.op("AddV2", i, g.constant(1)), add_size(g, x)]
    )
    loop = b.operation("StatelessWhile", [b.constant(0), x], cond=less, body=turn, T=[INT32, FLOAT])
    _, y = b.while_loop(
        lambda i, x: b.op("Less", i, b.constant(2)),
        lambda i, x: [b.op("AddV2", i, b.constant(1)), add_size(b, x)],
        [b.constant(0), loop.outputs[1]],
    )
    with opkernel.Session(b.graph, executor_type=executor) as session:
        looks = []
        for step in range(6):
            del calls[:]
            assert session.run(y, {x: np.full(4, step, "f4")}).tolist() == [20 + step] * 4
            looks.append(len(calls))
    assert looks[:2] == [5, 5]
    assert looks[3:] == [0, 0, 0]


def test_a_loop_whose_variables_grow_has_no_shapes_for_granted():
    b = Builder()
    x = b.op("Placeholder", dtype=FLOAT, shape=opkernel.PartialTensorShape([None]), name="x")
    less = define(b, "less", [INT32, FLOAT], lambda g, i, x: [g.op("Less", i, g.constant(3))])

    def twice(g, i, x):
        size = g.op("Cast", g.op("Size", x), SrcT=INT32, DstT=FLOAT)
        both = g.op("ConcatV2", [x, x], g.constant(0))
        return [g.op("AddV2", i, g.constant(1)), g.op("AddV2", both, size)]

    turn = define(b, "turn", [INT32, FLOAT], twice)
    shapes = [opkernel.PartialTensorShape([]), opkernel.PartialTensorShape([None])]
    loop = b.operation(
        "StatelessWhile",
        [b.constant(0), x],
        cond=less,
        body=turn,
        T=[INT32, FLOAT],
        output_shapes=shapes,
    )
    y = b.op("AddV2", loop.outputs[1], b.op("Cast", b.op("Size", x), SrcT=INT32, DstT=FLOAT))
    with opkernel.Session(b.graph) as session:
        for _ in range(5):  # 2 + (2 + 4 + 8)
            assert session.run(y, {x: zeros(2)}).tolist() == [16] * 16


def test_a_function_that_calls_itself_on_ever_larger_arguments():
    b = Builder()
    x = b.op("Placeholder", dtype=FLOAT, shape=opkernel.PartialTensorShape([None]), name="x")
    recursive = NameAttrList(name="grow")
    define(b, "stop", [FLOAT], lambda g, x: [g.op("Neg", x)])
    define(
        b,
        "go_on",
        [FLOAT],
        lambda g, x: [
            g.op(
                "StatefulPartitionedCall",
                [g.op("ConcatV2", [x, x], g.constant(0))],
                f=recursive,
                Tout=[FLOAT],
            )
        ],
    )

    def grow(g, x):
        is_small = g.op("Less", g.op("Size", x), g.constant(5000))
        branches = {
            "then_branch": NameAttrList(name="go_on"),
            "else_branch": NameAttrList(name="stop"),
        }
        return [g.op("If", is_small, [x], Tout=[FLOAT], **branches)]

    define(b, "grow", [FLOAT], grow)
    y = b.op("StatefulPartitionedCall", [x], f=recursive, Tout=[FLOAT])
    with opkernel.Session(b.graph) as session:
        for _ in range(5):
            assert session.run(y, {x: zeros(1) + 1}).tolist() == [-1] * 8192
            assert session.run(y, {x: zeros(3)}).shape == (6144,)
