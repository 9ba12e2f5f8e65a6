"""LoweredFunctions: the functions whose calls TensorFlow replaces by their nodes, and the nodes that then run.

A function runs all of its nodes with state. But TensorFlow turns an If, Case or While with the attr
`_lower_using_switch_merge` into Switches and Merges, and prunes the graph after that. So only nodes run
that a result or a control output of the function needs. The same holds for the functions that a
PartitionedCall calls. A session with `place_pruned_graph` prunes the graph first.

Source: TensorFlow core/common_runtime/lower_functional_ops.cc, graph_execution_state.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opkernel.graph import FunctionLibraryDefinition, Operation

if TYPE_CHECKING:
    from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
    from opkernel.runtime.calls.instantiated_function import InstantiatedFunction

__all__ = ["LoweredFunctions"]


class LoweredFunctions:
    """The functions of a runtime, as a graph calls them in which If, Case and While are lowered."""

    def __init__(self, runtime: FunctionLibraryRuntime) -> None:
        self._runtime = runtime

    def functions(self, op: Operation, attr: str) -> Sequence[InstantiatedFunction]:
        """The functions of an attr of type `func` or `list(func)`."""
        return self._runtime.functions(op, attr, lowers=True)

    def function_of(self, op: Operation) -> InstantiatedFunction | None:
        """The function that a node calls by having its name as op; None for all other nodes."""
        return self._runtime.function_of(op)

    def add_functions(self, library: FunctionLibraryDefinition) -> None:
        """Know the functions, too, that a pass has added to a copy of the library."""
        self._runtime.add_functions(library)
