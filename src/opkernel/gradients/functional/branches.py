"""Gradients of If and Case.

All branches are given the same further results: each its own intermediate tensors, with empty ones
in the place of those of the other branches. The branches of the gradient all take everything that the
node took and gave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opkernel.errors import UnimplementedError
from opkernel.gradients.functional.body_gradient import (
    BodyGradient,
    body_of,
    give_more_results,
    new_function,
)
from opkernel.gradients.indexed_slices import Gradient
from opkernel.gradients.node_methods import nodes
from opkernel.gradients.registry import Gradients
from opkernel.gradients.tensors import any_value, zeros_like
from opkernel.graph import Graph, Operation, Tensor, TensorSpec
from opkernel.proto import AttrValue, NameAttrList
from opkernel.types import DataType

_Name = Callable[[Sequence[AttrValue]], dict[str, AttrValue]]
"""The attrs of a node that names functions as its branches."""


def if_gradient(op: Operation, *grads: Gradient | None) -> Gradients:
    """The gradient of If and StatelessIf."""
    names = ("then_branch", "else_branch")
    branches = [op.node_def.attr[name].func for name in names]
    return _Choice(op, branches, lambda them: dict(zip(names, them, strict=True))).gradients(grads)


def case_gradient(op: Operation, *grads: Gradient | None) -> Gradients:
    """The gradient of Case and StatelessCase."""
    return _Choice(op, op.node_def.attr["branches"].list.func, _as_branches).gradients(grads)


def _as_branches(functions: Sequence[AttrValue]) -> dict[str, AttrValue]:
    value = AttrValue()
    value.list.func.extend([function.func for function in functions])
    return {"branches": value}


class _Choice:
    """A node that chooses between branches.

    State: `_further` are the tensors that become further results, each with its branch's number.
    """

    def __init__(self, op: Operation, branches: Sequence[NameAttrList], name: _Name) -> None:
        self._op = op
        self._name = name
        self._index, *self._inputs = op.inputs
        self._bodies = [body_of(op, branch, self._inputs) for branch in branches]
        self._further: list[tuple[int, Tensor]] = []

    def gradients(self, grads: Sequence[Gradient | None]) -> list[Any]:
        """The gradients of the inputs of the node, from those of its outputs."""
        with_grads = [index for index, grad in enumerate(grads) if grad is not None]
        parts = [BodyGradient(body, with_grads) for body in self._bodies]
        types = [_agree(parts, index) for index in range(len(self._inputs))]
        self._keep(parts)
        passed = [*self._inputs, *self._op.outputs]
        functions = [
            new_function(
                part.graph, part.graph.name, self._arguments(number, part, passed), part.results
            )
            for number, part in enumerate(parts)
        ]
        arguments = [*[grads[index] for index in with_grads], *passed]
        wanted = [dtype for dtype in types if dtype is not None]
        choose = getattr(nodes, self._op.type)
        values = iter(choose(self._index, arguments, Tout=wanted, **self._name(functions)))
        return [None, *[None if dtype is None else next(values) for dtype in types]]

    def _keep(self, parts: Sequence[BodyGradient]) -> None:
        """Have the branches give the tensors that their gradients need."""
        for number, part in enumerate(parts):
            places = self._places(number)
            self._further += [(number, t) for t in part.captures if t not in places]
        if not self._further:
            return
        functions = []
        for number, body in enumerate(self._bodies):
            own = [t if n == number else _empty(body.graph, t) for n, t in self._further]
            results = [*body.outputs, *own]
            name = f"{body.name}_forward"
            functions.append(new_function(body.graph, name, body.inputs, results, body))
        give_more_results(self._op, [t for _, t in self._further], self._name(functions))

    def _places(self, number: int) -> dict[Tensor, int]:
        """Where the tensors of a branch are among the inputs and outputs of the node."""
        body = self._bodies[number]
        first = len(body.inputs)
        further = first + len(body.outputs)
        results = {tensor: first + i for i, tensor in enumerate(body.outputs)}
        kept = {tensor: further + i for i, (n, tensor) in enumerate(self._further) if n == number}
        return {**results, **kept, **{tensor: i for i, tensor in enumerate(body.inputs)}}

    def _arguments(self, number: int, part: BodyGradient, passed: Sequence[Tensor]) -> list[Tensor]:
        """The arguments of a branch of the gradient, which needs some of them alone."""
        places = self._places(number)
        needed = {places[tensor]: inside for tensor, inside in part.captures.items()}
        rest = [
            needed[place]
            if place in needed
            else part.graph.add_input(TensorSpec(None, tensor.dtype.base), "unused")
            for place, tensor in enumerate(passed)
        ]
        return [*part.grads.values(), *rest]


def _agree(parts: Sequence[BodyGradient], index: int) -> DataType | None:
    """Have all branches give a gradient of an input, zeros if need be; its type, None if none does."""
    found = [part.found[index] for part in parts]
    dtype = next((grad.dtype for grad in found if grad is not None), None)
    if dtype is not None:
        for part in parts:
            if part.found[index] is None:
                with part.graph.as_default():
                    part.found[index] = zeros_like(part.body.inputs[index], dtype)
    return dtype


def _empty(graph: Graph, like: Tensor) -> Tensor:
    """The filling for a tensor of another branch; it is never read."""
    dtype = like.dtype.base
    if dtype == DataType.DT_RESOURCE:
        raise UnimplementedError(
            f"Gradients of a conditional are not implemented where a branch makes a resource: "
            f"'{like.name}'",
            node=like.op.name,
        )
    with graph.as_default():
        return any_value(dtype)
