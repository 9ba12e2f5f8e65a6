"""Rows of tensors put together and taken apart: AddN, DynamicStitch, DynamicPartition, MirrorPadGrad, InvertPermutation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.ops.array.mirror_pad import folded_paddings, mirror_offset
from opkernel.ops.data_flow.dynamic_partition import dynamic_partition
from opkernel.ops.data_flow.dynamic_stitch import merged_shape
from opkernel.ops.kernel_types import NUMBERS
from opkernel.ops.math.arithmetic import add_n
from opkernel.types import DataType
from opkernel.xla.register_kernel import register_xla_kernel

register_xla_kernel("AddN", types={"T": NUMBERS}, variants=True)(add_n)

# How many rows go where must be known.
register_xla_kernel("DynamicPartition", compile_time_constants=["partitions"])(dynamic_partition)


@register_xla_kernel(["DynamicStitch", "ParallelDynamicStitch"], compile_time_constants=["indices"])
def dynamic_stitch(indices: list[Any], data: list[Any], *, T: DataType, xp: Any) -> Any:
    """Rows that no index names are zeros."""
    shape = merged_shape(indices, data, T)
    rows = [
        part.reshape((places.size, *shape[1:])) for places, part in zip(indices, data, strict=True)
    ]
    places = np.concatenate([each.reshape(-1) for each in indices])
    source = np.full(shape[0], len(places))
    source[places] = np.arange(len(places))  # the last of several counts
    zero = xp.zeros((1, *shape[1:]), dtype=data[0].dtype)
    return xp.concatenate([*rows, zero])[source]


@register_xla_kernel("InvertPermutation")
def invert_permutation(x: Any, *, xp: Any) -> Any:
    if x.ndim != 1:
        raise InvalidArgumentError("invert_permutation expects a 1D vector.")
    places = xp.arange(len(x), dtype=x.dtype)
    return xp.zeros_like(x).at[x].set(places, mode="drop")


@register_xla_kernel("MirrorPadGrad", compile_time_constants=["paddings"], factory=True)
def mirror_pad_grad(*, mode: str, xp: Any) -> Callable[[Any, Any], Any]:
    offset = mirror_offset(mode)

    def fold(tensor: Any, paddings: Any) -> Any:
        for axis, (before, after) in enumerate(folded_paddings(tensor, paddings, offset)):
            lines = xp.moveaxis(tensor, axis, 0)
            stop = len(lines) - after
            inside = lines[before:stop]
            size = len(inside)
            inside = inside.at[offset : offset + before].add(lines[:before][::-1])
            inside = inside.at[size - offset - after : size - offset].add(lines[stop:][::-1])
            tensor = xp.moveaxis(inside, 0, axis)
        return tensor

    return fold
