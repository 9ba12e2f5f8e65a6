"""Batches of other sizes, made of batches.

Source: TensorFlow core/kernels/data/experimental/rebatch_dataset_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.kernel import Step
from opkernel.opdef import full_type
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.data.batches import check_rows_match
from opkernel.ops.data.dataset import DatasetBase, Element, InputIterator
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.types import DataType, PartialTensorShape, TensorShape

__all__ = ["RebatchDataset", "RebatchDatasetV2"]

_BATCHED = full_type.container_map(FullTypeId.TFT_DATASET, 0, full_type.batch_tensor)


class RebatchedDataset(DatasetBase):
    """Batches whose number of rows is not known."""

    def __init__(self, node: DatasetNode) -> None:
        source, rows = node.dataset(), PartialTensorShape([None])
        shapes = [
            shape if shape.rank == 0 else rows.concatenate(shape[1:]) for shape in source.shapes
        ]
        super().__init__(source.dtypes, shapes, [source])


class _SplitIterator(InputIterator):
    state = ("input", "batch", "part")

    def start(self) -> None:
        super().start()
        self.batch: Element | None = None
        self.part = 0

    def next(self, step: Step) -> Element | None:
        count = self.dataset.num_replicas
        if self.part == 0 or self.batch is None:
            self.batch, self.part = self.input.next(step), 0
            if self.batch is None:
                return None
            _check_not_scalar(self.batch)
        found = []
        for tensor in self.batch:
            rows = -(-len(tensor) // count)
            found.append(tensor[rows * self.part : rows * (self.part + 1)])
        self.part = (self.part + 1) % count
        return tuple(found)


def _check_not_scalar(element: Element) -> None:
    for component, tensor in enumerate(element):
        if not tensor.ndim:
            raise InvalidArgumentError(
                "Cannot rebatch dataset: All components must have at least one dimension. Perhaps "
                f"your input dataset is not batched? Component {component} is scalar."
            )


@dataset_op(
    "RebatchDataset",
    "ExperimentalRebatchDataset",
    forward_type_fns={"RebatchDataset": _BATCHED},
    doc="Each batch in `num_replicas` parts.",
)
class RebatchDataset(RebatchedDataset):
    """Parts of batches."""

    iterator_type = _SplitIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.num_replicas: int = node.scalar("num_replicas")
        if self.num_replicas <= 0:
            raise InvalidArgumentError("num_replicas must be greater than zero")


class _RebatchIterator(InputIterator):
    state = ("input", "batch", "row", "turn", "is_over")

    def start(self) -> None:
        super().start()
        self.batch: Element | None = None
        self.row = self.turn = 0
        self.is_over = False

    def next(self, step: Step) -> Element | None:
        dataset = self.dataset
        wanted = dataset.batch_sizes[self.turn]
        if not wanted and not self.is_over:
            self._end_turn()
            return tuple(map(_no_rows, dataset.dtypes, dataset.shapes))
        parts: list[Element] = []
        found = 0
        while found < wanted and (batch := self._unread(step)) is not None:
            end = min(self.row + wanted - found, len(batch[0]))
            parts.append(tuple([tensor[self.row : end] for tensor in batch]))
            found, self.row = found + end - self.row, end
            if end == len(batch[0]):
                self.batch = None
        if not found or (dataset.drops_rest and found < wanted):
            return None
        self._end_turn()
        return parts[0] if len(parts) == 1 else tuple(map(_joined, zip(*parts, strict=True)))

    def _end_turn(self) -> None:
        self.turn = (self.turn + 1) % len(self.dataset.batch_sizes)

    def _unread(self, step: Step) -> Element | None:
        """The batch whose rows from `row` on are next, and which may be empty; None at the end."""
        if self.batch is None:
            batch = None if self.is_over else self.input.next(step)
            if batch is None:
                self.is_over = True
                return None
            _check_not_scalar(batch)
            check_rows_match(batch)
            self.batch, self.row = batch, 0
            step.check()
        return self.batch


def _no_rows(dtype: DataType, shape: PartialTensorShape) -> Any:
    """A batch without rows: sizes that are not known are 0."""
    sizes = [0] if shape.rank is None else [size or 0 for size in shape.as_list()]
    return np.empty(sizes, dtype.numpy_dtype)


def _joined(tensors: Any) -> Any:
    first = tensors[0].shape[1:]
    for tensor in tensors:
        if tensor.shape[1:] != first:
            raise FailedPreconditionError(
                f"Cannot join rows of the shapes {TensorShape(first)} and "
                f"{TensorShape(tensor.shape[1:])} to a batch"
            )
    return np.concatenate(tensors)


@dataset_op(
    "RebatchDatasetV2",
    forward_type_fns={"RebatchDatasetV2": _BATCHED},
    doc="The rows of batches in batches of the sizes `batch_sizes`, in turn.",
)
class RebatchDatasetV2(RebatchedDataset):
    """The rows of batches in batches of other sizes."""

    iterator_type = _RebatchIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        sizes: Any = node.tensor("batch_sizes")
        if sizes.ndim > 1:
            raise InvalidArgumentError("`batch_sizes` must be a scalar or a vector.")
        self.batch_sizes: list[int] = sizes.reshape(-1).tolist()
        self.drops_rest: bool = node.scalar("drop_remainder")
        if not self.batch_sizes or min(self.batch_sizes) < 0:
            raise InvalidArgumentError(
                f"`batch_sizes` must be numbers from 0 on, not {self.batch_sizes}"
            )
