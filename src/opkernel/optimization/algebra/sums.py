"""Sums: fewer terms, and fewer products in them.

Each rule looks at one operation; true where it changed it.

Source: TensorFlow core/grappler/optimizers/arithmetic_optimizer.cc.
"""

from __future__ import annotations

import numpy as np

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.algebra.redundant_ops import keeps_shape


def equal_terms(editor: GraphEditor, op: Operation) -> bool:
    """AddN of n times x is n * x."""
    (first, *others), dtype = op.inputs, op.output_types[0]
    if not others or any(tensor is not first for tensor in others) or not dtype.is_floating:
        return False
    number = np.array(len(op.inputs)).astype(dtype.numpy_dtype)
    if float(number) != len(op.inputs):  # bfloat16 has few digits
        return False
    factor = editor.constant(number, dtype, f"{op.name}/terms", op.device, editor.pivots(op))
    editor.note(op, f"is {len(op.inputs)} times {first.name}")
    editor.become(op, "Mul", [first, factor], {"T": dtype})
    return True


def common_factor(editor: GraphEditor, op: Operation) -> bool:
    """The sum f * a + f * b is f * (a + b), where a and b have one shape; it rounds differently."""
    if any(source.type != "Mul" for source in op.edges[::2]):
        return False
    products = [editor.part(op, index, "Mul") for index in range(len(op.inputs))]
    pairs = [product.inputs for product in products if product is not None]
    if not 2 <= len(pairs) == len(products):
        return False
    for factor in dict.fromkeys(pairs[0]):
        if all(factor in pair for pair in pairs):
            first, *others = [pair[pair[0] is factor] for pair in pairs]
            if all(editor.have_one_shape(first, tensor) for tensor in others):
                attrs, name = editor.attrs(op), f"{op.name}/sum"
                total = editor.add(op.type, [first, *others], name, attrs, op.device)
                attrs = {"T": op.output_types[0]}
                editor.become(op, "Mul", [factor, total.outputs[0]], attrs)
                editor.note(op, f"multiplies with {factor.name} once")
                return True
    return False


def negated_term(editor: GraphEditor, op: Operation) -> bool:
    """The sum x + -y is x - y, -x + y is y - x, and x - -y is x + y, to the last bit."""
    dtype, subtracts = op.output_types[0], op.type == "Sub"
    if (negated := editor.part(op, 1, "Neg")) is not None:
        inputs = [op.inputs[0], negated.inputs[0]]
    elif not subtracts and (negated := editor.part(op, 0, "Neg")) is not None:
        inputs = [op.inputs[1], negated.inputs[0]]
    else:
        return False
    editor.become(op, "AddV2" if subtracts else "Sub", inputs, {"T": dtype})
    editor.note(op, f"does not need {negated.name!r}")
    return True


def logarithm_of_one_more(editor: GraphEditor, op: Operation) -> bool:
    """log(x + 1) is Log1p(x), which is exact near 0 and takes half the time."""
    inner, dtype = editor.part(op, 0, "Add", "AddV2"), op.output_types[0]
    for tensor, one in _orders(inner) if dtype.is_floating else ():
        if _is_one(editor, tensor, one):
            editor.become(op, "Log1p", [tensor], {"T": dtype})
            editor.note(op, "adds 1 itself")
            return True
    return False


def exponential_less_one(editor: GraphEditor, op: Operation) -> bool:
    """exp(x) - 1 is Expm1(x), which is exact near 0 and takes half the time."""
    inner, dtype = editor.part(op, 0, "Exp"), op.output_types[0]
    if inner is None or not dtype.is_floating or not _is_one(editor, *op.inputs):
        return False
    editor.become(op, "Expm1", [inner.inputs[0]], {"T": dtype})
    editor.note(op, f"does what {inner.name!r} did, too")
    return True


def _orders(op: Operation | None) -> list[tuple[Tensor, Tensor]]:
    """The inputs of an operation of two, in either order."""
    if op is None or len(op.inputs) != 2:
        return []
    first, second = op.inputs
    return [(first, second), (second, first)]


def _is_one(editor: GraphEditor, tensor: Tensor, one: Tensor) -> bool:
    """Whether a tensor is 1 and leaves the shape of another as it is."""
    value = editor.free_value(one)
    return value is not None and bool((value == 1).all()) and keeps_shape(editor, tensor, value)
