"""XlaDynamicSlice, XlaPad, XlaGather, XlaSplitND and their kin: parts of tensors as XLA has them.

XlaSplitND and XlaConcatND cut tensors, and variables, into blocks along all dimensions, and put them together again.

Source: TensorFlow compiler/tf2xla/kernels/dynamic_slice_ops.cc, xla_pad_op.cc, gather_scatter_ops.cc,
xla_broadcast_helper_op.cc, sharding_util_ops.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.ops.declared.xla import dimension_numbers as fields_of
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.resource import XlaResource

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
    fields = fields_of(dimension_numbers, "dimension numbers")

    def gather(operand: Any, start_indices: Any, slice_sizes: Any) -> Any:
        numbers = lax().GatherDimensionNumbers(*(tuple(fields[i]) for i in (1, 2, 3, 5, 6)))
        vectors = index_vectors(start_indices, fields[4][0] if fields[4] else 0)
        sizes = tuple(slice_sizes.tolist())
        options = {"indices_are_sorted": indices_are_sorted, "mode": "clip"}
        return lax().gather(operand, vectors, numbers, sizes, **options)

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


class _Grid:
    """How many blocks there are along each dimension, and how much padding lies behind all.

    Raises:
        InvalidArgumentError: the numbers make no sense.
    """

    def __init__(self, count: int, counts: Sequence[int], paddings: Sequence[int]) -> None:
        self.counts = list(counts)
        self.paddings = list(paddings) or [0] * len(self.counts)
        if min(self.counts, default=1) < 1 or math.prod(self.counts) != count:
            raise InvalidArgumentError(
                f"{self.counts} blocks along dimensions are not {count} in all"
            )
        if len(self.paddings) != len(self.counts) or min(self.paddings, default=0) < 0:
            raise InvalidArgumentError(
                f"paddings must be {len(self.counts)} numbers from 0 on, and are {self.paddings}"
            )

    def split(self, tensor: Any) -> list[Any]:
        """The blocks, row by row; the padding is zeros."""
        self._check_rank(tensor)
        pairs = list(zip(self.counts, tensor.shape, self.paddings, strict=True))
        if any((size + padding) % count for count, size, padding in pairs):
            raise InvalidArgumentError(
                f"{list(tensor.shape)} with paddings {self.paddings} cannot be cut into {self.counts}"
            )
        padded = jnp().pad(tensor, [(0, padding) for padding in self.paddings])
        sizes = [(size + padding) // count for count, size, padding in pairs]
        both = [each for pair in zip(self.counts, sizes, strict=True) for each in pair]
        rank = len(sizes)
        order = [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]
        return list(padded.reshape(both).transpose(order).reshape(-1, *sizes))

    def joined(self, blocks: Sequence[Any]) -> Any:
        """The tensor without its padding."""
        self._check_rank(blocks[0])
        shapes = {tuple(block.shape) for block in blocks}
        if len(shapes) > 1:
            raise InvalidArgumentError(f"All blocks must have one shape, not {sorted(shapes)}")
        rank, (sizes,) = len(self.counts), shapes
        order = [
            axis for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for axis in pair
        ]
        whole = [count * size for count, size in zip(self.counts, sizes, strict=True)]
        tensor = jnp().stack(blocks).reshape(*self.counts, *sizes).transpose(order).reshape(whole)
        kept = [size - padding for size, padding in zip(whole, self.paddings, strict=True)]
        if min(kept, default=0) < 0:
            raise InvalidArgumentError(f"paddings {self.paddings} are more than {whole} has")
        return tensor[tuple(map(slice, kept))]

    def _check_rank(self, tensor: Any) -> None:
        if tensor.ndim != len(self.counts):
            raise InvalidArgumentError(
                f"{self.counts} blocks do not fit a tensor of the shape {list(tensor.shape)}"
            )


@register_xla_kernel("XlaSplitND", factory=True)
def xla_split_nd(*, N: int, num_splits: list[int], paddings: list[int]) -> Callable[[Any], Any]:
    return _Grid(N, num_splits, paddings).split


@register_xla_kernel("XlaConcatND", factory=True)
def xla_concat_nd(*, N: int, num_concats: list[int], paddings: list[int]) -> Callable[[Any], Any]:
    return _Grid(N, num_concats, paddings).joined


@register_xla_kernel("ReadVariableXlaSplitND", resources=True, factory=True)
def read_variable_xla_split_nd(
    *, T: DataType, N: int, num_splits: list[int], paddings: list[int]
) -> Callable[[XlaResource], list[Any]]:
    """The blocks of a variable."""
    grid = _Grid(N, num_splits, paddings)
    return lambda variable: grid.split(jnp().asarray(variable.read(T)))


@register_xla_kernel("AssignVariableXlaConcatND", resources=True, factory=True)
def assign_variable_xla_concat_nd(
    *, T: DataType, N: int, num_concats: list[int], paddings: list[int]
) -> Callable[[XlaResource, list[Any]], None]:
    """A variable gets the tensor that blocks make up."""
    grid = _Grid(N, num_concats, paddings)
    return lambda variable, blocks: variable.assign(T, grid.joined(blocks))
