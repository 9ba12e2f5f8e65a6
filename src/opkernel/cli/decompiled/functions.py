"""The functions of a program: the plan of what is fetched, and those of the functions it calls."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

from opkernel.cli.decompiled.numpy_kernels import NumpyKernels
from opkernel.errors import UnimplementedError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.tensor_facts import TensorFacts
from opkernel.kernel import FunctionKernel, OpKernel
from opkernel.runtime.executors import ExecutorArgs
from opkernel.runtime.functions import FunctionLibraryRuntime
from opkernel.runtime.instantiated_function import InstantiatedFunction
from opkernel.runtime.kernels import KernelCache
from opkernel.runtime.optimized_args import optimized_args
from opkernel.runtime.plan import CompiledPlan, compile_plan

__all__ = ["Choice", "Loop", "PlanOfFunction", "called", "kernel_of", "plans"]

_HAS_STATE = ", which has state"
_OF_STEP = ("TensorArray", "Stack")
"""What the names of ops begin with whose resources end with the step."""


@dataclass(frozen=True)
class Loop:
    """A While as plans call it."""

    condition: InstantiatedFunction
    body: InstantiatedFunction


@dataclass(frozen=True)
class Choice:
    """A Case as plans call it."""

    branches: Sequence[InstantiatedFunction]


def called(value: Any) -> InstantiatedFunction | Loop | Choice | None:
    """What of the graph's functions a global of a plan calls; None for everything else."""
    if isinstance(value, InstantiatedFunction):
        return value
    name = getattr(value, "__qualname__", "")
    if name == "_while_loop.<locals>.loop":
        cells = inspect.getclosurevars(value).nonlocals
        return Loop(cells["condition"], cells["body"])
    if name == "_case.<locals>.branch":
        return Choice(inspect.getclosurevars(value).nonlocals["branches"])
    return None


@dataclass
class PlanOfFunction:
    """The plan of a function of the program.

    Attributes:
        function: what it is the plan of; None for that of the whole program.
        plan: the plan.
        parts: its functions; the last is the one to call.
        ops: a node for each kernel and each function of a kernel, by its id.
        hints: what its names were made of: those of nodes, with the numbers of outputs.
    """

    function: InstantiatedFunction | None
    plan: CompiledPlan
    parts: list[ast.FunctionDef]
    ops: dict[int, Operation]
    hints: list[str]

    def mentioned(self) -> Iterator[tuple[str, Any]]:
        """The globals that the text mentions, but for its own parts."""
        found = {node.id for node in self.names()}
        parts = {part.name for part in self.parts}
        for name, value in self.plan.run.__globals__.items():
            if name in found and name not in parts:
                yield name, value

    def names(self) -> Iterator[ast.Name]:
        """All names in the text."""
        nodes = (node for part in self.parts for node in ast.walk(part))
        return (node for node in nodes if isinstance(node, ast.Name))

    def functions(self) -> Iterator[InstantiatedFunction]:
        """The functions that it calls."""
        for _, value in self.mentioned():
            match called(value):
                case Loop(condition, body):
                    yield from (condition, body)
                case Choice(branches):
                    yield from branches
                case InstantiatedFunction() as function:
                    yield function


def plans(
    feeds: Sequence[Tensor], fetches: Sequence[Tensor], *, with_numpy_only: bool
) -> list[PlanOfFunction]:
    """The plan of what is fetched, and those of the functions that it calls, directly or not.

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
                body = function.body
                found.append(compiler.compile(function, body.inputs, body.outputs, body.targets))
    compiler.check()
    return found


class _Compiler:
    """Compiles the functions of a program."""

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
        args = ExecutorArgs(feeds, fetches, targets, kernels, self._library)
        facts = None if function is None else [TensorFacts() for _ in feeds]
        args = optimized_args(args, self._passes(), feed_facts=facts)
        plan = compile_plan(
            args.order, args.feeds, args.fetches, kernels, self._library, in_groups=False
        )
        self._note_state(args.order)
        ops = _ops_by_function(args.order, kernels)
        hints = [hint for op in args.order for hint in _hints(op)]
        parsed = ast.parse(plan.source).body
        parts = [part for part in parsed if isinstance(part, ast.FunctionDef)]
        return PlanOfFunction(function, plan, parts, ops, hints)

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
        """The passes: all, or those that leave the ops of the model as they are."""
        if not self._with_numpy_only:
            return True
        from opkernel.optimization import optimization_passes

        return [one.name for one in optimization_passes() if "fusion" not in one.run.__module__]

    def _note_state(self, ops: Sequence[Operation]) -> None:
        """What lives longer than a call of a function of Python does."""
        for op in ops:
            makes_state = any(t.is_ref or t.base.string == "resource" for t in op.output_types)
            if makes_state and op.op_def.is_stateful and not op.type.startswith(_OF_STEP):
                self._missing.append(f"{op.type}{_HAS_STATE}")


def _hints(op: Operation) -> Iterator[str]:
    """What a plan's names for what a node gives are made of."""
    yield op.name
    yield f"{op.name}_branch"
    if len(op.outputs) > 1:
        yield from (f"{op.name}_{i}" for i in range(len(op.outputs)))


def _ops_by_function(ops: Sequence[Operation], kernels: KernelCache) -> dict[int, Operation]:
    found: dict[int, Operation] = {}
    made = kernels.made()
    for op in ops:
        kernel = made.get(op.name)
        if kernel is not None:
            found.setdefault(id(kernel), op)
            if isinstance(kernel, FunctionKernel):
                found.setdefault(id(kernel.function), op)
    return found


def kernel_of(function: Any) -> OpKernel | None:
    """The kernel that a function of the step calls."""
    if not isinstance(function, FunctionType):
        return None
    cells = inspect.getclosurevars(function).nonlocals.values()
    return next((cell for cell in cells if isinstance(cell, OpKernel)), None)
