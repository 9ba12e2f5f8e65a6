"""Elements in random order, the same for the same seeds as in TensorFlow; random numbers as elements.

A buffer is filled from the input. Each element is drawn from the part of the buffer that belongs to the oldest pass over
the input (a slice), and the first one of that slice takes its place.

Source: TensorFlow core/kernels/data/shuffle_dataset_op.cc, random_seed_ops.cc, random_dataset_op.cc.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel import (
    OpKernelContext,
    ResourceBase,
    Step,
    check_allocation,
    handle_from_input,
    lookup_resource,
)
from opkernel.ops.data.dataset import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    DatasetBase,
    DatasetIterator,
    Element,
    held,
)
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.data.handles import OwnedHandleOp, register_handle_ops
from opkernel.ops.data.random_numbers import RandomNumbers, SeedGenerator, seeds_of, system_seeds
from opkernel.types import DataType, PartialTensorShape

__all__ = ["RandomDataset", "ShuffleDataset"]

_MOST_SLICES = 3


class SeedGeneratorResource(ResourceBase):
    """A generator of seeds, for all datasets with its handle."""

    def __init__(self, generator: SeedGenerator) -> None:
        self.generator = generator


class AnonymousSeedGenerator(OwnedHandleOp):
    """Makes a generator of seeds."""

    resource_type = SeedGeneratorResource

    def create_resource(self, ctx: OpKernelContext) -> ResourceBase:
        node = [ctx.input(name).item() for name in ("seed", "seed2")]
        changes = ctx.num_inputs < 3 or bool(ctx.input("reshuffle"))
        seeds = (node[0], node[1]) if any(node) else system_seeds()
        return SeedGeneratorResource(SeedGenerator(seeds, changes=changes))


register_handle_ops(
    AnonymousSeedGenerator,
    made=("AnonymousSeedGenerator", "AnonymousRandomSeedGenerator"),
    dummies=("DummySeedGenerator",),
    deleted=("DeleteSeedGenerator", "DeleteRandomSeedGenerator"),
    what="generator of seeds",
)


def generator_of(node: DatasetNode, seeds: Any, *, changes: bool) -> SeedGenerator:
    """The generator of the handle, where the node has one that stands for something; else a new one."""
    if node.has_input("seed_generator"):
        handle = handle_from_input(node.tensor("seed_generator"))
        with (
            suppress(NotFoundError),
            lookup_resource(node.context, handle, SeedGeneratorResource) as resource,
        ):
            return resource.generator
    return SeedGenerator(seeds, changes=changes)


class _ShuffleIterator(DatasetIterator):
    state = ("numbers", "seeds_used", "buffer", "slices", "count", "epoch", "has_data", "input")

    def start(self) -> None:
        self._draw_anew()
        self.buffer: list[Element | None] = []
        self.slices = [[0, 0]]
        self.count = self.epoch = 0
        self.has_data = False
        self.input: DatasetIterator | None = None
        self._size: int = self.dataset.buffer_size

    def restored(self, step: Step) -> None:
        self.dataset.generator.go_to(self.seeds_used)
        if self.epoch:
            self.input = self.dataset.input.iterator()

    def next(self, step: Step) -> Element | None:
        self._fill(step)
        if not self.count:
            return None
        slices, buffer = self.slices, self.buffer
        while len(slices) > 1 and slices[0][0] == slices[0][1]:
            del slices[0]
            self._draw_anew()
        start, end = slices[0]
        index = (start + self.numbers.word() % (end - start)) % len(buffer)
        element = buffer[index]
        first = start % len(buffer)
        buffer[index], buffer[first] = buffer[first], None
        slices[0][0] += 1
        self.count -= 1
        return element

    def _draw_anew(self) -> None:
        """Begin with the random numbers of the next pass over the input."""
        generator = self.dataset.generator
        self.numbers, self.seeds_used = RandomNumbers(*generator.next()), generator.used

    def _fill(self, step: Step) -> None:
        while self._has_room():
            if self.input is None:
                self.epoch += 1
                if self.epoch > 1:
                    end = self.slices[-1][1]
                    self.slices.append([end, end])
                self.input = self.dataset.input.iterator()
            element = self.input.next(step)
            if element is not None:
                self._add(held(element))
                if not self.slices[-1][1] & 255:
                    step.check()
                    check_time("filling a buffer")
                continue
            self.input.close()
            self.input = None
            if not self.has_data and self.dataset.count < 0:
                self.epoch = -1  # it would go on for ever without an element
                return

    def _has_room(self) -> bool:
        if self.epoch < 0:
            return False
        if self.input is None and 0 <= self.dataset.count <= self.epoch:
            return False
        if len(self.slices) > _MOST_SLICES and self.count:
            return False
        return self._size < 0 or self.count < self._size

    def _add(self, element: Element) -> None:
        self.has_data = True
        end, buffer = self.slices[-1][1], self.buffer
        if len(buffer) < self._size or self._size < 0:
            buffer.append(element)
        else:
            buffer[end % len(buffer)] = element
        self.slices[-1][1] += 1
        self.count += 1


class ShuffledDataset(DatasetBase):
    """The elements of another dataset in random order, as often as `count` says."""

    iterator_type = _ShuffleIterator

    def __init__(self, node: DatasetNode, generator: SeedGenerator, count: int) -> None:
        source = node.dataset()
        super().__init__(source.dtypes, source.shapes, [source])
        self.generator, self.count = generator, count
        self.buffer_size: int = node.scalar("buffer_size")
        if self.buffer_size <= 0 and self.buffer_size != UNKNOWN_CARDINALITY:
            raise InvalidArgumentError(
                "buffer_size must be greater than zero or UNKNOWN_CARDINALITY"
            )

    def cardinality(self) -> int:
        size = self.input.cardinality()
        if self.count < 0 or size == INFINITE_CARDINALITY:
            return size and INFINITE_CARDINALITY
        return size * self.count if size >= 0 else size

    @cached_property
    def order(self) -> list[int]:
        """The numbers of the input's elements in the order of random access, which is the same for all passes."""
        size = self.input.cardinality()
        check_allocation((size,), DataType.DT_INT64)
        numbers, order = RandomNumbers(*self.generator.seeds), [*range(size)]
        for first in range(size):
            other = first + numbers.word() % (size - first)
            order[first], order[other] = order[other], order[first]
        return order


@dataset_op(
    "ShuffleDataset",
    "ShuffleDatasetV3",
    doc="The elements in random order: each is drawn from a buffer of `buffer_size` elements.",
)
class ShuffleDataset(ShuffledDataset):
    """The elements once; seeds follow from the inputs."""

    def __init__(self, node: DatasetNode) -> None:
        changes: bool = node.attr("reshuffle_each_iteration")
        super().__init__(node, generator_of(node, seeds_of(node), changes=changes), 1)


@dataset_op(
    "ShuffleDatasetV2",
    doc="The elements in random order: each is drawn from a buffer of `buffer_size` elements.",
)
class ShuffleDatasetV2(ShuffledDataset):
    """The elements once; seeds come from a generator."""

    def __init__(self, node: DatasetNode) -> None:
        handle = handle_from_input(node.tensor("seed_generator"))
        with lookup_resource(node.context, handle, SeedGeneratorResource) as resource:
            super().__init__(node, resource.generator, 1)


@dataset_op(
    "ShuffleAndRepeatDataset",
    "ShuffleAndRepeatDatasetV2",
    doc="The elements `count` times, each time in random order.",
)
class ShuffleAndRepeatDataset(ShuffledDataset):
    """The elements over and over."""

    def __init__(self, node: DatasetNode) -> None:
        changes: bool = node.attr("reshuffle_each_iteration")
        count = node.scalar("count")
        if count <= 0 and count != -1:
            raise InvalidArgumentError("count must be greater than zero or equal to -1.")
        super().__init__(node, generator_of(node, seeds_of(node), changes=changes), count)


class _RandomIterator(DatasetIterator):
    state = ("numbers", "seeds_used")

    def start(self) -> None:
        self.numbers = RandomNumbers(*self.dataset.generator.next())
        self.seeds_used = self.dataset.generator.used

    def restored(self, step: Step) -> None:
        self.dataset.generator.go_to(self.seeds_used)

    def next(self, step: Step) -> Element | None:
        return (np.int64(self.numbers.word()),)


@dataset_op(
    "RandomDataset",
    "RandomDatasetV2",
    "ExperimentalRandomDataset",
    doc="Random numbers from 0 to 2^32, without end.",
)
class RandomDataset(DatasetBase):
    """Random numbers."""

    iterator_type = _RandomIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node.dtypes, [PartialTensorShape([])])
        changes: bool = node.attr("rerandomize_each_iteration", False)
        self.generator = generator_of(node, seeds_of(node), changes=changes)
        if [dtype.numpy_dtype for dtype in self.dtypes] != [np.int64]:
            raise InvalidArgumentError("RandomDataset gives one int64")

    def cardinality(self) -> int:
        return INFINITE_CARDINALITY
