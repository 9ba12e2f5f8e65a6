"""CalledFunctions: the functions that the nodes of a graph call, as handles of a runtime.

A function runs all of its nodes with state. But TensorFlow turns an If, Case or While with the attr
`_lower_using_switch_merge` into Switches and Merges, and prunes the graph after that. So only nodes run
that a result or a control output of the function needs. The same holds for the functions that a
PartitionedCall calls. A session with `place_pruned_graph` prunes the graph first.

Source: TensorFlow core/common_runtime/lower_functional_ops.cc, graph_execution_state.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkernel import kernel
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph import FunctionLibraryDefinition, Operation
from opkernel.graph.functions.function_library import GRADIENT_OP
from opkernel.graph.functions.lowering import is_lowered, is_part_of_graph
from opkernel.proto import NameAttrList, NodeDef
from opkernel.runtime import calls  # loaded where there are functions

if TYPE_CHECKING:
    from opkernel.kernel import InstantiateOptions
    from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
    from opkernel.runtime.calls.instantiated_function import InstantiatedFunction

_PARTITIONED = ("PartitionedCall", "StatefulPartitionedCall")
"""The ops for which an unknown function is an invalid argument, and not a missing one, as in TensorFlow."""


class CalledFunctions:
    """Gives the functions that nodes call.

    Args:
        runtime: Has the functions.
        lowers: Whether If, Case and While are lowered in the graph of the nodes.
    """

    def __init__(self, runtime: FunctionLibraryRuntime, *, lowers: bool = False) -> None:
        self._runtime = runtime
        self.lowers = lowers

    def functions(self, op: Operation, attr: str) -> list[InstantiatedFunction]:
        """The functions of an attr of type `func` or `list(func)` of a node."""
        value = op.node_def.attr[attr]
        references = value.list.func if value.HasField("list") else [value.func]
        options = calls.options_of_call(op.node_def)
        return [self._called(op, one, options, attr) for one in references]

    def function_of(self, op: Operation) -> InstantiatedFunction | None:
        """The function that a node calls by having its name as op; None for all other nodes.

        A SymbolicGradient calls the gradient of the function in its attr `f`.
        """
        is_gradient, runtime = op.type == GRADIENT_OP, self._runtime
        if not is_gradient and op.type not in runtime.library_with(op.type):
            return None
        reference = NameAttrList(name=op.type, attr=op.node_def.attr)
        if is_gradient:
            return calls.handle_of(runtime, reference, kernel.InstantiateOptions())
        return self._called(op, reference, kernel.InstantiateOptions())

    def add_functions(self, library: FunctionLibraryDefinition) -> None:
        """Know the functions, too, that a pass has added to a copy of the library."""
        self._runtime.add_functions(library)

    def _called(
        self, op: Operation, reference: NameAttrList, options: InstantiateOptions, attr: str = ""
    ) -> InstantiatedFunction:
        """The handle of a function that a node calls; it refuses calls with other types than its own."""
        from opkernel.graph.functions.call_types import misfit  # of functions alone

        is_pruned = is_part_of_graph(op) or self._is_inlined(op, reference.name, attr)
        try:
            function = calls.handle_of(self._runtime, reference, options, is_pruned=is_pruned)
        except NotFoundError as missing:
            kind = InvalidArgumentError if op.type in _PARTITIONED else NotFoundError
            raise kind(missing.message, node=op.name, op=op.type) from None
        error = misfit(op, attr, function.name, function.instance.types)
        return function if error is None else function.refusing(error)

    def _is_inlined(self, op: Operation, name: str, attr: str) -> bool:
        """Whether lowering a node puts the function of one of its attrs into the graph."""
        if not (self.lowers and attr and is_lowered(op)):
            return False
        noinline = self._runtime.library_with(name).get_attr(NodeDef(op=name), "_noinline")
        return noinline is None or not noinline.b
