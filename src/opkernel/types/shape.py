"""Shapes: fully defined (`TensorShape`) and with unknown sizes or rank (`PartialTensorShape`).

Both are checked when they are made, so that a shape which exists is one that a tensor may have:
no negative sizes, at most 254 dimensions, at most 2**63 - 1 elements. As in TensorFlow the
elements are counted from the first dimension on: [0, 2**62, 4] is a shape, [2**62, 4, 0] is none,
and nothing is counted beyond an unknown size.
"""

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Self, SupportsIndex, overload

from opkernel.errors import InvalidArgumentError
from opkernel.messages import short_repr
from opkernel.proto import TensorShapeProto

MAX_DIMENSIONS = 254
"""The most dimensions that a shape may have."""

_INT64_MAX = 2**63 - 1
_UNKNOWN_RANK_TEXTS = ("<unknown>", "?")


class TensorShape(tuple[int, ...]):
    """The shape of a tensor: a tuple of sizes that are known to be valid.

    It is equal to the plain tuple of its sizes, and NumPy takes it as a shape.

    Args:
        sizes: The size of each dimension.

    Raises:
        InvalidArgumentError: a size is negative, or the shape has too many dimensions or elements.
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[SupportsIndex] = ()) -> Self:  # noqa: D102  # the class says it
        try:
            self = super().__new__(cls, (operator.index(size) for size in sizes))
        except TypeError as error:
            raise _no_shape(sizes, error) from None
        for size in self:
            if size < 0:
                raise InvalidArgumentError(
                    f"Expected a non-negative size, got {size} in shape {_text(self)}"
                )
        _check_extent(self)
        return self

    @classmethod
    def from_proto(cls, proto: TensorShapeProto) -> "TensorShape":
        """The shape of a TensorShapeProto.

        As in TensorFlow, `unknown_rank` is not looked at: such a proto has no dimensions, and is
        read as the shape of a scalar.

        Raises:
            InvalidArgumentError: as the constructor; an unknown size counts as a negative one.
        """
        sizes = [dim.size for dim in proto.dim]
        if any(size < 0 for size in sizes):
            raise InvalidArgumentError(f"Shape {_text(sizes)} is not fully defined")
        return cls(sizes)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self)

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes as a plain tuple."""
        return tuple(self)

    def num_elements(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def as_list(self) -> list[int]:
        """The sizes as a list."""
        return list(self)

    def is_fully_defined(self) -> bool:
        """Whether every size is known: always."""
        return True

    def to_proto(self) -> TensorShapeProto:
        """The shape as a TensorShapeProto."""
        return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in self])

    def __str__(self) -> str:
        return _text(self)

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"


def _no_shape(value: object, error: TypeError) -> TypeError:
    return TypeError(
        f"{short_repr(value)} is no shape, which is a list of sizes such as [2, 3]: {error}"
    )


class PartialTensorShape:
    """The known part of a shape: nothing, its rank, or also some or all of its sizes.

    Two are equal when the same is known of both; a fully defined one equals its TensorShape.

    Args:
        dims: The size of each dimension, None or -1 where it is unknown; None for unknown rank.

    Raises:
        InvalidArgumentError: a size is less than -1, or the shape has too many dimensions or
            elements.
    """

    __slots__ = ("_dims",)

    _dims: tuple[int | None, ...] | None

    def __init__(
        self, dims: "Iterable[SupportsIndex | None] | PartialTensorShape | None" = None
    ) -> None:
        if dims is None:
            self._dims = None
        elif isinstance(dims, PartialTensorShape):
            self._dims = dims._dims
        else:
            try:
                self._dims = tuple(_size_or_none(size) for size in dims)
            except TypeError as error:
                raise _no_shape(dims, error) from None
            if any(size is not None and size < 0 for size in self._dims):
                raise InvalidArgumentError(
                    f"Shape {_text(self._dims)} has dimensions with values below -1 (where -1 means unknown)"
                )
            _check_extent(self._dims)

    @classmethod
    def from_proto(cls, proto: TensorShapeProto) -> "PartialTensorShape":
        """The shape of a TensorShapeProto.

        Raises:
            InvalidArgumentError: as the constructor; or the rank is unknown, but there are sizes.
        """
        if not proto.unknown_rank:
            return cls([dim.size for dim in proto.dim])
        if proto.dim:
            raise InvalidArgumentError(
                "An unknown shape must not have any dimensions set, "
                f"got {shape_proto_debug_string(proto)}"
            )
        return cls()

    @classmethod
    def from_text(cls, text: str) -> "PartialTensorShape":
        """The shape that `str()` of one gives: "[2,?]", "[]", "<unknown>" (or "?").

        Raises:
            InvalidArgumentError: as the constructor; or the text is no text of a shape.
        """
        stripped = text.strip()
        if stripped in _UNKNOWN_RANK_TEXTS:
            return cls()
        if not (stripped.startswith("[") and stripped.endswith("]")):
            raise InvalidArgumentError(f"'{text}' is not a shape such as [2,?] or <unknown>")
        inner = stripped[1:-1].strip()
        sizes = inner.split(",") if inner else []
        try:
            dims = [None if size.strip() == "?" else int(size) for size in sizes]
        except ValueError:
            raise InvalidArgumentError(f"'{text}' is not a shape such as [2,?]") from None
        return cls(dims)

    @property
    def dims(self) -> tuple[int | None, ...] | None:
        """The sizes, None where unknown; None for unknown rank."""
        return self._dims

    @property
    def rank(self) -> int | None:
        """The number of dimensions; None where unknown."""
        return None if self._dims is None else len(self._dims)

    def num_elements(self) -> int | None:
        """The number of elements; None where it is not known."""
        return self.as_tensor_shape().num_elements() if self.is_fully_defined() else None

    def as_list(self) -> list[int | None]:
        """The sizes as a list, None where unknown.

        Raises:
            InvalidArgumentError: the rank is unknown.
        """
        return list(self)

    def is_fully_defined(self) -> bool:
        """Whether the rank and every size are known."""
        return self._dims is not None and None not in self._dims

    def as_tensor_shape(self) -> TensorShape:
        """The fully defined shape (AsTensorShape).

        Raises:
            InvalidArgumentError: the shape is not fully defined.
        """
        if self._dims is None or None in self._dims:
            raise InvalidArgumentError(f"Shape {self} is not fully defined")
        return TensorShape(size for size in self._dims if size is not None)

    def is_compatible_with(self, other: "PartialTensorShape | TensorShape") -> bool:
        """Whether some fully defined shape agrees with both (IsCompatibleWith)."""
        mine, theirs = self._dims, other.dims
        if mine is None or theirs is None:
            return True
        return len(mine) == len(theirs) and all(map(_are_compatible, mine, theirs))

    def merge_with(self, other: "PartialTensorShape | TensorShape") -> "PartialTensorShape":
        """The shape that has the known sizes of either shape (MergeWith).

        Raises:
            InvalidArgumentError: the shapes are not compatible, or the merged one is too large.
        """
        mine, theirs = self._dims, other.dims
        if mine is None:
            return PartialTensorShape(theirs)
        if theirs is None:
            return self
        if len(mine) != len(theirs):
            raise InvalidArgumentError(
                "PartialTensorShape: Incompatible ranks during merge: "
                f"{len(mine)} vs. {len(theirs)}"
            )
        if not all(map(_are_compatible, mine, theirs)):
            raise InvalidArgumentError(
                f"PartialTensorShape: Incompatible shapes during merge: {self} vs. {other}"
            )
        return PartialTensorShape(b if a is None else a for a, b in zip(mine, theirs, strict=True))

    def concatenate(self, other: "PartialTensorShape | TensorShape") -> "PartialTensorShape":
        """The sizes of this shape, then the sizes of the other; unknown if either rank is.

        Raises:
            InvalidArgumentError: the result has too many dimensions or elements.
        """
        if self._dims is None or other.dims is None:
            return PartialTensorShape()
        return PartialTensorShape((*self._dims, *other.dims))

    def most_specific_compatible_shape(
        self, other: "PartialTensorShape | TensorShape"
    ) -> "PartialTensorShape":
        """What is known of both shapes alike: the shape that covers both."""
        mine, theirs = self._dims, other.dims
        if mine is None or theirs is None or len(mine) != len(theirs):
            return PartialTensorShape()
        return PartialTensorShape(a if a == b else None for a, b in zip(mine, theirs, strict=True))

    def to_proto(self) -> TensorShapeProto:
        """The shape as a TensorShapeProto, in which -1 stands for an unknown size."""
        if self._dims is None:
            return TensorShapeProto(unknown_rank=True)
        sizes = (-1 if size is None else size for size in self._dims)
        return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])

    def _known_dims(self) -> tuple[int | None, ...]:
        if self._dims is None:
            raise InvalidArgumentError("A shape of unknown rank has no list of sizes")
        return self._dims

    def __len__(self) -> int:
        return len(self._known_dims())

    def __iter__(self) -> Iterator[int | None]:
        return iter(self._known_dims())

    @overload
    def __getitem__(self, index: SupportsIndex) -> int | None: ...

    @overload
    def __getitem__(self, index: slice) -> "PartialTensorShape": ...

    def __getitem__(self, index: SupportsIndex | slice) -> "int | PartialTensorShape | None":
        """The size of a dimension; for a slice a shape, of which nothing is known where the rank is unknown."""
        if isinstance(index, slice):
            return PartialTensorShape(None if self._dims is None else self._dims[index])
        return self._known_dims()[index]

    def __bool__(self) -> bool:
        return self._dims is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartialTensorShape):
            return self._dims == other._dims
        if isinstance(other, TensorShape):
            return self._dims == other.dims
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else _text(self._dims)

    def __repr__(self) -> str:
        dims = None if self._dims is None else list(self._dims)
        return f"PartialTensorShape({dims})"


def shape_proto_debug_string(proto: TensorShapeProto) -> str:
    """The text of a TensorShapeProto, valid or not: "[2,?]" (TensorShapeRep::DebugString)."""
    if not proto.unknown_rank:
        return _text([dim.size for dim in proto.dim])
    return "<unknown>" + (_text([dim.size for dim in proto.dim]) if proto.dim else "")


def _text(dims: Sequence[int | None]) -> str:
    return "[" + ",".join("?" if size in (None, -1) else str(size) for size in dims) + "]"


def _size_or_none(size: SupportsIndex | None) -> int | None:
    index = None if size is None else operator.index(size)
    return None if index == -1 else index


def _are_compatible(a: int | None, b: int | None) -> bool:
    return a == b or a is None or b is None


def _check_extent(dims: tuple[int | None, ...]) -> None:
    """Refuse too many dimensions and elements; sizes are not negative."""
    if len(dims) > MAX_DIMENSIONS:
        raise InvalidArgumentError(
            f"Shape of {len(dims)} dimensions has too many dimensions: the most are "
            f"{MAX_DIMENSIONS}"
        )
    count: int | None = 1
    for size in dims:
        if size is None:
            count = None
        elif count is not None:
            count *= size
        if (count or 0) > _INT64_MAX or (size or 0) > _INT64_MAX:
            raise InvalidArgumentError(
                f"Shape {_text(dims)} is too large (more than 2**63 - 1 entries)"
            )
