"""Graphs with control flow of TensorFlow 1, in few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel
from opkernel.graph import Graph, Operation, Tensor
from opkernel.types import DataType, as_dtype

FLOAT, INT32, BOOL = DataType.DT_FLOAT, DataType.DT_INT32, DataType.DT_BOOL


class Builder:
    """Makes operations; within `inside(pivot)` constants wait for the pivot, as TensorFlow's do."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.pivot: Tensor | None = None
        self._loops = 0

    def op(self, type_: str, *inputs: Any, name: str | None = None, **attrs: Any) -> Tensor:
        """The first output of a new operation."""
        return self.operation(type_, *inputs, name=name, **attrs).outputs[0]

    def operation(
        self,
        type_: str,
        *inputs: Any,
        name: str | None = None,
        after: Sequence[Operation] = (),
        **attrs: Any,
    ) -> Operation:
        operation = self.graph.create_op(type_, list(inputs), name=name, attrs=attrs)
        for control in after:
            operation.add_control_input(control)
        return operation

    def constant(self, value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
        """A constant; Python's numbers are int32 and float32."""
        kinds = {bool: np.bool_, int: np.int32, float: np.float32}
        array = np.asarray(value, dtype or kinds.get(type(value)))
        after = [] if self.pivot is None else [self.pivot.op]
        attrs = {"dtype": as_dtype(array.dtype), "value": array}
        return self.operation("Const", name=name, after=after, **attrs).outputs[0]

    def placeholder(self, name: str, dtype: DataType = FLOAT) -> Tensor:
        return self.op("Placeholder", name=name, dtype=dtype)

    def while_loop(
        self,
        go_on: Callable[..., Tensor],
        body: Callable[..., Sequence[Tensor]],
        variables: Sequence[Tensor],
        invariants: Sequence[Tensor] = (),
        parallel_iterations: int = 10,
    ) -> list[Tensor]:
        """The results of a loop; `go_on` and `body` take the variables and then the invariants."""
        self._loops += 1
        attrs: dict[str, Any] = {
            "frame_name": f"loop_{self._loops}",
            "parallel_iterations": parallel_iterations,
        }
        enters = [self.op("Enter", v, **attrs) for v in variables]
        constants = [self.op("Enter", v, is_constant=True, **attrs) for v in invariants]
        merges = [self.operation("Merge", [e, e]) for e in enters]
        outside, self.pivot = self.pivot, merges[0].outputs[0]
        heads = [m.outputs[0] for m in merges]
        condition = self.op("LoopCond", go_on(*heads, *constants))
        switches = [self.operation("Switch", head, condition) for head in heads]
        insides = [self.op("Identity", s.outputs[1]) for s in switches]
        self.pivot = insides[0]
        results = body(*insides, *constants)
        for merge, result in zip(merges, results, strict=True):
            merge.update_input(1, self.op("NextIteration", result))
        self.pivot = outside
        return [self.op("Exit", s.outputs[0]) for s in switches]

    def cond(
        self,
        predicate: Tensor,
        then: Callable[..., Sequence[Tensor]],
        otherwise: Callable[..., Sequence[Tensor]],
        inputs: Sequence[Tensor],
    ) -> list[Tensor]:
        """The results of a conditional, made of Switch and Merge."""
        outside = self.pivot
        after = [] if outside is None else [outside.op]
        pivot = self.operation("Switch", predicate, predicate, after=after)
        switches = [self.operation("Switch", value, predicate, after=after) for value in inputs]
        branches = []
        for side, branch in ((1, then), (0, otherwise)):
            self.pivot = self.op("Identity", pivot.outputs[side])
            branches.append(branch(*[s.outputs[side] for s in switches]))
        self.pivot = outside
        return [self.op("Merge", [b, a]) for a, b in zip(*branches, strict=True)]

    def run(
        self, fetches: Any, feeds: Any = None, executor: str | None = None, **options: Any
    ) -> Any:
        """One step; where no executor is named, one by dataflow and one by default: they agree."""
        if executor is None:
            found = self.run(fetches, feeds, "DATAFLOW", **options)
            np.testing.assert_equal(self.run(fetches, feeds, "", **options), found)
            return found
        with opkernel.Session(self.graph, executor_type=executor, **options) as session:
            return session.run(fetches, feeds)
