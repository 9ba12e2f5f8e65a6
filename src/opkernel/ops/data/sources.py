"""Datasets of tensors and numbers: TensorDataset, TensorSliceDataset, RangeDataset and the like.

Source: TensorFlow core/kernels/data/tensor_dataset_op.cc, tensor_slice_dataset_op.cc, range_dataset_op.cc,
sparse_tensor_slice_dataset_op.cc, experimental/list_dataset_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import Step
from opkernel.opdef import full_type
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, Element
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.registration import ALL, QUANTIZED
from opkernel.types import DataType, PartialTensorShape

__all__ = ["ListDataset", "SparseTensorSliceDataset", "TensorDataset"]


class IndexIterator(DatasetIterator):
    """Gives `dataset.at(index)` for each index from 0 on."""

    state = ("index",)

    def start(self) -> None:
        self.index = 0
        self._count = self.dataset.cardinality()

    def next(self, step: Step) -> Element | None:
        if self.index >= self._count:
            return None
        element: Element = self.dataset.at(self.index)
        self.index += 1
        return element


@dataset_op("TensorDataset", doc="A dataset whose only element is `components`.")
class TensorDataset(DatasetBase):
    """One element."""

    iterator_type = IndexIterator

    def __init__(self, node: DatasetNode) -> None:
        self._element = tuple(node.tensors("components"))
        shapes = [PartialTensorShape(tensor.shape) for tensor in self._element]
        super().__init__(node.attr("Toutput_types"), shapes)

    def cardinality(self) -> int:
        return 1

    def at(self, index: int) -> Element:
        """The element."""
        return self._element


def rows_of(tensors: list[Any], what: str) -> int:
    """The size that tensors share in their first dimension.

    Raises:
        InvalidArgumentError: they share none.
    """
    for tensor in tensors:
        if not tensor.ndim:
            raise InvalidArgumentError(f"{what} must have rank of at least 1")
    sizes = {len(tensor) for tensor in tensors}
    if len(sizes) > 1:
        first, other = len(tensors[0]), next(len(t) for t in tensors if len(t) != len(tensors[0]))
        raise InvalidArgumentError(
            "All components must have the same size in the 0th dimension: "
            f"{first} and {other} differ"
        )
    return sizes.pop() if sizes else 0


@dataset_op(
    "TensorSliceDataset",
    forward_type_fns={
        "TensorSliceDataset": full_type.multiary_unstack(
            FullTypeId.TFT_DATASET, full_type.unstack_tensor
        )
    },
    doc="A dataset whose elements are the rows of `components`, one by one.",
)
class TensorSliceDataset(DatasetBase):
    """The rows of tensors."""

    iterator_type = IndexIterator

    def __init__(self, node: DatasetNode) -> None:
        self._tensors = node.tensors("components")
        self._size = rows_of(self._tensors, "All components of TensorSliceDataset")
        shapes = [PartialTensorShape(tensor.shape[1:]) for tensor in self._tensors]
        super().__init__(node.attr("Toutput_types"), shapes)

    def cardinality(self) -> int:
        return self._size

    def at(self, index: int) -> Element:
        """The row of a number."""
        return tuple([tensor[index, ...] for tensor in self._tensors])


@dataset_op("RangeDataset", doc="The numbers from `start` to `stop`, without `stop`, by `step`.")
class RangeDataset(DatasetBase):
    """Numbers of int64, or of another type that `output_types` names."""

    iterator_type = IndexIterator

    def __init__(self, node: DatasetNode) -> None:
        self._start, self._step = node.scalar("start"), node.scalar("step")
        if self._step == 0:
            raise InvalidArgumentError("step must be a non-zero integer.")
        distance = node.scalar("stop") - self._start
        self._count = max(-(-distance // self._step), 0)
        self._type = node.dtypes[0].numpy_dtype.type if node.dtypes else np.int64
        if len(node.dtypes) != 1 or self._type is np.object_:
            raise InvalidArgumentError(f"RangeDataset gives one number, not {node.dtypes}")
        super().__init__(node.dtypes, [PartialTensorShape([])])
        self._is_wide = node.dtypes[0] is DataType.DT_INT64

    def cardinality(self) -> int:
        return int(self._count)

    def at(self, index: int) -> Element:
        """The number of an index."""
        number = self._start + index * self._step
        return (np.int64(number) if self._is_wide else np.int64(number).astype(self._type),)


@dataset_op("ListDataset", doc="A dataset whose elements are the tensors of `tensors`, in order.")
class ListDataset(DatasetBase):
    """Tensors one after the other, as many components at a time as `output_types` has."""

    iterator_type = IndexIterator

    def __init__(self, node: DatasetNode) -> None:
        self._tensors = node.tensors("tensors")
        self._width = len(node.dtypes)
        given, wanted = node.attr("Tinput_types"), node.dtypes
        count = len(given) // max(len(wanted), 1) * len(wanted)
        if not wanted or given[:count] != wanted * (count // len(wanted)):
            raise InvalidArgumentError("The tensors do not make elements of `output_types`")
        super().__init__(node.dtypes, node.shapes)

    def cardinality(self) -> int:
        return len(self._tensors) // self._width

    def at(self, index: int) -> Element:
        """The element of a number."""
        return tuple(self._tensors[index * self._width : (index + 1) * self._width])


@dataset_op(
    "SparseTensorSliceDataset",
    doc="A dataset whose elements are the rows of a sparse tensor: their indices, values and shape.",
    types={"Tvalues": (*ALL, *QUANTIZED)},
)
class SparseTensorSliceDataset(DatasetBase):
    """The rows of a sparse tensor."""

    iterator_type = IndexIterator

    def __init__(self, node: DatasetNode) -> None:
        indices, values, shape = (node.tensor(n) for n in ("indices", "values", "dense_shape"))
        _check_sparse(indices, values, shape)
        self._indices, self._values, self._shape = indices, values, shape
        self._size = int(shape[0]) if len(shape) else 0
        self._bounds = np.searchsorted(indices[:, 0], np.arange(self._size + 1)).tolist()
        rank = len(shape) - 1
        dtypes = [DataType.DT_INT64, node.attr("Tvalues"), DataType.DT_INT64]
        shapes = [PartialTensorShape(s) for s in ([None, rank], [None], [rank])]
        super().__init__(dtypes, shapes)

    def cardinality(self) -> int:
        return self._size

    def at(self, index: int) -> Element:
        """The row of a number: indices, values, shape."""
        rows = slice(self._bounds[index], self._bounds[index + 1])
        return self._indices[rows, 1:], self._values[rows], self._shape[1:]


def _check_sparse(indices: Any, values: Any, shape: Any) -> None:
    for tensor, rank, what in ((indices, 2, "matrix"), (values, 1, "vector"), (shape, 1, "vector")):
        if tensor.ndim != rank:
            raise InvalidArgumentError(f"Input must be a {what}. Got: {tensor.shape}")
    if len(indices) != len(values) or indices.shape[1] != len(shape):
        raise InvalidArgumentError(
            f"Number of values ({len(values)}) and dimensions ({len(shape)}) must match indices: "
            f"{list(indices.shape)}"
        )
    if len(shape) == 0:
        raise InvalidArgumentError("The shape argument requires at least one element.")
    if (shape < 0).any() or ((indices < 0) | (indices >= shape)).any():
        raise InvalidArgumentError("An index of the sparse tensor is out of bounds")
    if (np.diff(indices[:, 0]) < 0).any():
        raise UnimplementedError(
            "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered "
            "input is not currently supported."
        )
