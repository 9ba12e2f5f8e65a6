"""Passes trust nothing: graphs that are a little wrong end as they do without passes.

Attrs and constants of the graphs that passes look for are changed, one at a time (`mutated`): to other
ranks, shapes, types, numbers that are out of range, nothing at all. With passes the values are the same,
or the error is one of the same status code.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from tests.optimization.mutated import Mutation, mutations
from tests.optimization.what_passes_change import CHANGED_BY, Changed
from tests.optimization.wrong_patterns import PATTERNS
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel.errors import DeadlineExceededError, OpError, UnimplementedError
from opkernel.graph import node_def
from opkernel.optimization import optimize_functions, optimize_graph
from opkernel.proto import AttrValue, GraphDef
from opkernel.types import DataType, PartialTensorShape

DRAWN = 3
"""Mutations of each graph; `python -m tests.optimization.test_wrong_patterns` tries all."""

ERRORS_GO = {"debug_stripper", "layout", "shape_specialization"}
"""Passes with which less may fail: assertions go, CPU kernels take NHWC alone, lists that hold what is
known are not made."""

SAMPLES = [
    (name, kind)
    for name in sorted({*CHANGED_BY, *PATTERNS})
    for kind in ("changed", "wrong")
    if name in (CHANGED_BY if kind == "changed" else PATTERNS)
]


def outcome(graph: opkernel.Graph, fetch: str, feeds: Mapping[str, Any], **config: Any) -> Any:
    """An array, or the class of the OpError; no other exception may come."""
    options = opkernel.RunOptions(timeout_in_ms=1000)
    try:
        with opkernel.Session(graph, memory_limit_bytes=10**8, **config) as session:
            return np.asarray(session.run(fetch, feeds, options=options))
    except OpError as error:
        return type(error)


def check_same_outcome(found: Any, wanted: Any, exactly: bool, may_pass: bool, about: Any) -> None:
    if found is DeadlineExceededError or wanted is DeadlineExceededError:
        return  # a loop without end
    if isinstance(wanted, type):
        assert found is wanted or may_pass, (found, wanted, about)
        return
    assert not isinstance(found, type), (found, wanted, about)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), about
    if exactly or wanted.dtype.kind not in "fc":
        assert found.tobytes() == wanted.tobytes(), about
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=str(about))


def imported(graph_def: GraphDef) -> opkernel.Graph | None:
    """A graph; None where it is refused at once."""
    graph = opkernel.Graph()
    try:
        with graph.as_default():
            opkernel.import_graph_def(graph_def, name="")
    except OpError:
        return None
    return graph


def check_mutation(
    name: str, mutation: Mutation, graph_def: GraphDef, fetch: str, feeds: Mapping[str, Any]
) -> None:
    graph = imported(mutation.apply(graph_def))
    if graph is None:
        return
    try:
        graph.get_tensor_by_name(fetch)
    except OpError:
        return
    about = (name, mutation)
    wanted = outcome(graph, fetch, feeds, optimize=False)
    for passes in ({name}, True):
        found = outcome(graph, fetch, feeds, optimize=passes)
        may_pass = name in ERRORS_GO or wanted is UnimplementedError  # which `layout` mends
        check_same_outcome(found, wanted, False, may_pass, (*about, passes))
    found = outcome(graph, fetch, feeds, optimize=False, executor_type="DATAFLOW")
    check_same_outcome(found, wanted, True, False, (*about, "dataflow"))


def built(build: Changed) -> tuple[GraphDef, str, dict[str, Any]]:
    b = Builder()
    fetch, feeds = build(b)
    return b.graph.as_graph_def(), fetch.name, {t.name: value for t, value in feeds.items()}


def check_samples(name: str, samples: Mapping[str, Changed], drawn: int | None) -> None:
    for sample, build in samples.items():
        graph_def, fetch, feeds = built(build)
        every = mutations(graph_def)
        chosen = every if drawn is None else random.Random(f"{name}/{sample}").sample(every, drawn)
        for mutation in chosen:
            check_mutation(name, mutation, graph_def, fetch, feeds)


@pytest.mark.parametrize(("name", "kind"), SAMPLES)
def test_what_is_a_little_wrong_ends_as_without_passes(name: str, kind: str) -> None:
    check_samples(name, (CHANGED_BY if kind == "changed" else PATTERNS)[name], DRAWN)


# Faults that were found, each with what it stands for.


def fed(b: Builder, shape: Any, name: str = "x", dtype: DataType = FLOAT) -> Any:
    return b.op("Placeholder", name=name, dtype=dtype, shape=PartialTensorShape(shape))


def ints(b: Builder, value: Any) -> Any:
    return b.constant(np.array(value, np.int32))


def twice_bitcast(b: Builder, x: Any, *dtypes: DataType) -> Any:
    for dtype in dtypes:
        x = b.op("Bitcast", x, type=dtype)
    return x


def transposed(b: Builder, x: Any, *axes: int) -> Any:
    return b.op("Transpose", x, ints(b, axes))


def target(b: Builder, x: Any) -> Any:
    """A Reshape whose size that is not known is no size of the input."""
    size = b.op("PlaceholderWithDefault", ints(b, 5), shape=PartialTensorShape([]))
    return b.op("Reshape", x, b.op("Pack", [size, ints(b, 3)]))


DOUBLE, UINT8 = DataType.DT_DOUBLE, DataType.DT_UINT8
UNKNOWN, INVALID = None, opkernel.errors.InvalidArgumentError
FOUND: dict[str, tuple[Any, Any, Any]] = {
    "an Unpack of another number": (
        [None, 3],
        np.zeros((3, 3), "f4"),
        lambda b, x: b.op("Pack", list(b.operation("Unpack", x, num=2).outputs)),
    ),
    "a Reshape to a size of its own": ([None, 3], np.zeros((2, 3), "f4"), target),
    "factors that do not fit": (
        UNKNOWN,
        np.zeros((3, 3), "f4"),
        lambda b, x: b.op(
            "Mul", b.op("Mul", x, b.constant(np.ones(2, "f4"))), b.constant(np.ones(3, "f4"))
        ),
    ),
    "a Bitcast that needs four bytes": (
        UNKNOWN,
        np.zeros(2, "f4"),
        lambda b, x: twice_bitcast(b, x, UINT8, DOUBLE),
    ),
    "transposes of another rank": (
        UNKNOWN,
        np.zeros((3, 3, 2), "f4"),
        lambda b, x: transposed(b, transposed(b, x, 1, 0), 1, 0),
    ),
    "a product of another rank": (
        UNKNOWN,
        np.zeros((3, 3, 2, 2), "f4"),
        lambda b, x: b.op("BatchMatMulV2", x, transposed(b, x, 0, 2, 1)),
    ),
    "an axis that is fed": (
        [2, 3],
        np.zeros((2, 3), "f4"),
        lambda b, x: b.op(
            "Split",
            b.op("PlaceholderWithDefault", ints(b, 7), shape=PartialTensorShape([])),
            x,
            num_split=1,
        ),
    ),
    "a reflection of nothing": (
        [0, 3],
        np.zeros((0, 3), "f4"),
        lambda b, x: b.op("MirrorPad", x, ints(b, [[0, 0]] * 2), mode="REFLECT"),
    ),
    "sizes of -1": (
        [2, 3],
        np.zeros((2, 3), "f4"),
        lambda b, x: b.op("BroadcastTo", x, ints(b, [-1, -1])),
    ),
    "what is not selected": (
        [2, 3],
        np.zeros((2, 3), "f4"),
        lambda b, x: b.op(
            "Select",
            b.constant(np.full((2, 3), True)),
            x,
            b.op("Reshape", x, b.op("PlaceholderWithDefault", ints(b, [3, 2]), shape=[None])),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_a_node_that_refuses_what_is_fed_stays(name: str) -> None:
    shape, value, make = FOUND[name]
    b = Builder()
    x = fed(b, shape)
    y = b.op("Identity", make(b, x), name="y")
    for optimize in (False, True):
        assert outcome(b.graph, y.name, {"x:0": value}, optimize=optimize) is INVALID


def test_two_bitcasts_that_add_a_dimension_each_stay_two() -> None:
    b = Builder()
    x = fed(b, None, dtype=DOUBLE)
    y = twice_bitcast(b, x, INT32, UINT8)
    for optimize in (False, True):
        assert outcome(b.graph, y.name, {"x:0": np.zeros(2)}, optimize=optimize).shape == (2, 2, 4)


def paddings_that_are_none() -> Iterator[Any]:
    yield from (np.zeros(shape, np.int32) for shape in [(), (2,), (4,), (1, 2), (2, 1), (3, 2)])
    yield np.zeros((2, 0), np.int32)


@pytest.mark.parametrize("op", ["Pad", "PadV2", "MirrorPad", "Tile"])
def test_paddings_of_a_wrong_shape_are_refused(op: str) -> None:
    for value in paddings_that_are_none():
        b = Builder()
        x = fed(b, [2, 3])
        more = [b.constant(1.0)] if op == "PadV2" else []
        attrs = {"mode": "SYMMETRIC"} if op == "MirrorPad" else {}
        right = np.ones(2, np.int32) if op == "Tile" else np.zeros((2, 2), np.int32)
        y = b.op(op, x, b.constant(right, name="sizes"), *more, name="y", **attrs)
        wrong = value + 1 if op == "Tile" else value
        tensor = opkernel.types.tensor_to_proto(wrong)
        mutation = Mutation("sizes", "value", AttrValue(tensor=tensor))
        graph = imported(mutation.apply(b.graph.as_graph_def()))
        assert graph is not None
        wanted = INVALID if wrong.shape != (2,) or op != "Tile" else np.ndarray
        for optimize in (False, True):
            found = outcome(graph, y.name, {"x:0": np.ones((2, 3), "f4")}, optimize=optimize)
            assert found is wanted or isinstance(found, wanted), (value, optimize)


@pytest.mark.parametrize("paddings", [[0] * 7, [0, 0, 1], [0] * 10, [0, 0, -1, 0, 0, 0, 0, 0], [1]])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_odd_explicit_paddings_are_refused(data_format: str, paddings: list[int]) -> None:
    b = Builder()
    filters = b.constant(np.ones((2, 2, 3, 3), "f4"))
    attrs = {"strides": [1] * 4, "padding": "EXPLICIT", "data_format": data_format}
    x = fed(b, [1, 3, 3, 3])
    y = b.op("Conv2D", x, filters, name="c", explicit_paddings=[0] * 8, **attrs)
    y = b.op("Relu", b.op("BiasAdd", y, b.constant(np.ones(3, "f4")), data_format=data_format))
    value = AttrValue()
    value.list.i.extend(paddings)
    graph = imported(Mutation("c", "explicit_paddings", value).apply(b.graph.as_graph_def()))
    assert graph is not None
    assert outcome(graph, y.name, {"x:0": np.ones((1, 3, 3, 3), "f4")}) is INVALID


@pytest.mark.parametrize("dtype", [INT32, DataType.DT_BOOL, DOUBLE, 0, 999])
@pytest.mark.parametrize("optimize", [False, True, {"arithmetic"}, {"constant_folding"}])
def test_constants_of_another_type_than_their_tensor_are_refused(optimize, dtype) -> None:
    b = Builder()
    y = b.op("Mul", fed(b, [2]), b.constant(1.0, name="one"))
    graph_def = b.graph.as_graph_def()
    held = next(n for n in graph_def.node if n.name == "one").attr["value"].tensor
    if isinstance(dtype, DataType):
        held.CopyFrom(opkernel.types.tensor_to_proto(np.array(1).astype(dtype.numpy_dtype), dtype))
    held.dtype = dtype
    graph = imported(graph_def)
    assert graph is not None
    assert outcome(graph, y.name, {"x:0": np.ones(2, "f4")}, optimize=optimize) is INVALID


@pytest.mark.parametrize("op", ["_Arg", "_Retval", "_DeviceArg", "_DeviceRetval"])
def test_bodies_that_hold_further_arguments_or_results_are_refused(op: str) -> None:
    b = Builder()
    function = define(b, "f", [FLOAT], lambda g, x: [g.op("Neg", x)])
    y = b.op("PartitionedCall", [fed(b, [2])], f=function, Tout=[FLOAT])
    graph_def = b.graph.as_graph_def()
    node = node_def("further", op, [] if "Arg" in op else ["a0"], T=FLOAT, index=1)
    graph_def.library.function[0].node_def.append(node)
    graph = imported(graph_def)
    assert graph is not None
    feeds = {"x:0": np.ones(2, "f4")}
    for config in ({"optimize": False}, {"optimize": True}, {"executor_type": "DATAFLOW"}):
        assert outcome(graph, y.name, feeds, **config) is INVALID
    optimize_functions(optimize_graph(graph, [graph.get_tensor_by_name(y.name)]))


@pytest.mark.parametrize("said", ["attr", "set_shape"])
def test_passes_do_not_rely_on_shapes_that_somebody_says(said: str) -> None:
    b = Builder()
    x, to = fed(b, None), fed(b, [None], "to", INT32)
    y = b.op("Reshape", x, to, name="y")
    b.op("Shape", y, name="shape")
    b.op("Reshape", y, ints(b, [2, 3]), name="again")
    graph: Any = b.graph
    if said == "set_shape":
        y.set_shape([2, 3])
    else:
        value = AttrValue()
        value.list.shape.add().CopyFrom(PartialTensorShape([2, 3]).to_proto())
        graph = imported(Mutation("y", "_output_shapes", value).apply(graph.as_graph_def()))
    feeds = {"x:0": np.arange(6, dtype="f4"), "to:0": np.array([3, 2], "i4")}
    for optimize in (False, True):
        assert outcome(graph, "shape:0", feeds, optimize=optimize).tolist() == [3, 2]
        assert outcome(graph, "again:0", feeds, optimize=optimize).shape == (2, 3)


@pytest.mark.parametrize("value", [np.inf, 1e38, -np.inf, np.nan, 1e-38, 0.0])
def test_scales_that_would_change_sums_stay_behind_a_product(value: float) -> None:
    b = Builder()
    weights = np.array([[1e30, -2.0], [3.0, 0.0]], "f4")
    y = b.op(
        "Mul", b.op("MatMul", fed(b, [2, 2]), b.constant(weights)), b.constant(np.float32(value))
    )
    y = b.op("AddV2", y, b.constant(np.ones(2, "f4")))
    feeds = {"x:0": np.array([[1e-30, -1], [0, 2]], "f4")}
    wanted, found = (outcome(b.graph, y.name, feeds, optimize=o) for o in (False, True))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


if __name__ == "__main__":
    for table in (CHANGED_BY, PATTERNS):
        for pass_name, graphs in table.items():
            check_samples(pass_name, graphs, None)
