"""TensorList: the value that the handle of a tensor list holds.

Sums and zeros of the elements of lists, which gradients of lists are added up with.

The metadata of a tensor list in files: varints, and then the message of the element shape.

Source: TensorFlow core/kernels/tensor_list.{h,cc}, tensor_list_util.cc, core/kernels/tensor_list_util.cc,
core/util/tensor_ops_util.h, TensorList::Encode and Decode in TensorFlow core/kernels/tensor_list.cc.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.kernel_types import NUMBERS
from opkernel.ops.parsing.wire import write_varint
from opkernel.ops.tensor_list.persistent_list import PersistentList
from opkernel.proto import DecodeError, TensorShapeProto, VariantTensorDataProto
from opkernel.types import (
    DataType,
    OpaqueVariant,
    PartialTensorShape,
    TensorShape,
    Variant,
    object_scalar,
    register_variant_decoder,
    tensor_from_proto,
    tensor_to_proto,
)

_Element: TypeAlias = Any | None
"""A tensor, or None where none was set."""

_ADDABLE = frozenset({*NUMBERS, DataType.DT_VARIANT})
_WITHOUT_ZERO = frozenset({DataType.DT_STRING, DataType.DT_RESOURCE})


def sum_of_elements(a: _Element, b: _Element, dtype: DataType) -> _Element:
    """The sum of two elements; where one was not set, the other.

    Raises:
        InvalidArgumentError: they differ in shape, or there is no sum of that type.
    """
    if a is None or b is None:
        return b if a is None else a
    if a.shape != b.shape:
        raise InvalidArgumentError(
            "Trying to add two tensors with incompatible element shapes. One is "
            f"{TensorShape(a.shape)} and the other is {TensorShape(b.shape)}"
        )
    if dtype not in _ADDABLE:
        raise InvalidArgumentError(f"Trying to add unsupported dtype {dtype.string}")
    if dtype is not DataType.DT_VARIANT:
        return a + b
    return _objects([x + y for x, y in zip(a.flat, b.flat, strict=True)], a.shape)


def zeros_like_element(element: _Element, dtype: DataType) -> _Element:
    """Zeros in the shape of an element; None where none was set.

    Raises:
        InvalidArgumentError: the type has no zero.
    """
    if element is None:
        return None
    if dtype in _WITHOUT_ZERO:
        raise InvalidArgumentError(
            f"Trying to compute zeros_like for unsupported dtype {dtype.string}"
        )
    if dtype is not DataType.DT_VARIANT:
        return np.zeros_like(element)
    return _objects([value.zeros_like() for value in element.flat], element.shape)


def _objects(values: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


_MAX_VARINT_BITS = 64


class ListMetadata(NamedTuple):
    """The data about a list in a file, beside its tensors."""

    unset: list[int]
    """Where the list has elements that were not set yet."""
    element_dtype: DataType
    max_num_elements: int
    element_shape: PartialTensorShape


def encode_metadata(metadata: ListMetadata) -> bytes:
    """The bytes of the metadata."""
    numbers = [
        len(metadata.unset),
        *metadata.unset,
        metadata.element_dtype,
        metadata.max_num_elements % 2**_MAX_VARINT_BITS,
    ]
    shape = metadata.element_shape.to_proto().SerializeToString()
    return b"".join(map(write_varint, numbers)) + shape


def decode_metadata(content: bytes) -> ListMetadata:
    """The metadata that the bytes hold.

    Raises:
        InvalidArgumentError: they are malformed.
    """
    count, position = _read_varint(content, 0)
    if count > len(content):
        raise InvalidArgumentError(f"A tensor list of {len(content)} bytes lists {count} indices")
    unset = []
    for _ in range(count):
        index, position = _read_varint(content, position)
        unset.append(index)
    dtype, position = _read_varint(content, position)
    maximum, position = _read_varint(content, position)
    try:
        shape = TensorShapeProto.FromString(content[position:])
    except DecodeError as error:
        raise InvalidArgumentError(f"A tensor list's shape is malformed: {error}") from None
    low_bits = maximum % 2**32
    signed = low_bits - 2**32 if low_bits >= 2**31 else low_bits
    return ListMetadata(unset, DataType(dtype), signed, PartialTensorShape.from_proto(shape))


def _read_varint(content: bytes, position: int) -> tuple[int, int]:
    """The varint at `position`, and its end."""
    value = 0
    for shift in range(0, _MAX_VARINT_BITS, 7):
        if position >= len(content):
            break
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise InvalidArgumentError("The metadata of a tensor list ends within a number")


Elements: TypeAlias = PersistentList[Any]
"""Tensors; None where none was set."""

_TYPE_NAME = "tensorflow::TensorList"

_OF_PLACE = 16
"""The bytes that an element takes in lists of Python, beside its own."""


class TensorList(Variant):
    """A list of tensors of one type, which is never changed.

    Attributes:
        element_dtype: The type of the tensors.
        element_shape: The common part of their shapes.
        elements: The tensors; None where none was set yet.
        max_num_elements: How long TensorListPushBack may make it; -1 where there is no limit.
    """

    __slots__ = ("element_dtype", "element_shape", "elements", "max_num_elements")

    def __init__(
        self,
        element_dtype: DataType,
        element_shape: PartialTensorShape,
        elements: Elements,
        max_num_elements: int = -1,
    ) -> None:
        self.element_dtype = element_dtype
        self.element_shape = element_shape
        self.elements = elements
        self.max_num_elements = max_num_elements

    def __len__(self) -> int:
        return len(self.elements)

    @property
    def type_name(self) -> str:
        """The name of the type in files."""
        return _TYPE_NAME

    def __str__(self) -> str:
        return "TensorList"

    def __repr__(self) -> str:
        return f"TensorList({self.element_dtype.string}{self.element_shape}, {len(self)} elements)"

    def as_tensors(self) -> list[Any]:
        """The elements.

        Raises:
            ResourceExhaustedError: there is no memory for a list of them.
        """
        check_bytes(_OF_PLACE * len(self), "elements of a list")
        return list(self.elements)

    def with_elements(self, elements: Elements) -> "TensorList":
        """The list with other elements."""
        return TensorList(self.element_dtype, self.element_shape, elements, self.max_num_elements)

    def with_tensors(self, change: Callable[[Any], Any]) -> "TensorList":
        """The list with a function applied to each tensor."""
        return self.with_elements(self.elements.mapped(lambda e: None if e is None else change(e)))

    def accepts_shape(self, shape: tuple[int, ...]) -> bool:
        """Whether a tensor of this shape may be an element."""
        dims = self.element_shape.dims
        if dims is None or dims == shape:
            return True
        if len(dims) != len(shape):
            return False
        for want, got in zip(dims, shape, strict=True):  # no generator: each turn of a loop asks
            if want is not None and want != got:
                return False
        return True

    def check_dtype(self, op_dtype: DataType) -> None:
        """Raise InvalidArgumentError unless the elements are of the type that the op works on."""
        if op_dtype != self.element_dtype:
            raise InvalidArgumentError(
                f"Invalid data types; op elements {op_dtype.string} but list elements "
                f"{self.element_dtype.string}"
            )

    def zeros_like(self) -> "TensorList":
        """The list with zeros for its elements; ZerosLike.

        Raises:
            InvalidArgumentError: the type of the elements has no zero.
        """
        dtype = self.element_dtype
        zeros = PersistentList(
            [zeros_like_element(element, dtype) for element in in_time(self.as_tensors())]
        )
        return TensorList(dtype, self.element_shape, zeros)

    def __add__(self, other: object) -> "TensorList":
        """The list of the sums of the elements; AddN.

        Raises:
            InvalidArgumentError: the lists differ in type, shape or length.
        """
        if not isinstance(other, TensorList):
            return NotImplemented
        self._check_addable(other)
        pairs = zip(in_time(self.as_tensors()), other.elements, strict=True)
        return TensorList(
            self.element_dtype,
            self.element_shape.merge_with(other.element_shape),
            PersistentList([sum_of_elements(a, b, self.element_dtype) for a, b in pairs]),
        )

    def _check_addable(self, other: "TensorList") -> None:
        if self.element_dtype != other.element_dtype:
            difference = "of different dtypes"
            mine, theirs = self.element_dtype.string, other.element_dtype.string
        elif not self.element_shape.is_compatible_with(other.element_shape):
            difference = "with incompatible element shapes"
            mine, theirs = str(self.element_shape), str(other.element_shape)
        elif len(self) != len(other):
            difference = "with different lengths"
            mine, theirs = str(len(self)), str(len(other))
        else:
            return
        raise InvalidArgumentError(
            f"Trying to add two lists of tensors {difference}. One is {mine} and the other is "
            f"{theirs}"
        )

    def to_proto(self) -> VariantTensorDataProto:
        """The list as it stands in a file."""
        unset = [i for i, element in enumerate(self.elements) if element is None]
        dtype = self.element_dtype
        metadata = ListMetadata(unset, dtype, self.max_num_elements, self.element_shape)
        return VariantTensorDataProto(
            type_name=_TYPE_NAME,
            metadata=encode_metadata(metadata),
            tensors=[tensor_to_proto(e, dtype) for e in self.elements if e is not None],
        )

    @classmethod
    def from_proto(cls, proto: VariantTensorDataProto) -> "TensorList":
        """The list that stands in a file.

        Raises:
            InvalidArgumentError: it is malformed.
        """
        metadata = decode_metadata(proto.metadata)
        unset = set(metadata.unset)
        length = len(proto.tensors) + len(metadata.unset)
        if len(unset) < len(metadata.unset) or max(unset, default=-1) >= length:
            raise InvalidArgumentError(
                f"A tensor list of {length} elements has wrong indices: {metadata.unset}"
            )
        if any(tensor.dtype != metadata.element_dtype for tensor in proto.tensors):
            raise InvalidArgumentError(
                f"A tensor list of {metadata.element_dtype.string} has elements of other types"
            )
        tensors = iter(proto.tensors)
        elements = [None if i in unset else tensor_from_proto(next(tensors)) for i in range(length)]
        return cls(
            metadata.element_dtype,
            metadata.element_shape,
            PersistentList(elements),
            metadata.max_num_elements,
        )


register_variant_decoder(_TYPE_NAME, TensorList.from_proto)


def handle_of(value: TensorList) -> np.ndarray[Any, Any]:
    """The tensor of rank 0 that holds a list."""
    return object_scalar(value)


def list_of(handle: Any) -> TensorList:
    """The list that a handle holds.

    Raises:
        InvalidArgumentError: it is no scalar, or holds something else.
    """
    require_scalar(handle, "Input list must be a scalar saw: {}")
    return as_list(handle.item(), "Input handle is not a list.")


def as_list(value: object, complaint: str) -> TensorList:
    """A value that must be a list; it may have been read before this module was loaded.

    Raises:
        InvalidArgumentError: it is none, with the complaint for a message.
    """
    if type(value) is TensorList:
        return value
    if isinstance(value, OpaqueVariant) and value.type_name == _TYPE_NAME:
        return TensorList.from_proto(value.to_proto())
    raise InvalidArgumentError(f"{complaint} Saw: '{value}'")
