"""Handles of variables through the ops that pass them on, and the ops that read them."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, freeze_function, freeze_graph, raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from opkernel.graph import func, function_def, graph_def, node_def
from opkernel.types import tensor_to_proto

FLOAT, INT, RESOURCE = opkernel.float32, opkernel.int32, opkernel.resource
W = np.array([[1, 2], [3, 4]], np.float32)


@pytest.fixture
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def handle(name: str = "w") -> Any:
    return raw_ops.VarHandleOp(dtype=FLOAT, shape=[2, 2], shared_name=name, name=name)


def read(resource: Any) -> Any:
    return raw_ops.ReadVariableOp(resource=resource, dtype=FLOAT)


def frozen(graph: Graph, **values: Any) -> Graph:
    found = freeze_graph(graph, "y", values={"w": W, **values})
    assert not any(op.type in ("VarHandleOp", "ReadVariableOp") for op in found)
    assert not any(RESOURCE in op.output_types for op in found)
    return found


def run(graph: Graph, feeds: Any = None) -> Any:
    with Session(graph) as session:
        return session.run("y:0", feeds or {}).tolist()


def test_identities_of_several_tensors(graph: Graph) -> None:
    number = opkernel.constant(3.0)
    passed = raw_ops.IdentityN(input=[number, handle(), handle("u")], name="all")
    raw_ops.AddN(
        inputs=[read(passed[1]), read(passed[2]), passed[0] * np.ones((2, 2), "f4")], name="y"
    )
    found = frozen(graph, u=10 * W)
    assert found.get_operation_by_name("all").get_attr("T") == [FLOAT] * 3
    assert run(found) == (11 * W + 3).tolist()


def test_the_branches_of_a_switch(graph: Graph) -> None:
    p = opkernel.placeholder(opkernel.bool, [], name="p")
    switch = raw_ops.Switch(data=handle(), pred=p)
    no, yes = raw_ops.Identity(input=switch[0]), raw_ops.Identity(input=switch[1])
    merged = raw_ops.Merge(inputs=[no, yes], name="merged")
    raw_ops.Identity(input=read(merged.output), name="y")
    found = frozen(graph)
    assert found.get_operation_by_name("merged").get_attr("T") is FLOAT
    assert run(found, {"p:0": True}) == run(found, {"p:0": False}) == W.tolist()


def test_branches_of_two_variables(graph: Graph) -> None:
    p = opkernel.placeholder(opkernel.bool, [], name="p")
    first = raw_ops.Switch(data=handle(), pred=p)[0]
    second = raw_ops.Switch(data=handle("u"), pred=p)[1]
    raw_ops.Identity(input=read(raw_ops.Merge(inputs=[first, second]).output), name="y")
    found = frozen(graph, u=10 * W)
    assert (run(found, {"p:0": False}), run(found, {"p:0": True})) == (
        W.tolist(),
        (10 * W).tolist(),
    )


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda v: raw_ops.VariableShape(input=v, out_type=opkernel.int64, name="y"), [2, 2]),
        (lambda v: raw_ops.ResourceGather(resource=v, indices=[1], dtype=FLOAT, name="y"), [[3, 4]]),
        (lambda v: raw_ops.ResourceGather(resource=v, indices=[[1], [0]], dtype=FLOAT, batch_dims=1,
                                          name="y"), [[2], [3]]),
        (lambda v: raw_ops.ResourceGatherNd(resource=v, indices=[[1, 0]], dtype=FLOAT, name="y"), [3]),
        (lambda v: raw_ops.VarIsInitializedOp(resource=v, name="y"), True),
    ],
    ids=["shape", "rows", "of each row", "elements", "whether there is one"],
)  # fmt: skip
def test_ops_that_read_a_variable(graph: Graph, make: Any, expected: Any) -> None:
    make(handle())
    found = frozen(graph)
    assert run(found) == expected
    if found.get_operation_by_name("y").type == "Shape":
        assert found.get_tensor_by_name("y:0").dtype is opkernel.int64


def test_a_function_that_is_called_by_its_name(graph: Graph) -> None:
    body = [node_def("r", "ReadVariableOp", ["v"], dtype="$T"), node_def("y", "Neg", ["r"], T="$T")]
    negative = function_def("Negative", ["v: resource"], ["y: T"], body, attrs=["T: type"])
    nodes = [
        node_def("w", "VarHandleOp", dtype=FLOAT, shape=opkernel.TensorShape([2, 2])),
        node_def("call", "Negative", ["w"], T=FLOAT),
        node_def("y", "Identity", ["call"], T=FLOAT),
    ]
    opkernel.import_graph_def(graph_def(nodes, [negative]), name="")
    found = frozen(graph)
    assert dict(found.get_operation_by_name("call").node_def.attr) == {}
    assert run(found) == (-W).tolist()


def test_a_call_that_does_not_fit_its_function_is_refused(graph: Graph) -> None:
    body = [node_def("y", "ReadVariableOp", ["v"], dtype=FLOAT)]
    function = function_def("Read", ["v: resource", "x: float"], ["y: float"], body)
    graph.function_library.add_function(function)
    attrs = {"f": func("Read"), "Tin": [RESOURCE, INT], "Tout": [FLOAT]}
    graph.create_op("StatefulPartitionedCall", [handle(), np.int32(1)], name="y", attrs=attrs)
    with pytest.raises(InvalidArgumentError, match="takes float as tensor 1, the call gives int32"):
        frozen(graph)


def test_a_variable_of_a_function_that_is_only_named_is_refused(graph: Graph) -> None:
    body = [
        node_def("v", "VarHandleOp", dtype=FLOAT, shape=opkernel.TensorShape([]), shared_name="v"),
        node_def("r", "ReadVariableOp", ["v"], dtype=FLOAT),
        node_def("y", "Add", ["x", "r"], T=FLOAT),
    ]
    graph.function_library.add_function(function_def("Plus", ["x: float"], ["y: float"], body))
    attrs = {"f": func("Plus"), "Tin": [FLOAT, FLOAT], "Tout": [FLOAT]}
    x = opkernel.constant(1.0)
    graph.create_op("SymbolicGradient", [x, x], name="y", attrs=attrs)
    with pytest.raises(UnimplementedError, match=r"Variable 'v' of function 'Plus' cannot become"):
        freeze_graph(graph, "y", values={"v": np.float32(1)})


def test_a_table_that_a_function_initialises_is_kept(graph: Graph) -> None:
    table = raw_ops.HashTableV2(
        key_dtype=opkernel.int64, value_dtype=FLOAT, shared_name="t", name="t"
    )
    body = [
        node_def("k", "Const", dtype=opkernel.int64, value=tensor_to_proto(np.array([1]))),
        node_def("f", "Const", dtype=FLOAT, value=tensor_to_proto(np.array([5], "f4"))),
        node_def("fill", "LookupTableImportV2", ["t", "k", "f"], Tin=opkernel.int64, Tout=FLOAT),
    ]
    other = function_def("Other", ["t: resource"], [], [])
    for function in (
        function_def("FillTable", ["t: resource"], [], body, control_ret={"done": "fill"}),
        other,
    ):
        graph.function_library.add_function(function)
        attrs = {"f": func(function.signature.name), "Tin": [RESOURCE], "Tout": []}
        graph.create_op(
            "StatefulPartitionedCall", [table], name=function.signature.name, attrs=attrs
        )
    raw_ops.LookupTableFindV2(
        table_handle=table, keys=np.int64(1), default_value=np.float32(0), name="y"
    )
    found = freeze_graph(graph, "y")
    assert [op.name for op in found.get_collection("table_initializer")] == ["FillTable"]
    with Session(found) as session:
        session.run("FillTable")
        assert session.run("y:0") == 5


def test_only_the_tables_that_are_needed_are_initialised(graph: Graph) -> None:
    for name in ("t", "u"):
        table = raw_ops.HashTableV2(key_dtype=opkernel.int64, value_dtype=FLOAT, shared_name=name)
        raw_ops.LookupTableImportV2(
            table_handle=table, keys=np.array([1]), values=np.array([5], "f4"), name=f"fill_{name}"
        )
    same = raw_ops.HashTableV2(key_dtype=opkernel.int64, value_dtype=FLOAT, shared_name="t")
    raw_ops.LookupTableFindV2(
        table_handle=same, keys=np.int64(1), default_value=np.float32(0), name="y"
    )
    found = freeze_graph(graph, "y")
    assert [op.name for op in found.get_collection("table_initializer")] == ["fill_t"]
    assert "fill_u" not in found.by_name


def test_nodes_stay_where_they_were_placed(graph: Graph) -> None:
    y = raw_ops.Identity(input=read(handle()), name="y")
    graph.assigned_devices[y.op] = "/job:a/device:CPU:1"
    graph.assigned_devices[graph.create_op("NoOp")] = "/job:b"
    found = frozen(graph)
    assert found.assigned_devices == {found.get_operation_by_name("y"): "/job:a/device:CPU:1"}


def test_functions_are_frozen_with_the_values_that_variables_have_then() -> None:
    weights = opkernel.Variable(W, name="weights")
    scale = opkernel.Variable(np.float32(2), name="scale")

    @opkernel.function
    def product(x: Any) -> Any:
        return x @ weights * scale

    traced = product.get_concrete_function(opkernel.TensorSpec([None, 2], FLOAT, "x"))
    scale.assign(3)
    found = freeze_function(traced)
    scale.assign(4)
    x = np.array([[1, -1]], np.float32)
    with Session(found) as session:
        got = session.run(traced.outputs[0].name, {traced.inputs[0].name: x})
    np.testing.assert_array_equal(got, x @ W * 3)
    assert not any(op.type == "VarHandleOp" for op in found)


def test_functions_that_change_a_variable_are_not() -> None:
    count = opkernel.Variable(np.float32(0), name="count")

    @opkernel.function
    def step() -> Any:
        count.assign_add(1)
        return count + 0

    with pytest.raises(FailedPreconditionError, match="'count' cannot become a constant"):
        freeze_function(step.get_concrete_function())
