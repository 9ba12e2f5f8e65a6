"""TensorList: the value that the handle of a tensor list holds, in files, too; and the persistent list of its elements.

A persistent list is never changed, and cheap to copy with one element changed. A loop of n turns that sets one element
a turn would take n * n steps if each new list were a copy. The elements stand in chunks instead: a changed list shares
with the old one all chunks but one, so that a change copies one chunk and the list of chunks.

Sums and zeros of the elements of lists are what gradients of lists are added up with. In files the metadata are
varints, and then the message of the element shape.

Source: TensorFlow core/kernels/tensor_list.{h,cc} (TensorList::Encode and Decode), tensor_list_util.cc,
core/util/tensor_ops_util.h.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.ops.input_checks import require, require_scalar
from opkernel.ops.parsing.wire import WireError, read_varint
from opkernel.ops.registration import NUMBERS
from opkernel.proto import DecodeError, TensorShapeProto, VariantTensorDataProto
from opkernel.types import (
    Array,
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
from opkernel.types.varints import varint

_T = TypeVar("_T")
_BITS = 6
_CHUNK = 1 << _BITS
_IN_CHUNK = _CHUNK - 1


class PersistentList(Generic[_T]):
    """An immutable list; `replaced`, `appended` and `resized` return changed copies of it.

    Args:
        elements: The elements.

    Indices are not checked to lie in the list: they must.
    """

    __slots__ = ("_chunks", "_length")

    _chunks: list[list[_T]]
    """All but the last hold `_CHUNK` elements. A chunk is shared, and never changed."""

    def __init__(self, elements: Iterable[_T] = ()) -> None:
        flat = list(elements)
        self._length = len(flat)
        self._chunks = [flat[i : i + _CHUNK] for i in range(0, len(flat), _CHUNK)]

    @classmethod
    def filled(cls, length: int, element: _T) -> "PersistentList[_T]":
        """A list of `length` times `element`, which takes memory for one chunk of them."""
        whole, rest = divmod(length, _CHUNK)
        chunks = [[element] * _CHUNK] * whole
        return _of_chunks([*chunks, [element] * rest] if rest else chunks, length)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> _T:
        return self._chunks[index >> _BITS][index & _IN_CHUNK]

    def __iter__(self) -> Iterator[_T]:
        return chain.from_iterable(self._chunks)

    def replaced(self, index: int, element: _T) -> "PersistentList[_T]":
        """The list with another element at `index`."""
        chunks = self._chunks.copy()
        chunk = chunks[index >> _BITS].copy()
        chunk[index & _IN_CHUNK] = element
        chunks[index >> _BITS] = chunk
        return _of_chunks(chunks, self._length)

    def appended(self, element: _T) -> "PersistentList[_T]":
        """The list with one element more."""
        chunks = self._chunks.copy()
        if self._length & _IN_CHUNK:
            chunks[-1] = [*chunks[-1], element]
        else:
            chunks.append([element])
        return _of_chunks(chunks, self._length + 1)

    def mapped(self, function: Callable[[_T], _T]) -> "PersistentList[_T]":
        """The list of a function's results; a chunk that repeats is mapped once."""
        known = {id(chunk): chunk for chunk in self._chunks}
        made = {key: list(map(function, chunk)) for key, chunk in known.items()}
        return _of_chunks([made[id(chunk)] for chunk in self._chunks], self._length)

    def resized(self, length: int, fill: _T) -> "PersistentList[_T]":
        """The first `length` elements; those beyond the end are `fill`."""
        if length > self._length:
            return self._extended(length, fill)
        chunks = self._chunks[: -(-length // _CHUNK)]
        if length & _IN_CHUNK:
            chunks[-1] = chunks[-1][: length & _IN_CHUNK]
        return _of_chunks(chunks, length)

    def _extended(self, length: int, fill: _T) -> "PersistentList[_T]":
        chunks = self._chunks.copy()
        missing = -self._length & _IN_CHUNK
        if missing:
            chunks[-1] = chunks[-1] + [fill] * min(missing, length - self._length)
        start = len(chunks) << _BITS
        if start < length:
            chunks += PersistentList.filled(length - start, fill)._chunks
        return _of_chunks(chunks, length)


def _of_chunks(chunks: list[list[_T]], length: int) -> PersistentList[_T]:
    made: PersistentList[_T] = PersistentList.__new__(PersistentList)
    made._chunks = chunks
    made._length = length
    return made


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
    return objects([x + y for x, y in zip(a.flat, b.flat, strict=True)], a.shape)


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
    return objects([value.zeros_like() for value in element.flat], element.shape)


def objects(values: Sequence[Any], shape: tuple[int, ...]) -> Array:
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


def _metadata(content: bytes) -> tuple[list[int], DataType, int, PartialTensorShape]:
    """What a file says of a list: where it has unset elements, their type, its greatest length, their shape.

    Raises:
        InvalidArgumentError: it is malformed.
    """
    numbers, end = [], len(content)
    try:
        count, position = read_varint(content, 0, end)
        require(count <= end, f"A tensor list of {end} bytes lists {count} indices")
        for _ in range(count + 2):
            number, position = read_varint(content, position, end)
            numbers.append(number)
        shape = TensorShapeProto.FromString(content[position:])
    except WireError:
        raise InvalidArgumentError("The metadata of a tensor list ends within a number") from None
    except DecodeError as error:
        raise InvalidArgumentError(f"A tensor list's shape is malformed: {error}") from None
    *unset, dtype, maximum = numbers
    signed = (maximum + 2**31) % 2**32 - 2**31
    return unset, DataType(dtype), signed, PartialTensorShape.from_proto(shape)


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

    type_name = _TYPE_NAME
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
        numbers = [len(unset), *unset, dtype, self.max_num_elements % 2**64]
        shape = self.element_shape.to_proto().SerializeToString()
        return VariantTensorDataProto(
            type_name=_TYPE_NAME,
            metadata=b"".join(map(varint, numbers)) + shape,
            tensors=[tensor_to_proto(e, dtype) for e in self.elements if e is not None],
        )

    @classmethod
    def from_proto(cls, proto: VariantTensorDataProto) -> "TensorList":
        """The list that stands in a file.

        Raises:
            InvalidArgumentError: it is malformed.
        """
        unset, dtype, maximum, shape = _metadata(proto.metadata)
        length = len(proto.tensors) + len(unset)
        missing = set(unset)
        if len(missing) < len(unset) or max(unset, default=-1) >= length:
            raise InvalidArgumentError(
                f"A tensor list of {length} elements has wrong indices: {unset}"
            )
        if any(tensor.dtype != dtype for tensor in proto.tensors):
            raise InvalidArgumentError(
                f"A tensor list of {dtype.string} has elements of other types"
            )
        given = iter(proto.tensors)
        elements = [None if i in missing else tensor_from_proto(next(given)) for i in range(length)]
        return cls(dtype, shape, PersistentList(elements), maximum)


register_variant_decoder(_TYPE_NAME, TensorList.from_proto)


def handle_of(value: TensorList) -> Array:
    """The tensor of rank 0 that holds a list."""
    return object_scalar(value)


def list_of(handle: Any, element_dtype: DataType | None = None) -> TensorList:
    """The list that a handle holds, of elements of a type if one is given.

    Raises:
        InvalidArgumentError: it is no scalar, or holds something else.
    """
    require_scalar(handle, "Input list must be a scalar saw: {}")
    found = as_list(handle.item(), "Input handle is not a list.")
    if element_dtype is not None:
        found.check_dtype(element_dtype)
    return found


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
