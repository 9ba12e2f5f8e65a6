"""Einsum of one or two operands, lowered to transpositions and one batched matrix product.

Source: TensorFlow core/ops/linalg_ops.cc, core/kernels/linalg/einsum_op_impl.h.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import einsum_shape, parse_einsum_equation
from opkernel.ops.input_checks import require_equal
from opkernel.ops.math.matmul import Multiply, matmul_in_parts
from opkernel.ops.registration import COMPLEX, FLOATS, INDEX, NARROW_FLOATS, register_kernel
from opkernel.records import dataclass
from opkernel.types import DataType

__all__ = ["register_einsum"]

Label = str | int
"""A dimension: a character of the equation; the dimensions of an ellipsis are -1, -2, ... from its end."""

Labels = tuple[Label, ...]


EINSUM = register_op(
    "Einsum(inputs: N * T) -> output: T",
    attrs=["equation: string", "N: int >= 1", "T: type"],
    shape_fn=einsum_shape,
    doc="""Sum of products of the elements of `inputs`, as `equation` says: `ij,jk->ik`.

equation: a label for each dimension of each input, then those of the result. A label that the
  result lacks is summed over; one that stands twice takes or makes a diagonal; an ellipsis stands
  for dimensions that broadcast.
""",
    traits="cost=product",
)


@dataclass(frozen=True, slots=True)
class _Contraction:
    """The product of two operands whose labels are all different and all wanted.

    Both are brought to [batch, free, contracted], the second one's last two groups swapped; the
    result then has the dimensions [batch, free of the left, free of the right].
    """

    swap: bool
    """The second operand of the equation is the left one."""
    batch: Labels
    free: tuple[Labels, Labels]
    contracted: Labels
    orders: tuple[tuple[int | None, ...], tuple[int | None, ...]]
    """Which dimensions the operands are transposed to; None where they lack one of the batch."""
    result_order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """An equation for operands of certain ranks."""

    operands: tuple[Labels, ...]
    wanted: tuple[frozenset[Label], ...]
    """For each operand the labels that the other one or the result has; it is summed over others."""
    output: Labels
    contraction: _Contraction | None


@lru_cache(maxsize=1024)
def _plan(equation: str, ranks: tuple[int, ...]) -> _Plan:
    """Read the equation.

    Raises:
        InvalidArgumentError: it breaks the grammar, or does not fit the ranks.
    """
    inputs, output_subscript = parse_einsum_equation(equation)
    require_equal(
        len(inputs), len(ranks), f"Expected {{}} inputs for equation {equation} but got: {{}}"
    )
    operands = tuple(
        _labels(s, rank, i) for i, (s, rank) in enumerate(zip(inputs, ranks, strict=True))
    )
    broadcast = -min((label for o in operands for label in o if isinstance(label, int)), default=0)
    if broadcast and "." not in output_subscript:
        raise InvalidArgumentError(
            f"Output contains {broadcast} broadcasting dimension(s) but no ellipsis (...) was "
            "found in the output subscripts."
        )
    known = {label for labels in operands for label in labels}
    output = tuple(x for x in _expanded(output_subscript, broadcast) if x in known)
    others = (operands[1:] + operands[:1]) if len(operands) == 2 else ((),)
    wanted = tuple(frozenset((*output, *other)) for other in others)
    contraction = None
    if len(operands) == 2:
        kept = [_kept(o, w) for o, w in zip(operands, wanted, strict=True)]
        contraction = _contraction(kept[0], kept[1], _unique(output))
    return _Plan(operands, wanted, output, contraction)


def _labels(subscript: str, rank: int, index: int) -> Labels:
    named = len(subscript) - subscript.count(".")
    if rank < named or ("." not in subscript and rank != named):
        at_least = "at least " if "." in subscript else ""
        raise InvalidArgumentError(
            f"Expected input {index} of '{subscript}' to have rank {at_least}{named}, got {rank}"
        )
    return _expanded(subscript, rank - named)


def _expanded(subscript: str, ellipsis_rank: int) -> Labels:
    """The labels of a subscript. As in TensorFlow's kernel any run of periods is an ellipsis."""
    labels: list[Label] = []
    for token in re.findall(r"\.+|[^.]", subscript):
        if token[0] != ".":
            labels.append(token)
        elif -1 not in labels:
            labels.extend(range(-ellipsis_rank, 0))
    return tuple(labels)


def _unique(labels: Iterable[Label]) -> Labels:
    return tuple(dict.fromkeys(labels))


def _kept(labels: Labels, wanted: frozenset[Label]) -> Labels:
    """The labels that `_simplified` leaves, in its order."""
    for label in _unique(labels):
        for _ in range(labels.count(label) - 1):
            labels = (*_without(labels, label, 2), label)
    return tuple(label for label in labels if label in wanted)


def _without(labels: Labels, label: Label, count: int) -> Labels:
    """The labels less the first `count` that equal `label`."""
    rest = list(labels)
    for _ in range(count):
        rest.remove(label)
    return tuple(rest)


def _contraction(a: Labels, b: Labels, output: Labels) -> _Contraction:
    batch = tuple(x for x in output if isinstance(x, int) or (x in a and x in b))
    contracted = tuple(x for x in a if x in b and x not in batch)
    free = [tuple(x for x in output if x in o and x not in batch) for o in (a, b)]
    swap = bool(free[0] and free[1]) and output.index(free[1][0]) < output.index(free[0][0])
    left, right = (b, a) if swap else (a, b)
    free = free[::-1] if swap else free
    result = (*batch, *free[0], *free[1])
    return _Contraction(
        swap,
        batch,
        (free[0], free[1]),
        contracted,
        (
            _places((*batch, *free[0], *contracted), left),
            _places((*batch, *contracted, *free[1]), right),
        ),
        tuple(result.index(x) for x in output),
    )


def _places(wanted: Labels, labels: Labels) -> tuple[int | None, ...]:
    return tuple(labels.index(x) if x in labels else None for x in wanted)


def einsum_kernel(given: Multiply | None) -> Callable[..., Callable[[list[Any]], Any]]:
    """Makes kernels that compute products by a function; by the matmul of the namespace if that is None."""

    def make(*, equation: str, T: DataType, xp: Any) -> Callable[[list[Any]], Any]:
        """Integers wrap around; half and bfloat16 accumulate in float."""
        multiply = given or (matmul_in_parts if xp is np else xp.matmul)
        narrow = T in NARROW_FLOATS

        def computed(inputs: list[Any]) -> Any:
            plan = _plan(equation, tuple([x.ndim for x in inputs]))
            sizes = _sizes(plan, inputs)
            terms = [
                _simplified(x.astype(np.float32) if narrow else x, labels, wanted, xp)
                for x, labels, wanted in zip(inputs, plan.operands, plan.wanted, strict=True)
            ]
            if plan.contraction is None:
                kept = _kept(plan.operands[0], plan.wanted[0])
                result = terms[0].transpose([kept.index(x) for x in _unique(plan.output)])
                result = xp.array(result, copy=True)
            else:
                result = _contracted(plan.contraction, terms, sizes, multiply)
            result = _with_diagonals(result, plan.output, xp)
            return result.astype(T.numpy_dtype) if narrow else result

        return computed

    return make


def register_einsum(
    multiply: Multiply | None = None, registry: KernelRegistry | None = None
) -> None:
    """Register kernels that multiply batches of matrices in a certain way."""
    types = {"T": (*FLOATS, *INDEX, *COMPLEX)}
    register_kernel(EINSUM, types=types, factory=True, registry=registry)(einsum_kernel(multiply))


register_einsum()


def _sizes(plan: _Plan, inputs: Sequence[Any]) -> dict[Label, int]:
    """The size of every label in the result.

    Raises:
        InvalidArgumentError: a label stands for different sizes, or those of ellipses do not
            broadcast.
    """
    sizes: dict[Label, int] = {}
    for labels, x in zip(plan.operands, inputs, strict=True):
        for axis, (label, size) in enumerate(zip(labels, x.shape, strict=True)):
            expected = sizes.setdefault(label, size)
            if size == expected:
                continue
            if isinstance(label, str) or 1 not in (size, expected):
                raise InvalidArgumentError(
                    f"Expected dimension {expected} at axis {axis} of the input shaped "
                    f"{list(x.shape)} but got dimension {size}"
                )
            sizes[label] = size if expected == 1 else expected
    return sizes


def _simplified(x: Any, labels: Labels, wanted: frozenset[Label], xp: Any) -> Any:
    """`x` with diagonals for labels that stand twice, and summed over the labels not wanted."""
    if len(set(labels)) < len(labels):
        for label in _unique(labels):
            for _ in range(labels.count(label) - 1):
                first = labels.index(label)
                x = xp.diagonal(x, 0, first, labels.index(label, first + 1))
                labels = (*_without(labels, label, 2), label)
    axes = tuple([axis for axis, label in enumerate(labels) if label not in wanted])
    return xp.sum(x, axis=axes, dtype=x.dtype) if axes else x


def _contracted(
    plan: _Contraction, terms: Sequence[Any], sizes: dict[Label, int], multiply: Multiply
) -> Any:
    """The product of two terms, its dimensions in the order of the result's labels."""
    left, right = (
        _arranged(x, o) for x, o in zip(terms[:: -1 if plan.swap else 1], plan.orders, strict=True)
    )
    batch = len(plan.batch)
    rows, columns, inner = (
        [sizes[label] for label in labels] for labels in (*plan.free, plan.contracted)
    )
    if plan.contracted:
        depth = math.prod(inner)
        left = left.reshape((*left.shape[:batch], math.prod(rows), depth))
        right = right.reshape((*right.shape[:batch], depth, math.prod(columns)))
        result = multiply(left, right)
        result = result.reshape((*result.shape[:batch], *rows, *columns))
    else:
        left = left.reshape(left.shape + (1,) * len(columns))
        right = right.reshape((*right.shape[:batch], *(1 for _ in rows), *columns))
        result = left * right
    return result.transpose(plan.result_order)


def _arranged(x: Any, order: tuple[int | None, ...]) -> Any:
    """`x` transposed, with a dimension of 1 for each None of `order`."""
    x = x.transpose([place for place in order if place is not None])
    if None not in order:
        return x
    return x[tuple([None if place is None else slice(None) for place in order])]


def _with_diagonals(x: Any, output: Labels, xp: Any) -> Any:
    """`x`, which has each label once, spread over the diagonals of the labels that repeat."""
    for axis, label in enumerate(output):
        first = output.index(label)
        if first == axis:
            continue
        x = xp.expand_dims(x, axis)
        size = x.shape[first]
        sizes = [size if i in (first, axis) else 1 for i in range(x.ndim)]
        on_diagonal = np.eye(size, dtype=bool).reshape(sizes)
        x = xp.where(on_diagonal, x, xp.zeros((), dtype=x.dtype))
    return x
