"""A recurrent model that TensorFlow 1 built, trained in both runtimes.

Its loops keep what the gradients need in stacks and TensorArrays, its weights are a resource
variable and a reference variable.
"""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from opkernel import Graph, Session
from opkernel.graph import import_graph_def
from opkernel.proto import GraphDef

pytestmark = pytest.mark.tensorflow

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
FETCHES = ["out:0", "loss:0", "grad_0:0", "grad_1:0", "weights/Read/ReadVariableOp:0", "bias:0"]


def build(tf: ModuleType) -> Any:
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [4, 3], name="x")
        weights, bias = (
            tf.compat.v1.get_variable(name, initializer=value, use_resource=is_resource)
            for name, value, is_resource in (
                ("weights", 2 * np.eye(3, dtype=np.float32), True),
                ("bias", np.ones(3, np.float32), False),
            )
        )

        def step(state: Any, row: Any) -> Any:
            return tf.tanh(tf.linalg.matvec(weights, state) + row + bias)

        states = tf.compat.v1.scan(step, x, initializer=tf.zeros(3))
        loss = tf.reduce_sum(tf.identity(states, name="out") ** 2, name="loss")
        gradients = [
            tf.identity(gradient, name=f"grad_{i}")
            for i, gradient in enumerate(tf.compat.v1.gradients(loss, [weights, bias]))
        ]
        changes = [
            tf.compat.v1.assign_sub(variable, 0.1 * gradient)
            for variable, gradient in zip((weights, bias), gradients, strict=True)
        ]
        tf.group(*[change.op for change in changes], name="train")
        tf.compat.v1.global_variables_initializer()
    return graph


def train(session: Any) -> list[Any]:
    session.run("init")
    values = list(session.run(FETCHES, {"x:0": X}))
    for _ in range(3):
        session.run("train", {"x:0": X})
    return [*values, *session.run(FETCHES, {"x:0": X})]


def test_training_goes_the_same_way(tf: ModuleType) -> None:
    tf.compat.v1.disable_control_flow_v2()
    try:
        built = build(tf)
    finally:
        tf.compat.v1.enable_control_flow_v2()
    graph = Graph()
    serialized = built.as_graph_def().SerializeToString()
    with graph.as_default():
        import_graph_def(GraphDef.FromString(serialized), name="")
    with Session(graph) as session, tf.compat.v1.Session(graph=built) as theirs:
        for value, expected in zip(train(session), train(theirs), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)
