"""ShapedFunctions: the functions of a library, with the known facts of the arguments of each call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from opkernel.errors import OpError
from opkernel.graph import FunctionLibraryDefinition, Operation
from opkernel.graph.inference.whole_graph_refiner import WholeGraphRefiner
from opkernel.runtime.plan.functional_ops import FunctionLibrary, LibraryFunction
from opkernel.runtime.program.subgraph import read_shapes


class ShapedFunctions:
    """Gives functions compiled for what the graph of the call knows of the arguments.

    Attributes:
        has_any: whether any function was.
    """

    def __init__(self, library: FunctionLibrary, needed: Sequence[Operation]) -> None:
        """The functions of `library` for calls among the operations of a graph that are `needed`."""
        self.has_any = False
        self._library = library
        self._needed = frozenset(needed)

    def functions(self, op: Operation, attr: str) -> Sequence[LibraryFunction]:
        """The functions of an attr of type `func` or `list(func)`."""
        return [self._shaped(function, op) for function in self._library.functions(op, attr)]

    def function_of(self, op: Operation) -> LibraryFunction | None:
        """The function that a node calls by having its name as op; None for all other nodes."""
        function = self._library.function_of(op)
        return None if function is None else self._shaped(function, op)

    def add_functions(self, library: FunctionLibraryDefinition) -> None:
        """Know the functions, too, that a pass has added to a copy of the library."""
        self._library.add_functions(library)

    def _shaped(self, function: LibraryFunction, op: Operation) -> LibraryFunction:
        nodes = function.definition.node_def
        if not read_shapes(op.graph.function_library, nodes) or self._refiner is None:
            return function
        shaped = function.for_arguments(self._refiner.facts_of_arguments(op))
        self.has_any |= shaped is not function
        return shaped

    @cached_property
    def _refiner(self) -> WholeGraphRefiner | None:
        """Knows the shapes of the graph; None where it is wrong, as the step will say."""
        graph = next(iter(self._needed)).graph
        try:
            return WholeGraphRefiner.settle(graph, self._needed)
        except OpError:
            return None
