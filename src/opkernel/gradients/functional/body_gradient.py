"""BodyGradient: the gradient of a function's body, in a graph of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from opkernel.gradients.backpropagation import backpropagate
from opkernel.gradients.functional.gradient_graph import GradientGraph
from opkernel.gradients.indexed_slices import as_dense
from opkernel.gradients.tensors import gradient_dtype
from opkernel.graph import (
    FunctionBody,
    Graph,
    Operation,
    Tensor,
    TensorSpec,
    graph_to_function_def,
    instantiate_function,
)
from opkernel.graph.edit.loop_variables import further_output_shapes
from opkernel.graph.functions.call_types import declared_types, misfit
from opkernel.graph.inference.shape_refiner import facts_of
from opkernel.graph.tracing.func_graph import function_name
from opkernel.opdef import attr_from_python
from opkernel.proto import AttrValue, NameAttrList
from opkernel.types import DataType


class Body(Protocol):
    """A function's body, or one turn of a loop."""

    @property
    def name(self) -> str:
        """The name of the function."""

    @property
    def graph(self) -> Graph:
        """The graph that its nodes are in."""

    @property
    def inputs(self) -> Sequence[Tensor]:
        """Its arguments."""

    @property
    def outputs(self) -> Sequence[Tensor]:
        """Its results."""


class BodyGradient:
    """The gradients of a body's results by its arguments.

    Attributes:
        body: the body; the tensors that the gradients need have yet to become its results.
        graph: the nodes of the gradients; it captures tensors of the body.
        grads: by the number of a result, the argument of `graph` that is its gradient.
        found: for each argument of the body its gradient, or None.
    """

    def __init__(
        self,
        body: Body,
        with_grads: Sequence[int],
        graph: GradientGraph | None = None,
        stops: Sequence[Tensor] = (),
    ) -> None:
        """Make it for those results that have gradients, in an empty graph; `stops` are constant."""
        self.body = body
        self.graph = graph or GradientGraph(name=gradient_name(body), outer_graph=body.graph)
        results = body.outputs
        self.grads = {index: self._grad(index, results[index]) for index in with_grads}
        with self.graph.as_default():
            ys, grad_ys = [results[index] for index in with_grads], list(self.grads.values())
            found = backpropagate(ys, list(body.inputs), grad_ys, [*body.inputs, *stops])
            self.found: list[Tensor | None] = [as_dense(grad) for grad in found]

    @property
    def results(self) -> list[Tensor]:
        """The gradients that there are."""
        return [grad for grad in self.found if grad is not None]

    @property
    def captures(self) -> dict[Tensor, Tensor]:
        """The tensors of the body that the gradients need, each with its stand-in."""
        return self.graph.captures

    def _grad(self, index: int, result: Tensor) -> Tensor:
        spec = TensorSpec(None if _is_handle(result) else result.shape, gradient_dtype(result))
        return self.graph.add_input(spec, f"grad_{index}")


def gradient_name(body: Body) -> str:
    """The prefix of the names of a function's gradients."""
    return function_name(f"{body.name}_gradient")


def body_of(op: Operation, function: NameAttrList, inputs: Sequence[Tensor]) -> FunctionBody:
    """The body of a function that an operation calls; it has the known facts of the inputs."""
    body = called_body(op, function)
    for argument, tensor in zip(body.inputs, inputs, strict=True):
        body.graph.refiner.define(argument.op, facts_of(tensor))
    return body


def called_body(op: Operation, function: NameAttrList, attr: str = "") -> FunctionBody:
    """The body of a function that an operation calls, for `cond` and `body` of a loop by that attr.

    Raises:
        InvalidArgumentError, InternalError: its types are not those of the call (`misfit`).
    """
    library = op.graph.function_library
    signature = library.get_function(function.name).signature
    error = misfit(op, attr, function.name, declared_types(signature, function.attr))
    if error is not None:
        raise error
    return instantiate_function(library, function)


def new_function(
    graph: Graph,
    name: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    like: FunctionBody | None = None,
) -> AttrValue:
    """Add a function of the nodes of a graph to its library.

    Args:
        graph: the nodes.
        name: the beginning of its name.
        inputs: its arguments.
        outputs: its results.
        like: a function whose attrs, and whose nodes that run for their effects, it has too.

    Returns:
        The value of an attr that names it.
    """
    function = graph_to_function_def(
        graph,
        name,
        inputs,
        outputs,
        control_outputs={} if like is None else {op.name: op for op in like.control_ret_nodes},
        attrs={} if like is None else like.function_def.attr,
        append_hash_to_fn_name=True,
    )
    graph.function_library.add_function(function)
    return AttrValue(func=NameAttrList(name=function.signature.name))


def give_more_results(
    op: Operation, further: Sequence[Tensor], functions: Mapping[str, AttrValue]
) -> None:
    """Let an operation call functions that have further results.

    Args:
        op: the operation; its outputs grow.
        further: tensors of the types of the further results.
        functions: the attrs that name the functions.
    """
    types = [*op.output_types, *[tensor.dtype for tensor in further]]
    attrs = {**functions, "Tout": attr_from_python(types, "list(type)")}
    if "output_shapes" in op.attr:
        attrs["output_shapes"] = attr_from_python([], "list(shape)")
    op.set_attrs({**attrs, **further_output_shapes(op, len(further))})


def _is_handle(tensor: Tensor) -> bool:
    return tensor.dtype.base == DataType.DT_RESOURCE
