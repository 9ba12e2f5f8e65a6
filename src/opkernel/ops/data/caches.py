"""Elements that are kept in memory or in a file after the first pass.

A pass that comes to its end leaves its elements to the later ones; a pass that is given up before leaves nothing.

Source: TensorFlow core/kernels/data/cache_dataset_ops.cc, cache_ops.cc.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from opkernel.errors import NotFoundError
from opkernel.kernel import OpKernelContext, ResourceBase, Step, handle_from_input, lookup_resource
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, Element, held
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.data.file_caches import FileCacheDataset
from opkernel.ops.data.handles import OwnedHandleOp, register_handle_ops
from opkernel.ops.data.selections import SelectionDataset
from opkernel.ops.data.sources import IndexIterator
from opkernel.ops.resource_op_kernel import kept

__all__ = ["cache_dataset"]


class MemoryCache(ResourceBase):
    """The elements of a dataset; None before a pass has come to its end. Used from any thread."""

    def __init__(self) -> None:
        self._elements: list[Element] | None = None
        self._lock = threading.Lock()

    @property
    def elements(self) -> list[Element] | None:
        """The elements."""
        return self._elements

    def complete(self, elements: list[Element]) -> None:
        """Keep the elements, unless others came first."""
        with self._lock:
            if self._elements is None:
                self._elements = elements


class AnonymousMemoryCache(OwnedHandleOp):
    """Makes a cache."""

    resource_type = MemoryCache

    def create_resource(self, ctx: OpKernelContext) -> ResourceBase:
        return MemoryCache()


register_handle_ops(
    AnonymousMemoryCache,
    made=("AnonymousMemoryCache",),
    dummies=("DummyMemoryCache",),
    deleted=("DeleteMemoryCache",),
    what="cache in memory",
)


class _Cached(IndexIterator):
    """Gives the elements of a cache."""

    def start(self) -> None:
        self.index = 0
        self._count = len(self.dataset.cache.elements)


class _CacheIterator(DatasetIterator):
    """Reads the cache if it is filled when the pass begins, and fills it otherwise."""

    state = ("input", "reader", "elements", "is_over")

    def start(self) -> None:
        self.is_over = False
        self.elements: list[Element] = []
        self.input: DatasetIterator | None = None
        self.reader: DatasetIterator | None = None
        if self.dataset.cache.elements is None:
            self.input = self.dataset.input.iterator()
        else:
            self.reader = _Cached(self.dataset)

    def restored(self, step: Step) -> None:
        if self.input is None:
            self.input = self.dataset.input.iterator()

    def next(self, step: Step) -> Element | None:
        if self.reader is not None:
            return self.reader.next(step)
        element = None if self.is_over or self.input is None else self.input.next(step)
        if element is None:
            self.is_over = True
            self.dataset.cache.complete(self.elements)
            return None
        element = held(tuple(map(kept, element)))
        self.elements.append(element)
        return element


class MemoryCacheDataset(SelectionDataset):
    """The elements of another dataset, which are kept in memory."""

    iterator_type = _CacheIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.cache = _cache_of(node)

    def at(self, index: int) -> Any:
        """The element of a number, once the cache is filled."""
        elements = self.cache.elements
        assert elements is not None
        return elements[index]

    def cardinality(self) -> int:
        return self.input.cardinality()


@dataset_op(
    "CacheDataset",
    "CacheDatasetV2",
    doc="The elements, which are computed in the first pass only: kept in a file, or without a name in memory.",
    traits="reads_files writes_files",
)
def cache_dataset(node: DatasetNode) -> DatasetBase:
    """The dataset that keeps elements in a file or in memory."""
    filename: bytes = node.scalar("filename")
    return FileCacheDataset(node, filename) if filename else MemoryCacheDataset(node)


def _cache_of(node: DatasetNode) -> MemoryCache:
    """The cache of the handle, where that stands for something; else a new one."""
    if node.has_input("cache"):
        handle = handle_from_input(node.tensor("cache"))
        with (
            suppress(NotFoundError),
            lookup_resource(node.context, handle, MemoryCache) as resource,
        ):
            return resource
    return MemoryCache()
