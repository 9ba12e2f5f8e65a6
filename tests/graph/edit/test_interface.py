"""The inputs and outputs of a graph, as TensorFlow's summarize_graph finds them."""

import pytest
from tests.graph.function_builders import graph_of, library_of

from opkernel.graph import Graph, Tensor
from opkernel.graph.edit.interface import graph_inputs, graph_outputs, split_by_need

PLACEHOLDERS = "x = Placeholder[dtype=float]()", "p = Placeholder[dtype=bool]()"


def graph(*lines: str) -> Graph:
    return graph_of(library_of(), *lines)


def names(tensors: list[Tensor]) -> list[str]:
    return [tensor.name for tensor in tensors]


def arg(name: str, index: int) -> str:
    return f"{name} = _Arg[T=float; index={index}]()"


def result(name: str, index: int, tensor: str) -> str:
    return f"{name} = _Retval[T=float; index={index}]({tensor})"


FUNCTION = (
    arg("second", 1),
    arg("first", 0),
    "x = Placeholder[dtype=float]()",
    "y = Neg[T=float](first)",
    "z = Exp[T=float](x)",
    result("r1", 1, "y"),
    result("r0", 0, "first"),
)


def test_arguments_and_results_of_a_function_go_by_index() -> None:
    body = graph(*FUNCTION)
    assert names(graph_inputs(body)) == ["first:0", "second:0", "x:0"]
    assert names(graph_outputs(body)) == ["first:0", "y:0"]


def test_arguments_count_as_needed_whether_or_not_they_are() -> None:
    used, unused = split_by_need(graph(*FUNCTION))
    assert names(used) == ["first:0", "second:0"]
    assert names(unused) == ["x:0"]


def test_outputs_are_what_nothing_waits_for() -> None:
    made = graph(
        *PLACEHOLDERS,
        "c = Const[dtype=float; value=<dtype: DT_FLOAT tensor_shape {} float_val: 1>]()",
        "y = Neg[T=float](x)",
        "z = Exp[T=float](y)",
        "waited = Abs[T=float](x)",
        "n = NoOp() @ waited",
        "u = Unique[T=float; out_idx=int32](x)",
    )
    assert names(graph_inputs(made)) == ["x:0", "p:0"]
    assert names(graph_outputs(made)) == ["z:0", "u:0", "u:1"]


def test_inputs_of_outputs_and_of_operations_without_outputs_are_needed() -> None:
    made = graph(
        *PLACEHOLDERS,
        "unused = Placeholder[dtype=float]()",
        "y = Neg[T=float](x)",
        "n = NoOp() @ p",
    )
    assert tuple(map(names, split_by_need(made))) == (["x:0", "p:0"], ["unused:0"])


def test_all_inputs_of_a_graph_without_outputs_are_needed() -> None:
    made = graph(*PLACEHOLDERS, "n = NoOp() @ p")
    assert tuple(map(names, split_by_need(made))) == (["x:0", "p:0"], [])


def loop(*, within: str = "") -> list[str]:
    """A loop of TensorFlow 1 with a test of its own; `within` is an operation in it."""
    lines = [
        "x = Placeholder[dtype=float]()",
        "e = Enter[T=float; frame_name='f'](x)",
        "constant = Enter[T=float; frame_name='f'; is_constant=true](x)",
        "m = Merge[T=float; N=2](e, next)",
        "goes = Less[T=float](m, constant)",
        "test = LoopCond(goes)",
        "s = Switch[T=float](m, test)",
        "body = Neg[T=float](s:1)",
        "next = NextIteration[T=float](body)",
        "exit = Exit[T=float](s)",
    ]
    return lines + ([within] if within else [])


@pytest.mark.parametrize("within", ["", "inside = Exp[T=float](body)", "other = Exp[T=float](m)"])
def test_a_loop_has_outputs_only_behind_its_exits(within: str) -> None:
    assert names(graph_outputs(graph(*loop(within=within)))) == ["exit:0"]
    behind = graph(*loop(within=within), "y = Exp[T=float](exit)")
    assert names(graph_outputs(behind)) == ["y:0"]


def test_an_enter_that_nothing_takes_is_no_output() -> None:
    made = graph(*loop(), "alone = Enter[T=float; frame_name='f'](x)", "y = Exp[T=float](x)")
    assert names(graph_outputs(made)) == ["exit:0", "y:0"]


def test_the_exit_of_an_inner_loop_is_inside_the_outer_one() -> None:
    made = graph(
        *loop(),
        "e2 = Enter[T=float; frame_name='inner'](body)",
        "m2 = Merge[T=float; N=2](e2, next2)",
        "goes2 = Less[T=float](m2, m2)",
        "test2 = LoopCond(goes2)",
        "s2 = Switch[T=float](m2, test2)",
        "next2 = NextIteration[T=float](s2:1)",
        "exit2 = Exit[T=float](s2)",
    )
    assert names(graph_outputs(made)) == ["exit:0"]


def test_a_tensor_on_one_branch_is_no_output() -> None:
    made = graph(
        *PLACEHOLDERS,
        "s = Switch[T=float](x, p)",
        "no = Neg[T=float](s)",
        "yes = Exp[T=float](s:1)",
        "lost = Abs[T=float](s:1)",
        "waits = Abs[T=float](x) @ yes",
        "m = Merge[T=float; N=2](no, yes)",
        "y = Neg[T=float](m)",
        "both = Add[T=float](y, x) @ m",
    )
    assert names(graph_outputs(made)) == ["both:0"]


def test_a_merge_within_a_branch_is_still_within_it() -> None:
    made = graph(
        *PLACEHOLDERS,
        "q = Placeholder[dtype=bool]()",
        "outer = Switch[T=float](x, p)",
        "inner = Switch[T=float](outer:1, q)",
        "m = Merge[T=float; N=2](inner, inner:1)",
        "inside = Neg[T=float](m)",
        "all = Merge[T=float; N=2](outer, m)",
        "y = Neg[T=float](all)",
    )
    assert names(graph_outputs(made)) == ["y:0"]


def test_a_switch_is_no_output_itself() -> None:
    made = graph(*PLACEHOLDERS, "s = Switch[T=float](x, p)", "y = Neg[T=float](x)")
    assert names(graph_outputs(made)) == ["y:0"]


def test_a_loop_with_errors_has_what_nothing_waits_for() -> None:
    """A step tells the error."""
    made = graph(
        "x = Placeholder[dtype=float]()",
        "e = Enter[T=float; frame_name='f'](x)",
        "sum = Add[T=float](e, x)",
    )
    assert names(graph_outputs(made)) == ["sum:0"]
