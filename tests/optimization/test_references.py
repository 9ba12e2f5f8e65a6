"""What takes a reference reads the value when its control edges say, optimised or not."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import FLOAT, Builder

import opkernel
from opkernel.graph import Tensor
from opkernel.types import PartialTensorShape

SIZE = np.array([2], np.int32)
READERS: dict[str, Callable[[Builder, Tensor], Tensor]] = {
    "product": lambda b, v: b.op("Mul", v, b.constant(1.0)),
    "shape": lambda b, v: b.op("Reshape", v, b.constant(SIZE)),
    "pack": lambda b, v: b.op("Pack", [v]),
    "negation": lambda b, v: b.op("Neg", v),
}
USERS: dict[str, Callable[[Builder, Tensor], Tensor]] = {
    "product": lambda b, y: b.op("Mul", y, b.constant(-1.0)),
    "shape": lambda b, y: b.op("Neg", b.op("Reshape", y, b.constant(SIZE))),
    "pack": lambda b, y: b.op("Neg", b.operation("Unpack", y, num=1).outputs[0]),
    "negation": lambda b, y: b.op("Neg", b.op("Abs", y)),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
def test_a_value_is_read_before_what_changes_it_afterwards(kind: str, executor: str) -> None:
    b = Builder()
    v = b.op("VariableV2", dtype=FLOAT, shape=PartialTensorShape([2]))
    first = b.operation("Assign", v, b.constant([1, 2], "f4"))
    y = READERS[kind](b, v)
    changed = b.operation("Assign", v, b.constant([5, 6], "f4"), after=[y.op])
    result = USERS[kind](b, y)
    for op in b.graph.get_operations():
        if y in op.inputs:
            op.add_control_input(changed)
    with opkernel.Session(b.graph, executor_type=executor) as session:
        session.run(first.name)
        np.testing.assert_array_equal(session.run(result), [-1, -2])
        np.testing.assert_array_equal(session.run(v), [5, 6])
