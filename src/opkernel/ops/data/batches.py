"""Elements joined to batches, and batches taken apart.

Source: TensorFlow core/kernels/data/batch_dataset_op.cc, parallel_batch_dataset_op.cc, padded_batch_dataset_op.cc,
map_and_batch_dataset_op.cc, experimental/unbatch_dataset_op.cc, rebatch_dataset_op.cc,
dense_to_sparse_batch_dataset_op.cc; CopyBatch in core/data/dataset_utils.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.errors import DataLossError, InvalidArgumentError, OpError, OutOfRangeError
from opkernel.kernel import Step, check_allocation
from opkernel.opdef import full_type
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.array.concat import stacked
from opkernel.ops.data.captured_function import CapturedFunction
from opkernel.ops.data.dataset import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    DatasetBase,
    Element,
    InputIterator,
)
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.data.maps import check_parallel_calls, mapped, threads_for_calls
from opkernel.ops.data.read_ahead import ReadAheadDataset
from opkernel.ops.sparse.serialize import TensorVariant
from opkernel.types import DataType, PartialTensorShape, TensorShape

__all__ = ["BatchDataset", "DenseToSparseBatchDataset", "MapAndBatchDataset", "PaddedBatchDataset"]

_SHAPES_DIFFER = (
    "Cannot batch tensors with different shapes in component {component}. First element had shape "
    "{first} and element {number} had shape {other}."
)
_SHAPES_DIFFER_IN_MAP = (
    "Cannot add tensor to the batch: number of elements does not match. Shapes are: [tensor]: "
    "{other}, [batch]: {first}"
)


class BatchedDataset(DatasetBase):
    """Batches of the elements of another dataset.

    Attributes:
        checks_rest: Whether elements that make no whole batch fail as those of a batch, before they are left out.
    """

    checks_rest = False

    def __init__(
        self,
        node: DatasetNode,
        source: DatasetBase,
        dtypes: Sequence[DataType],
        shapes: Sequence[PartialTensorShape],
    ) -> None:
        self.batch_size: int = node.scalar("batch_size")
        if self.batch_size <= 0:
            raise InvalidArgumentError("Batch size must be greater than zero.")
        self.drops_rest = node.has_input("drop_remainder") and node.scalar("drop_remainder")
        is_whole = self.drops_rest or source.cardinality() == INFINITE_CARDINALITY
        rows = PartialTensorShape([self.batch_size if is_whole else None])
        super().__init__(dtypes, [rows.concatenate(shape) for shape in shapes], [source])

    def cardinality(self) -> int:
        size = self.input.cardinality()
        if size < 0:
            return size
        return size // self.batch_size if self.drops_rest else -(-size // self.batch_size)


def batch_of(
    elements: Sequence[Element], dtypes: Sequence[DataType], message: str = _SHAPES_DIFFER
) -> Element:
    """Elements as one, with a row for each; there is at least one.

    Raises:
        InvalidArgumentError: their shapes differ.
    """
    batch = []
    for component, (tensors, dtype) in enumerate(
        zip(zip(*elements, strict=True), dtypes, strict=True)
    ):
        first = tensors[0].shape
        for number, tensor in enumerate(tensors):
            if tensor.shape != first:
                shapes = {"first": TensorShape(first), "other": TensorShape(tensor.shape)}
                raise InvalidArgumentError(
                    message.format(component=component, number=number, **shapes)
                )
        check_allocation((len(tensors), *first), dtype)
        is_flat = not first and tensors[0].dtype.kind != "O"
        batch.append(np.array(tensors) if is_flat else stacked(tensors))
    return tuple(batch)


class _BatchIterator(InputIterator):
    def next(self, step: Step) -> Element | None:
        dataset, elements = self.dataset, self._read(step)
        is_dropped = dataset.drops_rest and len(elements) < dataset.batch_size
        if not elements or (is_dropped and not dataset.checks_rest):
            return None
        batch: Element = dataset.batch(elements)
        return None if is_dropped else batch

    def _read(self, step: Step) -> list[Element]:
        elements: list[Element] = []
        size = self.dataset.batch_size
        while len(elements) < size and (element := self.input.next(step)) is not None:
            elements.append(element)
            if not len(elements) & 1023:
                step.check()
                check_time("filling a batch")
        return elements


@dataset_op(
    "BatchDataset",
    "BatchDatasetV2",
    "ParallelBatchDataset",
    forward_type_fns={
        "BatchDatasetV2": full_type.container_map(FullTypeId.TFT_DATASET, 0, full_type.batch_tensor)
    },
    doc="Batches of `batch_size` elements; the last one may be smaller.",
)
class BatchDataset(BatchedDataset):
    """Batches of elements of equal shapes."""

    iterator_type = _BatchIterator

    def __init__(self, node: DatasetNode) -> None:
        source = node.dataset()
        super().__init__(node, source, source.dtypes, source.shapes)
        self.checks_rest = node.has_input("num_parallel_calls")
        if self.checks_rest:
            check_parallel_calls(node.scalar("num_parallel_calls"))

    def batch(self, elements: Sequence[Element]) -> Element:
        """The batch of elements."""
        return batch_of(elements, self.dtypes)


class _MapAndBatchIterator(_BatchIterator):
    """Maps all elements of a batch, also after one that fails, as calls that run side by side do."""

    def start(self) -> None:
        self.input = self.dataset.mapped.iterator()

    def _read(self, step: Step) -> list[Element]:
        results: list[Element] = []
        failure: OpError | None = None
        for _ in range(self.dataset.batch_size):
            try:
                result = self.input.next(step)
            except OpError as error:
                step.check()
                failure = failure or error
                continue
            if result is None:
                break
            if failure is None:
                results.append(result)
        if failure is not None and not isinstance(failure, OutOfRangeError):
            raise failure
        return results  # those before the function ran out of range


class _MappedDataset(ReadAheadDataset):
    """The results of the function of a MapAndBatchDataset, which may raise an OutOfRangeError."""

    def __init__(self, node: DatasetNode, function: CapturedFunction) -> None:
        super().__init__(node.dataset())
        self._function, self._keeps_count = function, node.attr("preserve_cardinality")
        self.threads = threads_for_calls(node, function)

    def compute(self, step: Step, element: Element) -> Element | None:
        """The results for an element."""
        if self._keeps_count:
            return mapped(self._function, step, element, keeps_count=True)
        return self._function.within(step, element)


@dataset_op(
    "MapAndBatchDataset",
    "ExperimentalMapAndBatchDataset",
    doc="Batches of the results of `f` for each element.",
)
class MapAndBatchDataset(BatchedDataset):
    """Batches of what a function gives."""

    iterator_type = _MapAndBatchIterator

    def __init__(self, node: DatasetNode) -> None:
        source, batched = node.dataset(), node.shapes
        super().__init__(node, source, node.dtypes, [shape[1:] for shape in batched])
        self.shapes = tuple(batched)
        function = node.function("f", "other_arguments", source.dtypes, node.dtypes)
        self.mapped = _MappedDataset(node, function)
        self._keeps_count: bool = node.attr("preserve_cardinality")

    def batch(self, elements: Sequence[Element]) -> Element:
        """The batch of elements."""
        return batch_of(elements, self.dtypes, _SHAPES_DIFFER_IN_MAP)

    def cardinality(self) -> int:
        return super().cardinality() if self._keeps_count else UNKNOWN_CARDINALITY


@dataset_op(
    "PaddedBatchDataset",
    "PaddedBatchDatasetV2",
    doc="Batches of `batch_size` elements, which are padded to one shape.",
)
class PaddedBatchDataset(BatchedDataset):
    """Batches of elements that are padded to equal shapes."""

    iterator_type = _BatchIterator

    def __init__(self, node: DatasetNode) -> None:
        source = node.dataset()
        shapes = [_padded_shape(tensor) for tensor in node.tensors("padded_shapes")]
        if len(shapes) != len(source.dtypes):
            raise InvalidArgumentError(
                f"Number of padded shapes ({len(shapes)}) must match the number of components in "
                f"the input dataset's elements ({len(source.dtypes)})"
            )
        super().__init__(node, source, source.dtypes, shapes)
        self._padded = shapes
        self._values = node.tensors("padding_values")
        self._check_values(node.attr("Toutput_types"))

    def _check_values(self, types: Sequence[DataType]) -> None:
        if len(types) != len(self.dtypes):
            raise InvalidArgumentError(
                f"Number of padding values ({len(types)}) must match the number of components in "
                f"the input dataset's elements ({len(self.dtypes)})"
            )
        for index, (value, dtype) in enumerate(zip(self._values, types, strict=True)):
            if value.ndim:
                raise InvalidArgumentError("All padding values must be scalars")
            if dtype != self.dtypes[index]:
                raise InvalidArgumentError(
                    f"Mismatched type between padding value {index} and input dataset's component "
                    f"{index}: {dtype.string} vs. {self.dtypes[index].string}"
                )

    def batch(self, elements: Sequence[Element]) -> Element:
        """The batch of elements."""
        columns = enumerate(zip(*elements, strict=True))
        return tuple([self._padded_batch(component, tensors) for component, tensors in columns])

    def _padded_batch(self, component: int, tensors: Sequence[Any]) -> Any:
        wanted, dtype = self._padded[component], self.dtypes[component]
        sizes = _padded_sizes(component, wanted, tensors)
        shape = check_allocation((len(tensors), *sizes), dtype)
        if not sizes:
            return stacked(tensors)
        batch = np.empty(shape, dtype.numpy_dtype)
        batch[...] = self._values[component]
        for row, tensor in zip(batch, tensors, strict=True):
            row[tuple(map(slice, tensor.shape))] = tensor
        return batch


def _padded_shape(tensor: Any) -> PartialTensorShape:
    if tensor.ndim != 1:
        raise InvalidArgumentError("All padded shapes must be vectors")
    return PartialTensorShape([None if size == -1 else size for size in tensor.tolist()])


def _padded_sizes(component: int, wanted: PartialTensorShape, tensors: Sequence[Any]) -> list[int]:
    """The shape that all tensors are padded to.

    Raises:
        InvalidArgumentError: a rank is another one.
        DataLossError: a tensor is larger.
    """
    for tensor in tensors:
        if tensor.ndim != wanted.rank:
            raise InvalidArgumentError(
                "All elements in a batch must have the same rank as the padded shape for component"
                f"{component}: expected rank {wanted.rank} but got element with rank {tensor.ndim}"
            )
    sizes = []
    for axis, size in enumerate(wanted.as_list()):
        largest = max(tensor.shape[axis] for tensor in tensors)
        if size is not None and largest > size:
            raise DataLossError(
                f"Attempted to pad to a smaller size than the input element: {largest} in "
                f"dimension {axis} of component {component} is more than {size}"
            )
        sizes.append(largest if size is None else size)
    return sizes


class _UnbatchIterator(InputIterator):
    state = ("input", "batch", "row")

    def start(self) -> None:
        super().start()
        self.batch: Element | None = None
        self.row = 0

    def next(self, step: Step) -> Element | None:
        while self.batch is None or self.row >= len(self.batch[0]):
            self.batch = None
            found = self.input.next(step)
            if found is None:
                return None
            _check_not_scalar(found)
            check_rows_match(found)
            self.batch, self.row = found, 0
            step.check()
        self.row += 1
        return tuple([tensor[self.row - 1, ...] for tensor in self.batch])


def _check_not_scalar(element: Element) -> None:
    if any(not tensor.ndim for tensor in element):
        raise InvalidArgumentError("Input element must have a non-scalar value in each component.")


def check_rows_match(element: Element) -> None:
    """Raise InvalidArgumentError unless the components of a batch, none of them a scalar, have as many rows."""
    for component, tensor in enumerate(element):
        if len(tensor) != len(element[0]):
            raise InvalidArgumentError(
                "Input element must have the same batch size in each component. Component 0 had "
                f"size {len(element[0])} but component {component} had size, {len(tensor)}."
            )


@dataset_op(
    "UnbatchDataset", "ExperimentalUnbatchDataset", doc="The rows of the elements, one by one."
)
class UnbatchDataset(DatasetBase):
    """The rows of elements.

    Attributes:
        rows: How many each element has; None where that is not known.
    """

    iterator_type = _UnbatchIterator

    def __init__(self, node: DatasetNode) -> None:
        source = node.dataset()
        shapes: list[PartialTensorShape] = []
        self.rows: int | None = None
        for shape in source.shapes:
            if shape.rank == 0:
                raise InvalidArgumentError("Cannot unbatch elements of a dataset that are scalars")
            shapes.append(shape[1:])
            if shape.rank is not None and shape[0] is not None:
                self.rows = shape[0]
        super().__init__(source.dtypes, shapes, [source])

    def cardinality(self) -> int:
        size = self.input.cardinality()
        if size < 0:
            return size
        return UNKNOWN_CARDINALITY if self.rows is None else size * self.rows


@dataset_op(
    "DenseToSparseBatchDataset",
    "ExperimentalDenseToSparseBatchDataset",
    doc="Batches of `batch_size` elements as sparse tensors of rows with the shape `row_shape`.",
)
class DenseToSparseBatchDataset(BatchedDataset):
    """Batches of tensors of different shapes, as serialized sparse tensors."""

    iterator_type = _BatchIterator

    def __init__(self, node: DatasetNode) -> None:
        source = node.dataset()
        self._row_shape: list[int] = node.vector("row_shape")
        if len(source.dtypes) != 1:
            raise InvalidArgumentError(
                "DenseToSparseDataset only supports inputs with a single component."
            )
        if any(size < -1 for size in self._row_shape):
            raise InvalidArgumentError("Dimensions of `row_shape` must be >= -1")
        self._dtype = source.dtypes[0]
        super().__init__(node, source, [DataType.DT_VARIANT], [PartialTensorShape([])])
        self.shapes = (PartialTensorShape([3]),)

    def batch(self, elements: Sequence[Element]) -> Element:
        """The batch of elements: indices, values and shape of a sparse tensor, in variants."""
        tensors = [element[0] for element in elements]
        sizes = list(self._row_shape)
        for tensor in tensors:
            if tensor.ndim != len(sizes):
                raise InvalidArgumentError(
                    f"Input element had shape ({TensorShape(tensor.shape)}) that is incompatible "
                    f"with the row shape ({PartialTensorShape(self._row_shape)})."
                )
            for axis, size in enumerate(tensor.shape):
                if self._row_shape[axis] == -1:
                    sizes[axis] = max(sizes[axis], size, 0)
                elif size > self._row_shape[axis]:
                    raise DataLossError(
                        f"Input element had shape ({TensorShape(tensor.shape)}) that is "
                        f"incompatible with the row shape ({TensorShape(self._row_shape)})."
                    )
        parts = [_places(number, tensor) for number, tensor in enumerate(tensors)]
        values = np.concatenate([tensor.reshape(-1) for tensor in tensors])
        shape = np.array([len(tensors), *sizes], np.int64)
        batch: Any = np.empty(3, object)
        for index, (tensor, dtype) in enumerate(
            (
                (np.concatenate(parts), DataType.DT_INT64),
                (values, self._dtype),
                (shape, DataType.DT_INT64),
            )
        ):
            batch[index] = TensorVariant(tensor, dtype)
        return (batch,)


def _places(number: int, tensor: Any) -> Any:
    """The indices of all elements of a tensor, row-major, after the number of its row."""
    places = np.indices(tensor.shape, np.int64).reshape(tensor.ndim, -1).T
    return np.hstack([np.full((len(places), 1), number, np.int64), places])
