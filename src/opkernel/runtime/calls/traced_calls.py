"""Calls of traced functions on arrays: the body as a plan, on the device that eager calls use.

The body runs as it was traced, not as its FunctionDef says, so that errors can tell the line of the
user's code that made a node.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from opkernel.device.local_device import eager_device
from opkernel.device.permissions import OWN_CODE
from opkernel.errors import FailedPreconditionError, OpError
from opkernel.graph import Operation, Tensor
from opkernel.graph.tracing.nested_structure import packer
from opkernel.kernel import global_kernel_registry
from opkernel.runtime.adaptive.variables import VariableSpecializer, with_selected_values
from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
from opkernel.runtime.program.builder import StepProgram, build_program
from opkernel.runtime.program.call_frame import CallSteps
from opkernel.runtime.program.error_report import report
from opkernel.runtime.program.executable import Executable, Limits
from opkernel.runtime.program.feeds_and_fetches import converters, result_of
from opkernel.runtime.program.request import Subgraph, choose_jit, is_compiling_forbidden
from opkernel.runtime.program.run_step import RunStep, SessionServices
from opkernel.runtime.program.session_state import LocalSessionState
from opkernel.slots import Slot

if TYPE_CHECKING:
    from opkernel.graph import ConcreteFunction

_Run = Callable[[Sequence[Any]], Any]
_COMPILED_RUNNER: "Slot[Callable[[ConcreteFunction], _Run]]" = Slot("runner of a compiled function")


def make_runner(function: "ConcreteFunction") -> _Run:
    """The function that runs a traced function on arrays, in the order of its inputs.

    It raises as `Session.run` does. A kernel that is registered anew counts from the next call on;
    the others keep their state.

    Raises:
        FailedPreconditionError: the function uses tensors of a graph, which have no values outside of it.
    """
    _check_free(function)
    if function.graph.jit_compile and not is_compiling_forbidden():
        return _COMPILED_RUNNER.get()(function)
    body, registry = _TracedBody(function), global_kernel_registry()
    new_step = partial(RunStep, None, body.services)
    current = body.built()

    def call(values: Sequence[Any]) -> Any:
        nonlocal current
        version, executable = current
        if version != registry.version:
            version, executable = current = body.built()
        try:
            return executable(values, new_step)
        except Exception as error:
            raised = report(error)
            note_site(raised, function)
            raise raised from (error.__cause__ if raised is error else error)

    return call


class _TracedBody:
    """The body of a traced function, with what runs it.

    Attributes:
        services: What its steps share.
    """

    def __init__(self, function: "ConcreteFunction") -> None:
        graph, device = function.graph, eager_device()
        version = graph.graph_def_versions.producer
        library = FunctionLibraryRuntime(
            graph.function_library, version, device, optimize=True, jit=choose_jit(graph.jit)
        )
        self._graph, self._library = graph, library
        self._kernels = library.kernels_of(graph)
        self._part = Subgraph(graph.inputs, graph.outputs, graph.control_outputs)
        self._answer = answer_of(function)
        feeds, captures = converters(graph.inputs, LocalSessionState()), graph.captured_values
        self._count = len(feeds) - len(captures)
        self._feeds, self._feeds_of_captures = feeds[: self._count], feeds[self._count :]
        self._captures = [*captures]
        self.services = SessionServices(
            cleanup=device.resource_manager.cleanup,
            function_library=library,
            program_permissions=OWN_CODE,
        )

    @cached_property
    def _captured(self) -> list[Any]:
        """The tensors of what is captured: handles, which stay, and constants."""
        pairs = zip(self._feeds_of_captures, self._captures, strict=True)
        return [feed(one.captured_value) for feed, one in pairs]

    def built(self) -> tuple[int, Executable]:
        """The executable for the kernels of this version."""
        registry = global_kernel_registry()
        version = registry.version
        request = self._library.request(self._part, self._kernels)
        program = build_program(replace(request, is_current=lambda: registry.version == version))
        run, variables = program.run, None
        if self._kernels.asks_for_call:
            arg_types = [tensor.dtype for tensor in self._graph.inputs]
            ret_types = [tensor.dtype for tensor in self._graph.outputs]
            run = CallSteps(arg_types, ret_types).given_to(run)
        elif self._captures and request.follows_variables and not self._part.acts:
            variables = VariableSpecializer(program, self._library, self._finish, self._handles)
        run = Limits().applied(run)
        executable = Executable(
            program, self._feeds, run, self._answer, (), variables, self._captured
        )
        return version, executable

    def _finish(self, special: StepProgram, taken: Sequence[int]) -> Executable:
        """The executable of the program for values of variables, which takes the arguments alone."""
        run = Limits().applied(
            with_selected_values(special.run, taken, self._count, self._captured)
        )
        return Executable(special, self._feeds, run, self._answer)

    def _handles(self) -> dict[Operation, Any]:
        """What is captured, by the operations that stand for it."""
        tensors = self._graph.inputs[self._count :]
        return {t.op: value for t, value in zip(tensors, self._captured, strict=True)}


def answer_of(function: "ConcreteFunction") -> Callable[[Sequence[Any]], Any]:
    """The function that gives results of a step the structure in which Python returned them."""
    finishes = [result_of(tensor.dtype.base) for tensor in function.graph.outputs]
    form = function.structured_outputs
    if isinstance(form, Tensor):
        (finish,) = finishes
        return finish
    if _is_flat(form):
        places = {key: index for index, key in enumerate(sorted(form))}
        named = [(key, finishes[places[key]], places[key]) for key in form]
        return lambda results: {key: finish(results, index) for key, finish, index in named}
    pack, numbered = packer(function.structured_outputs), list(enumerate(finishes))
    return lambda results: pack([finish(results, index) for index, finish in numbered])


def _is_flat(form: Any) -> bool:
    """Whether results are a dict of tensors by name: those of signatures are."""
    return type(form) is dict and all(
        isinstance(key, str) and isinstance(value, Tensor) for key, value in form.items()
    )


def note_site(error: OpError, function: "ConcreteFunction") -> None:
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
