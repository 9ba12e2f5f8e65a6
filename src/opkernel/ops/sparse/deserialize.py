"""DeserializeSparse and DeserializeManySparse: sparse tensors out of the strings or variants of SerializeSparse.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/deserialize_sparse_string_op.cc, deserialize_sparse_variant_op.cc.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.serialize import (
    FORMS,
    PARTS,
    SparseParts,
    TensorVariant,
    check_parts_of,
    stacked,
)
from opkernel.proto import DecodeError, TensorProto
from opkernel.types import DataType, OpaqueVariant, TensorShape, tensor_from_proto

_DESERIALIZED = (
    "The sparse tensor of all serialized ones, with the dimensions of the input before theirs."
)
DESERIALIZE_SPARSE = register_op(
    f"DeserializeSparse(serialized_sparse: Tserialized) -> {PARTS.format('dtype')}",
    attrs=["dtype: type", "Tserialized: {string, variant} = DT_STRING"],
    shape_fn=shape_rule("[..., 3] -> [?, ?], [?], [?]"),
    doc=_DESERIALIZED,
)
DESERIALIZE_MANY_SPARSE = register_op(
    f"DeserializeManySparse(serialized_sparse: string) -> {PARTS.format('dtype')}",
    attrs=["dtype: type"],
    shape_fn=shape_rule("[?, 3] -> [?, ?], [?], [?]"),
    doc=_DESERIALIZED,
)


Read = Callable[[Any, tuple[int, ...], DataType], SparseParts | None]
"""Reads strings, [n, 3], into one sparse tensor; None where it leaves that to the reader of messages."""


def _deserialized(read: Read, serialized_sparse: Any, *, dtype: DataType) -> tuple[Any, Any, Any]:
    shape = serialized_sparse.shape
    require(shape, "Serialized sparse should have non-zero rank []")
    if shape[-1] != 3:
        raise InvalidArgumentError(
            f"Serialized sparse should have 3 as the last dimension {TensorShape(shape)}"
        )
    if not math.prod(shape):
        raise InvalidArgumentError(
            "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension "
            f"{TensorShape(shape)}"
        )
    found = read(serialized_sparse.reshape(-1, 3), shape[:-1], dtype) if shape[:-1] else None
    if found is not None:
        return found
    tensors = []
    for number, row in enumerate(in_time(serialized_sparse.reshape(-1, 3), SLOW)):
        (indices, _), (values, of_type), (sizes, _) = map(_tensor_of, row)
        parts = SparseParts(indices, values, sizes)
        check_parts_of(parts, of_type, dtype, number)
        tensors.append(parts)
    return tensors[0] if len(shape) == 1 else stacked(tensors, shape[:-1], dtype)


def register_deserialize(
    read: Read, forms: Sequence[DataType], registry: KernelRegistry | None = None
) -> None:
    """Register the kernels of DeserializeSparse and DeserializeManySparse.

    Args:
        read: Reads what the op takes.
        forms: The types that DeserializeSparse takes: DT_STRING, DT_VARIANT.
        registry: The registry of a provider.
    """

    def deserialize_sparse(serialized_sparse: Any, *, dtype: DataType) -> tuple[Any, Any, Any]:
        return _deserialized(read, serialized_sparse, dtype=dtype)

    types = {"Tserialized": forms}
    register_kernel(DESERIALIZE_SPARSE, types=types, registry=registry)(deserialize_sparse)
    register_kernel(DESERIALIZE_MANY_SPARSE, registry=registry)(deserialize_sparse)


def _tensor_of(element: Any) -> tuple[Any, DataType]:
    """The tensor of a string or variant, and its type."""
    if isinstance(element, OpaqueVariant):
        raise InvalidArgumentError(
            "Serialized sparse should hold tensors, but holds other variants"
        )
    if isinstance(element, TensorVariant):
        return element.tensor, element.dtype
    if not isinstance(element, bytes):
        raise InvalidArgumentError(f"Serialized sparse should hold tensors, but holds {element!r}")
    try:
        proto = TensorProto.FromString(element)
    except DecodeError:
        raise InvalidArgumentError("Could not parse serialized proto") from None
    return tensor_from_proto(proto), DataType(proto.dtype)


register_deserialize(lambda *_: None, FORMS)
