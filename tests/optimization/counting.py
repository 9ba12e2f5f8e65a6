"""Counting: variables that count how often what operations wait for has happened."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from tests.runtime.dataflow.loop_builders import FLOAT, Builder

import opkernel
from opkernel.graph import Operation, Tensor
from opkernel.graph.core.frame_loops import ROOT, control_flow_info
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.subgraph import Needs, prune_and_order

__all__ = ["WAYS", "Counting", "wait"]

WAYS = ("control input", "chain", "input")
"""How an operation waits: by itself, by way of an Identity, or by what it takes."""


class Counting:
    """A graph that is given counters.

    Attributes:
        places: the operations that may wait for one, inputs before consumers.
        adds: what counts.
    """

    def __init__(self, b: Builder, y: Tensor, feeds: Mapping[Tensor, Any]) -> None:
        self._b, self._y, self._feeds = b, y, feeds
        fed = {tensor.op for tensor in feeds}
        order = prune_and_order([y], (), ())
        self._frames = control_flow_info(order, Needs(()))
        self.places = [
            op for op in order if op not in fed and op.type not in LOW_LEVEL_CONTROL_FLOW
        ]
        self.adds: list[Operation] = []

    def count_before(self, op: Operation, way: str, *, beside: bool = False) -> None:
        """Have an operation wait for a counter; one that is `beside` it, on its branch and in its loop.

        In a loop each is.
        """
        b = self._b
        sources = [*(tensor.op for tensor in op.inputs), *op.control_inputs]
        pivot = sources[:1] if beside or self._frames[op.name] is not ROOT else []
        name = f"counter_{len(self.adds)}"
        variable: dict[str, Any] = {"dtype": FLOAT, "shape": [], "shared_name": name}
        handle = b.operation("VarHandleOp", after=pivot, **variable).outputs[0]
        one = constant(b, pivot)
        add = b.operation("AssignAddVariableOp", handle, one, dtype=FLOAT)
        wait(b, op, add, way)
        self.adds.append(add)

    def run(
        self, optimize: bool | Collection[str], executor: str = "", steps: int = 5
    ) -> tuple[list[Any], list[Any]]:
        """The results of some steps, and what was counted in them."""
        b = self._b
        names = [add.inputs[0].op.get_attr("shared_name") for add in self.adds]
        counters = [b.op("VarHandleOp", dtype=FLOAT, shape=[], shared_name=name) for name in names]
        zero = b.constant(0.0)
        starts = [b.operation("AssignVariableOp", v, zero, dtype=FLOAT) for v in counters]
        reads = [b.op("ReadVariableOp", v, dtype=FLOAT) for v in counters]
        with opkernel.Session(b.graph, optimize=optimize, executor_type=executor) as session:
            session.run(starts)
            values = [session.run(self._y, self._feeds) for _ in range(steps)]
            return values, session.run(reads)


def constant(b: Builder, after: Sequence[Operation]) -> Tensor:
    """A 1 that waits for operations."""
    value = np.float32(1)
    return b.operation("Const", after=after, dtype=FLOAT, value=value).outputs[0]


def wait(b: Builder, op: Operation, first: Operation, way: str) -> None:
    """Have an operation wait for another one."""
    if way == "input" and op.inputs:
        for index, tensor in enumerate(op.inputs):
            op.update_input(index, b.operation("Identity", tensor, after=[first]).outputs[0])
    elif way == "chain":
        op._add_control_input(b.op("Identity", constant(b, [first])).op)
    else:
        op.add_control_inputs([first])
