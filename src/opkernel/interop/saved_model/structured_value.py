"""Structures of Python values and TensorSpecs, as SavedModels write the signatures of functions.

Source: TensorFlow core/protobuf/struct.proto, python/saved_model/nested_structure_coder.py.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from opkernel.errors import DataLossError
from opkernel.graph import TensorSpec
from opkernel.interop.saved_model.composite import CompositeSpec
from opkernel.proto import StructuredValue
from opkernel.types import DataType, PartialTensorShape, tensor_from_proto, tensor_to_proto

_MAX_DEPTH = 100


def decoded(value: StructuredValue, depth: int = 0) -> Any:
    """The Python value of a message: specs become TensorSpecs and CompositeSpecs.

    Raises:
        DataLossError: the message is damaged.
        UnimplementedError: it has values of an unknown class.
    """
    kind = value.WhichOneof("kind")
    decode = _DECODERS.get(kind or "")
    if decode is None or depth > _MAX_DEPTH:
        raise DataLossError(f"A structured value of the SavedModel is damaged: {kind}")
    try:
        return decode(value, depth + 1)
    except (TypeError, ValueError) as error:
        raise DataLossError(f"A {kind} of the SavedModel is damaged: {error}") from error


def encoded(value: Any) -> StructuredValue:
    """The message of a Python value: of tuples, lists, dicts with text for keys, TensorSpecs, arrays, types, shapes.

    Raises:
        TypeError: it has something else in it.
    """
    proto = StructuredValue()
    if value is None:
        proto.none_value.SetInParent()
    elif isinstance(value, DataType):
        proto.tensor_dtype_value = value
    elif isinstance(value, np.ndarray | np.generic):
        proto.numpy_value.CopyFrom(tensor_to_proto(value))
    elif (field := _FIELDS.get(type(value))) is not None:
        setattr(proto, field, value)
    elif isinstance(value, TensorSpec):
        proto.tensor_spec_value.name = value.name or ""
        proto.tensor_spec_value.shape.CopyFrom(value.shape.to_proto())
        proto.tensor_spec_value.dtype = value.dtype
    elif isinstance(value, PartialTensorShape):
        proto.tensor_shape_value.CopyFrom(value.to_proto())
    elif isinstance(value, dict | list | tuple):
        _encode_parts(value, proto)
    else:
        raise TypeError(
            f"{type(value).__name__} cannot be a part of the signature of a saved function"
        )
    return proto


_FIELDS = {
    bool: "bool_value",
    int: "int64_value",
    float: "float64_value",
    str: "string_value",
}


def _encode_parts(value: Any, proto: StructuredValue) -> None:
    if isinstance(value, dict):
        proto.dict_value.SetInParent()
        for key, one in value.items():
            if not isinstance(key, str):
                raise TypeError(f"a dict with the key {key!r} cannot be saved")
            proto.dict_value.fields[key].CopyFrom(encoded(one))
    elif hasattr(value, "_fields"):
        proto.named_tuple_value.name = type(value).__name__
        for key, one in zip(value._fields, value, strict=True):
            proto.named_tuple_value.values.add(key=key, value=encoded(one))
    else:
        target = proto.list_value if isinstance(value, list) else proto.tuple_value
        target.SetInParent()
        target.values.extend([encoded(one) for one in value])


@lru_cache(1000)
def _named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields, rename=True)  # noqa: PYI024  # its fields are those of the file


def _pairs(value: StructuredValue, depth: int) -> Any:
    pairs = value.named_tuple_value.values
    make = _named_tuple(value.named_tuple_value.name, tuple([pair.key for pair in pairs]))
    return make(*[decoded(pair.value, depth) for pair in pairs])


def _spec(proto: Any) -> TensorSpec:
    return TensorSpec(
        PartialTensorShape.from_proto(proto.shape), DataType(proto.dtype), proto.name or None
    )


_DECODERS: dict[str, Callable[[StructuredValue, int], Any]] = {
    "none_value": lambda value, depth: None,
    "float64_value": lambda value, depth: value.float64_value,
    "int64_value": lambda value, depth: value.int64_value,
    "string_value": lambda value, depth: value.string_value,
    "bool_value": lambda value, depth: value.bool_value,
    "tensor_shape_value": lambda value, depth: PartialTensorShape.from_proto(
        value.tensor_shape_value
    ),
    "tensor_dtype_value": lambda value, depth: DataType(value.tensor_dtype_value),
    "tensor_spec_value": lambda value, depth: _spec(value.tensor_spec_value),
    "bounded_tensor_spec_value": lambda value, depth: _spec(value.bounded_tensor_spec_value),
    "type_spec_value": lambda value, depth: CompositeSpec.of(
        value.type_spec_value, decoded(value.type_spec_value.type_state, depth)
    ),
    "list_value": lambda value, depth: [decoded(one, depth) for one in value.list_value.values],
    "tuple_value": lambda value, depth: tuple(
        [decoded(one, depth) for one in value.tuple_value.values]
    ),
    "dict_value": lambda value, depth: {
        key: decoded(one, depth) for key, one in sorted(value.dict_value.fields.items())
    },
    "named_tuple_value": _pairs,
    "tensor_value": lambda value, depth: tensor_from_proto(value.tensor_value),
    "numpy_value": lambda value, depth: tensor_from_proto(value.numpy_value),
}
