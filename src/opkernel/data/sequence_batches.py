"""The methods that make batches of sequences of different lengths.

Source: bucket_by_sequence_length in TensorFlow python/data/ops/dataset_ops.py; python/data/ops/sparse_batch_op.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from opkernel import raw_ops
from opkernel.data.batch_specs import known_sizes, shapes_to_pad_to, size_vector
from opkernel.data.batches import Batches
from opkernel.data.component_specs import SparseTensorSpec
from opkernel.data.structure import (
    checked_function,
    flag_of,
    int64_of,
    number_of,
)
from opkernel.endpoints import array, math
from opkernel.graph import Tensor, TensorSpec
from opkernel.graph.core.default_graph import innermost_default
from opkernel.graph.tracing.nested_structure import packer
from opkernel.messages import short_repr
from opkernel.types import DataType


class SequenceBatches(Batches):
    """The methods."""

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Batches of elements whose lengths are in one bucket, padded to equal shapes.

            batches = words.bucket_by_sequence_length(lambda word: opkernel.shape(word)[0], [3, 5], [8, 4, 2])

        Args:
            element_length_func: Gives the length of an element, an int32.
            bucket_boundaries: The lengths at which the second bucket and those after it begin, in order.
            bucket_batch_sizes: How many elements a batch of each bucket has: one more than there are boundaries.
            padded_shapes: As for `padded_batch`.
            padding_values: As for `padded_batch`.
            pad_to_bucket_boundary: Whether dimensions of unknown size are padded to one less than the bucket's end,
                where else they are padded to the largest of the batch. No element may be in the last bucket.
            no_padding: Whether nothing is padded, because all elements of a bucket have one shape.
            drop_remainder: Whether smaller last batches are left out.
            name: Ignored.

        Raises:
            ValueError: there are more or fewer batch sizes than buckets.
            InvalidArgumentError: an element is in the last bucket, whose end it would be padded to.
        """
        checked_function(element_length_func)
        to_the_end, is_alike = flag_of(pad_to_bucket_boundary), flag_of(no_padding)
        bounds, sizes = _numbers(bucket_boundaries), _numbers(bucket_batch_sizes)
        if len(sizes) != len(bounds) + 1:
            raise ValueError(
                "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but "
                f"`len(bucket_batch_sizes)={len(sizes)}` and `len(bucket_boundaries)={len(bounds)}`."
            )

        def batches(bucket: Any, elements: Any) -> Any:
            size = array.gather(sizes, bucket)
            if is_alike:
                return elements.batch(size, drop_remainder)
            shapes = padded_shapes
            if to_the_end:
                shapes = _filled(self.element_spec, shapes, _last_length(bounds, bucket))
            return elements.padded_batch(size, shapes, padding_values, drop_remainder)

        return self.group_by_window(
            lambda *parts: _bucket(bounds, element_length_func(*parts)),
            batches,
            window_size_func=lambda bucket: array.gather(sizes, bucket),
        )

    def sparse_batch(self, batch_size: Any, row_shape: Any, name: str | None = None) -> Self:
        """Batches of tensors of different shapes as sparse tensors: `rows.sparse_batch(4, [None])`.

        Args:
            batch_size: How many elements; the last batch may be smaller.
            row_shape: The shape of the rows of a batch; where it is None or -1, that of the largest.
            name: Ignored.

        Raises:
            TypeError: the elements are no single tensors.
            ValueError: the rank of the rows is not known.
            DataLossError: an element is larger than a row.
            InvalidArgumentError: an element has another rank, or the size of batches is not positive.
        """
        element = self.element_spec
        if not isinstance(element, TensorSpec):
            raise TypeError(f"sparse_batch takes datasets of single tensors, not of {element}")
        (sizes,) = shapes_to_pad_to(element, row_shape)
        return self._with(
            "DenseToSparseBatchDataset",
            spec=SparseTensorSpec([None, *known_sizes(sizes)], element.dtype),
            batch_size=int64_of(batch_size),
            row_shape=size_vector(sizes),
        )


def _numbers(given: Any) -> Any:
    """Integers as an int64 vector."""
    numbers = int64_of(given)
    if isinstance(numbers, Tensor) or numbers.ndim != 1:
        raise TypeError(f"A list of integers is needed, not {short_repr(given)}")
    return numbers


def _bucket(bounds: Any, length: Any) -> Any:
    """The number of the first bucket that a length is in."""
    length = number_of(length, DataType.DT_INT32)
    limits = np.iinfo(np.int32)
    ends = bounds.astype(np.int32)
    is_in = math.logical_and(
        math.less_equal(np.append(np.int32(limits.min), ends), length),
        math.less(length, np.append(ends, np.int32(limits.max))),
    )
    return math.reduce_min(raw_ops.Where(condition=is_in))


def _last_length(bounds: Any, bucket: Any) -> Any:
    """The greatest length of a bucket; at run time an InvalidArgumentError for the last one, which has none."""
    message = (
        "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries)."
    )
    check = raw_ops.Assert(condition=math.less(bucket, len(bounds)), data=[np.array(message)])
    graph = innermost_default()
    assert graph is not None
    with graph.control_dependencies([check]):
        return array.gather(bounds - 1, array.identity(bucket))


def _filled(spec: Any, given: Any, filler: Any) -> Any:
    """The shapes to pad to, with a tensor for each size that is not known."""
    shapes = shapes_to_pad_to(spec, given)
    return packer(spec)([[filler if size is None else size for size in one] for one in shapes])
