"""Products and powers: fewer factors, and cheaper ones.

Each rule looks at one operation; true where it changed it.

Source: TensorFlow core/grappler/optimizers/arithmetic_optimizer.cc, constant_folding.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.algebra.redundant_ops import keeps_shape

Array = np.ndarray[Any, Any]

_LARGEST_FACTOR = 2.0**32
"""Factors are combined while multiplication by them neither overflows nor loses digits."""
_MAX_STEPS = 4


def is_moderate(value: Array) -> bool:
    """Whether to multiply with a value neither overflows nor loses digits, but for extreme numbers."""
    sizes = np.abs(value.astype(np.float64))
    return bool(((sizes <= _LARGEST_FACTOR) & (sizes >= 1 / _LARGEST_FACTOR)).all())


def power(editor: GraphEditor, op: Operation) -> bool:
    """x^2 and x^3 are products, x^-1 is 1 / x, x^(1/2) a root; they round a little differently.

    Of -0.0 and -inf the root is not that power.
    """
    base, exponent = op.inputs
    value = editor.free_value(exponent)
    if value is None or not base.dtype.is_floating or not keeps_shape(editor, base, value):
        return False
    attrs = {"T": base.dtype.base}
    simple = next((op_type for e, op_type in _POWERS.items() if (value == e).all()), None)
    if simple is not None and (simple not in _ROOTS or _is_not_negative(editor, base, _MAX_STEPS)):
        editor.become(op, simple, [base], attrs)
        editor.note(op, f"is a {simple}")
        return True
    if (value == 3).all():
        square = editor.add("Square", [base], f"{op.name}/square", attrs, op.device)
        editor.become(op, "Mul", [square.outputs[0], base], attrs)
        editor.note(op, "is a product")
        return True
    return False


_POWERS = {2: "Square", -1: "Reciprocal", 0.5: "Sqrt", -0.5: "Rsqrt"}
_ROOTS = frozenset({"Rsqrt", "Sqrt"})


def _is_not_negative(editor: GraphEditor, tensor: Tensor, steps: int) -> bool:
    """Whether a tensor has no negative elements, nor -0.0."""
    op, value = tensor.op, editor.value(tensor)
    if value is not None:
        return not np.signbit(value).any()
    traits = op.traits
    if traits.not_negative or not steps:
        return traits.not_negative
    keeps = traits.keeps_not_negative or traits.passes_on or traits.reshapes
    same_type = [one for one in op.inputs if one.dtype == tensor.dtype]
    return keeps and all(_is_not_negative(editor, one, steps - 1) for one in same_type)


def combined_factors(editor: GraphEditor, op: Operation) -> bool:
    """(x * c) * d is x * (c * d), which rounds once instead of twice."""
    if {source.type for source in op.edges[::2]} != {"Const", "Mul"}:
        return False
    constant, inner = _split(editor, op)
    if constant is None or inner is None:
        return False
    first, x = _split(editor, inner.op)
    if first is None or x is None or editor.only_consumer(inner.op) is None:
        return False
    if inner.op in editor.feeds or inner.op.device != op.device:
        return False
    if op.output_types[0].is_floating:
        if not (is_moderate(constant) and is_moderate(first)):
            return False
    elif not op.output_types[0].is_integer:
        return False
    if not _reaches(constant.shape, first.shape) and not _reaches(first.shape, constant.shape):
        return False
    product = np.asarray(constant * first, constant.dtype)
    controls = [*inner.op.control_inputs]
    factor = editor.constant(product, op.output_types[0], f"{op.name}/factor", op.device)
    editor.become(op, "Mul", [x, factor], {"T": op.output_types[0]})
    op.add_control_inputs(controls)
    editor.note(op, f"multiplies as {inner.op.name!r} does, too")
    return True


def _reaches(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a shape stays the same when it is broadcast against another shape."""
    aligned = zip(shape[::-1], other[::-1], strict=False)
    return len(other) <= len(shape) and all(size in (1, have) for have, size in aligned)


def _split(editor: GraphEditor, op: Operation) -> tuple[Array | None, Tensor | None]:
    """The constant input of a product, and the other one."""
    inputs = op.inputs
    for index in (0, 1):
        value = editor.free_value(inputs[index])
        if value is not None:
            return value, inputs[1 - index]
    return None, None
