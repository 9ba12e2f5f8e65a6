"""Loops and conditionals of TensorFlow 1 become While and If.

The forms are those of TensorFlow's compiler/tf2xla/functionalize_control_flow_test.cc.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.optimization.control_flow.functionalizing import (
    all_ops,
    check,
    control_flow,
    functionalized,
    run,
)
from tests.optimization.control_flow.random_program import blocks, evaluate, grow
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel.errors import OpError
from opkernel.optimization import Grouping, optimize_graph
from opkernel.proto import NameAttrList


def test_a_loop_of_one_variable():
    b = Builder()
    n = b.placeholder("n", INT32)
    (last,) = b.while_loop(
        lambda i: b.op("Less", i, b.constant(10)), lambda i: [b.op("AddV2", i, b.constant(1))], [n]
    )
    y = b.op("Identity", last)
    for start, end in ((0, 10), (7, 10), (42, 42)):
        graph = check(b, [y], [n], [start], [end])
    assert all_ops(graph).count("StatelessWhile") == 1
    (loop,) = [op for op in graph.operations if op.type == "StatelessWhile"]
    assert loop.attr["parallel_iterations"].i == 10


def test_a_loop_takes_what_all_its_turns_share_and_gives_it_back():
    b = Builder()
    n, x = b.placeholder("n", INT32), b.placeholder("x")
    large = b.constant(np.arange(1000), "f4")
    _, total = b.while_loop(
        lambda i, s, w, n, x: b.op("Less", i, n),
        lambda i, s, w, n, x: [
            b.op("AddV2", i, b.constant(1)),
            b.op("AddV2", b.op("Mul", s, x), w),
        ],
        [b.constant(0), large],
        [large, n, x],
    )
    start = np.arange(1000, dtype="f4")
    wanted = ((start * 2 + start) * 2 + start) * 2 + start
    graph = check(b, [total], [n, x], [3, 2.0], [wanted])
    (loop,) = [op for op in graph.operations if op.type == "StatelessWhile"]
    assert (
        len(loop.inputs) == 5
    )  # the large constant is an argument, the first zero of a variable, too
    body = graph.graph.function_library[loop.attr["body"].func.name]
    assert all(len(node.attr["value"].tensor.tensor_content) < 1000 for node in body.node_def)


def test_a_loop_in_a_loop_with_conditionals():
    """Doubles or increments x, as often as the outer turn says."""
    b = Builder()
    n = b.placeholder("n", INT32)
    one, two = (lambda: b.constant(1)), (lambda: b.constant(2))

    def inner_turn(j, x, i):
        is_odd = b.op("Equal", b.op("FloorMod", x, two()), one())
        x = b.cond(
            is_odd, lambda x: [b.op("AddV2", x, one())], lambda x: [b.op("Mul", x, two())], [x]
        )[0]
        return [b.op("AddV2", j, one()), x]

    def turn(i, x, n):
        _, x = b.while_loop(lambda j, x, i: b.op("Less", j, i), inner_turn, [b.constant(0), x], [i])
        return [b.op("AddV2", i, one()), x]

    i, x = b.while_loop(
        lambda i, x, n: b.op("Less", i, n), turn, [b.constant(0), b.constant(3)], [n]
    )

    def expected(n):
        x = 3
        for i in range(n):
            for _ in range(i):
                x = x + 1 if x % 2 else x * 2
        return x

    for turns in (0, 1, 4):
        graph = check(b, [i, x], [n], [turns], [turns, expected(turns)])
    assert all_ops(graph).count("StatelessWhile") == 2
    assert all_ops(graph).count("StatelessIf") == 1


def test_a_conditional():
    b = Builder()
    x, y = b.placeholder("x", INT32), b.placeholder("y", INT32)
    less = b.op("Less", y, x)
    (z,) = b.cond(
        less,
        lambda x, y: [b.op("Mul", x, b.constant(17))],
        lambda x, y: [b.op("AddV2", y, b.constant(23))],
        [x, y],
    )
    for numbers, answer in (((2, 1), 34), ((1, 2), 25)):
        graph = check(b, [z], [x, y], numbers, [answer])
    assert all_ops(graph) == ["AddV2", "IdentityN", "Less", "Mul", "StatelessIf"]


def test_a_conditional_whose_other_side_takes_no_data():
    b = Builder()
    p, x = b.placeholder("p", BOOL), b.placeholder("x")
    (y,) = b.cond(p, lambda x: [x], lambda x: [b.constant(-1.0)], [x])
    z = b.op("Neg", y)
    check(b, [z], [p, x], [True, 3.0], [-3.0])
    check(b, [z], [p, x], [False, 3.0], [1.0])


def test_conditionals_of_one_choice_are_one_unless_one_needs_the_other():
    b = Builder()
    p, x = b.placeholder("p", BOOL), b.placeholder("x")
    then, otherwise = (lambda x: [b.op("Neg", x)]), (lambda x: [b.op("Square", x)])
    first, second = b.cond(p, then, otherwise, [x])[0], b.cond(p, otherwise, then, [x])[0]
    third = b.cond(p, then, otherwise, [b.op("AddV2", first, second)])[0]
    graph = check(b, [third], [p, x], [True, 3.0], [-6.0])
    check(b, [third], [p, x], [False, 3.0], [36.0])
    assert all_ops(graph).count("StatelessIf") == 2


def test_conditionals_that_need_each_other_crosswise_do_not_close_a_cycle():
    b = Builder()
    p, q, x = b.placeholder("p", BOOL), b.placeholder("q", BOOL), b.placeholder("x")
    then, otherwise = (lambda x: [b.op("Neg", x)]), (lambda x: [b.op("Square", x)])
    p1, q1 = b.cond(p, then, otherwise, [x])[0], b.cond(q, then, otherwise, [x])[0]
    q2, p2 = b.cond(q, otherwise, then, [p1])[0], b.cond(p, otherwise, then, [q1])[0]
    check(b, [q2, p2], [p, q, x], [True, False, 3.0], [3.0, 81.0])


def test_where_a_merge_has_its_value_from():
    b = Builder()
    p, x = b.placeholder("p", BOOL), b.placeholder("x")
    switch = b.operation("Switch", x, p)
    merge = b.operation("Merge", [b.op("Neg", switch.outputs[0]), switch.outputs[1]])
    place = b.op("AddV2", merge.outputs[1], b.constant(10))
    check(b, [merge.outputs[0], place], [p, x], [True, 3.0], [3.0, 11])
    check(b, [merge.outputs[0], place], [p, x], [False, 3.0], [-3.0, 10])


def test_a_choice_of_three_becomes_a_case():
    b = Builder()
    i, x = b.placeholder("i", INT32), b.placeholder("x")
    switch = b.operation("_SwitchN", x, i, name="choice", num_outs=3)
    sides = [b.op(op, switch.outputs[n]) for n, op in enumerate(["Neg", "Square", "Identity"])]
    y = b.op("Merge", sides)
    for index, answer in ((0, -3.0), (1, 9.0), (2, 3.0), (7, 3.0), (-1, 3.0)):
        graph = check(b, [y], [i, x], [index, 3.0], [answer])
    assert "StatelessCase" in all_ops(graph)


def test_a_merge_and_an_exit_that_are_fetched_keep_their_names():
    b = Builder()
    p, x = b.placeholder("p", BOOL), b.placeholder("x")
    (y,) = b.cond(p, lambda x: [b.op("Neg", x)], lambda x: [x], [x])
    _, z = b.while_loop(
        lambda i, x: b.op("Less", i, b.constant(2)),
        lambda i, x: [b.op("AddV2", i, b.constant(1)), b.op("Square", x)],
        [b.constant(0), x],
    )
    graph = check(b, [y, z], [p, x], [True, 3.0], [-3.0, 81.0])
    assert [tensor.op.type for tensor in graph.fetches] == ["IdentityN", "Identity"]
    assert [tensor.op.name for tensor in graph.fetches] == [y.op.name, z.op.name]


def counter(b):
    """A variable that is 0 at first, and what sets it to 0."""
    handle = b.op("VarHandleOp", dtype=FLOAT, shape=[], shared_name="v")
    return handle, b.operation("AssignVariableOp", handle, b.constant(0.0), dtype=FLOAT)


def counted(b, handle, x):
    """Count the variable up, and then pass `x` on."""
    add = b.operation("AssignAddVariableOp", handle, b.constant(1.0), dtype=FLOAT, after=[x.op])
    return b.operation("Identity", x, after=[add]).outputs[0]


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_effects_of_turns_happen_as_often_as_before(turns):
    b = Builder()
    handle, start = counter(b)
    n = b.placeholder("n", INT32)
    first = b.operation("Identity", b.constant(0), after=[start]).outputs[0]
    (i,) = b.while_loop(
        lambda i, n, handle: b.op("Less", i, n),
        lambda i, n, handle: [b.op("AddV2", counted(b, handle, i), b.constant(1))],
        [first],
        [n, handle],
    )
    read = b.operation("ReadVariableOp", handle, dtype=FLOAT, after=[i.op])
    graph = check(b, [i, read.outputs[0]], [n], [turns], [turns, turns])
    assert "While" in all_ops(graph)


def test_effects_of_the_condition_happen_once_more_than_those_of_the_body():
    b = Builder()
    handle, start = counter(b)
    first = b.operation("Identity", b.constant(0), after=[start]).outputs[0]
    (i,) = b.while_loop(
        lambda i, handle: b.op("Less", counted(b, handle, i), b.constant(3)),
        lambda i, handle: [b.op("AddV2", i, b.constant(1))],
        [first],
        [handle],
    )
    read = b.operation("ReadVariableOp", handle, dtype=FLOAT, after=[i.op])
    check(b, [i, read.outputs[0]], [], [], [3, 4.0])


@pytest.mark.parametrize("taken", [True, False])
def test_effects_of_a_branch_happen_where_it_is_taken(taken):
    b = Builder()
    handle, start = counter(b)
    p = b.placeholder("p", BOOL)
    choice = b.operation("Identity", p, after=[start]).outputs[0]
    (x,) = b.cond(
        choice,
        lambda handle: [counted(b, handle, b.constant(1.0))],
        lambda handle: [b.constant(2.0)],
        [handle],
    )
    read = b.operation("ReadVariableOp", handle, dtype=FLOAT, after=[x.op])
    graph = check(b, [x, read.outputs[0]], [p], [taken], [2.0 - taken, float(taken)])
    assert "If" in all_ops(graph)


def odd_forms():
    """Graphs whose control flow stays: for each the fetches, and what they are."""

    def loop(b, **attrs):
        return b.while_loop(
            lambda i: b.op("Less", i, b.constant(3)),
            lambda i: [b.op("AddV2", i, b.constant(1), **attrs)],
            [b.constant(0)],
        )

    def a_dead_tensor_is_not_merged(b):
        p = b.placeholder("p", BOOL)
        switch = b.operation("Switch", b.constant(3.0), p)
        both = b.op("AddV2", switch.outputs[1], b.constant(1.0))
        return [b.op("Merge", [both, b.op("Neg", both)])], [p], [True], [4.0]

    def a_branch_is_fetched_with_an_effect(b):
        p = b.placeholder("p", BOOL)
        handle, start = counter(b)
        choice = b.operation("Identity", p, after=[start]).outputs[0]
        made = []

        def then(handle):
            made.append(counted(b, handle, b.constant(1.0)))
            return made[:]

        (x,) = b.cond(choice, then, lambda handle: [b.constant(2.0)], [handle])
        return [x, b.op("Neg", made[0])], [p], [True], [1.0, -1.0]

    def an_effect_before_the_test_is_needed_behind_it(b):
        handle, start = counter(b)
        first = b.operation("Identity", b.constant(0), after=[start]).outputs[0]
        shared = []

        def go_on(i, handle):
            shared.append(counted(b, handle, i))
            return b.op("Less", shared[0], b.constant(3))

        (i,) = b.while_loop(
            go_on, lambda i, handle: [b.op("AddV2", shared[0], b.constant(1))], [first], [handle]
        )
        return [i], [], [], [3]

    def an_operation_runs_as_the_loop_ends(b):
        (i,) = loop(b)
        i.op.update_input(0, b.op("Neg", i.op.inputs[0]))
        return [i], [], [], [-3]

    def random_numbers_with_a_seed(b):
        shape = b.constant(np.array([2]), "i4")
        attrs = {"seed": 3, "seed2": 5, "dtype": FLOAT}
        _, x = b.while_loop(
            lambda i, x, shape: b.op("Less", i, b.constant(2)),
            lambda i, x, shape: [
                b.op("AddV2", i, b.constant(1)),
                b.op("AddV2", x, b.op("RandomUniform", shape, **attrs)),
            ],
            [b.constant(0), b.constant([0, 0], "f4")],
            [shape],
        )
        return [b.op("Floor", b.op("Mul", x, b.constant(0.1)))], [], [], [[0.0, 0.0]]

    return [value for name, value in locals().items() if name != "loop"]


@pytest.mark.parametrize("make", odd_forms(), ids=lambda make: make.__name__)
def test_odd_forms_stay(make):
    b = Builder()
    fetches, feeds, values, wanted = make(b)
    graph = functionalized(b, fetches, feeds)
    assert control_flow(graph)
    for found in (b.run(fetches, dict(zip(feeds, values, strict=True))), run(graph, values)):
        np.testing.assert_equal(found, wanted)


def test_a_loop_of_odd_form_leaves_others_alone():
    """What is fetched inside of a loop is that of its last turn; a loop beside it and one in it become While."""
    b = Builder()
    inside = []

    def turn(i):
        _, x = b.while_loop(
            lambda j, x: b.op("Less", j, b.constant(2)),
            lambda j, x: [b.op("AddV2", j, b.constant(1)), b.op("AddV2", x, x)],
            [b.constant(0), i],
        )
        inside.append(x)
        return [b.op("AddV2", i, b.constant(1))]

    (odd,) = b.while_loop(lambda i: b.op("Less", i, b.constant(3)), turn, [b.constant(0)])
    del inside[:]
    (plain,) = b.while_loop(
        lambda i: b.op("Less", i, b.constant(5)),
        lambda i: [b.op("AddV2", i, b.constant(2))],
        [b.constant(0)],
    )
    odd.op.update_input(0, b.op("Neg", odd.op.inputs[0]))
    graph = functionalized(b, [odd, plain])
    assert run(graph) == [-3, 6] == b.run([odd, plain])
    assert control_flow(graph).count("LoopCond") == 1


def test_functions_are_looked_into():
    """A function with a conditional, called by a function that a loop calls."""
    b = Builder()
    n = b.placeholder("n", INT32)
    step = define(
        b,
        "step",
        [INT32],
        lambda g, i: g.cond(
            g.op("Less", i, g.constant(4)),
            lambda i: [g.op("AddV2", i, g.constant(1))],
            lambda i: [g.op("AddV2", i, g.constant(10))],
            [i],
        ),
    )
    turn = define(
        b, "turn", [INT32], lambda g, i: [g.op("PartitionedCall", [i], f=step, Tout=[INT32])]
    )
    go_on = define(b, "go_on", [INT32], lambda g, i: [g.op("Less", i, g.constant(6))])
    loop = b.op("StatelessWhile", [n], cond=go_on, body=turn, T=[INT32])
    graph = check(b, [loop], [n], [0], [14])
    assert all_ops(graph).count("StatelessIf") == 1


def test_a_function_that_is_missing_is_left_for_the_step_to_miss():
    b = Builder()
    x = b.placeholder("x")
    (y,) = b.cond(b.placeholder("p", BOOL), lambda x: [b.op("Neg", x)], lambda x: [x], [x])
    call = b.operation("PartitionedCall", [y], f=NameAttrList(name="nowhere"), Tout=[FLOAT])
    graph = functionalized(b, [call.outputs[0]], [x])
    assert control_flow(graph) == []


def test_gradients_of_loops():
    """y = x * 2 ** n by a loop that squares the gradient's path with a list of the values of all turns."""
    b = Builder()
    x, n = b.placeholder("x"), b.placeholder("n", INT32)
    _, y = b.while_loop(
        lambda i, y, n: b.op("Less", i, n),
        lambda i, y, n: [b.op("AddV2", i, b.constant(1)), b.op("Square", y)],
        [b.constant(0), x],
        [n],
    )
    (dx,) = opkernel.gradients([y], [x])
    graph = check(b, [y, dx], [x, n], [1.5, 3], [1.5**8, 8 * 1.5**7])
    assert all_ops(graph).count("StatelessWhile") + all_ops(graph).count("While") == 2


def test_stacks_that_one_loop_fills_and_another_empties():
    """As TensorFlow's gradients of loops do: a ControlTrigger waits for what was pushed."""
    b = Builder()
    x = b.placeholder("x")
    stack = b.op("StackV2", b.constant(-1), elem_type=FLOAT, stack_name="s")

    def push(i, x, stack):
        pushed = b.operation("StackPushV2", stack, x, T=FLOAT, after=[i.op])
        sync = b.operation("ControlTrigger", after=[pushed])
        i = b.operation("AddV2", i, b.constant(1), after=[sync]).outputs[0]
        return [i, b.op("Square", x)]

    def pop(i, grad, stack):
        value = b.operation("StackPopV2", stack, elem_type=FLOAT, after=[i.op]).outputs[0]
        i = b.operation("AddV2", i, b.constant(1), after=[value.op]).outputs[0]
        return [i, b.op("Mul", grad, b.op("AddV2", value, value))]

    def go_on(i, x, stack):
        return b.op("Less", i, b.constant(3))

    _, y = b.while_loop(go_on, push, [b.constant(0), x], [stack])
    first = b.operation("Identity", b.constant(0), after=[y.op]).outputs[0]
    _, dx = b.while_loop(go_on, pop, [first, b.constant(1.0)], [stack])
    graph = functionalized(b, [y, dx], [x])
    assert run(graph, [1.5]) == pytest.approx([1.5**8, 8 * 1.5**7])
    assert control_flow(graph) == ["ControlTrigger"]
    assert all_ops(graph).count("While") == 2


def test_it_does_nothing_where_no_compiler_takes_loops():
    b = Builder()
    (i,) = b.while_loop(
        lambda i: b.op("Less", i, b.constant(3)),
        lambda i: [b.op("AddV2", i, b.constant(1))],
        [b.constant(0)],
    )
    graph = optimize_graph(b.graph, [i], passes={"functionalize_control_flow"})
    assert any(op.type == "LoopCond" for op in graph.operations)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_programs_have_the_values_that_python_computes(data):
    block = data.draw(blocks(data.draw(st.integers(1, 3)), 2))
    values = data.draw(st.lists(st.integers(0, 96), min_size=3, max_size=3))
    b = Builder()
    feeds = [b.placeholder(name, INT32) for name in "xyz"]
    fetches = [b.op("Identity", tensor) for tensor in grow(b, block, feeds)]
    check(b, fetches, feeds, values, evaluate(block, values))


_ANYWHERE = ("AddV2", "Exit", "FloorMod", "Identity", "Less", "Merge", "Switch")


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_is_fetched_and_fed_anywhere_is_the_same_or_fails_in_the_same_way(data):
    block = data.draw(blocks(2, 2))
    b = Builder()
    feeds = [b.placeholder(name, INT32) for name in "xyz"]
    fetches = [b.op("Identity", tensor) for tensor in grow(b, block, feeds)]
    ops = [op for op in b.graph.get_operations() if op.type in _ANYWHERE]
    fetches += [op.outputs[0] for op in data.draw(st.lists(st.sampled_from(ops), max_size=3))]
    numbers = [op for op in ops if op.type in ("Exit", "FloorMod", "Merge")]
    if numbers and data.draw(st.booleans()):
        feeds.append(data.draw(st.sampled_from(numbers)).outputs[0])
    values = [5] * len(feeds)
    graph = functionalized(b, fetches, feeds)
    with opkernel.Session(b.graph, executor_type="DATAFLOW") as session:
        wanted = outcome(lambda: session.run(fetches, dict(zip(feeds, values, strict=True))))
    assert outcome(lambda: run(graph, values)) == wanted
    assert outcome(lambda: run(graph, values, "DATAFLOW")) == wanted


def outcome(step):
    """The values of a step, or the kind of error that it raises."""
    try:
        return [int(value) for value in step()]
    except OpError as error:
        return type(error)


def test_a_variable_that_grows_has_no_shape_of_its_first_turn():
    """Passes take the shape of a result for granted."""
    b = Builder()
    with b.graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [1], name="x")
    _, grown = b.while_loop(
        lambda i, a: b.op("Less", i, b.constant(3)),
        lambda i, a: [b.op("AddV2", i, b.constant(1)), b.op("ConcatV2", [a, a], b.constant(0))],
        [b.constant(0), x],
    )
    graph = functionalized(b, [b.op("Size", grown)], [x])
    graph.run_passes(Grouping)
    assert control_flow(graph) == []
    assert run(graph, [np.zeros(1, np.float32)]) == [8]
