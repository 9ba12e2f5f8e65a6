"""Subgraph: what certain feeds, fetches and targets need of a graph; ExecutorArgs: what runs it.

Source: TensorFlow core/graph/subgraph.cc.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from opkernel.graph import FunctionLibraryDefinition, Graph, Operation, Tensor
from opkernel.graph.core.structural_ops import ASSIGNMENTS, VARIABLE_OPS
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.prune import Needs, prune_and_order
from opkernel.proto import NodeDef
from opkernel.records import dataclass, field
from opkernel.runtime.plan.functional_ops import FUNCTIONAL_OPS, FunctionLibrary

if TYPE_CHECKING:
    from opkernel.runtime.adaptive.findings import Finding
    from opkernel.runtime.program.kernels import KernelCache
    from opkernel.runtime.step.inter_op_pool import InterOpPool
    from opkernel.runtime.step.kernel_watcher import KernelWatcher

_TAKES_SHAPES = "BroadcastGradientArgs"
"""An op of shapes, whose own shape is not what counts."""


@dataclass(frozen=True)
class Subgraph:
    """A part of a graph.

    Attributes:
        feeds: The tensors that are given.
        fetches: Those that are computed.
        targets: The operations that run for their effects.
        kind: Says what an operation needs.
        order: All that is needed, inputs before consumers, if that is known.
    """

    feeds: Sequence[Tensor]
    fetches: Sequence[Tensor]
    targets: Sequence[Operation] = ()
    kind: type[Needs] = Needs
    order: list[Operation] | None = None

    @property
    def graph(self) -> Graph | None:
        """The graph; None where nothing is fetched or run."""
        graphs = [tensor.graph for tensor in self.fetches] + [op.graph for op in self.targets]
        return graphs[0] if graphs else None

    @property
    def names(self) -> Sequence[str]:
        """The names of what is fetched and run."""
        return [tensor.name for tensor in self.fetches] + [op.name for op in self.targets]

    @cached_property
    def operations(self) -> list[Operation]:
        """All that is needed, inputs before consumers.

        Raises:
            InvalidArgumentError: the operations depend on each other in a cycle.
        """
        if self.order is not None:
            return self.order
        return prune_and_order(self.fetches, self.targets, self.feeds, self.kind)

    @property
    def knows_shapes(self) -> bool:
        """Whether the shapes of all feeds are known."""
        return all(tensor.shape.is_fully_defined() for tensor in self.feeds)

    @property
    def has_variables(self) -> bool:
        """Whether operations stand for variables."""
        return not VARIABLE_OPS.isdisjoint([op.type for op in self.operations])

    @property
    def acts(self) -> bool:
        """Whether operations have effects, but for calls, assignments, and what watches over values."""
        signatures = {op.signature for op in self.operations if op.type not in ASSIGNMENTS}
        acting = [one for one in signatures if effect_of(one) is Effect.ACTS]
        return not all(one.traits.calls or one.traits.debug_only for one in acting)

    @cached_property
    def reads_shapes(self) -> bool:
        """Whether operations, or functions that they call, ask for the shapes of tensors."""
        ops = self.operations
        if any(op.traits.reads_shapes_only or op.type == _TAKES_SHAPES for op in ops):
            return True
        calls = [o for o in ops if o.type in FUNCTIONAL_OPS or o.type in o.graph.function_library]
        nodes = [op.node_def for op in calls]
        return bool(calls) and read_shapes(calls[0].graph.function_library, nodes)


@dataclass(frozen=True)
class ExecutorArgs:
    """The arguments from which an executor is made.

    Attributes:
        feeds: The tensors that `run` gets values for.
        fetches: The tensors that it computes.
        targets: The operations that it runs.
        kernels: The kernels of the nodes.
        library: The functions that nodes call.
        watcher: Watches the kernels, where given.
        pool: The threads that steps have for expensive kernels, if they have any.
        operations: What is needed, inputs before consumers, if that is known.
        findings: Take what the executor finds out about its steps.
    """

    feeds: Sequence[Tensor]
    fetches: Sequence[Tensor]
    targets: Sequence[Operation]
    kernels: KernelCache
    library: FunctionLibrary
    watcher: KernelWatcher | None = None
    pool: InterOpPool | None = None
    operations: list[Operation] | None = None
    findings: MutableSequence[Finding] = field(default_factory=list)

    @cached_property
    def order(self) -> list[Operation]:
        """The operations that are needed, inputs before consumers."""
        if self.operations is not None:
            return self.operations
        return prune_and_order(self.fetches, self.targets, self.feeds)


def read_shapes(library: FunctionLibraryDefinition, nodes: Sequence[NodeDef]) -> bool:
    """Whether nodes, or the functions that they need, ask for shapes."""
    bodies = [function.node_def for function in library.reachable_definitions(nodes).values()]
    types = {node.op for node in chain(nodes, *bodies)}
    return _TAKES_SHAPES in types or any(library.traits(op).reads_shapes_only for op in types)
