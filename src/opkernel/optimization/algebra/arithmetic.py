"""Arithmetic: operations that change nothing, and chains that a shorter one computes: sums, products, powers.

Each rule looks at one operation, and says what it has changed. None changes a NaN, an infinity or the sign of a zero
where numbers are not extreme: x + 0.0 is not x for x = -0.0, and stays. What rounds differently is said with the rule.

Source: TensorFlow core/grappler/optimizers/arithmetic_optimizer.cc, constant_folding.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
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
from opkernel.optimization.algebra.redundant_ops import keeps_shape, unchanged_input
from opkernel.types import Array

_LARGEST_FACTOR = 2.0**32
"""Factors are combined while multiplication by them neither overflows nor loses digits."""
_MAX_STEPS = 4


def is_moderate(value: Array) -> bool:
    """Whether to multiply with a value neither overflows nor loses digits, but for extreme numbers."""
    sizes = np.abs(value.astype(np.float64))
    return bool(((sizes <= _LARGEST_FACTOR) & (sizes >= 1 / _LARGEST_FACTOR)).all())


def power(editor: GraphEditor, op: Operation) -> str:
    """x^2 and x^3 are products, x^-1 is 1 / x, x^(1/2) a root; they round a little differently.

    Of -0.0 and -inf the root is not that power.
    """
    base, exponent = op.inputs
    value = editor.free_value(exponent)
    if value is None or not base.dtype.is_floating or not keeps_shape(editor, base, value):
        return ""
    attrs = {"T": base.dtype.base}
    simple = next((op_type for e, op_type in _POWERS.items() if (value == e).all()), None)
    if simple is not None and (simple not in _ROOTS or _is_not_negative(editor, base, _MAX_STEPS)):
        editor.become(op, simple, [base], attrs)
        return f"is a {simple}"
    if (value == 3).all():
        square = editor.add("Square", [base], f"{op.name}/square", attrs, op.device)
        editor.become(op, "Mul", [square.outputs[0], base], attrs)
        return "is a product"
    return ""


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


def combined_factors(editor: GraphEditor, op: Operation) -> str:
    """(x * c) * d is x * (c * d), which rounds once instead of twice."""
    if {source.type for source in op.edges[::2]} != {"Const", "Mul"}:
        return ""
    constant, inner = _split(editor, op)
    if constant is None or inner is None:
        return ""
    first, x = _split(editor, inner.op)
    if first is None or x is None or editor.only_consumer(inner.op) is None:
        return ""
    if inner.op in editor.feeds or inner.op.device != op.device:
        return ""
    if op.output_types[0].is_floating:
        if not (is_moderate(constant) and is_moderate(first)):
            return ""
    elif not op.output_types[0].is_integer:
        return ""
    if not _reaches(constant.shape, first.shape) and not _reaches(first.shape, constant.shape):
        return ""
    product = np.asarray(constant * first, constant.dtype)
    controls = [*inner.op.control_inputs]
    factor = editor.constant(product, op.output_types[0], f"{op.name}/factor", op.device)
    editor.become(op, "Mul", [x, factor], {"T": op.output_types[0]})
    op.add_control_inputs(controls)
    return f"multiplies as {inner.op.name!r} does, too"


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


def equal_terms(editor: GraphEditor, op: Operation) -> str:
    """AddN of n times x is n * x."""
    (first, *others), dtype = op.inputs, op.output_types[0]
    if not others or any(tensor is not first for tensor in others) or not dtype.is_floating:
        return ""
    number = np.array(len(op.inputs)).astype(dtype.numpy_dtype)
    if float(number) != len(op.inputs):  # bfloat16 has few digits
        return ""
    factor = editor.constant(number, dtype, f"{op.name}/terms", op.device, editor.pivots(op))
    editor.become(op, "Mul", [first, factor], {"T": dtype})
    return f"is {len(others) + 1} times {first.name}"


def common_factor(editor: GraphEditor, op: Operation) -> str:
    """The sum f * a + f * b is f * (a + b), where a and b have one shape; it rounds differently."""
    if {source.type for source in op.edges[::2]} != {"Mul"}:
        return ""
    products = [editor.part(op, index, "Mul") for index in range(len(op.inputs))]
    pairs = [product.inputs for product in products if product is not None]
    if not 2 <= len(pairs) == len(products):
        return ""
    for factor in dict.fromkeys(pairs[0]):
        if all(factor in pair for pair in pairs):
            first, *others = [pair[pair[0] is factor] for pair in pairs]
            if all(editor.have_one_shape(first, tensor) for tensor in others):
                attrs, name = editor.attrs(op), f"{op.name}/sum"
                total = editor.add(op.type, [first, *others], name, attrs, op.device)
                attrs = {"T": op.output_types[0]}
                editor.become(op, "Mul", [factor, total.outputs[0]], attrs)
                return f"multiplies with {factor.name} once"
    return ""


def negated_term(editor: GraphEditor, op: Operation) -> str:
    """The sum x + -y is x - y, -x + y is y - x, and x - -y is x + y, to the last bit."""
    dtype, subtracts = op.output_types[0], op.type == "Sub"
    if (negated := editor.part(op, 1, "Neg")) is not None:
        inputs = [op.inputs[0], negated.inputs[0]]
    elif not subtracts and (negated := editor.part(op, 0, "Neg")) is not None:
        inputs = [op.inputs[1], negated.inputs[0]]
    else:
        return ""
    editor.become(op, "AddV2" if subtracts else "Sub", inputs, {"T": dtype})
    return f"does not need {negated.name!r}"


def logarithm_of_one_more(editor: GraphEditor, op: Operation) -> str:
    """log(x + 1) is Log1p(x), which is exact near 0 and takes half the time."""
    inner, dtype = editor.part(op, 0, "Add", "AddV2"), op.output_types[0]
    if inner is None or not dtype.is_floating:
        return ""
    for tensor, one in (inner.inputs, inner.inputs[::-1]):
        if _is_one(editor, tensor, one):
            editor.become(op, "Log1p", [tensor], {"T": dtype})
            return "adds 1 itself"
    return ""


def exponential_less_one(editor: GraphEditor, op: Operation) -> str:
    """exp(x) - 1 is Expm1(x), which is exact near 0 and takes half the time."""
    inner, dtype = editor.part(op, 0, "Exp"), op.output_types[0]
    if inner is None or not dtype.is_floating or not _is_one(editor, *op.inputs):
        return ""
    editor.become(op, "Expm1", [inner.inputs[0]], {"T": dtype})
    return f"does what {inner.name!r} did, too"


def _is_one(editor: GraphEditor, tensor: Tensor, one: Tensor) -> bool:
    """Whether a tensor is 1 and leaves the shape of another as it is."""
    value = editor.free_value(one)
    return value is not None and bool((value == 1).all()) and keeps_shape(editor, tensor, value)


_OPPOSITES = {"Equal": "NotEqual", "NotEqual": "Equal"}


def arithmetic(editor: GraphEditor) -> None:
    """Leave out operations that change nothing, and shorten chains of them."""
    rules: dict[str, Sequence[Rule]] = {}
    for op in editor.operations():
        if op.type not in rules:
            known = _rules_of(op)
            rules[op.type] = (
                [r for r in known if r not in _ROUNDING] if editor.keeps_bits else known
            )
        for rule in () if op in editor.feeds else rules[op.type]:
            if what := rule(editor, op):
                editor.note(op, what)
                break
        if op.edges and len(op.output_types) == 1:  # also the results of rules
            same = unchanged_input(editor, op)
            if same is not None and editor.may_bypass(op, same) and editor.is_valid(op):
                editor.pass_on(op, same)
                editor.note(op, f"changes nothing of {same.name}")


def _involution(editor: GraphEditor, op: Operation) -> str:
    """-(-x) is x."""
    inner = op.edges[0]
    if inner.type != op.type or inner.control_inputs:
        return ""
    if not (editor.may_bypass(op) and editor.may_bypass(inner)):
        return ""
    editor.pass_on(op, inner.inputs[0])
    return f"undoes {inner.name!r}"


def _idempotent(editor: GraphEditor, op: Operation) -> str:
    """|(|x|)| is |x|."""
    inner = op.edges[0]
    if inner.type != op.type or not editor.may_bypass(op):
        return ""
    editor.pass_on(op, op.inputs[0])
    return f"repeats {inner.name!r}"


def _even(editor: GraphEditor, op: Operation) -> str:
    """|-x| is |x|."""
    inner = op.edges[0]
    if inner.type != "Neg" or inner.control_inputs or not editor.may_bypass(inner):
        return ""
    op.update_input(0, inner.inputs[0])
    return f"does not need {inner.name!r}"


def _opposite(editor: GraphEditor, op: Operation) -> str:
    """Not x = y is x != y."""
    inner = editor.part(op, 0, *_OPPOSITES)
    if inner is None:
        return ""
    editor.become(op, _OPPOSITES[inner.type], inner.inputs, editor.attrs(inner))
    return f"does what {inner.name!r} did, too"


def _largest(editor: GraphEditor, op: Operation) -> str:
    """The largest of f(x) is f of the largest x, where f grows."""
    grows = op.edges[0].traits.growing
    inner = editor.part(op, 0, op.edges[0].type) if grows else None
    if inner is None or _may_be_empty(editor, *op.inputs):  # of nothing the largest is -inf
        return ""
    attrs, inputs = editor.attrs(op), [inner.inputs[0], op.inputs[1]]
    largest = editor.add(op.type, inputs, f"{op.name}/before", attrs, op.device)
    editor.become(op, inner.type, [largest.outputs[0]], editor.attrs(inner))
    return f"comes before {inner.name!r}"


def _may_be_empty(editor: GraphEditor, tensor: Tensor, axes: Tensor) -> bool:
    """Whether there may be no elements along some axes."""
    chosen, shape = editor.value(axes), editor.shape(tensor)
    if chosen is None or not shape.rank or (np.abs(chosen) > shape.rank).any():
        return True
    sizes = shape.as_list()
    return any(not sizes[axis % shape.rank] for axis in chosen.reshape(-1).tolist())


Rule = Callable[[GraphEditor, Operation], str]
"""Changes an operation where it can; says what the operation does now, and nothing where it stays."""

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


_ROUNDING = frozenset({
    _largest,
    combined_factors,
    common_factor,
    equal_terms,
    exponential_less_one,
    logarithm_of_one_more,
    power,
    transposed_product,
})  # fmt: skip
"""The rules whose results may be rounded otherwise."""


def _rules_of(op: Operation) -> list[Rule]:
    """The rules for operations of an op: those of its traits, and those written for it."""
    traits = op.traits
    rules = [(_involution, traits.involution), (_idempotent, traits.idempotent)]
    rules.append((_even, traits.even))
    return [*(rule for rule, holds in rules if holds), *_RULES.get(op.type, ())]
