"""Reference variables (VariableV2) as inputs of nodes that call functions: the functions get values, as in TensorFlow."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, SessionConfig, Tensor, TensorSpec, raw_ops
from opkernel.errors import FailedPreconditionError

VECTOR = TensorSpec([2], opkernel.float32)
EXECUTORS = ["COMPILED_PLAN", "DATAFLOW"]


@opkernel.function(input_signature=[VECTOR])
def double(x: Any) -> Any:
    return x * np.float32(2)


@opkernel.function(input_signature=[VECTOR])
def triple(x: Any) -> Any:
    return x * np.float32(3)


@opkernel.function(input_signature=[VECTOR])
def is_small(x: Any) -> Any:
    return raw_ops.Less(x=raw_ops.Sum(input=x, axis=[0]), y=np.float32(100))


D, T, S = (one.get_concrete_function().function_def for one in (double, triple, is_small))


def both(**named: Any) -> dict[str, Any]:
    """The attrs of a node that chooses between the functions."""
    return {"then_branch": D.signature.name, "else_branch": T.signature.name, **named}


CALLS: dict[str, tuple[Callable[[Any, Any, Any], Any], list[float]]] = {
    "call": (
        lambda v, b, i: raw_ops.PartitionedCall(args=[v], f=D.signature.name, Tout=[v.dtype.base]),
        [2, 4],
    ),
    "by name": (lambda v, b, i: v.graph.create_op(D.signature.name, [v]).outputs, [2, 4]),
    "if": (
        lambda v, b, i: raw_ops.If(cond=np.False_, input=[v], Tout=[v.dtype.base], **both()),
        [3, 6],
    ),
    "if of a reference": (
        lambda v, b, i: raw_ops.StatelessIf(cond=b, input=[v], Tout=[v.dtype.base], **both()),
        [2, 4],
    ),
    "case of a reference": (
        lambda v, b, i: raw_ops.Case(
            branch_index=i,
            input=[v],
            Tout=[v.dtype.base],
            branches=[D.signature.name, T.signature.name],
        ),
        [3, 6],
    ),
    "while": (
        lambda v, b, i: raw_ops.While(input=[v], cond=S.signature.name, body=D.signature.name),
        [64, 128],
    ),
    "captured by cond": (
        lambda v, b, i: [opkernel.cond(b, lambda: double(v), lambda: triple(v))],
        [2, 4],
    ),
    "captured by while_loop": (
        lambda v, b, i: opkernel.while_loop(is_small, lambda x: raw_ops.Add(x=x, y=v), [v]),
        [34, 68],
    ),
}


def built(call: str) -> tuple[Graph, list[Tensor], Tensor]:
    """A graph with a call, the assignments of its variables, and the result."""
    with Graph().as_default() as graph:
        for function in (D, T, S):
            graph.function_library.add_function(function)
        values = [np.array([1, 2], np.float32), np.array(True), np.array(1, np.int32)]
        variables = [raw_ops.VariableV2(shape=list(one.shape), dtype=one.dtype) for one in values]
        assigned = [
            raw_ops.Assign(ref=variable, value=value)
            for variable, value in zip(variables, values, strict=True)
        ]
        (result,) = CALLS[call][0](*variables)
    return graph, assigned, result


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("call", CALLS)
def test_a_function_gets_the_value_of_a_reference(call: str, executor: str) -> None:
    graph, assigned, result = built(call)
    session = Session(graph, config=SessionConfig(executor_type=executor))
    with pytest.raises(FailedPreconditionError, match="uninitialized value VariableV2"):
        session.run(result)
    session.run(assigned)
    assert session.run(result).tolist() == CALLS[call][1]
