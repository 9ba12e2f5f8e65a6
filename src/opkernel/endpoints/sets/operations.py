"""Sets: the last axis of tensors, or of sparse tensors, without regard to order.

Source: TensorFlow python/ops/sets_impl.py.
"""

from __future__ import annotations

from typing import Any

from opkernel import raw_ops
from opkernel.endpoints.sparse._parts import is_sparse, sparse_parts
from opkernel.endpoints.sparse.tensor import SparseTensor
from opkernel.endpoints.tensors import convert, dtype_of, like


def _operate(a: Any, b: Any, operation: str, validate_indices: bool) -> SparseTensor:
    found: Any
    attrs: dict[str, Any] = {"set_operation": operation, "validate_indices": validate_indices}
    if not is_sparse(a):
        first = convert(a)
        if not is_sparse(b):
            second = like(b, dtype_of(first))
            found = raw_ops.DenseToDenseSetOperation(set1=first, set2=second, **attrs)
            return SparseTensor(*found)
        other = sparse_parts(b)
        found = raw_ops.DenseToSparseSetOperation(
            set1=first,
            set2_indices=other.indices,
            set2_values=other.values,
            set2_shape=other.dense_shape,
            **attrs,
        )
        return SparseTensor(*found)
    if not is_sparse(b):
        raise TypeError("The first set is dense where one of the two is")
    one, two = sparse_parts(a), sparse_parts(b)
    found = raw_ops.SparseToSparseSetOperation(
        set1_indices=one.indices,
        set1_values=one.values,
        set1_shape=one.dense_shape,
        set2_indices=two.indices,
        set2_values=two.values,
        set2_shape=two.dense_shape,
        **attrs,
    )
    return SparseTensor(*found)


def _ordered(a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Two sets with a dense one first, and whether they have changed places."""
    return (b, a, True) if is_sparse(a) and not is_sparse(b) else (a, b, False)


def intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements of the last axis that both have.

    Args:
        a: a tensor or a SparseTensor of integers or strings.
        b: another one, of the same shape but for the last axis.
        validate_indices: check the order of sparse indices.

    Returns:
        A SparseTensor, whose last axis has the elements in order.
    """
    first, second, _ = _ordered(a, b)
    return _operate(first, second, "intersection", validate_indices)


def union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements of the last axis that one has at least; see intersection."""
    first, second, _ = _ordered(a, b)
    return _operate(first, second, "union", validate_indices)


def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """The elements of the last axis that `a` has and `b` has not; see intersection.

    Args:
        a: a tensor or a SparseTensor of integers or strings.
        b: another one, of the same shape but for the last axis.
        aminusb: whether the elements are those of `a`; otherwise those of `b` that `a` has not.
        validate_indices: check the order of sparse indices.
    """
    first, second, is_exchanged = _ordered(a, b)
    operation = "a-b" if aminusb is not is_exchanged else "b-a"
    return _operate(first, second, operation, validate_indices)


def size(a: Any, validate_indices: bool = True) -> Any:
    """How many different elements each set, the last axis of a SparseTensor, has. int32.

    Raises:
        TypeError: the sets are not sparse.
    """
    x = sparse_parts(a)
    return raw_ops.SetSize(
        set_indices=x.indices,
        set_values=x.values,
        set_shape=x.dense_shape,
        validate_indices=validate_indices,
    )
