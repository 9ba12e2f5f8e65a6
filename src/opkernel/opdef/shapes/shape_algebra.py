"""Shape algebra on handles: merge, cut, join, count.

`ShapeAlgebra` is the half of `InferenceContext` that needs no node. Which handle a result *is* is
part of the behaviour: a result that learned nothing new is one of the arguments, so that equality
of unknown dimensions survives.

Source: TensorFlow core/framework/shape_inference.cc.
"""

from collections.abc import Iterable
from typing import overload

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.shapes.shape_handles import (
    UNKNOWN_DIM,
    UNKNOWN_RANK,
    DimensionAlgebra,
    DimensionHandle,
    DimensionOrConstant,
    ShapeHandle,
    make_dim,
    merge_dims,
    relax_dims,
)
from opkernel.proto import TensorShapeProto
from opkernel.types import PartialTensorShape, TensorShape
from opkernel.types.shape import MAX_DIMENSIONS

_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1


def make_shape_handle(shape: PartialTensorShape | TensorShape) -> ShapeHandle:
    """A new handle for a shape value, with new dimensions."""
    if isinstance(shape, PartialTensorShape) and shape.rank is None:
        return ShapeHandle()
    return ShapeHandle(tuple([make_dim(size) for size in shape]))


class ShapeAlgebra(DimensionAlgebra):
    """Making, inspecting, merging, cutting and joining shapes."""

    __slots__ = ()

    # Making

    @staticmethod
    def make_shape(dims: Iterable[DimensionOrConstant]) -> ShapeHandle:
        """A new shape of these dimensions; sizes become new dimensions."""
        return ShapeHandle(tuple([make_dim(dim) for dim in dims]))

    @staticmethod
    def unknown_shape() -> ShapeHandle:
        """A new shape of unknown rank."""
        return ShapeHandle()

    @staticmethod
    def unknown_shape_of_rank(rank: int) -> ShapeHandle:
        """A new shape of `rank` new unknown dimensions; of unknown rank for `UNKNOWN_RANK`."""
        if rank == UNKNOWN_RANK:
            return ShapeHandle()
        if rank < 0:
            raise InvalidArgumentError(f"rank must not be negative, got {rank}")
        if rank > MAX_DIMENSIONS:  # before so many are made
            raise InvalidArgumentError(
                f"Shapes have at most {MAX_DIMENSIONS} dimensions, not {rank}"
            )
        return ShapeHandle(tuple([DimensionHandle() for _ in range(rank)]))

    @staticmethod
    def scalar() -> ShapeHandle:
        """A new shape of rank 0."""
        return ShapeHandle(())

    @staticmethod
    def vector(dim: DimensionOrConstant) -> ShapeHandle:
        """A new shape of rank 1."""
        return ShapeHandle((make_dim(dim),))

    @staticmethod
    def matrix(rows: DimensionOrConstant, columns: DimensionOrConstant) -> ShapeHandle:
        """A new shape of rank 2."""
        return ShapeHandle((make_dim(rows), make_dim(columns)))

    make_shape_from_partial_shape = staticmethod(make_shape_handle)
    make_shape_from_partial_tensor_shape = make_shape_from_partial_shape
    make_shape_from_tensor_shape = make_shape_from_partial_shape

    @staticmethod
    def make_shape_from_shape_proto(proto: TensorShapeProto) -> ShapeHandle:
        """A new handle for a shape message; a message that is no shape is refused."""
        if proto.unknown_rank and len(proto.dim):
            raise InvalidArgumentError("An unknown shape must not have any dimensions set.")
        return make_shape_handle(PartialTensorShape.from_proto(proto))

    # Inspecting

    @staticmethod
    def rank(shape: ShapeHandle) -> int:
        """The number of dimensions, or `UNKNOWN_RANK`."""
        dims = shape.dims
        return UNKNOWN_RANK if dims is None else len(dims)

    @staticmethod
    def rank_known(shape: ShapeHandle) -> bool:
        """Whether the number of dimensions is known."""
        return shape.dims is not None

    @staticmethod
    def dim(shape: ShapeHandle, index: int) -> DimensionHandle:
        """Dimension `index`, from the end if negative; a new unknown one if the rank is unknown.

        Raises:
            InvalidArgumentError: the shape has no such dimension.
        """
        dims = shape.dims
        try:
            return DimensionHandle() if dims is None else dims[index]
        except IndexError:
            raise InvalidArgumentError(f"Shape {shape} has no dimension {index}") from None

    @staticmethod
    def fully_defined(shape: ShapeHandle) -> bool:
        """Whether the rank and all dimensions are known."""
        dims = shape.dims
        return dims is not None and all(dim.value != UNKNOWN_DIM for dim in dims)

    @staticmethod
    def num_elements(shape: ShapeHandle) -> DimensionHandle:
        """A new dimension: the product of all; 0 if one is 0, unknown if it cannot be told."""
        if shape.dims is None:
            return DimensionHandle()
        size = 1
        for dim in shape.dims:
            if dim.value == 0:
                return DimensionHandle(0)
            size = UNKNOWN_DIM if UNKNOWN_DIM in (size, dim.value) else size * dim.value
        return DimensionHandle(size if size <= _MAX_INT64 else UNKNOWN_DIM)

    @staticmethod
    def debug_string(handle: ShapeHandle | DimensionHandle) -> str:
        """`[2,?]`, or `?` if nothing is known."""
        return repr(handle)

    @staticmethod
    def shape_handle_to_proto(shape: ShapeHandle) -> TensorShapeProto:
        """The shape as a message; unknown dimensions have size -1."""
        if shape.dims is None:
            return TensorShapeProto(unknown_rank=True)
        return TensorShapeProto(dim=[TensorShapeProto.Dim(size=dim.value) for dim in shape.dims])

    @staticmethod
    def as_partial_shape(shape: ShapeHandle) -> PartialTensorShape:
        """The shape as a value, without the identity of its dimensions."""
        if shape.dims is None:
            return PartialTensorShape(None)
        return PartialTensorShape([None if dim.value < 0 else dim.value for dim in shape.dims])

    # Checking and refining

    @staticmethod
    def with_rank(shape: ShapeHandle, rank: int) -> ShapeHandle:
        """The shape itself if it has this rank; if its rank is unknown, a new one that has.

        A shape of unknown rank has the rank `UNKNOWN_RANK`.

        Raises:
            InvalidArgumentError: the shape has another rank.
        """
        if shape.dims is None:
            if rank == UNKNOWN_RANK:
                return shape
            _check_rank(rank)
            return ShapeHandle(tuple([DimensionHandle() for _ in range(rank)]))
        if len(shape.dims) == rank:
            return shape
        raise InvalidArgumentError(f"Shape must be rank {rank} but is rank {len(shape.dims)}")

    @staticmethod
    def with_rank_at_least(shape: ShapeHandle, rank: int) -> ShapeHandle:
        """The shape itself, if its rank is unknown or not smaller."""
        _check_rank(rank)
        if shape.dims is None or len(shape.dims) >= rank:
            return shape
        existing = len(shape.dims)
        raise InvalidArgumentError(f"Shape must be at least rank {rank} but is rank {existing}")

    @staticmethod
    def with_rank_at_most(shape: ShapeHandle, rank: int) -> ShapeHandle:
        """The shape itself, if its rank is unknown or not larger."""
        _check_rank(rank)
        if shape.dims is None or len(shape.dims) <= rank:
            return shape
        existing = len(shape.dims)
        raise InvalidArgumentError(f"Shape must be at most rank {rank} but is rank {existing}")

    @overload
    @staticmethod
    def merge(first: ShapeHandle, second: ShapeHandle) -> ShapeHandle: ...
    @overload
    @staticmethod
    def merge(first: DimensionHandle, second: DimensionHandle) -> DimensionHandle: ...
    @staticmethod
    def merge(
        first: ShapeHandle | DimensionHandle, second: ShapeHandle | DimensionHandle
    ) -> ShapeHandle | DimensionHandle:
        """The merged knowledge of two shapes, or two dimensions, that must be equal.

        The result is `first` if `second` adds nothing, `second` if `first` adds nothing to it,
        and otherwise new.

        Raises:
            InvalidArgumentError: they cannot be equal.
        """
        if isinstance(first, ShapeHandle) and isinstance(second, ShapeHandle):
            return _merge_shapes(first, second)
        assert isinstance(first, DimensionHandle)
        assert isinstance(second, DimensionHandle)
        return merge_dims(first, second)

    @staticmethod
    def merge_prefix(shape: ShapeHandle, prefix: ShapeHandle) -> tuple[ShapeHandle, ShapeHandle]:
        """Merge the leading dimensions of `shape` with `prefix`; both, refined.

        Raises:
            InvalidArgumentError: the shape has a smaller rank, or dimensions differ.
        """
        if shape.dims is None or prefix.dims is None:
            return shape, prefix
        rank = len(prefix.dims)
        ShapeAlgebra.with_rank_at_least(shape, rank)
        merged = tuple([merge_dims(*pair) for pair in zip(shape.dims, prefix.dims, strict=False)])
        return ShapeHandle(merged + shape.dims[rank:]), ShapeHandle(merged)

    @staticmethod
    def relax(old: ShapeHandle, new: ShapeHandle) -> ShapeHandle:
        """The shape that covers both: dimensions that differ become unknown.

        The result is `old` if all its known dimensions are as in `new`.
        """
        if old is new:
            return old
        if old.dims is None or new.dims is None:
            return new if new.dims is None else ShapeHandle()
        if len(old.dims) != len(new.dims):
            return ShapeHandle()
        pairs = list(zip(old.dims, new.dims, strict=True))
        if all(a is b or (a.value == b.value != UNKNOWN_DIM) for a, b in pairs):
            return old
        return ShapeHandle(tuple([relax_dims(a, b) for a, b in pairs]))

    # Cutting and joining

    @staticmethod
    def subshape(
        shape: ShapeHandle, start: int, end: int | None = None, stride: int = 1
    ) -> ShapeHandle:
        """The dimensions from `start` up to `end`, each `stride`-th; from the end if negative.

        The whole shape is the shape itself, not a new one; a stride of 0 leaves a scalar.

        Raises:
            InvalidArgumentError: start or end lie before the first dimension, or in wrong order.
        """
        end = _MAX_INT64 if end is None else end
        dims = shape.dims
        whole = end == _MAX_INT64 or (dims is not None and end >= len(dims))
        if start == 0 and stride == 1 and whole:
            return shape
        if dims is None:
            return ShapeHandle()
        first, last = _subshape_bounds(len(dims), start, end, stride)
        indices = range(first, last, stride) if stride else ()
        return ShapeHandle(tuple([dims[i] for i in indices]))

    @staticmethod
    def concatenate(first: ShapeHandle, second: ShapeHandle) -> ShapeHandle:
        """A new shape: the dimensions of both; of unknown rank if one is."""
        if first.dims is None or second.dims is None:
            return ShapeHandle()
        return ShapeHandle(first.dims + second.dims)

    @staticmethod
    def replace_dim(shape: ShapeHandle, index: int, new_dim: DimensionOrConstant) -> ShapeHandle:
        """A new shape with another dimension at `index`, from the end if negative.

        Raises:
            InvalidArgumentError: the shape has no such dimension.
        """
        if shape.dims is None:
            return ShapeHandle()
        rank = len(shape.dims)
        position = rank + index if index < 0 else index
        if not 0 <= position < rank:
            raise InvalidArgumentError(
                f"Out of range dim_index {index} for shape with {rank} dimensions"
            )
        dims = list(shape.dims)
        dims[position] = make_dim(new_dim)
        return ShapeHandle(tuple(dims))


def _check_rank(rank: int) -> None:
    if rank > _MAX_INT32:
        raise InvalidArgumentError(f"Rank cannot exceed kint32max, got {rank}")
    if rank < 0:
        raise InvalidArgumentError(f"Rank must be >= 0, got {rank}")


def _merge_shapes(first: ShapeHandle, second: ShapeHandle) -> ShapeHandle:
    if first is second or second.dims is None:
        return first
    if first.dims is None:
        return second
    if len(first.dims) != len(second.dims):
        raise InvalidArgumentError(
            f"Shapes must be equal rank, but are {len(first.dims)} and {len(second.dims)}"
        )
    first_is_merged = second_is_merged = True
    for i, (a, b) in enumerate(zip(first.dims, second.dims, strict=True)):
        if a is b or a.value == b.value:
            continue
        if a.value == UNKNOWN_DIM:
            first_is_merged = False
        elif b.value == UNKNOWN_DIM:
            second_is_merged = False
        else:
            raise InvalidArgumentError(
                f"Dimension {i} in both shapes must be equal, but are {a} and {b}. "
                f"Shapes are {first} and {second}."
            )
    if first_is_merged:
        return first
    if second_is_merged:
        return second
    pairs = zip(first.dims, second.dims, strict=True)
    return ShapeHandle(tuple([merge_dims(a, b) for a, b in pairs]))


def _subshape_bounds(rank: int, start: int, end: int, stride: int) -> tuple[int, int]:
    """The first index and the one after the last, for a subshape of a shape of this rank."""
    first, last = min(start, rank), min(end, rank)
    if stride < 0 and first == rank:
        first -= 1
    first, last = [at + rank if at < 0 else at for at in (first, last)]
    for name, at, given in (("start", first, start), ("end", last, end)):
        if at < 0:
            raise InvalidArgumentError(
                f"Subshape {name} out of bounds: {given}, for shape with rank {rank}"
            )
    if (stride > 0 and first > last) or (stride < 0 and first < last):
        order = "<= end" if stride > 0 else ">= end since stride is negative"
        raise InvalidArgumentError(
            f"Subshape must have computed start {order}, but is {first} and {last} (computed from "
            f"start {start} and end {end} over shape with rank {rank} and stride {stride})"
        )
    return first, last
