"""WholeGraphRefiner: the shapes of a whole graph, its loops followed to a fixed point.

A loop starts with the facts known at its entry. Its body tells the facts with which the next turn
starts. Facts that do not hold of both are given up, until the body tells nothing new: the remaining
facts hold at every turn. A conditional gives the facts on which its branches agree.

In a graph, a loop lies between a Merge with a back edge and the NextIteration at the edge's source.
Loops that overlap are settled together.

The tensors that a graph puts into a TensorList tell more than the shape functions know: their actual shape, and their
value where it is always the same. Rules for the ops that make, change and read lists follow them. Lists from other ops
are not followed.

Sources: TensorFlow core/grappler/costs/graph_properties.cc (UpdateMerge, UpdateEnter, PropagateShapes).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph.core.edges import Edge, edges_of, is_head_of_loop
from opkernel.graph.core.garbage_collection import paused_garbage_collection
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.operation_table import order_by_inputs
from opkernel.graph.core.structural_ops import (
    ENTER_OPS,
    EXIT_OPS,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
)
from opkernel.graph.functions.calls import called_functions, chosen_branch
from opkernel.graph.inference.function_shapes import FunctionShapes, NoBodyError
from opkernel.graph.inference.shape_refiner import ShapeRefiner, merged_shape
from opkernel.graph.inference.tensor_facts import NO_ITEMS, ZERO_ITEMS, Relaxation, TensorFacts
from opkernel.opdef import ShapeHandle
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.proto import NameAttrList
from opkernel.types import Array, PartialTensorShape

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph


LIST_MAKERS = frozenset({"empty", "reserve", "rows"})
"""The rules of ops that make lists. The rules of other ops take the known facts of the first input."""
_PASSING_ON = SWITCH_OPS | EXIT_OPS | NEXT_ITERATION_OPS
"""The ops that give a list as it is, at each output."""


def may_hold_items(op: Operation) -> bool:
    """Whether what holds of all tensors of a list is followed through an operation."""
    traits = op.traits
    return bool(traits.item_rule) or traits.passes_on or op.type in _PASSING_ON


def with_items(
    rule: str,
    inputs: Sequence[TensorFacts],
    outputs: Sequence[TensorFacts],
    relaxation: Relaxation,
) -> list[TensorFacts]:
    """The known facts of an op's outputs.

    Args:
        rule: the op's rule for items; empty for ops that pass lists on.
        inputs: the known facts of its inputs.
        outputs: the facts from its shape function.
        relaxation: finds the facts that hold of all tensors of a list.
    """
    first, items = outputs[0], inputs[0].items
    match rule:
        case "empty":
            return [_list(first, NO_ITEMS)]
        case "reserve":
            return [_list(first, ZERO_ITEMS)]
        case "rows":
            dims = inputs[0].shape.dims
            return [_list(first, None if dims is None else TensorFacts(ShapeHandle(dims[1:])))]
        case "push":
            return [_list(first, relaxation.items(items, inputs[1]))]
        case "set":  # others may be zeros: no value is that of all
            item = TensorFacts(inputs[2].shape, inputs[2].held)
            return [_list(first, relaxation.items(items, item))]
        case "pop":
            return [_list(first, items), _item(outputs[1], items)]
        case "get":
            return [_item(first, items)]
        case "stack":
            if items is None or items.shape.dims is None:
                return [first]
            one = ShapeAlgebra.unknown_shape_of_rank(1)
            return [_item(first, TensorFacts(ShapeAlgebra.concatenate(one, items.shape)))]
    return [_list(output, items) for output in outputs]


def _list(facts: TensorFacts, items: TensorFacts | None) -> TensorFacts:
    return TensorFacts(facts.shape, facts.held, facts.value, items)


def _item(output: TensorFacts, items: TensorFacts | None) -> TensorFacts:
    """A tensor read from a list. A tensor that was never set has the shape that its reader asks for."""
    if items is None:
        return output
    shape = output.shape
    if not ShapeAlgebra.fully_defined(shape):
        try:
            shape = ShapeAlgebra.merge(shape, items.shape)
        except InvalidArgumentError:  # the kernel will tell the error
            return output
    value = output.value if items.value is None else items.value
    return TensorFacts(shape, output.held or items.held, value)


_MAX_TURNS = 12
"""After so many turns a loop is taken to change all that it can change."""


class WholeGraphRefiner(ShapeRefiner):
    """Infers all shapes of a graph that is not changed meanwhile."""

    def __init__(
        self,
        graph: Graph,
        functions: FunctionShapes | None = None,
        given: Mapping[Edge, PartialTensorShape] | None = None,
    ) -> None:
        """`given` are shapes of tensors that the caller knows."""
        super().__init__(graph, functions)
        self._given = given or {}
        self._relaxation = Relaxation()
        self._heads: dict[Operation, TensorFacts] = {}
        self._rules: dict[str, Callable[[Operation], None]] = {
            **dict.fromkeys(MERGE_OPS, self._infer_merge),
            **dict.fromkeys(ENTER_OPS, self._infer_enter),
            "while": self._infer_while,
            "if": self._infer_conditional,
            "case": self._infer_conditional,
        }
        self.order: list[Operation] = []

    @classmethod
    def settle(cls, graph: Graph, needed: Collection[Operation] | None = None) -> Self:
        """Infer all shapes of a graph, with what its own refiner knows or was told of arguments.

        Args:
            graph: the graph.
            needed: the operations that count; all if None.

        Raises:
            InvalidArgumentError: the shapes of a node break a rule of its op.
        """
        own = graph.refiner
        refiner = cls(graph, given=own.known_shapes())
        refiner.believes = own.believes
        for op in own._defined:
            refiner.define(op, own.facts_of((op, 0)))
        refiner.infer_all(needed)
        return refiner

    def infer_all(self, needed: Collection[Operation] | None = None) -> None:
        """Infer every shape of the graph, or of the needed operations.

        Raises:
            InvalidArgumentError: the shapes of a node break a rule of its op, or a given shape
                disagrees with what is known.
        """
        self.order = _order(self._graph.get_operations())
        if needed is not None:
            self.order = [op for op in self.order if op in needed]
        with paused_garbage_collection():
            done = 0
            for start, stop in _loops(self.order):
                self._infer_each(self.order[done:start])
                self._settle(self.order[start:stop])
                done = stop
            self._infer_each(self.order[done:])

    def facts_of(self, edge: Edge) -> TensorFacts:
        """All known facts of a tensor of a graph whose shapes are inferred at once."""
        if not self.order:
            self.infer_all()
        return super().facts_of(edge)

    def facts_of_arguments(self, op: Operation) -> list[TensorFacts]:
        """The facts, without values, about an operation's arguments of functions, at all calls."""
        facts = [self._facts_but_value(edge) for edge in edges_of(op)]
        if op.traits.calls != "while":
            return facts[op.traits.chooses_function :]
        relaxation = Relaxation()
        results = [self._facts_but_value((op, index)) for index in range(len(facts))]
        return [relaxation.facts(*pair) for pair in zip(facts, results, strict=True)]

    def _infer_each(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            self._infer(op)

    def _infer(self, op: Operation) -> None:
        if op in self._defined:
            return
        super()._infer(op)
        signature = op.signature
        rule = self._rules.get(signature.traits.calls or signature.op_type)
        if rule is not None:
            rule(op)
            self._merge_given_shapes(op)
        elif may_hold_items(op):
            self._follow_list(op)
        if self._given:
            self._add_given(op)

    def _follow_list(self, op: Operation) -> None:
        """Note the known facts of the tensors of a list."""
        edges = edges_of(op)
        rule = op.traits.item_rule
        if rule in LIST_MAKERS or edges[0] in self._items:
            inputs = [self.facts_of(edge) for edge in edges]
            outputs = [self.facts_of((op, index)) for index in range(len(op.output_types))]
            self._set_facts(op, with_items(rule, inputs, outputs, self._relaxation))

    def _add_given(self, op: Operation) -> None:
        shapes = self._shapes[op]
        for index, known in enumerate(shapes):
            given = self._given.get((op, index))
            if given is None:
                continue
            try:
                merged = merged_shape(known, given)
            except InvalidArgumentError as error:
                raise op.error(
                    f"The shape {given} given for '{op.name}:{index}' disagrees with the known shape "
                    f"{known}: {error.message}"
                ) from error
            self._shapes[op] = (*shapes[:index], merged, *shapes[index + 1 :])
            shapes = self._shapes[op]

    # Loops in the graph.

    def _settle(self, ops: Sequence[Operation]) -> None:
        """Infer operations among which there are loops, until nothing changes any more."""
        heads = [op for op in ops if is_head_of_loop(op)]
        self._infer_each(ops)
        downstream = set(heads)
        for op in ops:
            if not downstream.isdisjoint(op.edges[::2]):
                downstream.add(op)
        changing = [op for op in ops if op in downstream]
        turn = 0
        while self._next_turn(heads, give_up=turn >= _MAX_TURNS):
            self.values.forget(changing)
            self._forget_held(changing)
            self._infer_each(changing)
            turn += 1

    def _next_turn(self, heads: Sequence[Operation], *, give_up: bool) -> bool:
        """Let the heads of loops start with what the bodies tell, too; whether that is new."""
        changed = False
        for head in heads:
            old = self._heads[head]
            for edge in edges_of(head):
                self._heads[head] = self._relaxed(self._heads[head], edge)
            changed |= self._heads[head] is not old
        if changed and give_up:
            self._heads.update({head: TensorFacts() for head in heads})
        return changed

    def _relaxed(self, facts: TensorFacts, edge: Edge) -> TensorFacts:
        """The facts that hold of both, the facts and the tensor; `values` handles values."""
        return self._relaxation.facts(facts, self._facts_but_value(edge))

    def _facts_but_value(self, edge: Edge) -> TensorFacts:
        return TensorFacts(
            self._known_shape(edge), self._held.get(edge), None, self._items.get(edge)
        )

    def _infer_merge(self, op: Operation) -> None:
        """The facts that all inputs share; at the head of a loop, the entries and the state."""
        is_head = is_head_of_loop(op)
        edges = edges_of(op)
        if is_head:
            edges = [edge for edge in edges if edge[0].type not in NEXT_ITERATION_OPS]
        # Nothing may enter a loop.
        first = self._facts_but_value(edges[0]) if edges else TensorFacts()
        facts = self._heads.get(op) or first
        for edge in edges:
            facts = self._relaxed(facts, edge)
        if is_head:
            self._heads[op] = facts
        self._set_first(op, facts)

    def _infer_enter(self, op: Operation) -> None:
        self._set_first(op, self._facts_but_value(edges_of(op)[0]))

    def _set_first(self, op: Operation, facts: TensorFacts) -> None:
        """Note the known facts of the first output; the other outputs stay as they are."""
        self._forget_held([op])
        self._set_facts(op, [facts, *map(TensorFacts, self._shapes[op][1:])])

    # Loops and conditionals that call functions.

    def _infer_while(self, op: Operation) -> None:
        """The fixed point of the loop's body, if it has one."""
        body = op.attr["body"].func
        relaxation = Relaxation()
        state = [self.facts_of(edge) for edge in edges_of(op)]
        for _ in range(_MAX_TURNS):
            results = self._try_call(op, body, state)
            if results is None or len(results) != len(state):
                return
            new = [relaxation.facts(*pair) for pair in zip(state, results, strict=True)]
            if all(a is b for a, b in zip(state, new, strict=True)):
                break
            state = new
        else:
            state = [TensorFacts() for _ in state]
        self._set_facts(op, self._with_declared_shapes(op, state))

    def _infer_conditional(self, op: Operation) -> None:
        """The facts that all possible branches share, where they are known."""
        chosen, *arguments = edges_of(op)
        facts = [self.facts_of(edge) for edge in arguments]
        agreed: list[TensorFacts] | None = None
        for branch in _branches(op, self.values.value_of(chosen)):
            results = self._try_call(op, branch, facts)
            if results is None or len(results) != len(op.output_types):
                return
            pairs = zip(agreed or results, results, strict=True)
            agreed = [self._relaxation.facts(*pair) for pair in pairs]
        self._set_facts(op, self._with_declared_shapes(op, agreed or []))

    def _try_call(
        self, op: Operation, function: NameAttrList, arguments: Sequence[TensorFacts]
    ) -> list[TensorFacts] | None:
        """The results of a function; None where it cannot be inferred, as it may never run."""
        try:
            return self._functions.results(op.graph, function, arguments)
        except (NoBodyError, OpError):
            return None

    def _with_declared_shapes(
        self, op: Operation, facts: Sequence[TensorFacts]
    ) -> list[TensorFacts]:
        """The facts with the attr `output_shapes` merged into them; it counts where they differ."""
        attr = op.attr
        declared = attr["output_shapes"].list.shape if "output_shapes" in attr else ()
        if len(declared) != len(facts):
            return list(facts)
        merged = []
        for one, proto in zip(facts, declared, strict=True):
            given = PartialTensorShape.from_proto(proto)
            try:
                merged.append(TensorFacts(merged_shape(one.shape, given), one.held, one.value))
            except InvalidArgumentError:
                merged.append(TensorFacts(merged_shape(ShapeHandle(), given)))
        return merged


def _branches(op: Operation, choice: Array | None) -> list[NameAttrList]:
    """The functions that a conditional may call: a single one where the choice is known."""
    chosen = None if choice is None else chosen_branch(op, choice)
    return called_functions(op) if chosen is None else [chosen]


def _order(ops: list[Operation]) -> list[Operation]:
    """The operations, inputs first; a loop comes after all its entries and before its results."""
    try:
        return order_by_inputs(ops, {**_before_enters(ops), **_before_exits(ops)})
    except InvalidArgumentError:  # a cycle that is no loop may have an Exit
        return order_by_inputs(ops)


def _before_enters(ops: Sequence[Operation]) -> dict[Operation, list[Operation]]:
    """For each Enter what gives the values that enter its loop."""
    entering: dict[bytes, list[Operation]] = {}
    enters = [op for op in ops if op.type in ENTER_OPS and op.edges]
    for op in enters:
        entering.setdefault(op.attr["frame_name"].s, []).append(op.edges[0])
    return {op: entering[op.attr["frame_name"].s] for op in enters}


def _before_exits(ops: Sequence[Operation]) -> dict[Operation, list[Operation]]:
    """For each Exit what ends a turn of its loop."""
    turns: dict[Operation, list[Operation]] = {}
    for op in ops:
        if op.type in SWITCH_OPS and op.edges:
            head, condition = op.edges[::2]
            ends = [s for s in head.edges[::2] if s.type in NEXT_ITERATION_OPS]
            turns.setdefault(condition, []).extend(ends)
    exits = [op for op in ops if op.type in EXIT_OPS and op.edges]
    switches = {op: op.edges[0] for op in exits if op.edges[0].type in SWITCH_OPS}
    return {op: turns.get(switch.edges[2], []) for op, switch in switches.items()}


def _loops(order: Sequence[Operation]) -> Iterator[tuple[int, int]]:
    """The ranges of the order that hold loops; loops that overlap share a range."""
    heads = [(position, op) for position, op in enumerate(order) if is_head_of_loop(op)]
    if not heads:
        return
    ends = {op: position for position, op in enumerate(order) if op.type in NEXT_ITERATION_OPS}
    start, stop = heads[0][0], 0
    for position, op in heads:
        if position >= stop > 0:
            yield start, stop
            start = position
        stop = max(stop, position + 1, *[ends[s] + 1 for s in op.edges[::2] if s in ends])
    yield start, stop
