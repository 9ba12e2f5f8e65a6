"""GradientGraph: the body of a gradient function, while it is made.

It captures tensors of the body that it is the gradient of. Constants are copied instead, and shapes
are taken there, so that not the whole tensor is kept for its shape. A tensor that is alive on some
branches only is kept with a filling for the others, and dead in the gradient where it was dead.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opkernel.gradients.contexts import Contexts, origin
from opkernel.graph import FuncGraph, FunctionLibraryDefinition, Graph, Operation, Tensor
from opkernel.graph.core.node import NodeRequest
from opkernel.graph.core.tensor import tensors_in

if TYPE_CHECKING:
    from opkernel.opdef import OpRegistry

_COPIED = frozenset({"Const", "VarHandleOp"})


class GradientGraph(FuncGraph):
    """The graph of a gradient function; the graph around it is the body that it belongs to.

    State: `_copies` are its copies of operations of that body, `_values` what stands for its tensors.
    """

    def __init__(
        self,
        op_registry: OpRegistry | None = None,
        *,
        name: str = "",
        outer_graph: Graph | None = None,
        function_library: FunctionLibraryDefinition | None = None,
    ) -> None:
        """A graph without operations; the functions are those of the body, if none are given."""
        if function_library is None and outer_graph is not None:
            function_library = outer_graph.function_library
        super().__init__(
            op_registry, name=name, outer_graph=outer_graph, function_library=function_library
        )
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
