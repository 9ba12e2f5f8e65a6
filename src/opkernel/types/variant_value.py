"""What a variant tensor holds: values of types that the ops define themselves.

A module that defines such a type subclasses `Variant` and, so that files with values of it can be
read, registers a decoder under its type name. Values of other types are kept as they stand in the
file (`OpaqueVariant`), and are written back unchanged.

Source: TensorFlow core/framework/variant.h, variant_op_registry.h.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from opkernel.proto import VariantTensorDataProto

__all__ = ["OpaqueVariant", "Variant", "register_variant_decoder", "variant_from_proto"]


class Variant(ABC):
    """An element of a tensor of type DT_VARIANT."""

    __slots__ = ()

    @abstractmethod
    def to_proto(self) -> VariantTensorDataProto:
        """The value as it stands in a file; its `type_name` finds the decoder."""


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


_decoders: dict[str, Callable[[VariantTensorDataProto], Variant]] = {}


def register_variant_decoder(
    type_name: str, decode: Callable[[VariantTensorDataProto], Variant]
) -> None:
    """Let values of `type_name` in files be read by `decode`, which raises only OpErrors."""
    _decoders[type_name] = decode


def variant_from_proto(proto: VariantTensorDataProto) -> Variant:
    """The value of a VariantTensorDataProto (DecodeUnaryVariant); opaque without a decoder."""
    return _decoders.get(proto.type_name, OpaqueVariant)(proto)
