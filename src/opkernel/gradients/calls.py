"""Gradients of calls, and of If and Case, which call one of their branches.

All branches are given the same further results: each its own intermediate tensors, with empty ones
in the place of those of the other branches. The branches of the gradient all take the same of what the
node took and gave.

Source: TensorFlow python/ops/cond_v2.py, python/eager/polymorphic_function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opkernel.errors import UnimplementedError
from opkernel.gradients.backpropagation import backpropagate
from opkernel.gradients.body_gradient import (
    BodyGradient,
    body_of,
    give_more_results,
    gradient_name,
    new_function,
)
from opkernel.gradients.gradient_nodes import (
    Gradient,
    any_value,
    as_dense,
    attrs_of,
    gradient_dtype,
    nodes,
    zeros_like,
)
from opkernel.gradients.registry import Gradients
from opkernel.graph import Graph, Operation, Tensor, TensorSpec, placeholder
from opkernel.proto import AttrValue, NameAttrList
from opkernel.types import DataType

_Name = Callable[[Sequence[AttrValue]], dict[str, AttrValue]]
"""The attrs of a node that names functions as its branches."""


def call_gradient(op: Operation, *grads: Gradient | None) -> Gradients:
    """The gradient of PartitionedCall and StatefulPartitionedCall."""
    function = op.node_def.attr["f"].func
    if op.graph.function_library.find_gradient(function.name):
        return _recorded_gradient(op, function, grads)
    attrs = attrs_of(op, "config", "config_proto", "executor_type")
    return _Branches(op, (), [function], lambda them: {"f": them[0]}).gradients(grads, **attrs)


def if_gradient(op: Operation, *grads: Gradient | None) -> Gradients:
    """The gradient of If and StatelessIf."""
    names = ("then_branch", "else_branch")
    branches = [op.node_def.attr[name].func for name in names]
    return _Branches(
        op, op.inputs[:1], branches, lambda them: dict(zip(names, them, strict=True))
    ).gradients(grads)


def case_gradient(op: Operation, *grads: Gradient | None) -> Gradients:
    """The gradient of Case and StatelessCase."""
    branches = op.node_def.attr["branches"].list.func

    def name(them: Sequence[AttrValue]) -> dict[str, AttrValue]:
        functions = AttrValue.ListValue(func=[function.func for function in them])
        return {"branches": AttrValue(list=functions)}

    return _Branches(op, op.inputs[:1], branches, name).gradients(grads)


def call_by_name_gradient(op: Operation, *grads: Gradient | None) -> Gradients:
    """The gradient of a node whose op is a function; it computes the function again."""
    function = NameAttrList(name=op.type, attr=op.node_def.attr)
    if op.graph.function_library.find_gradient(op.type):
        return _recorded_gradient(op, function, grads)
    given = _given(grads)
    body = body_of(op, function, op.inputs)
    ys = [body.outputs[index] for index in given]
    with body.graph.as_default():
        grad_ys = [placeholder(gradient_dtype(y), name="grad") for y in ys]
        found = [as_dense(grad) for grad in backpropagate(ys, list(body.inputs), grad_ys)]
    results = [grad for grad in found if grad is not None]
    again = new_function(body.graph, gradient_name(body), [*body.inputs, *grad_ys], results)
    call = nodes.StatefulPartitionedCall if op.op_def.is_stateful else nodes.PartitionedCall
    types = [None if grad is None else grad.dtype for grad in found]
    return _called(call, [[*op.inputs, *given.values()]], types, f=again)


def _recorded_gradient(
    op: Operation, function: NameAttrList, grads: Sequence[Gradient | None]
) -> Gradients:
    """The gradient by the function that the library records for it."""
    types = [gradient_dtype(tensor) for tensor in op.inputs]
    all_grads = [
        zeros_like(output) if grad is None else grad
        for output, grad in zip(op.outputs, grads, strict=True)
    ]
    return nodes.SymbolicGradient([*op.inputs, *all_grads], Tout=types, f=function)


def _given(grads: Sequence[Gradient | None]) -> dict[int, Gradient]:
    """The gradients that there are, by the number of the output."""
    return {index: grad for index, grad in enumerate(grads) if grad is not None}


def _called(
    call: Callable[..., Any], inputs: Sequence[Any], types: Sequence[DataType | None], **attrs: Any
) -> list[Any]:
    """The results of a call by their types; None where there is no type."""
    results = iter(call(*inputs, Tout=[one for one in types if one is not None], **attrs))
    return [None if dtype is None else next(results) for dtype in types]


class _Branches:
    """A node that calls one of several functions.

    State: `_further` are the tensors that become further results, each with its branch's number.

    Args:
        op: The node.
        index: Its input that chooses, if there is one.
        branches: The functions.
        name: Gives the attrs that name functions in their places.
    """

    def __init__(
        self, op: Operation, index: Sequence[Tensor], branches: Sequence[NameAttrList], name: _Name
    ) -> None:
        self._op = op
        self._name = name
        self._index, self._inputs = index, op.inputs[len(index) :]
        self._bodies = [body_of(op, branch, self._inputs) for branch in branches]
        self._further: list[tuple[int, Tensor]] = []

    def gradients(self, grads: Sequence[Gradient | None], **attrs: Any) -> list[Any]:
        """The gradients of the inputs of the node, from those of its outputs."""
        given = _given(grads)
        parts = [BodyGradient(body, list(given)) for body in self._bodies]
        types = [_agree(parts, index) for index in range(len(self._inputs))]
        self._keep(parts)
        needed = [self._needed(number, part) for number, part in enumerate(parts)]
        outside = [*self._inputs, *self._op.outputs]
        passed = {place: outside[place] for place in sorted(set[int]().union(*needed))}
        functions = [
            new_function(
                part.graph, part.graph.name, _arguments(part, inside, passed), part.results
            )
            for part, inside in zip(parts, needed, strict=True)
        ]
        inputs = [*self._index, [*given.values(), *passed.values()]]
        found = _called(
            getattr(nodes, self._op.type), inputs, types, **self._name(functions), **attrs
        )
        return [*[None for _ in self._index], *found]

    def _keep(self, parts: Sequence[BodyGradient]) -> None:
        """Have the branches give the tensors that their gradients need."""
        for number, part in enumerate(parts):
            places = self._places(number)
            self._further += [(number, t) for t in part.graph.captures if t not in places]
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

    def _needed(self, number: int, part: BodyGradient) -> dict[int, Tensor]:
        """What the gradient of a branch takes, by its place among the inputs and outputs of the node."""
        places = self._places(number)
        return {places[tensor]: inside for tensor, inside in part.graph.captures.items()}


def _arguments(
    part: BodyGradient, needed: dict[int, Tensor], passed: dict[int, Tensor]
) -> list[Tensor]:
    """The arguments of a branch of the gradient, which needs some of what is passed alone."""
    rest = [
        needed[place]
        if place in needed
        else part.graph.add_input(TensorSpec(None, tensor.dtype.base), "unused")
        for place, tensor in passed.items()
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
