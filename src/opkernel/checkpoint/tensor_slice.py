"""TensorSlice: a part of a tensor, as checkpoints and `shape_and_slices` write it.

Source: TensorFlow core/framework/tensor_slice.cc, core/util/saved_tensor_slice_util.cc,
tsl/lib/strings/ordered_code.cc.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.proto import TensorSliceProto
from opkernel.records import dataclass
from opkernel.types import TensorShape

ALL = -1
"""The length of an extent that is the whole dimension; its start is 0."""

_MOST = 2**63 - 1
_INTEGER = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
_ESCAPED = {b"\0": b"\0\xff", b"\xff": b"\xff\0"}


@dataclass(frozen=True, slots=True)
class TensorSlice:
    """A part of a tensor: for each dimension where it starts and how long it is.

    Attributes:
        extents: Start and length of each dimension; length ALL is all of the dimension.
    """

    extents: tuple[tuple[int, int], ...]

    @staticmethod
    def whole(rank: int) -> TensorSlice:
        """All of a tensor."""
        return TensorSlice(((0, ALL),) * rank)

    @staticmethod
    def parse(text: str) -> TensorSlice:
        """The slice that a text such as `-:0,2` means.

        Raises:
            InvalidArgumentError: the text has another form, or a slice is empty.
        """
        return TensorSlice(tuple([_extent(part, text) for part in text.split(":") if part]))

    @staticmethod
    def from_proto(proto: TensorSliceProto) -> TensorSlice:
        """The slice of a TensorSliceProto; its numbers are not checked.

        Raises:
            InvalidArgumentError: an extent has a length or a start below 0.
        """
        extents = []
        for extent in proto.extent:
            length = extent.length if extent.HasField("length") else ALL
            if extent.start < 0 or (extent.HasField("length") and length < 0):
                raise InvalidArgumentError(f"A slice has extent {extent.start},{length}")
            extents.append((extent.start, length))
        return TensorSlice(tuple(extents))

    def to_proto(self) -> TensorSliceProto:
        """The slice as a TensorSliceProto."""
        proto = TensorSliceProto()
        for start, length in self.extents:
            extent = proto.extent.add()
            if length != ALL:
                extent.start, extent.length = start, length
        return proto

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.extents)

    @property
    def is_whole(self) -> bool:
        """Whether it is all of a tensor of any shape."""
        return all(length == ALL for _, length in self.extents)

    def shape_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of this slice of a tensor of a shape.

        Raises:
            InternalError: the slice has another rank, or reaches beyond the tensor.
        """
        if len(shape) != self.rank:
            raise InternalError(f"Mismatching ranks: shape = {TensorShape(shape)}, slice = {self}")
        for axis, ((start, length), size) in enumerate(zip(self.extents, shape, strict=True)):
            if length != ALL and start + length > size:
                raise InternalError(
                    f"Extent in dimension {axis} out of bounds: shape = {TensorShape(shape)}, "
                    f"slice = {self}"
                )
        lengths = [length for _, length in self.extents]
        return tuple([s if n == ALL else n for n, s in zip(lengths, shape, strict=True)])

    def check_holds(self, value_shape: Sequence[int], shape: Sequence[int]) -> None:
        """Raise InternalError unless a value has the shape of this slice of a tensor of a shape."""
        if tuple(value_shape) != self.shape_of(shape):
            raise InternalError(
                f"Slice {self} of shape {TensorShape(shape)} cannot hold {TensorShape(value_shape)}"
            )

    def index(self) -> tuple[slice, ...]:
        """The slice as an index of an array."""
        parts = [slice(None) if n == ALL else slice(start, start + n) for start, n in self.extents]
        return tuple(parts)

    def within(self, shape: Sequence[int]) -> TensorSlice:
        """The same slice of a tensor of a shape, with ALL spelt out."""
        pairs = zip(self.extents, shape, strict=True)
        extents = [(0, size) if extent[1] == ALL else extent for extent, size in pairs]
        return TensorSlice(tuple(extents))

    def __str__(self) -> str:
        parts = ["-" if length == ALL else f"{start},{length}" for start, length in self.extents]
        return ":".join(parts)


def parse_shape_and_slice(text: str) -> tuple[tuple[int, ...], TensorSlice, tuple[int, ...]]:
    """The shape of a tensor, a slice of it, and the shape of the slice: `3 4 -:0,2` means [3, 2] of [3, 4].

    Raises:
        InvalidArgumentError: the text has another form.
        InternalError: the slice does not fit the shape.
    """
    *sizes, slice_text = text.split(" ")
    if not sizes:
        raise InvalidArgumentError(
            f"Need least two elements in shape_and_slice specification: {text}"
        )
    tensor_slice = TensorSlice.parse(slice_text)
    shape = tuple([_size(size, text) for size in sizes])
    return shape, tensor_slice, tensor_slice.shape_of(shape)


def _size(size: str, text: str) -> int:
    if not _INTEGER.fullmatch(size) or abs(int(size)) > _MOST:
        raise InvalidArgumentError(f"Non numerical dimension in shape_and_slice: {text}")
    if int(size) < 0:
        raise InvalidArgumentError(f"Negative dimension in shape_and_slice: {text}")
    return int(size)


def _extent(part: str, text: str) -> tuple[int, int]:
    """Start and length of a slice in one dimension."""
    if part == "-":
        return 0, ALL
    numbers = [number for number in part.split(",") if number]
    is_pair = len(numbers) == 2 and all(map(_INTEGER.fullmatch, numbers))
    if not is_pair or max(map(abs, map(int, numbers))) > _MOST:
        raise InvalidArgumentError(
            f"Expected a pair of numbers or '-' but got '{part}': string = {text}"
        )
    start, length = map(int, numbers)
    if start < 0 or length <= 0:
        raise InvalidArgumentError(
            "Expected non-negative start and positive length but got "
            f"start = {start}, length = {length}: string = {text}"
        )
    return start, length


def slice_key(name: str, tensor_slice: TensorSlice) -> bytes:
    """The key of the data of a slice of a tensor in tables; keys are in the order of the slices."""
    escaped = re.sub(rb"[\0\xff]", lambda match: _ESCAPED[match[0]], name.encode())
    parts = [_number(0), escaped + b"\0\1", _number(tensor_slice.rank)]
    for start, length in tensor_slice.extents:
        parts += [_signed(start), _signed(length)]
    return b"".join(parts)


def _number(value: int) -> bytes:
    """A number >= 0: how many bytes it has, and these, the highest first."""
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(data)]) + data


def _signed(value: int) -> bytes:
    """A number of any sign: the first bits tell how many bytes it has."""
    magnitude = ~value if value < 0 else value
    length = magnitude.bit_length() // 7 + 1
    if length == 1:
        return bytes([(value & 0xFF) ^ 0x80])
    header = ((0xFFFF << (16 - length)) & 0xFFFF).to_bytes(2, "big")
    data = bytearray(value.to_bytes(10, "big", signed=True)[-length:])
    data[0] ^= header[0]
    data[1] ^= header[1]
    return bytes(data)
