"""MarkForCompilation: puts operations that one program can compute into clusters.

Each operation that the compiler takes begins as a cluster of its own. Clusters at the two ends of an edge are joined as
long as that closes no cycle, and the operations run under the same condition, on the same device, in the same scope, and
with resources in an order that a cluster can keep. Large ones are marked by the attr `_XlaCluster`.

Source: TensorFlow compiler/jit/mark_for_compilation_pass.cc.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence

from opkernel.errors import OpError
from opkernel.graph import Operation, save_graph
from opkernel.graph.core.frame_loops import control_flow_info, frame_name
from opkernel.graph.core.structural_ops import (
    ENTER_OPS,
    EXIT_OPS,
    NEXT_ITERATION_OPS,
    STRUCTURAL_OPS,
)
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.jit_options import AutoclusteringPolicy, JitOptions
from opkernel.graph.edit.subgraph import Needs
from opkernel.logs import logger
from opkernel.optimization.clusters.deadness_analysis import DeadnessAnalysis, Predicate
from opkernel.optimization.clusters.graph_cycles import GraphCycles
from opkernel.optimization.clusters.marks import (
    ALREADY_CLUSTERED,
    CLUSTER,
    COMPILE,
    INTERNAL_SCOPE,
    MUST_COMPILE,
    SCOPE,
    mark_of,
    text_of,
)
from opkernel.optimization.clusters.resource_operations import (
    ListTies,
    ResourceOperations,
    gives_list,
)
from opkernel.proto import AttrValue, GraphDef
from opkernel.records import dataclass

_FREE = frozenset({"Const", "Identity"})
"""Ops that do not count in the size of a cluster."""
_FUNCTIONAL = frozenset({"case", "if", "while"})

_numbers = itertools.count()
_dumps = itertools.count()


def mark_for_compilation(editor: GraphEditor) -> None:
    """Mark the clusters of operations that one program can compute."""
    options, order = editor.options, editor.operations()
    candidates = _candidates(order, editor, options)
    if not candidates:
        return
    _dump("before_mark_for_compilation", order)
    try:
        clusters = _joined(order, candidates, editor, options)
    except OpError:  # the step will tell what is wrong with the control flow
        return
    for chosen in clusters.chosen():
        ops = _without_fills(chosen)
        if not ops:
            continue
        name = AttrValue(s=f"cluster_{next(_numbers)}".encode())
        for op in ops:
            op.set_attr(CLUSTER, name)
            if mark_of(op, MUST_COMPILE):
                op.set_attr(MUST_COMPILE, AttrValue(b=True))
        editor.note(ops[0], f"is in {name.s.decode()} for {options.compiler.name}", ops)
    _dump("mark_for_compilation", order)


def _joined(
    order: Sequence[Operation], candidates: set[Operation], editor: GraphEditor, options: JitOptions
) -> _Clusters:
    """The clusters of the candidates, of which those leave that give lists to others or take some."""
    ties = ListTies(order)
    strangers = [op for edge in ties.edges for op in edge if op not in candidates]
    gone = ties.tied_to([*strangers, *(op for op in editor.preserved if gives_list(op))])
    while True:
        for op in gone & candidates:
            options.outside[op.name] = "a list passes between it and an operation outside"
        candidates -= gone
        clusters = _Clusters(order, candidates, options)
        clusters.join(ties)
        gone = ties.tied_to(clusters.torn_by(ties)) & candidates
        if not gone:
            return clusters


def _dump(name: str, order: Sequence[Operation]) -> None:
    """Write a graph as text into the folder that OPKERNEL_DUMP_CLUSTERS names, if it names one."""
    folder = os.environ.get("OPKERNEL_DUMP_CLUSTERS")
    if folder:
        graph_def = GraphDef(node=[op.node_def for op in order])
        os.makedirs(folder, exist_ok=True)
        save_graph(graph_def, os.path.join(folder, f"{name}_{next(_dumps)}.pbtxt"))


def _without_fills(ops: Sequence[Operation]) -> list[Operation]:
    """A cluster without the Fills that only others use: a number is smaller to hand over than what it fills."""
    inside = set(ops)
    return [
        op
        for op in ops
        if op.type != "Fill"
        or not op.consumer_edges()
        or any(consumer in inside for consumer, _ in op.consumer_edges())
    ]


def _candidates(
    order: Iterable[Operation], editor: GraphEditor, options: JitOptions
) -> set[Operation]:
    """The operations that may be in clusters; the options note why others may not."""
    found = set()
    for op in order:
        why = "it is fed" if op in editor.feeds else _refusal(op, options)
        if why and mark_of(op, MUST_COMPILE):
            logger("opkernel.engines").warning(
                "%s does not compile %s, which is marked by %s, and the CPU's kernels compute: %s",
                *(options.compiler.name, op.name, MUST_COMPILE, why),
            )
        if not why:
            found.add(op)
        elif op.type not in STRUCTURAL_OPS:
            options.outside[op.name] = why
    return found


def _refusal(op: Operation, options: JitOptions) -> str:
    if op.type in STRUCTURAL_OPS and op.type != "NoOp":
        return "it is an argument or a result"
    if ALREADY_CLUSTERED in op.slim_message.attr:
        return "it is in a cluster"
    if mark_of(op, COMPILE) is False:
        return f"{COMPILE} forbids it"
    policy = options.compiler.autoclustering_policy(op)
    is_wanted = policy is AutoclusteringPolicy.ALWAYS or (
        options.is_global and policy is AutoclusteringPolicy.IF_ENABLED_GLOBALLY
    )
    if not is_wanted and not _is_asked_for(op):
        return "nobody has marked it"
    if _leads_constants_of_loop(op):
        return "the constants of its loop wait for it"
    return options.compiler.refusal(op)


def _leads_constants_of_loop(op: Operation) -> bool:
    """Whether it is the Identity that the constants in a loop's body wait for.

    In a cluster it would tie the body to the variable of the loop's condition.
    """
    if op.type != "Identity" or op.edges[0].type != "Switch" or op.edges[1] != 1:
        return False
    is_of_loop = op.edges[0].edges[2].type == "LoopCond"
    return is_of_loop and any(
        place < 0 and one.type == "Const" for one, place in op.consumer_edges()
    )


def _is_asked_for(op: Operation) -> bool:
    return bool(mark_of(op, COMPILE) or mark_of(op, MUST_COMPILE))


@dataclass
class _Cluster:
    """Some operations that will be one program.

    Attributes:
        operations: All of them.
        size: How many count.
        device: Where they are.
        alive: The condition under which they run.
        scope: Clusters of different scopes stay apart.
        is_asked_for: Whether somebody marked one of them.
        must_compile: Whether it is a call that has to be compiled, by itself.
        calls: Whether one is an If, Case or While.
        resource_operations: Those on resources.
    """

    operations: list[Operation]
    size: int
    device: str
    alive: Predicate
    scope: str
    is_asked_for: bool
    must_compile: bool
    calls: bool
    resource_operations: list[Operation]

    def take(self, other: _Cluster) -> None:
        """Have another cluster be part of this one."""
        self.operations += other.operations
        self.size += other.size
        self.scope = self.scope or other.scope
        self.is_asked_for |= other.is_asked_for
        self.calls |= other.calls
        self.resource_operations += other.resource_operations


class _Clusters:
    """The clusters of a graph while they are joined."""

    def __init__(
        self, order: Sequence[Operation], candidates: set[Operation], options: JitOptions
    ) -> None:
        self._options, self._candidates = options, candidates
        in_graph = sorted(order, key=lambda op: op.number)
        self._numbers = {op: number for number, op in enumerate(in_graph)}
        self._joined: dict[int, int] = {}
        self._resources = ResourceOperations(order)
        self._cycles = _cycles(order, self._numbers)
        deadness = DeadnessAnalysis(order)
        self._clusters = {
            self._numbers[op]: self._first(op, deadness.of(op)) for op in order if op in candidates
        }

    def _first(self, op: Operation, alive: Predicate) -> _Cluster:
        return _Cluster(
            operations=[op],
            size=int(op.type not in _FREE),
            device=op.graph.assigned_devices.get(op, op.device),
            alive=alive,
            scope=_scope(op, self._options.is_global),
            is_asked_for=_is_asked_for(op),
            must_compile=bool(mark_of(op, MUST_COMPILE)),
            calls=op.traits.calls in _FUNCTIONAL,
            resource_operations=[op] if op in self._resources.uses else [],
        )

    def join(self, ties: ListTies) -> None:
        """Join clusters along edges, first those that lists pass, until no more can be joined."""
        for source, op in ties.edges:
            one, other = self._number(source), self._number(op)
            if one != other and one in self._clusters:
                self._try(one, other, with_no_ops=False)
        # First without NoOps, which would tie together what has nothing to do with each other.
        self._join_all(with_no_ops=False)
        while self._join_all(with_no_ops=True):
            pass

    def torn_by(self, ties: ListTies) -> list[Operation]:
        """The operations that give a list to another cluster."""
        numbers, clusters = self._number, self._clusters
        return [
            source
            for source, op in ties.edges
            if numbers(source) in clusters and numbers(source) != numbers(op)
        ]

    def _number(self, op: Operation) -> int:
        """The number of the cluster that an operation is in by now."""
        number = self._numbers[op]
        while number in self._joined:
            number = self._joined[number]
        return number

    def _join_all(self, *, with_no_ops: bool) -> bool:
        is_changed = False
        for number in self._cycles.post_order():
            waiting = self._cycles.successors(number) if number in self._clusters else []
            while waiting:
                other = waiting.pop(0)
                joined = self._try(number, other, with_no_ops=with_no_ops)
                if joined is not None:
                    is_changed, number = True, joined
                    waiting = self._cycles.successors(number)
        return is_changed

    def _try(self, number: int, other: int, *, with_no_ops: bool) -> int | None:
        """Join two clusters; the number of both from now on, None where they stay apart."""
        first, second = self._clusters[number], self._clusters.get(other)
        if second is None or not self._fit(first, second, with_no_ops=with_no_ops):
            return None
        kept = self._cycles.contract_edge(number, other)
        if kept is not None:
            gone = other if kept == number else number
            self._joined[gone] = kept
            self._clusters[kept].take(self._clusters.pop(gone))
        return kept

    def _fit(self, one: _Cluster, other: _Cluster, *, with_no_ops: bool) -> bool:
        if one.alive is not other.alive or one.device != other.device:
            return False
        if one.must_compile or other.must_compile:
            return False
        if one.scope and other.scope and one.scope != other.scope:
            return False
        if not with_no_ops and (_is_no_op(one) or _is_no_op(other)):
            return False
        if one.size + other.size > self._options.max_cluster_size:
            return False
        return self._resources.may_join(one.resource_operations, other.resource_operations)

    def chosen(self) -> list[list[Operation]]:
        """The operations of the clusters that are worth it, in the order of the graph."""
        numbers, options = self._numbers, self._options
        found = []
        for cluster in self._clusters.values():
            is_large = cluster.size >= options.smallest or cluster.calls
            if cluster.is_asked_for or (is_large and cluster.size):
                found.append(sorted(cluster.operations, key=numbers.__getitem__))
            else:
                small = f"its cluster has {cluster.size} of {options.smallest} operations"
                options.outside.update((op.name, small) for op in cluster.operations)
        return sorted(found, key=lambda ops: numbers[ops[0]])


def _is_no_op(cluster: _Cluster) -> bool:
    return len(cluster.operations) == 1 and cluster.operations[0].type == "NoOp"


def _scope(op: Operation, is_global: bool) -> str:
    """The scope of a node; where all nodes are compiled, the internal one alone counts."""
    scopes = text_of(op, "" if is_global else SCOPE), text_of(op, INTERNAL_SCOPE)
    return "/".join(filter(None, scopes))


def _cycles(order: Sequence[Operation], numbers: dict[Operation, int]) -> GraphCycles:
    """The edges of a graph without back edges; a loop is one node between its Enters and its Exits."""
    frames: dict[str, int] = {}
    for op in order:
        if op.type in ENTER_OPS:
            frames.setdefault(frame_name(op), len(order) + len(frames))
    cycles = GraphCycles(len(order) + len(frames))
    found = control_flow_info(order, Needs(())) if frames else {}
    for op in order:
        for source in dict.fromkeys([*op.edges[::2], *op.control_inputs]):
            if source.type not in NEXT_ITERATION_OPS and source in numbers:
                cycles.insert_edge(numbers[source], numbers[op])
        if op.type in ENTER_OPS:
            cycles.insert_edge(numbers[op], frames[frame_name(op)])
        elif op.type in EXIT_OPS and frames:
            cycles.insert_edge(frames[found[op.name].name], numbers[op])
    return cycles
