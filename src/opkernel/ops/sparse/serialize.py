"""Sparse tensors as strings or variants, as SerializeSparse makes them, and kept by number: AddSparseToTensorsMap.

Their Many forms work on batches. Batches are sparse tensors cut into those of each row, and put together again.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/serialize_sparse_op.cc,
sparse_tensors_map_ops.cc.
"""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    ContainerInfo,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
    check_allocation,
)
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require, require_equal, require_vector
from opkernel.ops.parsing.tensors import MOST_BYTES, head_of_content, serialized
from opkernel.ops.registration import ALL, register_kernel
from opkernel.ops.resource_op_kernel import container_of, kept
from opkernel.ops.sparse.tensors import (
    check_entries,
    check_indices,
    check_rank,
    check_sparse,
    run_starts,
    runs,
)
from opkernel.ops.tensor_list.value import objects
from opkernel.proto import VariantTensorDataProto
from opkernel.types import (
    DataType,
    TensorShape,
    Variant,
    register_variant_decoder,
    tensor_from_proto,
    tensor_to_proto,
)


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
    require(
        len(shape) >= 2, f"Rank of input SparseTensor should be > 1, but saw rank: {len(shape)}"
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
    shapes = np.array([tensor.shape for tensor in tensors])
    counts = [len(tensor.values) for tensor in tensors]
    check_entries(sum(counts), len(batch) + rank, dtype)
    indices = np.concatenate([tensor.indices for tensor in tensors])
    values = np.concatenate([tensor.values for tensor in tensors])
    return of_batch(SparseParts(indices, values, shapes), counts, batch, dtype)


def of_batch(
    parts: SparseParts, counts: Any, batch: tuple[int, ...], dtype: DataType
) -> SparseParts:
    """One sparse tensor of all, as of `stacked`.

    Args:
        parts: The entries of all one after the other, and for each its shape, [count, rank].
        counts: How many entries each has, a sequence.
        batch: The dimensions before theirs.
        dtype: The type of the values.
    """
    indices, values, shapes = parts
    sizes = [*batch, *shapes.max(axis=0).tolist()]
    TensorShape([min(size, 1) for size in sizes])  # the product may be beyond every tensor's
    check_entries(len(values), len(sizes), dtype)
    numbers = np.repeat(np.arange(len(shapes)), counts)
    places = np.stack(np.unravel_index(numbers, batch), axis=1)
    return SparseParts(np.hstack((places, indices)), values, np.array(sizes, np.int64))


_TYPE_NAME = "tensorflow::Tensor"
PARTS = "sparse_indices: int64, sparse_values: {}, sparse_shape: int64"
"""The arguments of ops that a sparse tensor of a type is."""
_SERIALIZED = ["T: type", "out_type: {string, variant} = DT_STRING"]
FORMS = (DataType.DT_STRING, DataType.DT_VARIANT)
"""The types of serialized tensors."""
_OF_ROW = 400
"""The bytes of a row beside its strings."""


SERIALIZE_SPARSE = register_op(
    f"SerializeSparse({PARTS.format('T')}) -> serialized_sparse: out_type",
    attrs=_SERIALIZED,
    shape_fn=shape_rule("[?, ?], [?], [?] -> [3]"),
    doc="The three tensors of a sparse tensor, as TensorProtos or in variants.",
)
SERIALIZE_MANY_SPARSE = register_op(
    f"SerializeManySparse({PARTS.format('T')}) -> serialized_sparse: out_type",
    attrs=_SERIALIZED,
    shape_fn=shape_rule("[?, ?], [?], [?] -> [?, 3]"),
    doc="SerializeSparse of each row of a sparse tensor: the part of one index of the first dimension.",
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


def _row(parts: SparseParts, dtype: DataType, out_type: DataType) -> list[Any]:
    # as in TensorFlow, strings are the content
    as_string = partial(serialized, strings_are_content=True)
    write = as_string if out_type is DataType.DT_STRING else TensorVariant
    types = (DataType.DT_INT64, dtype, DataType.DT_INT64)
    return [write(tensor, of_type) for tensor, of_type in zip(parts, types, strict=True)]


@register_kernel(SERIALIZE_SPARSE, types={"out_type": FORMS})
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
    return objects([*elements], shape)


def _rows_of_numbers(whole: SparseParts, dtype: DataType) -> Iterator[tuple[int, list[bytes]]]:
    """The rows that have entries, as of `_row`, with their numbers: cut out of the bytes of all."""
    rank, starts = whole.indices.shape[1] - 1, run_starts(whole.indices[:, :1])
    indices, values = whole.indices[:, 1:].tobytes(), whole.values.tobytes()
    of_index, of_value = rank * DataType.DT_INT64.size, dtype.size
    shape = serialized(whole.shape[1:], DataType.DT_INT64)
    bounds = pairwise([*starts.tolist(), len(whole.values)])
    for number, (start, end) in zip(whole.indices[starts, 0].tolist(), bounds, strict=True):
        size = end - start
        head = head_of_content((size, rank), DataType.DT_INT64)
        head_of_values = head_of_content((size,), dtype)
        yield (
            number,
            [
                head + indices[start * of_index : end * of_index],
                head_of_values + values[start * of_value : end * of_value],
                shape,
            ],
        )


@register_kernel(SERIALIZE_MANY_SPARSE, types={"T": ALL, "out_type": FORMS})
def serialize_many_sparse(
    sparse_indices: Any, sparse_values: Any, sparse_shape: Any, *, T: DataType, out_type: DataType
) -> Any:
    whole = SparseParts(sparse_indices, sparse_values, sparse_shape)
    count, rows = rows_of(whole)
    is_of_bytes = out_type is DataType.DT_STRING and T.can_memcpy
    found: dict[int, list[Any]] = {}
    with making_bytes("serialized rows") as made:
        if is_of_bytes and max(sparse_indices.nbytes, sparse_values.nbytes) < MOST_BYTES:
            rows = iter(())
            for number, row in in_time(_rows_of_numbers(whole, T)):
                found[number] = row
                made.add(_OF_ROW + sum(map(len, row)))
        for number, parts in in_time(rows):
            if not len(parts.values):
                break  # only empty ones are left
            found[number] = _row(parts, T, out_type)
            made.add(_OF_ROW + sum(len(one) for one in found[number] if isinstance(one, bytes)))
    empty = _row(
        SparseParts(sparse_indices[:0, 1:], sparse_values[:0], sparse_shape[1:]), T, out_type
    )
    elements = (element for number in in_time(range(count)) for element in found.get(number, empty))
    return _tensor((count, 3), elements, out_type)


_NAMES = ["container: string = ''", "shared_name: string = ''"]

register_op(
    f"AddSparseToTensorsMap({PARTS.format('T')}) -> sparse_handle: int64",
    attrs=["T: type", *_NAMES],
    shape_fn=shape_rule("[?, ?], [?], [?] -> []"),
    is_stateful=True,
    doc="Has the map of that name keep a sparse tensor; the output is its number.",
)
register_op(
    f"AddManySparseToTensorsMap({PARTS.format('T')}) -> sparse_handles: int64",
    attrs=["T: type", *_NAMES],
    shape_fn=shape_rule("[?, ?], [?], [?] -> [?]"),
    is_stateful=True,
    doc="Has the map of that name keep each row of a sparse tensor; the output are their numbers.",
)
register_op(
    f"TakeManySparseFromTensorsMap(sparse_handles: int64) -> {PARTS.format('dtype')}",
    attrs=["dtype: type", *_NAMES],
    shape_fn=shape_rule("[?] -> [?, ?], [?], [?]"),
    is_stateful=True,
    doc="Takes sparse tensors from the map of that name: one sparse tensor of all, row by row.",
)


class SparseTensorsMap(ResourceBase):
    """Sparse tensors by number; used from any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tensors: dict[int, tuple[SparseParts, DataType]] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def debug_string(self) -> str:
        """The name."""
        return "A SparseTensorsMap"

    def add(self, parts: SparseParts, dtype: DataType) -> int:
        """Keep a sparse tensor, whose number is the result."""
        own = SparseParts(*(kept(np.array(tensor)) for tensor in parts))
        with self._lock:
            number = next(self._numbers)
            self._tensors[number] = own, dtype
        return number

    def take(self, numbers: list[int]) -> list[tuple[SparseParts, DataType]]:
        """The sparse tensors of these numbers, which it no longer keeps.

        Raises:
            InvalidArgumentError: there is none of a number.
        """
        found = []
        with self._lock:
            for number in numbers:
                if number not in self._tensors:
                    raise InvalidArgumentError(
                        f"Unable to find SparseTensor: {number} in map: {self._name}"
                    )
                found.append(self._tensors.pop(number))
        return found


class _MapKernel(OpKernel):
    """A kernel that uses the map of its shared name, which it makes where there is none."""

    use_node_name = True

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._lock = threading.Lock()
        self._info: ContainerInfo | None = None

    def use(self, ctx: OpKernelContext, tensors_map: SparseTensorsMap) -> None:
        """Compute with the map."""
        raise NotImplementedError

    def compute(self, ctx: OpKernelContext) -> None:
        with self._lock:
            if self._info is None:
                self._info = container_of(self, ctx, by_node_name=self.use_node_name)
        info = self._info
        with info.resource_manager.lookup_or_create(
            info.container, info.name, SparseTensorsMap, lambda: SparseTensorsMap(info.name)
        ) as tensors_map:
            self.use(ctx, tensors_map)


@register_kernel("AddSparseToTensorsMap")
class AddSparseToTensorsMap(_MapKernel):
    """Keeps a sparse tensor."""

    def use(self, ctx: OpKernelContext, tensors_map: SparseTensorsMap) -> None:
        parts = SparseParts(ctx.input(0), ctx.input(1), ctx.input(2))
        check_sparse(*parts)
        ctx.set_output(0, np.int64(tensors_map.add(parts, ctx.input_dtype(1))))


@register_kernel("AddManySparseToTensorsMap", types={"T": ALL})
class AddManySparseToTensorsMap(_MapKernel):
    """Keeps the rows of a sparse tensor."""

    def use(self, ctx: OpKernelContext, tensors_map: SparseTensorsMap) -> None:
        count, rows = rows_of(SparseParts(ctx.input(0), ctx.input(1), ctx.input(2)))
        handles = np.zeros(count, np.int64)
        for number, parts in in_time(rows):
            handles[number] = tensors_map.add(parts, ctx.input_dtype(1))
        ctx.set_output(0, handles)


@register_kernel("TakeManySparseFromTensorsMap", types={"dtype": ALL})
class TakeManySparseFromTensorsMap(_MapKernel):
    """Takes sparse tensors."""

    use_node_name = False

    def use(self, ctx: OpKernelContext, tensors_map: SparseTensorsMap) -> None:
        handles = ctx.input(0)
        require_vector(handles, "sparse_handles should be a vector but received shape {}")
        require(len(handles), "Must have at least 1 handle of a SparseTensor, but got none")
        found = tensors_map.take(handles.tolist())
        for number, (parts, dtype) in enumerate(found):
            check_parts_of(parts, dtype, self.output_types[1], number)
        whole = stacked([parts for parts, _ in found], (len(found),), self.output_types[1])
        ctx.set_outputs_by_arg(whole)
