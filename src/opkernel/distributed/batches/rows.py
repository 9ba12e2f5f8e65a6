"""Rows of data sets, and the batches that they are cut into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.records import dataclass

Array = np.ndarray[Any, Any]


class Rows(Protocol):
    """Rows that one mapping, file or folder has; a process that gets them reads them itself.

    Attributes:
        are_files: Whether each row is a file of its own, so that one may be bad and the others good.
    """

    are_files: ClassVar[bool]

    def __len__(self) -> int: ...

    def part(self, start: int, stop: int) -> Rows:
        """Some of the rows, which are not read yet."""
        ...

    def read(self) -> Mapping[str, Any]:
        """The inputs by name; the first axes count the rows.

        Raises:
            OpError: a file cannot be read.
        """
        ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows of arrays in memory, by the names of inputs."""

    arrays: Mapping[str, Array]
    are_files: ClassVar[bool] = False

    def __len__(self) -> int:
        return number_of_rows({name: len(array) for name, array in self.arrays.items()})

    def part(self, start: int, stop: int) -> ArrayRows:
        """Some of the rows, in the same memory."""
        return ArrayRows({name: array[start:stop] for name, array in self.arrays.items()})

    def read(self) -> Mapping[str, Array]:
        """The arrays."""
        return self.arrays


def number_of_rows(lengths: Mapping[str, int]) -> int:
    """The length that all inputs have.

    Raises:
        InvalidArgumentError: they differ.
    """
    if len({*lengths.values()}) > 1:
        told = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise InvalidArgumentError(f"The inputs have different numbers of rows: {told}")
    return next(iter(lengths.values()), 0)


@dataclass(frozen=True)
class Batch:
    """Rows that the model gets at once.

    Attributes:
        number: how many batches come before.
        first_row: how many rows come before.
        rows: the rows.
    """

    number: int
    first_row: int
    rows: Rows


def cut(chunks: Iterable[Rows], batch_size: int) -> Iterator[Batch]:
    """The batches; none has rows of two chunks.

    Raises:
        InvalidArgumentError: the inputs of a chunk have different lengths.
    """
    number = first = 0
    for chunk in chunks:
        count = len(chunk)
        for start in range(0, count, batch_size):
            part = chunk.part(start, min(start + batch_size, count))
            yield Batch(number, first + start, part)
            number += 1
        first += count
