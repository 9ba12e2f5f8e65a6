"""Values of several tensors: sparse and ragged ones, and which stages of a pipeline take them.

Source: TensorFlow python/framework/sparse_tensor.py, python/ops/ragged/ragged_tensor_value.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from opkernel.errors import UnimplementedError


class SparseTensorValue(NamedTuple):
    """A sparse tensor.

    Attributes:
        indices: int64 [values, rank]: where the values are, in order.
        values: [values]: the values.
        dense_shape: int64 [rank]: the shape.
    """

    indices: Any
    values: Any
    dense_shape: Any


class RaggedTensorValue(NamedTuple):
    """A ragged tensor: rows of different lengths.

    Attributes:
        values: The rows one after the other: a tensor, or a RaggedTensorValue where they have rows themselves.
        row_splits: int32 or int64 [rows + 1]: where each row begins, and where the last one ends.
    """

    values: Any
    row_splits: Any


_COMPOSITES = (SparseTensorValue._fields, RaggedTensorValue._fields)


def whole(stage: str, element: Any) -> Any:
    """An element for a stage that cuts or joins tensors by their rows: none of its values has several tensors.

    Such a value has other rows than its tensors. The fields tell what it is, so that a SparseTensor or RaggedTensor and
    the values of other libraries are found, too.

    Args:
        stage: The method of datasets.
        element: The element, or its spec.

    Raises:
        UnimplementedError: a component is sparse or ragged.
    """
    if getattr(element, "_fields", None) in _COMPOSITES:
        raise UnimplementedError(
            f"`{stage}` takes no elements with a {type(element).__name__}: it cuts or joins tensors by rows"
        )
    parts = element.values() if isinstance(element, Mapping) else element
    if isinstance(element, Mapping | tuple):
        for part in parts:
            whole(stage, part)
    return element
