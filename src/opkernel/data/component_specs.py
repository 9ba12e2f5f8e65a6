"""What is known of the components of elements, and how a dataset carries each: as one tensor.

A tensor is carried as it is; a dataset, a ragged or a sparse tensor in variants. Batches of variants are stacked like any
tensors, and rows of components are carried as one row of variants each: so stages need not know what they carry.

Source: TensorFlow python/framework/type_spec.py (BatchableTypeSpec), tensor.py, sparse_tensor.py,
python/ops/ragged/ragged_tensor.py, DatasetSpec in python/data/ops/dataset_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints import array
from opkernel.endpoints.ragged.tensor import RaggedTensor
from opkernel.endpoints.sparse.tensor import SparseTensor
from opkernel.endpoints.tensors import convert, dtype_of, static_shape
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Tensor, TensorSpec
from opkernel.proto import AttrValue
from opkernel.records import dataclass
from opkernel.runtime.calls.eager import execute
from opkernel.types import DataType, PartialTensorShape, as_dtype

_VARIANTS = TensorSpec(None, DataType.DT_VARIANT)
"""Variants of which it is not known in how many batches they were put."""
_UNIFORM = "_uniform_row_lengths"
"""The attr that says which levels of rows have one length: a shape, with -1 for the others."""


@dataclass(frozen=True)
class DatasetSpec:
    """A component that is a dataset itself.

    Attributes:
        element_spec: The spec of its elements.
    """

    element_spec: Any

    dtype = DataType.DT_VARIANT
    shape = PartialTensorShape([])
    carrier = TensorSpec([], DataType.DT_VARIANT)

    def encoded(self, value: Any) -> Any:
        """The tensor that holds a dataset."""
        return value.variant_tensor

    def encoded_rows(self, value: Any) -> Any:
        """Raises ValueError: a dataset is not cut."""
        raise ValueError("Slicing dataset elements is not supported for rank 0.")

    def batched(self, rows: PartialTensorShape) -> TensorSpec:
        """The spec of a batch."""
        return TensorSpec(rows, DataType.DT_VARIANT)

    def row(self) -> DatasetSpec:
        """Raises ValueError: a dataset is not cut."""
        raise ValueError("Slicing dataset elements is not supported for rank 0.")


@dataclass(frozen=True)
class SparseTensorSpec:
    """A component that is a sparse tensor.

    Attributes:
        shape: The shape.
        dtype: The type of the values.
    """

    shape: PartialTensorShape
    dtype: DataType

    carrier = _VARIANTS

    def __init__(self, shape: Any = None, dtype: Any = DataType.DT_FLOAT) -> None:
        """A spec.

        Args:
            shape: As for TensorSpec.
            dtype: As for TensorSpec.
        """
        object.__setattr__(self, "shape", PartialTensorShape(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))

    def with_shape(self, shape: PartialTensorShape) -> SparseTensorSpec:
        """The spec of a sparse tensor of another shape."""
        return SparseTensorSpec(shape, self.dtype)

    def encoded(self, value: Any) -> Any:
        """The three tensors of a sparse tensor as variants, [3]."""
        return raw_ops.SerializeSparse(**_inputs(value), out_type=DataType.DT_VARIANT)

    def encoded_rows(self, value: Any) -> Any:
        """Its rows as variants, [rows, 3].

        Raises:
            ValueError: it is a scalar.
        """
        self.row()
        return raw_ops.SerializeManySparse(**_inputs(value), out_type=DataType.DT_VARIANT)

    def decoded(self, variants: Any) -> SparseTensor:
        """The sparse tensor in variants [..., 3], those of batches stacked."""
        indices, values, sizes = _of_variants(
            "DeserializeSparse", variants, serialized_sparse=variants, dtype=self.dtype
        )
        rank = self.shape.rank
        indices, values = _told(indices, [None, rank]), _told(values, [None])
        return SparseTensor(indices, values, self._known_sizes(_told(sizes, [rank])))

    def _known_sizes(self, sizes: Any) -> Any:
        """The shape of a sparse tensor with the sizes that are known."""
        if self.shape.rank is None or not any(size is not None for size in self.shape):
            return sizes
        if self.shape.is_fully_defined():
            known = np.array(self.shape.as_list(), np.int64)
            return convert(known) if isinstance(sizes, Tensor) else known
        parts = [sizes[i] if size is None else np.int64(size) for i, size in enumerate(self.shape)]
        return array.stack(parts) if isinstance(sizes, Tensor) else np.array(parts)

    def batched(self, rows: PartialTensorShape) -> SparseTensorSpec:
        """The spec of a batch."""
        return self.with_shape(_shape_of([*rows, *self.shape]) if self.shape else self.shape)

    def row(self) -> SparseTensorSpec:
        """The spec of a row; ValueError for scalars."""
        if self.shape.rank == 0:
            raise ValueError("Scalars have no rows: a component needs a rank of at least 1")
        return self.with_shape(self.shape[1:])

    def __repr__(self) -> str:
        return f"SparseTensorSpec({_sizes(self.shape)}, {self.dtype.tf_name})"


@dataclass(frozen=True)
class RaggedTensorSpec:
    """A component that is a ragged tensor.

    Attributes:
        shape: The shape; the sizes of dimensions whose rows have different lengths are not known.
        dtype: The type of the values.
        ragged_rank: How many levels of rows it has. A row of one level is a tensor: its spec has 0 levels.
        row_splits_dtype: The type of the splits, int32 or int64.
    """

    shape: PartialTensorShape
    dtype: DataType
    ragged_rank: int
    row_splits_dtype: DataType

    carrier = _VARIANTS

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = DataType.DT_FLOAT,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = DataType.DT_INT64,
    ) -> None:
        """A spec.

        Args:
            shape: As for TensorSpec.
            dtype: As for TensorSpec.
            ragged_rank: The number of levels; one less than the rank if None.
            row_splits_dtype: The type of the splits.

        Raises:
            ValueError: there are more levels than the shape has room for, or neither is known; or splits cannot have the
                type.
        """
        known = PartialTensorShape(shape)
        if ragged_rank is None:
            if known.rank is None:
                raise ValueError("RaggedTensorSpec needs `ragged_rank`, or a shape of known rank")
            ragged_rank = known.rank - 1
        if known.rank is not None and ragged_rank >= known.rank:
            raise ValueError(
                f"`ragged_rank` ({ragged_rank}) must be less than the rank ({known.rank})"
            )
        splits = as_dtype(row_splits_dtype)
        if splits not in (DataType.DT_INT32, DataType.DT_INT64):
            raise ValueError(f"Splits are int32 or int64, not {splits.string}")
        object.__setattr__(self, "shape", known)
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "ragged_rank", ragged_rank)
        object.__setattr__(self, "row_splits_dtype", splits)

    def with_shape(self, shape: PartialTensorShape, more_levels: int = 0) -> RaggedTensorSpec:
        """The spec of ragged tensors of another shape."""
        rank = self.ragged_rank + more_levels
        return RaggedTensorSpec(shape, self.dtype, rank, self.row_splits_dtype)

    def encoded(self, value: Any) -> Any:
        """A ragged tensor as a variant."""
        return self._as_variant(value, batched_input=False)

    def encoded_rows(self, value: Any) -> Any:
        """Its rows as variants, [rows]."""
        return self._as_variant(value, batched_input=True)

    def _as_variant(self, value: Any, *, batched_input: bool) -> Any:
        parts = value.__tf_flatten__()[1] if isinstance(value, RaggedTensor) else (value,)
        if len(parts) - 1 != max(self.ragged_rank, 0):
            raise InvalidArgumentError(
                f"A value with {len(parts) - 1} levels of rows is not one of {self}"
            )
        return raw_ops.RaggedTensorToVariant(
            rt_nested_splits=list(parts[1:]),
            rt_dense_values=parts[0],
            batched_input=batched_input,
        )

    def decoded(self, variants: Any) -> Any:
        """The ragged tensor in variants, those of batches stacked; a tensor where it has no levels of rows."""
        levels = max(self.ragged_rank, 0)
        splits, values = _of_variants(
            "RaggedTensorFromVariant",
            variants,
            encoded_ragged=variants,
            input_ragged_rank=-1,
            output_ragged_rank=levels,
            Tvalues=self.dtype,
            Tsplits=self.row_splits_dtype,
        )
        if not levels:
            return _told(values, self.shape)
        if isinstance(values, Tensor) and self.shape.rank is not None:
            _note_lengths(values, self.shape[1 : levels + 1])
        values = _told(values, PartialTensorShape([None]).concatenate(self.shape[levels + 1 :]))
        rows = None if self.shape.rank is None else self.shape[0]
        sizes = [None if rows is None else rows + 1, *[None] * (levels - 1)]
        known = [_told(one, [size]) for one, size in zip(splits, sizes, strict=True)]
        return RaggedTensor.from_nested_row_splits(values, known)

    def batched(self, rows: PartialTensorShape) -> RaggedTensorSpec:
        """The spec of a batch."""
        return self.with_shape(rows.concatenate(self.shape), 1)

    def row(self) -> RaggedTensorSpec:
        """The spec of a row."""
        return self.with_shape(self.shape[1:], -1)

    def __repr__(self) -> str:
        splits = self.row_splits_dtype.tf_name
        return (
            f"RaggedTensorSpec({_sizes(self.shape)}, {self.dtype.tf_name}, "
            f"ragged_rank={self.ragged_rank}, row_splits_dtype={splits})"
        )


Spec = TensorSpec | DatasetSpec | SparseTensorSpec | RaggedTensorSpec


def carrier_of(spec: Spec) -> TensorSpec:
    """The spec of the tensor that carries a component."""
    return spec if isinstance(spec, TensorSpec) else spec.carrier


def encoded(spec: Spec, value: Any) -> Any:
    """The tensor that carries a component."""
    return value if isinstance(spec, TensorSpec) else spec.encoded(value)


def encoded_rows(spec: Spec, value: Any) -> Any:
    """The tensor whose rows carry the rows of a component; ValueError for what has none."""
    return value if isinstance(spec, TensorSpec) else spec.encoded_rows(value)


def decoder(spec: Spec, make_dataset: Callable[[Any, Any], Any]) -> Callable[[Any], Any] | None:
    """Gives the component that a tensor carries; None where that is the tensor."""
    if isinstance(spec, TensorSpec):
        return None
    if isinstance(spec, DatasetSpec):
        element = spec.element_spec
        return lambda tensor: make_dataset(tensor, element)
    return spec.decoded


def batched(spec: Spec, rows: PartialTensorShape) -> Spec:
    """The spec of batches; `rows` is the shape [rows]."""
    if isinstance(spec, TensorSpec):
        return TensorSpec(rows.concatenate(spec.shape), spec.dtype)
    return spec.batched(rows)


def row_of(spec: Spec) -> Spec:
    """The spec of a row; ValueError for scalars and datasets."""
    if not isinstance(spec, TensorSpec):
        return spec.row()
    if spec.shape.rank == 0:
        raise ValueError("Scalars have no rows: a component needs a rank of at least 1")
    return TensorSpec(spec.shape[1:], spec.dtype)


def spec_of_component(value: Any) -> Spec:
    """The spec of a tensor, an array, a ragged or a sparse tensor."""
    if isinstance(value, RaggedTensor):
        flat, *splits = value.__tf_flatten__()[1]
        ends, inner = (static_shape(splits[0]) or [None])[0], static_shape(flat)
        rows = None if not ends else ends - 1
        shape = PartialTensorShape([rows, *[_uniform_length(one) for one in splits]])
        known = shape.concatenate(PartialTensorShape(inner)[1:])
        return RaggedTensorSpec(known, dtype_of(flat), len(splits), dtype_of(splits[0]))
    if isinstance(value, SparseTensor):
        return SparseTensorSpec(_shape_held_by(value), dtype_of(value.values))
    shape = value.shape if isinstance(value, Tensor) else PartialTensorShape(value.shape)
    return TensorSpec(shape, dtype_of(value))


def _shape_held_by(value: SparseTensor) -> PartialTensorShape:
    """The shape of a sparse tensor, as far as it is known."""
    sizes = value.dense_shape
    if not isinstance(sizes, Tensor):
        return _shape_of(sizes.tolist())
    refiner = sizes.graph.refiner
    refiner.add_node(sizes.op)
    held = refiner.values.shape_held_by((sizes.op, sizes.value_index))
    if held is not None and held.dims is not None:
        return _shape_of([None if dim.value < 0 else dim.value for dim in held.dims])
    ranks = sizes.shape.as_list() if sizes.shape.rank == 1 else []
    columns = (static_shape(value.indices) or [None])[-1]
    rank = next((one for one in (*ranks, columns) if one is not None), None)
    return PartialTensorShape(None if rank is None else [None] * rank)


def _shape_of(sizes: Sequence[int | None]) -> PartialTensorShape:
    """The shape of a sparse tensor; sizes that no other tensor can have are not known."""
    try:
        return PartialTensorShape(sizes)
    except InvalidArgumentError:
        if any(size is not None and size < -1 for size in sizes):
            raise
        return PartialTensorShape([None] * len(sizes))


def _note_lengths(values: Tensor, lengths: PartialTensorShape) -> None:
    """Note at the op that gives a ragged tensor which of its rows have one length, for `_uniform_length`."""
    if any(length is not None for length in lengths):
        values.op.set_attr(_UNIFORM, AttrValue(shape=lengths.to_proto()))


def _uniform_length(splits: Any) -> int | None:
    """The length of the rows that splits make, where it is known to be one."""
    if not isinstance(splits, Tensor) or _UNIFORM not in splits.op.attr:
        return None
    return PartialTensorShape.from_proto(splits.op.attr[_UNIFORM].shape)[splits.value_index]


def _inputs(value: Any) -> dict[str, Any]:
    """The inputs of ops on a sparse tensor."""
    if not isinstance(value, SparseTensor):
        raise InvalidArgumentError(f"A SparseTensor is needed, not a {type(value).__name__}")
    names = ("sparse_indices", "sparse_values", "sparse_shape")
    return dict(zip(names, value, strict=True))


def _of_variants(op: str, variants: Any, **arguments: Any) -> Any:
    """Call an op on variants: at once on an array, also while a graph is built."""
    if isinstance(variants, Tensor):
        return getattr(raw_ops, op)(**arguments)
    first = next(iter(arguments))
    return execute(op, {first: arguments.pop(first)}, arguments)


def _told(tensor: Any, shape: Any) -> Any:
    """A tensor of which a shape is known."""
    if isinstance(tensor, Tensor):
        tensor.set_shape(shape)
    return tensor


def _sizes(shape: PartialTensorShape) -> list[int | None] | None:
    return None if shape.rank is None else shape.as_list()
