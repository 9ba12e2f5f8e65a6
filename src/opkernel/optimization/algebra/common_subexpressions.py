"""Common subexpressions: operations that compute the same from the same are one.

Source: TensorFlow core/graph/optimizer_cse.cc, core/grappler/optimizers/
common_subgraph_elimination.cc (DedupComputations).
"""

from collections.abc import Hashable, Iterable, Sequence

from opkernel.graph import Graph, Operation
from opkernel.graph.core.edges import edges_of
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
    first: dict[Hashable, list[Operation]] = {}
    may_be_double: dict[NodeSignature, bool] = {}
    for op in order:
        known = may_be_double.get(op.signature)
        if known is None:
            known = may_be_double[op.signature] = _may_be_double(op)
        is_large = op.type == "Const" and num_elements(op) > _MAX_CONSTANT_ELEMENTS
        if not known or is_large:
            continue
        key = op.type, op.device if by_device else "", _inputs(op, kept)
        candidates = first.setdefault(key, [])
        attrs = dict(op.attr) if candidates else {}
        same = next((one for one in candidates if dict(one.attr) == attrs), None)
        if same is None:
            candidates.append(op)
        elif _controls(same, kept) == _controls(op, kept):
            kept[op] = same
    return kept


def _may_be_double(op: Operation) -> bool:
    """Whether nodes of this op and these types are compared."""
    if op.type in INPUT_OPS or op.type in LOW_LEVEL_CONTROL_FLOW or op.op_def.is_stateful:
        return False
    return not any(dtype.is_ref for dtype in (*op.input_types, *op.output_types))


def _inputs(op: Operation, kept: dict[Operation, Operation]) -> Hashable:
    if op.type == "Const":
        return op.attr["value"].SerializeToString(deterministic=True)
    inputs = [(kept.get(source, source).number, index) for source, index in edges_of(op)]
    return tuple(sorted(inputs) if len(inputs) > 1 and op.op_def.is_commutative else inputs)


def _controls(op: Operation, kept: dict[Operation, Operation]) -> set[Operation]:
    return {kept.get(source, source) for source in op.control_inputs}
