"""Calls of functions that were made with `jit_compile`: a program for each combination of shapes.

Variables that a function captures are read before its program runs, and assigned to afterwards, while nobody else
may write to them.

Source: TensorFlow compiler/jit/xla_launch_util.h, device_compiler.h.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.errors import UnimplementedError
from opkernel.graph import Tensor
from opkernel.runtime.calls.traced_calls import answer_of, note_site
from opkernel.runtime.program.error_report import report
from opkernel.runtime.program.feeds import converters
from opkernel.runtime.step.session_state import LocalSessionState
from opkernel.types import DataType
from opkernel.xla.argument import XlaArgument
from opkernel.xla.compiler import XlaCompiler
from opkernel.xla.computation import XlaCompilationResult

if TYPE_CHECKING:
    from opkernel.graph import ConcreteFunction
    from opkernel.ops.variables.var import Var

__all__ = ["make_runner"]

_MAX_KEPT = 64
"""So many programs of a function are kept."""


def make_runner(function: ConcreteFunction) -> Callable[[Sequence[Any]], Any]:
    """The function that runs a traced function on arrays, compiled; it raises as `Session.run` does.

    Raises:
        UnimplementedError: JAX is not installed.
    """
    compiled, answer = _CompiledFunction(function), answer_of(function)

    def call(values: Sequence[Any]) -> Any:
        try:
            return answer(compiled.run(values))
        except Exception as error:
            raised = report(error)
            note_site(raised, function)
            raise raised from (error.__cause__ if raised is error else error)

    return call


class _CompiledFunction:
    """A traced function with its programs by the shapes of its arguments."""

    def __init__(self, function: ConcreteFunction) -> None:
        graph = function.graph
        self._graph, self._compiler = graph, XlaCompiler()
        self._feeds = converters(graph.inputs, LocalSessionState())
        captured = [one.captured_value for one in graph.captured_values]
        count = len(graph.inputs) - len(captured)
        self._captured = [
            _held(feed(value)) for feed, value in zip(self._feeds[count:], captured, strict=True)
        ]
        variables: dict[int, Var] = {
            id(one): one for one in self._captured if not _is_constant(one)
        }
        # In one order, so that no two calls wait for each other.
        self._variables = [variables[number] for number in sorted(variables)]
        self._programs: dict[Any, XlaCompilationResult] = {}
        self._lock = threading.Lock()

    def run(self, values: Sequence[Any]) -> list[Any]:
        """The results for the values of the arguments."""
        given = [feed(value) for feed, value in zip(self._feeds, values)]  # noqa: B905  # the rest is captured
        with ExitStack() as held:
            for variable in self._variables:
                held.enter_context(variable.tensor_ref.mutex)
            tensors = [*given, *map(_value, self._captured)]
            program = self._program(tensors)
            results, written = program.run(tensors)
            for update, value in zip(program.resource_updates, written, strict=True):
                variable = self._captured[update.input_index - len(given)]
                variable.assign(value.copy(), update.dtype)
        return results

    def _program(self, tensors: Sequence[Any]) -> XlaCompilationResult:
        key = tuple([None if one is None else one.shape for one in tensors])
        program = self._programs.get(key)
        if program is None:
            with self._lock:
                program = self._programs.get(key) or self._compiled(tensors)
                if len(self._programs) >= _MAX_KEPT:
                    self._programs.clear()
                self._programs[key] = program
        return program

    def _compiled(self, tensors: Sequence[Any]) -> XlaCompilationResult:
        count = len(tensors) - len(self._captured)
        inputs = self._graph.inputs
        arguments = [
            _parameter(tensor, value)
            for tensor, value in zip(inputs[:count], tensors, strict=False)
        ]
        arguments += [
            _captured_argument(tensor, one)
            for tensor, one in zip(inputs[count:], self._captured, strict=True)
        ]
        return self._compiler.compile_graph(
            self._graph, inputs, self._graph.outputs, arguments, self._graph.control_outputs
        )


def _held(tensor: Any) -> Any:
    """What is captured: a constant, or the variable of a handle.

    Raises:
        UnimplementedError: it is another resource.
    """
    if tensor.dtype != object:
        return tensor
    resource = getattr(tensor.flat[0], "resource", None)
    if not hasattr(resource, "tensor_ref"):
        raise UnimplementedError("A compiled function can capture variables and constants only")
    return resource


def _is_constant(captured: Any) -> bool:
    return isinstance(captured, np.ndarray | np.generic)


def _value(captured: Any) -> Any:
    """The tensor of what is captured now; None for a variable without a value."""
    if _is_constant(captured):
        return captured
    return captured.tensor_ref.tensor if captured.is_initialized else None


def _parameter(tensor: Tensor, value: Any) -> XlaArgument:
    return XlaArgument.parameter(tensor.dtype, np.shape(value), tensor.op.name)


def _captured_argument(tensor: Tensor, captured: Any) -> XlaArgument:
    if tensor.dtype is not DataType.DT_RESOURCE:
        return XlaArgument.of_constant(captured, tensor.op.name)
    value, name = _value(captured), tensor.op.name
    if value is None:
        return XlaArgument.variable(captured.dtype, name=name, is_initialized=False)
    return XlaArgument.variable(captured.dtype, value.shape, name)
