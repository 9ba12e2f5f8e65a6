"""Tensors as TensorFlow Serving writes them in JSON: nested lists, `{"b64": ...}` for bytes.

Source: TensorFlow Serving util/json_tensor.cc.
"""

from __future__ import annotations

import base64
import binascii
from itertools import chain
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.escaping import json_text
from opkernel.serving.json_text import is_too_large
from opkernel.types import Array, DataType

_BASE64 = "b64"
_BYTES_SUFFIX = "_bytes"
_MOST_SHOWN = 60
_MOST_DIMENSIONS = 32
_JSON_TYPES = {
    "?": frozenset({bool}),
    "i": frozenset({int}),
    "u": frozenset({int}),
    "f": frozenset({int, float}),
    "O": frozenset({str, dict}),
}
"""The types of Python that JSON has for a kind of NumPy."""


def from_json(value: Any, dtype: DataType) -> Array:
    """The tensor that a JSON value stands for.

    Raises:
        InvalidArgumentError: lists differ in size or depth, or a value is not of the type or its range.
        UnimplementedError: JSON has no values of this type.
    """
    kind = _kind(dtype)
    shape, flat = _flattened(value)
    for found in {*map(type, flat)} - _JSON_TYPES[kind]:
        example = next(one for one in flat if type(one) is found)
        raise InvalidArgumentError(f"JSON Value: {_shown(example)} Type: {_type_name(example)} is not of expected type: {dtype.string}")  # fmt: skip
    if kind == "O":
        array = np.array([text_or_bytes(one) for one in flat], object)
    elif kind == "f":
        array = _floats(flat, dtype)
    else:
        array = _in_range(flat, dtype.as_numpy_dtype, dtype)
    return array.reshape(shape)


def to_json(name: str, array: Any) -> Any:
    """An output as JSON has it: lists, numbers, text.

    Raises:
        InvalidArgumentError: JSON has no values of its type.
    """
    array = np.asarray(array, object if isinstance(array, str | bytes) else None)
    if array.dtype == object:
        as_bytes = name.endswith(_BYTES_SUFFIX)
        texts = [_text(one, as_bytes) for one in array.ravel()]
        return np.array(texts, object).reshape(array.shape).tolist()
    if array.dtype.kind in "?biu":
        return array.tolist()
    if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
        if array.dtype.itemsize < 4:
            array = array.astype(np.float32)
        # The shortest text that is read back as the same float32, as TensorFlow Serving prints it.
        return array.astype(str).astype(np.float64).tolist()
    raise InvalidArgumentError(f"Failed to write JSON value for tensor type: {array.dtype.name}")


def is_base64(value: Any) -> bool:
    """Whether a JSON value stands for bytes."""
    return isinstance(value, dict) and value.keys() == {_BASE64} and isinstance(value[_BASE64], str)


def text_or_bytes(value: Any) -> bytes:
    """The bytes of a string or of `{"b64": ...}`.

    Raises:
        InvalidArgumentError: it is neither.
    """
    try:
        if isinstance(value, str):
            return value.encode()
        if is_base64(value):
            data = value[_BASE64].encode("ascii", "replace")
            return base64.b64decode(data + b"=" * (-len(data) % 4), validate=True)
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"JSON Value: {_shown(value)} is no text of Unicode") from None
    except binascii.Error:
        raise InvalidArgumentError("Unable to base64 decode") from None
    raise InvalidArgumentError(f"JSON Value: {_shown(value)} not formatted correctly for base64 data")  # fmt: skip


def _kind(dtype: DataType) -> str:
    if dtype is DataType.DT_STRING:
        return "O"
    if dtype in (DataType.DT_BFLOAT16, DataType.DT_HALF):
        return "f"
    numpy_dtype = np.dtype(dtype.as_numpy_dtype)
    if numpy_dtype.isbuiltin != 1 or numpy_dtype.kind not in "biuf":
        raise UnimplementedError(f"Conversion of JSON values to type {dtype.string} is not implemented")  # fmt: skip
    return "?" if numpy_dtype.kind == "b" else numpy_dtype.kind


def _flattened(value: Any) -> tuple[list[int], list[Any]]:
    """The shape of nested lists, and their elements.

    Raises:
        InvalidArgumentError: lists differ in size or depth.
    """
    shape: list[int] = []
    level = [value]
    while level and isinstance(level[0], list):
        size = len(level[0])
        for one in level:
            if not isinstance(one, list):
                raise InvalidArgumentError(f"JSON Value: {_shown(one)} found at incorrect level: {len(shape)}, where a list is expected")  # fmt: skip
            if len(one) != size:
                raise InvalidArgumentError(f"Encountered list at unexpected size: {len(one)} at level: {len(shape)} expected size: {size}")  # fmt: skip
        shape.append(size)
        if len(shape) > _MOST_DIMENSIONS:
            raise InvalidArgumentError(f"The lists are deeper than {_MOST_DIMENSIONS}")
        level = [*chain.from_iterable(level)]
    if any(isinstance(one, list) for one in level):
        raise InvalidArgumentError(f"Encountered list at unexpected level: {len(shape)} expected < {len(shape)}")  # fmt: skip
    return shape, level


def _floats(flat: list[Any], dtype: DataType) -> Array:
    """Numbers of a floating-point type, rounded; beyond its largest one are its infinities.

    Raises:
        InvalidArgumentError: a number is beyond the largest double.
    """
    try:
        values = np.array(flat, np.float64)
    except OverflowError:  # of an integer
        raise InvalidArgumentError("JSON Parse error: Number too big to be stored in double.") from None  # fmt: skip
    if np.isinf(values).any() and any(map(is_too_large, flat)):
        raise InvalidArgumentError("JSON Parse error: Number too big to be stored in double.")
    with np.errstate(over="ignore"):
        return values.astype(dtype.as_numpy_dtype)


def _in_range(flat: list[Any], numpy_dtype: Any, dtype: DataType) -> Array:
    try:
        return np.array(flat, numpy_dtype)
    except OverflowError as error:
        raise InvalidArgumentError(f"A JSON Value is not of expected type: {dtype.string}: {error}"[:500]) from None  # fmt: skip


def _text(value: Any, as_bytes: bool) -> Any:
    """Bytes as text, or as base64 if that is asked for or they are no text."""
    if not isinstance(value, str | bytes):
        raise InvalidArgumentError(f"Failed to write JSON value for a {type(value).__name__}")
    data = value.encode() if isinstance(value, str) else value
    if not as_bytes:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return {_BASE64: base64.b64encode(data).decode()}


def _type_name(value: Any) -> str:
    """What TensorFlow Serving calls the type of a JSON value; true and false are types."""
    names = {dict: "Object", list: "Array", str: "String", int: "Number", float: "Number"}
    return "Null" if value is None else names.get(type(value), str(value))


def _shown(value: Any) -> str:
    try:
        text = json_text(value)
    except (ValueError, RecursionError):  # numbers of thousands of digits; deep lists
        return "..."
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
