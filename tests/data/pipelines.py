"""Pipelines drawn at random, of up to six stages, from TensorFlow's or opkernel's `data`: the same for the same seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from opkernel.data import DatasetIterator
from opkernel.ops.data import read_ahead
from opkernel.types import variant_from_proto

_MOST_ELEMENTS, _MOST_ERRORS = 60, 7
AT_ONCE, NEVER = -1.0, math.inf
"""Seconds for `threads_after`."""


class Drawing:
    """The stages, in terms of a library: `opkernel` or `tensorflow`."""

    def __init__(self, library: Any, seed: int) -> None:
        self.library, self.random = library, random.Random(seed)
        self.datasets = library.data.Dataset
        library.random.set_seed(seed + 1)

    def number(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def source(self) -> Any:
        datasets, number = self.datasets, self.number
        kind = number(0, 3)
        if kind == 0:
            return datasets.range(number(0, 13))
        if kind == 1:
            return datasets.range(
                number(-5, 5), number(-5, 14), self.random.choice([-2, -1, 1, 2, 3])
            )
        if kind == 2:
            values = [number(0, 8) for _ in range(number(1, 8))]
            return datasets.from_tensor_slices(np.array(values, np.int64))
        return datasets.from_tensors(np.int64(number(0, 8))).repeat(number(1, 5))

    def pipeline(self) -> tuple[list[str], Any]:
        """The names of its stages, and the pipeline."""
        dataset, names = self.source(), []
        for _ in range(self.number(1, 6)):
            name = self.random.choice(sorted(STAGES))
            rank = dataset.element_spec.shape.rank
            if (rank is None and name == "padded") or (rank != 0 and name == "unique"):
                continue
            if rank == 0 and name in ("unbatch", "rebatch"):
                continue
            names.append(name)
            dataset = STAGES[name](self, dataset)
        return names, dataset

    def sum(self, x: Any) -> Any:
        return self.library.reduce_sum(x)

    def failing(self, x: Any, at: int) -> Any:
        """The element, unless the sum of its numbers is `at`."""
        tf = self.library
        quotient = 1.0 / tf.cast(self.sum(x) - at, tf.float32)
        checked = tf.raw_ops.CheckNumerics(tensor=quotient, message="failed")
        return x + tf.cast(checked, tf.int64) * 0


def _scaled(d: Drawing, x: Any) -> Any:
    factor, calls = d.number(1, 3), d.random.choice([None, 1, 2])
    return x.map(lambda one: one * factor + 1, num_parallel_calls=calls)


def _filtered(d: Drawing, x: Any) -> Any:
    divisor = d.number(2, 3)
    return x.filter(lambda one: d.library.equal(d.sum(one) % divisor, 0))


def _batched(d: Drawing, x: Any) -> Any:
    return x.batch(
        d.number(1, 4),
        d.random.choice([False, True]),
        num_parallel_calls=d.random.choice([None, 2]),
    )


def _interleaved(d: Drawing, x: Any) -> Any:
    cycle, block, calls = d.number(1, 4), d.number(1, 3), d.random.choice([None, 1, -1])
    if d.number(0, 1):
        return x.interleave(
            lambda one: d.datasets.range(d.sum(one) % 4), cycle, block, num_parallel_calls=calls
        )
    count = d.number(1, 3)
    repeated = lambda one: d.datasets.from_tensors(one).repeat(count)  # noqa: E731  # short
    return x.interleave(repeated, cycle, block, num_parallel_calls=calls)


def _windows(d: Drawing, x: Any) -> Any:
    windows = x.window(
        d.number(1, 3), d.number(1, 4), d.number(1, 3), d.random.choice([False, True])
    )
    is_batched = d.number(0, 1)
    return windows.flat_map(lambda one: one.batch(3) if is_batched else one)


def _grouped(d: Drawing, x: Any) -> Any:
    divisor, size = d.number(2, 3), d.number(1, 3)
    return x.group_by_window(lambda one: d.sum(one) % divisor, lambda _, w: w.take(2), size)


def _taken_while(d: Drawing, x: Any) -> Any:
    limit = d.number(3, 11)
    return x.take_while(lambda one: d.sum(one) < limit)


def _failing(d: Drawing, x: Any) -> Any:
    at = d.number(3, 11)
    return x.map(lambda one: d.failing(one, at))


def _repeated_each(d: Drawing, x: Any) -> Any:
    count = d.number(1, 3)
    return x.flat_map(lambda one: d.datasets.from_tensors(one).repeat(count))


def _sharded(d: Drawing, x: Any) -> Any:
    count = d.number(1, 3)
    return x.shard(count, d.number(0, count - 1))


STAGES: dict[str, Callable[[Drawing, Any], Any]] = {
    "batch": _batched,
    "cache": lambda d, x: x.cache(),
    "concatenate": lambda d, x: x.concatenate(x.map(lambda one: one * 2)),
    "enumerate": lambda d, x: x.enumerate(d.number(0, 2)).map(lambda i, one: i + one),
    "failing": _failing,
    "filter": _filtered,
    "flat_map": _repeated_each,
    "group_by_window": _grouped,
    "ignore_errors": lambda d, x: x.ignore_errors(),
    "interleave": _interleaved,
    "map": _scaled,
    "padded": lambda d, x: x.padded_batch(
        d.number(1, 3), [None] * x.element_spec.shape.rank, np.int64(-1)
    ),
    "prefetch": lambda d, x: x.prefetch(d.number(0, 2)),
    "rebatch": lambda d, x: x.rebatch(
        d.random.choice([1, 2, 3, [2, 1], [3, 0, 1]]), d.random.choice([False, True])
    ),
    "repeat": lambda d, x: x.repeat(d.number(0, 3)),
    "scan": lambda d, x: x.scan(np.int64(1), lambda s, one: ((s + d.sum(one)) % 7, one + s)),
    "shard": _sharded,
    "shuffle": lambda d, x: x.shuffle(
        d.number(1, 8), d.number(1, 98), d.random.choice([None, False, True])
    ),
    "skip": lambda d, x: x.skip(d.number(-1, 4)),
    "take": lambda d, x: x.take(d.number(-1, 8)),
    "take_while": _taken_while,
    "unbatch": lambda d, x: x.unbatch(),
    "unique": lambda d, x: x.unique(),
    "window": _windows,
    "zip": lambda d, x: d.datasets.zip((x, x.skip(1))).map(lambda one, _: one),
}


def outcomes(elements: Any, errors: Any, most: int = _MOST_ELEMENTS) -> list[Any]:
    """Elements as lists, the names of errors, and END, in order; END stands twice where elements follow it."""
    found: list[Any] = []
    while len(found) < most and sum(isinstance(one, str) for one in found) < _MOST_ERRORS:
        try:
            found.append(np.asarray(next(elements)).tolist())
        except StopIteration:
            return [*found, "END", *_after_end(elements, errors)]
        except errors.OpError as error:
            found.append(type(error).__name__)
    return found


def _after_end(elements: Any, errors: Any) -> list[Any]:
    """What a pass gives that is over: nothing, or what two further calls give."""
    found: list[Any] = []
    for _ in range(2):
        try:
            found.append(np.asarray(next(elements)).tolist())
        except StopIteration:
            found.append("END")
        except errors.OpError as error:
            found.append(type(error).__name__)
    return [] if found == ["END", "END"] else found


@contextmanager
def threads_after(seconds: float) -> Iterator[None]:
    """Within the block, opkernel's threads start once two elements in a row took so many seconds."""
    before = read_ahead._WORTHWHILE_S
    read_ahead._WORTHWHILE_S = seconds
    try:
        yield
    finally:
        read_ahead._WORTHWHILE_S = before


class Account(NamedTuple):
    """What two passes over a pipeline give, in one of the libraries.

    Attributes:
        names: The stages of the pipeline.
        cardinality: As the dataset tells it.
        head: The beginning of the first pass.
        rest: The rest of it.
        restored: The rest again, from the state that was saved in the middle; None where it cannot be saved.
        second: The second pass.
    """

    names: list[str]
    cardinality: int
    head: list[Any]
    rest: list[Any]
    restored: list[Any] | None
    second: list[Any]


def account(library: Any, seed: int) -> Account:
    """Draw a pipeline, pass over it twice, and save and restore the first pass in the middle."""
    drawing = Drawing(library, seed)
    names, dataset = drawing.pipeline()
    cardinality = int(dataset.cardinality())
    dataset = as_written(library, dataset)
    elements, errors = iter(dataset), library.errors
    head = outcomes(elements, errors, drawing.number(0, 11))
    state = _saved(elements, errors)
    rest, second = outcomes(elements, errors), outcomes(iter(dataset), errors)
    restored = None
    if state is not None:
        _restore(elements, state)
        restored = outcomes(elements, errors)
    return Account(names, cardinality, head, rest, restored, second)


def passes(library: Any, stage: str, seed: int) -> list[list[Any]]:
    """Three passes over a stage whose input has a new order in each.

    `outcomes` asks again after the end. A stage that then asks its input takes the seeds of the next pass from it.
    """
    drawing = Drawing(library, seed)
    dataset = drawing.datasets.range(6).shuffle(4, 7, True)
    if stage in ("rebatch", "unbatch"):
        dataset = dataset.batch(2)
    dataset = as_written(library, STAGES[stage](drawing, dataset.repeat(2)))
    return [outcomes(iter(dataset), library.errors) for _ in range(3)]


def as_written(library: Any, dataset: Any) -> Any:
    """The pipeline; TensorFlow joins no stages."""
    if library.__name__ != "tensorflow":
        return dataset
    options = library.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def _saved(elements: Any, errors: Any) -> Any:
    if isinstance(elements, DatasetIterator):
        return variant_from_proto(elements.save().to_proto())
    try:
        return elements._save()
    except errors.OpError:
        return None


def _restore(elements: Any, state: Any) -> None:
    if isinstance(elements, DatasetIterator):
        elements.restore(state)
    else:
        elements._restore(state)
