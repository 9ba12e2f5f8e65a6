"""Batches: the rows of a data set, cut so that a model takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from opkernel.distributed.batches.mapped_model import MappedModel
from opkernel.errors import InvalidArgumentError
from opkernel.graph import TensorSpec
from opkernel.messages import perhaps
from opkernel.records import dataclass
from opkernel.types import DataType, TensorShape

__all__ = ["Array", "Batch", "cut", "fitted"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Batch:
    """Rows that the model gets at once.

    Attributes:
        number: how many batches come before.
        first_row: how many rows come before.
        arrays: the inputs by name; their first axes count the rows.
        rows: how many rows there are.
    """

    number: int
    first_row: int
    arrays: Mapping[str, Array]
    rows: int

    def row(self, index: int) -> dict[str, Array]:
        """One row, as a batch of its own."""
        return {name: array[index : index + 1] for name, array in self.arrays.items()}


def cut(chunks: Iterable[Any], model: MappedModel, batch_size: int) -> Iterator[Batch]:
    """The batches of mappings of arrays; none has rows of two mappings.

    Raises:
        InvalidArgumentError: an input is missing or unknown, or arrays have different lengths.
    """
    number = first = 0
    for chunk in chunks:
        arrays = _arrays(chunk, model)
        rows = _rows(arrays)
        for start in range(0, rows, batch_size):
            part = {name: array[start : start + batch_size] for name, array in arrays.items()}
            count = min(batch_size, rows - start)
            yield Batch(number, first + start, part, count)
            number += 1
        first += rows


def _arrays(chunk: Any, model: MappedModel) -> dict[str, Array]:
    if not isinstance(chunk, Mapping):
        raise InvalidArgumentError(
            f"Expected a mapping of names to arrays, got {type(chunk).__name__}"
        )
    known = model.inputs
    named = {
        name if name in known else str(name).removesuffix(":0"): v for name, v in chunk.items()
    }
    for name in named:
        if name not in known:
            raise InvalidArgumentError(
                f"The model has no input {name!r}{perhaps(name, known)}; it takes {_listed(known)}"
            )
    missing = [name for name in known if name in model.required and name not in named]
    if missing:
        raise InvalidArgumentError(
            f"The data has no {_listed(missing)}; the model takes {_listed(known)}"
        )
    return {name: _array(name, value) for name, value in named.items()}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "no inputs"


def _array(name: str, value: Any) -> Array:
    try:
        array = np.asarray(value)
        if array.dtype.kind in "SU" and not isinstance(value, np.ndarray):
            array = np.asarray(value, object)  # which keeps the zero bytes that end strings
    except ValueError as error:
        raise InvalidArgumentError(f"Input {name!r} is no array: {error}") from error
    if not array.ndim:
        raise InvalidArgumentError(f"Input {name!r} is a scalar; its first axis counts the rows")
    return array


def _rows(arrays: Mapping[str, Array]) -> int:
    lengths = {name: len(array) for name, array in arrays.items()}
    if len({*lengths.values()}) > 1:
        told = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise InvalidArgumentError(f"The inputs have different numbers of rows: {told}")
    return next(iter(lengths.values()), 0)


def fitted(batch: Batch, model: MappedModel) -> Batch:
    """The batch with arrays of the types that the model takes.

    Raises:
        InvalidArgumentError: an array has another type or shape.
    """
    arrays = {name: _fitted(name, one, model.inputs[name]) for name, one in batch.arrays.items()}
    return Batch(batch.number, batch.first_row, arrays, batch.rows)


def _fitted(name: str, array: Array, spec: TensorSpec) -> Array:
    wanted = spec.dtype.base
    if wanted is DataType.DT_STRING:
        array = _strings(name, array)
    elif array.dtype != wanted.numpy_dtype:
        array = _converted(name, array, wanted)
    if spec.shape.rank and not _fits(array.shape, [None, *spec.shape.as_list()[1:]]):
        raise InvalidArgumentError(
            f"Input {name!r} has shape {TensorShape(array.shape)}, and the model takes {spec.shape}"
        )
    return array


def _fits(shape: tuple[int, ...], wanted: list[int | None]) -> bool:
    return len(shape) == len(wanted) and all(
        size is None or size == one for one, size in zip(shape, wanted, strict=True)
    )


def _strings(name: str, array: Array) -> Array:
    if array.dtype.kind not in "SUO":
        raise InvalidArgumentError(f"Input {name!r} has dtype {array.dtype}, and takes strings")
    strings = np.empty(array.shape, object)
    for index, value in np.ndenumerate(array):
        if not isinstance(value, str | bytes):
            raise InvalidArgumentError(
                f"Input {name!r} takes strings, and has {type(value).__name__} among its values"
            )
        strings[index] = value.encode() if isinstance(value, str) else bytes(value)
    return strings


def _converted(name: str, array: Array, wanted: DataType) -> Array:
    """The values as another type of the same kind, where no integer changes."""
    dtype = wanted.numpy_dtype
    if array.dtype.kind == "V" and dtype.isbuiltin != 1 and array.itemsize == dtype.itemsize:
        return array.view(dtype)  # as .npy files hold types that NumPy lacks
    if array.dtype.kind in "biufc" and np.can_cast(array.dtype, dtype, "same_kind"):
        with np.errstate(all="ignore"):
            converted = array.astype(dtype)
        if array.dtype.kind not in "iu" or not wanted.is_integer or (converted == array).all():
            return converted
    raise InvalidArgumentError(
        f"Input {name!r} has dtype {array.dtype}, and the model takes {wanted.tf_name}"
    )
