"""Which functions may wait: those with an asynchronous kernel, or that call a function with one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

from opkernel.graph import FunctionLibraryDefinition, Operation
from opkernel.kernel import global_kernel_registry
from opkernel.proto import FunctionDef
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS, FunctionLibrary
from opkernel.types.device_types import DEVICE_CPU

_never_wait = WeakKeyDictionary[FunctionLibrary, tuple[int, dict[str, FunctionDef]]]()
"""Functions of which nothing waits, whatever they call, and the version of the kernels they had."""


class _KnownFunctions:
    """The names of functions of a library that are known: no others of these names."""

    def __init__(
        self, known: Mapping[str, FunctionDef], library: FunctionLibraryDefinition
    ) -> None:
        self._known = known
        self._library = library

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._known.get(name) is self._library[name]


def any_call_waits(calls: Sequence[Operation], library: FunctionLibrary) -> bool:
    """Whether an op may wait in the functions that some nodes call, or in those that these call.

    A fact about a function holds for all graphs whose nodes call functions of `library`. Operations of
    functions that have no kernel are passed over: perhaps no step ever runs them.
    """
    definitions, version = calls[0].graph.function_library, global_kernel_registry().version
    known_at, known = _never_wait.get(library, (version, {}))
    if known_at != version:
        known = {}
    without = _KnownFunctions(known, definitions)
    reached = definitions.reachable_definitions((op.node_def for op in calls), without)
    ops = {node.op for name in reached for node in reached[name].node_def} - RUN_BY_EXECUTORS
    if any(map(_has_asynchronous_kernel, ops)):
        return True
    known.update({name: reached[name] for name in reached})
    _never_wait[library] = version, known
    return False


def _has_asynchronous_kernel(op: str) -> bool:
    """Whether a kernel of an op is asynchronous, as far as one can tell without making it."""
    registry = global_kernel_registry()
    is_known = bool(registry.candidates(op, DEVICE_CPU, ""))  # plugins are slow to look for
    registrations = registry.registered_for(op) if is_known else registry.registrations_for(op)
    from opkernel.kernel import AsyncOpKernel, FunctionKernelFactory  # for graphs with functions

    return any(
        one.is_coroutine
        if isinstance(one, FunctionKernelFactory)
        else isinstance(one, type) and issubclass(one, AsyncOpKernel)
        for one in (registration.factory for registration in registrations)
    )
