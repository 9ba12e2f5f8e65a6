"""freeze_graph on functions that TensorFlow traced, against TensorFlow's own freezing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.proto import GraphDef

pytestmark = pytest.mark.tensorflow
tf = pytest.importorskip("tensorflow")
convert_to_constants = pytest.importorskip("tensorflow.python.framework.convert_to_constants")

X = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)
HANDLE_OPS = {
    "VarHandleOp",
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "VariableShape",
}


class Model:
    """Variables of several types and shapes."""

    def __init__(self) -> None:
        self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
        self.b = tf.Variable([0.5, -0.5], name="b")
        self.n = tf.Variable(3, name="n")
        self.table = tf.Variable(np.arange(24, dtype=np.float32).reshape(2, 6, 2), name="table")


def straight(m: Model, x: Any) -> Any:
    return tf.matmul(x, m.w) + m.b


def conditional(m: Model, x: Any) -> Any:
    return tf.cond(
        tf.reduce_sum(x) > 0, lambda: tf.matmul(x, m.w), lambda: x * tf.cast(m.n, tf.float32)
    )


def loop(m: Model, x: Any) -> Any:
    return tf.while_loop(
        lambda i, y: i < m.n, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, m.w) + m.b)), [0, x]
    )[1]


def loop_with_branches(m: Model, x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        return i + 1, tf.cond(i % 2 == 0, lambda: y + m.b, lambda: tf.matmul(y, m.w))

    return tf.while_loop(lambda i, y: i < m.n, body, [0, x])[1]


def gathered(m: Model, x: Any) -> Any:
    rows = tf.gather(m.table, [1, 0], axis=0)
    cells = tf.gather_nd(m.table, [[0, 1], [1, 5]])
    return tf.reduce_sum(rows) + tf.reduce_sum(cells * x)


def gathered_in_batches(m: Model, x: Any) -> Any:
    return x + tf.raw_ops.ResourceGather(
        resource=m.table.handle, indices=[[0, 5], [2, 2]], dtype=tf.float32, batch_dims=1
    )


def nested(m: Model, x: Any) -> Any:
    @tf.function(autograph=False)
    def inner(v: Any) -> Any:
        return v * m.b

    @tf.function(autograph=False)
    def outer(v: Any) -> Any:
        return tf.matmul(inner(v), m.w) + inner(v + 1)

    return outer(x) + inner(x)


def same_function_twice(m: Model, x: Any) -> Any:
    @tf.function(autograph=False)
    def reader(handle: Any, y: Any) -> Any:
        return y + tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)

    return reader(m.w.handle, x) * reader(m.b.handle, x)


def switch(m: Model, x: Any) -> Any:
    branches = [lambda: x + m.b, lambda: tf.matmul(x, m.w), lambda: x]
    return tf.switch_case(m.n - 2, branches)


def shape_of_variable(m: Model, x: Any) -> Any:
    shape = tf.raw_ops.VariableShape(input=m.w.handle)
    return tf.cast(shape, tf.float32) * x


FROZEN_THERE = [straight, conditional, loop, loop_with_branches, gathered, nested, switch]
"""What TensorFlow freezes; it does not find variables whose handles alone are used."""
FUNCTIONS = [*FROZEN_THERE, gathered_in_batches, same_function_twice, shape_of_variable]


def captures(model: Model, concrete: Any) -> dict[str, Any]:
    """The values of what a function captures, by the placeholders of these."""
    variables = {id(v.handle): v for v in (model.w, model.b, model.n, model.table)}
    return {
        inside.op.name: variables.get(id(outside), outside).numpy()
        for outside, inside in concrete.graph.captures
    }


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_frozen_as_tensorflow_freezes(function: Callable[[Model, Any], Any]) -> None:
    model = Model()
    spec = tf.TensorSpec([None, 2], tf.float32, name="x")
    traced = tf.function(lambda x: function(model, x), autograph=False)
    concrete = traced.get_concrete_function(spec)
    captured = captures(model, concrete)
    frozen, output = freeze(concrete, captured)
    for x in (X, -X):
        wanted = concrete(tf.constant(x))
        with opkernel.Session(frozen) as session:
            np.testing.assert_allclose(session.run(output, {"x:0": x}), wanted, rtol=1e-6)
        np.testing.assert_allclose(run_in_tensorflow(frozen, output, x), wanted, rtol=1e-6)
    used = ops_of(frozen.as_graph_def())
    assert not used & HANDLE_OPS
    assert not {op for op in used if op.startswith("Stateful") or op in ("If", "While", "Case")}
    if function in FROZEN_THERE:
        theirs = convert_to_constants.convert_variables_to_constants_v2(concrete)
        assert not ops_of(theirs.graph.as_graph_def()) & HANDLE_OPS
        np.testing.assert_array_equal(theirs(tf.constant(X))[0], concrete(tf.constant(X)))


def freeze(concrete: Any, captured: dict[str, Any]) -> tuple[opkernel.Graph, str]:
    """A function frozen here, and the name of its output."""
    graph = opkernel.Graph()
    graph_def = GraphDef.FromString(concrete.graph.as_graph_def().SerializeToString())
    opkernel.import_graph_def(graph_def, graph=graph, name="")
    output = concrete.outputs[0].name
    return opkernel.freeze_graph(graph, output, captured=captured), output


def run_in_tensorflow(frozen: opkernel.Graph, output: str, x: Any) -> Any:
    graph_def = tf.compat.v1.GraphDef.FromString(frozen.as_graph_def().SerializeToString())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    with tf.compat.v1.Session(graph=graph) as session:
        return session.run(output, {"x:0": x})


def ops_of(graph_def: Any) -> set[str]:
    nodes = [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
    return {node.op for node in nodes}


def loop_of_tensorflow_1(v1: Any, x: Any) -> Any:
    w = v1.get_variable("w", initializer=[[1.0, 2.0], [3.0, 4.0]])
    b = v1.get_variable("b", initializer=[0.5, -0.5])
    return v1.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, w) + b)), [0, x]
    )[1]


def branches_of_tensorflow_1(v1: Any, x: Any) -> Any:
    w = v1.get_variable("w", initializer=[[1.0, 2.0], [3.0, 4.0]])
    b = v1.get_variable("b", initializer=[0.5, -0.5])
    return v1.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, w), lambda: x + b)


def partitioned(v1: Any, x: Any) -> Any:
    w = v1.get_variable(
        "w",
        initializer=v1.random_uniform_initializer(seed=1),
        shape=[4, 2],
        partitioner=v1.fixed_size_partitioner(2),
    )
    return tf.matmul(x, tf.transpose(w)) + v1.nn.embedding_lookup(w, [0])[0, 1]


@pytest.mark.parametrize("is_resource", [False, True])
@pytest.mark.parametrize("functional", [False, True])
@pytest.mark.parametrize(
    "make", [loop_of_tensorflow_1, branches_of_tensorflow_1, partitioned], ids=lambda f: f.__name__
)
def test_graphs_of_tensorflow_1(
    make: Callable[[Any, Any], Any], functional: bool, is_resource: bool
) -> None:
    v1 = tf.compat.v1
    was_functional = v1.control_flow_v2_enabled()
    (v1.enable_control_flow_v2 if functional else v1.disable_control_flow_v2)()
    try:
        with tf.Graph().as_default() as graph, v1.variable_scope("", use_resource=is_resource):
            x = v1.placeholder(tf.float32, [None, 2], name="x")
            y = tf.identity(make(v1, x), name="y")
            init = v1.global_variables_initializer()
        with v1.Session(graph=graph) as session:
            session.run(init)
            values = {v.op.name: session.run(v) for v in graph.get_collection("variables")}
            wanted = [session.run(y, {x: fed}) for fed in (X, -X)]
    finally:
        (v1.enable_control_flow_v2 if was_functional else v1.disable_control_flow_v2)()
    ours = opkernel.Graph()
    graph_def = GraphDef.FromString(graph.as_graph_def().SerializeToString())
    opkernel.import_graph_def(graph_def, graph=ours, name="")
    frozen = opkernel.freeze_graph(ours, "y", values=values)
    with opkernel.Session(frozen) as session:
        found = [session.run("y:0", {"x:0": fed}) for fed in (X, -X)]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_allclose(run_in_tensorflow(frozen, "y:0", X), wanted[0], rtol=1e-6)
    assert not ops_of(frozen.as_graph_def()) & (HANDLE_OPS | {"VariableV2", "RefSwitch"})
