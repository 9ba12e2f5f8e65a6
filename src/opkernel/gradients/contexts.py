"""Contexts: the sides of Switches on which a tensor is alive.

A tensor in the branch of a conditional of TensorFlow 1 has no value where the branch is not taken. A
context is a conjunction of branches, outer ones first.

Source: TensorFlow python/ops/control_flow_ops.py (CondContext).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opkernel.gradients.frame_loop import is_loop_switch
from opkernel.gradients.frames import Frames
from opkernel.gradients.node_methods import nodes
from opkernel.gradients.tensors import any_value
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.control_flow_ops import ENTER_OPS, EXIT_OPS, LOOP_HEAD_OPS, SWITCH_OPS
from opkernel.graph.core.edges import is_head_of_loop

_PASSING = frozenset({"Identity", "Switch", "_SwitchN"})


@dataclass(frozen=True, slots=True)
class Branch:
    """One output of a Switch.

    Attributes:
        decider: the predicate of the Switch.
        index: the output.
        number: how many outputs there are.
        is_indexed: whether outputs are chosen by their number, as `_SwitchN` does.
    """

    decider: Tensor
    index: int
    number: int
    is_indexed: bool

    def switch(self, value: Tensor, decider: Tensor) -> Sequence[Tensor]:
        """A Switch of another value, with the same outputs."""
        if self.is_indexed:
            sides: Sequence[Tensor] = nodes._SwitchN(
                value, decider, num_outs=self.number, name="SwitchN"
            )
        else:
            sides = nodes.Switch(value, decider)
        return sides

    def fill(self, value: Tensor) -> Tensor:
        """A tensor that is alive in the other branches, too, with a value of no use."""
        graph = value.graph
        with graph.as_default(), graph.control_dependencies(None):
            with graph.control_dependencies([self.decider.op]):
                filling = any_value(value.dtype.base)
            sides = list(self.switch(filling, self.decider))
            sides[self.index] = value
            filled: Tensor = nodes.Merge(sides).output
            return filled


Context = tuple[Branch, ...]


class Contexts:
    """The contexts of the tensors of a graph, each within its loop."""

    def __init__(self, graph: Graph) -> None:
        self._has_switches = any(op.type in SWITCH_OPS for op in graph.get_operations())
        self._frames = Frames(graph) if self._has_switches else None
        self._known: dict[Operation, Context] = {}

    def of(self, tensor: Tensor) -> Context:
        """Where a tensor is alive."""
        if not self._has_switches:
            return ()
        waiting = [tensor.op]
        while waiting:
            op = waiting[-1]
            missing = [s for s in self._sources(op) if s not in self._known]
            if op in self._known:
                waiting.pop()
            elif missing:
                waiting += missing
            else:
                self._known[op] = self._context(op)
        return self._along(tensor)

    def _sources(self, op: Operation) -> list[Operation]:
        return [*[tensor.op for tensor in self._inputs(op)], *op.control_inputs]

    def _inputs(self, op: Operation) -> Sequence[Tensor]:
        """The inputs that decide whether an operation runs; a loop runs if its inputs are alive."""
        assert self._frames is not None
        if op.type in ENTER_OPS or is_head_of_loop(op):
            return ()
        if op.type in EXIT_OPS:
            return [enter.inputs[0] for enter in self._frames.enters[self._frames.of(op)]]
        return op.inputs

    def _context(self, op: Operation) -> Context:
        """The context of an operation whose inputs' contexts are known."""
        if op.type in ENTER_OPS or is_head_of_loop(op):
            return ()
        found = [self._along(tensor) for tensor in self._inputs(op)]
        if op.type in LOOP_HEAD_OPS:
            return tuple([b for b in found[0] if all(b in other for other in found)])
        found += [self._known[control] for control in op.control_inputs]
        longest_first = sorted(found, key=len, reverse=True)
        return tuple(dict.fromkeys(branch for context in longest_first for branch in context))

    def _along(self, tensor: Tensor) -> Context:
        """The context of an operation that takes a tensor and nothing else."""
        op = tensor.op
        context = self._known[op]
        if op.type not in SWITCH_OPS or is_loop_switch(op):
            return context
        decider = _behind(op.inputs[1], frozenset({"Identity"}))
        branch = Branch(decider, tensor.value_index, len(op.outputs), op.type == "_SwitchN")
        return context if branch in context else (*context, branch)


def origin(tensor: Tensor) -> Tensor:
    """The tensor that one has its value from, wherever it is alive itself."""
    return _behind(tensor, _PASSING)


def _behind(tensor: Tensor, passing: frozenset[str]) -> Tensor:
    """The tensor behind a tensor, past operations of some kinds."""
    while tensor.op.type in passing:
        source: Tensor = tensor.op.inputs[0]
        if source.dtype.is_ref:  # its value may change
            break
        tensor = source
    return tensor
