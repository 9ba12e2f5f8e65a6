"""After a pass the same effects happen, in the order that the graph gave, whatever the pass did."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graph.function_builders import graph_of, library_of

from opkernel.errors import InternalError
from opkernel.graph import Graph, Operation
from opkernel.graph.edit.graph_editor import GraphEditor

BEGIN = (
    "x = Placeholder[dtype=float]()",
    "p = Placeholder[dtype=bool]()",
    "v = VarHandleOp[dtype=float]()",
)
Change = Callable[[GraphEditor], None]


def assign(name: str, value: str = "x", after: str = "") -> str:
    line = f"{name} = AssignAddVariableOp[dtype=float](v, {value})"
    return f"{line} @ {after}" if after else line


def identity(name: str, of: str = "x", after: str = "") -> str:
    line = f"{name} = Identity[T=float]({of})"
    return f"{line} @ {after}" if after else line


def edited(lines: list[str], change: Change, *roots: str) -> Graph:
    """A graph after a pass that makes a change; it is run for some operations, or else for `y`."""
    graph = graph_of(library_of(), *BEGIN, *lines)
    editor = GraphEditor(graph, [graph.by_name[root] for root in roots or ("y",)])
    editor.begin("test")
    change(editor)
    editor.end()
    editor.begin("another pass")
    editor.end()
    return graph


def passed_on(*names: str) -> Change:
    """Have the consumers of Identities take what they take, without a word on what these waited for."""

    def change(editor: GraphEditor) -> None:
        for name in names:
            op = editor.graph.by_name[name]
            editor.redirect(op.outputs[0], op.inputs[0])

    return change


def freed(*names: str) -> Change:
    """Have operations wait for nothing any more."""

    def change(editor: GraphEditor) -> None:
        for name in names:
            editor.graph.by_name[name].set_control_inputs([])

    return change


def controls(graph: Graph, name: str) -> list[str]:
    return [one.name for one in graph.by_name[name].control_inputs]


def before(op: Operation) -> set[str]:
    """The operations that run before another one, by name."""
    found: set[str] = set()
    waiting = [op]
    while waiting:
        one = waiting.pop()
        for source in (*(tensor.op for tensor in one.inputs), *one.control_inputs):
            if source.name not in found:
                found.add(source.name)
                waiting.append(source)
    return found


def test_an_effect_that_a_pass_leads_past_happens_before_the_root() -> None:
    graph = edited([assign("a"), identity("i", after="a"), identity("y", "i")], passed_on("i"))
    assert [one.name for one in graph.by_name["y"].inputs] == ["x:0"]
    assert controls(graph, "y") == ["a"]


def test_operations_between_wait_for_nothing() -> None:
    lines = [assign("a"), identity("i", after="a"), "j = Neg[T=float](i)", identity("y", "j")]
    graph = edited(lines, freed("i"))
    assert [controls(graph, name) for name in "ijy"] == [[], [], ["a"]]


def test_effects_stay_in_order() -> None:
    lines = [assign("a"), identity("i", after="a"), assign("b", "i"), identity("y", after="b")]
    graph = edited(lines, passed_on("i"))
    assert (controls(graph, "b"), controls(graph, "y")) == (["a"], ["b"])


def test_operations_wait_for_the_last_effects_only() -> None:
    lines = [assign("a"), assign("b", after="a"), assign("c", after="a"), assign("d", after="b, c"),
             identity("y", after="d")]  # fmt: skip
    assert sorted(controls(edited(lines, freed("d")), "d")) == ["b", "c"]
    assert controls(edited(lines, freed("d", "b")), "b") == ["a"]
    whole = edited(lines, freed("b", "c", "d", "y"))
    assert (controls(whole, "y"), sorted(controls(whole, "d"))) == (["d"], ["b", "c"])
    assert controls(whole, "c") == ["a"]


def test_what_still_comes_before_is_not_waited_for_again() -> None:
    lines = [assign("a"), assign("b", after="a"), identity("y", after="a, b")]

    def change(editor: GraphEditor) -> None:
        y, b = editor.graph.by_name["y"], editor.graph.by_name["b"]
        y.set_control_inputs([b])

    assert controls(edited(lines, change), "y") == ["b"]


def test_a_read_keeps_its_place_between_effects() -> None:
    lines = [
        assign("a"),
        "r = ReadVariableOp[dtype=float](v) @ a",
        assign("b", after="r"),
        "y = Neg[T=float](r) @ b",
    ]
    graph = edited(lines, freed("r", "b"))
    assert (controls(graph, "r"), controls(graph, "b")) == (["a"], ["r"])


def test_a_read_may_go() -> None:
    lines = [assign("a"), "r = ReadVariableOp[dtype=float](v) @ a", identity("i", "r"),
             "y = Add[T=float](i, x)"]  # fmt: skip

    def change(editor: GraphEditor) -> None:
        editor.redirect("i:0", "x:0")

    graph = edited(lines, change)
    assert controls(graph, "y") == ["a"]
    assert not graph.by_name["r"].inputs


def test_a_read_that_nothing_takes_does_not_come_back() -> None:
    lines = ["r = ReadVariableOp[dtype=float](v)", assign("a", after="r"), identity("y", after="a")]
    assert controls(edited(lines, freed("a")), "a") == []


def test_an_operation_without_effects_need_not_wait_for_reads() -> None:
    lines = ["r = ReadVariableOp[dtype=float](v)", assign("a"), identity("i", after="r"),
             "y = Add[T=float](i, x) @ a"]  # fmt: skip
    assert controls(edited(lines, freed("i")), "y") == ["a"]


def test_what_takes_a_reference_sees_effects() -> None:
    lines = [
        "w = VariableV2[dtype=float]()",
        "a = AssignAdd[T=float](w, x)",
        "r = Identity[T=float](w) @ a",
        "y = Neg[T=float](r)",
    ]
    graph = graph_of(library_of(), *BEGIN, *lines)
    editor = GraphEditor(graph, [graph.by_name["y"]], [graph.by_name["r"]])
    editor.begin("test")
    freed("r")(editor)
    editor.end()
    assert controls(graph, "r") == ["a"]


def test_effects_that_a_pass_drops_do_not_come_back() -> None:
    def change(editor: GraphEditor) -> None:
        editor.drop([editor.graph.by_name["b"]])
        passed_on("i")(editor)

    lines = [assign("a"), assign("b", after="a"), identity("i", after="b"), identity("y", "i")]
    graph = edited(lines, change)
    assert controls(graph, "y") == ["a"]
    assert not graph.by_name["b"].inputs


def test_an_effect_that_is_removed_does_not_come_back() -> None:
    lines = [assign("a"), assign("b", after="a"), identity("y", after="b")]
    graph = edited(lines, lambda editor: editor.remove("b"))
    assert "b" not in graph.by_name
    assert "a" in controls(graph, "y")


def test_an_operation_that_fails_is_an_effect_and_one_that_names_a_variable_is_none() -> None:
    lines = ["a = Assert[T={float}](p, x)", "w = VarHandleOp[dtype=float]()",
             identity("y", after="a, w")]  # fmt: skip
    assert controls(edited(lines, freed("y")), "y") == ["a"]


def test_a_graph_without_effects_is_left_to_the_pass() -> None:
    lines = ["r = ReadVariableOp[dtype=float](v)", identity("i", after="r"), identity("y", "i")]
    graph = edited(lines, passed_on("i"))
    assert controls(graph, "y") == []


def test_what_waits_within_a_branch_waits_for_its_switch() -> None:
    """No control edge crosses control flow: the branch is reached once its Switch has run."""
    lines = [
        assign("a"),
        identity("i", after="a"),
        "s = Switch[T=float](i, p)",
        assign("b", "s:1", after="s"),
        identity("y", "s", after="b"),
    ]
    graph = edited(lines, passed_on("i"))
    assert before(graph.by_name["b"]) >= {"a", "s"}
    assert controls(graph, "s") == ["a"]


def test_an_effect_in_a_loop_stays_before_what_the_loop_leads_to() -> None:
    lines = [
        "e = Enter[T=float; frame_name='f'](x)",
        "m = Merge[T=float; N=2](e, n)",
        "goes = Less[T=float](m, m)",
        "test = LoopCond(goes)",
        "s = Switch[T=float](m, test)",
        "body = Neg[T=float](s:1)",
        "h = Enter[T=resource; frame_name='f'; is_constant=true](v)",
        "a = AssignAddVariableOp[dtype=float](h, body)",
        "n = NextIteration[T=float](body) @ a",
        "exit = Exit[T=float](s)",
        identity("i", after="exit"),
        assign("b", "i"),
        identity("y", after="b"),
    ]
    graph = edited(lines, passed_on("i"))
    assert "exit" in before(graph.by_name["b"])
    assert "a" in before(graph.by_name["y"])


def test_an_effect_that_cannot_come_back_is_an_error() -> None:
    """Nothing is left that could wait for it."""

    def change(editor: GraphEditor) -> None:
        freed("y")(editor)
        editor.preserved.clear()

    with pytest.raises(InternalError, match="The effect of node 'a' is lost"):
        edited([assign("a"), identity("y", after="a")], change)


@given(st.data())
@settings(max_examples=20)
def test_any_order_of_effects_is_kept(data: st.DataObject) -> None:
    """Operations wait for others at random, until a pass frees some of them of all that they wait for."""
    names = [f"op{i}" for i in range(data.draw(st.integers(2, 8)))]
    kinds = {name: data.draw(st.sampled_from(["effect", "read", "link"])) for name in names[1:]}
    kinds["op0"] = "effect"
    lines = []
    for i, name in enumerate(names):
        earlier = st.lists(st.sampled_from(names[:i]), unique=True) if i else st.just([])
        after = ", ".join(data.draw(earlier))
        if kinds[name] == "effect":
            lines.append(assign(name, after=after))
        elif kinds[name] == "link":
            lines.append(identity(name, after=after))
        else:
            lines.append(f"{name} = ReadVariableOp[dtype=float](v) @ {after}".removesuffix(" @ "))
    lines.append(identity("y", after=", ".join(names)))
    change = freed(*data.draw(st.sets(st.sampled_from([*names, "y"]))))
    asked, graph = graph_of(library_of(), *BEGIN, *lines), edited(lines, change)
    alive = before(graph.by_name["y"])
    assert alive >= {name for name in names if kinds[name] == "effect"}
    seeing = {name for name in names if kinds[name] != "link"} & alive
    for name in seeing:
        assert before(graph.by_name[name]) >= before(asked.by_name[name]) & seeing
