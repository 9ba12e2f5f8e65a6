"""Facts about all tensors of a TensorList: rules for the ops that make, change and read lists.

The shape functions know what shape the tensors of a list may have. The tensors that a graph puts into a
list tell more: their actual shape, and their value where it is always the same. Lists from other ops
are not followed.
"""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.control_flow_ops import EXIT_OPS, NEXT_ITERATION_OPS, SWITCH_OPS
from opkernel.graph.core.operation import Operation
from opkernel.graph.inference.tensor_facts import NO_ITEMS, ZERO_ITEMS, Relaxation, TensorFacts
from opkernel.opdef import ShapeHandle
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra

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
            return [_item(first, _rows(items))]
    return [_list(output, items) for output in outputs]


def _list(facts: TensorFacts, items: TensorFacts | None) -> TensorFacts:
    return TensorFacts(facts.shape, facts.held, facts.value, items)


def _rows(items: TensorFacts | None) -> TensorFacts | None:
    """The known facts of a stack of tensors."""
    if items is None or items.shape.dims is None:
        return None
    one = ShapeAlgebra.unknown_shape_of_rank(1)
    return TensorFacts(ShapeAlgebra.concatenate(one, items.shape))


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
