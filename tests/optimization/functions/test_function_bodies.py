"""Functions: sessions know those that passes add; `optimize_functions` rewrites whole libraries."""

import numpy as np
import pytest
from tests.optimization.optimizing import ops_of, optimized
from tests.runtime.dataflow.loop_builders import FLOAT, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel import Grouping, register_optimization
from opkernel.graph import graph_to_function_def
from opkernel.graph.edit.graph_editor import Change
from opkernel.optimization import optimization_passes, optimize_functions, optimize_graph
from opkernel.proto import NameAttrList


def imported(result) -> opkernel.Graph:
    graph = opkernel.Graph()
    with graph.as_default():
        opkernel.import_graph_def(result.as_graph_def(), name="")
    return graph


@pytest.fixture
def calls_instead():
    """A pass that has Neg done by a function of its own, which doubles."""

    @register_optimization(Grouping.POST_REWRITE_FOR_EXEC, 1)
    def calls_a_function(editor):
        body = Builder()
        x = body.placeholder("x")
        doubled = body.op("AddV2", x, x, name="doubled")
        function = graph_to_function_def(body.graph, "doubles", [x], [doubled])
        for op in editor.operations():
            if op.type == "Neg":
                editor.graph.function_library.add_function(function)
                attrs = {"Tin": [FLOAT], "Tout": [FLOAT], "f": NameAttrList(name="doubles")}
                editor.become(op, "PartitionedCall", op.inputs, attrs)
                editor.note(op, "is called")

    yield
    optimization_passes().unregister("calls_a_function")


@pytest.mark.usefixtures("calls_instead")
@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
def test_a_session_runs_the_functions_that_a_pass_adds(executor):
    b = Builder()
    inner = define(b, "inner", [FLOAT], lambda g, x: [g.op("Neg", g.op("Exp", x))])
    b.graph.function_library._functions["inner"].attr["_noinline"].b = True
    x = b.placeholder("x")
    y = b.op("Neg", x)
    z = b.op("PartitionedCall", [x], f=inner, Tout=[FLOAT])
    with opkernel.Session(b.graph, executor_type=executor) as session:
        for _ in range(2):
            assert session.run([y, z], {x: 0.0}) == [0, 2]
            assert session.run(y, {x: 3.0}) == 6
            assert session.run(z, {x: 0.0}) == 2
    assert list(b.graph.function_library) == ["inner"]
    assert opkernel.Session(b.graph, optimize=False).run(y, {x: 3.0}) == -3


def library_graph():
    """A call that is not inlined, of a function that calls another in a loop."""
    b = Builder()
    less = define(b, "less", [FLOAT], lambda g, x: [g.op("Less", x, g.constant(10.0))])
    twice = define(
        b,
        "twice",
        [FLOAT],
        lambda g, x: [g.op("Mul", x, g.op("AddV2", g.constant(1.0), g.constant(1.0)))],
    )
    outer = define(
        b, "outer", [FLOAT],
        lambda g, x: [g.op("StatelessWhile", [x], cond=less, body=twice, T=[FLOAT]), x],
    )  # fmt: skip
    b.graph.function_library._functions["outer"].attr["_noinline"].b = True
    x = b.placeholder("x")
    call = b.operation("PartitionedCall", [x], f=outer, Tout=[FLOAT, FLOAT])
    return b, x, call.outputs


def test_bodies_are_written_optimized_and_keep_their_signature():
    b, x, (y, z) = library_graph()
    before = b.graph.function_library["twice"]
    result = optimize_functions(optimized(b, [y, z]))
    library = result.graph.function_library
    assert sorted(node.op for node in library["twice"].node_def) == ["Const", "Mul"]
    assert library["twice"].signature == before.signature
    assert library["outer"].attr["_noinline"].b
    assert Change("constant_folding", "twice/AddV2", "is constant") in result.changes
    assert len(before.node_def) == 4
    loaded = imported(result)
    for optimize in (True, False):
        with opkernel.Session(loaded, optimize=optimize) as session:
            assert session.run([y.name, z.name], {x.name: 3.0}) == [12, 3]


def test_names_of_arguments_and_results_and_what_has_to_run_stay():
    b = Builder()
    body = Builder()
    x = body.placeholder("X")
    handle = body.op("Placeholder", dtype=opkernel.resource, name="handle")
    added = body.operation("AssignAddVariableOp", handle, x, dtype=FLOAT, name="added")
    y = body.op("Identity", body.op("Identity", x), name="y")
    function = graph_to_function_def(
        body.graph, "f", [x, handle], [y], output_names=["Y"],
        control_outputs={"done": added},
    )  # fmt: skip
    function.signature.input_arg[0].name = "X"
    for node in function.node_def:
        node.input[:] = ["X" if name == "x" else name for name in node.input]
    b.graph.function_library.add_function(function)
    x = b.placeholder("x")
    handle = b.op("VarHandleOp", dtype=FLOAT, shape=[], name="v")
    assign = b.operation("AssignVariableOp", handle, b.constant(1.0), dtype=FLOAT)
    call = b.operation(
        "StatefulPartitionedCall", [x, handle], f=NameAttrList(name="f"), Tout=[FLOAT],
        after=[assign],
    )  # fmt: skip
    read = b.operation("ReadVariableOp", handle, dtype=FLOAT, after=[call]).outputs[0]
    result = optimize_functions(optimize_graph(b.graph, [read, call.outputs[0]], [x]))
    written = result.graph.function_library["f"]
    assert written.signature == function.signature
    assert dict(written.control_ret) == {"done": "added"}
    assert [node.op for node in written.node_def].count("Identity") < 2
    loaded = imported(result)
    with opkernel.Session(loaded) as session:
        assert session.run([read.name, call.outputs[0].name], {"x:0": 4.0}) == [5, 4]


def test_functions_of_which_a_gradient_is_made_stay():
    b = Builder()
    define(
        b, "dense", [FLOAT, FLOAT],
        lambda g, x, w: [g.op("Relu", g.op("BiasAdd", g.op("MatMul", x, w), g.constant([1.0, 2.0], "f4")))],
    )  # fmt: skip
    x = b.placeholder("x")
    inputs = [x, b.constant(np.eye(2), "f4"), b.constant(np.ones((1, 2)), "f4")]
    grad = b.operation(
        "SymbolicGradient", inputs, Tin=[FLOAT] * 3, Tout=[FLOAT] * 2, f=NameAttrList(name="dense")
    ).outputs[0]
    result = optimize_functions(optimized(b, grad))
    assert "_FusedMatMul" not in [n.op for n in result.graph.function_library["dense"].node_def]
    loaded = imported(result)
    with opkernel.Session(loaded) as session:
        assert session.run(grad.name, {"x:0": np.ones((1, 2), "f4")}).tolist() == [[1, 1]]


def test_what_callers_choose_the_types_of_and_what_is_wrong_stays():
    b, _, (y, z) = library_graph()
    nodes = b.graph.function_library._functions["twice"].node_def
    next(node for node in nodes if node.op == "Mul").input[0] = "nobody"
    result = optimize_functions(optimized(b, [y, z]))
    assert "twice" in result.graph.function_library
    assert ops_of(result) == ["PartitionedCall"]


def test_calls_that_are_fetched_are_inlined_and_keep_their_name():
    b = Builder()
    swap = define(b, "swap", [FLOAT, FLOAT], lambda g, x, y: [g.op("Neg", y), g.op("Exp", x)])
    minus = define(b, "minus", [FLOAT], lambda g, x: [g.op("Neg", x)])
    x = b.placeholder("x")
    both = b.operation("PartitionedCall", [x, x], f=swap, Tout=[FLOAT, FLOAT], name="both")
    y = b.op("PartitionedCall", [x], f=minus, Tout=[FLOAT], name="y")
    graph = optimized(b, [*both.outputs, y])
    assert ops_of(graph) == ["Exp", "Identity", "IdentityN", "Neg"]
    assert [tensor.name for tensor in graph.fetches] == ["both:0", "both:1", "y:0"]
    with opkernel.Session(b.graph) as session:
        assert session.run([*both.outputs, y], {x: 0.0}) == [0, 1, 0]
        assert session.run(both.outputs[0], {both.outputs[1]: 1.0, x: 2.0}) == -2
