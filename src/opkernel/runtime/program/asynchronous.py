"""Which calls may wait for other nodes, so that whoever runs them must run others meanwhile."""

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from opkernel.graph import FunctionLibraryDefinition, Operation
from opkernel.kernel import global_kernel_registry
from opkernel.proto import FunctionDef
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS, FunctionLibrary
from opkernel.types.device_types import DEVICE_CPU

_never_wait: WeakKeyDictionary[FunctionLibrary, tuple[int, dict[str, FunctionDef]]] = (
    WeakKeyDictionary()
)
"""Functions of which nothing waits, whatever they call, and the version of the kernels they had."""


class _Known:
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
    without = _Known(known, definitions)
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
    return any(_makes_asynchronous_kernels(one.factory) for one in registrations)


def _makes_asynchronous_kernels(factory: Any) -> bool:
    from opkernel.kernel import AsyncOpKernel, FunctionKernelFactory  # for graphs with functions

    if isinstance(factory, FunctionKernelFactory):
        return factory.is_coroutine
    return isinstance(factory, type) and issubclass(factory, AsyncOpKernel)
