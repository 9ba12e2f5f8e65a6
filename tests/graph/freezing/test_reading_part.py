"""The part of a graph that reads variables: those that it does not assign to become constants."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, raw_ops
from opkernel.errors import FailedPreconditionError, UnimplementedError
from opkernel.graph import Operation, func, function_def, node_def
from opkernel.graph.freezing.body import HeldValue
from opkernel.graph.freezing.freeze_graph import ReadingPart
from opkernel.types import tensor_to_proto

FLOAT, RESOURCE = opkernel.float32, opkernel.resource
VALUES = {"v": np.float32(3), "w": np.float32(5), "h": np.float32(7)}


def variable(name: str) -> Any:
    return raw_ops.VarHandleOp(dtype=FLOAT, shape=[], shared_name=name, name=name)


def read(handle: Any) -> Any:
    return raw_ops.ReadVariableOp(resource=handle, dtype=FLOAT)


def part(
    graph: Graph, fetch: str = "y:0", feeds: Iterable[str] = (), **captured: str
) -> ReadingPart:
    """What a tensor needs; captured are placeholders of handles, with the names of their variables."""
    held = {
        graph.get_operation_by_name(name): HeldValue(FLOAT, opkernel.PartialTensorShape([]), shared)
        for name, shared in captured.items()
    }
    fed = [graph.get_tensor_by_name(name) for name in feeds]
    return ReadingPart(graph, [graph.get_tensor_by_name(fetch)], fed, held)


def frozen(reading: ReadingPart) -> Graph:
    def value(op: Operation, held: HeldValue) -> Any:
        return tensor_to_proto(VALUES[held.variable])

    return reading.frozen(value)


def types(graph: Graph) -> set[str]:
    return {op.type for op in graph.get_operations()}


@pytest.fixture
def graph() -> Iterable[Graph]:
    with Graph().as_default() as graph:
        yield graph


def test_variables_become_constants_and_the_graph_stays_as_it_is(graph: Graph) -> None:
    raw_ops.AddV2(x=read(variable("v")), y=read(variable("w")), name="y")
    raw_ops.AssignVariableOp(resource=variable("other"), value=1.0)
    before = graph.as_graph_def()
    reading = part(graph)
    assert sorted(op.name for op in reading.variables) == ["v", "w"]
    assert reading.kept == set()
    made = frozen(reading)
    assert types(made) == {"Const", "Identity", "AddV2"}
    with Session(made) as session:
        assert session.run("y:0") == 8
    assert graph.as_graph_def() == before


def test_variables_that_are_assigned_to_are_kept(graph: Graph) -> None:
    v, w = variable("v"), variable("w")
    raw_ops.AssignAddVariableOp(resource=v, value=read(w), name="up")
    with graph.control_dependencies([graph.get_operation_by_name("up")]):
        raw_ops.AddV2(x=read(v), y=read(w), name="y")
    reading = part(graph)
    assert (reading.kept, [op.name for op in reading.variables]) == ({"v"}, ["w"])
    made = frozen(reading)
    assert types(made) == {
        "AddV2", "AssignAddVariableOp", "Const", "Identity", "ReadVariableOp", "VarHandleOp"
    }  # fmt: skip
    assert made.get_operation_by_name("v").type == "VarHandleOp"
    assert made.get_operation_by_name("w").type == "Const"


def test_so_is_a_variable_of_the_same_name_under_another_node(graph: Graph) -> None:
    same = raw_ops.VarHandleOp(dtype=FLOAT, shape=[], shared_name="v", name="same")
    raw_ops.AssignVariableOp(resource=same, value=1.0, name="set")
    with graph.control_dependencies([graph.get_operation_by_name("set")]):
        raw_ops.Identity(input=read(variable("v")), name="y")
    reading = part(graph)
    assert (reading.kept, reading.variables) == ({"v"}, [])


STEP = function_def(
    "Step", ["v: resource"], ["y: float"],
    [
        node_def("one", "Const", dtype=FLOAT, value=tensor_to_proto(np.float32(1))),
        node_def("up", "AssignAddVariableOp", ["v", "one"], dtype=FLOAT),
        node_def("y", "ReadVariableOp", ["v", "^up"], dtype=FLOAT),
    ],
)  # fmt: skip


def call(graph: Graph, function: Any, *inputs: Any, name: str) -> Any:
    graph.function_library.add_function(function)
    attrs = {
        "f": func(function.signature.name),
        "Tin": [one.dtype for one in inputs],
        "Tout": [FLOAT],
    }
    return graph.create_op("StatefulPartitionedCall", list(inputs), attrs=attrs, name=name).outputs[
        0
    ]


def test_a_variable_that_a_function_assigns_to_is_kept(graph: Graph) -> None:
    stepped = call(graph, STEP, variable("v"), name="step")
    raw_ops.AddV2(x=stepped, y=read(variable("w")), name="y")
    reading = part(graph)
    assert (reading.kept, [op.name for op in reading.variables]) == ({"v"}, ["w"])
    assert frozen(reading).get_operation_by_name("v").type == "VarHandleOp"


def test_captured_handles_become_constants_too(graph: Graph) -> None:
    h = opkernel.placeholder(RESOURCE, [], name="h")
    raw_ops.Identity(input=read(h), name="y")
    opkernel.placeholder(RESOURCE, [], name="unused")
    reading = part(graph, h="h", unused="v")
    assert [op.name for op in reading.variables] == ["h"]
    assert set(reading.by_name) == {"h", "ReadVariableOp", "y"}
    with Session(frozen(reading)) as session:
        assert session.run("y:0") == 7


def test_captured_handles_that_are_assigned_to_are_kept(graph: Graph) -> None:
    h = opkernel.placeholder(RESOURCE, [], name="h")
    raw_ops.AssignVariableOp(resource=h, value=1.0, name="set")
    with graph.control_dependencies([graph.get_operation_by_name("set")]):
        raw_ops.AddV2(x=read(h), y=read(variable("v")), name="y")
    reading = part(graph, h="h")
    assert (reading.kept, [op.name for op in reading.variables]) == ({"h"}, ["v"])
    assert frozen(reading).get_operation_by_name("h").type == "Placeholder"


def test_what_is_fed_becomes_a_placeholder(graph: Graph) -> None:
    raw_ops.AddV2(x=raw_ops.Neg(x=read(variable("v")), name="fed"), y=read(variable("w")), name="y")
    made = frozen(part(graph, feeds=["fed:0"]))
    assert made.get_operation_by_name("fed").type == "Placeholder"
    assert "v" not in made.by_name


def test_a_handle_is_no_result(graph: Graph) -> None:
    variable("v")
    with pytest.raises(UnimplementedError, match="'v:0' is a handle"):
        part(graph, "v:0")


def test_one_of_several_outputs_is_no_feed(graph: Graph) -> None:
    raw_ops.Neg(x=raw_ops.Unique(x=[1, 1], name="u").idx, name="y")
    with pytest.raises(UnimplementedError, match="'u:1' is fed, and is one of several outputs"):
        part(graph, feeds=["u:1"])


def test_effects_are_refused(graph: Graph) -> None:
    noise = raw_ops.RandomUniform(shape=[2], dtype=FLOAT, name="noise")
    raw_ops.AddV2(x=noise, y=read(variable("v")), name="y")
    with pytest.raises(
        FailedPreconditionError, match=r"Node 'noise' \(RandomUniform\) has effects"
    ):
        frozen(part(graph))


def test_an_assignment_to_a_reference_is_an_effect(graph: Graph) -> None:
    ref = raw_ops.VariableV2(shape=[], dtype=FLOAT, shared_name="v", name="v")
    raw_ops.Assign(ref=ref, value=1.0, name="y")
    with pytest.raises(FailedPreconditionError, match="'y'"):
        frozen(part(graph))


def test_operations_that_only_watch_or_last_for_a_step_are_taken(graph: Graph) -> None:
    value = read(variable("v"))
    raw_ops.Assert(condition=True, data=[value], name="check")
    array = raw_ops.TensorArrayV3(size=1, dtype=FLOAT)
    flow = raw_ops.TensorArrayWriteV3(handle=array.handle, index=0, value=value, flow_in=array.flow)
    with graph.control_dependencies([graph.get_operation_by_name("check")]):
        raw_ops.TensorArrayReadV3(handle=array.handle, index=0, flow_in=flow, dtype=FLOAT, name="y")
    with Session(frozen(part(graph))) as session:
        assert session.run("y:0") == 3


def test_control_flow_and_functions_are_taken_for_what_is_in_them(graph: Graph) -> None:
    inner = function_def(
        "Twice", ["x: float"], ["y: float"], [node_def("y", "Add", ["x", "x"], T=FLOAT)]
    )
    twice = call(graph, inner, read(variable("v")), name="twice")
    switch = raw_ops.Switch(data=twice, pred=True)
    raw_ops.Merge(inputs=[switch.output_false, switch.output_true], name="y")
    with Session(frozen(part(graph))) as session:
        assert session.run("y:0") == 6


NOISY = function_def(
    "Noisy", ["x: float"], ["y: float"],
    [
        node_def("s", "Const", dtype=opkernel.int32, value=tensor_to_proto(np.zeros(0, np.int32))),
        node_def("noise", "RandomUniform", ["s"], T=opkernel.int32, dtype=FLOAT),
        node_def("y", "Add", ["x", "noise"], T=FLOAT),
    ],
)  # fmt: skip


def test_effects_in_functions_are_refused(graph: Graph) -> None:
    raw_ops.Identity(input=call(graph, NOISY, read(variable("v")), name="call"), name="y")
    with pytest.raises(FailedPreconditionError, match="'noise'"):
        frozen(part(graph))


def test_a_node_may_name_a_resource_that_is_only_looked_up(graph: Graph) -> None:
    table = raw_ops.HashTableV2(key_dtype=opkernel.int64, value_dtype=FLOAT, shared_name="t")
    raw_ops.LookupTableFindV2(
        table_handle=table, keys=np.int64(1), default_value=read(variable("v")), name="y"
    )
    assert "HashTableV2" in types(frozen(part(graph)))


def test_a_resource_within_a_function_may_not(graph: Graph) -> None:
    """The function might be called anywhere."""
    function = function_def(
        "Sized", ["x: float"], ["y: float"],
        [
            node_def("t", "HashTableV2", key_dtype=opkernel.int64, value_dtype=FLOAT, shared_name="t"),
            node_def("y", "Identity", ["x", "^t"], T=FLOAT),
        ],
    )  # fmt: skip
    raw_ops.Identity(input=call(graph, function, read(variable("v")), name="call"), name="y")
    with pytest.raises(FailedPreconditionError, match=r"'t' \(HashTableV2\)"):
        frozen(part(graph))
