"""The shapes of batches, and what elements are padded to and with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.data.structure import DatasetSpec, flag_of, flat_specs
from opkernel.endpoints.tensors import static_value
from opkernel.graph.tracing.nested_structure import flatten_up_to
from opkernel.messages import short_repr
from opkernel.types import DataType, PartialTensorShape


def rows_of(batch_size: Any, drop_remainder: Any) -> PartialTensorShape:
    """The shape [rows] of batches of scalars; it is [?] where the size is not known, or the last batch may be smaller."""
    is_whole = static_value(flag_of(drop_remainder))
    size = static_value(batch_size) if is_whole else None
    return PartialTensorShape([size])


def without_rows(shape: PartialTensorShape) -> PartialTensorShape:
    """The shape of a row; ValueError for the shape of a scalar."""
    if shape.rank == 0:
        raise ValueError("Cannot unbatch elements that are scalars")
    return shape[1:]


def shapes_to_pad_to(spec: Any, given: Any) -> Sequence[Sequence[int | None]]:
    """The shape that each component is padded to: as given, or else that of the spec.

    Raises:
        ValueError: the rank of one is not known.
        TypeError: a component is a dataset.
    """
    if any(isinstance(one, DatasetSpec) for one in flat_specs(spec)):
        raise TypeError("padded_batch does not pad datasets of datasets")
    if given is None:
        shapes: list[Any] = [one.shape for one in flat_specs(spec)]
    else:
        shapes = flatten_up_to(spec, given)
    found = []
    for shape in shapes:
        as_shape = PartialTensorShape(
            None if shape is None else [*shape] if isinstance(shape, list | tuple) else shape
        )
        if as_shape.rank is None:
            raise ValueError("You must provide `padded_shapes` for components of unknown rank")
        found.append(as_shape.as_list())
    return found


def values_to_pad_with(spec: Any, specs: Sequence[Any], given: Any) -> list[Any]:
    """The value that each component is padded with: as given, or else 0 or an empty string.

    Raises:
        TypeError: a value is of another type.
    """
    if given is None or not isinstance(given, tuple | dict):
        values = [given] * len(specs)
    else:
        values = flatten_up_to(spec, given)
    padding = []
    for one, value in zip(specs, values, strict=True):
        if value is None:
            value = b"" if one.dtype is DataType.DT_STRING else 0
        padding.append(_typed(value, one.dtype))
    return padding


def _typed(value: Any, dtype: DataType) -> Any:
    if not isinstance(value, int | float | bytes | str):
        return value
    array = np.empty((), dtype.numpy_dtype)
    try:
        array[()] = value.encode() if isinstance(value, str) else value
    except (ValueError, OverflowError):
        raise TypeError(f"{short_repr(value)} is no padding value for {dtype.string}") from None
    return array
