"""GraphEditor: the changes that passes make to a graph.

Operations are never taken out. Operations that no result needs any more are cut off after each
pass, and left out at the end. `operations` gives the operations that are needed now. A preserved
operation keeps its name and its outputs, its op may change; all others may go.

Each change is made at once, in time that does not depend on the size of the graph, and passes see it.
Effects that a change would lose come back once the pass is done (`EffectOrder`), so that no pass need think
of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.edges import behind
from opkernel.graph.core.structural_ops import ENTER_OPS, LOW_LEVEL_CONTROL_FLOW, SWITCH_OPS
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.graph_edit import GraphEdit
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.graph.inference.constant_values import constant_value
from opkernel.opdef import UNKNOWN_DIM, OpTraits
from opkernel.opdef.core.attr_value import IN_MUST_COMPILE
from opkernel.proto import NodeDef
from opkernel.types import Array, PartialTensorShape, tensor_to_proto

if TYPE_CHECKING:
    from opkernel.device.local_device import Device
    from opkernel.graph.core.signature import NodeSignature
    from opkernel.graph.edit.effect_order import EffectOrder
    from opkernel.graph.edit.jit_options import JitOptions

_NEVER = -1

_CONDITIONAL = SWITCH_OPS | ENTER_OPS


class Change(NamedTuple):
    """A change that a pass made to a node; `parts` are the nodes that it computes together now."""

    pass_name: str
    node: str
    what: str
    parts: tuple[str, ...] = ()


class GraphEditor(GraphEdit):
    """Edits a graph that has to give the same results afterwards, and that no other code uses.

    Attributes:
        preserved: the operations that are fed, fetched or targets; they keep their outputs.
        feeds: the operations that stay as they are: feeds, those that take references, those on
            devices that passes know nothing of.
        changes: the changes that were made, in order.
        device_of: the device of an operation, where devices compute kernels in their own way.
        jit: how clusters are formed, where they are.
        keeps_bits: whether results stay the same to the last bit.
    """

    def __init__(
        self, graph: Graph, preserved: Iterable[Operation], feeds: Iterable[Operation] = ()
    ) -> None:
        super().__init__(graph)
        self.preserved = set(preserved)
        self.feeds = frozenset(feeds)
        self.changes: list[Change] = []
        self.device_of: Callable[[Operation], Device] | None = None
        self.jit: JitOptions | None = None
        self.keeps_bits = False
        self._pass_name = ""
        self._order: list[Operation] = []
        self._op_types: dict[str, OpTraits] | None = None
        self._ordered_at = -1
        self._values: dict[Operation, tuple[NodeDef, Array | None]] = {}
        self._wrong: set[Operation] = set()
        self._conditional: set[Operation] | None = None
        self._effects: EffectOrder | None = None
        self._begun_at = _NEVER
        self._dropped: set[Operation] = set()

    @property
    def options(self) -> JitOptions:
        """How clusters are formed, for passes that form them: these run where it is said."""
        assert self.jit is not None
        return self.jit

    # For the registry.

    def begin(self, pass_name: str) -> None:
        """A pass begins."""
        self._pass_name = pass_name
        self._conditional = None
        self._dropped = set()
        if self._effects is None:
            order = self.operations()
            if any(effect_of(one) is Effect.ACTS for one in {op.signature for op in order}):
                from opkernel.graph.edit.effect_order import EffectOrder  # most graphs are pure

                self._effects = EffectOrder(self.preserved, self.feeds, order)
        self._begun_at = self.graph.edits

    def end(self) -> None:
        """Put back the effects that the pass has lost, and cut off what no preserved operation needs.

        An operation that is cut off has no inputs any more.

        Raises:
            InternalError: an effect cannot be put back.
        """
        if self._begun_at in (_NEVER, self.graph.edits):
            return
        self._order = self.operations()
        if self._effects is not None:
            self._order = list(self._effects.keep(self._order, self._dropped))
        self._op_types = None
        needed = set(self._order)
        for op in self.graph.get_operations():
            if op not in needed and (op.edges or op.control_inputs):
                op.cut_off()
        self._ordered_at = self.graph.edits  # operations that were cut off were in no order

    def changed(self) -> None:
        """The pass has changed the graph by other means; `is_conditional` has to look again."""
        self._conditional = None

    def leave(self, operations: Iterable[Operation]) -> None:
        """Have some operations stay as they are."""
        self.feeds = self.feeds.union(operations)

    # Reading the graph.

    def operations(self) -> list[Operation]:
        """The operations that the preserved ones need, inputs before consumers."""
        if self._ordered_at != self.graph.edits:
            self._order = prune_and_order((), sorted(self.preserved, key=lambda op: op.number), ())
            self._ordered_at, self._op_types = self.graph.edits, None
        return list(self._order)

    def op_types(self) -> Mapping[str, OpTraits]:
        """The ops of these operations, with their traits."""
        if self._ordered_at != self.graph.edits or self._op_types is None:
            signatures = {op.signature for op in self.operations()}
            self._op_types = {one.op_type: one.traits for one in signatures}
        return self._op_types

    def only_consumer(self, op: Operation) -> tuple[Operation, int] | None:
        """The one that takes the only output of an operation that nothing else needs, and where."""
        if op in self.preserved or len(op.output_types) != 1:
            return None
        edges = op.consumer_edges()
        return edges[0] if len(edges) == 1 and edges[0][1] >= 0 else None

    def value(self, tensor: Tensor) -> Array | None:
        """The value of a Const, not to be written to; None of all other tensors."""
        return self._value_of(tensor.op) if tensor.op.type == "Const" else None

    def _value_of(self, const: Operation) -> Array | None:
        node = const.slim_message
        known = self._values.get(const)
        if known is None or known[0] is not node:
            known = self._values[const] = node, constant_value(node)
        return known[1]

    def known_value(self, tensor: Tensor) -> Array | None:
        """The value of a tensor that is not fed, where it follows from constants and shapes."""
        if tensor.op in self.feeds or not self.is_valid(tensor.op):
            return None
        try:
            return self.graph.refiner.values.value_of((tensor.op, tensor.value_index))
        except OpError:  # the step that runs the node raises the error
            return None

    def attrs(self, op: Operation) -> dict[str, Any]:
        """The attrs of an operation that its op declares, and that say how its kernel computes."""
        declared = {IN_MUST_COMPILE, *(attr.name for attr in op.op_def.attr)}
        return {name: value for name, value in op.attr.items() if name in declared}

    def free_value(self, tensor: Tensor) -> Array | None:
        """The value of a Const that waits for nothing, so that it may be dropped."""
        value = self.value(tensor)
        return None if value is None or tensor.op.control_inputs else value

    def free_input(self, op: Operation, index: int) -> Array | None:
        """`free_value` of an input, without making a Tensor of it: for rules that look at all nodes."""
        source: Operation = op.edges[2 * index]
        if source.type != "Const" or source.control_inputs:
            return None
        return self._value_of(source)

    def shape(self, tensor: Tensor) -> PartialTensorShape:
        """The shape of a tensor, as far as it is known."""
        try:
            return tensor.shape
        except OpError:  # the step that runs the node raises the error
            return PartialTensorShape(None)

    def dims(self, tensor: Tensor) -> tuple[int, ...] | None:
        """The shape of a tensor where it is known in full."""
        shape = self.shape(tensor)
        sizes = [] if shape.rank is None else shape.as_list()
        known = tuple([size for size in sizes if size is not None])
        return known if len(known) == shape.rank else None

    def is_valid(self, op: Operation) -> bool:
        """Whether the shape functions of an operation, and of all before it, find nothing wrong.

        If one does, the step that runs the node must raise the error, so no pass may remove the
        node.
        """
        if op in self._wrong or not self._wrong.isdisjoint(op.edges[::2]):
            self._wrong.add(op)
            return False
        try:
            self.graph.refiner.add_node(op)
        except OpError:
            self._wrong.add(op)
            return False
        return True

    def have_one_shape(self, first: Tensor, second: Tensor) -> bool:
        """Whether two tensors have the same shape, whatever the sizes that are not known."""
        if self.shape(first).rank is None or self.shape(second).rank is None:
            return False
        refiner = self.graph.refiner
        one, two = (refiner.shape_handle((t.op, t.value_index)).dims or () for t in (first, second))
        return len(one) == len(two) and all(
            a is b or a.value == b.value != UNKNOWN_DIM for a, b in zip(one, two, strict=True)
        )

    def is_conditional(self, op: Operation) -> bool:
        """Whether an operation runs not at all or several times: it depends on a Switch or Enter."""
        if self._conditional is None:
            ops = self.graph.get_operations()
            self._conditional = behind([op for op in ops if op.type in _CONDITIONAL])
        return op in self._conditional

    # Changing the graph.

    def add_node(
        self,
        node: NodeDef,
        inputs: Sequence[Tensor] = (),
        control_inputs: Collection[Operation] = (),
        *,
        signature: NodeSignature | None = None,
        like: Operation | None = None,
    ) -> Operation:
        """As for all edits; `is_conditional` knows the new operation."""
        op = super().add_node(node, inputs, control_inputs, signature=signature, like=like)
        known, sources = self._conditional, (*op.edges[::2], *op.control_inputs)
        if known is not None and (op.type in _CONDITIONAL or not known.isdisjoint(sources)):
            known.add(op)
        return op

    def note(self, op: Operation, what: str, parts: Iterable[Operation] = ()) -> None:
        """Record a change, and the operations that the operation computes from now on."""
        names = tuple([one.name for one in parts])
        self.changes.append(Change(self._pass_name, op.name, what, names))

    def drop(self, ops: Iterable[Operation]) -> None:
        """Drop operations with their effects: they never run, or another does their work."""
        self._dropped.update(ops)

    def may_bypass(self, op: Operation, *by: Tensor) -> bool:
        """Whether the consumers of an operation may take something else, and it need not stay.

        They may not beside control flow, which depends on its nodes. The tensor that they take
        instead, if given, must be computed no more often than the operation runs.
        """
        if op in self.feeds:
            return False
        if by and self.is_conditional(op) and not all(self.is_conditional(t.op) for t in by):
            return False
        sources = op.edges[::2]
        if any(source.type in LOW_LEVEL_CONTROL_FLOW for source in sources):
            return False
        return not any(c.type in LOW_LEVEL_CONTROL_FLOW for c, _ in op.consumer_edges())

    def part(self, op: Operation, index: int, *types: str) -> Operation | None:
        """The producer of an input of `op`, if it is of one of these types and `op` may absorb it.

        Nothing else needs it, it waits for nothing, and is on the same device. Both are valid.
        """
        inner: Operation = op.edges[2 * index]
        if inner.type not in types or inner.device != op.device or inner.control_inputs:
            return None
        if op in self.feeds or self.only_consumer(inner) is None or not self.may_bypass(inner):
            return None
        return inner if self.is_valid(op) else None

    def pass_on(self, op: Operation, tensor: Tensor) -> None:
        """Have an operation of one output do nothing but pass on a tensor of the same type."""
        self.replace(op.outputs[0], tensor)
        if op in self.preserved and (op.type != "Identity" or op.inputs != (tensor,)):
            self.become(op, "Identity", [tensor], {"T": tensor.dtype.base})

    def become(
        self,
        op: Operation | str,
        op_type: str,
        inputs: Sequence[Tensor | str] | None = None,
        attrs: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Turn an operation into one of another op that gives the same values, of the same types."""
        op = self._operation(op)
        before = op.output_types
        super().become(op, op_type, inputs, attrs)
        if op.output_types != before:
            raise InvalidArgumentError(
                f"Node '{op.name}' cannot become a {op_type}: its outputs are of other types",
                node=op.name,
                op=op_type,
            )

    def become_constant(self, op: Operation, value: Array) -> None:
        """Turn an operation of one output into a Const, which runs where the operation did."""
        dtype = op.output_types[0]
        controls = self.pivots(op)
        self.become(op, "Const", (), {"value": tensor_to_proto(value, dtype), "dtype": dtype})
        op.add_control_inputs(controls)
        self._values[op] = op.slim_message, value

    def pivots(self, op: Operation) -> list[Operation]:
        """The operations for which a constant in place of `op` waits, in its loop and branch.

        To wait for a Switch is not to wait for its output, so an Identity that takes the output is added.
        """
        found = []
        for tensor in dict.fromkeys(op.inputs):
            if tensor.op.type in SWITCH_OPS:
                name, attrs = f"{op.name}/pivot", {"T": tensor.dtype.base}
                found.append(self.add("Identity", [tensor], name, attrs, op.device))
            elif self.is_conditional(tensor.op):
                found.append(tensor.op)
        return list(dict.fromkeys(found))
