"""BodyGradient: the gradient of a function's body, in a graph of its own.

The function that is called is given further results, the intermediate tensors that its gradient
needs; the gradient is a function as well, which takes these. So nothing is computed twice, and what
is random is the same in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opkernel.gradients.backpropagation import backpropagate
from opkernel.gradients.frames_and_contexts import Contexts, origin
from opkernel.gradients.gradient_nodes import as_dense, gradient_dtype
from opkernel.graph import (
    FuncGraph,
    FunctionBody,
    Graph,
    Operation,
    Tensor,
    TensorSpec,
    graph_to_function_def,
    instantiate_function,
)
from opkernel.graph.core.node import NodeRequest
from opkernel.graph.core.tensor import tensors_in
from opkernel.graph.edit.loop_variables import further_output_shapes
from opkernel.graph.functions.calls import declared_types, misfit
from opkernel.graph.inference.shape_refiner import facts_of
from opkernel.graph.tracing.func_graph import function_name
from opkernel.opdef import attr_from_python
from opkernel.proto import AttrValue, NameAttrList
from opkernel.types import DataType


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a loop in a graph: a name, the graph, the arguments and the results."""

    name: str
    graph: Graph
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]


Body = FunctionBody | Turn


_COPIED = frozenset({"Const", "VarHandleOp"})


class GradientGraph(FuncGraph):
    """The graph of a gradient function, while it is made; the graph around it is the body that it belongs to.

    It captures tensors of that body. Constants are copied instead, and shapes are taken there, so that not
    the whole tensor is kept for its shape. A tensor that is alive on some branches only is kept with a
    filling for the others, and dead in the gradient where it was dead.

    State: `_copies` are its copies of operations of that body, `_values` what stands for its tensors.
    """

    def __init__(self, name: str, body: Graph) -> None:
        """A graph without operations; the functions are those of the body."""
        super().__init__(name=name, outer_graph=body, function_library=body.function_library)
        self._copies: dict[Operation, Operation] = {}
        self._values: dict[Tensor, Tensor] = {}

    @cached_property
    def _contexts(self) -> Contexts:
        assert self.outer_graph is not None
        return Contexts(self.outer_graph)

    def capture(self, tensor: Tensor) -> Tensor:
        """The tensor that stands for one of the forward body."""
        if tensor.graph is not self.outer_graph:
            return super().capture(tensor)
        if tensor not in self._values:
            self._values[tensor] = self._value(tensor)
        return self._values[tensor]

    def capture_value(self, tensor: Tensor) -> Tensor:
        """The stand-in for a tensor that is always alive and not constant."""
        return super().capture(tensor)

    def _value(self, tensor: Tensor) -> Tensor:
        if tensor.op.type in _COPIED:
            return self._copy(tensor.op).outputs[tensor.value_index]
        branches, source = self._contexts.of(tensor), origin(tensor)
        if source is not tensor:
            value = self.capture(source)
            known = self._contexts.of(source)
            branches = tuple([branch for branch in branches if branch not in known])
        else:
            for branch in reversed(branches):
                tensor = branch.fill(tensor)
            value = self.capture_value(tensor)
        for branch in branches:
            with self.as_default(), self.name_scope(None), self.control_dependencies(None):
                value = branch.switch(value, self.capture(branch.decider))[branch.index]
        return value

    def _copy(self, op: Operation) -> Operation:
        copy = self._copies.get(op)
        if copy is None:
            with self.name_scope(None), self.control_dependencies(None):
                node = op.node_def
                copy = self.create_op(node.op, name=node.name, attrs=dict(node.attr))
            self._copies[op] = copy
        return copy

    def create_node(
        self, name: str, request: NodeRequest, control_inputs: Iterable[Any] = ()
    ) -> Operation:
        """Make an operation here, or in the body where it only asks for the shape of its tensors."""
        body, op_type = self.outer_graph, request.op_type
        of_shape = self.function_library.traits(op_type).reads_shapes_only
        if body is not None and (of_shape or op_type == "VariableShape"):
            inputs = request.inputs
            given = list(inputs.values()) if isinstance(inputs, dict) else inputs
            tensors = list(tensors_in(given))
            if tensors and all(tensor.graph is body and self.is_kept(tensor) for tensor in tensors):
                with body.as_default(), body.control_dependencies(None):
                    return body.create_node(op_type, request)
        return super().create_node(name, request, control_inputs)

    def is_kept(self, tensor: Tensor) -> bool:
        """Whether a tensor of the body has to be kept for the gradient."""
        return True


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
        self.graph = graph or GradientGraph(gradient_name(body), body.graph)
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

    def _grad(self, index: int, result: Tensor) -> Tensor:
        shape = None if result.dtype.base == DataType.DT_RESOURCE else result.shape
        return self.graph.add_input(TensorSpec(shape, gradient_dtype(result)), f"grad_{index}")


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
