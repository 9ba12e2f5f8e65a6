"""Stacks; the errors are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

from opkernel import Graph, Session, raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.types import float32, int32


def push(stack: Any, value: float) -> Any:
    return raw_ops.StackPushV2(handle=stack, elem=np.float32(value))


def pop(stack: Any) -> Any:
    return raw_ops.StackPopV2(handle=stack, elem_type=float32)


def test_the_last_to_come_is_the_first_to_go() -> None:
    stack = raw_ops.StackV2(max_size=2, elem_type=float32, stack_name="s")
    assert [push(stack, value) for value in (1, 2)] == [1, 2]
    with pytest.raises(InvalidArgumentError, match=r"Stack\[s_\d+\] overflowed its max_size \(2\)"):
        push(stack, 3)
    assert [pop(stack), pop(stack)] == [2, 1]
    with pytest.raises(InvalidArgumentError, match="is empty when calling Pop"):
        pop(stack)


def test_a_closed_stack_takes_and_gives_nothing() -> None:
    stack = raw_ops.StackV2(max_size=-1, elem_type=float32)
    push(stack, 1)
    raw_ops.StackCloseV2(handle=stack)
    for use in (lambda: push(stack, 1), lambda: pop(stack)):
        with pytest.raises(InvalidArgumentError, match="has already been closed"):
            use()


def test_types_are_checked() -> None:
    stack = raw_ops.StackV2(max_size=1, elem_type=int32)
    with pytest.raises(InvalidArgumentError, match="Must have type 3 but got 1"):
        push(stack, 1)
    with pytest.raises(InvalidArgumentError, match=r"actual int32 vs\. expect float"):
        pop(stack)
    with pytest.raises(InvalidArgumentError, match="must be a scalar"):
        raw_ops.StackV2(max_size=[1], elem_type=int32)


def test_what_the_caller_writes_later_does_not_reach_the_stack() -> None:
    stack = raw_ops.StackV2(max_size=1, elem_type=float32)
    given = np.ones(2, np.float32)
    raw_ops.StackPushV2(handle=stack, elem=given)
    given[:] = 7
    assert pop(stack).tolist() == [1, 1]


def test_a_stack_behind_a_reference_lives_for_a_step() -> None:
    with Graph().as_default() as graph:
        stack = raw_ops.Stack(elem_type=float32)
        pushed = raw_ops.StackPush(handle=stack, elem=np.float32(3))
        with graph.control_dependencies([pushed.op]):
            popped = raw_ops.StackPop(handle=stack, elem_type=float32)
        empty = raw_ops.StackPop(handle=stack, elem_type=float32)
        close = raw_ops.StackClose(handle=stack)
    with Session(graph) as session:
        assert session.run([pushed, popped]) == [3, 3]
        session.run(close)
        with pytest.raises(InvalidArgumentError, match="is empty"):
            session.run(empty)
        assert session._devices.client_device.resource_manager.debug_string() == ""
