"""Calls of traced functions on arrays: the body as a plan, on the device that eager calls use.

The body runs as it was traced, not as its FunctionDef says, so that errors can tell the line of the
user's code that made a node.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opkernel.device.local_device import eager_device
from opkernel.device.permissions import OWN_CODE
from opkernel.errors import FailedPreconditionError, OpError
from opkernel.graph import Tensor
from opkernel.graph.tracing.nested_structure import packer
from opkernel.kernel import global_kernel_registry
from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
from opkernel.runtime.program.builder import build_program
from opkernel.runtime.program.error_report import report
from opkernel.runtime.program.executable import Executable
from opkernel.runtime.program.feeds import converters
from opkernel.runtime.program.limits import Limits
from opkernel.runtime.program.results import result_of
from opkernel.runtime.program.subgraph import Subgraph
from opkernel.runtime.step.call_step import CallSteps
from opkernel.runtime.step.run_step import RunStep, SessionServices
from opkernel.runtime.step.session_state import LocalSessionState

if TYPE_CHECKING:
    from opkernel.graph import ConcreteFunction

__all__ = ["make_runner"]

_Run = Callable[[Sequence[Any]], Any]


def make_runner(function: "ConcreteFunction") -> _Run:
    """The function that runs a traced function on arrays, in the order of its inputs.

    It raises as `Session.run` does. A kernel that is registered anew counts from the next call on;
    the others keep their state.

    Raises:
        FailedPreconditionError: the function uses tensors of a graph, which have no values outside of it.
    """
    _check_free(function)
    graph, device = function.graph, eager_device()
    version = graph.graph_def_versions.producer
    library = FunctionLibraryRuntime(graph.function_library, version, device, optimize=True)
    kernels = library.kernels_of(graph)
    part = Subgraph(graph.inputs, graph.outputs, graph.control_outputs)
    services = SessionServices(
        cleanup=device.resource_manager.cleanup,
        function_library=library,
        permissions=OWN_CODE,
    )
    feeds, answer = converters(graph.inputs, LocalSessionState()), _answer(function)
    registry = global_kernel_registry()
    arg_types, ret_types = ([t.dtype for t in ends] for ends in (graph.inputs, graph.outputs))

    def built() -> tuple[int, Executable, RunStep | None]:
        version = registry.version
        request = library.request(part, kernels)
        program = build_program(replace(request, is_current=lambda: registry.version == version))
        any_step = None if program.executor.uses_step else RunStep(None, services)
        run = program.run
        if kernels.asks_for_call:
            run = CallSteps(arg_types, ret_types).given_to(run)
        return version, Executable(program, feeds, Limits().applied(run), answer), any_step

    current, captured = built(), [*graph.captured_values]

    def call(values: Sequence[Any]) -> Any:
        nonlocal current
        if captured:
            values = [*values, *[value.captured_value for value in captured]]
        version, executable, any_step = current
        if version != registry.version:
            version, executable, any_step = current = built()
        try:
            converted = [feed(value) for feed, value in zip(feeds, values)]  # noqa: B905  # as many
            if any_step is not None:
                return executable.answered(executable.run(any_step, *converted))
            return executable.step(converted, RunStep(None, services))
        except Exception as error:
            raised = report(error)
            _note_site(raised, function)
            raise raised from (error.__cause__ if raised is error else error)

    return call


def _answer(function: "ConcreteFunction") -> Callable[[Sequence[Any]], Any]:
    """The function that gives results of a step the structure in which Python returned them."""
    finishes = [result_of(tensor.dtype.base) for tensor in function.graph.outputs]
    if isinstance(function.structured_outputs, Tensor):
        (finish,) = finishes
        return finish
    pack, numbered = packer(function.structured_outputs), list(enumerate(finishes))
    return lambda results: pack([finish(results, index) for index, finish in numbered])


def _note_site(error: OpError, function: "ConcreteFunction") -> None:
    """Note on an error the line of the user's code that made the node which failed."""
    op = None if error.node is None else function.graph.by_name.get(error.node)
    site = None if op is None else op.traceback
    if site:
        error.add_note(f"{error.node!r} was made at {site[-1].filename}:{site[-1].lineno}")


def _check_free(function: "ConcreteFunction") -> None:
    graph = function.graph
    outside = [tensor.name for tensor in graph.captures]
    outside += [op.name for op in graph.control_captures]
    if outside:
        raise FailedPreconditionError(
            f"Function {graph.name!r} uses {outside[0]!r} of a graph, which has no value outside of "
            f"it. Call the function while that graph is being built, or pass the value"
        )
