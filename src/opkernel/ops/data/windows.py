"""Datasets of datasets: windows over the elements, and groups of elements by a key.

Source: TensorFlow core/kernels/data/window_dataset_op.cc, window_dataset.cc,
experimental/group_by_window_dataset_op.cc, group_by_reducer_dataset_op.cc, sliding_window_dataset_op.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError, OpError
from opkernel.escaping import json_text, json_value
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, Step
from opkernel.ops.data.batches import batch_of
from opkernel.ops.data.dataset import (
    UNKNOWN_CARDINALITY,
    DatasetBase,
    DatasetIterator,
    Element,
    InputIterator,
    KeysInMemory,
    held,
)
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op, declare
from opkernel.ops.data.sources import IndexIterator
from opkernel.ops.registration import register_kernel
from opkernel.proto import VariantTensorDataProto
from opkernel.types import (
    DataType,
    PartialTensorShape,
    object_scalar,
    register_variant_decoder,
    tensor_from_proto,
    tensor_to_proto,
)

__all__ = ["GroupByReducerDataset", "GroupByWindowDataset", "SlidingWindowDataset", "WindowDataset"]


class WindowElements(DatasetBase):
    """A dataset of elements that are there."""

    iterator_type = IndexIterator

    def __init__(
        self,
        elements: Sequence[Element],
        dtypes: Sequence[DataType],
        shapes: Sequence[PartialTensorShape],
    ) -> None:
        super().__init__(dtypes, shapes)
        self._elements = elements

    def cardinality(self) -> int:
        return len(self._elements)

    def at(self, index: int) -> Element:
        """The element of a number."""
        return self._elements[index]

    def to_proto(self) -> VariantTensorDataProto:
        """The elements as they stand in a file: tensors in a row, and what they are."""
        shapes = [None if shape.rank is None else shape.as_list() for shape in self.shapes]
        facts = {"types": [int(dtype) for dtype in self.dtypes], "shapes": shapes}
        tensors = [
            tensor_to_proto(tensor, dtype)
            for element in self._elements
            for tensor, dtype in zip(element, self.dtypes, strict=True)
        ]
        return VariantTensorDataProto(
            type_name=_TYPE_NAME, metadata=json_text(facts).encode(), tensors=tensors
        )

    @classmethod
    def from_proto(cls, proto: VariantTensorDataProto) -> WindowElements:
        """The dataset that stands in a file.

        Raises:
            InvalidArgumentError: it is malformed.
        """
        try:
            facts = json_value(proto.metadata)
            dtypes = [DataType(number) for number in facts["types"]]
            shapes = [PartialTensorShape(shape) for shape in facts["shapes"]]
            tensors = [tensor_from_proto(tensor) for tensor in proto.tensors]
            rows = zip(*[iter(tensors)] * len(dtypes), strict=True)
            return cls([*rows], dtypes, shapes)
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidArgumentError(f"A window of elements is malformed: {error}") from error


_TYPE_NAME = "opkernel::WindowElements"
register_variant_decoder(_TYPE_NAME, WindowElements.from_proto)


class _WindowIterator(InputIterator):
    state = ("input", "buffer", "is_over")

    def start(self) -> None:
        super().start()
        self.buffer: list[Element | OpError] = []
        self.is_over = False

    def next(self, step: Step) -> Element | None:
        dataset, buffer = self.dataset, self.buffer
        wanted = (dataset.size - 1) * dataset.stride + 1
        self._read(step, wanted - len(buffer))
        if not buffer or (len(buffer) < wanted and dataset.drops_rest):
            return None
        window = buffer[: wanted : dataset.stride]
        failure = next((one for one in window if isinstance(one, OpError)), None)
        left_out = dataset.shift - len(buffer)
        del buffer[: dataset.shift]
        if left_out > 0:
            self._read(step, left_out)
            buffer.clear()
        if failure is not None:
            raise failure
        found: Element = dataset.window(window)
        return found

    def _read(self, step: Step, count: int) -> None:
        if self.is_over or count <= 0:
            return
        for _ in range(count):
            step.check()
            check_time("filling a window")
            try:
                element = self.input.next(step)
            except OpError as error:  # it fails the windows that it belongs to
                self.buffer.append(error)
                continue
            if element is None:
                self.is_over = True
                return
            self.buffer.append(held(element))


def _positive(node: DatasetNode, prefix: str, name: str) -> int:
    value: int = node.scalar(prefix + name)
    if value <= 0:
        raise InvalidArgumentError(f"Window {name} must be greater than zero.")
    return value


class WindowedDataset(DatasetBase):
    """Windows over the elements of another dataset."""

    iterator_type = _WindowIterator

    def __init__(
        self, node: DatasetNode, prefix: str, shapes: Sequence[PartialTensorShape], is_nested: bool
    ) -> None:
        source = node.dataset()
        self.size = _positive(node, prefix, "size")
        self.shift = _positive(node, prefix, "shift")
        self.stride = _positive(node, prefix, "stride")
        dtypes = [DataType.DT_VARIANT] * len(source.dtypes) if is_nested else source.dtypes
        super().__init__(dtypes, shapes, [source])
        self.drops_rest = True

    def cardinality(self) -> int:
        size = self.input.cardinality()
        if size < 0:
            return size
        if not self.drops_rest:
            return -(-size // self.shift)
        return self.whole_windows(size)

    def whole_windows(self, size: int) -> int:
        """How many windows of a dataset of a size are whole."""
        rest = size - ((self.size - 1) * self.stride + 1)
        return 0 if rest < 0 else rest // self.shift + 1


@dataset_op(
    "WindowDataset",
    doc="Datasets of `size` elements that are `stride` apart; each begins `shift` elements after the last.",
)
class WindowDataset(WindowedDataset):
    """Windows as datasets, one for each component."""

    def __init__(self, node: DatasetNode) -> None:
        count = len(node.dataset().dtypes)
        super().__init__(node, "", [PartialTensorShape([])] * count, True)
        self.drops_rest = node.scalar("drop_remainder")

    def window(self, elements: Sequence[Element]) -> Element:
        """The datasets of the components of elements."""
        source = self.input
        parts = []
        for i, (dtype, shape) in enumerate(zip(source.dtypes, source.shapes, strict=True)):
            rows = [(element[i],) for element in elements]
            parts.append(object_scalar(WindowElements(rows, [dtype], [shape])))
        return tuple(parts)


@dataset_op(
    "SlidingWindowDataset",
    "ExperimentalSlidingWindowDataset",
    doc="Batches of `window_size` elements that are `window_stride` apart.",
)
class SlidingWindowDataset(WindowedDataset):
    """Windows as batches."""

    def __init__(self, node: DatasetNode) -> None:
        shapes = [PartialTensorShape([None]).concatenate(s) for s in node.dataset().shapes]
        super().__init__(node, "window_", shapes, False)
        self.drops_rest = node.attr("drop_remainder", True)

    def whole_windows(self, size: int) -> int:
        """At least as many as there are, as TensorFlow says."""
        return size // self.shift

    def window(self, elements: Sequence[Element]) -> Element:
        """The batch of elements."""
        return batch_of(elements, self.dtypes)


declare("WindowOp", doc="A dataset whose only element is `inputs`.")


@register_kernel("WindowOp")
class WindowOp(OpKernel):
    """Gives a dataset of its inputs, as windows are."""

    forwards_inputs = True

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._dtypes: list[DataType] = construction.get_attr("output_types")
        self._shapes: list[PartialTensorShape] = construction.get_attr("output_shapes")

    def compute(self, ctx: OpKernelContext) -> None:
        """Make the dataset."""
        tensors = tuple(ctx.own_input(index) for index in range(ctx.num_inputs))
        width = len(self._dtypes)
        if not width or len(tensors) % width:
            raise InvalidArgumentError("The inputs do not make whole elements of `output_types`")
        elements = [tensors[i : i + width] for i in range(0, len(tensors), width)]
        window = WindowElements(elements, self._dtypes, self._shapes)
        ctx.set_output(0, object_scalar(window))


_KEY = "`key_func` must return a scalar int64."


class _GroupByWindowIterator(InputIterator):
    state = ("input", "groups", "sizes", "flushed", "current", "is_over")

    def start(self) -> None:
        super().start()
        self.groups: dict[int, list[Element]] = {}
        self.sizes: dict[int, int] = {}
        self._keys = KeysInMemory()
        self.flushed: Any = None
        self.current: DatasetIterator | None = None
        self.is_over = False

    def restored(self, step: Step) -> None:
        self._keys = KeysInMemory(self.sizes)
        if self.flushed is not None:
            self.current = self.dataset.reduced(step, *self.flushed)

    def next(self, step: Step) -> Element | None:
        while True:
            if self.current is not None:
                element = self.current.next(step)
                if element is not None:
                    return element
                self.current.close()
                self.current = self.flushed = None
            key = None if self.is_over else self._full_group(step)
            if key is None:
                if not self.groups:
                    return None
                key = min(self.groups)
            group = self.groups.pop(key)
            self.current = self.dataset.reduced(step, key, group)
            self.flushed = (key, group)

    def _full_group(self, step: Step) -> int | None:
        dataset = self.dataset
        for element in self.inputs(step, "grouping elements"):
            key = dataset.key_func.number(step, element, _KEY)
            if key not in self.sizes:
                self._keys.add(key)
                self.sizes[key] = dataset.size_of(step, key)
            group = self.groups.setdefault(key, [])
            group.append(held(element))
            if len(group) == self.sizes[key]:
                return int(key)
        self.is_over = True
        return None


@dataset_op(
    "GroupByWindowDataset",
    "ExperimentalGroupByWindowDataset",
    doc="The elements of the datasets that `reduce_func` makes of windows of elements with one key.",
)
class GroupByWindowDataset(DatasetBase):
    """What a function makes of windows of elements with the same key."""

    iterator_type = _GroupByWindowIterator

    def __init__(self, node: DatasetNode) -> None:
        source = node.dataset()
        super().__init__(node.dtypes, node.shapes, [source])
        key, window = [DataType.DT_INT64], [DataType.DT_INT64, DataType.DT_VARIANT]
        self.key_func = node.function("key_func", "key_func_other_arguments", source.dtypes)
        self.reduce_func = node.function("reduce_func", "reduce_func_other_arguments", window)
        self.size_func = node.function("window_size_func", "window_size_func_other_arguments", key)

    def size_of(self, step: Step, key: int) -> int:
        """The size of the windows of a key."""
        message = "`window_size_func` must return a scalar int64."
        size = self.size_func.number(step, (np.int64(key),), message)
        if size <= 0:
            raise InvalidArgumentError(f"Window size must be greater than zero, but got {size}.")
        return size

    def reduced(self, step: Step, key: int, elements: Sequence[Element]) -> DatasetIterator:
        """A pass over what becomes of a window."""
        window = WindowElements(elements, self.input.dtypes, self.input.shapes)
        dataset = self.reduce_func.dataset(step, (np.int64(key), object_scalar(window)))
        if dataset.dtypes != self.dtypes:
            raise InvalidArgumentError(f"`reduce_func` gives {dataset}, and should give {self}")
        return dataset.iterator()


class _GroupByReducerIterator(InputIterator):
    state = ("input", "states", "keys")

    def start(self) -> None:
        super().start()
        self.states: dict[int, Element] = {}
        self.keys: list[int] | None = None

    def next(self, step: Step) -> Element | None:
        dataset = self.dataset
        if self.keys is None:
            for element in self.inputs(step, "grouping elements"):
                key = dataset.key_func.number(step, element, _KEY)
                if key not in self.states:
                    self.states[key] = dataset.init_func(step, (np.int64(key),))
                self.states[key] = dataset.reduce_func(step, self.states[key] + element)
            self.keys = sorted(self.states, reverse=True)
        if not self.keys:
            return None
        found: Element = dataset.finalize_func(step, self.states[self.keys.pop()])
        return found


@dataset_op(
    "GroupByReducerDataset",
    "ExperimentalGroupByReducerDataset",
    doc="One element for each key: what `reduce_func` and `finalize_func` make of all elements with it.",
)
class GroupByReducerDataset(DatasetBase):
    """What functions make of all elements with the same key."""

    iterator_type = _GroupByReducerIterator

    def __init__(self, node: DatasetNode) -> None:
        source = node.dataset()
        super().__init__(node.dtypes, node.shapes, [source])
        captured = "{}_other_arguments".format
        self.key_func = node.function("key_func", captured("key_func"), source.dtypes)
        self.init_func = node.function("init_func", captured("init_func"), [DataType.DT_INT64])
        state = self.init_func.gives
        takes = (*state, *source.dtypes)
        self.reduce_func = node.function("reduce_func", captured("reduce_func"), takes, state)
        self.finalize_func = node.function(
            "finalize_func", captured("finalize_func"), state, self.dtypes
        )

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY
