"""The content of a variant tensor: values of types that the ops define themselves.

A module that defines such a type subclasses `Variant` and, so that files with values of it can be
read, registers a decoder under its type name. Values of other types are kept as they stand in the
file (`OpaqueVariant`), and are written back unchanged.

Source: TensorFlow core/framework/variant.h, variant_op_registry.cc.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.proto import VariantTensorDataProto


class Variant(ABC):
    """An element of a tensor of type DT_VARIANT."""

    __slots__ = ()

    @abstractmethod
    def to_proto(self) -> VariantTensorDataProto:
        """The value as it stands in a file; its `type_name` finds the decoder."""

    def with_tensors(self, change: Callable[[Any], Any]) -> Variant:
        """The value with each of its tensors replaced by the result of a function.

        A type whose values have tensors overrides this; they may have memory of a step's feeds.
        """
        return self


class OpaqueVariant(Variant):
    """A variant value of a type without decoder: its wire form, compared by its bytes.

    The value without a type name is the empty variant.
    """

    __slots__ = ("_serialized", "type_name")

    def __init__(self, proto: VariantTensorDataProto | None = None) -> None:
        self.type_name = "" if proto is None else proto.type_name
        self._serialized = b"" if proto is None else proto.SerializeToString(deterministic=True)

    def to_proto(self) -> VariantTensorDataProto:
        """The value as it was read."""
        return VariantTensorDataProto.FromString(self._serialized)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpaqueVariant):
            return NotImplemented
        return self._serialized == other._serialized

    def __hash__(self) -> int:
        return hash(self._serialized)

    def __repr__(self) -> str:
        return f"OpaqueVariant(type_name={self.type_name!r})"


_NUMBERS = {name: np.dtype(code) for name, code in
          (("int", "<i4"), ("float", "<f4"), ("double", "<f8"), ("bool", "?"))}  # fmt: skip


class NumberVariant(Variant):
    """A number of one of C++'s types int, float, double and bool, in an array of one element."""

    __slots__ = ("_number", "type_name")

    def __init__(self, type_name: str, number: np.ndarray[Any, Any]) -> None:
        self.type_name = type_name
        self._number = number

    @classmethod
    def from_proto(cls, proto: VariantTensorDataProto) -> NumberVariant:
        """The number that the metadata holds.

        Raises:
            InvalidArgumentError: they are not as many bytes as a number has.
        """
        dtype = _NUMBERS[proto.type_name]
        if len(proto.metadata) != dtype.itemsize:
            raise InvalidArgumentError(
                f"A variant of type {proto.type_name} has {len(proto.metadata)} bytes, "
                f"not {dtype.itemsize}"
            )
        return cls(proto.type_name, np.frombuffer(proto.metadata, dtype))

    def to_proto(self) -> VariantTensorDataProto:
        """The number as bytes."""
        return VariantTensorDataProto(type_name=self.type_name, metadata=self._number.tobytes())

    def zeros_like(self) -> NumberVariant:
        """0 of the same type."""
        return NumberVariant(self.type_name, np.zeros_like(self._number))

    def __add__(self, other: object) -> NumberVariant:
        """The sum; integers wrap around, and the sum of two bools is whether one holds."""
        if not isinstance(other, NumberVariant) or other.type_name != self.type_name:
            return NotImplemented
        return NumberVariant(self.type_name, self._number + other._number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NumberVariant):
            return NotImplemented
        return self.to_proto() == other.to_proto()

    def __hash__(self) -> int:
        return hash((self.type_name, self._number.tobytes()))

    def __str__(self) -> str:
        number = self._number[0]
        return str(int(number)) if self.type_name in ("int", "bool") else f"{number:g}"

    def __repr__(self) -> str:
        return f"NumberVariant({self.type_name!r}, {self})"


_decoders: dict[str, Callable[[VariantTensorDataProto], Variant]] = dict.fromkeys(
    _NUMBERS, NumberVariant.from_proto
)


def register_variant_decoder(
    type_name: str, decode: Callable[[VariantTensorDataProto], Variant]
) -> None:
    """Let values of `type_name` in files be read by `decode`, which raises only OpErrors."""
    _decoders[type_name] = decode


def variant_from_proto(proto: VariantTensorDataProto) -> Variant:
    """The value of a VariantTensorDataProto (DecodeUnaryVariant); opaque without a decoder."""
    return _decoders.get(proto.type_name, OpaqueVariant)(proto)


def detached(tensor: Any) -> Any:
    """A tensor that outlives a step: a copy where it shows memory that the caller may write to.

    That is so where it is a view that is not to be written to, as feeds are. The tensors of variants
    are detached, too.
    """
    if tensor.dtype != object:
        return tensor if tensor.base is None or tensor.flags.writeable else tensor.copy()
    array = np.empty(tensor.shape, object)
    for index, value in np.ndenumerate(tensor):
        array[index] = value.with_tensors(detached) if isinstance(value, Variant) else value
    return array
