"""References in sessions: variables as TensorFlow 1 has them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import FailedPreconditionError
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    TensorRef,
    global_kernel_registry,
    register_kernel,
)
from opkernel.opdef import register_op, unknown_shape

REF: dict[str, Any] = {"shape_fn": unknown_shape, "is_stateful": True}
VARIABLE = register_op("RefTestVariable", outputs=["ref: Ref(float)"], **REF)
ASSIGN = register_op(
    "RefTestAssign",
    inputs=["ref: Ref(float)", "value: float"],
    outputs=["out: Ref(float)"],
    allows_uninitialized_input=True,
    **REF,
)
ADD = register_op(
    "RefTestAdd",
    inputs=["ref: Ref(float)", "value: float"],
    outputs=["out: Ref(float)"],
    **REF,
)


class Variable(OpKernel):
    """Owns a reference."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.ref = TensorRef()

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output_ref(0, self.ref)


class Assign(OpKernel):
    """Replaces the array."""

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.replace_ref_input(0, np.array(ctx.input(1)))
        ctx.forward_ref_input_to_ref_output(0, 0)


class Add(OpKernel):
    """Changes the array in place."""

    def compute(self, ctx: OpKernelContext) -> None:
        with ctx.input_ref_mutex(0):
            array = ctx.mutable_input(0, lock_held=True)
            array += ctx.input(1)
        ctx.forward_ref_input_to_ref_output(0, 0)


@pytest.fixture
def session() -> Iterator[opkernel.Session]:
    """v; assign = v <- x; add = v += x; what reads v by value: negated, the_same, sum."""
    kernels = {VARIABLE: Variable, ASSIGN: Assign, ADD: Add}
    for op, kernel in kernels.items():
        register_kernel(op, device="CPU")(kernel)
    graph = opkernel.Graph()
    v = graph.create_op(VARIABLE.name, name="v").outputs[0]
    attrs = {"dtype": opkernel.float32, "shape": [2]}
    x = graph.create_op("Placeholder", name="x", attrs=attrs).outputs[0]
    assigned = graph.create_op(ASSIGN.name, [v, x], name="assign").outputs[0]
    graph.create_op(ADD.name, [v, x], name="add")
    graph.create_op("Neg", [assigned], name="negated")
    graph.create_op("Identity", [v], name="the_same")
    graph.create_op("AddN", [[v, x, v]], name="sum")
    with opkernel.Session(graph) as session:
        yield session
    registry = global_kernel_registry()
    for op in kernels:
        for one in registry.registrations_for(op.name):
            registry.unregister(one)


def test_ops_that_take_values_get_what_is_referred_to(session: opkernel.Session) -> None:
    assert session.run("negated:0", {"x:0": [1, 2]}).tolist() == [-1, -2]
    assert session.run("the_same:0").tolist() == [1, 2]
    assert session.run("sum:0", {"x:0": [10, 10]}).tolist() == [12, 14]


def test_what_was_fetched_does_not_change(session: opkernel.Session) -> None:
    assigned = session.run("assign:0", {"x:0": [1, 2]})
    assert assigned.tolist() == session.run("v:0").tolist() == [1, 2]
    assert session.run("add:0", {"x:0": [5, 5]}).tolist() == [6, 7]
    assert assigned.tolist() == [1, 2]


@pytest.mark.parametrize("fetch", ["add:0", "the_same:0", "v:0"])
def test_a_variable_without_a_value(session: opkernel.Session, fetch: str) -> None:
    with pytest.raises(FailedPreconditionError, match="Attempting to use uninitialized value v"):
        session.run(fetch, {"x:0": [1, 2]})


def test_a_fed_reference_is_a_value(session: opkernel.Session) -> None:
    assert session.run(["v:0", "the_same:0"], {"v:0": [3, 4]})[1].tolist() == [3, 4]


@pytest.mark.parametrize("op_type", ["Identity", "Neg", "AddN"])
def test_a_traced_step_computes_with_what_is_referred_to(op_type: str) -> None:
    graph = opkernel.Graph()
    shaped = {"dtype": opkernel.DataType.DT_FLOAT, "shape": []}
    v = graph.create_op("VariableV2", attrs=shaped, name="v").outputs[0]
    with graph.as_default():
        three = opkernel.constant(np.float32(3))
    graph.create_op("Assign", [v, three], name="set")
    inputs = [[v, v]] if op_type == "AddN" else [v]
    value = graph.create_op(op_type, inputs).outputs[0]
    traced = opkernel.RunOptions(trace_level=opkernel.RunOptions.FULL_TRACE)
    with opkernel.Session(graph, optimize=False) as session:
        session.run("set")
        metadata = opkernel.proto.RunMetadata()
        assert session.run(value, {}, traced, metadata) == session.run(value)
        assert metadata.step_stats.dev_stats
