"""Arithmetic: operations that change nothing, and chains that a shorter one computes.

Each rule looks at one operation. None changes a NaN, an infinity or the sign of a zero where numbers
are not extreme: x + 0.0 is not x for x = -0.0, and stays. What rounds differently is said with the
rule.

Source: TensorFlow core/grappler/optimizers/arithmetic_optimizer.cc, constant_folding.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.algebra.products import combined_factors, power
from opkernel.optimization.algebra.rearrangements import (
    cast_back,
    merged_bitcast,
    merged_concat,
    merged_reshape,
    packed_slice,
    size_of_shape,
    transposed_product,
    unpacked,
)
from opkernel.optimization.algebra.redundant_ops import unchanged_input
from opkernel.optimization.algebra.sums import (
    common_factor,
    equal_terms,
    exponential_less_one,
    logarithm_of_one_more,
    negated_term,
)

_OPPOSITES = {"Equal": "NotEqual", "NotEqual": "Equal"}


def arithmetic(editor: GraphEditor) -> None:
    """Leave out operations that change nothing, and shorten chains of them."""
    rules: dict[str, Sequence[Rule]] = {}
    for op in editor.operations():
        if op.type not in rules:
            rules[op.type] = _rules_of(op)
        for rule in () if op in editor.feeds else rules[op.type]:
            if rule(editor, op):
                break
        if op.edges and len(op.output_types) == 1:  # also the results of rules
            same = unchanged_input(editor, op)
            if same is not None and editor.may_bypass(op, same) and editor.is_valid(op):
                editor.pass_on(op, same, f"changes nothing of {same.name}")


def _involution(editor: GraphEditor, op: Operation) -> bool:
    """-(-x) is x."""
    inner = op.edges[0]
    if inner.type != op.type or inner.control_inputs:
        return False
    if not (editor.may_bypass(op) and editor.may_bypass(inner)):
        return False
    editor.pass_on(op, inner.inputs[0], f"undoes {inner.name!r}")
    return True


def _idempotent(editor: GraphEditor, op: Operation) -> bool:
    """|(|x|)| is |x|."""
    inner = op.edges[0]
    if inner.type != op.type or not editor.may_bypass(op):
        return False
    editor.pass_on(op, op.inputs[0], f"repeats {inner.name!r}")
    return True


def _even(editor: GraphEditor, op: Operation) -> bool:
    """|-x| is |x|."""
    inner = op.edges[0]
    if inner.type != "Neg" or inner.control_inputs or not editor.may_bypass(inner):
        return False
    op.update_input(0, inner.inputs[0])
    editor.note(op, f"does not need {inner.name!r}")
    return True


def _opposite(editor: GraphEditor, op: Operation) -> bool:
    """Not x = y is x != y."""
    inner = editor.part(op, 0, *_OPPOSITES)
    if inner is None:
        return False
    editor.become(op, _OPPOSITES[inner.type], inner.inputs, editor.attrs(inner))
    editor.note(op, f"does what {inner.name!r} did, too")
    return True


def _largest(editor: GraphEditor, op: Operation) -> bool:
    """The largest of f(x) is f of the largest x, where f grows."""
    grows = op.edges[0].traits.growing
    inner = editor.part(op, 0, op.edges[0].type) if grows else None
    if inner is None or _may_be_empty(editor, *op.inputs):  # of nothing the largest is -inf
        return False
    attrs, inputs = editor.attrs(op), [inner.inputs[0], op.inputs[1]]
    largest = editor.add(op.type, inputs, f"{op.name}/before", attrs, op.device)
    editor.become(op, inner.type, [largest.outputs[0]], editor.attrs(inner))
    editor.note(op, f"comes before {inner.name!r}")
    return True


def _may_be_empty(editor: GraphEditor, tensor: Tensor, axes: Tensor) -> bool:
    """Whether there may be no elements along some axes."""
    chosen, shape = editor.value(axes), editor.shape(tensor)
    if chosen is None or not shape.rank or (np.abs(chosen) > shape.rank).any():
        return True
    sizes = shape.as_list()
    return any(not sizes[axis % shape.rank] for axis in chosen.reshape(-1).tolist())


Rule = Callable[[GraphEditor, Operation], bool]

_RULES: dict[str, tuple[Rule, ...]] = {
    "Add": (common_factor, negated_term),
    "AddN": (equal_terms, common_factor),
    "AddV2": (common_factor, negated_term),
    "BatchMatMul": (transposed_product,),
    "BatchMatMulV2": (transposed_product,),
    "Bitcast": (merged_bitcast,),
    "Cast": (cast_back,),
    "ConcatV2": (merged_concat,),
    "Log": (logarithm_of_one_more,),
    "LogicalNot": (_opposite,),
    "MatMul": (transposed_product,),
    "Max": (_largest,),
    "Min": (_largest,),
    "Mul": (combined_factors,),
    "Pow": (power,),
    "Prod": (size_of_shape,),
    "Reshape": (merged_reshape,),
    "StridedSlice": (packed_slice,),
    "Sub": (exponential_less_one, negated_term),
    "Unpack": (unpacked,),
}


def _rules_of(op: Operation) -> list[Rule]:
    """The rules for operations of an op: those of its traits, and those written for it."""
    traits = op.traits
    rules = [(_involution, traits.involution), (_idempotent, traits.idempotent)]
    rules.append((_even, traits.even))
    return [*(rule for rule, holds in rules if holds), *_RULES.get(op.type, ())]
