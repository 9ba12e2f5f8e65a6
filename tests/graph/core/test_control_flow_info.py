"""Which loop an operation is in, and the form of loops; errors are those of TensorFlow's control_flow.cc."""

from typing import Any

import pytest
from tests.graph.function_builders import graph_of, library_of

from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.graph import Graph
from opkernel.graph.core.frame_loops import (
    ROOT,
    ControlFlowFormError,
    LoopFrame,
    LoopFrames,
    check_sources,
    control_flow_info,
    loop_test,
    loop_variables,
)
from opkernel.graph.edit.subgraph import Needs, prune_and_order

X = "x = Placeholder[dtype=float]()"


def loop(prefix: str, enters: str, frame: str = "", turns: int = 3) -> list[str]:
    """A loop over one variable, with a constant; `next` and `exit` are its ends."""
    p, frame = prefix, frame or prefix
    return [
        f"{p}e = Enter[T=float; frame_name='{frame}'; parallel_iterations={turns}]({enters})",
        f"{p}c = Enter[T=float; frame_name='{frame}'; is_constant=true; parallel_iterations={turns}]({enters})",
        f"{p}m = Merge[T=float; N=2]({p}e, {p}n)",
        f"{p}less = Less[T=float]({p}m, {p}c)",
        f"{p}test = LoopCond({p}less)",
        f"{p}s = Switch[T=float]({p}m, {p}test)",
        f"{p}b = Neg[T=float]({p}s:1)",
        f"{p}n = NextIteration[T=float]({p}b)",
        f"{p}exit = Exit[T=float]({p}s)",
    ]


def graph(*lines: str) -> Graph:
    return graph_of(library_of(), X, *lines)


def frames_of(made: Graph, *feeds: str) -> LoopFrames:
    needs = Needs([made.get_tensor_by_name(name) for name in feeds])
    order = prune_and_order((), made.get_operations(), ())
    return LoopFrames(order, needs)


def test_frames_of_nested_loops() -> None:
    made = graph(
        *loop("o", "x"), *loop("i", "ob"), "y = Neg[T=float](oexit)", "z = Neg[T=float](iexit)"
    )
    frames = frames_of(made)
    names = {name: frame.name for name, frame in frames.by_name.items()}
    outer = {"om", "oless", "otest", "os", "ob", "on", "oexit", "ie", "ic", "z"}
    inner = {"im", "iless", "itest", "is", "ib", "in", "iexit"}
    assert {name for name, frame in names.items() if frame == "o"} == outer
    assert {name for name, frame in names.items() if frame == "i"} == inner
    assert {name for name, frame in names.items() if frame == ""} == {"x", "oe", "oc", "y"}
    inside = frames.by_name["im"]
    assert [(one.name, one.depth) for one in inside.around] == [("o", 1), ("", 0)]
    assert inside.depth == 2
    assert frames.by_name["x"] is ROOT


def test_consumers_of_an_enter_are_inside_and_those_of_an_exit_outside() -> None:
    made = graph(*loop("o", "x", turns=5), *loop("i", "ob", turns=7))
    frames = frames_of(made)
    behind = {name: frames.behind(made.by_name[name]).name for name in made.by_name}
    assert {name: behind[name] for name in ("oe", "ie", "iexit", "oexit", "ib", "x")} == {
        "oe": "o", "ie": "i", "iexit": "o", "oexit": "", "ib": "i", "x": ""
    }  # fmt: skip
    assert frames.parallel_iterations(frames.of(made.by_name["ob"])) == 5
    assert frames.parallel_iterations(frames.of(made.by_name["ib"])) == 7


def test_operations_that_were_added_are_where_they_were_put() -> None:
    made = graph(*loop("o", "x"))
    frames = frames_of(made)
    new = made.create_op("NoOp", name="new")
    assert frames.of(new) is ROOT
    frames.put(new, frames.by_name["ob"])
    assert (frames.of(new).name, frames.behind(new).name) == ("o", "o")


def test_feeds_come_from_outside() -> None:
    lines = [*loop("o", "x"), "w = Neg[T=float](ob)", "y = Neg[T=float](w)"]
    assert frames_of(graph(*lines)).by_name["y"].name == "o"
    assert frames_of(graph(*lines), "w:0").by_name["y"] is ROOT
    with pytest.raises(InvalidArgumentError, match=r"node z.* has inputs from different frames"):
        frames_of(graph(*lines, "z = Add[T=float](w, ob)"), "w:0")


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        (
            [*loop("o", "x"), "y = Add[T=float](ob, x)"],
            InvalidArgumentError,
            ("{{node y}} has inputs from different frames. The input {{node x}} is in frame ''. "
            "The input {{node ob}} is in frame 'o'."),
        ),
        (
            [*loop("o", "x"), "y = Neg[T=float](ob)", "z = Neg[T=float](x) @ y"],
            InvalidArgumentError,
            "{{node z}} has inputs from different frames",
        ),
        (["y = Exit[T=float](x)"], InvalidArgumentError, "Exit leads out of a loop, but is in no loop"),
        (
            ["e = Enter[T=float; frame_name=''](x)"],
            InvalidArgumentError,
            "The Enter {{node e}} must have a frame name",
        ),
        (
            [*loop("o", "x"), "ot = LoopCond(oless)"],
            InvalidArgumentError,
            'Loop "o" has more than one LoopCond node: {{node ot}} and {{node otest}}',
        ),
        (
            [*loop("o", "x"), *loop("i", "ob"), "e = Enter[T=float; frame_name='i'](x)"],
            InternalError,
            'Mismatched parent frames for "i": "" vs "o"',
        ),
    ],
    ids=["inputs", "controls", "exit", "no name", "two tests", "parents"],
)  # fmt: skip
def test_loops_that_are_none(lines: list[str], error: type[OpError], message: str) -> None:
    with pytest.raises(error) as raised:
        frames_of(graph(*lines))
    assert message in str(raised.value)
    assert type(raised.value) is error


def members(made: Graph, frames: dict[str, LoopFrame], name: str) -> list[Any]:
    return [op for op in made.get_operations() if frames[op.name].name == name]


def form(made: Graph, name: str = "o", *feeds: str) -> tuple[list[tuple[str, str, str]], str]:
    """The variables and the test of a loop, once the sources of all operations were checked."""
    needs = Needs([made.get_tensor_by_name(feed) for feed in feeds])
    order = prune_and_order((), made.get_operations(), ())
    frames = control_flow_info(order, Needs(()))
    for op in order:
        check_sources(op, needs)
    within = members(made, frames, name)
    variables = loop_variables(frames[f"{name}m"], within, frames, needs)
    found = [(one.head.name, one.start.name, one.next.name) for one in variables]
    return found, loop_test(within).name


def test_the_variables_and_the_test_of_a_loop() -> None:
    assert form(graph(*loop("o", "x"))) == ([("om", "oe:0", "on:0")], "otest")
    turned = [line.replace("(oe, on)", "(on, oe)") for line in loop("o", "x")]
    assert form(graph(*turned)) == ([("om", "oe:0", "on:0")], "otest")
    nested = graph(*loop("o", "x"), *loop("i", "ob"))
    assert form(nested, "i") == ([("im", "ie:0", "in:0")], "itest")


def changed(line: str, by: str) -> list[str]:
    lines = loop("o", "x")
    assert any(line in one for one in lines)
    return [one.replace(line, by) for one in lines]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*loop("o", "x"), "y = Neg[T=float](oe)"], "Enter: a value enters only some turns"),
        (changed("(oe, on)", "(oc, on)"), "Enter: a value enters only some turns"),
        ([*loop("o", "x"), "y = Neg[T=float](on)"], "NextIteration: a value of the turn before"),
        ([*loop("o", "x"), "y = Neg[T=int32](om:1)"], "Merge: it is asked where the value"),
        ([*loop("o", "x"), "y = Neg[T=float](ob) @ on"], "an operation waits for an edge"),
        ([*loop("o", "x"), "y = Neg[T=float](ob) @ oe"], "an operation waits for an edge"),
        (changed("N=2](oe, on)", "N=3](oe, oe, on)"), "Merge: it is no plain head of a loop"),
        ([*changed("(oe, on)", "(first, on)"), "first = Neg[T=float](oc)"],
         "Merge: it is no plain head of a loop"),
        (changed("(oe, on)", "(oe, on) @ oc"), "Merge: it is no plain head of a loop"),
        (changed("otest = LoopCond(oless)", "otest = Identity[T=bool](oless)"), "the loop has 0 tests"),
    ],
)  # fmt: skip
def test_loops_that_are_no_while_statement(lines: list[str], message: str) -> None:
    with pytest.raises(ControlFlowFormError) as raised:
        form(graph(*lines))
    assert message in str(raised.value)
    assert raised.value.at.name in str(raised.value)
    assert raised.value.reason in str(raised.value)


def test_values_that_are_fed_come_from_no_turn() -> None:
    made = graph(*loop("o", "x"), "y = Neg[T=float](on)")
    check_sources(made.by_name["y"], Needs([made.get_tensor_by_name("on:0")]))
    with pytest.raises(ControlFlowFormError, match="no plain head"):
        form(graph(*loop("o", "x")), "o", "oe:0")


def test_constants_may_be_waited_for() -> None:
    assert form(graph(*loop("o", "x"), "y = Neg[T=float](ob) @ oc"))[1] == "otest"


def test_loops_are_nested_a_hundred_deep_at_most() -> None:
    for depth, fits in ((100, True), (101, False)):
        frame = LoopFrame("o", None, depth)
        if fits:
            assert loop_variables(frame, [], {}, Needs(())) == []
        else:
            made = graph(*loop("o", "x"))
            with pytest.raises(ControlFlowFormError, match="nested too deeply"):
                loop_variables(frame, [made.by_name["ob"]], {}, Needs(()))
