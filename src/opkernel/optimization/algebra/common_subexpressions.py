"""Common subexpressions: operations that compute the same from the same are one.

Source: TensorFlow core/graph/optimizer_cse.cc, core/grappler/optimizers/
common_subgraph_elimination.cc (DedupComputations).
"""

from collections.abc import Callable, Hashable, Iterable, Sequence

from opkernel.graph import Graph, Operation
from opkernel.graph.core.signature import NodeSignature
from opkernel.graph.core.structural_ops import INPUT_OPS, LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.core.tensor_name import format_input
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.inference.constant_values import num_elements
from opkernel.proto import GraphDef

_MAX_CONSTANT_ELEMENTS = 1 << 14
"""Constants beyond this are not compared: it costs more than it saves."""


def common_subexpressions(editor: GraphEditor) -> None:
    """Compute once a result that several operations compute."""
    order = editor.operations()
    doubles = equivalent_operations(order, by_device=True)
    for op in order if doubles else ():
        inputs = op.inputs
        same = [doubles.get(t.op, t.op).outputs[t.value_index] for t in inputs]
        if same != list(inputs):
            op.set_inputs(same)
        if not doubles.keys().isdisjoint(op.control_inputs):
            op.set_control_inputs([doubles.get(c, c) for c in op.control_inputs])
    for double, kept in doubles.items():
        if double in editor.preserved and len(double.outputs) != 1:
            continue
        if double in editor.preserved:
            editor.become(double, "Identity", [kept.outputs[0]], {"T": kept.output_types[0].base})
        editor.note(double, f"is the same as {kept.name!r}")


def optimize_cse(graph: Graph) -> tuple[GraphDef, bool]:
    """A whole graph with only one of all equivalent operations, and whether there were others.

    All operations count, whether or not anything takes their outputs.
    """
    doubles = equivalent_operations(_reverse_post_order(graph.get_operations()))
    copied = graph.as_graph_def()
    del copied.node[:]
    for op in graph.get_operations():
        if op not in doubles:
            node = copied.node.add()
            node.CopyFrom(op.node_def)
            for index, tensor in enumerate(op.inputs):
                if tensor.op in doubles:
                    node.input[index] = format_input(doubles[tensor.op].name, tensor.value_index)
            controls = [f"^{doubles.get(source, source).name}" for source in op.control_inputs]
            node.input[len(op.inputs) :] = sorted(controls)
    return copied, bool(doubles)


def _reverse_post_order(ops: Sequence[Operation]) -> list[Operation]:
    """Operations in the order in which TensorFlow compares them, inputs before consumers."""
    left: list[Operation] = []
    entered: set[Operation] = set()
    stack = [(op, False) for op in ops if not op.edges and not op.control_inputs]
    while stack:
        op, is_done = stack.pop()
        if is_done:
            left.append(op)
        elif op not in entered:
            entered.add(op)
            stack.append((op, True))
            stack += [(c, False) for c, _ in op.consumer_edges() if c not in entered]
    return left[::-1]


def equivalent_operations(
    order: Iterable[Operation], *, by_device: bool = False
) -> dict[Operation, Operation]:
    """The operations that do the same as another before them, each with that one.

    Operations are the same if their ops, attrs, inputs (of commutative ops in any order) and control
    inputs are. Stateful operations never are, nor operations that take references. As in
    TensorFlow, of operations that differ in nothing but control inputs only the first is compared
    with others.

    Args:
        order: operations, inputs before consumers.
        by_device: whether operations that ask for different devices differ, as they do for TensorFlow's
            DedupComputations: to send a value may cost more than to compute it twice.
    """
    kept: dict[Operation, Operation] = {}
    first: dict[Hashable, Operation] = {}
    others: dict[Hashable, list[Operation]] = {}
    keys: dict[NodeSignature, _KeyOf | None] = {}
    for op in order:
        if op.signature not in keys:
            keys[op.signature] = _key_of(op)
        key_of = keys[op.signature]
        if key_of is None or (key_of is _constant and num_elements(op) > _MAX_CONSTANT_ELEMENTS):
            continue
        key = op.signature.op_type, key_of(op, kept)
        before = first.setdefault(key, op)
        if before is op:
            continue
        candidates = others.setdefault(key, [before])
        attrs, device = dict(op.attr), op.device if by_device else ""
        alike = (one for one in candidates if not by_device or one.device == device)
        same = next((one for one in alike if dict(one.attr) == attrs), None)
        if same is None:
            candidates.append(op)
        elif _controls(same, kept) == _controls(op, kept):
            kept[op] = same
    return kept


_KeyOf = Callable[[Operation, dict[Operation, Operation]], Hashable]
"""What two operations of one op have in common if they take the same; given those that others replace."""


def _key_of(op: Operation) -> _KeyOf | None:
    """The key for nodes of this op and these types; None where they are not compared."""
    if not _may_be_double(op):
        return None
    if op.type == "Const":
        return _constant
    return _sorted_inputs if op.op_def.is_commutative and len(op.edges) > 2 else _inputs


def _may_be_double(op: Operation) -> bool:
    """Whether nodes of this op and these types are compared."""
    if op.type in INPUT_OPS or op.type in LOW_LEVEL_CONTROL_FLOW or op.op_def.is_stateful:
        return False
    return not any(dtype.is_ref for dtype in (*op.input_types, *op.output_types))


def _constant(op: Operation, kept: dict[Operation, Operation]) -> Hashable:
    return op.attr["value"].SerializeToString(deterministic=True)


def _inputs(op: Operation, kept: dict[Operation, Operation]) -> Hashable:
    edges = op.edges
    if not kept or kept.keys().isdisjoint(edges):
        return edges
    return tuple([kept.get(end, end) for end in edges])


def _sorted_inputs(op: Operation, kept: dict[Operation, Operation]) -> Hashable:
    ends = iter(op.edges)
    return tuple(sorted([(kept.get(source, source).number, next(ends)) for source in ends]))


def _controls(op: Operation, kept: dict[Operation, Operation]) -> set[Operation]:
    return {kept.get(source, source) for source in op.control_inputs}
