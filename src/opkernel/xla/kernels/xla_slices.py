"""XlaDynamicSlice, XlaPad, XlaGather and their kin: parts of tensors as XLA has them.

Source: TensorFlow compiler/tf2xla/kernels/dynamic_slice_ops.cc, xla_pad_op.cc, gather_scatter_ops.cc,
xla_broadcast_helper_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.ops.declared.dimension_numbers import dimension_numbers as fields_of
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel

__all__ = ["index_vectors"]


def _check_length(name: str, vector: Any, rank: int) -> None:
    if vector.shape != (rank,):
        raise InvalidArgumentError(
            f"{name} must be a vector of {rank}, one for each dimension, its shape is {list(vector.shape)}"
        )


@register_xla_kernel("XlaDynamicSlice", compile_time_constants=["size_indices"])
def xla_dynamic_slice(input: Any, start_indices: Any, size_indices: Any) -> Any:
    """A block; a start that is out of bounds is moved inside."""
    _check_length("start_indices", start_indices, input.ndim)
    _check_length("size_indices", size_indices, input.ndim)
    return lax().dynamic_slice(
        input, list(start_indices), size_indices.tolist(), allow_negative_indices=False
    )


@register_xla_kernel("XlaDynamicUpdateSlice")
def xla_dynamic_update_slice(input: Any, update: Any, indices: Any) -> Any:
    """A tensor with another block; a start that is out of bounds is moved inside."""
    _check_length("indices", indices, input.ndim)
    return lax().dynamic_update_slice(input, update, list(indices), allow_negative_indices=False)


@register_xla_kernel(
    "XlaPad", compile_time_constants=["padding_low", "padding_high", "padding_interior"]
)
def xla_pad(
    input: Any, padding_value: Any, padding_low: Any, padding_high: Any, padding_interior: Any
) -> Any:
    """Padding before, behind and between elements; what is negative takes elements away."""
    paddings = {"low": padding_low, "high": padding_high, "interior": padding_interior}
    for name, padding in paddings.items():
        _check_length(f"padding_{name}", padding, input.ndim)
    if (padding_interior < 0).any():
        raise InvalidArgumentError(
            f"padding_interior must not be negative, it is {padding_interior.tolist()}"
        )
    rows = zip(*(padding.tolist() for padding in paddings.values()), strict=True)
    return lax().pad(input, padding_value, list(rows))


def index_vectors(indices: Any, dimension: int) -> Any:
    """Indices with the index vectors in the last dimension: those of `dimension`, or single indices if there is none."""
    if dimension == indices.ndim:
        return indices[..., None]
    return jnp().moveaxis(indices, dimension, -1)


@register_xla_kernel("XlaGather", compile_time_constants=["slice_sizes"], factory=True)
def xla_gather(*, dimension_numbers: str, indices_are_sorted: bool) -> Callable[..., Any]:
    """Blocks; one that is out of bounds is moved inside."""
    fields = fields_of(dimension_numbers)

    def gather(operand: Any, start_indices: Any, slice_sizes: Any) -> Any:
        numbers = lax().GatherDimensionNumbers(*(tuple(fields[i]) for i in (1, 2, 3, 5, 6)))
        return lax().gather(
            operand,
            index_vectors(start_indices, fields[4][0] if fields[4] else 0),
            numbers,
            tuple(slice_sizes.tolist()),
            indices_are_sorted=indices_are_sorted,
            mode="clip",
        )

    return gather


@register_xla_kernel("XlaBroadcastHelper", compile_time_constants=["broadcast_dims"])
def xla_broadcast_helper(lhs: Any, rhs: Any, broadcast_dims: Any) -> tuple[Any, Any]:
    """Both tensors with the rank of the larger one; `broadcast_dims` says where the smaller one's dimensions go."""
    dims = broadcast_dims.tolist()
    if not dims:
        if lhs.ndim != rhs.ndim and lhs.ndim and rhs.ndim:
            raise InvalidArgumentError(
                "Without broadcast_dims, tensors must have one rank, or one must be a scalar: "
                f"{list(lhs.shape)} and {list(rhs.shape)}"
            )
        return lhs, rhs
    small, large = sorted((lhs, rhs), key=lambda tensor: tensor.ndim)
    if small.ndim == large.ndim or len(dims) != small.ndim:
        raise InvalidArgumentError(
            f"broadcast_dims {dims} must have one for each dimension of the tensor with the smaller rank: "
            f"{list(lhs.shape)} and {list(rhs.shape)}"
        )
    if sorted(set(dims)) != dims or not 0 <= dims[0] <= dims[-1] < large.ndim:
        raise InvalidArgumentError(
            f"broadcast_dims must increase, within the rank {large.ndim}, and are {dims}"
        )
    shape = [1] * large.ndim
    for dim, size in zip(dims, small.shape, strict=True):
        if size not in (1, large.shape[dim]):
            raise InvalidArgumentError(
                f"{list(small.shape)} cannot be broadcast to {list(large.shape)} with {dims}"
            )
        shape[dim] = size
    reshaped = small.reshape(shape)
    return (reshaped, rhs) if small is lhs else (lhs, reshaped)
