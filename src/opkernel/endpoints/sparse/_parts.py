"""Sparse tensors whose parts are arrays or tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.endpoints.sparse.tensor import SparseTensor
from opkernel.endpoints.tensors import convert, like
from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse tensor."""
    return isinstance(value, tuple) and len(value) == 3 and hasattr(value, "dense_shape")


def sparse_parts(value: Any) -> SparseTensor:
    """A sparse tensor with its parts as arrays or tensors.

    Raises:
        TypeError: the value is not a sparse tensor.
    """
    if not isinstance(value, tuple) or len(value) != 3:
        raise TypeError(f"A SparseTensor is wanted, and got {type(value).__name__}")
    indices, values, shape = value
    wide = DataType.DT_INT64
    found = SparseTensor(like(indices, wide), convert(values), like(shape, wide))
    if not hasattr(found.indices, "op") and np.ndim(found.indices) != 2:
        raise InvalidArgumentError(
            f"The indices of a SparseTensor are a matrix, and not of the shape {np.shape(found.indices)}"
        )
    return found
