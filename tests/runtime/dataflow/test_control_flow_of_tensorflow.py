"""What TensorFlow's tests of control flow say: raw Switch, Merge, Enter and their like in odd forms.

The expected values are TensorFlow 2.21's for the same graphs.
Source: TensorFlow python/kernel_tests/control_flow/control_flow_ops_py_test.py.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder

from opkernel.errors import OpError
from opkernel.graph import Tensor
from opkernel.types import DataType

STRING = DataType.DT_STRING

Fetches = Sequence[Tensor]
CASES: dict[str, tuple[Callable[[Builder], Fetches], list[tuple[dict[str, Any], list[Any]]]]] = {}
"""What builds a graph, and feeds with the values that TensorFlow fetches for them."""


def case(*runs: tuple[dict[str, Any], list[Any]]) -> Callable[[Any], Any]:
    def add(build: Callable[[Builder], Fetches]) -> Callable[[Builder], Fetches]:
        CASES[build.__name__] = build, list(runs)
        return build

    return add


def up_to(b: Builder, limit: float) -> Callable[..., Tensor]:
    return lambda x, *rest: b.op("Less", x, b.constant(limit))


def plus(b: Builder, x: Tensor, amount: float) -> Tensor:
    return b.op("AddV2", x, b.constant(amount))


def enter(b: Builder, x: Tensor, frame: str = "f", **attrs: Any) -> Tensor:
    return b.op("Enter", x, frame_name=frame, **attrs)


# Switch and Merge.


@case(({"p:0": True}, [[2, 4, 6], 1]), ({"p:0": False}, [[2, 3, 4], 0]))
def switch_merge_add_mul(b: Builder) -> Fetches:
    data, p = b.constant(np.array([1, 2, 3], np.int32)), b.placeholder("p", BOOL)
    switch = b.operation("Switch", data, p)
    added = b.op("AddV2", switch.outputs[0], b.constant(1))
    doubled = b.op("Mul", switch.outputs[1], b.constant(2))
    return b.operation("Merge", [added, doubled]).outputs


@case(({"p:0": True}, [7, 0]), ({"p:0": False}, [7, 0]))
def merge_of_one_input_that_is_always_there(b: Builder) -> Fetches:
    switch = b.operation("Switch", b.constant(3), b.placeholder("p", BOOL))
    later = b.operation("Identity", b.constant(7), name="always").outputs[0]
    _ = b.op("Neg", switch.outputs[0])
    return b.operation("Merge", [later]).outputs


@case(({"p:0": True, "q:0": True}, [4, 0]), ({"p:0": True, "q:0": False}, [3, 1]))
def nested_switches(b: Builder) -> Fetches:
    p, q = b.placeholder("p", BOOL), b.placeholder("q", BOOL)
    outer = b.operation("Switch", b.constant(3), p)
    inner = b.operation("Switch", outer.outputs[1], b.operation("Switch", q, p).outputs[1])
    return b.operation("Merge", [plus(b, inner.outputs[1], 1), inner.outputs[0]]).outputs


@case(({"p:0": True, "q:0": True}, [1]), ({"p:0": True, "q:0": False}, [2]), ({"p:0": False}, [3]))
def cond_in_cond(b: Builder) -> Fetches:
    q = b.op("PlaceholderWithDefault", b.constant(False), dtype=BOOL, shape=[], name="q")

    def then(q: Tensor) -> list[Tensor]:
        return b.cond(q, lambda: [b.constant(1)], lambda: [b.constant(2)], [])

    return b.cond(b.placeholder("p", BOOL), then, lambda q: [b.constant(3)], [q])


@case(({"i:0": 0}, [10, 0]), ({"i:0": 1}, [20, 1]), ({"i:0": 2}, [30, 2]), ({"i:0": 9}, [30, 2]))
def switch_n(b: Builder) -> Fetches:
    switch = b.operation(
        "_SwitchN", b.constant(10), b.placeholder("i", INT32), num_outs=3, name="s"
    )
    branches = [b.op("Mul", out, b.constant(n + 1)) for n, out in enumerate(switch.outputs)]
    return b.operation("Merge", branches).outputs


@case(({"p:0": True}, [5, 1]), ({"p:0": False}, [6, 1]))
def a_control_edge_from_a_dead_node_kills(b: Builder) -> Fetches:
    """Of two that do the same the one that waits for a dead node is dead."""
    pivot = b.operation("Switch", b.placeholder("p", BOOL), b.graph.get_tensor_by_name("p:0"))
    yes, no = (b.op("Identity", pivot.outputs[side]) for side in (1, 0))
    five = b.operation("Identity", b.constant(5), after=[yes.op]).outputs[0]
    six = b.operation("Identity", b.constant(6), after=[no.op]).outputs[0]
    merged = b.op("Merge", [six, five])
    behind = b.operation("Identity", b.constant(1), after=[merged.op]).outputs[0]
    return [merged, behind]


@case(({"p:0": True}, [1]), ({"p:0": False}, [1]))
def a_no_op_behind_a_dead_node_is_dead_and_a_merge_behind_it_lives(b: Builder) -> Fetches:
    switch = b.operation("Switch", b.constant(0), b.placeholder("p", BOOL))
    group = b.operation("NoOp", after=[b.op("Identity", switch.outputs[1]).op])
    dead = b.operation("Identity", b.constant(1), after=[group]).outputs[0]
    other = b.operation(
        "Identity", b.constant(1), after=[b.op("Identity", switch.outputs[0]).op]
    ).outputs[0]
    return [b.op("Merge", [dead, other])]


# Loops.


@case(({"p:0": True}, [8]), ({"p:0": False}, [3]))
def a_loop_of_no_turns_and_of_some(b: Builder) -> Fetches:
    limit = b.op("Select", b.placeholder("p", BOOL), b.constant(8), b.constant(0))
    return b.while_loop(
        lambda i, n: b.op("Less", i, n), lambda i, n: [plus(b, i, 1)], [b.constant(3)], [limit]
    )


@case(({"p:0": True}, [10, 5]), ({"p:0": False}, [2, -1]))
def a_cond_whose_branches_both_loop(b: Builder) -> Fetches:
    def loop(limit: int, step: int) -> Callable[..., list[Tensor]]:
        def branch(x: Tensor, y: Tensor) -> list[Tensor]:
            return b.while_loop(
                lambda x, y: b.op("Less", x, b.constant(limit)),
                lambda x, y: [plus(b, x, step), plus(b, y, 1)],
                [x, y],
            )

        return branch

    inputs = [b.constant(0), b.constant(0)]
    p = b.placeholder("p", BOOL)
    return b.cond(p, loop(10, 2), lambda x, y: [plus(b, x, 2), plus(b, y, -1)], inputs)


@case(({"n:0": 0}, [0, 0]), ({"n:0": 5}, [10, 2]), ({"n:0": 6}, [15, 3]))
def a_cond_in_a_loop_that_changes_one_variable(b: Builder) -> Fetches:
    def body(i: Tensor, total: Tensor, odd: Tensor, n: Tensor) -> list[Tensor]:
        is_odd = b.op("Equal", b.op("FloorMod", i, b.constant(2)), b.constant(1))
        (more,) = b.cond(is_odd, lambda o: [plus(b, o, 1)], lambda o: [b.op("Identity", o)], [odd])
        return [plus(b, i, 1), b.op("AddV2", total, i), more]

    start = [b.constant(0), b.constant(0), b.constant(0)]
    n = b.placeholder("n", INT32)
    return b.while_loop(lambda i, t, o, n: b.op("Less", i, n), body, start, [n])[1:]


@case(
    ({"n:0": 3, "m:0": 4}, [12, 3]), ({"n:0": 3, "m:0": 0}, [0, 3]), ({"n:0": 0, "m:0": 9}, [0, 0])
)
def nested_loops_over_one_counter(b: Builder) -> Fetches:
    n, m = b.placeholder("n", INT32), b.placeholder("m", INT32)

    def outer(i: Tensor, total: Tensor, n: Tensor, m: Tensor) -> list[Tensor]:
        _, inner = b.while_loop(
            lambda j, t, m: b.op("Less", j, m),
            lambda j, t, m: [plus(b, j, 1), plus(b, t, 1)],
            [b.constant(0), total],
            [m],
        )
        return [plus(b, i, 1), inner]

    i, total = b.while_loop(
        lambda i, t, n, m: b.op("Less", i, n), outer, [b.constant(0), b.constant(0)], [n, m]
    )
    return [total, i]


@case(({"n:0": 2}, [114]), ({"n:0": 1}, [20]), ({"n:0": 0}, [3]))
def loops_three_deep_with_a_cond_at_the_bottom(b: Builder) -> Fetches:
    n = b.placeholder("n", INT32)

    def twice(inner: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        def loop(x: Tensor, n: Tensor) -> Tensor:
            return b.while_loop(
                lambda i, x, n: b.op("Less", i, n),
                lambda i, x, n: [plus(b, i, 1), inner(x, n)],
                [b.constant(0), x],
                [n],
            )[1]

        return loop

    def bottom(x: Tensor, n: Tensor) -> Tensor:
        large = b.op("Greater", x, b.constant(50))
        return b.cond(
            large,
            lambda x: [plus(b, x, 10)],
            lambda x: [plus(b, b.op("AddV2", x, x), 14)],
            [x],
        )[0]

    return [twice(twice(twice(bottom)))(b.constant(3), n)]


@case(({"x:0": 1.0}, [1024.0, 10]), ({"x:0": 0.0}, [0.0, 10]))
def two_exits_and_an_invariant_made_in_the_loop(b: Builder) -> Fetches:
    two = b.constant(2.0)
    x, i = b.while_loop(
        lambda x, i, two: b.op("Less", i, b.constant(10)),
        lambda x, i, two: [b.op("Mul", x, two), plus(b, i, 1)],
        [b.placeholder("x"), b.constant(0)],
        [two],
    )
    return [x, i]


@case(({"n:0": 3}, [8]), ({"n:0": 0}, [2]))
def only_one_exit_is_fetched_and_the_other_is_not_there(b: Builder) -> Fetches:
    """A loop variable without an Exit: the loop ends nevertheless."""
    n = b.placeholder("n", INT32)
    frame = {"frame_name": "f"}
    i, x = (b.op("Enter", value, **frame) for value in (b.constant(0), b.constant(2)))
    limit = b.op("Enter", n, is_constant=True, **frame)
    heads = [b.operation("Merge", [value, value]) for value in (i, x)]
    b.pivot = heads[0].outputs[0]
    go_on = b.op("LoopCond", b.op("Less", heads[0].outputs[0], limit))
    switches = [b.operation("Switch", head.outputs[0], go_on) for head in heads]
    b.pivot = b.op("Identity", switches[0].outputs[1])
    results = [plus(b, b.pivot, 1), plus(b, switches[1].outputs[1], 2)]
    b.pivot = None
    for head, result in zip(heads, results, strict=True):
        head.update_input(1, b.op("NextIteration", result))
    return [b.op("Exit", switches[1].outputs[0])]


@case(({"n:0": 4}, [4, 10]), ({"n:0": 0}, [0, 10]))
def the_exit_of_an_invariant(b: Builder) -> Fetches:
    """What was led in as a constant may be led out where the loop ends."""
    n, w = b.placeholder("n", INT32), b.constant(10)
    frame = {"frame_name": "f"}
    i = b.op("Enter", b.constant(0), **frame)
    limit, constant = (b.op("Enter", value, is_constant=True, **frame) for value in (n, w))
    head = b.operation("Merge", [i, i])
    b.pivot = head.outputs[0]
    go_on = b.op("LoopCond", b.op("Less", head.outputs[0], limit))
    switch, other = (b.operation("Switch", value, go_on) for value in (head.outputs[0], constant))
    b.pivot = b.op("Identity", switch.outputs[1])
    result = plus(b, b.pivot, 1)
    b.pivot = None
    head.update_input(1, b.op("NextIteration", result))
    return [b.op("Exit", switch.outputs[0]), b.op("Exit", other.outputs[0])]


@case(({"x:0": 5}, [5]))
def enter_and_exit_alone(b: Builder) -> Fetches:
    return [b.op("Exit", enter(b, b.placeholder("x", INT32)))]


@case(({"x:0": 5}, [30]))
def enter_mul_exit(b: Builder) -> Fetches:
    a, c = enter(b, b.placeholder("x", INT32)), enter(b, b.constant(6))
    return [b.op("Exit", b.op("Mul", a, c))]


@case(({"x:0": 5}, [35]))
def frames_in_frames(b: Builder) -> Fetches:
    a = enter(b, b.placeholder("x", INT32), "outer")
    seven = enter(b, enter(b, b.constant(7), "outer", is_constant=True), "inner")
    inside = b.op("Mul", enter(b, a, "inner"), seven)
    return [b.op("Exit", b.op("Exit", inside))]


@case(({"n:0": 3}, [3, 103]), ({"n:0": 0}, [0, 100]))
def a_control_edge_in_the_body(b: Builder) -> Fetches:
    """What stands at the end of a turn waits for what the turn does beside it."""

    def body(i: Tensor, x: Tensor, n: Tensor) -> list[Tensor]:
        more = plus(b, x, 1)
        return [b.operation("Identity", plus(b, i, 1), after=[more.op]).outputs[0], more]

    start = [b.constant(0), b.constant(100)]
    n = b.placeholder("n", INT32)
    return b.while_loop(lambda i, x, n: b.op("Less", i, n), body, start, [n])


@case(({"n:0": 4}, [[0, 1, 4, 9]]), ({"n:0": 0}, [[5, 5, 5, 5]]))
def a_tensor_array_that_a_loop_reads_and_one_that_it_writes(b: Builder) -> Fetches:
    indices, n = b.constant(np.arange(4, dtype=np.int32)), b.placeholder("n", INT32)
    source, target = (
        b.operation("TensorArrayV3", b.constant(4), dtype=INT32, element_shape=[]) for _ in range(2)
    )
    full = b.op("TensorArrayScatterV3", source.outputs[0], indices, indices, source.outputs[1])
    fives = b.constant(np.full(4, 5, np.int32))

    def body(i: Tensor, flow: Tensor, n: Tensor, read: Tensor, full: Tensor, write: Tensor) -> Any:
        value = b.op("TensorArrayReadV3", read, i, full, dtype=INT32)
        square = b.op("Mul", value, value)
        return [plus(b, i, 1), b.op("TensorArrayWriteV3", write, i, square, flow)]

    count, flow = b.while_loop(
        lambda i, flow, n, *rest: b.op("Less", i, n),
        body,
        [b.constant(0), target.outputs[1]],
        [n, source.outputs[0], full, target.outputs[0]],
    )

    def gather(flow: Tensor, handle: Tensor, indices: Tensor, fives: Tensor) -> list[Tensor]:
        return [b.op("TensorArrayGatherV3", handle, indices, flow, dtype=INT32)]

    inputs = [flow, target.outputs[0], indices, fives]
    some = b.op("Greater", count, b.constant(0))
    return b.cond(some, gather, lambda f, h, i, fives: [b.op("Identity", fives)], inputs)


@case(({"n:0": 5}, [15]), ({"n:0": 1}, [1]), ({"n:0": 0}, [0]))
def a_stack_that_one_loop_pushes_and_another_pops(b: Builder) -> Fetches:
    n = b.placeholder("n", INT32)
    stack = b.op("StackV2", b.constant(-1), elem_type=INT32)

    def push(i: Tensor, n: Tensor, stack: Tensor) -> list[Tensor]:
        more = plus(b, i, 1)
        pushed = b.op("StackPushV2", stack, more)
        return [b.operation("Identity", more, after=[pushed.op]).outputs[0]]

    def pop(i: Tensor, total: Tensor, stack: Tensor) -> list[Tensor]:
        # Nothing else would keep the Pop from being run in the last turn, which is dead.
        value = b.operation("StackPopV2", stack, after=[i.op], elem_type=INT32).outputs[0]
        return [plus(b, i, -1), b.op("AddV2", total, value)]

    (count,) = b.while_loop(lambda i, n, s: b.op("Less", i, n), push, [b.constant(0)], [n, stack])
    _, total = b.while_loop(
        lambda i, t, s: b.op("Greater", i, b.constant(0)), pop, [count, b.constant(0)], [stack]
    )
    return [total]


@case(({"n:0": 3}, [3, [3, 3]]), ({"n:0": 0}, [0, [0, 0]]))
def a_reference_variable_that_a_loop_updates(b: Builder) -> Fetches:
    variable = b.op("Variable", shape=[2], dtype=INT32, name="v")
    init = b.operation("Assign", variable, b.constant(np.zeros(2, np.int32)))
    ref = b.operation("RefIdentity", variable, after=[init]).outputs[0]
    n = b.operation("Identity", b.placeholder("n", INT32), after=[init]).outputs[0]

    def body(i: Tensor, n: Tensor, ref: Tensor) -> list[Tensor]:
        added = b.operation("AssignAdd", ref, b.constant(np.ones(2, np.int32)))
        return [b.operation("Identity", plus(b, i, 1), after=[added]).outputs[0]]

    frame = {"frame_name": "f"}
    i, limit = b.op("Enter", b.constant(0), **frame), b.op("Enter", n, is_constant=True, **frame)
    inside = b.op("RefEnter", ref, is_constant=True, **frame)
    head = b.operation("Merge", [i, i])
    b.pivot = head.outputs[0]
    switch = b.operation(
        "Switch", head.outputs[0], b.op("LoopCond", b.op("Less", head.outputs[0], limit))
    )
    b.pivot = b.op("Identity", switch.outputs[1])
    (result,) = body(b.pivot, limit, inside)
    b.pivot = None
    head.update_input(1, b.op("NextIteration", result))
    count = b.op("Exit", switch.outputs[0])
    return [count, b.operation("Identity", variable, after=[count.op]).outputs[0]]


@case(({"p:0": True}, [3.0, 0]), ({"p:0": False}, [2.0, 1]))
def ref_switch_and_ref_merge(b: Builder) -> Fetches:
    variable = b.op("Variable", shape=[], dtype=FLOAT, name="v")
    start = b.op("Assign", variable, b.constant(1.0))
    switch = b.operation("RefSwitch", start, b.placeholder("p", BOOL))
    more = b.op("AssignAdd", switch.outputs[1], b.constant(2.0))
    twice = b.op("AssignAdd", switch.outputs[0], b.constant(1.0))
    merge = b.operation("RefMerge", [more, twice])
    return [b.op("Identity", merge.outputs[0]), merge.outputs[1]]


@case(({"i:0": 0}, [[10]]), ({"i:0": 2}, [[30]]))
def ref_select(b: Builder) -> Fetches:
    variables = []
    for number in range(3):
        variable = b.op("Variable", shape=[1], dtype=INT32, name=f"v{number}")
        value = b.constant(np.array([10 * (number + 1)], np.int32))
        variables.append(b.op("Assign", variable, value))
    return [b.op("Identity", b.op("RefSelect", b.placeholder("i", INT32), variables))]


@case(({"x:0": 1.0}, [10.0]), ({"x:0": 20.0}, [20.0]))
def a_condition_with_a_loop_of_its_own(b: Builder) -> Fetches:
    """x goes on while a loop inside the condition counts less than it."""

    def go_on(x: Tensor) -> Tensor:
        (counted,) = b.while_loop(
            lambda j, x: b.op("LogicalAnd", b.op("Less", j, b.constant(10.0)), b.op("Less", j, x)),
            lambda j, x: [plus(b, j, 1.0)],
            [b.constant(0.0)],
            [x],
        )
        return b.op("Less", counted, b.constant(10.0))

    return b.while_loop(go_on, lambda x: [plus(b, x, 1.0)], [b.placeholder("x")])


@case(({"x:0": 3, "Switch:1": 100, "p:0": True}, [101]))
def what_is_fed_inside_a_branch_replaces_the_switch(b: Builder) -> Fetches:
    p = b.placeholder("p", BOOL)
    switch = b.operation("Switch", b.placeholder("x", INT32), p, name="Switch")
    return [b.op("Merge", [plus(b, switch.outputs[1], 1), b.op("Neg", switch.outputs[0])])]


@case(({"Exit:0": 9, "n:0": 3}, [10]))
def what_is_fed_for_an_exit_replaces_the_loop(b: Builder) -> Fetches:
    (result,) = b.while_loop(
        lambda i, n: b.op("Less", i, n),
        lambda i, n: [plus(b, i, 1)],
        [b.constant(0)],
        [b.placeholder("n", INT32)],
    )
    return [plus(b, result, 1)]


@case(({"s:0": b"ab"}, [b"abxxx"]), ({"s:0": b"abcdef"}, [b"abcdef"]))
def a_loop_over_strings(b: Builder) -> Fetches:
    return b.while_loop(
        lambda s: b.op("Less", b.op("StringLength", s), b.constant(5)),
        lambda s: [
            b.op(
                "StringJoin",
                [
                    s,
                    b.operation(
                        "Const", after=[s.op], dtype=STRING, value=np.array(b"x", object)
                    ).outputs[0],
                ],
            )
        ],
        [b.placeholder("s", STRING)],
    )


@case(({"n:0": 6}, [8, 13]), ({"n:0": 0}, [0, 1]))
def variables_that_change_places(b: Builder) -> Fetches:
    """The numbers of Fibonacci."""
    start = [b.constant(0), b.constant(0), b.constant(1)]
    _, x, y = b.while_loop(
        lambda i, x, y, n: b.op("Less", i, n),
        lambda i, x, y, n: [plus(b, i, 1), b.op("Identity", y), b.op("AddV2", x, y)],
        start,
        [b.placeholder("n", INT32)],
    )
    return [x, y]


@case(({"x:0": np.ones((1, 1), np.float32)}, [8]))
def a_shape_that_grows_with_the_turns(b: Builder) -> Fetches:
    (grown,) = b.while_loop(
        lambda x: b.op("Less", b.op("Size", x), b.constant(8)),
        lambda x: [b.op("ConcatV2", [x, x], b.constant(0))],
        [b.placeholder("x")],
    )
    return [b.op("Size", grown)]


@case(({"p:0": True}, [0.0]), ({"p:0": False}, [-1.0]))
def a_loop_that_is_dead_has_dead_exits(b: Builder) -> Fetches:
    p = b.placeholder("p", BOOL)

    def loop(x: Tensor) -> list[Tensor]:
        return b.while_loop(
            lambda x: b.op("Greater", x, b.constant(0.0)), lambda x: [plus(b, x, -1.0)], [x]
        )

    return b.cond(p, loop, lambda x: [b.constant(-1.0)], [b.constant(5.0)])


@case(({"n:0": 7}, [7, 21]), ({"n:0": 0}, [0, 0]))
def a_next_iteration_that_is_dead_in_the_last_turn_only(b: Builder) -> Fetches:
    start = [b.constant(0), b.constant(0)]
    n = b.placeholder("n", INT32)
    return b.while_loop(
        lambda i, x, n: b.op("Less", i, n),
        lambda i, x, n: [plus(b, i, 1), b.op("AddV2", x, i)],
        start,
        [n],
        parallel_iterations=1,
    )


@pytest.mark.parametrize("executor", ["DATAFLOW", "", "threads"])
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_tensorflow(name: str, executor: str) -> None:
    build, runs = CASES[name]
    for feeds, expected in runs:
        b = Builder()
        fetches = build(b)
        options = {"inter_op_threads": 2} if executor == "threads" else {}
        found = b.run(fetches, feeds, executor.removeprefix("threads"), **options)
        for value, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(value, wanted)


def refused_frames(b: Builder) -> Fetches:
    """A sum of a value in a loop and one outside."""
    x = b.placeholder("x", INT32)
    return [b.op("Exit", b.op("AddV2", enter(b, x), x))]


def refused_control_edge(b: Builder) -> Fetches:
    """A node in a loop that waits for one outside."""
    x = b.placeholder("x", INT32)
    outside = b.op("Neg", x)
    inside = b.operation("Identity", enter(b, x), after=[outside.op]).outputs[0]
    return [b.op("Exit", inside)]


def refused_dead_fetch(b: Builder) -> Fetches:
    switch = b.operation("Switch", b.placeholder("x", INT32), b.constant(True))
    return [b.op("Neg", switch.outputs[0])]


def refused_frame_with_two_parents(b: Builder) -> Fetches:
    x = b.placeholder("x", INT32)
    a, c = enter(b, x, "f"), enter(b, enter(b, x, "g"), "f")
    return [b.op("Exit", a), b.op("Exit", b.op("Exit", c))]


def refused_loop_with_two_conditions(b: Builder) -> Fetches:
    (result,) = b.while_loop(
        lambda i: b.op("LoopCond", b.op("Less", i, b.constant(3))),
        lambda i: [plus(b, i, 1)],
        [b.placeholder("x", INT32)],
    )
    return [result]


def refused_exit_outside(b: Builder) -> Fetches:
    return [b.op("Exit", b.placeholder("x", INT32))]


REFUSED = {
    refused_frames: "INVALID_ARGUMENT",
    refused_control_edge: "INVALID_ARGUMENT",
    refused_dead_fetch: "INVALID_ARGUMENT",
    refused_frame_with_two_parents: "INTERNAL",
    refused_loop_with_two_conditions: "INVALID_ARGUMENT",
    refused_exit_outside: "INVALID_ARGUMENT",
}
"""What builds a graph that TensorFlow refuses, and the status that it has for it."""


@pytest.mark.parametrize("executor", ["DATAFLOW", ""])
@pytest.mark.parametrize("build", REFUSED)
def test_what_tensorflow_refuses_is_refused(build: Any, executor: str) -> None:
    b = Builder()
    fetches = build(b)
    with pytest.raises(OpError) as caught:
        b.run(fetches, {"x:0": 1}, executor)
    assert caught.value.code.name == REFUSED[build]
