"""The methods that put elements together, and cut them into their rows.

Source: TensorFlow python/data/ops/batch_op.py, padded_batch_op.py, unbatch_op.py, rebatch_op.py; normalize_to_dense in
dataset_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from opkernel.data.batch_specs import (
    known_sizes,
    rows_in_turn,
    rows_of,
    shapes_to_pad_to,
    size_vector,
    values_to_pad_with,
)
from opkernel.data.component_specs import batched, encoded_rows, row_of
from opkernel.data.structure import flat_specs, int64_of, tensors_of
from opkernel.data.transformations import Transformations, parallel_op
from opkernel.graph import TensorSpec
from opkernel.graph.tracing.nested_structure import map_structure, packer


class Batches(Transformations):
    """The methods."""

    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Batches of elements of equal shapes; ragged and sparse tensors may have any.

        Args:
            batch_size: How many elements.
            drop_remainder: Whether a smaller last batch is left out.
            num_parallel_calls: How many batches may be made side by side, or AUTOTUNE.
            deterministic: Whether the order stays; it does in any case.
            name: Ignored.
        """
        rows = rows_of(batch_size, drop_remainder)
        op, arguments = parallel_op(
            "BatchDatasetV2", "ParallelBatchDataset", num_parallel_calls, deterministic
        )
        return self._with(
            op,
            spec=map_structure(lambda one: batched(one, rows), self.element_spec),
            batch_size=int64_of(batch_size),
            drop_remainder=drop_remainder,
            **arguments,
        )

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Batches of elements that are padded to equal shapes.

        Args:
            batch_size: How many elements.
            padded_shapes: The shape of each component; where it is None or -1, that of the largest. The known
                shapes of the elements if None.
            padding_values: What is padded with: zeros or empty strings if None; one value, or one for each component, of its type.
            drop_remainder: Whether a smaller last batch is left out.
            name: Ignored.

        Raises:
            TypeError: a component is a dataset, a ragged or a sparse tensor.
        """
        shapes = shapes_to_pad_to(self.element_spec, padded_shapes)
        specs = flat_specs(self.element_spec)
        rows = rows_of(batch_size, drop_remainder)
        pairs = zip(specs, map(known_sizes, shapes), strict=True)
        batches = [TensorSpec(rows.concatenate(shape), one.dtype) for one, shape in pairs]
        spec = packer(self.element_spec)(batches)
        return self._with(
            "PaddedBatchDatasetV2",
            spec=spec,
            batch_size=int64_of(batch_size),
            padded_shapes=[size_vector(shape) for shape in shapes],
            padding_values=values_to_pad_with(self.element_spec, specs, padding_values),
            drop_remainder=drop_remainder,
        )

    def unbatch(self, name: str | None = None) -> Self:
        """The rows of the elements, one by one."""
        spec = map_structure(row_of, self.element_spec)
        return self._in_rows()._with("UnbatchDataset", spec=spec)

    def _in_rows(self) -> Self:
        """The elements, in tensors whose rows carry the rows of the components."""
        return self._carried(self.element_spec, encoded_rows)

    def _carried(self, spec: Any, encode: Callable[[Any, Any], Any]) -> Self:
        """The elements as a dataset of another spec, whose tensors a function makes of spec and component."""
        if all(isinstance(one, TensorSpec) for one in flat_specs(spec)):
            return self
        carried = self.map(lambda *parts: tuple(tensors_of(self._element(parts), spec, encode)))
        made: Self = type(self).make(carried.variant_tensor, spec)
        return made

    def _element(self, parts: tuple[Any, ...]) -> Any:
        """The element of which a function gets these arguments."""
        return parts if type(self.element_spec) is tuple else parts[0]

    def rebatch(
        self, batch_size: Any, drop_remainder: bool = False, name: str | None = None
    ) -> Self:
        """The rows of batches in batches of another size, or of several sizes in turn."""
        sizes = int64_of(batch_size)
        row = map_structure(row_of, self.element_spec)
        rows = rows_in_turn(self.element_spec, sizes, drop_remainder)
        spec = map_structure(lambda one: batched(one, rows), row)
        return self._in_rows()._with(
            "RebatchDatasetV2",
            spec=spec,
            batch_sizes=sizes,
            drop_remainder=drop_remainder,
        )
