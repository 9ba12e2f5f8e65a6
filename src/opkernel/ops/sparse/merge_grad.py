"""SparseAddGrad and SparseSliceGrad: which of the values that came in the values that went out stem from.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_add_grad_op.cc, sparse_slice_grad_op.cc.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.work_clock import in_time
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.kernel_types import NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.merge import SIGNED_NUMBERS
from opkernel.ops.sparse.tensors import check_rank, sparse_keys

SPARSE_ADD_GRAD = register_op(
    "SparseAddGrad",
    inputs=["backprop_val_grad: T", "a_indices: int64", "b_indices: int64", "sum_indices: int64"],
    outputs=["a_val_grad: T", "b_val_grad: T"],
    attrs=["T: numbertype"],
    shape_fn=shape_rule("_, [a, ?], [b, ?] -> [a], [b]"),
    doc="The gradients of the values of both operands of SparseAdd.",
)
SPARSE_SLICE_GRAD = register_op(
    "SparseSliceGrad",
    inputs=[
        "backprop_val_grad: T",
        "input_indices: int64",
        "input_start: int64",
        "output_indices: int64",
    ],
    outputs=["val_grad: T"],
    attrs=["T: numbertype"],
    shape_fn=shape_rule("_, [n, ?] -> [n]"),
    doc="The gradient of the values of SparseSlice: 0 for the values that it left out.",
)


@register_kernel(SPARSE_ADD_GRAD, types={"T": SIGNED_NUMBERS})
def sparse_add_grad(
    backprop_val_grad: Any, a_indices: Any, b_indices: Any, sum_indices: Any
) -> tuple[Any, Any]:
    check_rank(1, backprop_val_grad=backprop_val_grad)
    check_rank(2, a_indices=a_indices, b_indices=b_indices, sum_indices=sum_indices)
    _check_count(backprop_val_grad, sum_indices, "sum_indices")
    _check_columns(a_indices, b_indices, sum_indices)
    a, b, total = sparse_keys(a_indices, b_indices, sum_indices)
    if all(map(_rises, (a, b, total))):
        found = [_where_found(keys, total) for keys in (a, b)]
    else:
        found = _found_by_steps([a.tolist(), b.tolist()], total.tolist())
    padded = np.concatenate((backprop_val_grad, np.zeros(1, backprop_val_grad.dtype)))
    return padded[found[0]], padded[found[1]]


def _rises(keys: Any) -> bool:
    return bool((keys[1:] > keys[:-1]).all())


def _where_found(keys: Any, total: Any) -> Any:
    """The place of each key in `total`, -1 where it has none; both rise."""
    places = np.searchsorted(total, keys)
    if not len(total):
        return np.full_like(places, -1)
    is_there = total[np.minimum(places, len(total) - 1)] == keys
    return np.where(is_there, places, -1)


def _found_by_steps(operands: Sequence[list[int]], total: list[int]) -> list[Any]:
    """The same for operands out of order: all are walked through once, side by side with `total`."""
    found = [np.full(len(keys), -1) for keys in operands]
    heads = [0] * len(operands)
    at = 0
    for _ in in_time(range(len(total) + sum(map(len, operands)))):
        goes_on = True
        for number, keys in enumerate(operands):
            head = heads[number]
            if at < len(total) and head < len(keys) and keys[head] <= total[at]:
                if keys[head] == total[at]:
                    found[number][head] = at
                else:
                    goes_on = False
                heads[number] += 1
        at += goes_on
    return found


@register_kernel(SPARSE_SLICE_GRAD, types={"T": NUMBERS})
def sparse_slice_grad(
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
    keys, wanted = sparse_keys(input_indices, output_indices + input_start)
    places = _subsequence(keys, wanted)
    grads = np.zeros(len(keys), backprop_val_grad.dtype)
    grads[places] = backprop_val_grad
    return grads


def _subsequence(keys: Any, wanted: Any) -> Any:
    """Where among the keys those wanted are, one after the other.

    Raises:
        InternalError: some are missing, or come in another order.
    """
    if _rises(keys):
        places = _where_found(wanted, keys)
        if (places >= 0).all() and _rises(places):
            return places
        raise _unused(
            len(wanted), int(np.argmin((places >= 0) & (np.diff(places, prepend=-1) > 0)))
        )
    found: list[int] = []
    targets = wanted.tolist()
    for place, key in enumerate(in_time(keys.tolist())):
        if len(found) < len(targets) and key == targets[len(found)]:
            found.append(place)
    if len(found) < len(targets):
        raise _unused(len(targets), len(found))
    return found


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
