"""Attr values as Python objects, and back.

    attr type   Python value                       accepted when setting
    string      str                                str, bytes
    int         int                                anything with __index__
    float       float                              any real number
    bool        bool                               bool, numpy.bool
    type        DataType                           DataType, its number, name or NumPy dtype
    shape       PartialTensorShape                 shapes, sequences of sizes (None: unknown), None
    tensor      numpy.ndarray                      arrays, what NumPy makes one of, TensorProto
    func        NameAttrList                       NameAttrList, the function's name
    list(x)     list                               sequences of x

A string attr is bytes where TensorFlow's Python reads it from a node: in messages and with
`Operation.get_attr`. It is str where TensorFlow's C++ hands an op its attrs: shape functions, constructions,
keywords of kernels and all else that reads with `attr_to_python`. Setting takes both. Bytes that are no
UTF-8 survive the way there and back as surrogates.
"""

import numbers
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.messages import short_repr
from opkernel.opdef.core.validate import attr_value_has_type
from opkernel.proto import AttrValue, NameAttrList, OpDef, TensorProto, TensorShapeProto
from opkernel.types import (
    DataType,
    PartialTensorShape,
    TensorShape,
    as_dtype,
    tensor_from_proto,
    tensor_to_proto,
)


class _Kind(NamedTuple):
    """One kind of attr: the field of AttrValue and of its list, the two conversions, and a value."""

    field: str
    to_python: Callable[[Any], Any]
    from_python: Callable[[Any], Any]
    example: str


def _string_to_python(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _string_from_python(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TypeError("it is neither str nor bytes")
    return value.encode("utf-8", "surrogateescape")


def _float_from_python(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError("it is no number")
    return float(value)


def _bool_from_python(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError("it is no bool")
    return bool(value)


def _shape_from_python(value: Any) -> TensorShapeProto:
    if isinstance(value, TensorShapeProto):
        return value
    shape = value if isinstance(value, TensorShape) else PartialTensorShape(value)
    return shape.to_proto()


def _tensor_from_python(value: Any) -> TensorProto:
    return value if isinstance(value, TensorProto) else tensor_to_proto(value)


def _func_from_python(value: Any) -> NameAttrList:
    if isinstance(value, str):
        return NameAttrList(name=value)
    if not isinstance(value, NameAttrList):
        raise TypeError("it is neither a NameAttrList nor the name of a function")
    return value


_KINDS: Mapping[str, _Kind] = {
    "string": _Kind("s", _string_to_python, _string_from_python, "'same'"),
    "int": _Kind("i", int, operator.index, "3"),
    "float": _Kind("f", float, _float_from_python, "0.5"),
    "bool": _Kind("b", bool, _bool_from_python, "True"),
    "type": _Kind("type", DataType, as_dtype, "opkernel.float32"),
    "shape": _Kind("shape", PartialTensorShape.from_proto, _shape_from_python, "[2, None]"),
    "tensor": _Kind("tensor", tensor_from_proto, _tensor_from_python, "np.zeros(3)"),
    "func": _Kind("func", lambda value: value, _func_from_python, "'my_function'"),
}


IN_MUST_COMPILE = "_InMustCompile"
"""The attr of nodes in the function of a call with `_XlaMustCompile`: kernels take of them what XLA takes."""


def _kind_of(attr_type: str) -> tuple[_Kind, bool]:
    """The kind of an attr type, and whether it is a list of that kind."""
    is_list = attr_type.startswith("list(") and attr_type.endswith(")")
    kind = _KINDS.get(attr_type[5:-1] if is_list else attr_type)
    if kind is None:
        raise InvalidArgumentError(f"'{attr_type}' is not the type of an attr")
    return kind, is_list


def attr_to_python(value: AttrValue, type: str) -> Any:
    """The value as a Python object.

    Raises:
        InvalidArgumentError: the value is not of the type, or is no valid shape or tensor.
    """
    kind, is_list = _kind_of(type)
    if value.WhichOneof("value") != ("list" if is_list else kind.field):
        attr_value_has_type(value, type)  # raises, unless it is an empty list
    if is_list:
        elements = getattr(value.list, kind.field)
        if not elements:
            attr_value_has_type(value, type)
        return [kind.to_python(element) for element in elements]
    return kind.to_python(getattr(value, kind.field))


def attr_as_given(value: AttrValue) -> Any:
    """The Python value as `tf.Operation.get_attr` gives it: strings are bytes, and messages stay what they are."""
    kind = value.WhichOneof("value")
    if kind is None:
        return []
    if kind == "type":
        return DataType(value.type)
    if kind != "list":
        return getattr(value, kind)
    for field, items in value.list.ListFields():
        return [DataType(item) for item in items] if field.name == "type" else list(items)
    return []


def attr_from_python(value: Any, type: str) -> AttrValue:
    """The AttrValue of a Python object for an attr of `type`; an AttrValue stays as it is.

    Raises:
        InvalidArgumentError: the object is no value of the type.
    """
    if isinstance(value, AttrValue):
        return value
    kind, is_list = _kind_of(type)
    try:
        if not is_list:
            return AttrValue(**{kind.field: kind.from_python(value)})
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise TypeError("it is no list")
        elements = [kind.from_python(element) for element in value]
        return AttrValue(list=AttrValue.ListValue(**{kind.field: elements}))
    except (OpError, TypeError, ValueError, OverflowError) as error:
        example = f"[{kind.example}]" if is_list else kind.example
        raise InvalidArgumentError(
            f"{short_repr(value)} is not a value for an attr of type {type}, such as {example}: {error}"
        ) from error


def attr_for_op(op: str, declared: OpDef.AttrDef, value: Any) -> AttrValue:
    """As `attr_from_python` for an attr of an op; the error names both."""
    try:
        return attr_from_python(value, declared.type)
    except OpError as error:
        raise InvalidArgumentError(
            f"Attr '{declared.name}' of '{op}' Op: {error.message}"
        ) from error


def infer_attr_from_python(value: Any) -> AttrValue:
    """The AttrValue of a Python object for an attr that is not declared, by the object's own type.

    An empty list is a list of any kind.

    Raises:
        InvalidArgumentError: no attr type goes with the object.
    """
    if isinstance(value, AttrValue):
        return value
    if not isinstance(value, list | tuple) or isinstance(value, TensorShape):
        return attr_from_python(value, _type_of(value))
    if not value:
        return AttrValue(list=AttrValue.ListValue())
    return attr_from_python(value, f"list({_type_of(value[0])})")


def _type_of(value: Any) -> str:
    """The attr type that a Python object goes with."""
    for types, attr_type in _INFERRED_TYPES:
        if isinstance(value, types):
            return attr_type
    raise InvalidArgumentError(f"{short_repr(value)} is not a value for an attr of any type")


_INFERRED_TYPES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool, np.bool_), "bool"),
    ((DataType,), "type"),
    ((numbers.Integral,), "int"),
    ((numbers.Real,), "float"),
    ((str, bytes), "string"),
    ((TensorShape, PartialTensorShape, TensorShapeProto), "shape"),
    ((np.ndarray, TensorProto), "tensor"),
    ((NameAttrList,), "func"),
)
