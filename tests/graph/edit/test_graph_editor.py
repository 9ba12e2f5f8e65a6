"""What passes ask of a graph, and the changes that they make to it."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Operation, Tensor, constant, placeholder
from opkernel.graph.edit.graph_editor import Change, GraphEditor
from opkernel.types import float32, int32


@pytest.fixture
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


@pytest.fixture
def x(graph: Graph) -> Tensor:
    return placeholder(float32, [None, 3], name="x")


def editor(y: Tensor, *more: Tensor, feeds: tuple[Operation, ...] = ()) -> GraphEditor:
    made = GraphEditor(y.graph, [y.op, *(tensor.op for tensor in more)], feeds)
    made.begin("test")
    return made


def listed(value: Any) -> Any:
    return None if value is None else value.tolist()


def neg(x: Tensor, name: str) -> Tensor:
    return raw_ops.Neg(x=x, name=name)


def names(ops: list[Operation]) -> list[str]:
    return [op.name for op in ops]


def test_operations_are_those_that_preserved_ones_need(x: Tensor) -> None:
    y = neg(neg(x, "a"), "y")
    neg(x, "other")
    edit = editor(y)
    assert names(edit.operations()) == ["x", "a", "y"]
    assert set(edit.op_types()) == {"Placeholder", "Neg"}
    edit.redirect("a:0", x)
    assert names(edit.operations()) == ["x", "y"]
    raw_ops.Exp(x=x, name="new")
    edit.become("y", "Exp")
    assert set(edit.op_types()) == {"Placeholder", "Exp"}


def test_what_nothing_needs_is_cut_off_after_a_pass(x: Tensor) -> None:
    a = neg(x, "a")
    y = neg(a, "y")
    other = neg(x, "other")
    edit = editor(y)
    edit.end()
    assert other.op.inputs == (x,)  # nothing was changed
    edit.begin("second")
    edit.redirect(a, x)
    edit.end()
    assert not edit.graph.by_name["a"].inputs
    assert x.consumers() == [y.op]


def test_the_only_consumer(x: Tensor) -> None:
    a, b, c = neg(x, "a"), neg(x, "b"), neg(x, "c")
    u = raw_ops.Unique(x=[1, 1], name="u")
    y = raw_ops.AddN(inputs=[a, b, b, c], name="y")
    raw_ops.NoOp(name="waits")
    edit = editor(y, c)
    assert edit.only_consumer(a.op) == (y.op, 0)
    assert edit.only_consumer(b.op) is None  # it takes it twice
    assert edit.only_consumer(c.op) is None  # it is preserved
    assert edit.only_consumer(u.y.op) is None  # it has two outputs
    neg(a, "again")
    assert edit.only_consumer(a.op) is None


def test_what_only_waits_is_no_consumer(x: Tensor, graph: Graph) -> None:
    a = neg(x, "a")
    with graph.control_dependencies([a]):
        y = neg(x, "y")
    assert editor(y).only_consumer(a.op) is None


def test_values_of_constants(x: Tensor, graph: Graph) -> None:
    free = constant([1, 2], name="free")
    with graph.control_dependencies([x]):
        bound = constant([3], name="bound")
    total = raw_ops.ConcatV2(values=[free, bound], axis=0)
    edit = editor(total)
    assert listed(edit.value(free)) == [1, 2]
    assert listed(edit.value(bound)) == [3]
    assert edit.value(total) is None
    assert listed(edit.free_value(free)) == [1, 2]
    assert edit.free_value(bound) is None
    assert edit.free_value(total) is None
    assert listed(edit.free_input(total.op, 0)) == [1, 2]
    assert edit.free_input(total.op, 1) is None
    edit.become_constant(free.op, np.array([5, 6], np.int32))
    assert listed(edit.value(free)) == [5, 6]


def test_values_that_follow_from_constants_and_shapes(x: Tensor) -> None:
    columns = raw_ops.StridedSlice(
        input=raw_ops.Shape(input=x), begin=[1], end=[2], strides=[1], shrink_axis_mask=1
    )
    fed = raw_ops.AddV2(x=constant(1), y=2)
    edit = editor(columns, feeds=(fed.op,))
    assert edit.known_value(columns) == 3
    assert edit.known_value(x) is None
    assert edit.known_value(fed) is None
    wrong = raw_ops.MatMul(a=constant([[1.0]]), b=placeholder(float32, None))
    assert edit.known_value(wrong) is None


def contradicting() -> tuple[Tensor, Tensor]:
    """A product that a step refuses, since an edit has brought a shape that does not fit; its negative."""
    a = placeholder(float32, [2, 3], name="first")
    product = raw_ops.MatMul(a=a, b=placeholder(float32, None, name="b"), name="product")
    negative = neg(product, "negative")
    product.op.update_input(1, neg(placeholder(float32, [7, 7]), "inner"))
    return product, negative


def test_nothing_is_known_behind_shapes_that_contradict_each_other(x: Tensor) -> None:
    product, y = contradicting()
    edit = editor(y)
    assert not edit.is_valid(product.op)
    assert not edit.is_valid(y.op)
    assert not edit.is_valid(product.op)
    assert edit.is_valid(x.op)
    assert edit.shape(product).rank is None
    assert edit.dims(product) is None
    assert edit.known_value(y) is None


def test_shapes(x: Tensor) -> None:
    edit = editor(x)
    assert edit.shape(x).as_list() == [None, 3]
    assert edit.dims(x) is None
    assert edit.dims(constant([[1.0, 2.0]])) == (1, 2)
    assert edit.dims(constant(1.0)) == ()
    assert edit.dims(placeholder(float32)) is None


def test_tensors_of_one_shape(x: Tensor) -> None:
    other = placeholder(float32, [None, 3])
    known, same, unknown = (
        placeholder(float32, [2]),
        placeholder(float32, [2]),
        placeholder(float32),
    )
    edit = editor(x)
    assert edit.have_one_shape(x, neg(x, "y"))
    assert not edit.have_one_shape(x, other)  # the unknown sizes may differ
    assert edit.have_one_shape(known, same)
    assert not edit.have_one_shape(known, placeholder(float32, [3]))
    assert not edit.have_one_shape(known, placeholder(float32, [2, 2]))
    assert not edit.have_one_shape(known, unknown)
    assert not edit.have_one_shape(unknown, known)
    assert not edit.have_one_shape(unknown, unknown)


def switched(x: Tensor) -> Any:
    return raw_ops.Switch(data=x, pred=placeholder(bool, [], name="p"), name="s")


def test_operations_on_a_branch_are_conditional(x: Tensor) -> None:
    s = switched(x)
    y = neg(s.output_true, "y")
    before = neg(x, "before")
    edit = editor(y)
    assert edit.is_conditional(y.op)
    assert edit.is_conditional(s.output_true.op)
    assert not edit.is_conditional(before.op)
    added = neg(y, "added")
    assert not edit.is_conditional(added.op)
    edit.changed()
    assert edit.is_conditional(added.op)


def test_what_may_be_bypassed(x: Tensor) -> None:
    s = switched(x)
    inside = neg(s.output_true, "inside")
    further = neg(inside, "further")
    source, plain = neg(x, "source"), neg(neg(x, "first"), "plain")
    merged = raw_ops.Merge(inputs=[s.output_false, neg(further, "last")])
    y = raw_ops.AddN(inputs=[merged.output, source, plain], name="y")
    edit = editor(y, feeds=(source.op,))
    assert edit.may_bypass(plain.op)
    assert edit.may_bypass(plain.op, x)
    assert not edit.may_bypass(source.op)  # it stays as it is
    assert not edit.may_bypass(inside.op)  # it takes what a Switch gives
    assert not edit.may_bypass(merged.output.op)
    assert not edit.may_bypass(edit.graph.by_name["last"])  # a Merge takes it
    assert edit.may_bypass(further.op, inside)
    assert not edit.may_bypass(further.op, x)  # x is computed on either branch
    assert not edit.may_bypass(further.op, inside, x)
    assert edit.may_bypass(plain.op, inside)
    edit.leave([plain.op])
    assert not edit.may_bypass(plain.op)


def test_what_an_operation_may_absorb(x: Tensor, graph: Graph) -> None:
    inner = neg(x, "inner")
    twice = neg(x, "twice")
    with graph.control_dependencies([placeholder(float32)]):
        waiting = neg(x, "waiting")
    with graph.device("/CPU:1"):
        elsewhere = neg(x, "elsewhere")
    y = raw_ops.AddN(inputs=[inner, twice, twice, waiting, elsewhere, neg(x, "fed")], name="y")
    edit = editor(y)
    assert edit.part(y.op, 0, "Neg", "Exp") is inner.op
    assert edit.part(y.op, 0, "Exp") is None
    assert edit.part(y.op, 1, "Neg") is None  # others take it
    assert edit.part(y.op, 3, "Neg") is None  # it waits
    assert edit.part(y.op, 4, "Neg") is None  # it is on another device
    edit.leave([graph.by_name["fed"]])
    assert edit.part(y.op, 5, "Neg") is None
    edit.leave([y.op])
    assert edit.part(y.op, 0, "Neg") is None


@pytest.mark.usefixtures("graph")
def test_an_operation_that_fails_absorbs_nothing() -> None:
    product, _ = contradicting()
    assert editor(product).part(product.op, 1, "Neg") is None


def test_passing_a_tensor_on(x: Tensor) -> None:
    a = neg(x, "a")
    b = raw_ops.Identity(input=a, name="b")
    y = raw_ops.AddV2(x=b, y=b, name="y")
    edit = editor(y)
    edit.pass_on(b.op, x)
    assert y.op.inputs == (x, x)
    assert b.op.type == "Identity"
    edit.pass_on(y.op, a)
    assert (y.op.type, y.op.inputs) == ("Identity", (a,))
    changes = edit.graph.edits
    edit.pass_on(y.op, a)
    assert edit.graph.edits == changes


def test_an_operation_becomes_one_of_the_same_types_only(x: Tensor) -> None:
    y = neg(x, "y")
    edit = editor(y)
    edit.become("y", "Exp", [x])
    assert (y.op.type, y.op.get_attr("T")) == ("Exp", float32)
    with pytest.raises(InvalidArgumentError, match="Node 'y' cannot become a Shape"):
        edit.become("y", "Shape", [x])


def test_a_constant_in_a_branch_waits_for_the_branch(x: Tensor) -> None:
    s = switched(x)
    inside, outside = neg(s.output_true, "inside"), neg(x, "outside")
    y = raw_ops.AddN(inputs=[neg(inside, "next"), outside])
    edit = editor(y)
    following = edit.graph.by_name["next"]
    assert edit.pivots(following) == [inside.op]
    for op in (following, outside.op):
        edit.become_constant(op, np.array(2, np.float32))
    assert (following.type, following.control_inputs) == ("Const", (inside.op,))
    assert (outside.op.type, outside.op.control_inputs) == ("Const", ())
    assert outside.op.get_attr("dtype") is float32


def test_changes_are_noted_with_the_pass_that_made_them(x: Tensor) -> None:
    a = neg(x, "a")
    y = neg(a, "y")
    edit = editor(y)
    edit.note(y.op, "does both", [a.op])
    edit.begin("later")
    edit.note(a.op, "goes")
    assert edit.changes == [Change("test", "y", "does both", ("a",)), Change("later", "a", "goes")]


def test_attrs_are_those_that_the_op_declares(x: Tensor) -> None:
    y = raw_ops.Cast(x=x, DstT=int32, name="y")
    y.op._set_attr("_mine", y.op.attr["Truncate"])
    assert set(editor(y).attrs(y.op)) == {"SrcT", "DstT", "Truncate"}


def test_a_clone_does_the_same_in_the_same_place(x: Tensor, graph: Graph) -> None:
    other = placeholder(float32, name="other")
    with graph.control_dependencies([other]), graph.device("/CPU:1"):
        y = neg(x, "y")
    edit = editor(y)
    graph.assigned_devices[y.op] = "/job:a/device:CPU:1"
    clone = edit.clone(y.op, "copy")
    assert (clone.name, clone.type, clone.inputs, clone.control_inputs, clone.device) == (
        "copy", "Neg", (x,), (other.op,), y.op.device
    )  # fmt: skip
    assert graph.assigned_devices[clone] == "/job:a/device:CPU:1"
    assert edit.clone(y.op, "copy").name != "copy"
    assert edit.clone(x.op, "placeholder") not in graph.assigned_devices
