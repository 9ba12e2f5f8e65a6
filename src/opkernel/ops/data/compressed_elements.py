"""CompressElement and UncompressElement: the tensors of an element as one compressed value in a variant.

Source: TensorFlow core/data/compression_utils.cc, core/kernels/data/experimental/compression_ops.cc.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np

from opkernel.checkpoint.snappy import compressed, decompressed
from opkernel.device.made_bytes import making_bytes
from opkernel.device.string_tensors import string_tensor
from opkernel.errors import (
    DataLossError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
)
from opkernel.kernel import OpKernelContext, check_allocation
from opkernel.ops.data.dataset_op import declare
from opkernel.ops.data.iterators import OfElements
from opkernel.ops.registration import register_kernel
from opkernel.proto import CompressedElement, DecodeError, TensorProto, VariantTensorDataProto
from opkernel.types import (
    DataType,
    OpaqueVariant,
    TensorShape,
    Variant,
    object_scalar,
    register_variant_decoder,
    tensor_from_proto,
    tensor_to_proto,
)

declare("CompressElement", doc="The components of an element, compressed into one value.")
declare("UncompressElement", doc="The components of an element that CompressElement made.")

_TYPE_NAME = CompressedElement.DESCRIPTOR.full_name
_MOST_BYTES = (1 << 32) - 1
_TIMES = 3
"""So many times the bytes of an element are there while it is compressed."""


class CompressedVariant(Variant):
    """A compressed element.

    Attributes:
        element: The element as TensorFlow writes it.
    """

    type_name = _TYPE_NAME
    __slots__ = ("element",)

    def __init__(self, element: Any) -> None:
        self.element = element

    def to_proto(self) -> VariantTensorDataProto:
        """The element as it stands in a file."""
        return VariantTensorDataProto(
            type_name=_TYPE_NAME, metadata=self.element.SerializeToString()
        )

    @classmethod
    def from_proto(cls, proto: VariantTensorDataProto) -> CompressedVariant:
        """The element that stands in a file.

        Raises:
            InvalidArgumentError: it is malformed.
        """
        try:
            return cls(CompressedElement.FromString(proto.metadata))
        except DecodeError as error:
            raise InvalidArgumentError("A compressed element is malformed") from error


register_variant_decoder(_TYPE_NAME, CompressedVariant.from_proto)


@register_kernel("CompressElement")
def compress_element(components: Any, *, input_types: list[DataType]) -> Any:
    with making_bytes("a compressed element", _TIMES * sum(one.nbytes for one in components)):
        element, pieces = CompressedElement(), list[bytes]()
        for tensor, dtype in zip(components, input_types, strict=True):
            parts = _parts(np.asarray(tensor), dtype)
            element.component_metadata.add(
                dtype=dtype,
                tensor_shape=TensorShape(tensor.shape).to_proto(),
                uncompressed_bytes=[len(part) for part in parts],
            )
            pieces += parts
        data = b"".join(pieces)
        if len(data) > _MOST_BYTES:
            raise OutOfRangeError(f"An element of {len(data)} bytes is too large to be compressed")
        element.data = compressed(data)
    return object_scalar(CompressedVariant(element))


def _parts(tensor: Any, dtype: DataType) -> list[bytes]:
    """The bytes of a tensor: of strings, those of each."""
    if dtype is DataType.DT_STRING:
        strings: list[bytes] = tensor.reshape(-1).tolist()
        return strings
    if dtype.can_memcpy:
        return [tensor.tobytes()]
    return [tensor_to_proto(tensor, dtype).SerializeToString()]


@register_kernel("UncompressElement")
class UncompressElementOp(OfElements):
    """Gives the components of a compressed element."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Decompress.

        Raises:
            InvalidArgumentError: the input holds something else.
            InternalError: the element is damaged.
            FailedPreconditionError: it has other components than the node says.
        """
        element = _element_in(ctx.input(0))
        found = [one.dtype for one in element.component_metadata]
        if len(found) != len(self.dtypes):
            raise FailedPreconditionError(
                f"Expected {len(self.dtypes)} outputs from uncompress, but got {len(found)}"
            )
        for wanted, given in zip(self.dtypes, found, strict=True):
            if wanted != given:
                raise FailedPreconditionError(
                    f"Expected a tensor of type {wanted.string} but got one of type number {given}"
                )
        self.give(ctx, tuple(_components(element)))


def _element_in(tensor: Any) -> Any:
    if tensor.ndim:
        raise InvalidArgumentError(
            "UncompressElement requires its input to be a scalar, but encountered an input with "
            f"{tensor.ndim} dimensions."
        )
    value = tensor[()]
    if (
        isinstance(value, OpaqueVariant) and value.type_name == _TYPE_NAME
    ):  # read before this module
        value = CompressedVariant.from_proto(value.to_proto())
    if not isinstance(value, CompressedVariant):
        raise InvalidArgumentError("Input does not contain a compressed element.")
    return value.element


def _components(element: Any) -> list[Any]:
    if element.version:
        raise InternalError(f"Unsupported compressed element version: {element.version}")
    try:
        data = decompressed(element.data)
    except (DataLossError, IndexError) as error:
        raise InternalError(f"Failed to perform snappy decompression: {error}") from error
    sizes = [sum(one.uncompressed_bytes) for one in element.component_metadata]
    if sum(sizes) != len(data):
        raise InternalError(
            f"Uncompressed size mismatch. Snappy expects {len(data)} whereas the tensor metadata "
            f"suggests {sum(sizes)}"
        )
    places = pairwise(accumulate(sizes, initial=0))
    try:
        return [
            _tensor(one, data[start:stop])
            for one, (start, stop) in zip(element.component_metadata, places, strict=True)
        ]
    except ResourceExhaustedError:
        raise
    except OpError as error:
        raise InternalError(f"Could not parse Tensor: {error.message}") from error


def _tensor(metadata: Any, data: bytes) -> Any:
    """A component.

    Raises:
        OpError: its bytes do not make a tensor of its type and shape.
    """
    dtype = DataType(metadata.dtype)
    if dtype is not DataType.DT_STRING and not dtype.can_memcpy:
        try:
            return np.asarray(tensor_from_proto(TensorProto.FromString(data)))
        except DecodeError as error:
            raise InvalidArgumentError("Could not parse TensorProto") from error
    shape = check_allocation(TensorShape.from_proto(metadata.tensor_shape), dtype)
    sizes = metadata.uncompressed_bytes
    is_text = dtype is DataType.DT_STRING
    if len(sizes) != prod(shape) if is_text else len(data) != prod(shape) * dtype.size:
        raise InvalidArgumentError(f"A component of shape {[*shape]} has {len(data)} bytes")
    if is_text:
        places = pairwise(accumulate(sizes, initial=0))
        return string_tensor(shape, [data[start:stop] for start, stop in places])
    return np.frombuffer(data, dtype.numpy_dtype).reshape(shape).copy()
