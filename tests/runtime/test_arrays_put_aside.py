"""What is put aside, in resources, variants and handles, stays as it was when it was put there."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.runtime.array_owners import (
    Build,
    Call,
    X,
    at,
    check_apart,
    check_equal,
    ints,
    own,
    write_over,
)

import opkernel
from opkernel import raw_ops
from opkernel.device.local_device import CPU
from opkernel.graph import Graph
from opkernel.graph.tracing.nested_structure import flatten
from opkernel.types import DataType


@pytest.fixture(autouse=True)
def no_resources() -> None:
    """Eager calls find nothing that those of another test put aside."""
    CPU.resource_manager.clear()


class Keeper(NamedTuple):
    """What keeps a tensor, and how it is got out again; `again`: it can be got out several times."""

    put: Build
    get: Callable[[], Any]
    again: bool = False


FLOAT32, VARIANT = opkernel.float32, opkernel.variant


def queue(op: str, dtype: DataType = FLOAT32, **attrs: Any) -> Keeper:
    def handle() -> Any:
        name = f"shared {op} of {dtype.tf_name}"
        return getattr(raw_ops, op)(component_types=[dtype], shared_name=name, **attrs)

    return Keeper(
        lambda x: raw_ops.QueueEnqueueV2(handle=handle(), components=[x]),
        lambda: raw_ops.QueueDequeueV2(handle=handle(), component_types=[dtype])[0],
    )


def variable(dtype: DataType = FLOAT32) -> Keeper:
    def handle() -> Any:
        shape = [2, 3] if dtype == FLOAT32 else []
        return raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=f"shared {dtype.tf_name}")

    return Keeper(
        lambda x: raw_ops.AssignVariableOp(resource=handle(), value=x),
        lambda: raw_ops.ReadVariableOp(resource=handle(), dtype=dtype),
        again=True,
    )


def staged(dtype: DataType = FLOAT32) -> Keeper:
    name = f"shared {dtype.tf_name}"
    return Keeper(
        lambda x: raw_ops.Stage(values=[x], shared_name=name),
        lambda: raw_ops.StagePeek(index=at(0), dtypes=[dtype], shared_name=name)[0],
        again=True,
    )


def staged_by_key() -> Keeper:
    attrs: dict[str, Any] = {"dtypes": [FLOAT32], "shared_name": "shared"}
    place: dict[str, Any] = {"key": np.int64(1), "indices": ints(0)}
    return Keeper(
        lambda x: raw_ops.MapStage(values=[x], **place, **attrs),
        lambda: raw_ops.MapPeek(**place, **attrs)[0],
        again=True,
    )


def table(op: str, **attrs: Any) -> Keeper:
    keys = np.array([1, 2], np.int64)

    def handle() -> Any:
        name, shape = f"shared {op}", {"value_shape": [3]}
        made = getattr(raw_ops, op)
        return made(value_dtype=FLOAT32, shared_name=name, **shape, **attrs)

    return Keeper(
        lambda x: raw_ops.LookupTableInsertV2(table_handle=handle(), keys=keys, values=x),
        lambda: raw_ops.LookupTableFindV2(
            table_handle=handle(), keys=keys, default_value=np.zeros(3, np.float32)
        ),
        again=True,
    )


def accumulator() -> Keeper:
    def handle() -> Any:
        return raw_ops.ResourceConditionalAccumulator(
            dtype=FLOAT32, shape=[2, 3], shared_name="shared accumulator"
        )

    return Keeper(
        lambda x: raw_ops.ResourceAccumulatorApplyGradient(
            handle=handle(), local_step=np.int64(9), gradient=x
        ),
        lambda: raw_ops.ResourceAccumulatorTakeGradient(
            handle=handle(), num_required=at(1), dtype=FLOAT32
        ),
    )


def barrier() -> Keeper:
    keys = np.array([b"key"], object)

    def handle() -> Any:
        return raw_ops.Barrier(
            component_types=[FLOAT32], shapes=[[2, 3]], shared_name="shared barrier"
        )

    def take() -> Any:
        taken = raw_ops.BarrierTakeMany(
            handle=handle(), num_elements=at(1), component_types=[FLOAT32]
        )
        return raw_ops.Reshape(tensor=taken.values[0], shape=[2, 3])

    return Keeper(
        lambda x: raw_ops.BarrierInsertMany(
            handle=handle(), keys=keys, values=raw_ops.ExpandDims(input=x, axis=at(0)),
            component_index=0,
        ),
        take,
    )  # fmt: skip


def of_priorities() -> Keeper:
    def handle() -> Any:
        return raw_ops.PriorityQueueV2(
            component_types=[FLOAT32], shapes=[[2, 3]], shared_name="shared priorities"
        )

    return Keeper(
        lambda x: raw_ops.QueueEnqueueV2(handle=handle(), components=[np.int64(1), x]),
        lambda: raw_ops.QueueDequeueV2(
            handle=handle(), component_types=[opkernel.int64, FLOAT32]
        )[1],
    )  # fmt: skip


def list_of_rows(x: Any) -> Any:
    return raw_ops.TensorListFromTensor(tensor=x, element_shape=[3])


def rows(items: Any) -> Any:
    return raw_ops.TensorListStack(input_handle=items, element_shape=[3], element_dtype=FLOAT32)


def in_optional(x: Any) -> Any:
    return raw_ops.OptionalFromValue(components=[list_of_rows(x), x])


def of_optional(held: Any) -> Any:
    items, x = raw_ops.OptionalGetValue(
        optional=held, output_types=[VARIANT, FLOAT32], output_shapes=[[], [2, 3]]
    )
    return rows(items) + x - x


def within(keeper: Keeper, wrap: Build, unwrap: Build) -> Keeper:
    """What keeps a variant that has the tensor in it."""
    return Keeper(lambda x: keeper.put(wrap(x)), lambda: unwrap(keeper.get()), keeper.again)


LIST, OPTIONAL = (list_of_rows, rows), (in_optional, of_optional)
KEEPERS = {
    "variable": variable(),
    "variable of a list": within(variable(VARIANT), *LIST),
    "queue": queue("FIFOQueueV2"),
    "queue of padded": queue("PaddingFIFOQueueV2", shapes=[[2, 3]]),
    "queue of shuffled": queue("RandomShuffleQueueV2"),
    "queue of priorities": of_priorities(),
    "barrier": barrier(),
    "queue of lists": within(queue("FIFOQueueV2", VARIANT), *LIST),
    "queue of optionals": within(queue("FIFOQueueV2", VARIANT), *OPTIONAL),
    "staging area": staged(),
    "staging area of lists": within(staged(VARIANT), *LIST),
    "staging map": staged_by_key(),
    "table": table("MutableHashTableOfTensorsV2", key_dtype=opkernel.int64),
    "dense table": table(
        "MutableDenseHashTableV2", empty_key=np.int64(-1), deleted_key=np.int64(-2)
    ),
    "accumulator": accumulator(),
}

SOURCES: dict[str, Build] = {
    "what was fed": lambda x: x,
    "a view of it": lambda x: raw_ops.Reshape(
        tensor=raw_ops.Reshape(tensor=x, shape=[6]), shape=[2, 3]
    ),
    "what was computed": lambda x: x + 0,
    "a view of what was computed": lambda x: raw_ops.Transpose(
        x=raw_ops.Transpose(x=x, perm=ints(1, 0)) + 0, perm=ints(1, 0)
    ),
}


def steps_of(put: Build, get: Build, way: str) -> tuple[Call, Call]:
    """The step that puts in, and the one that gets out; in sessions, of one graph."""
    if way == "eager":
        return lambda given: put(*given), lambda given: [get(*given)]
    if way == "function":
        functions = opkernel.function(put), opkernel.function(get)
        return lambda given: functions[0](*given), lambda given: [functions[1](*given)]
    with Graph().as_default() as graph:
        x = opkernel.placeholder(FLOAT32, [2, 3])
        fetches = put(x)
        got = get()
    session = opkernel.Session(graph, executor_type="DATAFLOW" if way == "dataflow" else "")
    return (
        lambda given: session.run(fetches, {x: given[0]})[1:],
        lambda given: [session.run(got)],
    )


WAYS = ["eager", "function", "session", "dataflow"]
WAYS_OF_KEEPERS = [
    (name, way)
    for name in KEEPERS
    for way in WAYS
    if name != "barrier" or way in ("session", "dataflow")  # its handle is a reference
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("name", "way"), WAYS_OF_KEEPERS)
def test_what_was_put_aside_stays_as_it_was(name: str, source: str, way: str) -> None:
    keeper = KEEPERS[name]

    def put(x: Any) -> Any:
        tensor = SOURCES[source](x)
        return [keeper.put(tensor), tensor, raw_ops.Reshape(tensor=tensor, shape=[-1])]

    put_in, get_out = steps_of(put, keeper.get, way)
    given = own(X)
    seen = [value for value in put_in([given]) if value is not None]
    check_equal(seen, [X, X.ravel()], "what was put aside")
    write_over([given, *seen])
    for _ in range(3 if keeper.again else 1):
        got = get_out([])
        check_equal(got, [X], "what was got")
        check_apart(got, [given])
        write_over(got)


@pytest.mark.parametrize("way", ["eager", "function", "session", "dataflow"])
@pytest.mark.parametrize(("wrap", "unwrap"), [LIST, OPTIONAL])
def test_variants_keep_what_they_were_made_of(wrap: Build, unwrap: Build, way: str) -> None:
    """The caller has the variant between two steps, and writes over all that he can."""

    def make(x: Any) -> Any:
        return [wrap(x), x + 0]

    if way in ("eager", "function"):
        made, used = (f if way == "eager" else opkernel.function(f) for f in (make, unwrap))
    else:
        with Graph().as_default() as graph:
            x, held = opkernel.placeholder(FLOAT32, [2, 3]), opkernel.placeholder(VARIANT, [])
            tensors, got = make(x), unwrap(held)
        session = opkernel.Session(graph, executor_type="DATAFLOW" if way == "dataflow" else "")
        made, used = session.make_callable(tensors, [x]), session.make_callable(got, [held])
    given = own(X)
    variant, seen = made(given)
    write_over([given, seen])
    for _ in range(2):
        got = used(variant)
        check_equal([got], [X], "what was made of the variant")
        write_over([got])


@pytest.mark.parametrize("way", ["eager", "function", "session", "dataflow"])
def test_a_value_that_was_read_is_not_changed_by_later_steps(way: str) -> None:
    keeper = KEEPERS["variable"]
    handle: dict[str, Any] = {"dtype": FLOAT32, "shape": [2, 3], "shared_name": "shared float32"}

    def read() -> Any:
        value = keeper.get()
        return [value, raw_ops.Reshape(tensor=value, shape=[6]), raw_ops.Unpack(value=value, num=2)]

    def add(x: Any) -> Any:
        return [raw_ops.AssignAddVariableOp(resource=raw_ops.VarHandleOp(**handle), value=x)]

    if way in ("eager", "function"):
        wrap = opkernel.function if way == "function" else lambda f: f
        assign, adds, reads = (wrap(f) for f in (lambda x: [keeper.put(x)], add, read))
    else:
        with Graph().as_default() as graph:
            x = opkernel.placeholder(FLOAT32, [2, 3])
            fetches = [keeper.put(x)], add(x), read()
        session = opkernel.Session(graph, executor_type="DATAFLOW" if way == "dataflow" else "")
        assign, adds = (session.make_callable(f, [x]) for f in fetches[:2])
        reads = session.make_callable(fetches[2])
    assign(own(X))
    first = list(flatten(reads()))
    adds(own(X))
    second = list(flatten(reads()))
    check_equal(first, [X, X.ravel(), X[0], X[1]], "as it was read")
    check_apart([*first, *second], [])
    write_over(first)
    check_equal(list(flatten(reads())), [X * 2, X.ravel() * 2, X[0] * 2, X[1] * 2], "read again")


@pytest.mark.parametrize("source", SOURCES)
def test_eager_calls_put_aside_what_they_are_given(source: str) -> None:
    """In resources that a step would have for itself; all eager calls have them together."""
    given = own(X)
    tensor = SOURCES[source](given)
    array = raw_ops.TensorArrayV3(size=1, dtype=FLOAT32, clear_after_read=False)
    place: dict[str, Any] = {"handle": array.handle, "index": at(0)}
    flow = raw_ops.TensorArrayWriteV3(value=tensor, flow_in=array.flow, **place)
    stack = raw_ops.StackV2(max_size=1, elem_type=FLOAT32)
    pushed = raw_ops.StackPushV2(handle=stack, elem=tensor)
    write_over([given, tensor, pushed])
    for _ in range(2):
        read = raw_ops.TensorArrayReadV3(flow_in=flow, dtype=FLOAT32, **place)
        check_equal([read], [X], "what was written to a TensorArray")
        write_over([read])
    popped = raw_ops.StackPopV2(handle=stack, elem_type=FLOAT32)
    check_equal([popped], [X], "what was pushed on a stack")


def test_the_tensor_of_a_handle_stays_as_it_was() -> None:
    for source in SOURCES.values():
        with Graph().as_default() as graph:
            x = opkernel.placeholder(FLOAT32, [2, 3])
            tensor = source(x)
            keep = raw_ops.GetSessionHandle(value=tensor)
            passed = raw_ops.Identity(input=x)
        with opkernel.Session(graph) as session:
            given = own(X)
            handle, seen = session.run([keep, tensor], {x: given})
            write_over([given, seen, handle.eval()])
            for _ in range(2):
                found = session.run(passed, {x: handle})
                check_equal([found, handle.eval()], [X, X], "the tensor of the handle")
                write_over([found])
