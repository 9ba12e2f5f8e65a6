"""Gradients through loops of TensorFlow 1, against finite differences; conditionals in such loops."""

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, raw_ops
from opkernel.errors import UnimplementedError
from opkernel.graph import get_default_graph
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.proto import ConfigProto

X, W = np.random.default_rng(0).uniform(-1, 1, (2, 2, 2))


class FrameLoop:
    """A loop in the making: `variables` are the values of a turn, `results` those after the last.

    Attributes:
        constant: lets a tensor from outside into all turns.
    """

    numbers = iter(range(10**6))

    def __init__(self, condition, body, *first):
        self.name = f"frame_{next(self.numbers)}"
        self.merges = [raw_ops.Merge(inputs=[e, e]) for e in [self._enter(f) for f in first]]
        values = [merge.output for merge in self.merges]
        again = raw_ops.LoopCond(input=condition(self, *values))
        switches = [raw_ops.Switch(data=value, pred=again) for value in values]
        self.variables = [raw_ops.Identity(input=switch.output_true) for switch in switches]
        following = body(self, *self.variables)
        for merge, value in zip(self.merges, following, strict=True):
            merge.output.op.update_input(1, raw_ops.NextIteration(data=value))
        self.results = [raw_ops.Exit(data=switch.output_false) for switch in switches]

    def _enter(self, tensor, is_constant=False):
        return raw_ops.Enter(data=tensor, frame_name=self.name, is_constant=is_constant)

    def constant(self, tensor):
        return self._enter(tensor, is_constant=True)


def beside(tensor, value):
    """A constant in the loop, and on the branch, that a tensor is in."""
    with get_default_graph().control_dependencies([tensor.op]):
        return opkernel.constant(value)


def counted(turns, turn, *first):
    """The loop variables after some turns of `turn(loop, number, *variables)`."""

    def body(loop, i, *variables):
        return i + beside(i, 1), *turn(loop, i, *variables)

    loop = FrameLoop(lambda loop, i, *_: i < beside(i, turns), body, beside(first[0], 0), *first)
    return loop.results[1:]


def choice(predicate, then, otherwise, *tensors):
    """One of two branches, as functions of the tensors that they use."""
    sides = [raw_ops.Switch(data=tensor, pred=predicate) for tensor in tensors]
    when_true = then(*[side.output_true for side in sides])
    when_false = otherwise(*[side.output_false for side in sides])
    return raw_ops.Merge(inputs=[when_false, when_true]).output


def tanh(x):
    return raw_ops.Tanh(x=x)


def sin(x):
    return raw_ops.Sin(x=x)


def invariant(x, w):
    return counted(4, lambda loop, i, a: [tanh(a @ loop.constant(w))], x)[0]


def without_turns(x, w):
    return counted(0, lambda loop, i, a: [tanh(a @ loop.constant(w))], x)[0] @ w


def several_results(x, w):
    def turn(loop, i, a, b, c):
        return tanh(a @ c) + b, sin(b) * c, c

    a, b, c = counted(3, turn, x, w, w)
    return a * b + c


def result_used_twice(x, w):
    (a,) = counted(2, lambda loop, i, a: [tanh(a @ loop.constant(w))], x)
    return a * sin(a)


def nested(x, w):
    def turn(loop, i, a):
        rows = loop.constant(w)
        (b,) = counted(2, lambda inner, j, b: [sin(b @ inner.constant(rows)) * b], a)
        return [b + tanh(a * rows)]

    return counted(3, turn, x)[0]


def conditional_inside(x, w):
    def turn(loop, i, a):
        is_even = raw_ops.Equal(x=raw_ops.FloorMod(x=i, y=beside(i, 2)), y=beside(i, 0))
        return [
            choice(
                is_even,
                lambda a, w: tanh(a @ w) * a,
                lambda a, w: sin(a) * raw_ops.Exp(x=w) + beside(a, np.float64(2)),
                a,
                loop.constant(w),
            )
        ]

    return counted(4, turn, x)[0]


def loop_in_conditional(x, w):
    def repeated(a, w):
        return counted(2, lambda loop, i, b: [tanh(b @ loop.constant(w))], a)[0]

    def turn(loop, i, a):
        is_first = raw_ops.Equal(x=i, y=beside(i, 0))
        return [choice(is_first, repeated, lambda a, w: sin(a) * w, a, loop.constant(w))]

    return counted(3, turn, x)[0]


def functional_control_flow_inside(x, w):
    def turn(loop, i, a):
        rows = loop.constant(w)

        def again(j, b):
            return j + 1, tanh(b @ rows)

        b = opkernel.while_loop(lambda j, _: j < i, again, (beside(i, 0), a))[1]
        return [opkernel.cond(i < beside(i, 2), lambda: b * b, lambda: sin(b) * rows)]

    return counted(3, turn, x)[0]


def values_decide(x, w):
    def condition(loop, a, b):
        return raw_ops.Sum(input=a * a, axis=beside(a, [0, 1])) < beside(a, np.float64(9))

    def body(loop, a, b):
        return a + raw_ops.Abs(x=b), sin(b) * a + b

    return FrameLoop(condition, body, x, w).results[0]


def computed_with_the_condition(x, w):
    """The body uses what the condition has computed, which it does once more than the body."""
    squares = []

    def condition(loop, i, a):
        squares.append(a * a)
        return i < beside(i, 3)

    def body(loop, i, a):
        return i + beside(i, 1), squares[-1] @ loop.constant(w) + a

    return FrameLoop(condition, body, beside(x, 0), x).results[1]


def growing(x, w):
    def turn(loop, i, a):
        rows = a @ loop.constant(w)
        return [raw_ops.ConcatV2(values=[a, rows], axis=beside(a, 0))]

    return counted(3, turn, x)[0]


FUNCTIONS = [
    invariant, without_turns, several_results, result_used_twice, nested, conditional_inside,
    loop_in_conditional, functional_control_flow_inside, values_decide, computed_with_the_condition, growing,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_of_loops(check_function, function):
    check_function(function, X, W)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_of_gradients_of_loops(check_function, function):
    """TensorFlow refuses these."""

    def gradient(x, w):
        found = opkernel.gradients(function(x, w), [x, w], unconnected_gradients="zero")
        return raw_ops.AddN(inputs=found)

    check_function(gradient, X, W)


def test_a_loop_in_a_function(check_function):
    check_function(opkernel.function(nested), X, W)


@pytest.mark.parametrize("executor", ["COMPILED_PLAN", "DATAFLOW"])
def test_both_executors_run_the_gradient(executor):
    config = ConfigProto()
    config.experimental.executor_type = executor
    with Graph().as_default() as graph, Session(graph, config=config) as session:
        x = opkernel.constant(np.array([0.5]))
        (y,) = counted(3, lambda loop, i, a: [a * a], x)
        assert session.run(opkernel.gradients(y, x)) == [8 * 0.5**7]


def test_tensor_arrays(check_function):
    def running_products(x, w):
        rows = raw_ops.TensorArrayV3(size=2, dtype=opkernel.float64)
        flow = raw_ops.TensorArrayScatterV3(
            handle=rows.handle, indices=[0, 1], value=x, flow_in=rows.flow
        )
        written = raw_ops.TensorArrayV3(size=2, dtype=opkernel.float64)

        def turn(loop, i, state, flow_out):
            row = raw_ops.TensorArrayReadV3(
                handle=loop.constant(rows.handle),
                index=i,
                flow_in=loop.constant(flow),
                dtype=opkernel.float64,
            )
            state = tanh(state * row)
            return state, raw_ops.TensorArrayWriteV3(
                handle=loop.constant(written.handle), index=i, value=state, flow_in=flow_out
            )

        _, flow_out = counted(2, turn, w[0], written.flow)
        return raw_ops.TensorArrayGatherV3(
            handle=written.handle, indices=[0, 1], flow_in=flow_out, dtype=opkernel.float64
        )

    check_function(running_products, X, W)


def test_what_does_not_lead_to_the_results_needs_no_gradient(check_function):
    op = opkernel.register_op(
        "OfNoGradient", inputs=["x: double"], outputs=["y: double"], shape_fn=unchanged_shape
    )
    opkernel.register_kernel(op, device="CPU")(lambda x: x)

    def function(x, w):
        def turn(loop, i, a, b):
            return tanh(a @ loop.constant(w)), raw_ops.OfNoGradient(x=b)  # type: ignore[attr-defined]  # of this test

        return counted(2, turn, x, w)[0]

    check_function(function, X, W)


def test_shapes_that_are_known_are_not_computed_in_each_turn():
    def ops_in_loops(shape):
        with Graph().as_default() as graph:
            x = opkernel.placeholder(opkernel.float64, shape)
            opkernel.gradients(counted(2, lambda loop, i, a: [a * sin(a)], x), x)
            bodies = [f.node_def for f in graph.function_library.values()]
            return [node.op for body in bodies for node in body]

    assert "BroadcastGradientArgs" in ops_in_loops([None])
    assert "BroadcastGradientArgs" not in ops_in_loops([2])


def test_stop_gradients_inside_a_loop():
    stops = []

    def turn(loop, i, a):
        stops.append(sin(a))
        return [a * stops[-1]]

    with Graph().as_default() as graph, Session(graph) as session:
        x = opkernel.constant(0.5)
        (y,) = counted(1, turn, x)
        assert session.run(opkernel.gradients(y, x, stop_gradients=stops)) == [
            np.sin(np.float32(0.5))
        ]


def test_gradients_inside_a_loop():
    """Three steps of `x + sin'(x)`."""
    with Graph().as_default() as graph, Session(graph) as session:
        x = opkernel.constant(np.array([0.1, 0.2]))
        (found,) = counted(3, lambda loop, i, a: [a + opkernel.gradients(sin(a), a)[0]], x)
        expected = np.array([0.1, 0.2])
        for _ in range(3):
            expected = expected + np.cos(expected)
        np.testing.assert_allclose(session.run(found), expected)


def test_tensors_on_both_sides_of_a_loop():
    with Graph().as_default():
        x = opkernel.constant(1.0)
        inside = []

        def body(loop, i, a):
            inside.append(a)
            return [sin(a)]

        (y,) = counted(3, body, x)
        for ys, xs in ((y, inside[0]), (inside[0], x)):
            with pytest.raises(UnimplementedError, match=f"{xs.name}.*another loop"):
                opkernel.gradients(ys, xs)
