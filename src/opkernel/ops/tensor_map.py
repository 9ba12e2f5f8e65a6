"""Maps from tensors to tensors, as values: EmptyTensorMap and the TensorMap ops, with their gradients.

A map is never changed: insertion and removal give another map. Keys are equal if their types, shapes and bytes are:
so 0.0 and -0.0 differ, and a NaN equals itself. Keys that are variants or resources equal nothing.

Source: TensorFlow core/ops/map_ops.cc, core/kernels/map_kernels.{h,cc}, tensor_map.{h,cc},
core/framework/tensor_key.h, python/ops/map_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.graph import cond
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import scalar_shape, unknown_shape
from opkernel.opdef.text.summary import summarize_values
from opkernel.ops.input_checks import require, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.tensor_list.value import sum_of_elements
from opkernel.proto import VariantTensorDataProto
from opkernel.types import (
    DataType,
    OpaqueVariant,
    Variant,
    object_scalar,
    register_variant_decoder,
    tensor_from_proto,
    tensor_to_proto,
)

__all__ = ["TensorMap"]

_TYPE_NAME = "tensorflow::TensorMap"
_OF_ENTRY = 400
"""The bytes that an entry takes in maps of Python, beside its tensors."""

_WITHOUT_EQUALITY = frozenset({DataType.DT_RESOURCE, DataType.DT_VARIANT})


class _Entry(NamedTuple):
    key: Any
    key_dtype: DataType
    value: Any
    value_dtype: DataType


class TensorMap(Variant):
    """A map from tensors to tensors of any types and shapes, which is never changed.

    Attributes:
        entries: The keys with their values, by what tells keys apart.
    """

    type_name = _TYPE_NAME
    __slots__ = ("entries",)

    def __init__(self, entries: Mapping[object, _Entry] | None = None) -> None:
        self.entries = dict(entries or {})

    def __len__(self) -> int:
        return len(self.entries)

    def __str__(self) -> str:
        return "TensorMap"

    def found(self, key: Any, dtype: DataType) -> _Entry | None:
        """The entry of a key."""
        return self.entries.get(_identity(key, dtype))

    def with_entry(self, entry: _Entry) -> TensorMap:
        """The map with one more entry, or another value for its key."""
        check_bytes(_OF_ENTRY * (len(self) + 1), "entries of a map")
        return TensorMap({**self.entries, _identity(entry.key, entry.key_dtype): entry})

    def without(self, entry: _Entry) -> TensorMap:
        """The map without an entry that it has."""
        check_bytes(_OF_ENTRY * len(self), "entries of a map")
        left_out = _identity(entry.key, entry.key_dtype)
        return TensorMap({at: one for at, one in self.entries.items() if at != left_out})

    def with_tensors(self, change: Callable[[Any], Any]) -> TensorMap:
        """The map with a function applied to its keys and values."""
        return TensorMap(
            {
                at: one._replace(key=change(one.key), value=change(one.value))
                for at, one in self.entries.items()
            }
        )

    def zeros_like(self) -> TensorMap:
        """A map without entries; ZerosLike."""
        return TensorMap()

    def __add__(self, other: object) -> TensorMap:
        """The map with the keys of both; values that both have for a key are added up. AddN.

        Raises:
            InvalidArgumentError: the two values of a key differ in type or shape, or have no sum.
        """
        if not isinstance(other, TensorMap):
            return NotImplemented
        check_bytes(_OF_ENTRY * (len(self) + len(other)), "entries of a map")
        entries = dict(self.entries)
        for at, one in in_time(other.entries.items(), SLOW):
            mine = entries.get(at)
            entries[at] = one if mine is None else _sum(one, mine)
        return TensorMap(entries)

    def to_proto(self) -> VariantTensorDataProto:
        """The map as it stands in a file: each key, then its value."""
        parts = [
            tensor_to_proto(tensor, dtype)
            for one in self.entries.values()
            for tensor, dtype in ((one.key, one.key_dtype), (one.value, one.value_dtype))
        ]
        return VariantTensorDataProto(type_name=_TYPE_NAME, tensors=parts)

    @classmethod
    def from_proto(cls, proto: VariantTensorDataProto) -> TensorMap:
        """The map that stands in a file.

        Raises:
            InvalidArgumentError: it has a key without a value.
        """
        tensors = proto.tensors
        require(len(tensors) % 2 == 0, f"A map of tensors has {len(tensors)} keys and values")
        entries = {}
        for key, value in zip(tensors[::2], tensors[1::2], strict=True):
            key_dtype = DataType(key.dtype)
            entry = _Entry(
                tensor_from_proto(key), key_dtype, tensor_from_proto(value), DataType(value.dtype)
            )
            entries[_identity(entry.key, key_dtype)] = entry
        return cls(entries)


register_variant_decoder(_TYPE_NAME, TensorMap.from_proto)


def _identity(key: Any, dtype: DataType) -> object:
    """What two keys share if they are equal."""
    if dtype in _WITHOUT_EQUALITY:
        return object()
    content = tuple(key.flat) if dtype is DataType.DT_STRING else key.tobytes()
    return dtype, key.shape, content


def _sum(first: _Entry, second: _Entry) -> _Entry:
    if first.value_dtype != second.value_dtype:
        raise InvalidArgumentError(
            "Trying to add two tensors with incompatible element types. One is "
            f"{first.value_dtype.string} and the other is {second.value_dtype.string}"
        )
    return first._replace(value=sum_of_elements(first.value, second.value, first.value_dtype))


def _map_of(handle: Any) -> TensorMap:
    """The map that a handle holds; it may have been read before this module was loaded."""
    require_scalar(handle, "Input map must be a scalar. Saw: {}")
    value = handle.item()
    if isinstance(value, OpaqueVariant) and value.type_name == _TYPE_NAME:
        return TensorMap.from_proto(value.to_proto())
    if not isinstance(value, TensorMap):
        raise InvalidArgumentError(f"Input handle is not a map. Saw: '{value}'")
    return value


def _entry_of(tensor_map: TensorMap, key: Any, dtype: DataType, wish: str) -> _Entry:
    entry = tensor_map.found(key, dtype)
    if entry is None:
        shown = summarize_values(np.asarray(key), dtype, 100)
        raise InvalidArgumentError(
            f'Trying to {wish} non-existent key. Could not find key "{shown}".'
        )
    return entry


EMPTY_TENSOR_MAP = register_op(
    "EmptyTensorMap() -> handle: variant", shape_fn=scalar_shape, doc="A map without entries."
)
TENSOR_MAP_SIZE = register_op(
    "TensorMapSize(input_handle: variant) -> size: int32",
    shape_fn=scalar_shape,
    doc="The number of entries of a map.",
)
TENSOR_MAP_LOOKUP = register_op(
    "TensorMapLookup(input_handle: variant, key: key_dtype) -> value: value_dtype",
    attrs=["key_dtype: type", "value_dtype: type"],
    shape_fn=unknown_shape,
    doc="The value of a key; an InvalidArgumentError if the map does not have it.",
)
TENSOR_MAP_INSERT = register_op(
    "TensorMapInsert(input_handle: variant, key: key_dtype, value: value_dtype) "
    "-> output_handle: variant",
    attrs=["key_dtype: type", "value_dtype: type"],
    shape_fn=scalar_shape,
    doc="The map with one more entry, or with another value for the key.",
)
TENSOR_MAP_ERASE = register_op(
    "TensorMapErase(input_handle: variant, key: key_dtype) -> output_handle: variant",
    attrs=["key_dtype: type", "value_dtype: type"],
    shape_fn=scalar_shape,
    doc="The map without a key; an InvalidArgumentError if the map does not have it.",
)
TENSOR_MAP_HAS_KEY = register_op(
    "TensorMapHasKey(input_handle: variant, key: key_dtype) -> has_key: bool",
    attrs=["key_dtype: type"],
    shape_fn=scalar_shape,
    doc="Whether a map has a key.",
)
TENSOR_MAP_STACK_KEYS = register_op(
    "TensorMapStackKeys(input_handle: variant) -> keys: key_dtype",
    attrs=["key_dtype: type"],
    shape_fn=unknown_shape,
    doc="The keys, which must have one type and shape, in the order of their insertion.",
)


@register_kernel(EMPTY_TENSOR_MAP)
def empty_tensor_map() -> Any:
    return object_scalar(TensorMap())


@register_kernel(TENSOR_MAP_SIZE)
def tensor_map_size(input_handle: Any) -> Any:
    return np.int32(len(_map_of(input_handle)))


@register_kernel(TENSOR_MAP_LOOKUP, kind="view")
def tensor_map_lookup(
    input_handle: Any, key: Any, *, key_dtype: DataType, value_dtype: DataType
) -> Any:
    entry = _entry_of(_map_of(input_handle), key, key_dtype, "lookup")
    if entry.value_dtype != value_dtype:
        raise InvalidArgumentError(
            f"Type mismatch: actual {entry.value_dtype.string} vs. expect {value_dtype.string}"
        )
    return entry.value


@register_kernel(TENSOR_MAP_INSERT, kind="view")
def tensor_map_insert(
    input_handle: Any, key: Any, value: Any, *, key_dtype: DataType, value_dtype: DataType
) -> Any:
    entry = _Entry(key, key_dtype, value, value_dtype)
    return object_scalar(_map_of(input_handle).with_entry(entry))


@register_kernel(TENSOR_MAP_ERASE, kind="view")
def tensor_map_erase(input_handle: Any, key: Any, *, key_dtype: DataType) -> Any:
    tensor_map = _map_of(input_handle)
    return object_scalar(tensor_map.without(_entry_of(tensor_map, key, key_dtype, "erase")))


@register_kernel(TENSOR_MAP_HAS_KEY)
def tensor_map_has_key(input_handle: Any, key: Any, *, key_dtype: DataType) -> Any:
    return np.bool_(_map_of(input_handle).found(key, key_dtype) is not None)


@register_kernel(TENSOR_MAP_STACK_KEYS)
def tensor_map_stack_keys(input_handle: Any, *, key_dtype: DataType) -> Any:
    entries = list(_map_of(input_handle).entries.values())
    require(entries, "TensorMapStackKeys cannot be called on empty map.")
    shape = entries[0].key.shape
    keys = np.empty(check_allocation((len(entries), *shape), key_dtype), key_dtype.numpy_dtype)
    for row, entry in enumerate(in_time(entries, SLOW)):
        require(entry.key_dtype == key_dtype, "Key does not match requested dtype.")
        require(entry.key.shape == shape, "Keys must all have the same shape.")
        keys[row] = entry.key if entry.key.ndim else entry.key[()]
    return keys


@g.register_gradient("TensorMapLookup")
def lookup_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.TensorMapInsert(g.nodes.EmptyTensorMap(), op.inputs[1], grad), None


@g.register_gradient("TensorMapInsert")
def insert_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The gradient of the key belongs to the value; the rest belongs to the map."""
    _, key, value = op.inputs
    of_value, of_map = cond(
        g.nodes.TensorMapHasKey(grad, key),
        lambda: (
            g.nodes.TensorMapLookup(grad, key, value_dtype=value.dtype),
            g.nodes.TensorMapErase(grad, key, value_dtype=value.dtype),
        ),
        lambda: (g.zeros_like(value), g.nodes.Identity(grad)),
    )
    return of_map, None, of_value


@g.register_gradient("TensorMapErase")
def erase_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return grad, None
