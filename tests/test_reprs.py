"""What Python shows for sessions, plans, types, variables and what trains them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import DataType, Session, load_graph
from opkernel.types import ResourceHandle

DIGITS = Path(__file__).resolve().parent.parent / "examples" / "digits" / "digits.pb"


def test_sessions_and_plans() -> None:
    digits = load_graph(DIGITS)
    with Session(digits) as session:
        assert repr(session) == "<opkernel.Session on CPU:0 of <opkernel.Graph of 28 operations>>"
        plan = repr(session.plan("probabilities:0", ["images:0"]))
    assert plan.startswith("<opkernel.CompiledPlan of ")
    assert plan.endswith(" statements: 1 fed, 1 fetched; `.source` is its text>")
    assert "closed" in repr(session)


@pytest.mark.parametrize(
    ("dtype", "shown"),
    [
        (opkernel.float32, "opkernel.float32"),
        (opkernel.bfloat16, "opkernel.bfloat16"),
        (opkernel.string, "opkernel.string"),
        (DataType.DT_INT8_REF, "opkernel.int8.ref"),
    ],
)
def test_a_type_is_shown_as_the_expression_that_gives_it(dtype: DataType, shown: str) -> None:
    assert repr(dtype) == shown
    assert eval(shown, {"opkernel": opkernel}) is dtype


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.array([[1, 2], [3, 4]], np.float32), "float32[2,2] [[1., 2.], [3., 4.]]"),
        (np.int64(7), "int64[] 7"),
        ([b"a b", b"c"], "string[2] [b'a b', b'c']"),
        (np.arange(10**6), "int64[1000000] [0, 1, ..., 999998, 999999]"),
    ],
)
def test_variables_show_their_values(value: Any, shown: str) -> None:
    assert repr(opkernel.Variable(value, name="w")) == f"<opkernel.Variable 'w' {shown}>"


def test_a_variable_that_is_gone_can_be_shown() -> None:
    variable = opkernel.Variable.of_handle(
        ResourceHandle(name="gone"), dtype=opkernel.float32, shape=[2], name="w"
    )
    assert repr(variable).startswith("<opkernel.Variable 'w' float32[2] no value: ")


def test_optimizers_and_checkpoints_show_what_they_hold() -> None:
    weights = opkernel.Variable(np.array([1, 2], np.float32))
    optimizer = opkernel.optimizers.SGD(0.5, momentum=0.9)
    shown = "<opkernel.optimizers.SGD(learning_rate=0.5, momentum=0.9, nesterov=False), steps: "
    assert repr(optimizer) == f"{shown}0, variables: 0, slots: none>"
    optimizer.minimize(lambda: opkernel.raw_ops.Sum(input=weights * weights, axis=0), [weights])
    assert repr(optimizer) == f"{shown}1, variables: 1, slots: momentum>"
    checkpoint = opkernel.Checkpoint({"weights": weights}, optimizer=optimizer)
    assert repr(checkpoint) == "<opkernel.Checkpoint(root=dict, optimizer=SGD), variables: 4>"
