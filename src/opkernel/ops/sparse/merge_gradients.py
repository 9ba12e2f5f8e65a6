"""SparseAddGrad and SparseSliceGrad: which of the values that came in the values that went out stem from.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_add_grad_op.cc, sparse_slice_grad_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.work_clock import in_time
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import KernelRegistry
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.registration import NUMBERS, register_kernel
from opkernel.ops.sparse.merge import SIGNED_NUMBERS, taken
from opkernel.ops.sparse.tensors import check_rank, sparse_keys

__all__ = ["followed", "found_in_sum", "register_gradients"]


SPARSE_ADD_GRAD = register_op(
    "SparseAddGrad(backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64) "
    "-> a_val_grad: T, b_val_grad: T",
    attrs=["T: numbertype"],
    shape_fn=shape_rule("_, [a, ?], [b, ?] -> [a], [b]"),
    doc="The gradients of the values of both operands of SparseAdd.",
)
SPARSE_SLICE_GRAD = register_op(
    "SparseSliceGrad(backprop_val_grad: T, input_indices: int64, input_start: int64, "
    "output_indices: int64) -> val_grad: T",
    attrs=["T: numbertype"],
    shape_fn=shape_rule("_, [n, ?] -> [n]"),
    doc="The gradient of the values of SparseSlice: 0 for the values that it left out.",
)


Finder = Callable[[Any, Any, Any], tuple[Any, Any]]
"""A function as `found_in_sum`."""
Follower = Callable[[Any, Any], Any]
"""A function as `followed`."""


def _sparse_add_grad(find: Finder) -> Callable[..., tuple[Any, Any]]:
    def grads(
        backprop_val_grad: Any, a_indices: Any, b_indices: Any, sum_indices: Any
    ) -> tuple[Any, Any]:
        check_rank(1, backprop_val_grad=backprop_val_grad)
        check_rank(2, a_indices=a_indices, b_indices=b_indices, sum_indices=sum_indices)
        _check_count(backprop_val_grad, sum_indices, "sum_indices")
        _check_columns(a_indices, b_indices, sum_indices)
        of_a, of_b = find(a_indices, b_indices, sum_indices)
        return taken(backprop_val_grad, of_a), taken(backprop_val_grad, of_b)

    return grads


def found_in_sum(a: Any, b: Any, total: Any) -> tuple[Any, Any]:
    """The place of each row of two matrices of indices in that of their sum, -1 where it has none.

    All are walked through once, side by side.
    """
    keys = sparse_keys(a, b, total)
    if all(map(_rises, keys)):
        return _where_found(keys[0], keys[2]), _where_found(keys[1], keys[2])
    return _found_by_steps(*[one.tolist() for one in keys])


def _rises(keys: Any) -> bool:
    return bool((keys[1:] > keys[:-1]).all())


def _where_found(keys: Any, total: Any) -> Any:
    """The place of each key in `total`, -1 where it has none; both rise."""
    places = np.searchsorted(total, keys)
    if not len(total):
        return np.full_like(places, -1)
    is_there = total[np.minimum(places, len(total) - 1)] == keys
    return np.where(is_there, places, -1)


_END = 1 << 63
"""Above all keys."""


def _found_by_steps(a: list[int], b: list[int], total: list[int]) -> tuple[Any, Any]:
    """The same for rows out of order."""
    of_a, of_b = np.full(len(a), -1), np.full(len(b), -1)
    a, b = [*a, _END], [*b, _END]
    i = j = 0
    for at, key in enumerate(in_time(total)):
        is_above = True
        while is_above:
            x, y = a[i], b[j]
            is_above = x < key or y < key
            if x <= key:
                if x == key:
                    of_a[i] = at
                i += 1
            if y <= key:
                if y == key:
                    of_b[j] = at
                j += 1
        if x == y == _END:
            break
    return of_a, of_b


def _sparse_slice_grad(follow: Follower) -> Callable[..., Any]:
    def grad(
        backprop_val_grad: Any, input_indices: Any, input_start: Any, output_indices: Any
    ) -> Any:
        check_rank(1, backprop_val_grad=backprop_val_grad, input_start=input_start)
        check_rank(2, input_indices=input_indices, output_indices=output_indices)
        _check_count(backprop_val_grad, output_indices, "output_indices")
        if len(output_indices) > len(input_indices):
            raise InvalidArgumentError(
                "# rows of output_indices should be not greater than of input_indices, got "
                f"{len(output_indices)} and {len(input_indices)}"
            )
        _check_columns(input_indices, output_indices)
        if len(input_start) != input_indices.shape[1]:
            raise InvalidArgumentError(
                f"input_start must have one element for each of the {input_indices.shape[1]} dimensions, "
                f"got {len(input_start)}"
            )
        places = follow(input_indices, output_indices + input_start)
        if len(places) < len(output_indices):
            raise _unused(len(output_indices), len(places))
        grads = np.zeros(len(input_indices), backprop_val_grad.dtype)
        grads[places] = backprop_val_grad
        return grads

    return grad


_BLOCK = 1 << 12
"""Rows; where all that are wanted come first, the others need not be looked at."""


def followed(rows: Any, wanted: Any) -> Any:
    """Where among the rows those wanted are, one after the other, up to the first one that is missing."""
    found = [np.zeros(0, np.int64)]
    at = 0
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        if at == len(wanted):
            break
        found.append(_followed_keys(*sparse_keys(block, wanted[at : at + len(block)])) + start)
        at += len(found[-1])
    return np.concatenate(found)


def _followed_keys(keys: Any, wanted: Any) -> Any:
    if _rises(keys):
        places = _where_found(wanted, keys)
        are_there = (places >= 0) & (np.diff(places, prepend=-1) > 0)
        return places if are_there.all() else places[: np.argmin(are_there)]
    found: list[int] = []
    targets = iter((*wanted.tolist(), None))
    target = next(targets)
    for place, key in enumerate(in_time(keys.tolist())):
        if key == target:
            found.append(place)
            target = next(targets)
    return np.array(found, np.int64)


def register_gradients(
    find: Finder, follow: Follower, registry: KernelRegistry | None = None
) -> None:
    """Register the kernels of SparseAddGrad and SparseSliceGrad with functions that find the rows."""
    register_kernel(SPARSE_ADD_GRAD, types={"T": SIGNED_NUMBERS}, registry=registry)(
        _sparse_add_grad(find)
    )
    register_kernel(SPARSE_SLICE_GRAD, types={"T": NUMBERS}, registry=registry)(
        _sparse_slice_grad(follow)
    )


register_gradients(found_in_sum, followed)


def _unused(count: int, used: int) -> InternalError:
    return InternalError(
        f"Elements of backprop_val_grad aren't all propagated. Num elements:{count}, used: {used}"
    )


def _check_count(grads: Any, indices: Any, name: str) -> None:
    if len(grads) != len(indices):
        raise InvalidArgumentError(
            f"# elements of backprop_val_grad and # rows of {name} should match (#nnz of sum): got "
            f"{len(grads)} and {len(indices)}"
        )


def _check_columns(*indices: Any) -> None:
    columns = [matrix.shape[1] for matrix in indices]
    if len(set(columns)) > 1:
        raise InvalidArgumentError(
            f"All indices must have the same number of dimensions: got {columns}"
        )
