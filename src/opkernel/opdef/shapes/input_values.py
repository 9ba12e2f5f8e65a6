"""`InputValues`: the values of a node's inputs, as far as known, with the shapes and sizes that they hold.

`HeldShapes`, its base, has the shapes and types that resources and variants hold.

Source: TensorFlow core/framework/shape_inference.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra, make_shape_handle
from opkernel.opdef.shapes.shape_handles import (
    UNKNOWN_DIM,
    DimensionHandle,
    ShapeAndType,
    ShapeHandle,
)
from opkernel.types import MAX_DIMENSIONS, DataType, PartialTensorShape, TensorShape, as_dtype

Held: TypeAlias = Sequence[ShapeAndType]
"""The content of a resource or variant, as far as known."""
_Combine: TypeAlias = Callable[[Held, Held], list[ShapeAndType] | None]
"""The combination of old and new, whose types agree; None where nothing is learned."""


class HeldShapes(ShapeAlgebra):
    """The half of `InferenceContext` for the contents of resources and variants.

    It has, for each input and output of such a type, the shapes and types of the tensors in it.
    """

    __slots__ = ("_input_handles", "_output_handles")

    def __init__(self, input_handles: dict[int, list[ShapeAndType]]) -> None:
        self._input_handles = input_handles
        self._output_handles: dict[int, list[ShapeAndType]] = {}

    def input_handle_shapes_and_types(self, index: int) -> list[ShapeAndType] | None:
        """The content of the resource or variant at an input; None if it is not known."""
        return self._input_handles.get(index)

    def set_input_handle_shapes_and_types(self, index: int, shapes_and_types: Held) -> None:
        """Replace the known contents of an input."""
        self._input_handles[index] = list(shapes_and_types)

    def output_handle_shapes_and_types(self, index: int) -> list[ShapeAndType] | None:
        """The content of the resource or variant at an output, by the shape function."""
        return self._output_handles.get(index)

    def held_by_outputs(self) -> Iterable[tuple[int, list[ShapeAndType]]]:
        """The contents of outputs that the shape function has set, by output."""
        return self._output_handles.items()

    def set_output_handle_shapes_and_types(self, index: int, shapes_and_types: Held) -> None:
        """Set the contents of the resource or variant at an output."""
        self._output_handles[index] = list(shapes_and_types)

    def merge_input_handle_shapes_and_types(self, index: int, shapes_and_types: Held) -> bool:
        """Refine the contents of an input; whether anything was learned."""
        return _update(self._input_handles, index, _merged, shapes_and_types)

    def relax_input_handle_shapes_and_merge_types(self, index: int, shapes_and_types: Held) -> bool:
        """Relax the contents of an input to the part that holds of these too; whether their types agree."""
        return _update(self._input_handles, index, _relaxed, shapes_and_types)

    def merge_output_handle_shapes_and_types(self, index: int, shapes_and_types: Held) -> bool:
        """Refine the contents of an output; whether anything was learned."""
        return _update(self._output_handles, index, _merged, shapes_and_types)

    def relax_output_handle_shapes_and_merge_types(
        self, index: int, shapes_and_types: Held
    ) -> bool:
        """Relax the contents of an output to the part that holds of these too; whether their types agree."""
        return _update(self._output_handles, index, _relaxed, shapes_and_types)


def _update(
    handles: dict[int, list[ShapeAndType]], index: int, combine: _Combine, new: Held
) -> bool:
    """Combine the known contents of an input or output with new ones; whether there is a result."""
    old = handles.get(index)
    if old is not None and not _types_agree(old, new):
        return False
    updated = list(new) if old is None else combine(old, new)
    if updated is not None:
        handles[index] = updated
    return updated is not None


def _merge_or_keep(old: ShapeHandle, new: ShapeHandle) -> ShapeHandle:
    """Both merged; a new shape that contradicts the old is left aside."""
    try:
        return ShapeAlgebra.merge(old, new)
    except InvalidArgumentError:
        return old


def _merged(old: Held, new: Held) -> list[ShapeAndType] | None:
    updated, refined = [], False
    for was, now in zip(old, new, strict=True):
        shape = _merge_or_keep(was.shape, now.shape)
        refined |= shape is not was.shape or was.dtype != now.dtype
        updated.append(ShapeAndType(shape, now.dtype, was.full_type))
    return updated if refined else None


def _relaxed(old: Held, new: Held) -> list[ShapeAndType]:
    """The content that covers both; full types do not outlast it."""
    pairs = zip(old, new, strict=True)
    return [ShapeAndType(ShapeAlgebra.relax(was.shape, now.shape), now.dtype) for was, now in pairs]


def _types_agree(old: Held, new: Held) -> bool:
    return len(old) == len(new) and all(
        was.dtype in (now.dtype, DataType.DT_INVALID) for was, now in zip(old, new, strict=True)
    )


Array: TypeAlias = np.ndarray[Any, Any] | np.generic
InputShape: TypeAlias = ShapeHandle | TensorShape | PartialTensorShape | Sequence[int | None] | None
"""A shape given to a context: a handle is shared, any other value (None: unknown) gets a new one."""
HeldTensor: TypeAlias = ShapeAndType | tuple[InputShape, DataType]
"""The content of a resource or variant; a ShapeAndType is shared, with its full type."""

_MAX_DIMENSIONS = 1 << 25
"""A longer shape is refused even if nothing is known of it."""


class InputValues(HeldShapes):
    """The part of `InferenceContext` for the inputs of the node, and for their values.

    It notes the inputs whose values the shape function asks for, as they are or as shapes.
    """

    __slots__ = (
        "_input_tensors",
        "_input_tensors_as_shapes",
        "_inputs",
        "_requested_as_shape",
        "_requested_tensors",
    )

    def __init__(
        self,
        input_shapes: Sequence[InputShape],
        input_tensors: Sequence[Array | None],
        input_tensors_as_shapes: Sequence[InputShape],
        handle_shapes: Sequence[Sequence[HeldTensor] | None],
    ) -> None:
        known = ((i, pairs) for i, pairs in enumerate(handle_shapes) if pairs is not None)
        super().__init__({i: _shapes_and_types(pairs) for i, pairs in known})
        self._inputs = [_handle(shape) for shape in input_shapes]
        self._input_tensors = input_tensors
        self._input_tensors_as_shapes = [_handle_or_none(s) for s in input_tensors_as_shapes]
        self._requested_tensors: set[int] = set()
        self._requested_as_shape: set[int] = set()

    def input_tensor(self, index: int) -> Array | None:
        """The value of an input, or None if it is not known to be constant.

        The context remembers that it was asked for: `requested_input_tensor`.
        """
        self._requested_tensors.add(index)
        return self._input_tensors[index] if index < len(self._input_tensors) else None

    def input_tensors_as_shape(self, index: int) -> ShapeHandle | None:
        """The shape, as far as known, that an input holds as its value; None if nothing is known."""
        self._requested_as_shape.add(index)
        known = self._input_tensors_as_shapes
        return known[index] if index < len(known) else None

    def request_input_tensor(self, index: int) -> None:
        """Ask for the value of an input without reading it."""
        self._requested_tensors.add(index)

    def requested_input_tensor(self, index: int) -> bool:
        """Whether the shape function asked for the value of this input."""
        return index in self._requested_tensors

    def request_input_tensor_as_partial_shape(self, index: int) -> None:
        """Ask for an input's value as a shape, as far as known, without reading it."""
        self._requested_as_shape.add(index)

    def requested_input_tensor_as_partial_shape(self, index: int) -> bool:
        """Whether the shape function asked for this input's value as a shape, as far as known."""
        return index in self._requested_as_shape

    @property
    def requests(self) -> set[tuple[int, bool]]:
        """All inputs whose values the shape function asked for, and whether as shapes."""
        if not self._requested_tensors and not self._requested_as_shape:
            return set()
        tensors = {(index, False) for index in self._requested_tensors}
        return tensors | {(index, True) for index in self._requested_as_shape}

    def set_input_tensors(self, tensors: Sequence[Array | None]) -> None:
        """Give the values of constant inputs, once it is known which were requested."""
        self._input_tensors = tensors

    def set_input_tensors_as_shapes(self, shapes: Sequence[InputShape]) -> None:
        """Give the partial values of inputs that hold shapes."""
        self._input_tensors_as_shapes = [_handle_or_none(shape) for shape in shapes]

    # Shapes and dimensions from values

    def make_shape_from_shape_tensor(self, index: int) -> ShapeHandle:
        """The shape that a vector input holds, as far as its value is known.

        Raises:
            InvalidArgumentError: the input is no int32 or int64 vector, or holds no shape.
        """
        input_shape = self.with_rank(self._inputs[index], 1)
        known = self.input_tensors_as_shape(index)
        if known is not None and known.dims is not None:
            return known
        return self.make_shape_from_tensor(self.input_tensor(index), input_shape)

    def make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(self, index: int) -> ShapeHandle:
        """As `make_shape_from_shape_tensor`; a scalar -1 stands for a shape of unknown rank."""
        input_shape = self.with_rank_at_most(self._inputs[index], 1)
        known = self.input_tensors_as_shape(index)
        if known is not None and known.dims is not None:
            return known
        tensor = self.input_tensor(index)
        if tensor is None and input_shape.dims == ():
            return ShapeHandle()
        if tensor is not None and tensor.ndim == 0:
            value = _integers(tensor, "Input tensor must be int32 or int64, but was")[0]
            if value != UNKNOWN_DIM:
                raise InvalidArgumentError(
                    "Input tensor must be rank 1, or if its rank 0 it must have value -1 "
                    f"(representing an unknown shape).  Saw value: {value}"
                )
            return ShapeHandle()
        return _shape_from_tensor(tensor, input_shape)

    def make_shape_from_tensor(
        self, tensor: Array | None, tensor_shape: ShapeHandle
    ) -> ShapeHandle:
        """The shape that a vector holds; of unknown dimensions if only its length is known.

        Args:
            tensor: its value, an int32 or int64 vector, or None.
            tensor_shape: the vector's own shape, as far as known.

        Raises:
            InvalidArgumentError: it is no int32 or int64 vector, or holds no shape.
            InternalError: it is longer than any shape may be.
        """
        return _shape_from_tensor(tensor, self.with_rank(tensor_shape, 1))

    @staticmethod
    def get_scalar_from_tensor(tensor: Array, index: int | None = None) -> int:
        """The value of an int16, int32 or int64 scalar; or element `index` of a vector of int32 or int64.

        Raises:
            InvalidArgumentError: it has another rank or dtype, or no such element.
        """
        if index is None and tensor.ndim != 0:
            raise InvalidArgumentError(f"Input must be scalar but has rank {tensor.ndim}")
        if index is not None and tensor.ndim != 1:
            raise InvalidArgumentError(f"Input must be 1D but has rank {tensor.ndim}")
        if index is None:
            values = _integers(tensor, "Scalar input must be int16, int32 or int64, but was", 2)
        else:
            values = _integers(tensor, "Tensor input must be int32 or int64, but was")
        if index is not None and not 0 <= index < len(values):
            raise InvalidArgumentError(f"Invalid index {index} for Tensor of size {len(values)}")
        return values[index or 0]

    def make_dim_for_scalar_input(self, index: int) -> DimensionHandle:
        """A new dimension of the size that a scalar input holds; unknown if it is not constant.

        Raises:
            InvalidArgumentError: the input is no integer scalar, or negative.
        """
        tensor = self.input_tensor(index)
        if tensor is None:
            return DimensionHandle()
        value = self.get_scalar_from_tensor(tensor)
        if value < 0:
            raise InvalidArgumentError(
                f"Dimension size, given by scalar input {index}, must be non-negative "
                f"but is {value}"
            )
        return DimensionHandle(value)

    def make_dim_for_scalar_input_with_negative_indexing(
        self, index: int, input_rank: int
    ) -> DimensionHandle:
        """The axis that a scalar input holds, counted from the front, as a dimension.

        Unknown if the input is not constant, or negative where `input_rank` is unknown (-1).

        Raises:
            InvalidArgumentError: the input is no integer scalar, or outside
                [-input_rank, input_rank).
        """
        tensor = self.input_tensor(index)
        if tensor is None:
            return DimensionHandle()
        value = self.get_scalar_from_tensor(tensor)
        if input_rank < 0:
            return DimensionHandle(max(value, UNKNOWN_DIM))
        if not -input_rank <= value < input_rank:
            raise InvalidArgumentError(
                f"Dimension size, given by scalar input {value} must be in range "
                f"[-{input_rank}, {input_rank})"
            )
        return DimensionHandle(value + input_rank if value < 0 else value)


def _integers(tensor: Array, complaint: str, least_bytes: int = 4) -> list[int]:
    """The elements of a tensor of signed integers of so many bytes at least, flat."""
    if tensor.dtype.kind != "i" or tensor.dtype.itemsize < least_bytes:
        raise InvalidArgumentError(f"{complaint} {as_dtype(tensor.dtype).string}")
    values: list[int] = tensor.reshape(-1).tolist()
    return values


def _shape_from_tensor(tensor: Array | None, tensor_shape: ShapeHandle) -> ShapeHandle:
    """The shape that a vector holds; of unknown dimensions if only its length is known.

    No tensor has more than `MAX_DIMENSIONS`: nothing is known of a longer shape.
    """
    if tensor is None:
        length = ShapeAlgebra.dim(tensor_shape, 0).value
        if length >= _MAX_DIMENSIONS:
            raise InternalError(
                f"Cannot create a tensor with {length} dimensions, as these would be more than "
                f"maximum of {_MAX_DIMENSIONS}"
            )
        return (
            ShapeAlgebra.unknown_shape_of_rank(length)
            if length <= MAX_DIMENSIONS
            else ShapeHandle()
        )
    if tensor.ndim != 1:
        raise InvalidArgumentError(f"Input tensor must be rank 1, but was rank {tensor.ndim}")
    if tensor.size > MAX_DIMENSIONS and tensor.dtype.kind == "i" and tensor.min() >= UNKNOWN_DIM:
        return ShapeHandle()
    sizes = _integers(tensor, "Input tensor must be int32 or int64, but was")
    for size in sizes:
        if size < UNKNOWN_DIM:
            raise InvalidArgumentError(f"Invalid value in tensor used for shape: {size}")
    return ShapeHandle(tuple([DimensionHandle(size) for size in sizes]))


def _handle(shape: InputShape) -> ShapeHandle:
    if isinstance(shape, ShapeHandle):
        return shape
    if shape is None:
        return ShapeHandle()
    if isinstance(shape, TensorShape | PartialTensorShape):
        return make_shape_handle(shape)
    return ShapeAlgebra.make_shape(shape)


def _handle_or_none(shape: InputShape) -> ShapeHandle | None:
    return None if shape is None else _handle(shape)


def _shapes_and_types(pairs: Sequence[HeldTensor]) -> list[ShapeAndType]:
    return [
        pair if isinstance(pair, ShapeAndType) else ShapeAndType(_handle(pair[0]), pair[1])
        for pair in pairs
    ]
