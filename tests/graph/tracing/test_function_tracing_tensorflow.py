"""The same Python traced by TensorFlow and here: values, traces, ops; it runs what we have traced."""

from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import opkernel

pytestmark = pytest.mark.tensorflow


def arithmetic(api: Any, x: Any) -> Any:
    y = (x + 1) * 2 - 3 / (x + 0.5)
    return abs(-y) ** 2 // 3 % 5


def integers(api: Any, n: Any) -> Any:
    return n / 4, n // 4, n % 4, n & 6, n | 1, n ^ 3, ~n, 7 - n, 2 * n


def truths(api: Any, x: Any) -> Any:
    small, large = x < 1, x >= 2
    return small | large, small & ~large, small ^ large, (x > 1) & True


def slices(api: Any, x: Any, i: Any) -> Any:
    return x[0], x[-1, 1:], x[..., None], x[::-1, ::2], x[i], x[i:, None, i], x[:, : i + 1]


def matrices(api: Any, x: Any, batch: Any) -> Any:
    return x @ np.eye(3, dtype=np.float32), batch @ batch, np.eye(2, dtype=np.float32) @ x


def structures(api: Any, x: Any) -> Any:
    return {"b": (x, [x + 1, None]), "a": 3, "c": 2.5}


def branches(api: Any, x: Any) -> Any:
    y = api.cond(x[0] > 0, lambda: {"y": x + 1, "z": 1}, lambda: {"y": -x, "z": 2})
    return y, api.switch_case(y["z"], [lambda: x, lambda: x * 10, lambda: x[:1]])


def loops(api: Any, x: Any, n: Any) -> Any:
    factor = x * 2
    i, total = api.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t * factor), [0, x])
    (halved,) = api.while_loop(
        lambda v: api.raw_ops.Max(input=v, axis=[0]) > 1,
        lambda v: (v / 2,),
        [x],
        maximum_iterations=3,
    )
    return i, total, halved


def conditional_in_loop(api: Any, n: Any) -> Any:
    """The steps of Collatz's sequence."""

    def body(n: Any, steps: Any) -> Any:
        return api.cond(n % 2 > 0, lambda: 3 * n + 1, lambda: n // 2), steps + 1

    return api.while_loop(lambda n, steps: n > 1, body, [n, 0])


def growing(api: Any, x: Any) -> Any:
    return api.while_loop(
        lambda v: api.raw_ops.Size(input=v) < 10,
        lambda v: [api.raw_ops.ConcatV2(values=[v, v], axis=0)],
        [x],
        shape_invariants=[api.TensorShape([None])],
    )


def nested(api: Any, x: Any) -> Any:
    @api.function
    def inner(y: Any) -> Any:
        return x * y, y

    @api.function
    def middle(y: Any) -> Any:
        return inner(y)[0] + inner(y + 1)[0] + x

    return middle(x), api.cond(x[0] > 0, lambda: middle(x + 2), lambda: x)


def text(api: Any, s: Any) -> Any:
    return s + "!", api.raw_ops.StringLength(input=s)


def effects(api: Any, x: Any) -> Any:
    v = api.raw_ops.VarHandleOp(dtype=x.dtype, shape=[], shared_name="effects")
    api.raw_ops.AssignVariableOp(resource=v, value=x)
    api.raw_ops.AssignAddVariableOp(resource=v, value=x)
    first = api.raw_ops.ReadVariableOp(resource=v, dtype=x.dtype)
    api.cond(
        x > 0,
        lambda: api.raw_ops.AssignVariableOp(resource=v, value=x * 10),
        lambda: api.raw_ops.AssignVariableOp(resource=v, value=x),
    )
    return first, api.raw_ops.ReadVariableOp(resource=v, dtype=x.dtype)


FLOATS = np.array([0.5, 1.5, 4], np.float32)
MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
CASES: dict[Callable[..., Any], list[tuple[Any, ...]]] = {
    arithmetic: [(FLOATS,), (FLOATS[:2],), (FLOATS.astype(np.float64),), (FLOATS,)],
    integers: [(np.arange(8, dtype=np.int32),), (np.arange(8, dtype=np.int8),)],
    truths: [(FLOATS,)],
    slices: [(MATRIX, np.int32(1)), (MATRIX, np.int64(0))],
    matrices: [(MATRIX, np.ones((2, 3, 3), np.float32))],
    structures: [(FLOATS,)],
    branches: [(FLOATS,), (-FLOATS,)],
    loops: [(FLOATS, np.int32(3)), (FLOATS, np.int32(0))],
    conditional_in_loop: [(np.int32(27),), (np.int32(1),)],
    growing: [(FLOATS,)],
    nested: [(FLOATS,), (-FLOATS,)],
    text: [(np.array([b"a", b""], object),)],
    effects: [(np.float32(2),), (np.float32(-2),)],
}
SAME_OPS = [case for case in CASES if case not in (loops, conditional_in_loop, growing, slices)]
"""TensorFlow's loops have counters of their own, and it packs the constant bounds of some slices."""


class TensorFlow:
    """TensorFlow under the names that the cases use."""

    def __init__(self, tf: ModuleType) -> None:
        self._tf = tf

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tf, name)

    def function(self, fn: Callable[..., Any], **options: Any) -> Any:
        return self._tf.function(fn, autograph=False, **options)


class Here:
    """opkernel under the same names."""

    def __getattr__(self, name: str) -> Any:
        return getattr(opkernel, "PartialTensorShape" if name == "TensorShape" else name)


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in flat(value[key])]
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in flat(part)]
    return [value]


def assert_same(found: Any, wanted: Any) -> None:
    found, wanted = flat(found), flat(wanted)
    assert len(found) == len(wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        if theirs is None:
            assert mine is None
            continue
        theirs = np.asarray(theirs)
        assert np.asarray(mine).dtype == theirs.dtype
        if theirs.dtype == object:
            assert np.asarray(mine).tolist() == theirs.tolist()
        else:
            np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def ops_of(graph_def: Any) -> Counter[str]:
    """The ops in a graph and its functions, without those that only pass values on."""
    nodes = [node.op for node in graph_def.node]
    nodes += [node.op for function in graph_def.library.function for node in function.node_def]
    plain = {"Const", "Identity", "NoOp", "Placeholder"}
    return Counter(op for op in nodes if op not in plain)


def specialised(case: Callable[..., Any], api: Any) -> Callable[..., Any]:
    def traced(*args: Any) -> Any:
        return case(api, *args)

    return traced


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_values_and_traces(tf: ModuleType, case: Callable[..., Any]) -> None:
    mine = opkernel.function(specialised(case, Here()))
    theirs = TensorFlow(tf).function(specialised(case, TensorFlow(tf)))
    for args in CASES[case]:
        assert_same(mine(*args), tf.nest.map_structure(_value, theirs(*args)))
    assert mine.experimental_get_tracing_count() == theirs.experimental_get_tracing_count()


def _value(tensor: Any) -> Any:
    return None if tensor is None else tensor.numpy()


@pytest.mark.parametrize("case", SAME_OPS, ids=lambda case: case.__name__)
def test_ops(tf: ModuleType, case: Callable[..., Any]) -> None:
    args = CASES[case][0]
    mine = opkernel.function(specialised(case, Here())).get_concrete_function(*args)
    theirs = TensorFlow(tf).function(specialised(case, TensorFlow(tf)))
    specs = [tf.TensorSpec(a.shape, tf.string if a.dtype == object else a.dtype) for a in args]
    graph_def = theirs.get_concrete_function(*specs).graph.as_graph_def()
    assert ops_of(mine.graph.as_graph_def()) == ops_of(graph_def)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_tensorflow_runs_the_functions(tf: ModuleType, case: Callable[..., Any]) -> None:
    function = opkernel.function(specialised(case, Here()))
    args = CASES[case][0]
    with opkernel.Graph().as_default() as graph:
        feeds = [
            opkernel.placeholder(opkernel.string if a.dtype == object else a.dtype, a.shape)
            for a in args
        ]
        results = function(*feeds)
    names = [tensor.name for tensor in flat(results) if tensor is not None]
    graph_def = tf.compat.v1.GraphDef.FromString(graph.as_graph_def().SerializeToString())
    with tf.Graph().as_default() as theirs:
        tf.compat.v1.import_graph_def(graph_def, name="")
        with tf.compat.v1.Session(graph=theirs) as session:
            feed_dict = {feed.name: value for feed, value in zip(feeds, args, strict=True)}
            wanted = session.run(names, feed_dict)
    assert_same([leaf for leaf in flat(function(*args)) if leaf is not None], wanted)
