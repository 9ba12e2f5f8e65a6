"""Reference variables in plans: who gets the reference, who its value, and what is not assigned yet."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import BOOL, Builder

import opkernel
from opkernel.errors import FailedPreconditionError
from opkernel.graph import Tensor
from opkernel.kernel import TensorRef
from opkernel.runtime.plan.keys import fetched_value, referred_value

Made = tuple[list[Tensor], dict[str, Any], list[Any]]


def variable(b: Builder, name: str, value: Any) -> Tensor:
    """A variable of TensorFlow 1, and its assignment, NAME_init."""
    array = np.asarray(value)
    tensor = b.op(
        "VariableV2", name=name, dtype=opkernel.types.as_dtype(array.dtype), shape=[*array.shape]
    )
    b.op("Assign", tensor, b.constant(array, array.dtype), name=f"{name}_init")
    return tensor


def led_through_a_switch(b: Builder) -> Made:
    off, on = b.operation("Switch", variable(b, "v", 3.0), b.placeholder("p", BOOL)).outputs
    merged = b.operation("Merge", [b.op("Neg", off), b.op("Square", on)])
    return [*merged.outputs], {"p:0": True}, [9.0, 1]


def chosen_as_a_reference(b: Builder) -> Made:
    off, on = b.operation("RefSwitch", variable(b, "v", 3.0), b.placeholder("p", BOOL)).outputs
    merged = b.operation("RefMerge", [off, on])
    return [b.op("Neg", merged.outputs[0]), merged.outputs[1]], {"p:0": False}, [-3.0, 0]


def deciding(b: Builder) -> Made:
    off, on = b.operation("Switch", b.placeholder("x"), variable(b, "v", np.bool_(True))).outputs
    return [b.op("Merge", [b.op("Neg", off), b.op("Square", on)])], {"x:0": 4.0}, [16.0]


def ending_a_loop(b: Builder) -> Made:
    results = b.while_loop(
        lambda i, x, n: b.op("Less", i, n),
        lambda i, x, n: [b.op("AddV2", i, b.constant(1)), b.op("AddV2", x, x)],
        [b.constant(0), variable(b, "w", np.float32(1))],
        [variable(b, "v", np.int32(3))],
    )
    return results, {}, [3, 8.0]


def read_and_fetched(b: Builder) -> Made:
    v = variable(b, "v", np.array([1, 2], np.float32))
    fetches = [v, b.op("RefIdentity", v), b.op("Identity", v), b.op("AddV2", v, v)]
    return fetches, {}, [[1, 2]] * 3 + [[2, 4]]


def fed(b: Builder) -> Made:
    v = variable(b, "v", np.array([1, 2], np.float32))
    return [v, b.op("Neg", v)], {"v:0": [5.0, 6.0]}, [[5, 6], [-5, -6]]


MADE = [led_through_a_switch, chosen_as_a_reference, deciding, ending_a_loop, read_and_fetched]


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("executor", ["COMPILED_PLAN", "DATAFLOW", ""])
def test_values_of_references(make: Callable[[Builder], Made], executor: str) -> None:
    b = Builder()
    fetches, feeds, expected = make(b)
    names = [op.name for op in b.graph.get_operations() if op.type == "Assign"]
    kind = "" if make is deciding and executor == "COMPILED_PLAN" else executor
    with opkernel.Session(b.graph, executor_type=kind, optimize=False) as session:
        with pytest.raises(FailedPreconditionError, match="uninitialized value"):
            session.run(fetches, feeds)
        session.run([f"{name}:0" for name in names])
        found = session.run(fetches, feeds)
        assert [np.asarray(one).tolist() for one in found] == expected


def test_a_fed_reference_is_the_value() -> None:
    b = Builder()
    fetches, feeds, expected = fed(b)
    for executor in ("COMPILED_PLAN", "DATAFLOW"):
        with opkernel.Session(b.graph, executor_type=executor, optimize=False) as session:
            found = session.run(fetches, feeds)
        assert [one.tolist() for one in found] == expected


def test_a_fetched_variable_is_a_copy() -> None:
    b = Builder()
    v = variable(b, "v", np.array([1, 2], np.float32))
    add = b.op("AssignAdd", v, b.constant([1.0, 1.0], np.float32))
    with opkernel.Session(b.graph, optimize=False) as session:
        session.run("v_init:0")
        before = session.run(v)
        session.run(add)
        assert before.tolist() == [1, 2]
        assert session.run(v).tolist() == [2, 3]


def test_what_a_name_refers_to() -> None:
    empty, array = TensorRef(), np.zeros(2)
    full = TensorRef()
    full.tensor = array
    assert referred_value(array, "v") is array
    assert referred_value(full, "v") is array
    assert fetched_value(array, "v") is array
    copy = fetched_value(full, "v")
    assert copy is not array
    assert copy.tolist() == [0, 0]
    for function in (referred_value, fetched_value):
        with pytest.raises(FailedPreconditionError, match="uninitialized value v") as refusal:
            function(empty, "v:1")
        assert refusal.value.args
