"""Iterators in graphs of TensorFlow 1, which begin when an operation runs.

Source: make_initializable_iterator in TensorFlow python/data/ops/dataset_ops.py.
"""

from __future__ import annotations

from opkernel.data.dataset import Dataset
from opkernel.data.iteration import Iterator
from opkernel.data.structure import element_packer
from opkernel.data.structured_function import call_op
from opkernel.graph.core.default_graph import get_default_graph


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """An iterator over a dataset of a graph; run its `initializer` first."""
    spec = dataset.element_spec
    with get_default_graph().as_default():
        handle = call_op("IteratorV2", shared_name=shared_name or "", container="", spec=spec)
        initializer = call_op("MakeIterator", dataset=dataset.variant_tensor, iterator=handle)
    return Iterator(handle, initializer, spec, element_packer(spec, Dataset))
