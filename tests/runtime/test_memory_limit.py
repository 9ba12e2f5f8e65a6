"""What a budget of memory promises: nothing that is larger is allocated, whichever op asks for it."""

from __future__ import annotations

import functools
import lzma
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.testing.test_catalogue import as_kernels_take

import opkernel
from opkernel import raw_ops
from opkernel.device.budget import Budget, owner_of
from opkernel.device.local_device import CPU
from opkernel.errors import OpError, ResourceExhaustedError
from opkernel.graph import Graph, Operation, import_graph_def
from opkernel.kernel import (
    OpKernelContext,
    create_op_kernel,
    get_registered_kernels_for_op,
    under_budget,
)
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.proto import GraphDef
from opkernel.runtime.program.run_step import RunStep

CALLS = Path(__file__).parent.parent / "data" / "op_calls.pb.xz"

# Their outputs are the memory of their inputs, tiny, of rank 0, or those of functions that they call.
GIVES_NOTHING_NEW = [
    "Assert",
    "BroadcastGradientArgs",
    "BroadcastTo",
    "Case",
    "CheckNumerics",
    "CheckNumericsV2",
    "CompositeTensorVariantToComponents",
    "ControlTrigger",
    "DebugGradientIdentity",
    "DebugIdentity",
    "DebugIdentityV2",
    "DebugIdentityV3",
    "EmptyTensorList",
    "EnsureShape",
    "ExpandDims",
    "Fingerprint",
    "GuaranteeConst",
    "Identity",
    "IdentityN",
    "If",
    "L2Loss",
    "NoOp",
    "OptionalFromValue",
    "OptionalGetValue",
    "OptionalHasValue",
    "OptionalNone",
    "PartitionedCall",
    "PlaceholderWithDefault",
    "PreventGradient",
    "Print",
    "PrintV2",
    "Rank",
    "Reshape",
    "Reverse",
    "ReverseV2",
    "Size",
    "Slice",
    "Split",
    "SplitV",
    "Squeeze",
    "StatefulPartitionedCall",
    "StatelessCase",
    "StatelessIf",
    "StatelessWhile",
    "StopGradient",
    "StridedSlice",
    "StringFormat",
    "TensorListConcat",
    "TensorListConcatLists",
    "TensorListConcatV2",
    "TensorListElementShape",
    "TensorListFromTensor",
    "TensorListGather",
    "TensorListGetItem",
    "TensorListLength",
    "TensorListPopBack",
    "TensorListPushBack",
    "TensorListReserve",
    "TensorListResize",
    "TensorListScatter",
    "TensorListScatterIntoExistingList",
    "TensorListScatterV2",
    "TensorListSetItem",
    "TensorListSplit",
    "TensorListStack",
    "TensorMapLookup",
    "Timestamp",
    "ToBool",
    "Transpose",
    "Unpack",
    "While",
]


# The size of their outputs follows from the values of their inputs, of which it is a small multiple at most:
# they are counted, and refused, once they are computed.
COUNTED_AFTERWARDS = ["ComputeAccidentalHits", "StatelessShuffle"]


@functools.cache
def session() -> opkernel.Session:
    graph = Graph()
    with graph.as_default():
        import_graph_def(GraphDef.FromString(lzma.decompress(CALLS.read_bytes())), name="")
    return opkernel.Session(graph)


@functools.cache
def calls() -> dict[str, list[Operation]]:
    """The recorded calls by op, of those that have kernels."""
    found: dict[str, list[Operation]] = {}
    for op in session().graph.get_operations():
        is_call = op.type not in ("Const", "Placeholder")
        if is_call and get_registered_kernels_for_op(op.type).kernel:
            found.setdefault(op.type, []).append(op)
    return found


def computed(op: Operation, inputs: list[Any]) -> list[Any]:
    kernel = create_op_kernel(
        CPU, op.node_def, graph_def_version=op.graph.graph_def_versions.producer
    )
    with np.errstate(all="ignore"):
        return OpKernelContext(kernel, inputs, RunStep(timeout_s=5)).run()


def new_arrays(op: Operation, inputs: list[Any]) -> list[np.ndarray[Any, Any]]:
    """What a call gives that is memory of none of its inputs; nothing where it is refused."""
    try:
        outputs = computed(op, inputs)
    except OpError:
        return []
    owners = {id(owner_of(value)) for value in inputs}
    return [
        value
        for value in outputs
        if isinstance(value, np.ndarray) and value.ndim and id(owner_of(value)) not in owners
    ]


@pytest.mark.filterwarnings("ignore:Op .* is deprecated")
@pytest.mark.parametrize(
    "name", sorted({*MODULE_OF_OP} - {*GIVES_NOTHING_NEW, *COUNTED_AFTERWARDS})
)
def test_no_kernel_gives_more_than_the_limit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is refused before it has computed anything, or asks before it allocates."""

    def hold(self: Budget, array: Any, content_bytes: int = 0) -> None:
        """A kernel has come back with something."""
        size = getattr(owner_of(array), "nbytes", 0)
        assert size <= (self.memory_limit_bytes or 0), f"{size} bytes were allocated"

    monkeypatch.setattr(Budget, "hold", hold)
    for op in calls().get(name, ()):
        inputs = list(map(as_kernels_take, session().run(list(op.inputs)))) if op.inputs else []
        sizes = [value.nbytes for value in new_arrays(op, inputs)]
        if max(sizes, default=0) < 2:
            continue
        with (
            under_budget(Budget(max(sizes) - 1)),
            pytest.raises(ResourceExhaustedError, match="OOM when allocating tensor with shape"),
        ):
            computed(op, inputs)


@pytest.mark.parametrize("name", COUNTED_AFTERWARDS)
def test_what_is_counted_afterwards_is_refused_all_the_same(name: str) -> None:
    tried = 0
    for op in calls()[name]:
        inputs = list(map(as_kernels_take, session().run(list(op.inputs))))
        sizes = [value.nbytes for value in new_arrays(op, inputs)]
        if max(sizes, default=0) < 2:
            continue
        tried += 1
        with under_budget(Budget(max(sizes) - 1)), pytest.raises(ResourceExhaustedError):
            computed(op, inputs)
    assert tried


def test_the_matrix_has_most_ops() -> None:
    tested = calls().keys() - {*GIVES_NOTHING_NEW}
    assert len(tested) > 300


def peak_of(graph: Graph, fetch: Any, feeds: Any, limit: int, **options: Any) -> int:
    """The most bytes that NumPy and Python had at once in a step that its limit ends."""
    with opkernel.Session(graph, memory_limit_bytes=limit, **options) as limited:
        tracemalloc.start()
        try:
            with pytest.raises(ResourceExhaustedError) as raised:
                limited.run(fetch, feeds)
            assert f"node '{raised.value.node}'" in str(raised.value)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def x_of_graph() -> Any:
    return opkernel.placeholder(np.float32, [None], name="x")


X = np.ones(100_000, np.float32)
LARGE = {
    "add": lambda x: raw_ops.AddV2(
        x=raw_ops.ExpandDims(input=x, axis=0), y=raw_ops.ExpandDims(input=x, axis=1)
    ),
    "concat": lambda x: raw_ops.ConcatV2(values=[x] * 100, axis=0),
    "pack": lambda x: raw_ops.Pack(values=[x] * 100),
    "gather": lambda x: raw_ops.GatherV2(params=x, indices=np.zeros([9999, 999], np.int32), axis=0),
    "cast": lambda x: raw_ops.Cast(
        x=raw_ops.BroadcastTo(input=x, shape=[99, 100_000]), DstT="double"
    ),
    "complex": lambda x: raw_ops.Complex(
        real=raw_ops.BroadcastTo(input=x, shape=[99, 100_000]), imag=x
    ),
    "where": lambda x: raw_ops.Where(condition=raw_ops.BroadcastTo(input=x, shape=[99, 100_000])),
    "top": lambda x: raw_ops.TopKV2(
        input=raw_ops.BroadcastTo(input=x, shape=[99, 100_000]), k=100_000
    )[0],
}


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("what", LARGE)
def test_what_is_too_large_is_never_allocated(what: str, executor: str, optimize: bool) -> None:
    with Graph().as_default() as graph:
        large = LARGE[what](x_of_graph())
    options = {"executor_type": executor, "optimize": optimize}
    assert peak_of(graph, large, {"x:0": X}, 1 << 20, **options) < 45_000_000


def test_what_a_step_holds_at_once_counts() -> None:
    with Graph().as_default() as graph:
        x = x_of_graph()
        total = raw_ops.AddN(inputs=[raw_ops.Tanh(x=x * float(i)) for i in range(8)])
        chain = functools.reduce(lambda y, _: raw_ops.Tanh(x=y), range(20), x)
    with opkernel.Session(graph, memory_limit_bytes=1_000_000) as limited:
        assert limited.run(chain, {x: X}).shape == X.shape  # 8 MB, of which 0.8 are alive at once
        with pytest.raises(ResourceExhaustedError, match="in use"):
            limited.run(total, {x: X})
    with opkernel.Session(graph, memory_limit_bytes=5_000_000) as enough:
        for _ in range(20):  # one step is no burden to the next
            assert enough.run(total, {x: X}).shape == X.shape


def test_functions_and_loops_keep_to_the_limit() -> None:
    @opkernel.function
    def doubled(x: Any) -> Any:
        return raw_ops.ConcatV2(values=[x, x], axis=0)

    with Graph().as_default() as graph:
        x = x_of_graph()
        (grown,) = opkernel.while_loop(
            lambda y: raw_ops.Size(input=y) < 10**9,
            lambda y: [doubled(y)],
            [x],
            shape_invariants=[opkernel.PartialTensorShape([None])],
        )
    assert peak_of(graph, grown, {x: X}, 8_000_000) < 16_000_000


def test_constants_count_before_they_are_decoded() -> None:
    graph_def = GraphDef()
    node = graph_def.node.add(name="c", op="Const")
    node.attr["dtype"].type = 1
    node.attr["value"].tensor.dtype = 1
    node.attr["value"].tensor.float_val.append(1)
    node.attr["value"].tensor.tensor_shape.dim.add(size=1 << 29)
    assert len(graph_def.SerializeToString()) < 84
    with Graph().as_default() as graph:
        import_graph_def(graph_def, name="")
        total = raw_ops.Sum(input=graph.get_tensor_by_name("c:0"), axis=[0], name="total")
    for fetch in ("c:0", total):
        assert peak_of(graph, fetch, {}, 1 << 20) < 10_000_000


def test_what_is_fetched_twice_counts_twice() -> None:
    with Graph().as_default() as graph:
        c = opkernel.constant(np.ones(100_000, np.float32))
        views = [raw_ops.Reshape(tensor=c, shape=[10 * i, -1]) for i in (1, 10, 100, 1000)]
    with (
        opkernel.Session(graph, memory_limit_bytes=1_000_000) as limited,
        pytest.raises(ResourceExhaustedError),
    ):
        limited.run(views)


def test_strings_count_with_their_bytes() -> None:
    with Graph().as_default() as graph:
        text = opkernel.placeholder("string", [], name="text")
        joined = functools.reduce(lambda s, _: raw_ops.StringJoin(inputs=[s, s]), range(20), text)
    assert peak_of(graph, joined, {text: b"x" * 1000}, 4_000_000) < 5_000_000


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
def test_a_result_counts_once(executor: str) -> None:
    """It is given out as it is, though who counts memory refers to it."""
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [1_000_000])
        y = opkernel.raw_ops.Neg(x=x)
    with opkernel.Session(graph, memory_limit_bytes=7_000_000, executor_type=executor) as session:
        assert session.run(y, {x: np.ones(1_000_000, np.float32)})[-1] == -1


def test_a_limited_step_does_not_branch() -> None:
    """Branches side by side hold more at once than one after the other: later steps would fail."""
    with Graph().as_default() as graph:
        x = opkernel.placeholder(np.float32, [None, 400], name="x")
        squares = [raw_ops.MatMul(a=x * float(i), b=x) for i in range(4)]
        total = raw_ops.AddN(inputs=squares)
    plans = {}
    for limit in (None, 1 << 30):
        with opkernel.Session(graph, memory_limit_bytes=limit) as session:
            plans[limit] = repr(session.plan(total, ["x:0"]))
    assert "BranchingPlan" in plans[None]
    assert "BranchingPlan" not in plans[1 << 30]
