"""WatchedFunctions: the functions of a library, compiled apart with their kernels under watch."""

from __future__ import annotations

from opkernel.kernel import InstantiateOptions
from opkernel.proto import NameAttrList
from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
from opkernel.runtime.calls.instantiated_function import InstantiatedFunction
from opkernel.runtime.program.request import Variant
from opkernel.runtime.watch.checking_watcher import CheckingWatcher

__all__ = ["WatchedFunctions"]


class WatchedFunctions(FunctionLibraryRuntime):
    """The functions of another runtime with its kernels and their state, and plans of its own.

    Args:
        unwatched: The other runtime.
        variant: Which steps run them: those that can be stopped, or traced ones.
    """

    def __init__(self, unwatched: FunctionLibraryRuntime, variant: Variant) -> None:
        vars(self).update(vars(unwatched))
        self._forget_functions()
        self._original = self
        self._unwatched = unwatched
        self._watched: dict[object, tuple[InstantiatedFunction, InstantiatedFunction]] = {}
        if variant == "traced":
            from opkernel.runtime.traces import TracingWatcher  # rarely needed

            self.watcher = TracingWatcher(unwatched.watcher)
        else:
            self.watcher = CheckingWatcher(unwatched.watcher)

    def instance(
        self, reference: NameAttrList, options: InstantiateOptions, *, is_pruned: bool = False
    ) -> InstantiatedFunction:
        """The function that a reference names, watched."""
        function = self._unwatched.instance(reference, options, is_pruned=is_pruned)
        with self._lock:
            known, watched = self._watched.get(function.key, (None, function))
            if known is not function:
                watched = function.renewed()
                watched.runtime = self
                self._watched[function.key] = function, watched
        return watched
