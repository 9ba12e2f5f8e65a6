"""Random graphs of conditionals through the compiled plan and through the dataflow executor."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.dataflow.loop_builders import BOOL, Builder

import opkernel
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Tensor

UNARY, BINARY = ("Neg", "Square", "Identity", "Relu"), ("AddV2", "Mul", "Sub", "Maximum")


@st.composite
def graphs(draw) -> tuple[Builder, list[Tensor]]:
    """A graph of floats x0, x1 and conditions p0, p1, p2, with nested conditionals."""
    b = Builder()
    predicates = [b.placeholder(f"p{k}", BOOL) for k in range(3)]
    values = grow(draw, b, [b.placeholder(f"x{k}") for k in range(2)], predicates, depth=2)
    loose = b.operation("Switch", draw(st.sampled_from(values)), predicates[0])
    values += [b.op("Neg", loose.outputs[draw(st.integers(0, 1))])]
    after = draw(st.sampled_from(values)).op
    values += [b.operation("Identity", values[0], after=[after]).outputs[0]]
    return b, values


def grow(draw, b, values, predicates, depth):
    """The values and more, computed from them."""
    values = list(values)
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["unary", "binary", "constant", "cond"][: 4 if depth else 3]))
        pick = st.sampled_from(values)
        if kind == "unary":
            values.append(b.op(draw(st.sampled_from(UNARY)), draw(pick)))
        elif kind == "binary":
            values.append(b.op(draw(st.sampled_from(BINARY)), draw(pick), draw(pick)))
        elif kind == "constant":
            values.append(b.constant(float(draw(st.integers(-3, 3)))))
        else:
            # Predicates from outside are led in, as TensorFlow does.
            predicate, inputs = draw(st.sampled_from(predicates)), [draw(pick), draw(pick)]

            def branch(*led_in):
                *inside, first, second = led_in
                more = grow(draw, b, inside, [first, second], depth - 1)
                return more[-2:]

            others = [draw(st.sampled_from(predicates)) for _ in range(2)]
            values += b.cond(predicate, branch, branch, [*inputs, *others])
    return values


def outcome(session: opkernel.Session, fetch: Tensor, feeds: dict[str, object]) -> object:
    try:
        return float(session.run(fetch, feeds))
    except InvalidArgumentError as error:
        return error.message


@given(graphs(), st.data())
@settings(max_examples=60, deadline=None)
def test_both_give_the_same_and_find_the_same_dead(graph, data):
    b, values = graph
    feeds: dict[str, object] = {f"x{k}:0": np.float32(k + 1.5) for k in range(2)}
    plan, dataflow, threads = (
        opkernel.Session(b.graph, executor_type="COMPILED_PLAN"),
        opkernel.Session(b.graph, executor_type="DATAFLOW"),
        opkernel.Session(b.graph, inter_op_threads=2),
    )
    with np.errstate(all="ignore"), plan, dataflow, threads:
        for _ in range(3):
            feeds |= {f"p{k}:0": data.draw(st.booleans()) for k in range(3)}
            for fetch in values[-4:]:
                expected = outcome(plan, fetch, feeds)
                assert outcome(dataflow, fetch, feeds) == expected or expected != expected
                assert outcome(threads, fetch, feeds) == expected or expected != expected
