"""Arrays are the caller's or the runtime's, never both's: whoever writes to his changes no other.

Ops that pass their input on, or show its memory, are run in each way there is. Then all results are
written over, and after the next call what was given: neither may change what anybody else has.
"""

from collections.abc import Callable, Sequence
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
from opkernel.graph import Graph, Tensor
from opkernel.graph.tracing.nested_structure import flatten
from opkernel.types import DataType, as_dtype

INT8 = np.arange(4, dtype=np.int8)
QINT8 = INT8.view(opkernel.qint8.as_numpy_dtype)
TEXT = np.array([b"a", b"bc"], object)


class Case(NamedTuple):
    """What is computed of some arrays, and what that gives."""

    build: Build
    inputs: Sequence[Any]
    expected: Sequence[Any]


def case(build: Build, *expected: Any, of: Any = X) -> Case:
    return Case(build, [of], expected)


@opkernel.function
def passing_on(x: Any) -> Any:
    return x, raw_ops.Reshape(tensor=x, shape=[-1])


@opkernel.function
def constant() -> Any:
    return opkernel.constant(X)


def chosen(x: Any) -> Any:
    pred = raw_ops.Less(x=raw_ops.Rank(input=x), y=at(9))
    return opkernel.cond(pred, lambda: x, lambda: -x)


def looped(x: Any) -> Any:
    turns = raw_ops.Rank(input=x) - 2
    return opkernel.while_loop(lambda i, x: i < turns, lambda i, x: [i + 1, -x], [at(0), x])[1]


def listed(x: Any) -> Any:
    items = raw_ops.TensorListFromTensor(tensor=x, element_shape=[3])
    get = raw_ops.TensorListGetItem(
        input_handle=items, index=at(1), element_shape=[3], element_dtype=opkernel.float32
    )
    whole = raw_ops.TensorListStack(
        input_handle=items, element_shape=[3], element_dtype=opkernel.float32
    )
    return get, whole


def optional(x: Any) -> Any:
    held = raw_ops.OptionalFromValue(components=[x])
    return raw_ops.OptionalGetValue(
        optional=held, output_types=[opkernel.float32], output_shapes=[[2, 3]]
    )


def tensor_array(x: Any) -> Any:
    array = raw_ops.TensorArrayV3(size=2, dtype=opkernel.float32, clear_after_read=False)
    flow = raw_ops.TensorArrayScatterV3(
        handle=array.handle, indices=ints(0, 1), value=x, flow_in=array.flow
    )
    return [
        raw_ops.TensorArrayReadV3(
            handle=array.handle, index=at(1), flow_in=flow, dtype=opkernel.float32
        )
        for _ in range(2)
    ]


CASES = {
    "Identity": case(lambda x: raw_ops.Identity(input=x), X),
    "Identity of strings": case(lambda x: raw_ops.Identity(input=x), TEXT, of=TEXT),
    "Identity of qint8": case(lambda x: raw_ops.Identity(input=x), QINT8, of=QINT8),
    "Identity of a qint8": case(lambda x: raw_ops.Identity(input=x), QINT8[1], of=QINT8[1]),
    "Identity of a number": case(lambda x: raw_ops.Identity(input=x), X[1, 1], of=X[1, 1]),
    "one tensor twice": case(lambda x: [x + 1, raw_ops.Identity(input=x + 1)], X + 1, X + 1),
    "a tensor and its view": case(
        lambda x: (y := x * 2, raw_ops.Reshape(tensor=y, shape=[6])), X * 2, X.ravel() * 2
    ),
    "IdentityN": case(lambda x: raw_ops.IdentityN(input=[x, x]), X, X),
    "Snapshot": case(lambda x: raw_ops.Snapshot(input=x), X),
    "StopGradient": case(lambda x: raw_ops.StopGradient(input=x), X),
    "PreventGradient": case(lambda x: raw_ops.PreventGradient(input=x), X),
    "PlaceholderWithDefault": case(
        lambda x: raw_ops.PlaceholderWithDefault(input=x, shape=[2, 3]), X
    ),
    "CheckNumerics": case(lambda x: raw_ops.CheckNumerics(tensor=x, message=""), X),
    "EnsureShape": case(lambda x: raw_ops.EnsureShape(input=x, shape=[2, 3]), X),
    "Reshape": case(lambda x: raw_ops.Reshape(tensor=x, shape=[3, 2]), X.reshape(3, 2)),
    "ExpandDims": case(lambda x: raw_ops.ExpandDims(input=x, axis=at(0)), X[None]),
    "Squeeze": case(lambda x: raw_ops.Squeeze(input=x), X[0], of=X[:1]),
    "StridedSlice": case(
        lambda x: raw_ops.StridedSlice(
            input=x, begin=ints(0, 2), end=ints(2, 0), strides=ints(1, -1)
        ),
        X[:, :0:-1],
    ),
    "Slice": case(lambda x: raw_ops.Slice(input=x, begin=ints(0, 1), size=ints(2, 2)), X[:, 1:]),
    "Split": case(lambda x: raw_ops.Split(axis=at(0), value=x, num_split=2), X[:1], X[1:]),
    "SplitV": case(
        lambda x: raw_ops.SplitV(value=x, size_splits=ints(1, 2), axis=at(1), num_split=2),
        X[:, :1],
        X[:, 1:],
    ),
    "Unpack": case(lambda x: raw_ops.Unpack(value=x, num=2), X[0], X[1]),
    "Transpose": case(lambda x: raw_ops.Transpose(x=x, perm=ints(1, 0)), X.T),
    "Transpose of nothing": case(lambda x: raw_ops.Transpose(x=x, perm=ints(0, 1)), X),
    "BroadcastTo": case(
        lambda x: raw_ops.BroadcastTo(input=x, shape=ints(2, 2, 3)), np.stack([X, X])
    ),
    "ReverseV2": case(lambda x: raw_ops.ReverseV2(tensor=x, axis=ints(0)), X[::-1]),
    "ReverseV2 of nothing": case(lambda x: raw_ops.ReverseV2(tensor=x, axis=ints()), X),
    "Bitcast": case(lambda x: raw_ops.Bitcast(input=x, type=opkernel.int32), X.view(np.int32)),
    "Cast": case(lambda x: raw_ops.Cast(x=x, DstT=opkernel.float32), X),
    "AddN of one": case(lambda x: raw_ops.AddN(inputs=[x]), X),
    "ConcatV2 of one": case(lambda x: raw_ops.ConcatV2(values=[x, x[:0]], axis=at(0)), X),
    "Tile once": case(lambda x: raw_ops.Tile(input=x, multiples=ints(1, 1)), X),
    "Pad of nothing": case(lambda x: raw_ops.Pad(input=x, paddings=np.zeros((2, 2), int)), X),
    "Sum over nothing": case(lambda x: raw_ops.Sum(input=x, axis=ints()), X),
    "Relu": case(lambda x: raw_ops.Relu(features=x), X),
    "a constant": Case(lambda: raw_ops.Identity(input=X), [], [X]),
    "a constant of a function": Case(constant, [], [X]),
    "a function": case(passing_on, X, X.ravel()),
    "If": case(chosen, X),
    "While": case(looped, X),
    "TensorList": case(listed, X[1], X),
    "Optional": case(optional, X),
    "TensorArray": case(tensor_array, X[1], X[1]),
}
"""What TensorFlow gives for each; the values are those of the input, in another place."""


class Built(NamedTuple):
    """A case in a graph, with one more placeholder that all of `late` wait for."""

    graph: Graph
    inputs: list[Tensor]
    gate: Tensor
    outputs: list[Tensor]
    late: list[Tensor]


def built(case: Case) -> Built:
    with Graph().as_default() as graph:
        inputs = [opkernel.placeholder(natural(v), np.shape(v)) for v in case.inputs]
        outputs = list(flatten(case.build(*inputs)))
        gate = opkernel.placeholder(opkernel.float32, [])
        late = [raw_ops.IdentityN(input=[tensor, gate])[0] for tensor in outputs]
    return Built(graph, inputs, gate, outputs, late)


def natural(value: Any) -> DataType:
    return opkernel.qint8 if value.dtype == QINT8.dtype else as_dtype(value.dtype)


def eagerly(case: Case) -> Call:
    return lambda given: list(flatten(case.build(*given)))


def traced(case: Case) -> Call:
    function = opkernel.function(lambda *given: list(flatten(case.build(*given))))
    return lambda given: function(*given)


def run_in(case: Case, **config: Any) -> Call:
    graph, inputs, _, outputs, _ = built(case)
    session = opkernel.Session(graph, **config)
    return lambda given: session.run(outputs, dict(zip(inputs, given, strict=True)))


def callable_of(case: Case) -> Call:
    graph, inputs, _, outputs, _ = built(case)
    call = opkernel.Session(graph).make_callable(outputs, inputs)
    return lambda given: call(*given)


def partially(case: Case) -> Call:
    """All is fed at once, and fetched one after the other."""
    graph, inputs, _, outputs, _ = built(case)
    session = opkernel.Session(graph)

    def call(given: Sequence[Any]) -> list[Any]:
        if not inputs and len(outputs) == 1:
            return session.run(outputs)
        handle = session.partial_run_setup(outputs, inputs)
        session.partial_run(handle, [], dict(zip(inputs, given, strict=True)))
        return [session.partial_run(handle, tensor) for tensor in outputs]

    return call


WAYS: dict[str, Callable[[Case], Call]] = {
    "eager": eagerly,
    "function": traced,
    "session": run_in,
    "dataflow": lambda case: run_in(case, executor_type="DATAFLOW"),
    "threads": lambda case: run_in(case, inter_op_threads=2),
    "as it is": lambda case: run_in(case, optimize=False),
    "callable": callable_of,
    "partial run": partially,
}


WAYS_OF_CASES = [
    (name, way)
    for name in CASES
    for way in WAYS
    if way != "eager" or name not in ("If", "While")  # there Python decides, and makes nothing
]


@pytest.mark.parametrize(("name", "way"), WAYS_OF_CASES)
def test_what_the_caller_writes_to_is_his_alone(name: str, way: str) -> None:
    case = CASES[name]
    call = WAYS[way](case)
    given = list(map(own, case.inputs))
    first = call(given)
    check_equal(first, case.expected, "at once")
    check_apart(first, given)
    write_over(first)
    check_equal(given, case.inputs, "what was given, once the results were written over")
    for _ in range(3):  # a session may have come to another plan
        second = call(given)
        check_equal(second, case.expected, "again")
    write_over(given)
    check_equal(second, case.expected, "once what was given was written over")
    check_equal(call(list(map(own, case.inputs))), case.expected, "of other arrays")


@pytest.mark.parametrize("name", CASES)
def test_later_parts_of_a_step_see_what_earlier_ones_saw(name: str) -> None:
    case = CASES[name]
    graph, inputs, gate, outputs, late = built(case)
    with opkernel.Session(graph) as session:
        handle = session.partial_run_setup([*outputs, *late], [*inputs, gate])
        given = list(map(own, case.inputs))
        first = session.partial_run(handle, outputs, dict(zip(inputs, given, strict=True)))
        check_equal(first, case.expected, "at once")
        write_over([*first, *given])
        second = session.partial_run(handle, late[:1], {gate: 0})
        check_equal(second, case.expected[:1], "a part later")
        write_over(second)
        third = session.partial_run(handle, late[1:]) if late[1:] else []
        check_equal(third, case.expected[1:], "two parts later")
