"""`ragged_batch`: batches of tensors of different shapes, as ragged tensors.

Source: TensorFlow python/data/ops/ragged_batch_op.py; RaggedTensor.from_tensor in python/ops/ragged/ragged_tensor.py.
"""

from __future__ import annotations

from typing import Any, Self

from opkernel.data.batches import Batches
from opkernel.data.component_specs import RaggedTensorSpec, Spec, encoded
from opkernel.endpoints import array, math
from opkernel.endpoints.ragged.tensor import RaggedTensor
from opkernel.graph import TensorSpec
from opkernel.graph.tracing.nested_structure import map_structure
from opkernel.types import DataType, as_dtype


class RaggedBatches(Batches):
    """The method."""

    def ragged_batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        row_splits_dtype: Any = DataType.DT_INT64,
        name: str | None = None,
    ) -> Self:
        """Batches in which tensors of unknown sizes are the rows of ragged tensors: `words.ragged_batch(4)`.

        A tensor [a, ?, b] gives rows of rows of tensors [b]. Ragged and sparse tensors, and tensors of known shapes or
        unknown rank, are put together as by `batch`.

        Args:
            batch_size: How many elements.
            drop_remainder: Whether a smaller last batch is left out.
            row_splits_dtype: The type of the splits that are made, int32 or int64.
            name: Ignored.

        Raises:
            ValueError: splits cannot have the type.
        """
        splits = as_dtype(row_splits_dtype)
        spec = map_structure(lambda one: _ragged_spec(one, splits), self.element_spec)
        return self._carried(spec, _encoded).batch(batch_size, drop_remainder)


def _ragged_spec(spec: Spec, splits: DataType) -> Spec:
    """The spec of a component that is put together as ragged: its dimensions up to the last of unknown size are rows."""
    if not isinstance(spec, TensorSpec) or spec.shape.rank is None:
        return spec
    unknown = [axis for axis, size in enumerate(spec.shape) if size is None]
    return RaggedTensorSpec(spec.shape, spec.dtype, unknown[-1], splits) if unknown else spec


def _encoded(spec: Spec, component: Any) -> Any:
    """The tensor that carries a component, which may be a tensor where the spec is ragged."""
    if isinstance(spec, RaggedTensorSpec) and not isinstance(component, RaggedTensor):
        component = _in_rows(component, spec)
    return encoded(spec, component)


def _in_rows(tensor: Any, spec: RaggedTensorSpec) -> Any:
    """A tensor whose first dimensions are levels of rows."""
    rank = max(spec.ragged_rank, 0)
    if not rank:
        return tensor
    sizes = array.cast(array.shape(tensor), spec.row_splits_dtype)
    counts = [math.reduce_prod(sizes[:axis]) for axis in range(1, rank + 1)]
    splits = [array.range(count + 1) * sizes[axis + 1] for axis, count in enumerate(counts)]
    inner = array.concat([[-1], array.shape(tensor)[rank + 1 :]], 0)
    return RaggedTensor.from_nested_row_splits(array.reshape(tensor, inner), splits)
