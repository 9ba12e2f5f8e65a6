"""Editing graphs: what each change does, what is refused, and that a block is made whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.graph.builders import REGISTRY

import opkernel
from opkernel import raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, OpError
from opkernel.graph import Graph, GraphEdit, Operation, Tensor, import_graph_def
from opkernel.proto import AttrValue
from opkernel.types import float32, int32


def chain() -> Graph:
    """x -> double -> plus -> y, with the constants two and one."""
    graph = Graph()
    with graph.as_default():
        x = opkernel.placeholder(float32, [None], name="x")
        two = opkernel.constant(2.0, name="two")
        double = raw_ops.Mul(x=x, y=two, name="double")
        one = opkernel.constant(1.0, name="one")
        raw_ops.Identity(input=raw_ops.AddV2(x=double, y=one, name="plus"), name="y")
    return graph


def counting() -> tuple[Graph, Operation]:
    """y, which passes x on once a variable was counted up; the operation that counts."""
    graph = Graph()
    with graph.as_default():
        x = opkernel.placeholder(float32, [], name="x")
        counter = raw_ops.VarHandleOp(
            dtype=float32, shape=[], shared_name="counter", name="counter"
        )
        zero = opkernel.constant(0.0, name="zero")
        raw_ops.AssignVariableOp(resource=counter, value=zero, name="start")
        raw_ops.ReadVariableOp(resource=counter, dtype=float32, name="count")
        count = raw_ops.AssignAddVariableOp(resource=counter, value=1.0, name="up")
        with graph.control_dependencies([count]):
            passed = raw_ops.Identity(input=x, name="passed")
        raw_ops.Neg(x=passed, name="y")
    assert count is not None
    return graph, count


def times_run(graph: Graph, fetch: str = "y:0") -> float:
    """How often the variable is counted up in three steps."""
    with opkernel.Session(graph) as session:
        session.run("start")
        for _ in range(3):
            session.run(fetch, {"x:0": 1.0})
        return float(session.run("count:0"))


def y_of(graph: Graph, x: Any = (1.0, 2.0)) -> list[float]:
    with opkernel.Session(graph) as session:
        return session.run("y:0", {"x:0": np.array(x, np.float32)}).tolist()


class TestEdges:
    def test_replace_has_all_take_another_tensor(self) -> None:
        graph = chain()
        with graph.edit() as edit:
            edit.replace("two:0", edit.constant(np.float32(10), name="ten"))
        assert y_of(graph) == [11.0, 21.0]

    def test_redirect_may_pick_consumers(self) -> None:
        graph = chain()
        with graph.edit() as edit:
            took = edit.redirect("two:0", "one:0", consumers=["double"])
        assert [op.name for op in took] == ["double"]
        assert y_of(graph) == [2.0, 3.0]

    @pytest.mark.parametrize("bypass", ["replace", "remove"])
    def test_what_is_bypassed_hands_its_control_inputs_on(self, bypass: str) -> None:
        graph, _ = counting()
        with graph.edit() as edit:
            edit.replace("passed:0", "x:0")
            if bypass == "remove":
                edit.remove("passed")
        assert [op.name for op in graph.get_operation_by_name("y").control_inputs] == ["up"]
        assert times_run(graph) == 3.0

    def test_those_who_wait_may_wait_for_others(self) -> None:
        graph, count = counting()
        with graph.edit() as edit:
            edit.redirect_control(count, edit.add("NoOp", name="nothing"))
        assert [op.name for op in graph.get_operation_by_name("passed").control_inputs] == [
            "nothing"
        ]
        assert times_run(graph) == 0.0

    @pytest.mark.parametrize("consumers", [None, ["plus"]])
    @pytest.mark.parametrize("make", ["Square", lambda t: raw_ops.Square(x=t)])
    def test_insert_after_a_tensor_and_before_some_of_its_consumers(
        self, make: Any, consumers: list[str] | None
    ) -> None:
        graph = chain()
        with graph.as_default():
            other = raw_ops.Neg(x=graph.get_tensor_by_name("double:0"), name="other")
        with graph.edit() as edit:
            new = edit.insert("double:0", make, consumers)
        assert y_of(graph) == [5.0, 17.0]
        assert other.op.inputs[0].op.name == ("double" if consumers else new.op.name)

    def test_what_a_function_inserts_may_take_the_tensor_several_times(self) -> None:
        graph = chain()
        with graph.edit() as edit:
            edit.insert("double:0", lambda t: t * t + t)
        assert y_of(graph) == [7.0, 21.0]

    def test_a_tensor_may_be_replaced_by_what_takes_it(self) -> None:
        graph = chain()
        with graph.edit() as edit:
            edit.redirect(
                "double:0", edit.add("Neg", [graph.get_tensor_by_name("double:0")]).outputs[0]
            )
        assert y_of(graph) == [-1.0, -3.0]


class TestOperations:
    def test_attrs_of_new_ones_follow_from_inputs(self) -> None:
        graph = chain()
        with graph.edit() as edit:
            x = graph.get_tensor_by_name("x:0")
            packed = edit.add("Pack", [x, x, x], "y")
        assert packed.name == "y_1"
        assert (packed.get_attr("N"), packed.get_attr("T"), packed.get_attr("axis")) == (
            3,
            float32,
            0,
        )

    def test_one_becomes_another_and_keeps_its_place(self) -> None:
        graph, _ = counting()
        with graph.edit() as edit:
            edit.become("passed", "Square", [graph.get_tensor_by_name("x:0")])
        passed = graph.get_operation_by_name("passed")
        assert passed.type == "Square"
        assert [op.name for op in passed.control_inputs] == ["up"]
        assert times_run(graph) == 3.0

    def test_one_becomes_another_of_the_same_inputs(self) -> None:
        graph = chain()
        with graph.edit() as edit:
            edit.become("plus", "Sub")
        y = opkernel.Session(graph).run("y:0", {"x:0": [3.0]})
        np.testing.assert_array_equal(y, [5.0])

    def test_inputs_are_told_by_name(self) -> None:
        graph = chain()
        with graph.edit() as edit:
            edit.become("plus", "Maximum", ["double:0", "x:0"])
            edit.add("Neg", ["plus:0"], name="z", control_inputs=["two"])
        z = graph.get_operation_by_name("z")
        assert [op.name for op in z.control_inputs] == ["two"]
        found = opkernel.Session(graph).run(z.outputs[0], {"x:0": [-3.0]})
        np.testing.assert_array_equal(found, [3.0])

    def test_what_is_wrong_with_another_op_is_told(self) -> None:
        graph = chain()
        with graph.edit() as edit:
            with pytest.raises(NotFoundError, match=r"'Maximun' .*; perhaps you mean Maximum"):
                edit.become("plus", "Maximun")
            with pytest.raises(TypeError, match=r"a list of tensors, not 'x:0'; write \['x:0'\]"):
                edit.add("Neg", "x:0")
            with pytest.raises(NotFoundError, match="'xx', does not exist"):
                edit.become("plus", "Neg", ["xx:0"])

    def test_names_and_messages_of_what_was_renamed_agree(self) -> None:
        graph = chain()
        with graph.edit() as edit:
            edit.rename({"double": "y", "y": "double", "one": "a/b"})
        y, plus = graph.get_operation_by_name("y"), graph.get_operation_by_name("plus")
        assert (y.type, graph.get_operation_by_name("double").type) == ("Mul", "Identity")
        assert list(plus.node_def.input) == ["y", "a/b"]
        assert y.node_def.name == "y"
        assert y_of(graph) == [2.0, 4.0]

    def test_colocation_follows_new_names(self) -> None:
        graph = chain()
        with graph.as_default(), graph.colocate_with(graph.get_operation_by_name("one")):
            beside = graph.create_op("NoOp", name="beside")
        with graph.edit() as edit:
            edit.rename({"one": "two", "two": "one"})
        assert beside.colocation_groups() == [b"loc:@two"]

    def test_a_colocation_group_outlives_the_node_that_it_is_named_after(self) -> None:
        graph = chain()
        with graph.as_default(), graph.colocate_with(graph.get_operation_by_name("y")):
            first, second = (graph.create_op("NoOp") for _ in range(2))
        with graph.edit() as edit:
            edit.remove("y")
        assert first.colocation_groups() == second.colocation_groups() == [b"loc:@NoOp"]

    def test_what_was_removed_is_gone(self) -> None:
        graph = chain()
        plus = graph.get_operation_by_name("plus")
        with graph.edit() as edit:
            edit.replace("plus:0", "double:0")
            edit.remove(plus, "one")
            edit.add("NoOp", name="plus")
        assert [op.name for op in graph.get_operations()] == ["x", "two", "double", "y", "plus"]
        with pytest.raises(InvalidArgumentError, match="not an element of this graph"):
            graph.create_op("Neg", [plus.outputs[0]])
        with pytest.raises(InvalidArgumentError, match="not an element of this graph"):
            plus.add_control_input(graph.get_operation_by_name("x"))
        assert y_of(graph) == [2.0, 4.0]

    def test_who_waited_for_what_goes_waits_for_what_that_needed(self) -> None:
        graph, _ = counting()
        with graph.as_default():
            with graph.control_dependencies([graph.get_operation_by_name("passed")]):
                between = raw_ops.NoOp(name="between")
            with graph.control_dependencies([between]):
                opkernel.constant(1.0, name="last")
        with graph.edit() as edit:
            edit.redirect("passed:0", "x:0")
            edit.remove("between", "passed")
        last = graph.get_operation_by_name("last")
        assert {op.name for op in last.control_inputs} == {"up", "x"}
        assert times_run(graph, "last:0") == 3.0

    def test_names_of_new_nodes_stay_unique(self) -> None:
        graph = Graph(REGISTRY)
        ops = [graph.create_op("NoOp", name="a") for _ in range(3)]
        with graph.edit() as edit:
            edit.remove(*ops[:2])
            edit.rename({"a_2": "b"})
        names = [graph.create_op("NoOp", name=name).name for name in ("a", "b", "b", "a_2")]
        assert len({"b", *names}) == 5


class TestExtract:
    def test_a_part_between_tensors_computes_the_same(self) -> None:
        graph = chain()
        with graph.edit() as edit:
            part = edit.extract(["y:0"], ["double:0"])
        assert [op.name for op in part.get_operations()] == ["one", "double", "plus", "y"]
        with opkernel.Session(part) as session:
            assert session.run("y:0", {"double:0": [5.0]}).tolist() == [6.0]
        assert y_of(graph) == [3.0, 5.0]

    def test_only_functions_that_are_called_come_along(self) -> None:
        graph = Graph()
        square, negative = (
            opkernel.function(op, [opkernel.TensorSpec([], float32)])
            for op in (lambda x: x * x, lambda x: -x)
        )
        with graph.as_default():
            x = opkernel.placeholder(float32, [], name="x")
            y, z = square(x), negative(x)
        with graph.edit() as edit:
            part = edit.extract([y, z.op], [x])
            small = edit.extract([z])
        assert len(part.function_library) == 2
        assert len(small.function_library) == 1
        with opkernel.Session(small) as session:
            assert session.run(z.name, {"x:0": 3.0}) == -3.0

    def test_changes_of_a_part_leave_the_whole_alone(self) -> None:
        graph = chain()
        with graph.edit() as edit:
            part = edit.extract(["y"])
        one = part.get_operation_by_name("one")
        one.set_device("/cpu:0")
        part.infer_full_types()
        with part.edit() as edit:
            edit.rename({one: "uno"})
        assert graph.get_operation_by_name("one").node_def.device == ""
        assert list(graph.get_operation_by_name("plus").node_def.input) == ["double", "one"]
        assert not graph.get_operation_by_name("y").node_def.HasField("experimental_type")

    def test_what_waits_for_effects_brings_them_along(self) -> None:
        graph, _ = counting()
        with graph.edit() as edit:
            part = edit.extract(["y:0", "start", "count:0"], ["x:0"])
        assert times_run(part) == 3.0


REFUSED: dict[str, tuple[Callable[[GraphEdit], Any], type[OpError], str]] = {
    "cycle": (
        lambda e: e.redirect("x:0", "y:0"),
        InvalidArgumentError,
        r"in a cycle or behind one \('double', 'plus', 'y'\)",
    ),
    "cycle of waiting": (
        lambda e: e.graph.get_operation_by_name("two").add_control_input(
            e.graph.get_operation_by_name("plus")
        ),
        InvalidArgumentError,
        r"in a cycle or behind one \('two', 'double', 'plus'\)",
    ),
    "type": (
        lambda e: e.replace("two:0", e.constant(2)),
        InvalidArgumentError,
        "Input 1 of node double was passed int32 from Const:0 incompatible with expected float",
    ),
    "type of outputs": (
        lambda e: e.become("double", "Shape", [e.graph.get_tensor_by_name("x:0")]),
        InvalidArgumentError,
        "'double'.* cannot become a Shape: its outputs are of other types",
    ),
    "too many inputs": (
        lambda e: e.become("double", "Neg", [e.graph.get_tensor_by_name("x:0")] * 2, {"T": float32}),
        InvalidArgumentError,
        "do not match 2 inputs",
    ),
    "needed as the first input": (
        lambda e: e.remove("x", "double"),
        InvalidArgumentError,
        "'double' cannot be removed: node 'plus' takes it as input 0",
    ),
    "needed": (
        lambda e: e.remove("one", "two", "double"),
        InvalidArgumentError,
        "'one' cannot be removed: node 'plus' takes it as input 1",
    ),
    "foreign tensor": (
        lambda e: e.replace("two:0", chain().get_tensor_by_name("two:0")),
        InvalidArgumentError,
        "'two'.* not an element of this graph",
    ),
    "foreign operation": (
        lambda e: e.remove(chain().get_operation_by_name("y")),
        InvalidArgumentError,
        "'y'.* not an element of this graph",
    ),
    "foreign input": (
        lambda e: e.add("Neg", [chain().get_tensor_by_name("one:0")]),
        InvalidArgumentError,
        "'one'.* not an element of this graph",
    ),
    "name taken": (lambda e: e.rename({"one": "two"}), InvalidArgumentError, "Duplicate.*'two'"),
    "name twice": (
        lambda e: e.rename({"one": "n", "two": "n"}),
        InvalidArgumentError,
        "Duplicate.*'n'",
    ),
    "no name": (lambda e: e.rename({"one": "a b"}), InvalidArgumentError, "'a b' is not a valid"),
    "nobody": (lambda e: e.remove("none"), NotFoundError, "'none'"),
    "stranger": (
        lambda e: e.redirect("two:0", "one:0", consumers=["plus"]),
        InvalidArgumentError,
        "'two:0' is no input of 'plus'",
    ),
    "unknown op": (lambda e: e.add("Nope"), NotFoundError, "Nope"),
    "unknown attr": (
        lambda e: e.add("NoOp", attrs={"nope": 1}),
        InvalidArgumentError,
        "no attr named 'nope'",
    ),
}  # fmt: skip


# What a block did before it raises is what the tests are about, so several statements raise there.


class TestRefused:
    @pytest.mark.parametrize("case", REFUSED)
    def test_the_error_names_the_fact_and_the_graph_stays(self, case: str) -> None:
        change, error, message = REFUSED[case]
        graph = chain()
        before = graph.as_graph_def()
        with pytest.raises(error, match=message), graph.edit() as edit:  # noqa: PT012  # see above
            edit.rename({"y": "z"})
            edit.rename({"z": "y"})
            change(edit)
        assert graph.as_graph_def() == before
        assert y_of(graph) == [3.0, 5.0]

    def test_what_tells_whether_a_branch_is_taken_stays(self) -> None:
        graph = Graph()
        with graph.as_default():
            taken = opkernel.placeholder(opkernel.bool, [], name="taken")
            switch = raw_ops.Switch(data=1.0, pred=taken)
            pivot = raw_ops.Identity(input=switch.output_true, name="pivot")
            with graph.control_dependencies([pivot]):
                opkernel.constant(2.0, name="inside")
        with (
            pytest.raises(InvalidArgumentError, match="'inside' waits for it"),
            graph.edit() as edit,
        ):
            edit.remove("pivot")

    def test_finalized_graphs(self) -> None:
        graph = chain()
        graph.finalize()
        with pytest.raises(FailedPreconditionError, match="finalized"), graph.edit():
            pytest.fail("the block does not begin")


class TestBlocks:
    def test_sessions_see_edits_once_they_are_made(self) -> None:
        graph = chain()
        with opkernel.Session(graph) as session:
            assert session.run("y:0", {"x:0": [1.0]}).tolist() == [3.0]
            with graph.edit() as edit:
                edit.replace("one:0", edit.constant(5.0))
            assert session.run("y:0", {"x:0": [1.0]}).tolist() == [7.0]
            with pytest.raises(ZeroDivisionError), graph.edit() as edit:  # noqa: PT012  # see above
                edit.replace("two:0", edit.constant(0.0))
                assert session.run("y:0", {"x:0": [1.0]}).tolist() == [5.0]
                _ = 1 // 0
            assert session.run("y:0", {"x:0": [1.0]}).tolist() == [7.0]

    def test_shapes_are_those_of_the_edited_graph(self) -> None:
        graph = Graph()
        with graph.as_default():
            small, large = (opkernel.constant(np.zeros(size, np.float32)) for size in (2, 3))
            shape = raw_ops.Shape(input=raw_ops.Neg(x=raw_ops.Exp(x=small)))
        assert shape.op.inputs[0].shape.as_list() == [2]
        with graph.edit() as edit:
            edit.replace(small, large)
        assert shape.op.inputs[0].shape.as_list() == [3]
        with opkernel.Session(graph) as session:
            assert session.run(shape).tolist() == [3]

    def test_blocks_within_blocks(self) -> None:
        graph = chain()
        before = graph.as_graph_def()
        with pytest.raises(KeyError), graph.edit() as outer:  # noqa: PT012  # see above
            outer.rename({"one": "uno"})
            with graph.edit() as inner:
                inner.rename({"uno": "ein", "two": "zwei"})
            with pytest.raises(NotFoundError), graph.edit() as inner:
                inner.remove("y", "none")
            assert [op.name for op in graph.get_operations()][-3:] == ["ein", "plus", "y"]
            raise KeyError
        assert graph.as_graph_def() == before

    def test_functions_and_collections_of_a_block_that_fails_are_gone(self) -> None:
        graph = chain()
        square = opkernel.function(lambda x: x * x)
        graph.add_to_collection("kept", 1)
        with pytest.raises(KeyError), graph.edit():  # noqa: PT012  # see above
            square(graph.get_tensor_by_name("x:0"))
            graph.add_to_collection("kept", 2)
            graph.add_to_collection("gone", 3)
            raise KeyError
        assert len(graph.function_library) == 0
        assert {k: graph.get_collection(k) for k in graph.get_all_collection_keys()} == {
            "kept": [1]
        }
        assert square(graph.get_tensor_by_name("x:0")).graph is graph
        assert len(graph.function_library) == 1


# Random edits of random graphs.


class Stop(Exception):
    """Ends a block."""


KINDS = ["Placeholder", "Const", "Neg", "Add", "AddN", "Split", "Shape", "NoOp"]


def grow(graph: Graph, draw: Any) -> None:
    """Add an operation."""
    kind = draw(st.sampled_from(KINDS))
    floats = [t for op in graph.get_operations() for t in op.outputs if t.dtype == float32]
    if kind == "Placeholder" or not floats:
        shape = draw(st.sampled_from([None, [], [2], [3], [None, 3]]))
        graph.create_op("Placeholder", attrs={"dtype": float32, "shape": shape})
    elif kind in ("Const", "NoOp"):
        attrs = {"dtype": float32, "value": np.float32(1)} if kind == "Const" else {}
        graph.create_op(kind, attrs=attrs, control_inputs=[draw(st.sampled_from(floats))])
    else:
        x = [draw(st.sampled_from(floats)) for _ in range(2)]
        inputs = {"Neg": x[:1], "Add": x, "AddN": [x], "Shape": x[:1], "Split": [0, x[0]]}[kind]
        type_ = {"Neg": "Identity", "Add": "AddV2"}.get(kind, kind)
        with graph.colocate_with(draw(st.sampled_from([None, x[0]]))):
            graph.create_op(type_, inputs, attrs={"num_split": 2} if kind == "Split" else {})


def change(edit: GraphEdit, draw: Any) -> None:
    """Make one change, whether or not it is allowed."""
    graph = edit.graph
    ops = [op for op in graph.get_operations() if graph.by_name.get(op.name) is op]
    tensors = [t for op in ops for t in op.outputs]
    if not tensors:
        grow(graph, draw)
        return
    op, other = draw(st.sampled_from(ops)), draw(st.sampled_from(ops))
    t, u = draw(st.sampled_from(tensors)), draw(st.sampled_from(tensors))
    name = draw(st.sampled_from(["n", "m/n", op.name, other.name, "bad name"]))
    changes: list[Callable[[], object]] = [
        lambda: edit.replace(t, u),
        lambda: edit.redirect(t, u, consumers=[op] if draw(st.booleans()) else None),
        lambda: edit.insert(t, "Identity"),
        lambda: edit.insert(t, lambda s: graph.create_op("AddV2", [s, s]).outputs[0]),
        lambda: edit.remove(op),
        lambda: edit.remove(op, other),
        lambda: edit.rename({op: name}),
        lambda: edit.rename({op: other.name, other: op.name}),
        lambda: edit.become(op, "Identity", [t]),
        lambda: edit.become(op, "NoOp", []),
        lambda: edit.redirect_control(op, other),
        lambda: op.add_control_input(other),
        lambda: op.set_device("/cpu:0"),
        lambda: op.set_attr("T", AttrValue(type=int32)),
        lambda: edit.add("AddV2", [t, u]),
        lambda: grow(graph, draw),
    ]
    draw(st.sampled_from(changes))()


def shape_of(tensor: Tensor) -> str:
    try:
        return str(tensor.shape)
    except OpError as error:
        return type(error).__name__


def picture(graph: Graph) -> Any:
    """All that can be seen of a graph."""
    ops = graph.get_operations()
    return (
        graph.as_graph_def(),
        [
            (op, op.name, op.inputs, op.outputs, op.control_inputs, op.consumer_edges())
            for op in ops
        ],
        [shape_of(t) for op in ops for t in op.outputs],
        [graph.unique_name(name, mark_as_used=False) for name in ("n", "AddV2", "Identity")],
        graph.version,
    )


def check_sound(graph: Graph) -> None:
    """Edges, messages, names, order and shapes of a graph tell the same."""
    ops, exported = graph.get_operations(), graph.as_graph_def()
    again = Graph(REGISTRY)
    import_graph_def(exported, graph=again, name="")
    assert again.as_graph_def() == exported
    edges: dict[Operation, list[tuple[Operation, int]]] = {op: [] for op in ops}
    for number, op in enumerate(ops):
        assert graph.get_operation_by_name(op.name) is op
        sources = [t.op for t in op.inputs]
        assert all(ops[s.number] is s and s.number < number for s in (*sources, *op.control_inputs))
        for index, source in enumerate(sources):
            edges[source].append((op, index))
        for source in op.control_inputs:
            edges[source].append((op, -1))
    for op, twin in zip(ops, again.get_operations(), strict=True):
        assert sorted(op.consumer_edges(), key=_place) == sorted(edges[op], key=_place)
        assert [shape_of(t) for t in op.outputs] == [shape_of(t) for t in twin.outputs]
        assert op.output_types == twin.output_types
    names = [graph.create_op("NoOp", name=name).name for name in ("Placeholder", "n", "Identity")]
    assert not {op.name for op in ops}.intersection(names)


def _place(edge: tuple[Operation, int]) -> tuple[int, int]:
    return edge[0].number, edge[1]


@given(st.data())
def test_blocks_of_random_changes_are_made_whole_or_not_at_all(data: st.DataObject) -> None:
    graph = Graph(REGISTRY)
    for _ in range(data.draw(st.integers(1, 10))):
        with suppress(OpError):
            grow(graph, data.draw)
    for _ in range(3):
        before = picture(graph)
        try:
            with graph.edit() as edit:
                for _ in range(data.draw(st.integers(1, 4))):
                    change(edit, data.draw)
                if data.draw(st.booleans()):
                    raise Stop
        except (OpError, Stop):
            assert picture(graph) == before
        else:
            check_sound(graph)
