"""Ops that merge the entries of two sparse tensors: SparseAdd, SparseSparseMaximum, SparseSparseMinimum.

As in TensorFlow the entries of both are walked through once, side by side: entries out of order stay so.

Gradients of ops that merge the entries of two sparse tensors.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_add_op.cc, sparse_sparse_binary_op_shared.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.kernel_types import COMPLEX, REAL_NUMBERS, REAL_OF, SIGNED_INTEGERS, WIDE_FLOATS
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.tensors import (
    check_bounds,
    check_entries,
    check_parts,
    check_rank,
    sparse_keys,
)
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType

__all__ = ["merged"]


_INPUTS = [
    "a_indices: int64",
    "a_values: T",
    "a_shape: int64",
    "b_indices: int64",
    "b_values: T",
    "b_shape: int64",
]


SPARSE_ADD = register_op(
    "SparseAdd",
    inputs=[*_INPUTS, "thresh: Treal"],
    outputs=["sum_indices: int64", "sum_values: T", "sum_shape: int64"],
    attrs=["T: numbertype", "Treal: realnumbertype"],
    shape_fn=shape_rule("_, _, [rank] -> [?, rank], [?], in2"),
    doc="The sum of two sparse tensors; sums of two entries that are smaller than `thresh` are left out.",
)


def _register_extreme(name: str, type_set: str, which: str) -> Any:
    return register_op(
        name,
        inputs=_INPUTS,
        outputs=["output_indices: int64", "output_values: T"],
        attrs=[f"T: {type_set}"],
        shape_fn=shape_rule("[?, ?], [?], [?], [?, ?], [?], [?] -> [?, ?], [?]"),
        doc=f"The {which} of each two elements; an entry that is missing counts as 0.",
    )


SPARSE_SPARSE_MAXIMUM = _register_extreme("SparseSparseMaximum", "realnumbertype", "larger")
SPARSE_SPARSE_MINIMUM = _register_extreme("SparseSparseMinimum", "numbertype", "smaller")


SIGNED_NUMBERS = (*WIDE_FLOATS, *SIGNED_INTEGERS, *COMPLEX)
"""The types that SparseAdd and its gradient have kernels for."""


def merged(a: Any, b: Any) -> tuple[Any, Any]:
    """The entries of a merge: for each its place among the keys `a` and among `b`, -1 where it has none."""
    if not _is_sorted(a) or not _is_sorted(b):
        return _merged_by_steps(a.tolist(), b.tolist())
    keys = np.concatenate((a, b))
    is_second = np.zeros(len(keys), bool)
    if _has_repeats(a) or _has_repeats(b):
        repeats = np.concatenate((_repeats(a), _repeats(b)))
        order = stable_order(keys, repeats)
        keys, repeats = keys[order], repeats[order]
        is_second[1:] = (keys[1:] == keys[:-1]) & (repeats[1:] == repeats[:-1])
    else:
        order = stable_order(keys)
        keys = keys[order]
        is_second[1:] = keys[1:] == keys[:-1]
    place = np.cumsum(~is_second) - 1
    from_a, from_b = np.full((2, len(order) - np.count_nonzero(is_second)), -1)
    of_a = order < len(a)
    from_a[place[of_a]] = order[of_a]
    from_b[place[~of_a]] = order[~of_a] - len(a)
    return from_a, from_b


def _is_sorted(keys: Any) -> bool:
    return bool((keys[1:] >= keys[:-1]).all())


def _has_repeats(keys: Any) -> bool:
    return bool((keys[1:] == keys[:-1]).any())


def _repeats(keys: Any) -> Any:
    """How often each sorted key came before."""
    return np.arange(len(keys)) - np.searchsorted(keys, keys)


def _merged_by_steps(a: list[int], b: list[int]) -> tuple[Any, Any]:
    from_a, from_b = [], []
    i = j = 0
    for _ in in_time(range(len(a) + len(b))):
        takes_a = i < len(a) and (j == len(b) or a[i] <= b[j])
        takes_b = j < len(b) and (i == len(a) or b[j] <= a[i])
        if not takes_a and not takes_b:
            break
        from_a.append(i if takes_a else -1)
        from_b.append(j if takes_b else -1)
        i, j = i + takes_a, j + takes_b
    return np.array(from_a, np.int64), np.array(from_b, np.int64)


def _taken(values: Any, places: Any) -> Any:
    """The values at these places, 0 where the place is -1."""
    return np.concatenate((values, np.zeros(1, values.dtype)))[places]


def _merged_indices(a: Any, b: Any, from_a: Any, from_b: Any) -> Any:
    return np.concatenate((a, b))[np.where(from_a >= 0, from_a, from_b + len(a))]


@register_kernel(SPARSE_ADD, types={"T": SIGNED_NUMBERS})
def sparse_add(
    a_indices: Any,
    a_values: Any,
    a_shape: Any,
    b_indices: Any,
    b_values: Any,
    b_shape: Any,
    thresh: Any,
    *,
    T: DataType,
    Treal: DataType,
) -> tuple[Any, Any, Any]:
    _check_sum(a_indices, a_values, a_shape, b_indices, b_values, b_shape)
    check_rank(0, thresh=thresh)
    real = REAL_OF.get(T, T)
    if real is not Treal:
        raise InvalidArgumentError(
            f"thresh must be of type {real.string} for values of type {T.string}, got {Treal.string}"
        )
    from_a, from_b = merged(*sparse_keys(a_indices, b_indices))
    values = _taken(a_values, from_a)
    both = (from_a >= 0) & (from_b >= 0)
    values = np.where(from_a >= 0, values, _taken(b_values, from_b))
    values[both] += b_values[from_b[both]]
    kept = ~both | (thresh <= _magnitude(values))
    check_entries(int(kept.sum()), a_indices.shape[1], T)
    indices = _merged_indices(a_indices, b_indices, from_a[kept], from_b[kept])
    return indices, values[kept], a_shape.copy()


def _magnitude(values: Any) -> Any:
    """As C++ has it, which makes narrow integers wider."""
    narrow = values.dtype.kind == "i" and values.dtype.itemsize < 4
    return np.abs(values.astype(np.int32) if narrow else values)


def _check_sum(
    a_indices: Any, a_values: Any, a_shape: Any, b_indices: Any, b_values: Any, b_shape: Any
) -> None:
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
    if not rank:
        raise InvalidArgumentError("Tensors must not be empty")
    if (a_shape != b_shape).any():
        raise InvalidArgumentError(
            f"Input shapes must match: got {a_shape.tolist()} and {b_shape.tolist()}"
        )


def _make_extreme(choose: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def extreme(
        a_indices: Any,
        a_values: Any,
        a_shape: Any,
        b_indices: Any,
        b_values: Any,
        b_shape: Any,
        *,
        T: DataType,
    ) -> Any:
        for name, parts in (
            ("a_", (a_indices, a_values, a_shape)),
            ("b_", (b_indices, b_values, b_shape)),
        ):
            check_parts(*parts, name)
            check_bounds(parts[0], parts[2])
        _check_equal(a_shape.tolist(), b_shape.tolist())
        from_a, from_b = merged(*sparse_keys(a_indices, b_indices))
        check_entries(len(from_a), len(a_shape), T)
        values = choose(_taken(a_values, from_a), _taken(b_values, from_b))
        return _merged_indices(a_indices, b_indices, from_a, from_b), values

    return extreme


def _check_equal(a: list[int], b: list[int]) -> None:
    if len(a) != len(b):
        raise InvalidArgumentError(f"Operands do not have the same ranks; got shapes: {a} and {b}")
    for axis, (first, second) in enumerate(zip(a, b, strict=True)):
        if first != second:
            raise InvalidArgumentError(
                f"Operands' shapes do not match: got {first} and {second} for dimension {axis}"
            )


for _op, _choose in ((SPARSE_SPARSE_MAXIMUM, np.maximum), (SPARSE_SPARSE_MINIMUM, np.minimum)):
    register_kernel(_op, types={"T": REAL_NUMBERS})(_make_extreme(_choose))


@g.register_gradient("SparseAdd")
def sparse_add_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    found = g.nodes.SparseAddGrad(grads[1], op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, found[0], None, None, found[1], None, None]


@g.register_gradient("SparseSparseMaximum", "SparseSparseMinimum")
def sparse_sparse_extreme_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    raise UnimplementedError(f"{op.type} has no gradient, as in TensorFlow")
