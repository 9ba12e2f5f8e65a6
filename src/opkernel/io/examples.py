"""Example and SequenceExample messages from NumPy values, and back.

Source: TensorFlow core/example/feature.proto, example.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.messages import short_repr
from opkernel.proto import DecodeError, Example, Feature, Features, SequenceExample
from opkernel.types import Array

FeatureValue = Any
"""A number, a string, bytes, or a list or array of these; None for a feature without a value."""


def example_from_values(features: Mapping[str, FeatureValue]) -> Example:
    """An Example with a feature for each value.

    Integers and bools become an Int64List, floats a FloatList, and strings and bytes a BytesList. An array is written
    row by row, without its shape. `SerializeToString` makes a record of the message.

    Args:
        features: The values, by name.

    Raises:
        InvalidArgumentError: no feature can hold a value, such as a complex number or an integer beyond int64.
    """
    example = Example()
    _fill(example.features, features)
    return example


def sequence_example_from_values(
    context: Mapping[str, FeatureValue], feature_lists: Mapping[str, Sequence[FeatureValue]]
) -> SequenceExample:
    """A SequenceExample with a feature for each value.

    Args:
        context: The values of the whole sequence, by name.
        feature_lists: A value for each step of the sequence, by name.

    Raises:
        InvalidArgumentError: no feature can hold a value, such as a complex number or an integer beyond int64.
    """
    example = SequenceExample()
    _fill(example.context, context)
    for name, values in feature_lists.items():
        steps = example.feature_lists.feature_list[_name(name)].feature
        for value in values:
            _set(steps.add(), name, value)
    return example


def values_of_example(example: Example | bytes) -> dict[str, Array | None]:
    """The features of an Example, or of a serialized one.

    Returns:
        Vectors of int64, float32, or bytes (dtype object), by name; None for a feature without a value.

    Raises:
        InvalidArgumentError: the bytes are no Example.
    """
    return _values(_parsed(Example, example).features)


def values_of_sequence_example(
    example: SequenceExample | bytes,
) -> tuple[dict[str, Array | None], dict[str, list[Array | None]]]:
    """The context and the feature lists of a SequenceExample, or of a serialized one.

    Returns:
        As `values_of_example`; of a feature list a list with the vector of each step.

    Raises:
        InvalidArgumentError: the bytes are no SequenceExample.
    """
    message = _parsed(SequenceExample, example)
    lists = message.feature_lists.feature_list
    steps = {name: [_value(one) for one in lists[name].feature] for name in sorted(lists)}
    return _values(message.context), steps


def _parsed(kind: Any, given: Any) -> Any:
    if isinstance(given, kind):
        return given
    try:
        return kind.FromString(given)
    except (DecodeError, TypeError):
        raise InvalidArgumentError(f"{short_repr(given)} is no {kind.__name__}") from None


def _fill(message: Features, features: Mapping[str, FeatureValue]) -> None:
    for name, value in features.items():
        _set(message.feature[_name(name)], name, value)


def _name(name: str) -> str:
    if not isinstance(name, str):
        raise InvalidArgumentError(f"The name of a feature is a string, not {short_repr(name)}")
    return name


def _set(feature: Feature, name: str, value: FeatureValue) -> None:
    """Give a feature its value."""
    if value is None or (isinstance(value, list | tuple) and not value):
        return
    array = np.asarray(value) if isinstance(value, np.ndarray | np.generic) else _as_array(value)
    flat = array.reshape(-1)
    if array.dtype.kind in "biu":
        if flat.size and int(flat.max()) > np.iinfo(np.int64).max:
            raise InvalidArgumentError(f"Feature {name!r}: {flat.max()} is beyond int64")
        feature.int64_list.SetInParent()
        feature.int64_list.value.extend(flat.astype(np.int64).tolist())
    elif np.can_cast(array.dtype, np.complex64, "same_kind") and array.dtype.kind != "c":
        feature.float_list.SetInParent()
        with np.errstate(over="ignore"):
            feature.float_list.value.extend(flat.astype(np.float32).tolist())
    elif array.dtype.kind in "OSU":
        feature.bytes_list.SetInParent()
        feature.bytes_list.value.extend([_bytes(name, one) for one in flat.tolist()])
    else:
        raise InvalidArgumentError(f"Feature {name!r} cannot hold {short_repr(value)}")


def _as_array(value: Any) -> Any:
    """Python's values as an array; one of strings has them as they are, with null bytes at their ends."""
    try:
        array = np.asarray(value)
        return np.asarray(value, object) if array.dtype.kind in "SU" else array
    except UnicodeDecodeError:  # str and bytes together
        return np.asarray(value, object)
    except (ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"{short_repr(value)} makes no array: {error}") from None


def _bytes(name: str, value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        with suppress(UnicodeEncodeError):
            return value.encode()
    raise InvalidArgumentError(f"Feature {name!r} cannot hold {short_repr(value)}")


def _values(features: Features) -> dict[str, Array | None]:
    return {name: _value(features.feature[name]) for name in sorted(features.feature)}


def _value(feature: Feature) -> Array | None:
    kind = feature.WhichOneof("kind")
    if kind == "int64_list":
        return np.array(feature.int64_list.value, np.int64)
    if kind == "float_list":
        return np.array(feature.float_list.value, np.float32)
    if kind is None:
        return None
    result = np.empty(len(feature.bytes_list.value), object)
    result[:] = list(feature.bytes_list.value)
    return result
