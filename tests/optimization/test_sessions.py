"""Sessions optimise what they run: the switches, and what stays as it was."""

import numpy as np
import pytest
from tests.optimization.optimizing import check_same
from tests.runtime.dataflow.loop_builders import FLOAT, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel.errors import InvalidArgumentError
from opkernel.graph import graph_to_function_def
from opkernel.kernel import OpKernel, register_kernel
from opkernel.opdef import register_op, unchanged_shape
from opkernel.proto import ConfigProto, OptimizerOptions, RewriterConfig


@pytest.fixture
def calls():
    """How often the kernel of the op CountsCalls ran."""
    counted = []
    op = register_op(
        "CountsCalls", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
    )

    @register_kernel(op, device="CPU")
    def count(x):
        counted.append(x)
        return np.negative(x)

    return counted


def constant_calls():
    """A graph in which CountsCalls runs twice a step, or never once it is folded."""
    b = Builder()
    x = b.placeholder("x")
    made = [b.op("CountsCalls", b.constant(2.0)) for _ in range(2)]
    return b, x, b.op("AddN", [x, *made])


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ({}, 1),  # when it is folded; the two are one by then
        ({"optimize": True}, 1),
        ({"optimize": False}, 6),
        ({"optimize": {"common_subexpressions"}}, 3),
        ({"optimize": set()}, 6),
        ({"config": opkernel.SessionConfig(optimize=False)}, 6),
        ({"config": opkernel.SessionConfig(optimize=False), "optimize": True}, 1),
        ({"sanitize": True}, 6),
    ],
)
def test_a_session_says_which_passes_run(calls, options, runs):
    b, x, y = constant_calls()
    with opkernel.Session(b.graph, **options) as session:
        assert [session.run(y, {x: 10.0}) for _ in range(3)] == [6, 6, 6]
    assert len(calls) in (runs, 2 * runs if runs == 1 else runs)  # folded before they are one


def config(**switches):
    proto = ConfigProto()
    rewrite = proto.graph_options.rewrite_options
    for name, value in switches.items():
        setattr(rewrite, name, value)
    return proto


def test_the_switches_of_tensorflow_are_kept_to(calls):
    off = RewriterConfig.OFF
    level_0 = ConfigProto()
    level_0.graph_options.optimizer_options.opt_level = OptimizerOptions.L0
    for proto, runs in (
        (level_0, 6),
        (config(disable_meta_optimizer=True), 6),
        (config(constant_folding=off), 3),
        (config(constant_folding=off, common_subgraph_elimination=off), 6),
        (config(remapping=off), 2),
    ):
        calls.clear()
        b, x, y = constant_calls()
        with opkernel.Session(b.graph, config=proto) as session:
            assert [session.run(y, {x: 10.0}) for _ in range(3)] == [6, 6, 6]
        assert len(calls) == runs, proto
    assert opkernel.SessionConfig.of(ConfigProto()).optimize is True


def test_bodies_of_functions_are_optimized(calls):
    b = Builder()
    body = Builder()
    x = body.placeholder("x")
    v = body.op("VarHandleOp", dtype=FLOAT, shape=[], name="v")  # so that it is not inlined
    assign = body.operation("AssignVariableOp", v, x, dtype=FLOAT)
    read = body.operation("ReadVariableOp", v, dtype=FLOAT, after=[assign]).outputs[0]
    y = body.op("AddV2", read, body.op("CountsCalls", body.constant(2.0)))
    b.graph.function_library.add_function(graph_to_function_def(body.graph, "f", [x], [y]))
    x = b.placeholder("x")
    y = b.op("f", x)
    with opkernel.Session(b.graph) as session:
        assert [session.run(y, {x: value}) for value in (1.0, 2.0, 3.0)] == [-1, 0, 1]
    assert len(calls) == 1


def test_shapes_of_arguments_are_what_is_given_whatever_was_known():
    b = Builder()
    body = Builder()
    x = body.op("Placeholder", dtype=FLOAT, shape=opkernel.PartialTensorShape([2, 3]), name="x")
    shape = body.op("Shape", x)
    function = graph_to_function_def(body.graph, "shape_of", [x], [shape])
    b.graph.function_library.add_function(function)
    x = b.placeholder("x")
    y = b.op("shape_of", x)
    with opkernel.Session(b.graph) as session:
        assert session.run(y, {x: np.zeros(5, "f4")}).tolist() == [5]


def test_any_tensor_may_be_fed_and_fetched():
    b = Builder()
    x = b.placeholder("x")
    inner = b.op("Identity", b.op("Neg", x), name="inner")
    y = b.op("Relu", b.op("Neg", inner))
    with opkernel.Session(b.graph) as session:
        assert session.run([y, inner, x], {x: 3.0}) == [3, -3, 3]
        assert session.run(y, {inner: -5.0}) == 5
        assert session.run([y, inner], {inner: -5.0, x: 1.0}) == [5, -5]
        assert session.run("inner:0", {"x:0": 2.0}) == -2


def test_the_graph_itself_stays_as_it_is():
    b = Builder()
    x = b.placeholder("x")
    y = b.op("Mul", b.op("Identity", x), b.op("AddV2", b.constant(1.0), b.constant(0.0)))
    before = b.graph.as_graph_def().SerializeToString(deterministic=True)
    with opkernel.Session(b.graph) as session:
        assert session.run(y, {x: 2.0}) == 2
        edits = b.graph.edits
        assert session.run(y, {x: 3.0}) == 3
    assert b.graph.as_graph_def().SerializeToString(deterministic=True) == before
    assert b.graph.edits == edits


def test_kernels_keep_their_state_whatever_is_optimized_around_them():
    op = register_op(
        "CountsUp",
        inputs=["x: float"],
        outputs=["y: float"],
        is_stateful=True,
        shape_fn=unchanged_shape,
    )

    @register_kernel(op, device="CPU")
    class CountsUp(OpKernel):
        count = 0

        def compute(self, ctx):
            self.count += 1
            ctx.set_output(0, ctx.input(0) + self.count)

    b = Builder()
    x = b.placeholder("x")
    counted = b.op("CountsUp", b.op("AddV2", b.constant(1.0), b.constant(1.0)), name="counted")
    y = b.op("AddV2", x, b.op("Identity", counted))
    with opkernel.Session(b.graph) as session:
        fetches = [y, counted, y, [counted, y], y]
        assert [session.run(f, {x: 0.0}) for f in fetches] == [3, 4, 5, [6, 6], 7]


def test_errors_name_the_node():
    b = Builder()
    x = b.placeholder("x")
    product = b.op("MatMul", x, b.constant(np.zeros((3, 2)), "f4"), name="dense/product")
    y = b.op("Neg", product, name="y")
    with opkernel.Session(b.graph) as session, pytest.raises(InvalidArgumentError) as caught:
        session.run(y, {x: np.zeros((2, 5), "f4")})
    assert caught.value.node == "dense/product"


def test_what_fails_fails_with_passes_and_without():
    b = Builder()
    x = b.placeholder("x")
    y = b.op("Neg", b.op("Reshape", x, b.constant([7], "i4")))
    for optimize in (True, False):
        with (
            opkernel.Session(b.graph, optimize=optimize) as session,
            pytest.raises(InvalidArgumentError, match="7"),
        ):
            session.run(y, {x: np.zeros(3, "f4")})


def test_many_nodes_take_time_in_proportion():
    import time

    seconds = []
    for count in (2000, 16000):
        b = Builder()
        y = x = b.placeholder("x")
        for _ in range(count // 4):
            y = b.op("Identity", b.op("Mul", y, b.op("AddV2", b.constant(1.5), b.constant(0.5))))
        start = time.process_time()
        opkernel.optimize_graph(b.graph, [y], [x])
        seconds.append((time.process_time() - start) / count)
    assert seconds[1] < 4 * seconds[0]


def test_a_loop_in_a_function_and_a_call_in_a_loop():
    b = Builder()
    half = define(b, "half", [FLOAT], lambda g, x: [g.op("Mul", x, g.constant(0.5))])
    x = b.placeholder("x")
    _, y = b.while_loop(
        lambda i, x: b.op("Less", i, b.constant(3)),
        lambda i, x: [
            b.op("AddV2", i, b.constant(1)),
            b.op("PartitionedCall", [x], f=half, Tout=[FLOAT]),
        ],
        [b.constant(0), x],
    )
    check_same(b, y, {x: 16.0})
    with opkernel.Session(b.graph) as session:
        assert session.run(y, {x: 16.0}) == 2


def test_what_is_optimized_may_be_named():
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [2], name="x")
        graph.create_op("Identity", [graph.create_op("Neg", [x], name="y").outputs[0]], name="z")
    named = opkernel.optimize_graph(graph, ["z:0"], "x:0", "y")
    assert [op.type for op in named.operations] == ["Placeholder", "Neg", "Identity"]
    assert [tensor.name for tensor in named.fetches] == ["z:0"]
    assert [op.name for op in named.targets] == ["y"]
    with pytest.raises(opkernel.errors.NotFoundError, match="'q'"):
        opkernel.optimize_graph(graph, "q:0")
