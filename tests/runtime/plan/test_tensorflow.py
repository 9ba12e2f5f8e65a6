"""Loops and conditionals that TensorFlow 1 itself writes, with their gradients: its values as plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.proto import GraphDef

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(0)
SMALL = np.array([0.1, 0.2, -0.3], np.float32)
ROW = np.arange(3, dtype=np.float32)

Feeds = dict[str, Any]
Case = Callable[[Any, Any], tuple[Sequence[Any], list[Feeds]]]
"""Builds a graph with `tf` and `tf.compat.v1`; its fetches, and feeds for some steps."""


def placeholders(v1: Any, **shapes: Any) -> list[Any]:
    """Placeholders by name: n is int32, p a bool, all others floats."""
    types = {"n": "int32", "p": "bool", "length": "int32"}
    return [v1.placeholder(types.get(k, "float32"), shape, name=k) for k, shape in shapes.items()]


def turns(counts: Sequence[int], x: Any) -> list[Feeds]:
    return [{"n:0": np.int32(count), "x:0": x} for count in counts]


def nested(tf: Any, v1: Any) -> Any:
    n, x = placeholders(v1, n=[], x=[3])

    def body(i: Any, x: Any) -> Any:
        def inner(j: Any, y: Any) -> Any:
            return j + 1, y * 0.5 + tf.cast(i, tf.float32)

        y = v1.while_loop(lambda j, y: j < i, inner, [0, x])[1]
        return i + 1, tf.nn.relu(y - 0.3)

    return v1.while_loop(lambda i, x: i < n, body, [0, x]), turns([0, 1, 5], ROW)


def conditionals_in_a_loop(tf: Any, v1: Any) -> Any:
    n, x = placeholders(v1, n=[], x=[3])

    def body(i: Any, x: Any, a: Any) -> Any:
        def odd() -> Any:
            return x - 1.0, v1.cond(i > 2, lambda: a * 2.0, lambda: a)

        return i + 1, *v1.cond(tf.equal(i % 2, 0), lambda: (x * 2.0, a + 1.0), odd)

    return v1.while_loop(lambda i, *_: i < n, body, [0, x, 0.0]), turns([0, 1, 2, 7], ROW)


def loops_in_a_conditional(tf: Any, v1: Any) -> Any:
    p, x = placeholders(v1, p=[], x=[3])

    def adding() -> Any:
        return v1.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y + x), [0, x])[1]

    y = v1.cond(p, adding, lambda: -x)

    def growing() -> Any:
        return v1.while_loop(lambda z: tf.reduce_sum(z) < 50, lambda z: z * z + 1, [y])

    z = v1.cond(tf.reduce_sum(y) > 3, lambda: y + 1, growing)
    return [y, z], [{"p:0": p, "x:0": ROW} for p in (True, False)]


def case_and_switch_case(tf: Any, v1: Any) -> Any:
    n, x = placeholders(v1, n=[], x=[3])
    branches = [(tf.equal(n, 0), lambda: x + 1), (tf.equal(n, 1), lambda: x * 2)]
    first = v1.case([*branches, (n > 5, lambda: tf.exp(x))], default=lambda: -x)
    second = tf.switch_case(n, [lambda: x, lambda: x * 3, lambda: x - 2])
    return [first, second], turns([-1, 0, 1, 2, 9], ROW)


def variables_of_many_kinds(tf: Any, v1: Any) -> Any:
    """One is handed on, one never changes, one becomes a constant from outside."""
    n, x = placeholders(v1, n=[], x=[3])
    c = tf.constant([1.0, 2.0, 3.0])

    def body(i: Any, a: Any, b: Any, same: Any, other: Any) -> Any:
        return i + 1, b, a + b * c, same, x

    def go_on(i: Any, a: Any, *_: Any) -> Any:
        return tf.logical_and(i < n, tf.reduce_sum(a) < 1000.0)

    return v1.while_loop(go_on, body, [0, x, x + 1, c, c]), turns([0, 1, 2, 20], ROW)


def tensor_arrays(tf: Any, v1: Any) -> Any:
    n, x = placeholders(v1, n=[], x=[None, 3])
    source = tf.TensorArray(tf.float32, size=n).unstack(x)
    target = tf.TensorArray(tf.float32, size=0, dynamic_size=True)

    def body(i: Any, total: Any, target: Any) -> Any:
        total = tf.tanh(total + source.read(i) * 2.0)
        return i + 1, total, target.write(i, total)

    variables = [0, tf.zeros([3]), target]
    _, total, target = v1.while_loop(lambda i, *_: i < n, body, variables)
    loss = tf.reduce_sum(target.stack() ** 2) + tf.reduce_sum(total)
    rows = {count: RANDOM.standard_normal((count, 3)).astype(np.float32) for count in (1, 4)}
    feeds = [{"n:0": np.int32(count), "x:0": x} for count, x in rows.items()]
    return [target.size(), loss, *v1.gradients(loss, [x])], feeds


def gradients_of_a_loop(tf: Any, v1: Any) -> Any:
    n, x = placeholders(v1, n=[], x=[3])
    w = tf.constant(RANDOM.standard_normal((3, 3)).astype(np.float32))

    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.tanh(tf.matmul(h, w) + tf.cast(i, tf.float32) * 0.1)

    h = v1.while_loop(lambda i, h: i < n, body, [0, x[None]])[1]
    loss = tf.reduce_sum(h * h)
    return [loss, *v1.gradients(loss, [x, w])], turns([0, 1, 5], SMALL)


def gradients_of_nested_loops(tf: Any, v1: Any) -> Any:
    n, x = placeholders(v1, n=[], x=[3])

    def body(i: Any, h: Any) -> Any:
        def inner(j: Any, y: Any) -> Any:
            return j + 1, tf.sin(y) * h

        return i + 1, v1.while_loop(lambda j, y: j < i + 1, inner, [0, h])[1] + x

    h = v1.while_loop(lambda i, h: i < n, body, [0, x])[1]
    return [h, *v1.gradients(tf.reduce_sum(h * h), [x])], turns([0, 1, 4], SMALL)


def gradients_of_conditionals_in_a_loop(tf: Any, v1: Any) -> Any:
    n, x = placeholders(v1, n=[], x=[3])

    def body(i: Any, h: Any) -> Any:
        return i + 1, v1.cond(tf.equal(i % 2, 0), lambda: tf.sin(h) * x, lambda: h * h + 1.0)

    h = v1.while_loop(lambda i, h: i < n, body, [0, x])[1]
    return [h, *v1.gradients(tf.reduce_sum(h), [x])], turns([0, 1, 4], SMALL)


def second_gradients_of_a_conditional(tf: Any, v1: Any) -> Any:
    n, x = placeholders(v1, n=[], x=[])
    y = v1.cond(n > 2, lambda: x**3, lambda: tf.sin(x) * x)
    first = v1.gradients(y, x)[0]
    return [y, first, v1.gradients(first, x)[0]], turns([1, 4], np.float32(1.3))


def functions_of_sequences(tf: Any, v1: Any) -> Any:
    n, x = placeholders(v1, n=[], x=[3])
    rows = tf.reshape(tf.range(12.0), [4, 3])
    limited = v1.while_loop(
        lambda x: tf.reduce_sum(x) < 100.0, lambda x: x * 1.5, [x], maximum_iterations=n
    )
    scanned = tf.scan(lambda a, row: a * 0.9 + row, rows, initializer=x)
    mapped = tf.map_fn(lambda row: tf.reduce_sum(row * x), rows)
    folded = tf.foldl(lambda a, row: a + row, rows)
    gradients = v1.gradients(tf.reduce_sum(scanned) + tf.reduce_sum(mapped), [x])
    return [limited, scanned, mapped, folded, *gradients], turns([0, 2, 50], ROW)


def a_recurrent_network(tf: Any, v1: Any) -> Any:
    """As dynamic_rnn writes it: conditionals in the loop leave sequences out that have ended."""
    x, length = placeholders(v1, x=[2, 6, 4], length=[2])
    w = tf.constant(RANDOM.standard_normal((9, 20)).astype(np.float32) * 0.3)
    b = tf.constant(RANDOM.standard_normal(20).astype(np.float32) * 0.1)
    source = tf.TensorArray(tf.float32, size=6).unstack(tf.transpose(x, [1, 0, 2]))
    zero = tf.zeros([2, 5])

    def body(t: Any, c: Any, h: Any, out: Any) -> Any:
        row = source.read(t)

        def cell() -> Any:
            gates = tf.nn.bias_add(tf.matmul(tf.concat([row, h], 1), w), b)
            i, j, f, o = tf.split(gates, 4, 1)
            new = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
            hidden = tf.sigmoid(o) * tf.tanh(new)
            return hidden, new, hidden

        def masked() -> Any:
            over = (t >= length)[:, None]
            return [tf.where(over, *pair) for pair in zip((zero, c, h), cell(), strict=True)]

        def running() -> Any:
            return v1.cond(t < tf.reduce_min(length), lambda: list(cell()), masked)

        result, c, h = v1.cond(t >= tf.reduce_max(length), lambda: [zero, c, h], running)
        return t + 1, c, h, out.write(t, result)

    out = tf.TensorArray(tf.float32, size=6)
    _, c, h, out = v1.while_loop(lambda t, *_: t < 6, body, [0, zero, zero, out])
    loss = tf.reduce_sum(out.stack() ** 2)
    values = RANDOM.standard_normal((2, 6, 4)).astype(np.float32)
    lengths = [np.array(pair, np.int32) for pair in ([3, 5], [6, 6], [1, 2])]
    feeds = [{"x:0": values, "length:0": both} for both in lengths]
    return [loss, c, h, *v1.gradients(loss, [x, w, b])], feeds


def variables_that_are_assigned_in_a_loop(tf: Any, v1: Any) -> Any:
    (n,) = placeholders(v1, n=[])
    v = v1.Variable(1.0, use_resource=True)

    def body(i: Any, total: Any) -> Any:
        with tf.control_dependencies([v.assign_add(tf.cast(i, tf.float32))]):
            return i + 1, total + v.read_value()

    with tf.control_dependencies([v.initializer]):
        start = [tf.identity(0), 0.0]
    total = v1.while_loop(lambda i, _: i < n, body, start, parallel_iterations=1)[1]
    with tf.control_dependencies([total]):
        return [total, v.read_value()], [{"n:0": np.int32(count)} for count in (0, 3, 6)]


def references_that_are_assigned_on_a_branch(tf: Any, v1: Any) -> Any:
    (p,) = placeholders(v1, p=[])
    v = v1.Variable(1.0, use_resource=False)
    with tf.control_dependencies([v.initializer]):
        known = tf.identity(p)
    y = v1.cond(known, lambda: v1.assign_add(v, 2.0) * 1.0, lambda: v1.assign(v, 7.0) + 1.0)
    with tf.control_dependencies([y]):
        return [y, tf.identity(v.read_value())], [{"p:0": True}, {"p:0": False}]


CASES: list[Case] = [
    nested,
    conditionals_in_a_loop,
    loops_in_a_conditional,
    case_and_switch_case,
    variables_of_many_kinds,
    tensor_arrays,
    gradients_of_a_loop,
    gradients_of_nested_loops,
    gradients_of_conditionals_in_a_loop,
    second_gradients_of_a_conditional,
    functions_of_sequences,
    a_recurrent_network,
    variables_that_are_assigned_in_a_loop,
    references_that_are_assigned_on_a_branch,
]


@pytest.fixture
def v1(tf: ModuleType) -> Iterator[Any]:
    """TensorFlow 1, which writes Switch, Merge and their like."""
    tf.compat.v1.disable_control_flow_v2()
    yield tf.compat.v1
    tf.compat.v1.enable_control_flow_v2()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_plan_gives_the_values_of_tensorflow(case: Case, tf: Any, v1: Any) -> None:
    with tf.Graph().as_default() as graph:
        fetches, steps = case(tf, v1)
    names = [tensor.name for tensor in tf.nest.flatten(fetches)]
    ours = opkernel.Graph()
    definition = GraphDef.FromString(graph.as_graph_def().SerializeToString())
    opkernel.import_graph_def(definition, name="", graph=ours)
    with (
        v1.Session(graph=graph) as theirs,
        opkernel.Session(ours, executor_type="COMPILED_PLAN") as plans,
        opkernel.Session(ours, executor_type="DATAFLOW") as dataflow,
    ):
        for feeds in steps:
            expected = theirs.run(names, feeds)
            for session in (plans, dataflow):
                for found, wanted in zip(session.run(names, feeds), expected, strict=True):
                    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)
