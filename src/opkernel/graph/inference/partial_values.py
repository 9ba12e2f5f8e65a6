"""Integer arithmetic on values that are known in part.

Shapes are computed with tensors like any others: `Shape`, a slice of it, a product, a `Pack`. Their
elements are followed one by one. An element is an int, or the dimension whose size it is, or None.
A dimension that passes through unchanged stays that dimension.

Source: TensorFlow core/common_runtime/shape_refiner.cc (ConstantPartialShape), for more ops.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opkernel.graph.inference import partial_elements as elements
from opkernel.graph.inference.partial_elements import MAX_ELEMENTS, PartialValue, array_of
from opkernel.opdef import DimensionHandle, ShapeHandle

if TYPE_CHECKING:
    from opkernel.graph.core.operation import Operation

Rule: TypeAlias = Callable[["Operation", int, list[Any]], Any]
"""Gives an output of an operation from the values of its inputs, or from their shapes."""

_SIZE_OF_INT32 = 4
"""In bytes; smaller integers do not hold every size."""


def _elementwise(compute: Callable[..., Any], count: int) -> Rule:
    """The rule of an op that computes each element from `count` others, with broadcasting."""
    apply = np.frompyfunc(compute, count, 1)
    return lambda op, index, inputs: apply(*inputs)


def forward(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
    """The first input, the only one that is given."""
    return inputs[0]


def _cast(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
    target = op.output_types[0]
    if target.size >= _SIZE_OF_INT32 and not op.input_types[0].is_bool:
        return inputs[0]
    convert: Callable[[int], int] = bool if target.is_bool else int
    return np.frompyfunc(lambda e: convert(e) if isinstance(e, int) else None, 1, 1)(inputs[0])


def _strided_slice(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
    source, begin, end, strides = inputs
    mask = {name: op.get_attr(f"{name}_mask") for name in _MASKS}
    spec: list[Any] = []
    for i in range(begin.size):
        bit = 1 << i
        if mask["ellipsis"] & bit:
            spec.append(Ellipsis)
        elif mask["new_axis"] & bit:
            spec.append(None)
        elif mask["shrink_axis"] & bit:
            spec.append(operator.index(begin[i]))
        else:
            start = None if mask["begin"] & bit else operator.index(begin[i])
            stop = None if mask["end"] & bit else operator.index(end[i])
            spec.append(slice(start, stop, operator.index(strides[i])))
    return source[tuple(spec)]


def _slice(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
    source, begin, size = inputs
    spans = []
    for start, count, total in zip(_integers(begin), _integers(size), source.shape, strict=True):
        stop = total if count == -1 else start + count
        if not 0 <= start <= stop <= total:
            raise IndexError(start)
        spans.append(slice(start, stop))
    return source[tuple(spans)]


def _gather(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
    axis = _integer(inputs[2]) if len(inputs) > 2 else 0
    if len(inputs) > 2 and op.get_attr("batch_dims"):
        return None
    picked = np.array(_integers(inputs[1]), np.int64).reshape(inputs[1].shape)
    if (picked < 0).any():
        raise IndexError(picked)
    return np.take(inputs[0], picked, axis=axis)


def _tile(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
    repeats = _integers(inputs[1])
    _small([size * count for size, count in zip(inputs[0].shape, repeats, strict=True)])
    return np.tile(inputs[0], repeats)


def _range(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
    numbers = range(*map(_integer, inputs))
    _small([len(numbers)])
    return array_of(list(numbers))


def _split(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
    axis = _integer(inputs[0])
    return np.split(inputs[1], len(op.outputs), axis=axis)[index]


def _split_v(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
    sizes = _integers(inputs[1])
    start = sum(sizes[:index])
    if min(sizes) < 0:
        return None
    return np.take(inputs[0], range(start, start + sizes[index]), axis=_integer(inputs[2]))


def _reduction(compute: Callable[[Any, Any], Any], start: Any) -> Rule:
    """The rule of a reduction; `start` is the result for no elements, None if there is none."""

    def reduce(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
        result, given = inputs[0], _integers(inputs[1])
        axes = {axis % result.ndim for axis in given}
        if len(axes) < len(given):
            return None  # the kernel will refuse axes that are named twice
        for axis in sorted(axes, reverse=True):
            result = _reduced(result, axis, compute, start)
            if op.get_attr("keep_dims"):
                result = np.expand_dims(result, axis)
        return result

    return reduce


def _reduced(
    source: PartialValue, axis: int, compute: Callable[[Any, Any], Any], start: Any
) -> PartialValue:
    """The elements along one axis combined, from the first to the last."""
    combine = np.frompyfunc(compute, 2, 1)
    rows = [array_of(np.take(source, i, axis=axis)) for i in range(source.shape[axis])]
    shape = source.shape[:axis] + source.shape[axis + 1 :]
    total = rows[0] if rows else np.full(shape, start, dtype=object)
    for row in rows[1:]:
        total = array_of(combine(total, row))
    return total


def _select(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
    condition, first, _ = inputs
    if condition.ndim not in (0, first.ndim):
        return None  # a vector that selects rows
    return np.frompyfunc(elements.select, 3, 1)(*inputs)


def _broadcast_args(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
    first, second = (list(value) for value in inputs)
    rank = max(len(first), len(second))
    padded = [[1] * (rank - len(sizes)) + sizes for sizes in (first, second)]
    return array_of([elements.broadcast_size(a, b) for a, b in zip(*padded, strict=True)])


def _like(value: int) -> Rule:
    return lambda op, index, inputs: np.full(inputs[0].shape, value, dtype=object)


def _merge(op: Operation, index: int, inputs: list[PartialValue]) -> Any:
    if index or len({value.shape for value in inputs}) > 1:
        return None
    agreed = np.frompyfunc(lambda a, b: a if a is b or elements.equal(a, b) else None, 2, 1)
    result = inputs[0]
    for value in inputs[1:]:
        result = array_of(agreed(result, value))
    return result


def _integer(value: PartialValue) -> int:
    """The one element of a value; TypeError where it is not known."""
    return operator.index(value.item())


def _integers(value: PartialValue) -> list[int]:
    """The elements of a value; TypeError where they are not all known."""
    return [operator.index(element) for element in value.flat]


def _small(sizes: Iterable[int]) -> tuple[int, ...]:
    sizes = tuple(sizes)
    if np.prod(sizes, dtype=object) > MAX_ELEMENTS or min(sizes, default=0) < 0:
        raise ValueError(sizes)
    return sizes


def _size_of(dim: DimensionHandle) -> Any:
    return dim if dim.value < 0 else dim.value


def _sizes(op: Operation, index: int, inputs: list[ShapeHandle]) -> Any:
    shape = inputs[index]
    return None if shape.dims is None else array_of([_size_of(dim) for dim in shape.dims])


def _rank(op: Operation, index: int, inputs: list[ShapeHandle]) -> Any:
    dims = inputs[index].dims
    return None if dims is None else len(dims)


def _count(op: Operation, index: int, inputs: list[ShapeHandle]) -> Any:
    dims = inputs[index].dims
    if dims is None:
        return None
    product: Any = 1
    for dim in dims:
        product = elements.multiply(product, _size_of(dim))
    return product


_MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")

_OF_TWO = (
    "add", "equal", "floor_divide", "floor_mod", "logical_and", "logical_or", "maximum", "minimum",
    "multiply", "not_equal", "subtract", "truncate_divide",
)  # fmt: skip

RULES: dict[str, Rule] = {
    **{name: _elementwise(getattr(elements, name), 2) for name in _OF_TWO},
    "all": _reduction(elements.logical_and, True),
    "any": _reduction(elements.logical_or, False),
    "broadcast_args": _broadcast_args,
    "broadcast_to": lambda op, index, inputs: np.broadcast_to(
        inputs[0], _small(_integers(inputs[1]))
    ),
    "cast": _cast,
    "concat": lambda op, index, inputs: np.concatenate(inputs[:-1], axis=_integer(inputs[-1])),
    "concat_v1": lambda op, index, inputs: np.concatenate(inputs[1:], axis=_integer(inputs[0])),
    "count": _count,
    "expand_dims": lambda op, index, inputs: np.expand_dims(inputs[0], _integer(inputs[1])),
    "fill": lambda op, index, inputs: np.broadcast_to(inputs[1], _small(_integers(inputs[0]))),
    "forward": forward,
    "gather": _gather,
    "greater": _elementwise(elements.when_known(operator.gt), 2),
    "greater_equal": _elementwise(elements.when_known(operator.ge), 2),
    "identity_n": lambda op, index, inputs: inputs[index],
    "less": _elementwise(elements.when_known(operator.lt), 2),
    "less_equal": _elementwise(elements.when_known(operator.le), 2),
    "logical_not": _elementwise(lambda a: not a if isinstance(a, int) else None, 1),
    "max": _reduction(elements.maximum, None),
    "merge": _merge,
    "min": _reduction(elements.minimum, None),
    "negate": _elementwise(lambda a: -a if isinstance(a, int) else None, 1),
    "ones_like": _like(1),
    "pack": lambda op, index, inputs: np.stack(inputs, axis=op.get_attr("axis")),
    "prod": _reduction(elements.multiply, 1),
    "range": _range,
    "rank": _rank,
    "reshape": lambda op, index, inputs: inputs[0].reshape(_integers(inputs[1])),
    "reverse": lambda op, index, inputs: np.flip(inputs[0], axis=tuple(_integers(inputs[1]))),
    "select": _select,
    "select_v2": _elementwise(elements.select, 3),
    "sizes": _sizes,
    "slice": _slice,
    "split": _split,
    "split_v": _split_v,
    "squeeze": lambda op, index, inputs: np.squeeze(
        inputs[0], axis=tuple(op.get_attr("squeeze_dims")) or None
    ),
    "strided_slice": _strided_slice,
    "sum": _reduction(elements.add, 0),
    "tile": _tile,
    "transpose": lambda op, index, inputs: inputs[0].transpose(_integers(inputs[1])),
    "unpack": lambda op, index, inputs: np.take(inputs[0], index, axis=op.get_attr("axis")),
    "zeros_like": _like(0),
}
"""Rules by values of inputs, or for ops that read shapes only, by shapes."""


def rule_of(op: Operation) -> Rule | None:
    """The rule that an op declares with its traits; None where it declares none."""
    traits = op.signature.traits
    rule = traits.value_rule or ("forward" if traits.passes_on else "")
    return RULES.get(rule) if isinstance(rule, str) else rule
