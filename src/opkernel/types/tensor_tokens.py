"""Tensors that a TensorProto stands for without a copy: they stay where they are in this process.

The content of such a proto is a token that nobody can guess, so that no model file stands for an
array of this process.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

from opkernel.proto import TensorProto
from opkernel.types.dtype import DataType
from opkernel.types.shape import TensorShape

LEAST_HELD_BYTES = 4096
"""Tensors of fewer bytes are copied into their proto: a token could be as long."""

_TOKEN_BYTES = 32
_held: weakref.WeakValueDictionary[bytes, Any] = weakref.WeakValueDictionary()


def held_proto(array: Any, dtype: DataType) -> TensorProto:
    """A proto that stands for an array of at least `LEAST_HELD_BYTES`, for as long as that lives.

    The array must not be written to meanwhile.
    """
    shape = TensorShape(array.shape).to_proto()
    return TensorProto(dtype=dtype, tensor_shape=shape, tensor_content=held_token(array))


def held_token(array: Any) -> bytes:
    """The content of the proto of `held_proto`."""
    assert array.nbytes >= LEAST_HELD_BYTES
    token = os.urandom(_TOKEN_BYTES)
    _held[token] = array
    return token


def held_tensor(content: bytes, dtype: DataType, shape: TensorShape) -> Any:
    """A read-only view of the array that the content of a proto stands for.

    None where it stands for none, or for one of another type or shape.
    """
    array = _held.get(content)
    if array is None or array.dtype != dtype.numpy_dtype or array.shape != tuple(shape):
        return None
    view = array.view()
    view.flags.writeable = False
    return view
