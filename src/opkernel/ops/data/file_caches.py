"""Elements that are kept in a file after the first pass: a checkpoint, as TensorFlow writes it.

The first pass writes the file as it goes, and publishes it at its end. The keys of the tensors are the numbers of element
and component: `      3_0`.

Source: FileDataset in TensorFlow core/kernels/data/cache_dataset_ops.cc.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from opkernel.checkpoint.bundle_reader import BundleReader
from opkernel.checkpoint.bundle_writer import BundleWriter
from opkernel.errors import FailedPreconditionError, NotFoundError
from opkernel.kernel import Step
from opkernel.ops.data.dataset import DatasetIterator, Element
from opkernel.ops.data.dataset_op import DatasetNode
from opkernel.ops.data.selections import SelectionDataset

_DIGITS = len(str(10_000_000 - 1))


class _FileCacheIterator(DatasetIterator):
    """Reads the file if there is one when the first element is asked for, and writes it otherwise.

    A pass that was restored while it wrote goes on without writing.
    """

    state = ("index", "input", "writes")

    def start(self) -> None:
        self.index = 0
        self.writes = False
        self.input: DatasetIterator | None = None
        self._reader: BundleReader | None = None
        self._writer: BundleWriter | None = None
        self._is_over = False

    def restored(self, step: Step) -> None:
        self.input = self.dataset.input.iterator()

    def next(self, step: Step) -> Element | None:
        if self._is_over:
            return None
        if self._reader is None and self.input is None:
            self._begin()
        if self._reader is not None:
            element = self._read(self._reader)
        else:
            assert self.input is not None
            element = self.input.next(step)
            self._write(element)
        self._is_over = element is None
        self.index += 1
        return element

    def _begin(self) -> None:
        try:
            self._reader = self.dataset.reader()
        except NotFoundError:
            if self.index:  # it was saved while it read
                raise FailedPreconditionError("The file of a cache is gone") from None
            self.input, self.writes = self.dataset.input.iterator(), True
            self._writer = self.dataset.writer()

    def _read(self, reader: BundleReader) -> Element | None:
        keys = self.dataset.keys(self.index)
        if not reader.has_tensor(keys[0]):
            return None
        return tuple([reader.get_tensor(key) for key in keys])

    def _write(self, element: Element | None) -> None:
        writer = self._writer
        if writer is None:
            return
        if element is None:
            writer.finish()
            self._writer = None
            return
        types = self.dataset.dtypes
        for key, tensor, dtype in zip(self.dataset.keys(self.index), element, types, strict=True):
            writer.add(key, tensor, dtype)

    def close(self) -> None:
        super().close()
        if self._writer is not None:
            self._writer.discard()
        if self._reader is not None:
            self._reader.close()


class FileCacheDataset(SelectionDataset):
    """The elements of another dataset, which are kept in a file.

    Args:
        node: The node.
        filename: What the names of the files begin with.
    """

    iterator_type = _FileCacheIterator

    def __init__(self, node: DatasetNode, filename: bytes) -> None:
        super().__init__(node)
        self._filename, self._permissions = filename, node.permissions
        width = len(str(max(len(self.dtypes) - 1, 0)))
        self._key = f"{{:{_DIGITS}}}_{{:{width}}}".format

    def keys(self, index: int) -> list[str]:
        """The keys of the components of the element of a number."""
        return [self._key(index, component) for component in range(len(self.dtypes))]

    def reader(self) -> Any:
        """Reads the file.

        Raises:
            NotFoundError: there is none.
            PermissionDeniedError: it may not be read.
        """
        return BundleReader(os.fsdecode(self._filename), self._permissions.open_to_read)

    def writer(self) -> Any:
        """Writes the file.

        Raises:
            PermissionDeniedError: it may not be written.
        """
        path = self._permissions.check_write(self._filename)
        return BundleWriter(path, open_place=partial(self._permissions.place_to_write, makes=1))

    def cardinality(self) -> int:
        return self.input.cardinality()
