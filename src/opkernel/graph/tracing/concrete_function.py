"""ConcreteFunction: a function traced for one signature; called, it runs or becomes a node.

Source: TensorFlow python/eager/polymorphic_function/concrete_function.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.graph.core.default_graph import graph_of_call, innermost_default
from opkernel.graph.core.graph import DRAWING
from opkernel.graph.core.tensor import Tensor, tensors_in
from opkernel.graph.tracing.func_graph import FuncGraph
from opkernel.graph.tracing.nested_structure import packer
from opkernel.graph.tracing.tensor_spec import spec_of
from opkernel.slots import Slot

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.tracing.call_signature import CallBinder, CallSignature
    from opkernel.proto import FunctionDef

_ARRAYS = frozenset({np.ndarray})
_RUNNER: Slot[Callable[[ConcreteFunction], Callable[[Sequence[Any]], Any]]] = Slot(
    "runner of a function"
)
"""Makes the function that runs a ConcreteFunction on the values of its tensors."""


class ConcreteFunction:
    """A Python function as it was traced for certain types, shapes and values of its arguments.

    Attributes:
        graph: the body.
        signature: what it was traced for.
    """

    def __init__(self, graph: FuncGraph, signature: CallSignature, binder: CallBinder) -> None:
        self.graph = graph
        self.signature = signature
        self._binder = binder
        self._pack = packer(graph.structured_outputs)

    @property
    def function_def(self) -> FunctionDef:
        """The function as a message, for reading only: the message belongs to `graph`."""
        return self.graph.function_def

    @property
    def name(self) -> str:
        """The name of the function in libraries."""
        return self.function_def.signature.name

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders of the arguments that are tensors, then those of the captures."""
        return list(self.graph.inputs)

    @property
    def outputs(self) -> list[Tensor]:
        """The results as tensors of `graph`, flat."""
        return list(self.graph.outputs)

    @property
    def structured_outputs(self) -> Any:
        """The results as tensors of `graph`, in the form in which Python returned them."""
        return self.graph.structured_outputs

    @property
    def captured_inputs(self) -> list[Tensor]:
        """The tensors of graphs around the function that are its last inputs."""
        return list(self.graph.captures)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with what the Python function takes, or with the tensors among that alone.

        Raises:
            TypeError: it was not traced for such arguments.
        """
        count = len(self.signature.specs)
        if (
            not kwargs
            and len(args) == count != len(self.signature.leaves)
            and all(spec_of(arg) is not None for arg in args)
        ):
            for arg, spec, own in zip(args, self.signature.specs, self.graph.inputs, strict=False):
                if not spec.is_compatible_with(arg):
                    fact = f"was traced for {own.op.name!r} as {spec}, not {spec_of(arg)}"
                    raise TypeError(f"{self.graph.label} {fact}")
            return self.call(args)
        call = self._binder.bind(args, kwargs)
        if not self.signature.includes(call.signature):
            raise TypeError(f"{self.graph.label} was not traced for the arguments ({call})")
        return self.call(call.tensors)

    def call(self, values: Sequence[Any]) -> Any:
        """Call it with the values of its tensors, in order: at once, or as a node of a graph."""
        if innermost_default() is None and _ARRAYS.issuperset(map(type, values)):
            return self.run(values)  # most calls are like this
        graph = graph_of_call(tensors_in(values))
        return self.run(values) if graph is None else self.call_in(graph, values)

    @cached_property
    def run(self) -> Callable[[Sequence[Any]], Any]:
        """Runs it on arrays."""
        return _RUNNER.get()(self)

    def call_in(self, graph: Graph, values: Sequence[Any]) -> Any:
        """Add a node to a graph that calls the function; its outputs in the form of the results.

        The Operation where there are no results.
        """
        body = self.graph
        body.add_to(graph)
        op_type = "StatefulPartitionedCall" if body.is_stateful else "PartitionedCall"
        reference, arguments = body.reference, [*values, *body.further_inputs(graph)]
        op = body.create_call(graph, op_type, reference, arguments, body.control_captures)
        return self._pack(op.outputs) if op.outputs else op

    def __repr__(self) -> str:
        return f"<opkernel.ConcreteFunction {self.graph.label}>"

    def _repr_html_(self) -> str:
        """The drawing of its body, which notebooks show."""
        return DRAWING.get()(self.graph)
