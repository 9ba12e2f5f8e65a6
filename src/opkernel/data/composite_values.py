"""Components of several tensors: ragged and sparse tensors.

Elements have them as RaggedTensor and SparseTensor, in graphs and outside.

Source: TensorFlow python/framework/sparse_tensor.py, python/ops/ragged/ragged_tensor_value.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opkernel.endpoints.ragged.tensor import RaggedTensor
from opkernel.endpoints.sparse.tensor import SparseTensor
from opkernel.endpoints.tensors import convert, like
from opkernel.types import DataType


def is_composite(value: Any) -> bool:
    """Whether a value is a ragged or sparse tensor.

    The fields tell it, so that the named tuples of other libraries are found, too.
    """
    return getattr(value, "_fields", None) in (RaggedTensor._fields, SparseTensor._fields)


def composite_of(value: Any) -> RaggedTensor | SparseTensor:
    """A ragged or sparse tensor whose parts are tensors or arrays.

    Raises:
        InvalidArgumentError: a part makes no tensor.
    """
    if value._fields == SparseTensor._fields:
        indices, sizes = (
            like(one, DataType.DT_INT64) for one in (value.indices, value.dense_shape)
        )
        return SparseTensor(indices, convert(value.values), sizes)
    inner = composite_of(value.values) if is_composite(value.values) else convert(value.values)
    return RaggedTensor(inner, like(value.row_splits, DataType.DT_INT64))


def map_components(function: Callable[[Any], Any], value: Any) -> Any:
    """A value with the results of a function for each component; a list is one component."""
    if is_composite(value):
        return function(value)
    if isinstance(value, tuple):
        parts = [map_components(function, part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, Mapping):
        return {key: map_components(function, part) for key, part in value.items()}
    return function(value)
