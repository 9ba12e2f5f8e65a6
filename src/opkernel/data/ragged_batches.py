"""`ragged_batch`: batches of tensors of different shapes, as ragged tensors.

Source: TensorFlow python/data/ops/ragged_batch_op.py; RaggedTensor.from_tensor in python/ops/ragged/ragged_tensor.py.
"""

from __future__ import annotations

from typing import Any, Self

from opkernel import raw_ops
from opkernel.data.composite_values import RaggedTensorValue
from opkernel.data.structure import Spec, flat_specs
from opkernel.data.transformations import Transformations
from opkernel.endpoints import array, math
from opkernel.graph import TensorSpec
from opkernel.graph.tracing.nested_structure import flatten, packer
from opkernel.types import DataType, as_dtype


class RaggedBatches(Transformations):
    """The method."""

    def ragged_batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        row_splits_dtype: Any = DataType.DT_INT64,
        name: str | None = None,
    ) -> Self:
        """Batches in which tensors of unknown sizes are the rows of RaggedTensorValues: `words.ragged_batch(4)`.

        A tensor [a, ?, b] gives rows of rows of tensors [b]. Tensors of known shapes or unknown rank are put together as
        by `batch`.

        Args:
            batch_size: How many elements.
            drop_remainder: Whether a smaller last batch is left out.
            row_splits_dtype: The type of the splits, int32 or int64.
            name: Ignored.

        Raises:
            ValueError: splits cannot have the type.
        """
        splits = as_dtype(row_splits_dtype)
        if splits not in (DataType.DT_INT32, DataType.DT_INT64):
            raise ValueError(f"Splits are int32 or int64, not {splits.string}")
        specs, pack = flat_specs(self.element_spec), packer(self.element_spec)
        ranks = [_ragged_rank(spec) for spec in specs]
        if not any(ranks):
            return self.batch(batch_size, drop_remainder)

        def encoded(*parts: Any) -> Any:
            given = flatten(parts)
            pairs = zip(given, ranks, strict=True)
            return tuple(_as_variant(one, rank, splits) if rank else one for one, rank in pairs)

        def decoded(*parts: Any) -> Any:
            pairs = zip(parts, specs, ranks, strict=True)
            found = [_rows(one, s, rank, splits) if rank else one for one, s, rank in pairs]
            return pack(found)

        return self.map(encoded).batch(batch_size, drop_remainder).map(decoded)


def _ragged_rank(spec: Any) -> int:
    """The number of dimensions up to the last of unknown size; 0 for what is batched as it is."""
    if not isinstance(spec, TensorSpec) or spec.shape.rank is None:
        return 0
    sizes = spec.shape.as_list()
    return max((axis + 1 for axis, size in enumerate(sizes) if size is None), default=0)


def _as_variant(tensor: Any, rank: int, splits_dtype: DataType) -> Any:
    """A tensor in a variant; its dimensions before number `rank` are rows."""
    sizes = array.cast(array.shape(tensor), splits_dtype)
    counts = [math.reduce_prod(sizes[:axis]) for axis in range(1, rank)]
    splits = [array.range(count + 1) * sizes[axis + 1] for axis, count in enumerate(counts)]
    if splits:
        inner = array.concat([[-1], array.shape(tensor)[rank:]], 0)
        tensor = array.reshape(tensor, inner)
    return raw_ops.RaggedTensorToVariant(
        rt_nested_splits=splits,
        rt_dense_values=tensor,
        batched_input=False,
    )


def _rows(variants: Any, spec: Spec, rank: int, splits_dtype: DataType) -> Any:
    """The ragged tensor of a batch of such variants."""
    splits, values = raw_ops.RaggedTensorFromVariant(
        encoded_ragged=variants,
        input_ragged_rank=rank - 1,
        output_ragged_rank=rank,
        Tvalues=spec.dtype,
        Tsplits=splits_dtype,
    )
    values.set_shape([None, *spec.shape.as_list()[rank:]])
    for one in reversed(splits):
        one.set_shape([None])
        values = RaggedTensorValue(values, one)
    return values
