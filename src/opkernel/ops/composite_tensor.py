"""Composite tensors in variants: CompositeTensorVariantFromComponents, CompositeTensorVariantToComponents.

A composite tensor is a value of several tensors, as a ragged tensor or an extension type. The variant holds its
tensors, and the text of its type.

Source: TensorFlow core/ops/composite_tensor_ops.cc, core/kernels/composite_tensor_ops.cc,
composite_tensor_variant.{h,cc}, core/protobuf/composite_tensor_variant.proto, python/ops/composite_tensor_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import scalar_shape, unknown_shape
from opkernel.ops.input_checks import require
from opkernel.ops.registration import register_kernel
from opkernel.proto import DecodeError, TensorInfo, TypeSpecProto, VariantTensorDataProto
from opkernel.types import (
    DataType,
    OpaqueVariant,
    Variant,
    object_scalar,
    register_variant_decoder,
    tensor_from_proto,
    tensor_to_proto,
)

__all__ = ["CompositeTensorVariant"]

_TYPE_NAME = "CompositeTensorVariant"
_KINDS = TypeSpecProto.DESCRIPTOR.enum_types_by_name["TypeSpecClass"].values_by_number


class CompositeTensorVariant(Variant):
    """The tensors of a composite tensor.

    Args:
        metadata: The serialized CompositeTensorVariantMetadata.
        components: The tensors.
        dtypes: The type of each.

    Attributes:
        spec_class: The name of the kind of its type, as `RAGGED_TENSOR_SPEC`.

    Raises:
        InvalidArgumentError: the metadata cannot be parsed.
    """

    type_name = _TYPE_NAME
    __slots__ = ("_metadata", "components", "dtypes", "spec_class")

    def __init__(
        self, metadata: bytes, components: Iterable[Any], dtypes: Sequence[DataType]
    ) -> None:
        self.spec_class = _spec_class(metadata)
        self._metadata = metadata
        self.components = tuple(components)
        self.dtypes = tuple(dtypes)

    def __str__(self) -> str:
        names = ", ".join(dtype.string for dtype in self.dtypes)
        return f"<CompositeTensorVariant type={self.spec_class}, components=[{names}]>"

    def with_tensors(self, change: Callable[[Any], Any]) -> CompositeTensorVariant:
        """The value with a function applied to each tensor."""
        return CompositeTensorVariant(self._metadata, map(change, self.components), self.dtypes)

    def to_proto(self) -> VariantTensorDataProto:
        """The value as it stands in a file."""
        pairs = zip(self.components, self.dtypes, strict=True)
        tensors = [tensor_to_proto(tensor, dtype) for tensor, dtype in pairs]
        return VariantTensorDataProto(
            type_name=_TYPE_NAME, metadata=self._metadata, tensors=tensors
        )

    @classmethod
    def from_proto(cls, proto: VariantTensorDataProto) -> CompositeTensorVariant:
        """The value that stands in a file."""
        tensors = proto.tensors
        dtypes = [DataType(tensor.dtype) for tensor in tensors]
        return cls(proto.metadata, map(tensor_from_proto, tensors), dtypes)


register_variant_decoder(_TYPE_NAME, CompositeTensorVariant.from_proto)


def _spec_class(metadata: bytes) -> str:
    """The name of the kind of type that metadata tell of."""
    try:  # its field 1 is that of a CompositeTensorVariantMetadata, which has no other
        spec = TensorInfo.CompositeTensor.FromString(metadata).type_spec
    except DecodeError:
        raise InvalidArgumentError("Error parsing metadata") from None
    number = spec.type_spec_class
    return _KINDS[number].name if number in _KINDS else str(number)


def _bytes(metadata: str) -> bytes:
    return metadata.encode("utf-8", "surrogateescape")


COMPOSITE_TENSOR_VARIANT_FROM_COMPONENTS = register_op(
    "CompositeTensorVariantFromComponents(components: Tcomponents) -> encoded: variant",
    attrs=["metadata: string", "Tcomponents: list(type) >= 0"],
    shape_fn=scalar_shape,
    doc="The tensors of a composite tensor as one variant; `metadata` tells its type.",
)
COMPOSITE_TENSOR_VARIANT_TO_COMPONENTS = register_op(
    "CompositeTensorVariantToComponents(encoded: variant) -> components: Tcomponents",
    attrs=["metadata: string", "Tcomponents: list(type) >= 0"],
    shape_fn=unknown_shape,
    doc="The tensors of the composite tensor in a variant.",
)


@register_kernel(COMPOSITE_TENSOR_VARIANT_FROM_COMPONENTS, kind="view", factory=True)
def from_components(*, metadata: str, Tcomponents: list[DataType]) -> Callable[[list[Any]], Any]:
    text = _bytes(metadata)
    _spec_class(text)
    return lambda components: object_scalar(CompositeTensorVariant(text, components, Tcomponents))


@register_kernel(COMPOSITE_TENSOR_VARIANT_TO_COMPONENTS, kind="view", factory=True)
def to_components(*, metadata: str, Tcomponents: list[DataType]) -> Callable[[Any], list[Any]]:
    expected = _spec_class(_bytes(metadata))

    def kernel(encoded: Any) -> list[Any]:
        value = _composite_of(encoded)
        if value.spec_class != expected:
            raise InvalidArgumentError(
                f"Expected a {expected} (based on `type_spec`), but `encoded` contains a "
                f"{value.spec_class}"
            )
        if len(value.components) != len(Tcomponents):
            raise InvalidArgumentError(
                f"Encoded value has {len(value.components)} tensor components; expected "
                f"{len(Tcomponents)} components based on type_spec"
            )
        for i, (actual, dtype) in enumerate(zip(value.dtypes, Tcomponents, strict=True)):
            if actual != dtype:
                raise InvalidArgumentError(
                    f"Tensor component {i} had dtype {actual.name}; expected dtype {dtype.name}"
                )
        return list(value.components)

    return kernel


def _composite_of(encoded: Any) -> CompositeTensorVariant:
    """The first element of a tensor; it may have been read before this module was loaded."""
    require(encoded.size, "Input `encoded` must not be an empty variant tensor")
    value = encoded.flat[0]
    if isinstance(value, OpaqueVariant) and value.type_name == _TYPE_NAME:
        return CompositeTensorVariant.from_proto(value.to_proto())
    if not isinstance(value, CompositeTensorVariant):
        raise InvalidArgumentError(
            f"The input `encoded` is not a valid CompositeTensorVariant tensor, got '{value}'"
        )
    return value


@g.register_gradient("CompositeTensorVariantFromComponents")
def from_components_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    found = g.nodes.CompositeTensorVariantToComponents(
        grad, **g.attrs_of(op, "metadata", "Tcomponents")
    )
    return found if isinstance(found, list | tuple) else [found]


@g.register_gradient("CompositeTensorVariantToComponents")
def to_components_gradient(op: g.Operation, *grads: g.Tensor | None) -> g.Gradients:
    """A component without a gradient takes its own place, as in TensorFlow."""
    parts = [out if grad is None else grad for out, grad in zip(op.outputs, grads, strict=True)]
    return g.nodes.CompositeTensorVariantFromComponents(parts, **g.attrs_of(op, "metadata"))
