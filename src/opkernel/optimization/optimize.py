"""optimize_graph: the passes, one after the other, on a copy of what certain fetches need; and their registry.

State: `REGISTRY` holds the passes of `built_in` once it was first asked for.

Source: TensorFlow core/common_runtime/optimization_registry.cc, graph_execution_state.cc.
"""

from __future__ import annotations

import enum
import importlib
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.node import types_given
from opkernel.graph.edit.colocation_groups import bequeath_groups
from opkernel.graph.edit.graph_edit import Tensors, listed
from opkernel.graph.edit.graph_editor import Change, GraphEditor
from opkernel.graph.edit.subgraph import copy_operations, prune_and_order
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.messages import did_you_mean
from opkernel.opdef import OpTraits
from opkernel.proto import GraphDef
from opkernel.records import dataclass
from opkernel.registrations import DeclaringSite, Registrations, declaring_site
from opkernel.slots import Slot
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.graph import FunctionBody

__all__ = [
    "Grouping",
    "OptimizationPass",
    "OptimizationPassRegistry",
    "optimization_passes",
    "register_optimization",
]


Where: TypeAlias = Callable[[OpTraits], bool]
"""Says of an op, by what may be assumed of it, whether a pass looks for it."""

Pattern: TypeAlias = frozenset[str]
"""The ops that a rewrite is written for. All else that passes know of ops, the ops' traits say."""


class Grouping(enum.IntEnum):
    """Where on a graph's way to its kernels a pass runs."""

    PRE_PLACEMENT = 0
    """After the cost model is known, before nodes are put on devices."""
    POST_PLACEMENT = 1
    """Once each node has its device."""
    POST_REWRITE_FOR_EXEC = 2
    """Once the graph was rewritten for its feeds and fetches."""
    POST_PARTITIONING = 3
    """On the part of each device."""


class OptimizationPass(NamedTuple):
    """A pass.

    Attributes:
        grouping, phase: when it runs: groupings in their order, phases ascending within one.
        name: what its switch is called; passes of the same phase run in the order of their names.
        run: edits a graph.
        on_request: whether it runs only where it is asked for by name.
        ops, where: it runs only where one of these ops is needed, or one of which `where` holds;
            everywhere if nothing is said.
        for_functions: it runs only where the graph has functions.
        for_engines: it runs only where an engine compiles clusters (`GraphEditor.jit`).
        rounds: results may be rounded otherwise, so that it does not run where they must not be
            (`GraphEditor.keeps_bits`).
    """

    grouping: Grouping
    phase: int
    name: str
    run: Callable[[GraphEditor], None]
    on_request: bool = False
    ops: frozenset[str] = frozenset()
    where: Where | None = None
    for_functions: bool = False
    for_engines: bool = False
    rounds: bool = False

    @property
    def doc(self) -> str:
        """The purpose of the pass, in a sentence."""
        function = self.run.function if isinstance(self.run, PassOfModule) else self.run
        return (function.__doc__ or "").strip().partition("\n")[0]

    def is_needed(self, editor: GraphEditor) -> bool:
        """Whether it may find something to do."""
        if (self.for_engines and editor.jit is None) or (self.rounds and editor.keeps_bits):
            return False
        if self.for_functions and not editor.graph.function_library:
            return False
        if not self.ops and self.where is None:
            return True
        types = editor.op_types()
        if not self.ops.isdisjoint(types):
            return True
        return self.where is not None and any(map(self.where, types.values()))


class PassOfModule:
    """A pass of this room by its place; its module is imported when it first runs.

    `algebra.layout` is the function `layout` of that module, `functions:function_inlining` one of another name.
    """

    def __init__(self, place: str) -> None:
        module, _, name = f"{__package__}.{place}".partition(":")
        self.__module__, self.__name__ = module, name or module.rpartition(".")[2]

    @property
    def function(self) -> Callable[[GraphEditor], None]:
        """The function that edits a graph."""
        module = importlib.import_module(self.__module__)
        found: Callable[[GraphEditor], None] = getattr(module, self.__name__)
        return found

    def __call__(self, editor: GraphEditor) -> None:
        """Run it."""
        self.function(editor)


class OptimizationPassRegistry:
    """Passes in the order in which they run."""

    def __init__(self) -> None:
        self._passes = Registrations[OptimizationPass]("An optimization pass")

    def register(
        self,
        grouping: Grouping,
        phase: int,
        run: Callable[[GraphEditor], None],
        on_request: bool = False,
        ops: Iterable[str] = (),
        where: Where | None = None,
        *,
        for_functions: bool = False,
        for_engines: bool = False,
        rounds: bool = False,
        site: DeclaringSite | None = None,
    ) -> None:
        """Add a pass, named after its function, whose docstring's first line says what it does.

        The place that registered a pass, which is `site` or else the caller's, may register it again in another run.

        Raises:
            AlreadyExistsError: there is a pass of this name.
        """
        name = getattr(run, "__name__", type(run).__name__)
        conditions = on_request, frozenset(ops), where, for_functions, for_engines, rounds
        one = OptimizationPass(grouping, phase, name, run, *conditions)
        self._passes.add(name, one, site or declaring_site(sys._getframe(1)))

    def __iter__(self) -> Iterator[OptimizationPass]:
        return iter(sorted(self._passes.things(), key=lambda known: known[:3]))

    def unregister(self, name: str) -> None:
        """Take a pass out.

        Raises:
            NotFoundError: there is none of this name.
        """
        self.check_names([name])
        self._passes.remove(name)

    def run_grouping(
        self, grouping: Grouping, editor: GraphEditor, enabled: Collection[str] | None = None
    ) -> None:
        """Run the passes of a grouping, phase by phase.

        Args:
            grouping: which.
            editor: the graph.
            enabled: the names of the passes to be run; all but those on request if None.

        Raises:
            OpError: a pass failed.
        """
        for one in self.of_grouping(grouping, enabled):
            if one.is_needed(editor):
                check_time("optimizing by", one.name)
                editor.begin(one.name)
                one.run(editor)
                editor.end()

    def of_grouping(
        self, grouping: Grouping, enabled: Collection[str] | None = None
    ) -> list[OptimizationPass]:
        """The passes of a grouping that are to be run: all but those on request if `enabled` is None."""
        return [
            one
            for one in self
            if one.grouping == grouping
            and (not one.on_request if enabled is None else one.name in enabled)
        ]

    def check_names(self, names: Collection[str]) -> None:
        """Raise NotFoundError for a name that no pass has."""
        known = self._passes.names()
        for name in names:
            if name not in known:
                raise NotFoundError(
                    f"There is no optimization pass {name!r}{did_you_mean(name, known)}; "
                    f"there are {', '.join(known)}"
                )


REGISTRY = OptimizationPassRegistry()
"""The passes that sessions run."""
_BUILT_IN: Slot[object] = Slot("optimization passes")
"""Registers the passes that come with opkernel, when it is imported."""


def optimization_passes() -> OptimizationPassRegistry:
    """The registry that sessions use."""
    _BUILT_IN.get()
    return REGISTRY


def register_built_in(
    grouping: Grouping,
    phase: int,
    place: str,
    *,
    ops: Iterable[str] = (),
    where: Where | None = None,
    **flags: bool,
) -> None:
    """Register a pass of this room by its place; `flags` are those of `OptimizationPass`."""
    site = declaring_site(sys._getframe(1))
    run = PassOfModule(place)
    REGISTRY.register(grouping, phase, run, ops=ops, where=where, site=site, **flags)


def register_optimization(
    grouping: Grouping,
    phase: int,
    *,
    on_request: bool = False,
    ops: Iterable[str] = (),
    where: Where | None = None,
) -> Callable[[Callable[[GraphEditor], None]], Callable[[GraphEditor], None]]:
    """Register the decorated function as a pass, which runs by itself unless it is `on_request`.

    With `ops` or `where` it runs only where the graph needs one of these ops, or one of such traits.

    Raises:
        AlreadyExistsError: there is a pass of this name, which another place has registered.
    """
    site = declaring_site(sys._getframe(1))

    def register(run: Callable[[GraphEditor], None]) -> Callable[[GraphEditor], None]:
        REGISTRY.register(grouping, phase, run, on_request, ops, where, site=site)
        return run

    return register


@dataclass(frozen=True)
class OptimizedGraph:
    """A graph that computes what another does, with less work.

    Attributes:
        graph: the new graph; it holds operations, too, that are no longer needed.
        feeds, fetches, targets: what the tensors and operations that were given are in it.
        changes: what the passes did.
        editor: edits it.
    """

    graph: Graph
    feeds: list[Tensor]
    fetches: list[Tensor]
    targets: list[Operation]
    changes: list[Change]
    editor: GraphEditor

    @property
    def operations(self) -> list[Operation]:
        """The operations that are needed, inputs first."""
        return self.editor.operations()

    def as_graph_def(self) -> GraphDef:
        """The operations that are needed, and the functions that they need.

        Operations that are colocated with a node that is not needed are colocated with one of themselves.
        """
        operations = self.operations
        bequeath_groups(operations)
        graph_def = GraphDef(versions=self.graph.graph_def_versions)
        graph_def.node.extend([op.node_def for op in operations])
        library = self.graph.function_library.reachable_definitions(graph_def.node)
        graph_def.library.CopyFrom(library.to_proto())
        return graph_def

    def run_passes(
        self, groupings: Iterable[Grouping], enabled: Collection[str] | None = None
    ) -> None:
        """Run the passes of some groupings; all but those on request if `enabled` is None.

        Raises:
            NotFoundError: there is no pass of a name given.
            OpError: a pass failed.
        """
        registry = optimization_passes()
        registry.check_names(enabled or ())
        with np.errstate(all="ignore"):  # as kernels run
            for grouping in groupings:
                registry.run_grouping(grouping, self.editor, enabled)


def copy_to_optimize(
    graph: Graph,
    fetches: Sequence[Tensor],
    feeds: Sequence[Tensor] = (),
    targets: Sequence[Operation] = (),
    *,
    operations: Sequence[Operation] | None = None,
    feed_facts: Sequence[TensorFacts] | None = None,
) -> OptimizedGraph:
    """A copy of what computes `fetches`, as it is; the arguments are those of `optimize_graph`.

    Raises:
        InvalidArgumentError: a constant is none of its type, which no kernel takes.
    """
    if operations is None:
        operations = prune_and_order(fetches, targets, feeds)
    _check_constants(operations)
    copied, fed = copy_operations(graph, operations, feeds, feed_facts=feed_facts, believing=False)
    new_feeds = [fed[tensor] for tensor in feeds]
    new_fetches = [fed[t] if t in fed else copied.get_tensor_by_name(t.name) for t in fetches]
    new_targets = [copied.get_operation_by_name(op.name) for op in targets]
    fed_ops = {tensor.op for tensor in new_feeds}
    preserved = {*fed_ops, *(tensor.op for tensor in new_fetches), *new_targets}
    left = fed_ops | _readers_of_references(copied)
    if any(op.type == "_ScopedAllocator" for op in copied):  # whose array they put outputs into
        left |= {op for op in copied if "_scoped_allocator" in op.attr}
    editor = GraphEditor(copied, preserved, left)
    return OptimizedGraph(copied, new_feeds, new_fetches, new_targets, editor.changes, editor)


def optimize_graph(
    graph: Graph,
    fetches: Tensors,
    feeds: Tensors = (),
    targets: Iterable[Operation | str] = (),
    *,
    operations: Sequence[Operation] | None = None,
    passes: Collection[str] | None = None,
    feed_facts: Sequence[TensorFacts] | None = None,
) -> OptimizedGraph:
    """Optimise what computes `fetches` and runs `targets`, given values for `feeds`.

    The passes of all groupings run, as for one device.

    Args:
        graph: stays as it is.
        fetches: tensors that will be fetched, or their names (`y:0`); or a single one.
        feeds: tensors that will be fed, or their names; or a single one.
        targets: operations that will be run, or their names (`y`).
        operations: those that are needed, inputs before consumers, if that is known.
        passes: the names of the passes to be run; all if None.
        feed_facts: what is known of what will be fed; the shapes that the graph knows if None.

    Raises:
        NotFoundError: there is no pass, tensor or operation of a name given.
        InvalidArgumentError: a constant is none of its type; or a tensor is of another graph.
        OpError: a pass failed.
    """
    copied = copy_to_optimize(
        graph,
        [graph.get_tensor_by_name(one) for one in listed(fetches)],
        [graph.get_tensor_by_name(one) for one in listed(feeds)],
        [graph.get_operation_by_name(one) for one in listed(targets)],
        operations=operations,
        feed_facts=feed_facts,
    )
    copied.run_passes(Grouping, passes)
    return copied


def optimize_body(
    body: FunctionBody,
    facts: Sequence[TensorFacts],
    passes: Collection[str] | None,
    *,
    keeps_bits: bool = False,
) -> OptimizedGraph:
    """Optimise the body of a function of whose arguments something is known; as `optimize_graph`.

    With `keeps_bits`, results stay the same to the last bit.
    """
    outputs, inputs, targets = body.outputs, body.inputs, body.targets
    copied = copy_to_optimize(body.graph, outputs, inputs, targets, feed_facts=facts)
    copied.editor.keeps_bits = keeps_bits
    copied.run_passes(Grouping, passes)
    return copied


def _check_constants(operations: Sequence[Operation]) -> None:
    """Raise for a constant of a wrong type: once a pass has removed it, nothing would report it."""
    for op in operations:
        if op.type == "Const":
            attrs = op.slim_message.attr
            held, dtype = DataType(attrs["value"].tensor.dtype), DataType(attrs["dtype"].type)
            if held is not dtype and held.numpy_dtype != dtype.numpy_dtype:
                message = f"Type mismatch between value ({held.string}) and dtype ({dtype.string})"
                raise InvalidArgumentError(
                    f"Const: {message} (node '{op.name}')", node=op.name, op=op.type
                )


def _readers_of_references(graph: Graph) -> set[Operation]:
    """The operations that take references: when they read the values, control edges say."""
    operations = graph.get_operations()
    references = {dtype for dtype in types_given(operations) if dtype.is_ref}
    if not references:
        return set()
    givers = [op for op in operations if not references.isdisjoint(op.output_types)]
    return {op for giver in givers for op, index in giver.consumer_edges() if index >= 0}
