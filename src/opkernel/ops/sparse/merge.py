"""Ops that merge the entries of two sparse tensors: SparseAdd, SparseSparseMaximum, SparseSparseMinimum.

As in TensorFlow the entries of both are walked through once, side by side: entries out of order stay so.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_add_op.cc, sparse_sparse_binary_op_shared.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import KernelRegistry
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require
from opkernel.ops.registration import (
    COMPLEX,
    REAL_NUMBERS,
    REAL_OF,
    SIGNED_INTEGERS,
    WIDE_FLOATS,
    register_kernel,
)
from opkernel.ops.sparse.tensors import (
    check_bounds,
    check_entries,
    check_parts,
    check_rank,
    sparse_keys,
)
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType

__all__ = ["SIGNED_NUMBERS", "merged", "merged_rows", "register_merges", "taken"]


_OPERANDS = ", ".join(f"{x}_indices: int64, {x}_values: T, {x}_shape: int64" for x in "ab")

SPARSE_ADD = register_op(
    f"SparseAdd({_OPERANDS}, thresh: Treal) -> sum_indices: int64, sum_values: T, sum_shape: int64",
    attrs=["T: numbertype", "Treal: realnumbertype"],
    shape_fn=shape_rule("_, _, [rank] -> [?, rank], [?], in2"),
    doc="The sum of two sparse tensors; sums of two entries that are smaller than `thresh` are left out.",
)


SIGNED_NUMBERS = (*WIDE_FLOATS, *SIGNED_INTEGERS, *COMPLEX)
"""The types that SparseAdd and its gradient have kernels for."""


Merge = Callable[[Any, Any], tuple[Any, Any]]
"""A function as `merged_rows`."""


def merged_rows(a: Any, b: Any) -> tuple[Any, Any]:
    """The entries of a merge of two matrices of indices, as of `merged`."""
    if np.array_equal(a, b):
        return np.arange(len(a)), np.arange(len(a))
    return merged(*sparse_keys(a, b))


def merged(a: Any, b: Any) -> tuple[Any, Any]:
    """The entries of a merge: for each its place among the keys `a` and among `b`, -1 where it has none."""
    if not all((keys[1:] >= keys[:-1]).all() for keys in (a, b)):
        return _merged_by_steps(a.tolist(), b.tolist())
    keys = np.concatenate((a, b))
    is_second = np.zeros(len(keys), bool)
    if any((keys[1:] == keys[:-1]).any() for keys in (a, b)):
        repeats = np.concatenate((_repeats(a), _repeats(b)))
        order = stable_order(keys, repeats)
        keys, repeats = keys[order], repeats[order]
        is_second[1:] = (keys[1:] == keys[:-1]) & (repeats[1:] == repeats[:-1])
    else:
        order = stable_order(keys)
        keys = keys[order]
        is_second[1:] = keys[1:] == keys[:-1]
    starts = np.flatnonzero(~is_second)
    first, ends = order[starts], np.append(starts[1:], len(order))[: len(starts)] - 1
    from_a = np.where(first < len(a), first, -1)
    from_b = order[ends] - len(a)  # the last of two is of `b`; one by itself may be of `a`
    return from_a, np.maximum(from_b, -1)


def _repeats(keys: Any) -> Any:
    """How often each sorted key came before."""
    return np.arange(len(keys)) - np.searchsorted(keys, keys)


_FROM_A, _FROM_B = 1, 2
_END = 1 << 63
"""Above all keys."""


def _merged_by_steps(a: list[int], b: list[int]) -> tuple[Any, Any]:
    steps, of_a, of_b = bytearray(), iter((*a, _END)), iter((*b, _END))
    x, y = next(of_a), next(of_b)
    for _ in in_time(range(len(a) + len(b))):
        if x < y:
            steps.append(_FROM_A)
            x = next(of_a)
        elif y < x:
            steps.append(_FROM_B)
            y = next(of_b)
        elif x == _END:
            break
        else:
            steps.append(_FROM_A | _FROM_B)
            x, y = next(of_a), next(of_b)
    taken = np.frombuffer(steps, np.uint8)
    from_a, from_b = (
        np.where(taken & which, np.cumsum(taken & which != 0) - 1, -1)
        for which in (_FROM_A, _FROM_B)
    )
    return from_a, from_b


def taken(values: Any, places: Any) -> Any:
    """The values at these places, 0 where the place is -1."""
    return np.concatenate((values, np.zeros(1, values.dtype)))[places]


def _merged(a: Any, b: Any, from_a: Any, from_b: Any) -> Any:
    """Of each entry what `a` or, where that has none, `b` has in its place."""
    places = np.where(from_a >= 0, from_a, from_b + len(a))
    return np.concatenate((a, b)).take(places, axis=0)


def _sparse_add(
    merge: Merge, *, T: DataType, Treal: DataType
) -> Callable[..., tuple[Any, Any, Any]]:
    real = REAL_OF.get(T, T)

    def add(*inputs: Any) -> tuple[Any, Any, Any]:
        (a_indices, a_values, a_shape), (b_indices, b_values, _) = a, b = inputs[:3], inputs[3:6]
        _check_sum(a, b)
        check_rank(0, thresh=inputs[6])
        thresh = _in_memory_of(inputs[6], real, f"thresh of type {Treal.string}")
        from_a, from_b = merge(a_indices, b_indices)
        values = _merged(a_values, b_values, from_a, from_b)
        both = np.flatnonzero((from_a >= 0) & (from_b >= 0))
        sums = values[both] + b_values[from_b[both]]
        values[both] = sums
        left_out = both[~(thresh <= _magnitude(sums))]
        check_entries(len(values) - len(left_out), a_indices.shape[1], T)
        if len(left_out):
            from_a, from_b, values = (np.delete(one, left_out) for one in (from_a, from_b, values))
        return _merged(a_indices, b_indices, from_a, from_b), values, a_shape.copy()

    return add


def _in_memory_of(scalar: Any, real: DataType, name: str) -> Any:
    """What TensorFlow reads where it takes a scalar of another type for one of type `real`: the first of its bytes."""
    dtype, data = real.numpy_dtype, np.asarray(scalar).tobytes()
    if len(data) < dtype.itemsize:
        raise InvalidArgumentError(f"{name} has fewer bytes than {real.string}, which is compared")
    return np.frombuffer(data, dtype, 1)[0]


def _magnitude(values: Any) -> Any:
    """As C++ has it, which makes narrow integers wider."""
    narrow = values.dtype.kind == "i" and values.dtype.itemsize < 4
    return np.abs(values.astype(np.int32) if narrow else values)


def _check_sum(a: Sequence[Any], b: Sequence[Any]) -> None:
    (a_indices, a_values, a_shape), (b_indices, b_values, b_shape) = a, b
    check_rank(2, a_indices=a_indices, b_indices=b_indices)
    check_rank(1, a_values=a_values, b_values=b_values, a_shape=a_shape, b_shape=b_shape)
    if len(a_indices) != len(a_values) or len(b_indices) != len(b_values):
        raise InvalidArgumentError(
            f"Expected {len(a_indices)} and {len(b_indices)} values, one for each row of the indices; "
            f"got {len(a_values)} and {len(b_values)}"
        )
    rank = a_indices.shape[1]
    if {rank} != {b_indices.shape[1], len(a_shape), len(b_shape)}:
        raise InvalidArgumentError(
            "The second dimensions of the indices and the lengths of the shapes must be equal; got "
            f"{rank}, {b_indices.shape[1]}, {len(a_shape)} and {len(b_shape)}"
        )
    require(rank, "Tensors must not be empty")
    if (a_shape != b_shape).any():
        raise InvalidArgumentError(
            f"Input shapes must match: got {a_shape.tolist()} and {b_shape.tolist()}"
        )


def _extreme(choose: np.ufunc, merge: Merge, *, T: DataType) -> Callable[..., tuple[Any, Any]]:
    def extreme(*inputs: Any) -> tuple[Any, Any]:
        a, b = inputs[:3], inputs[3:]
        for name, (indices, values, shape) in (("a_", a), ("b_", b)):
            check_parts(indices, values, shape, name)
            check_bounds(indices, shape)
        require(a[2].size, "Tensors must not be empty")
        _check_equal(a[2].tolist(), b[2].tolist())
        from_a, from_b = merge(a[0], b[0])
        check_entries(len(from_a), len(a[2]), T)
        values = choose(taken(a[1], from_a), taken(b[1], from_b))
        return _merged(a[0], b[0], from_a, from_b), values

    return extreme


_EXTREMES = {
    register_op(
        f"{name}({_OPERANDS}) -> output_indices: int64, output_values: T",
        attrs=[f"T: {type_set}"],
        shape_fn=shape_rule("[?, ?], [?], [?], [?, ?], [?], [?] -> [?, ?], [?]"),
        doc=f"The {which} of each two elements; an entry that is missing counts as 0.",
    ): choose
    for name, type_set, which, choose in (
        ("SparseSparseMaximum", "realnumbertype", "larger", np.maximum),
        ("SparseSparseMinimum", "numbertype", "smaller", np.minimum),
    )
}


def register_merges(merge: Merge, registry: KernelRegistry | None = None) -> None:
    """Register the kernels of SparseAdd, SparseSparseMaximum and SparseSparseMinimum with a function that merges."""

    def make_add(*, T: DataType, Treal: DataType) -> Callable[..., Any]:
        return _sparse_add(merge, T=T, Treal=Treal)

    register_kernel(SPARSE_ADD, types={"T": SIGNED_NUMBERS}, factory=True, registry=registry)(
        make_add
    )
    for op, choose in _EXTREMES.items():
        register_kernel(op, types={"T": REAL_NUMBERS}, factory=True, registry=registry)(
            _extreme_maker(choose, merge)
        )


def _extreme_maker(choose: np.ufunc, merge: Merge) -> Callable[..., Any]:
    return lambda *, T: _extreme(choose, merge, T=T)


register_merges(merged_rows)


def _check_equal(a: list[int], b: list[int]) -> None:
    if len(a) != len(b):
        raise InvalidArgumentError(f"Operands do not have the same ranks; got shapes: {a} and {b}")
    for axis, (first, second) in enumerate(zip(a, b, strict=True)):
        if first != second:
            raise InvalidArgumentError(
                f"Operands' shapes do not match: got {first} and {second} for dimension {axis}"
            )


@g.register_gradient("SparseAdd")
def sparse_add_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    found = g.nodes.SparseAddGrad(grads[1], op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, found[0], None, None, found[1], None, None]


@g.register_gradient("SparseSparseMaximum", "SparseSparseMinimum")
def sparse_sparse_extreme_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    raise UnimplementedError(f"{op.type} has no gradient, as in TensorFlow")
