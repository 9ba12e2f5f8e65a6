"""SparseTensor: the elements of a tensor that are not zero, with their indices.

Source: TensorFlow python/framework/sparse_tensor.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from opkernel.endpoints.tensors import convert, dtype_of
from opkernel.types import DataType


class SparseTensor(NamedTuple):
    """A tensor of which most elements are zero. A tuple of its three parts, arrays or tensors.

    Attributes:
        indices: the indices of the elements, int64 of the shape [N, rank], in the order of rows.
        values: the elements, a vector of N.
        dense_shape: the shape, an int64 vector.
    """

    indices: Any
    values: Any
    dense_shape: Any

    @property
    def dtype(self) -> DataType:
        """The type of the elements."""
        return dtype_of(convert(self.values))
