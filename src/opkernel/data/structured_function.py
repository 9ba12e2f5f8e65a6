"""Python functions of elements as functions of tensors, for the attrs of ops on datasets.

Source: StructuredFunctionWrapper in TensorFlow python/data/ops/structured_function.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.data.component_specs import carrier_of
from opkernel.data.structure import (
    checked_function,
    covering,
    element_packer,
    flat_specs,
    normalized,
    spec_of_value,
    tensors_of,
    types_and_shapes,
    types_of,
)
from opkernel.device.local_device import eager_device
from opkernel.graph import FunctionLibraryDefinition, Graph
from opkernel.graph.core.default_graph import graph_of_call
from opkernel.graph.core.tensor import tensors_in
from opkernel.graph.tracing.func_graph import FuncGraph, function_name
from opkernel.opdef import global_op_registry
from opkernel.runtime.calls.eager import execute
from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
from opkernel.types import ResourceHandle, object_scalar

Make = Callable[[Any, Any], Any]


class StructuredFunction:
    """A Python function, traced for elements of a spec.

    A tuple is passed as several arguments. A list that the function returns is a tuple; lists in other places are tensors.

    Args:
        function: The function.
        input_spec: The spec of what it takes.
        graph: The graph that it is traced in; None where it is to run at once.
        make_dataset: Makes a Dataset of a variant tensor and an element spec.

    Raises:
        TypeError: it is no function.

    Attributes:
        body: The traced function.
        output_spec: The spec of what it returns.
    """

    def __init__(
        self, function: Callable[..., Any], input_spec: Any, graph: Graph | None, make_dataset: Make
    ) -> None:
        checked_function(function)
        pack = element_packer(input_spec, make_dataset)
        name = getattr(function, "__name__", None) or type(function).__name__
        self.body = FuncGraph(name=f"Dataset_{function_name(name)}", outer_graph=graph, label=name)
        tensors = [
            self.body.add_input(carrier_of(one), f"args_{index}")
            for index, one in enumerate(flat_specs(input_spec))
        ]
        self.output_spec: Any = None
        self._count = len(tensors)
        self.body.trace(lambda: self._call(function, pack(tensors)))
        self.body.close()

    def _call(self, function: Callable[..., Any], arguments: Any) -> list[Any]:
        unpacks = type(arguments) is tuple
        returned = function(*arguments) if unpacks else function(arguments)
        value = normalized(tuple(returned) if type(returned) is list else returned)
        self.output_spec = spec_of_value(value)
        return tensors_of(value, self.output_spec)

    def captured(self, graph: Graph | None) -> list[Any]:
        """The values of its further arguments."""
        if graph is not None:
            return list(self.body.further_inputs(graph))
        values = {inside: value for value, inside in self.body.captured_values.items()}
        return [_array(values[tensor].captured_value) for tensor in self.body.inputs[self._count :]]


def traced_for_states(
    trace: Callable[[Any], StructuredFunction], state: Any, next_state: Callable[[Any], Any]
) -> tuple[StructuredFunction, Any]:
    """A function that has a state, traced for the state in all shapes that it takes, and the state's spec.

    Args:
        trace: Traces the function for a spec of the state.
        state: The spec of the initial state.
        next_state: The spec of the next state, in the spec of what the function gives.

    Raises:
        TypeError: the next state has other types, or another structure.
    """
    while True:
        traced = trace(state)
        found = next_state(traced.output_spec)
        if types_of(found) != types_of(state):
            raise TypeError(f"The new state is {found}, and the initial state {state}")
        relaxed = covering(state, found)
        if relaxed == state:
            return traced, state
        state = relaxed


def _array(value: Any) -> Any:
    return object_scalar(value) if isinstance(value, ResourceHandle) else np.asarray(value)


def graph_of(*values: Any) -> Graph | None:
    """The graph that a call with these values adds to; None where it runs at once."""
    return graph_of_call(tensors_in(list(values)))


def call_op(
    op: str,
    functions: Mapping[str, StructuredFunction] | None = None,
    /,
    *,
    spec: Any = None,
    **arguments: Any,
) -> Any:
    """Call an op on datasets, at once or in a graph.

    Args:
        op: The op.
        functions: The functions of its attrs.
        spec: The spec of the elements, for the attrs `output_types` and `output_shapes`, where it has these.
        arguments: Its inputs and other attrs.
    """
    functions = functions or {}
    if spec is not None:
        declared = {attr.name for attr in global_op_registry().look_up_op_def(op).attr}
        found = types_and_shapes(spec)
        arguments |= {name: value for name, value in found.items() if name in declared}
    graph = graph_of(*arguments.values())
    if graph is None:
        graph = Graph() if functions else None
        for function in functions.values():
            assert graph is not None
            function.body.add_to(graph)
        return _execute(op, graph, arguments | _references(functions))
    for function in functions.values():
        function.body.add_to(graph)
    return getattr(raw_ops, op)(**arguments, **_references(functions))


def _references(functions: Mapping[str, StructuredFunction]) -> dict[str, Any]:
    return {attr: function.body.reference for attr, function in functions.items()}


def _execute(op: str, graph: Graph | None, arguments: Mapping[str, Any]) -> Any:
    """Run an op whose functions are those of a graph."""
    names = {arg.name for arg in global_op_registry().look_up_op_def(op).input_arg}
    library = None if graph is None else _library(graph.function_library)
    inputs = {name: value for name, value in arguments.items() if name in names}
    attrs = {name: value for name, value in arguments.items() if name not in names}
    return execute(op, inputs, attrs, library)


def _library(functions: FunctionLibraryDefinition) -> FunctionLibraryRuntime:
    return FunctionLibraryRuntime(functions, device=eager_device(), optimize=True)
