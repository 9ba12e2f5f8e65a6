"""CheckpointReader: the tensors of a checkpoint by their keys, whichever format it has.

Source: TensorFlow python/training/py_checkpoint_reader.py, core/util/tensor_slice_reader.cc.
"""

from __future__ import annotations

import abc
import math
import sys
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from opkernel.checkpoint.tensor_slice import TensorSlice
from opkernel.errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from opkernel.interrupts import Closing
from opkernel.messages import did_you_mean
from opkernel.proto import VersionDef
from opkernel.records import dataclass
from opkernel.types import Array, DataType, TensorShape

_MOST_DIMENSIONS = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32
_BYTES_OF_OBJECT = 8
_VERSION = 1


@dataclass(slots=True, eq=False)
class StoredTensor:
    """What a checkpoint says of a tensor.

    Attributes:
        dtype: The type.
        shape: The shape of all of the tensor.
        slices: The slices that it is stored in; none where it is stored as a whole.
    """

    dtype: DataType
    shape: TensorShape
    slices: Collection[TensorSlice]


class CheckpointReader(Closing, abc.ABC):
    """The tensors of a checkpoint; a tensor is read, and its checksum verified, when it is asked for.

    Readers may be used by several threads, and in a `with` statement. All methods that take a key raise
    NotFoundError for a key that is not there, and DataLossError where the files are damaged. Those that read values
    raise OutOfRangeError where a data file ends too early.

    Attributes:
        path: The prefix of the checkpoint, or the file.
    """

    path: str

    @abc.abstractmethod
    def keys(self) -> list[str]:
        """The keys of all tensors, sorted."""

    @abc.abstractmethod
    def _entry(self, key: str) -> StoredTensor | None:
        """What is stored under a key; None for nothing."""

    @abc.abstractmethod
    def _whole(self, key: str, entry: StoredTensor) -> Array:
        """The tensor of a key that is stored as a whole."""

    @abc.abstractmethod
    def _part(self, key: str, entry: StoredTensor, part: TensorSlice) -> Array:
        """The elements of a slice that is stored."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close the files."""

    def dtype(self, key: str) -> DataType:
        """The type of a tensor."""
        return self._stored(key).dtype

    def shape(self, key: str) -> TensorShape:
        """The shape of a tensor: of all of it, where it is stored in slices."""
        return self._stored(key).shape

    def slices(self, key: str) -> list[TensorSlice]:
        """The slices that a tensor is stored in; none where it is stored as a whole."""
        return [*self._stored(key).slices]

    def get(self, key: str) -> Array:
        """The value of a tensor; of strings an array of `bytes` objects.

        Raises:
            NotFoundError: there is no such key.
            DataLossError: the data are damaged.
            InvalidArgumentError: the slices that are stored leave a gap.
            InternalError: slices that are stored overlap.
        """
        entry = self._readable(key)
        if not entry.slices:
            return self._whole(key, entry)
        return self._joined(key, entry, TensorSlice.whole(len(entry.shape)))

    def get_slice(self, key: str, tensor_slice: TensorSlice) -> Array:
        """The elements of a slice of a tensor, whichever slices it is stored in.

        Raises:
            NotFoundError: there is no such key.
            InvalidArgumentError: the tensor is smaller than the slice, or the slices that are stored
                do not cover it.
            DataLossError: the data are damaged.
            InternalError: slices that are stored overlap.
        """
        entry = self._readable(key)
        try:
            tensor_slice.shape_of(entry.shape)
        except OpError as error:
            raise InvalidArgumentError(f"{self._named(key)}: {error.message}") from error
        if not entry.slices:
            return self._whole(key, entry)[tensor_slice.index()]
        return self._joined(key, entry, tensor_slice)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._entry(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __repr__(self) -> str:
        return f"<opkernel.{type(self).__name__} of {self.path}>"

    def get_tensor(self, key: str) -> Array:
        """`get`, under TensorFlow's name."""
        return self.get(key)

    def has_tensor(self, key: str) -> bool:
        """Whether there is such a key."""
        return key in self

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shapes of all tensors."""
        return {key: self.shape(key).as_list() for key in self}

    def get_variable_to_dtype_map(self) -> dict[str, DataType]:
        """The types of all tensors."""
        return {key: self.dtype(key) for key in self}

    def _stored(self, key: str) -> StoredTensor:
        entry = self._entry(key)
        if entry is None:
            raise NotFoundError(
                f"Key {key} not found in checkpoint {self.path}{did_you_mean(key, self.keys())}"
            )
        return entry

    def _readable(self, key: str) -> StoredTensor:
        """What is stored under a key, if arrays can hold it.

        Raises:
            UnimplementedError: it is of resources, or of a shape that NumPy cannot have.
        """
        entry = self._stored(key)
        if not _is_shape_of_array(tuple(entry.shape), entry.dtype.size):
            raise UnimplementedError(f"{self._named(key)} has shape {entry.shape}: no array has")
        if entry.dtype is DataType.DT_RESOURCE:
            raise UnimplementedError(f"{self._named(key)} is of type {entry.dtype.tf_name}")
        return entry

    def _joined(self, key: str, entry: StoredTensor, wanted: TensorSlice) -> Array:
        """A slice of a tensor that is stored in slices, put together from these."""
        shape = tuple(entry.shape)
        target, result_shape = wanted.within(shape), wanted.shape_of(shape)
        commons = [(part, _common(part.within(shape), target)) for part in entry.slices]
        wanted_parts = [(part, common) for part, common in commons if common is not None]
        stored = sum(_num_elements(there) for _, (_, there) in wanted_parts)
        if stored < math.prod(result_shape):  # the shape alone may claim any size
            raise InvalidArgumentError(
                f"{self._named(key)}: the slices that are stored do not cover {wanted}"
            )
        if stored > math.prod(result_shape):
            raise self._overlap(key)
        parts = [(common, self._part(key, entry, part)) for part, common in wanted_parts]
        result = np.empty(result_shape, entry.dtype.numpy_dtype)
        missing = np.ones(result_shape, np.bool_)
        for (here, there), values in parts:
            result[there] = values[here]
            missing[there] = False
        if missing.any():  # as many elements as there are, some of them twice
            raise self._overlap(key)
        return result

    def _overlap(self, key: str) -> InternalError:
        return InternalError(f"{self._named(key)}: slices that are stored overlap")

    def _named(self, key: str) -> str:
        """What messages call a tensor."""
        return f"Tensor {key} of checkpoint {self.path}"


def _common(
    part: TensorSlice, wanted: TensorSlice
) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
    """Where what two slices have in common is in each of them; None for nothing."""
    here, there = [], []
    for (start, length), (first, count) in zip(part.extents, wanted.extents, strict=True):
        low, high = max(start, first), min(start + length, first + count)
        if low >= high:
            return None
        here.append(slice(low - start, high - start))
        there.append(slice(low - first, high - first))
    return tuple(here), tuple(there)


def _num_elements(index: tuple[slice, ...]) -> int:
    """The number of elements in a slice."""
    return math.prod(one.stop - one.start for one in index)


def _is_shape_of_array(shape: tuple[int, ...], item_bytes: int) -> bool:
    """Whether NumPy can have an array of a shape: it counts the other sizes also where one is 0."""
    size = math.prod([max(length, 1) for length in shape]) * max(item_bytes, _BYTES_OF_OBJECT)
    return len(shape) <= _MOST_DIMENSIONS and size <= sys.maxsize


def check_version(what: str, versions: VersionDef) -> None:
    """Refuse files of which their writer says that older readers would read them wrongly.

    Raises:
        UnimplementedError: this reader is older.
    """
    if versions.min_consumer > _VERSION:
        raise UnimplementedError(
            f"{what} needs a reader of version {versions.min_consumer}: this one has version {_VERSION}"
        )


def checked_parts(
    what: str, shape: TensorShape, slices: Sequence[TensorSlice]
) -> Sequence[TensorSlice]:
    """The slices of a tensor, where each is within it.

    Raises:
        DataLossError: one is not.
    """
    for part in slices:
        try:
            part.shape_of(shape)
        except OpError as error:
            raise DataLossError(f"{what} is damaged: {error.message}") from error
    return slices
