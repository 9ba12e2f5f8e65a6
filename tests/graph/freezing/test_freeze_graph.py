"""freeze_graph: values in the place of handles, through functions, conditionals and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, freeze_graph, raw_ops
from opkernel.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from opkernel.graph import GraphImporter, ImportOptions, func, function_def, graph_def, node_def

FLOAT, INT = opkernel.float32, opkernel.int32
W = np.array([[1, 2], [3, 4]], np.float32)
X = np.array([[1, -1]], np.float32)


def handle(name: str = "w", shape: Any = (2, 2), dtype: Any = FLOAT) -> Any:
    return raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=name, name=name)


def read(resource: Any, dtype: Any = FLOAT) -> Any:
    return raw_ops.ReadVariableOp(resource=resource, dtype=dtype)


def run(graph: Graph, feeds: dict[str, Any] | None = None, fetch: str = "y:0") -> Any:
    """Run a graph that has been written to a message and read again."""
    reread = Graph()
    opkernel.import_graph_def(graph.as_graph_def(), graph=reread, name="")
    with Session(reread) as session:
        return session.run(fetch, feeds or {})


def nodes_of(graph: Graph) -> list[Any]:
    message = graph.as_graph_def()
    return [*message.node, *(n for one in message.library.function for n in one.node_def)]


def imported(nodes: list[Any], functions: list[Any]) -> Graph:
    graph = Graph()
    opkernel.import_graph_def(graph_def(nodes, functions), graph=graph, name="")
    return graph


READ = function_def(
    "Read", ["v: resource"], ["y: T"], [node_def("y", "ReadVariableOp", ["v"], dtype="$T")],
    attrs=["T: type"],
)  # fmt: skip


def test_a_function_called_with_variables_of_two_types_becomes_two() -> None:
    graph = Graph()
    with graph.as_default():
        graph.function_library.add_function(READ)
        for name, dtype in (("w", FLOAT), ("n", INT), ("m", INT)):
            graph.create_op(
                "StatefulPartitionedCall", [handle(name, [], dtype)], name=f"read_{name}",
                attrs={"f": func("Read", T=dtype), "Tin": [opkernel.resource], "Tout": [dtype]},
            )  # fmt: skip
    frozen = freeze_graph(
        graph, ["read_w", "read_n", "read_m"], values={"w": np.float32(1.5), "n": 2, "m": 3}
    )
    assert [run(frozen, fetch=f"read_{name}:0") for name in "wnm"] == [1.5, 2, 3]
    assert sorted(frozen.function_library) == ["Read_frozen", "Read_frozen_1"]
    assert not any(function.signature.is_stateful for function in frozen.function_library.values())
    assert [op.type for op in frozen if op.name.startswith("read")] == ["PartitionedCall"] * 3
    assert sorted(graph.function_library) == ["Read"]


def test_values_are_found_by_shared_name_or_by_the_name_of_the_node() -> None:
    graph = Graph()
    with graph.as_default():
        v = raw_ops.VarHandleOp(dtype=FLOAT, shape=[], shared_name="shared", name="node")
        raw_ops.Identity(input=read(v), name="y")
    for name in ("shared", "node", "shared:0"):
        assert run(freeze_graph(graph, "y", values={name: np.float32(7)})) == 7


def test_a_variable_in_a_function_is_frozen_there() -> None:
    body = [
        node_def("v", "VarHandleOp", dtype=FLOAT, shape=opkernel.TensorShape([2]), shared_name="w"),
        node_def("y", "ReadVariableOp", ["v"], dtype=FLOAT),
    ]
    inner = function_def("Inner", [], ["y: float"], body)
    outer = function_def("Outer", [], ["y: float"], [node_def("y", "Inner")], ret={"y": "y:y:0"})
    unused = function_def("Unused", [], ["y: float"], body)
    graph = imported([node_def("y", "Outer")], [inner, outer, unused])
    frozen = freeze_graph(graph, "y", values={"w": np.array([4, 5], np.float32)})
    assert run(frozen).tolist() == [4, 5]
    assert sorted(frozen.function_library) == ["Inner_frozen", "Outer_frozen"]


def test_a_function_that_calls_itself() -> None:
    """f(v, n) = v if n < 1 else v * f(v, n - 1)."""
    stop = function_def(
        "Stop", ["v: resource", "n: int32"], ["y: float"],
        [node_def("y", "ReadVariableOp", ["v"], dtype=FLOAT)],
    )  # fmt: skip
    types: dict[str, Any] = {"Tin": [opkernel.resource, INT], "Tout": [FLOAT]}
    go = function_def(
        "Go", ["v: resource", "n: int32"], ["y: float"],
        [
            node_def("one", "Const", dtype=INT, value=opkernel.types.tensor_to_proto(1)),
            node_def("less", "Sub", ["n", "one"], T=INT),
            node_def("rest", "StatefulPartitionedCall", ["v", "less"], f=func("Power"), **types),
            node_def("read", "ReadVariableOp", ["v"], dtype=FLOAT),
            node_def("y", "Mul", ["read", "rest"], T=FLOAT),
        ],
    )  # fmt: skip
    power = function_def(
        "Power", ["v: resource", "n: int32"], ["y: float"],
        [
            node_def("one", "Const", dtype=INT, value=opkernel.types.tensor_to_proto(1)),
            node_def("goes", "GreaterEqual", ["n", "one"], T=INT),
            node_def("y", "If", ["goes", "v", "n"], Tcond=opkernel.bool, then_branch=func("Go"),
                     else_branch=func("Stop"), **types),
        ],
    )  # fmt: skip
    nodes = [
        node_def("v", "VarHandleOp", dtype=FLOAT, shape=opkernel.TensorShape([])),
        node_def("n", "Placeholder", dtype=INT),
        node_def("y", "StatefulPartitionedCall", ["v", "n"], f=func("Power"), **types),
    ]
    frozen = freeze_graph(imported(nodes, [stop, go, power]), "y", values={"v": np.float32(3)})
    assert run(frozen, {"n:0": 3}) == 81
    assert {node.op for node in nodes_of(frozen)}.isdisjoint({"If", "ReadVariableOp"})


RESOURCE = opkernel.resource
CHOICES = [
    function_def(name, ["a: resource", "b: resource"], ["y: resource"], [], ret={"y": result})
    for name, result in (("First", "a"), ("Second", "b"))
]


def choice(second: Any) -> Graph:
    """A conditional that gives the handle of one of two nodes, which is read then."""
    nodes = [
        node_def("a", "VarHandleOp", dtype=FLOAT, shape=opkernel.TensorShape([2])),
        second,
        node_def("which", "Placeholder", dtype=opkernel.bool),
        node_def(
            "chosen", "If", ["which", "a", "b"], Tcond=opkernel.bool, Tin=[RESOURCE] * 2,
            Tout=[RESOURCE], then_branch=func("First"), else_branch=func("Second"),
        ),
        node_def("y", "ReadVariableOp", ["chosen"], dtype=FLOAT),
    ]  # fmt: skip
    return imported(nodes, CHOICES)


def test_a_conditional_may_choose_the_variable() -> None:
    graph = choice(node_def("b", "VarHandleOp", dtype=FLOAT, shape=opkernel.TensorShape([1])))
    frozen = freeze_graph(
        graph, "y", values={"a": np.array([1, 2], np.float32), "b": np.array([3], np.float32)}
    )
    assert run(frozen, {"which:0": True}).tolist() == [1, 2]
    assert run(frozen, {"which:0": False}).tolist() == [3]


@pytest.mark.parametrize(
    "second",
    [
        node_def("b", "VarHandleOp", dtype=INT, shape=opkernel.TensorShape([])),
        node_def("b", "MutableHashTableV2", key_dtype=INT, value_dtype=INT),
    ],
    ids=["variable of another type", "no variable"],
)
def test_a_handle_that_may_be_something_else_is_refused(second: Any) -> None:
    with pytest.raises(UnimplementedError, match=r"'a' cannot .*'chosen' \(If\)"):
        freeze_graph(choice(second), "y", values={"a": np.array([1, 2], np.float32), "b": 3})


def captured_loop() -> Graph:
    """y = w ** 3 @ x, in a While that carries the handle of a captured w."""
    graph = Graph()
    with graph.as_default():
        w = graph.create_op("Placeholder", name="123", attrs={"dtype": RESOURCE}).outputs[0]
        x = opkernel.placeholder(FLOAT, [None, 2], name="x")
        types = [INT, RESOURCE, FLOAT]
        cond = function_def(
            "Cond", ["i: int32", "w: resource", "x: float"], ["y: bool"],
            [node_def("end", "Const", dtype=INT, value=opkernel.types.tensor_to_proto(3)),
             node_def("y", "Less", ["i", "end"], T=INT)],
        )  # fmt: skip
        body = function_def(
            "Body", ["i: int32", "w: resource", "x: float"],
            ["next: int32", "same: resource", "z: float"],
            [node_def("one", "Const", dtype=INT, value=opkernel.types.tensor_to_proto(1)),
             node_def("next", "AddV2", ["i", "one"], T=INT),
             node_def("same", "Identity", ["w"], T=RESOURCE),
             node_def("read", "ReadVariableOp", ["w"], dtype=FLOAT),
             node_def("z", "MatMul", ["x", "read"], T=FLOAT)],
        )  # fmt: skip
        for function in (cond, body):
            graph.function_library.add_function(function)
        loop = graph.create_op(
            "While", [opkernel.constant(0), w, x], name="loop",
            attrs={"T": types, "cond": func("Cond"), "body": func("Body"),
                   "output_shapes": [[], [], [None, 2]]},
        )  # fmt: skip
        raw_ops.Identity(input=loop.outputs[2], name="y")
    return graph


def test_a_loop_carries_the_value_of_a_captured_handle() -> None:
    frozen = freeze_graph(captured_loop(), "y:0", captured={"123": W})
    np.testing.assert_array_equal(run(frozen, {"x:0": X}), X @ W @ W @ W)
    assert frozen.get_operation_by_name("123").type == "Const"
    loop = frozen.get_operation_by_name("loop")
    assert loop.type == "StatelessWhile"
    assert loop.get_attr("T") == [INT, FLOAT, FLOAT]
    assert [[dim.size for dim in shape.dim] for shape in loop.get_attr("output_shapes")] == [
        [], [2, 2], [-1, 2]
    ]  # fmt: skip


def test_captured_tensors_become_constants_too() -> None:
    with Graph().as_default() as graph:
        x = opkernel.placeholder(FLOAT, [None, 2], name="x")
        raw_ops.Mul(x=x, y=opkernel.placeholder(FLOAT, [2], name="scale"), name="y")
    frozen = freeze_graph(graph, "y", captured={"scale:0": [2, 3]})
    assert run(frozen, {"x:0": X}).tolist() == [[2, -3]]


def test_variables_that_a_traced_function_captures() -> None:
    weights = opkernel.Variable(W, name="weights")

    @opkernel.function
    def turn(x: Any) -> Any:
        largest = raw_ops.Max(input=x, axis=[0, 1])
        return opkernel.cond(largest > 0, lambda: x @ weights, lambda: -x)

    traced = turn.get_concrete_function(opkernel.TensorSpec([None, 2], FLOAT, "x"))
    frozen = freeze_graph(traced.graph, traced.outputs, captured={"weights": W})
    weights.assign(-W)
    (output,) = traced.outputs
    np.testing.assert_array_equal(run(frozen, {"x:0": X}, output.name), X @ W)
    np.testing.assert_array_equal(run(frozen, {"x:0": -X * X}, output.name), X * X)


def test_a_captured_handle_without_value_is_told() -> None:
    graph = captured_loop()
    with pytest.raises(FailedPreconditionError, match="'123' of a handle has no value"):
        freeze_graph(graph, "y")
    with pytest.raises(NotFoundError, match="no placeholder '12'"):
        freeze_graph(graph, "y", captured={"12": W})
    assert freeze_graph(graph, "y", ["123:0"]).get_operation_by_name("loop").type == "While"


def variable() -> Graph:
    with Graph().as_default() as graph:
        raw_ops.Identity(input=read(handle("weights")), name="y")
    return graph


def test_values_that_are_missing_or_do_not_fit_are_told() -> None:
    with pytest.raises(FailedPreconditionError, match=r"'weights' .*no value.*perhaps.*weight"):
        freeze_graph(variable(), "y", values={"weight": W})
    with pytest.raises(InvalidArgumentError, match=r"'weights' has the shape \[2,2\].*\[3\]"):
        freeze_graph(variable(), "y", values={"weights": np.ones(3, np.float32)})
    with pytest.raises(InvalidArgumentError, match="float"):
        freeze_graph(variable(), "y", values={"weights": np.ones((2, 2), np.int64)})


def test_an_assignment_in_a_function_is_refused() -> None:
    step = function_def(
        "Step", ["v: resource"], ["y: float"],
        [node_def("y", "ReadVariableOp", ["v"], dtype=FLOAT),
         node_def("assign", "AssignVariableOp", ["v", "y"], dtype=FLOAT)],
    )  # fmt: skip
    types: dict[str, Any] = {"Tin": [RESOURCE], "Tout": [FLOAT]}
    nodes = [
        node_def("w", "VarHandleOp", dtype=FLOAT, shape=opkernel.TensorShape([])),
        node_def("y", "StatefulPartitionedCall", ["w"], f=func("Step"), **types),
    ]
    with pytest.raises(
        FailedPreconditionError, match=r"'w' cannot .*'assign' \(AssignVariableOp\)"
    ):
        freeze_graph(imported(nodes, [step]), "y", values={"w": np.float32(1)})


def test_a_function_that_is_not_simply_called_is_refused() -> None:
    graph = imported(
        [
            node_def("w", "VarHandleOp", dtype=FLOAT, shape=opkernel.TensorShape([])),
            node_def("y", "SymbolicGradient", ["w"], Tin=[RESOURCE], Tout=[FLOAT], f=func("Read", T=FLOAT)),
        ],
        [READ],
    )  # fmt: skip
    with pytest.raises(FailedPreconditionError, match=r"'w' cannot .*'y' \(SymbolicGradient\)"):
        freeze_graph(graph, "y", values={"w": np.float32(1)})


def table() -> Graph:
    with Graph().as_default() as graph:
        keys = opkernel.placeholder(opkernel.string, [None], name="keys")
        words = raw_ops.HashTableV2(
            key_dtype=opkernel.string, value_dtype=opkernel.int64, shared_name="t", name="table"
        )
        raw_ops.LookupTableImportV2(
            table_handle=words, keys=["a", "b"], values=np.array([5, 6]), name="fill"
        )
        found = raw_ops.LookupTableFindV2(
            table_handle=words, keys=keys, default_value=np.int64(-1), name="found"
        )
        n = read(handle("n", [], opkernel.int64), opkernel.int64)
        raw_ops.Mul(x=found, y=n, name="y")
    return graph


def test_tables_are_kept_with_what_initialises_them() -> None:
    frozen = freeze_graph(table(), "y", values={"n": np.int64(10)})
    assert [op.name for op in frozen.get_collection("table_initializer")] == ["fill"]
    with Session(frozen) as session:
        session.run("fill")
        assert session.run("y:0", {"keys:0": ["b", "c"]}).tolist() == [60, -10]


def test_a_table_that_nothing_initialises_is_refused() -> None:
    graph = table()
    with graph.edit() as edit:
        edit.remove("fill")
    with pytest.raises(FailedPreconditionError, match=r"'table' \(HashTableV2\) cannot be kept"):
        freeze_graph(graph, "y", values={"n": np.int64(10)})
    frozen = freeze_graph(graph, "y", "found:0", values={"n": np.int64(10)})
    assert run(frozen, {"found:0": [3]}).tolist() == [30]


def test_whether_a_variable_is_initialised_is_known() -> None:
    with Graph().as_default() as graph:
        raw_ops.VarIsInitializedOp(resource=handle(), name="y")
    assert run(freeze_graph(graph, "y", values={"w": W}))


def test_names_that_gathering_adds_are_free() -> None:
    with Graph().as_default() as graph:
        rows = raw_ops.ResourceGather(resource=handle(), indices=[1], dtype=FLOAT, name="rows")
        axis = opkernel.placeholder(FLOAT, [], name="rows/axis")
        raw_ops.Mul(x=rows, y=axis, name="y")
    frozen = freeze_graph(graph, "y", values={"w": W})
    assert run(frozen, {"rows/axis:0": 2}).tolist() == [[6, 8]]


def test_a_captured_value_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="Input 0 of node read was passed int64"):
        freeze_graph(captured_loop(), "y", captured={"123": W.astype(np.int64)})


def test_an_output_that_is_an_input_needs_no_table() -> None:
    graph = table()
    with graph.edit() as edit:
        edit.remove("fill")
    assert [op.name for op in freeze_graph(graph, "found:0", "found:0")] == ["found"]


def test_a_function_may_give_the_value_of_its_reference_variable() -> None:
    body = [node_def("v", "VariableV2", dtype=FLOAT, shape=opkernel.TensorShape([]))]
    function = function_def("Give", [], ["y: float"], body, ret={"y": "v:ref:0"})
    frozen = freeze_graph(imported([node_def("y", "Give")], [function]), "y", values={"v": 4.0})
    assert run(frozen) == 4


def test_an_unknown_op_that_takes_a_handle_is_refused() -> None:
    nodes = [
        node_def("w", "VarHandleOp", dtype=FLOAT, shape=opkernel.TensorShape([])),
        node_def("y", "NoSuchOp", ["w"]),
    ]
    graph = Graph()
    importer = GraphImporter(graph, graph_def(nodes), ImportOptions(allow_unregistered=True))
    importer.prepare()
    importer.commit()
    with pytest.raises(FailedPreconditionError, match=r"'w' cannot .*'y' \(NoSuchOp\)"):
        freeze_graph(graph, "y", values={"w": 1.0})


def test_many_handles_through_functions_in_functions_are_followed_together() -> None:
    count, depth = 300, 3
    args = [f"v{i}: resource" for i in range(count)]
    names = [f"v{i}" for i in range(count)]
    types: dict[str, Any] = {"Tin": [opkernel.resource] * count, "Tout": [FLOAT]}
    reads = [node_def(f"r{i}", "ReadVariableOp", [f"v{i}"], dtype=FLOAT) for i in range(count)]
    total = node_def("y", "AddN", [f"r{i}:value:0" for i in range(count)], N=count, T=FLOAT)
    functions = [function_def("F0", args, ["y: float"], [*reads, total], ret={"y": "y:sum:0"})]
    for level in range(1, depth):
        inner = func(f"F{level - 1}")
        call = node_def("y", "StatefulPartitionedCall", names, f=inner, **types)
        functions.append(
            function_def(f"F{level}", args, ["y: float"], [call], ret={"y": "y:output:0"})
        )
    handles = [
        node_def(name, "VarHandleOp", dtype=FLOAT, shape=opkernel.TensorShape([]), shared_name=name)
        for name in names
    ]
    call = node_def("y", "StatefulPartitionedCall", names, f=func(f"F{depth - 1}"), **types)
    graph = imported([*handles, call], functions)
    frozen = freeze_graph(graph, "y:0", values={name: np.float32(1) for name in names})
    assert run(frozen) == count


@pytest.mark.parametrize("op", ["Variable", "VariableV2", "VarHandleOp"])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_only_a_scalar_of_the_first_variable_op_takes_a_value_of_any_shape(
    op: str, shape: tuple[int, ...]
) -> None:
    """Variable has no other way to declare an unknown shape; the later ops have one."""
    value = np.array([1, 2, 3], np.float32)
    with Graph().as_default() as graph:
        variable = getattr(raw_ops, op)(shape=shape, dtype=FLOAT, shared_name="w", name="w")
        tensor = read(variable) if op == "VarHandleOp" else variable
        raw_ops.Identity(input=tensor, name="y")
    if op == "Variable" and shape == ():
        assert run(freeze_graph(graph, "y", values={"w": value})).tolist() == [1, 2, 3]
        return
    with pytest.raises(InvalidArgumentError, match=r"'w' has the shape .*\[3\]"):
        freeze_graph(graph, "y", values={"w": value})
