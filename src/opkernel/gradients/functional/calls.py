"""Gradients of calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opkernel.gradients.backpropagation import backpropagate
from opkernel.gradients.functional.body_gradient import (
    BodyGradient,
    body_of,
    give_more_results,
    gradient_name,
    new_function,
)
from opkernel.gradients.indexed_slices import Gradient, as_dense
from opkernel.gradients.node_methods import attrs_of, nodes
from opkernel.gradients.registry import Gradients
from opkernel.gradients.tensors import gradient_dtype, zeros_like
from opkernel.graph import FunctionBody, Operation, Tensor, placeholder
from opkernel.proto import AttrValue, NameAttrList


def call_gradient(op: Operation, *grads: Gradient | None) -> Gradients:
    """The gradient of PartitionedCall and StatefulPartitionedCall."""
    function = op.node_def.attr["f"].func
    if op.graph.function_library.find_gradient(function.name):
        return _recorded_gradient(op, function, grads)
    given = _given(grads)
    body = body_of(op, function, op.inputs)
    part = BodyGradient(body, list(given))
    needed = _keep(op, body, part.captures)
    backward = new_function(part.graph, part.graph.name, part.graph.inputs, part.results)
    attrs = attrs_of(op, "config", "config_proto", "executor_type")
    return _call(op.type, [*given.values(), *needed], part.found, backward, **attrs)


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
    arguments = [*body.inputs, *grad_ys]
    again = new_function(body.graph, gradient_name(body), arguments, results)
    call = "StatefulPartitionedCall" if op.op_def.is_stateful else "PartitionedCall"
    return _call(call, [*op.inputs, *given.values()], found, again)


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


def _keep(op: Operation, body: FunctionBody, wanted: Iterable[Tensor]) -> list[Tensor]:
    """Have the function give the tensors of its body that the gradient needs.

    Returns:
        For each of them the input or output of the operation that it is.
    """
    inputs = op.inputs
    arguments, results = list(body.inputs), list(body.outputs)
    further = [tensor for tensor in wanted if tensor not in arguments + results]
    if further:
        results += further
        name = f"{body.name}_forward"
        forward = new_function(body.graph, name, arguments, results, body)
        give_more_results(op, further, {"f": forward})
    of_body = dict(zip(arguments + results, [*inputs, *op.outputs], strict=True))
    of_body |= dict(zip(arguments, inputs, strict=True))  # also where the body gives them back
    return [of_body[tensor] for tensor in wanted]


def _call(
    op_type: str,
    arguments: Sequence[Any],
    found: Sequence[Tensor | None],
    function: AttrValue,
    **attrs: Any,
) -> list[Any]:
    """Call a function that gives those of the gradients that were found."""
    types = [grad.dtype for grad in found if grad is not None]
    results = iter(getattr(nodes, op_type)(arguments, Tout=types, f=function, **attrs))
    return [None if grad is None else next(results) for grad in found]
