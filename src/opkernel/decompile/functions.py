"""The functions of a program: the plan of the fetches, and the plans of the functions it calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from opkernel.decompile.numpy_kernels import NumpyKernels
from opkernel.errors import UnimplementedError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
from opkernel.runtime.calls.instantiated_function import InstantiatedFunction
from opkernel.runtime.plan.compiled_plan import compile_plan
from opkernel.runtime.plan.functional_ops import Choice, WhileLoop
from opkernel.runtime.plan.tree import Global, Name, PlanTree, names_in
from opkernel.runtime.program.builder import prepare
from opkernel.runtime.program.kernels import KernelCache
from opkernel.runtime.program.request import ExecutorArgs, Subgraph

_HAS_STATE = ", which has state"
_OF_STEP = ("TensorArray", "Stack")
"""The prefixes of ops whose resources end with the step."""


@dataclass
class PlanOfFunction:
    """The plan of a function of the program.

    Attributes:
        function: the function that it is the plan of; None for the plan of the whole program.
        tree: the plan.
    """

    function: InstantiatedFunction | None
    tree: PlanTree

    @cached_property
    def globals(self) -> dict[Name, Global]:
        """The globals that it needs."""
        found = set(names_in([self.tree.block, self.tree.results]))
        return {name: bound for name, bound in self.tree.globals.items() if name in found}

    def functions(self) -> Iterator[InstantiatedFunction]:
        """The functions that it calls."""
        for bound in self.tree.globals.values():
            if bound.kind == "function":
                called: Sequence[Any] = [bound.value]
                if isinstance(bound.value, WhileLoop):
                    called = bound.value.condition, bound.value.body
                elif isinstance(bound.value, Choice):
                    called = bound.value.branches
                yield from called


def plans(
    feeds: Sequence[Tensor], fetches: Sequence[Tensor], *, with_numpy_only: bool
) -> list[PlanOfFunction]:
    """The plan of the fetches, and the plans of the functions it calls, directly or not.

    Raises:
        UnimplementedError: something has no source.
    """
    compiler = _Compiler(fetches[0].op.graph, with_numpy_only)
    found = [compiler.compile(None, feeds, fetches, [])]
    known: set[InstantiatedFunction] = set()
    for plan in found:  # which grows
        for function in plan.functions():
            if function not in known:
                known.add(function)
                inputs, outputs = function.body.inputs, function.body.outputs
                found.append(compiler.compile(function, inputs, outputs, function.targets))
    compiler.check()
    return found


class _Compiler:
    """Makes the plans of the functions of a program."""

    def __init__(self, graph: Graph, with_numpy_only: bool) -> None:
        self._graph = graph
        self._producer = graph.graph_def_versions.producer
        self._library = FunctionLibraryRuntime(graph.function_library, self._producer)
        self._with_numpy_only = with_numpy_only
        self._missing: list[str] = []

    def compile(
        self,
        function: InstantiatedFunction | None,
        feeds: Sequence[Tensor],
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
    ) -> PlanOfFunction:
        """The plan of a function, or of the program."""
        kernels = self._kernels(self._graph if function is None else function.body.graph)
        facts = None if function is None else [TensorFacts() for _ in feeds]
        part = Subgraph(feeds, fetches, targets)
        lowers = function is None or function.is_pruned
        request = self._library.request(part, kernels, facts, lowers=lowers)
        request = replace(request, passes=self._passes())
        part, _ = prepare(request)
        self._note_state(part.operations)
        args = ExecutorArgs(part, kernels, request.library)
        plan = compile_plan(args, in_groups=False)
        return PlanOfFunction(function, plan.tree)

    def check(self) -> None:
        """Raise UnimplementedError where something has no source."""
        if self._missing:
            missing = dict.fromkeys(self._missing)
            ops = ", ".join(f"op {op}" for op in missing if f"{op}{_HAS_STATE}" not in missing)
            where = " with NumPy alone" if self._with_numpy_only else ""
            raise UnimplementedError(f"There is no source{where} for {ops}")

    def _kernels(self, graph: Graph) -> KernelCache:
        kind = partial(NumpyKernels, self._missing) if self._with_numpy_only else KernelCache
        return kind(self._producer, graph.op_registry, function_library=self._library)

    def _passes(self) -> bool | list[str]:
        """The passes: all, or only passes that leave the ops of the model as they are."""
        if not self._with_numpy_only:
            return True
        from opkernel.optimization import optimization_passes

        return [one.name for one in optimization_passes() if "fusion" not in one.run.__module__]

    def _note_state(self, ops: Sequence[Operation]) -> None:
        """Note state that outlives a call of a Python function."""
        for op in ops:
            makes_state = any(t.is_ref or t.base.string == "resource" for t in op.output_types)
            if makes_state and op.op_def.is_stateful and not op.type.startswith(_OF_STEP):
                self._missing.append(f"{op.type}{_HAS_STATE}")
