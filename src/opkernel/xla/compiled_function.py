"""Calls of functions that were made with `jit_compile`: a program for each combination of shapes.

Variables that a function captures are read before its program runs, and assigned to afterwards, while nobody else
may write to them.

Source: TensorFlow compiler/jit/xla_launch_util.h, device_compiler.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.errors import UnimplementedError
from opkernel.runtime.calls.traced_calls import answer_of, note_site
from opkernel.runtime.engines.cluster import EngineCluster
from opkernel.runtime.engines.cluster_kernel import Variables
from opkernel.runtime.engines.engine import ClusterArgument, CompiledCluster
from opkernel.runtime.engines.late_work import LateWork
from opkernel.runtime.program.error_report import report
from opkernel.runtime.program.feeds_and_fetches import converters
from opkernel.runtime.program.session_state import LocalSessionState
from opkernel.xla.compiler import XlaCompiler
from opkernel.xla.computation import XlaCompilationResult

if TYPE_CHECKING:
    from opkernel.graph import ConcreteFunction


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
    """A traced function with its programs by the shapes of its arguments.

    The cluster takes the constants that are captured first, then the arguments, then the variables.
    """

    def __init__(self, function: ConcreteFunction) -> None:
        graph = function.graph
        self._feeds = converters(graph.inputs, LocalSessionState())
        captured = [one.captured_value for one in graph.captured_values]
        count = len(graph.inputs) - len(captured)
        held = [
            _held(feed(value)) for feed, value in zip(self._feeds[count:], captured, strict=True)
        ]
        constants = [place for place, one in enumerate(held, count) if _is_constant(one)]
        others = [place for place in range(count, len(graph.inputs)) if place not in constants]
        self._constants = [held[place - count] for place in constants]
        self._resources = [held[place - count] for place in others]
        inputs = [graph.inputs[place] for place in (*constants, *range(count), *others)]
        compiler = XlaCompiler(keeps_programs=True)

        def compile_for(arguments: Sequence[ClusterArgument]) -> XlaCompilationResult:
            return compiler.compile_graph(
                graph, inputs, graph.outputs, arguments, graph.control_outputs
            )

        self._late = LateWork()
        self._cluster = EngineCluster(compile_for, inputs, len(constants), len(constants))

    def run(self, values: Sequence[Any]) -> list[Any]:
        """The results for the values of the arguments."""
        given = [feed(value) for feed, value in zip(self._feeds, values)]  # noqa: B905  # the rest is captured
        tensors = [*self._constants, *given]
        if not self._resources:
            return self._ran(tensors)[1]
        variables = Variables(tensors, self._resources)
        with variables.locked():
            program, results, written = self._ran(variables.inputs())
            variables.assign(program.resource_updates, written)
        return results

    def _ran(self, inputs: Sequence[Any]) -> tuple[CompiledCluster, list[Any], list[Any]]:
        """The program for some inputs, its results, and the values of variables that it writes."""

        def work() -> tuple[CompiledCluster, list[Any], list[Any]]:
            program = self._cluster.program(inputs)
            return (program, *program.run(inputs))

        budget = current_budget()
        if budget is None or budget.deadline is None:
            return work()
        return self._late.do(work, budget.deadline, "XLA compiled a function and ran it")


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
