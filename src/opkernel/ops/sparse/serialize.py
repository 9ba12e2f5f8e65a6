"""Sparse tensors as three strings or variants each: SerializeSparse, SerializeManySparse and their inverses.

Sparse tensors cut into those of each row, and put together again: the batches of serialization and maps.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/serialize_sparse_op.cc,
deserialize_sparse_string_op.cc, deserialize_sparse_variant_op.cc, sparse_tensors_map_ops.cc.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_equal
from opkernel.ops.kernel_types import ALL
from opkernel.ops.parsing.tensors import serialized
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.tensors import check_entries, check_indices, check_rank, check_sparse, runs
from opkernel.proto import DecodeError, TensorProto, VariantTensorDataProto
from opkernel.types import (
    DataType,
    OpaqueVariant,
    TensorShape,
    Variant,
    register_variant_decoder,
    tensor_from_proto,
    tensor_to_proto,
)

__all__ = ["SparseParts", "check_parts_of", "rows_of", "stacked"]


class SparseParts(NamedTuple):
    """The three tensors of a sparse tensor."""

    indices: Any
    values: Any
    shape: Any


def rows_of(whole: SparseParts) -> tuple[int, Iterator[tuple[int, SparseParts]]]:
    """How many rows a sparse tensor has, and each with its number: as they come, then the empty ones.

    Raises:
        InvalidArgumentError: the three tensors do not fit together, the rank is below 2, or the
            indices are not sorted, each once, within the shape.
    """
    shape = check_sparse(*whole)
    if len(shape) < 2:
        raise InvalidArgumentError(
            f"Rank of input SparseTensor should be > 1, but saw rank: {len(shape)}"
        )
    check_allocation((shape[0], 3), DataType.DT_VARIANT)
    check_indices(whole.indices, shape)
    return shape[0], _rows(whole)


def _rows(whole: SparseParts) -> Iterator[tuple[int, SparseParts]]:
    is_missing = np.ones(int(whole.shape[0]), bool)
    rest, row_shape = whole.indices[:, 1:], whole.shape[1:]
    for start, end in in_time(runs(whole.indices[:, :1])):
        number = int(whole.indices[start, 0])
        is_missing[number] = False
        yield number, SparseParts(rest[start:end], whole.values[start:end], row_shape)
    for missing in in_time(np.flatnonzero(is_missing)):
        yield int(missing), SparseParts(rest[:0], whole.values[:0], row_shape)


def check_parts_of(parts: SparseParts, found: DataType, wanted: DataType, number: int) -> None:
    """Raise InvalidArgumentError unless the parts make a sparse tensor of a type.

    Args:
        parts: What was stored.
        found: The type that the values have.
        wanted: The type that they must have.
        number: The number of the sparse tensor, for the error.
    """
    indices, values, shape = parts
    name = f"SparseTensor[{number}]"
    if indices.ndim != 2 or indices.dtype != np.int64:
        raise InvalidArgumentError(
            f"Expected {name}.indices to be a matrix of int64, but it has shape "
            f"{TensorShape(indices.shape)}"
        )
    if found is not wanted:
        raise InvalidArgumentError(
            f"Requested SparseTensor of type {wanted.string} but {name}.values.dtype() == "
            f"{found.string}"
        )
    if values.ndim != 1 or shape.ndim != 1 or shape.dtype != np.int64:
        raise InvalidArgumentError(f"Expected {name}.values and {name}.shape to be vectors")
    if len(indices) != len(values) or indices.shape[1] != len(shape):
        raise InvalidArgumentError(
            f"Expected the rows of {name}.indices to match its values, and the columns its shape; got "
            f"{TensorShape(indices.shape)}, {len(values)} and {len(shape)}"
        )


def stacked(tensors: Sequence[SparseParts], batch: tuple[int, ...], dtype: DataType) -> SparseParts:
    """One sparse tensor of all, with dimensions `batch` before theirs, as large as the largest of them.

    Raises:
        InvalidArgumentError: their ranks differ, or their shapes are none.
    """
    rank = len(tensors[0].shape)
    for number, tensor in enumerate(tensors):
        if len(tensor.shape) != rank:
            raise InvalidArgumentError(
                f"Inconsistent shape across SparseTensors: rank prior to SparseTensor[{number}] was: "
                f"{rank} but rank of SparseTensor[{number}] is: {len(tensor.shape)}"
            )
    largest = np.max([tensor.shape for tensor in tensors], axis=0)
    shape = TensorShape([*batch, *largest.tolist()])
    counts = [len(tensor.values) for tensor in tensors]
    check_entries(sum(counts), len(shape), dtype)
    numbers = np.repeat(np.arange(len(tensors)), counts)
    places = np.stack(np.unravel_index(numbers, batch), axis=1)
    indices = np.concatenate([tensor.indices for tensor in tensors])
    values = np.concatenate([tensor.values for tensor in tensors])
    return SparseParts(np.hstack((places, indices)), values, np.array(shape, np.int64))


_TYPE_NAME = "tensorflow::Tensor"
_INPUTS = ["sparse_indices: int64", "sparse_values: T", "sparse_shape: int64"]
_OUTPUTS = ["sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64"]
_FORMS = (DataType.DT_STRING, DataType.DT_VARIANT)
_OF_ROW = 400
"""The bytes of a row beside its strings."""
_OUT_TYPE = "out_type: {string, variant} = DT_STRING"


def _register_serialize(name: str, shape: str, doc: str) -> Any:
    return register_op(
        name,
        inputs=_INPUTS,
        outputs=["serialized_sparse: out_type"],
        attrs=["T: type", _OUT_TYPE],
        shape_fn=shape_rule(f"[?, ?], [?], [?] -> {shape}"),
        doc=doc,
    )


SERIALIZE_SPARSE = _register_serialize(
    "SerializeSparse",
    "[3]",
    "The three tensors of a sparse tensor, as TensorProtos or in variants.",
)
SERIALIZE_MANY_SPARSE = _register_serialize(
    "SerializeManySparse",
    "[?, 3]",
    "SerializeSparse of each row of a sparse tensor: the part of one index of the first dimension.",
)


DESERIALIZE_SPARSE = register_op(
    "DeserializeSparse",
    inputs=["serialized_sparse: Tserialized"],
    outputs=_OUTPUTS,
    attrs=["dtype: type", "Tserialized: {string, variant} = DT_STRING"],
    shape_fn=shape_rule("[..., 3] -> [?, ?], [?], [?]"),
    doc="The sparse tensor of all serialized ones, with the dimensions of the input before theirs.",
)
DESERIALIZE_MANY_SPARSE = register_op(
    "DeserializeManySparse",
    inputs=["serialized_sparse: string"],
    outputs=_OUTPUTS,
    attrs=["dtype: type"],
    shape_fn=shape_rule("[?, 3] -> [?, ?], [?], [?]"),
    doc="The sparse tensor of all serialized ones, with the dimensions of the input before theirs.",
)


class TensorVariant(Variant):
    """A tensor in a variant.

    Attributes:
        tensor: The tensor.
        dtype: Its type.
    """

    __slots__ = ("dtype", "tensor")

    def __init__(self, tensor: Any, dtype: DataType) -> None:
        self.tensor = tensor
        self.dtype = dtype

    def with_tensors(self, change: Callable[[Any], Any]) -> Variant:
        """The variant of the changed tensor."""
        return TensorVariant(change(self.tensor), self.dtype)

    def to_proto(self) -> VariantTensorDataProto:
        """The tensor as it stands in a file."""
        tensors = [tensor_to_proto(self.tensor, self.dtype)]
        return VariantTensorDataProto(type_name=_TYPE_NAME, tensors=tensors)

    @classmethod
    def from_proto(cls, proto: VariantTensorDataProto) -> "TensorVariant":
        """The tensor that stands in a file.

        Raises:
            InvalidArgumentError: there is none, or more than one.
        """
        require_equal(
            len(proto.tensors), 1, f"A variant of type {_TYPE_NAME} has {{}} tensors, not 1"
        )
        (tensor,) = proto.tensors
        return cls(tensor_from_proto(tensor), DataType(tensor.dtype))


register_variant_decoder(_TYPE_NAME, TensorVariant.from_proto)


def _string_of(tensor: Any, dtype: DataType) -> bytes:
    return serialized(tensor, dtype, strings_are_content=True)  # as TensorFlow has it


def _row(parts: SparseParts, dtype: DataType, out_type: DataType) -> list[Any]:
    write = _string_of if out_type is DataType.DT_STRING else TensorVariant
    types = (DataType.DT_INT64, dtype, DataType.DT_INT64)
    return [write(tensor, of_type) for tensor, of_type in zip(parts, types, strict=True)]


@register_kernel(SERIALIZE_SPARSE, types={"out_type": _FORMS})
def serialize_sparse(
    sparse_indices: Any, sparse_values: Any, sparse_shape: Any, *, T: DataType, out_type: DataType
) -> Any:
    check_rank(2, sparse_indices=sparse_indices)
    check_rank(1, sparse_values=sparse_values, sparse_shape=sparse_shape)
    row = _row(SparseParts(sparse_indices, sparse_values, sparse_shape), T, out_type)
    return _tensor((3,), row, out_type)


def _tensor(shape: tuple[int, ...], elements: Iterable[Any], out_type: DataType) -> Any:
    """A tensor of strings, or of variants."""
    if out_type is DataType.DT_STRING:
        return string_tensor(shape, elements)
    output = np.empty(math.prod(shape), object)
    output[:] = [*elements]
    return output.reshape(shape)


@register_kernel(SERIALIZE_MANY_SPARSE, types={"T": ALL, "out_type": _FORMS})
def serialize_many_sparse(
    sparse_indices: Any, sparse_values: Any, sparse_shape: Any, *, T: DataType, out_type: DataType
) -> Any:
    count, rows = rows_of(SparseParts(sparse_indices, sparse_values, sparse_shape))
    found: dict[int, list[Any]] = {}
    empty: list[Any] = []
    with making_bytes("serialized rows") as made:
        for number, parts in in_time(rows):
            if len(parts.values):
                found[number] = _row(parts, T, out_type)
                made.add(_OF_ROW + sum(len(one) for one in found[number] if isinstance(one, bytes)))
            elif not empty:
                empty = _row(parts, T, out_type)
    elements = (element for number in in_time(range(count)) for element in found.get(number, empty))
    return _tensor((count, 3), elements, out_type)


@register_kernel(DESERIALIZE_SPARSE, types={"Tserialized": _FORMS})
@register_kernel(DESERIALIZE_MANY_SPARSE)
def deserialize_sparse(serialized_sparse: Any, *, dtype: DataType) -> tuple[Any, Any, Any]:
    shape = serialized_sparse.shape
    if not shape:
        raise InvalidArgumentError("Serialized sparse should have non-zero rank []")
    if shape[-1] != 3:
        raise InvalidArgumentError(
            f"Serialized sparse should have 3 as the last dimension {TensorShape(shape)}"
        )
    if not math.prod(shape):
        raise InvalidArgumentError(
            "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension "
            f"{TensorShape(shape)}"
        )
    tensors = []
    for number, row in enumerate(in_time(serialized_sparse.reshape(-1, 3), SLOW)):
        (indices, _), (values, found), (sizes, _) = map(_tensor_of, row)
        parts = SparseParts(indices, values, sizes)
        check_parts_of(parts, found, dtype, number)
        tensors.append(parts)
    return tensors[0] if len(shape) == 1 else stacked(tensors, shape[:-1], dtype)


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
