"""The shapes of batches, and what elements are padded to and with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.data.structure import flag_of, flat_specs
from opkernel.endpoints.tensors import cast_to, convert, dtype_of, static_value
from opkernel.graph import Tensor, TensorSpec
from opkernel.graph.tracing.nested_structure import flatten_up_to
from opkernel.types import DataType, PartialTensorShape


def rows_of(batch_size: Any, drop_remainder: Any) -> PartialTensorShape:
    """The shape [rows] of batches of scalars; it is [?] where the size is not known, or the last batch may be smaller."""
    is_whole = static_value(flag_of(drop_remainder))
    size = static_value(batch_size) if is_whole else None
    return PartialTensorShape([size])


def rows_in_turn(spec: Any, batch_sizes: Any, drop_remainder: Any) -> PartialTensorShape:
    """The shape [rows] of the batches that batches of a spec become; it is [?] where they may have different sizes."""
    sizes = static_value(batch_sizes)
    known = set() if sizes is None else set(sizes.ravel().tolist())
    if len(known) != 1:
        return PartialTensorShape([None])
    (size,) = known
    if not static_value(flag_of(drop_remainder)):
        given = {row[0] for one in flat_specs(spec) if (row := one.shape).rank is not None}
        before = {rows for rows in given if rows is not None}
        if len(before) != 1 or size < 1 or before.pop() % size:
            return PartialTensorShape([None])
    return PartialTensorShape([size])


def shapes_to_pad_to(spec: Any, given: Any) -> Sequence[Sequence[Any]]:
    """The shape that each component is padded to: as given, or else that of the spec. A size may be a tensor.

    Raises:
        ValueError: the rank of one is not known.
        TypeError: a component is no tensor.
    """
    for one in flat_specs(spec):
        if not isinstance(one, TensorSpec):
            raise TypeError(
                f"`padded_batch` pads tensors, and a component of the elements is {one}"
            )
    if given is None:
        shapes: list[Any] = [one.shape for one in flat_specs(spec)]
    else:
        shapes = flatten_up_to(spec, given)
    found = []
    for shape in shapes:
        if isinstance(shape, list | tuple) and any(isinstance(size, Tensor) for size in shape):
            found.append([*shape])
            continue
        as_shape = PartialTensorShape(
            None if shape is None else [*shape] if isinstance(shape, list | tuple) else shape
        )
        if as_shape.rank is None:
            raise ValueError("You must provide `padded_shapes` for components of unknown rank")
        found.append(as_shape.as_list())
    return found


def known_sizes(shape: Sequence[Any]) -> PartialTensorShape:
    """A shape that a component is padded to; sizes that are tensors are not known."""
    return PartialTensorShape([None if isinstance(size, Tensor) else size for size in shape])


def size_vector(shape: Sequence[Any]) -> Any:
    """A shape that a component is padded to as int64 [rank], with -1 for the largest size."""
    sizes = [-1 if size is None else size for size in shape]
    if any(isinstance(size, Tensor) for size in sizes):
        return raw_ops.Pack(values=[cast_to(size, DataType.DT_INT64) for size in sizes])
    return np.array(sizes, np.int64)


def values_to_pad_with(spec: Any, specs: Sequence[Any], given: Any) -> list[Any]:
    """The value that each component is padded with: as given, or else 0 or an empty string.

    Raises:
        TypeError: a value is of another type: 1 is an int32, and 1.0 a float32.
        ValueError: a value is no scalar.
    """
    if given is None or not isinstance(given, tuple | dict):
        values = [given] * len(specs)
    else:
        values = flatten_up_to(spec, given)
    return [_padding(one.dtype, value) for one, value in zip(specs, values, strict=True)]


def _padding(dtype: DataType, value: Any) -> Any:
    if value is None:
        array = np.empty((), dtype.numpy_dtype)
        array[()] = b"" if dtype is DataType.DT_STRING else 0
        return array
    tensor = convert(value)
    if dtype_of(tensor) is not dtype:
        raise TypeError(
            f"A padding value of {dtype_of(tensor).tf_name} does not go with components of {dtype.tf_name}"
        )
    if not PartialTensorShape([]).is_compatible_with(PartialTensorShape(tensor.shape)):
        raise ValueError(f"A padding value is a scalar, not of shape {tensor.shape}")
    return tensor
