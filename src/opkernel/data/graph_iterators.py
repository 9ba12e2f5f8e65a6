"""Iterators in graphs of TensorFlow 1: an operation lets them begin, and a tensor is the next element.

Source: TensorFlow python/data/ops/iterator_ops.py (Iterator, make_initializable_iterator).
"""

from __future__ import annotations

from typing import Any

from opkernel.data.dataset import Dataset
from opkernel.data.structure import element_packer
from opkernel.data.structured_function import call_op
from opkernel.graph import Operation
from opkernel.graph.core.default_graph import get_default_graph


class Iterator:
    """An iterator of a graph.

    Attributes:
        initializer: The operation that lets it begin.
        element_spec: The spec of the elements.
    """

    def __init__(self, handle: Any, initializer: Operation | None, element_spec: Any) -> None:
        self._handle = handle
        self._initializer = initializer
        self.element_spec = element_spec

    @property
    def initializer(self) -> Operation:
        """The operation that lets it begin.

        Raises:
            ValueError: it begins by itself.
        """
        if self._initializer is None:
            raise ValueError("Iterator does not have an initializer.")
        return self._initializer

    def get_next(self, name: str | None = None) -> Any:
        """The next element, as tensors; at the end, running them raises an OutOfRangeError."""
        spec = self.element_spec
        tensors = call_op("IteratorGetNext", iterator=self._handle, spec=spec)
        return element_packer(spec, Dataset)(tensors)


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """An iterator over a dataset of a graph; run its `initializer` first."""
    spec = dataset.element_spec
    with get_default_graph().as_default():
        handle = call_op("IteratorV2", shared_name=shared_name or "", container="", spec=spec)
        initializer = call_op("MakeIterator", dataset=dataset.variant_tensor, iterator=handle)
    return Iterator(handle, initializer, spec)
