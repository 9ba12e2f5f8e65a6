"""Arrays of users as the inputs that a model takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from opkernel.distributed.batches.mapped_model import MappedModel
from opkernel.distributed.batches.rows import Array
from opkernel.errors import InvalidArgumentError
from opkernel.graph import TensorSpec
from opkernel.messages import did_you_mean
from opkernel.types import DataType, TensorShape


def named(values: Any, model: MappedModel) -> dict[str, Array]:
    """A mapping of names to arrays, by the names of the model's inputs.

    Raises:
        InvalidArgumentError: it is no such mapping, or an input is missing or unknown.
    """
    if not isinstance(values, Mapping):
        raise InvalidArgumentError(
            f"Expected a mapping of names to arrays, got {type(values).__name__}"
        )
    known = model.inputs
    found = {
        name if name in known else str(name).removesuffix(":0"): v for name, v in values.items()
    }
    for name in found:
        if name not in known:
            raise InvalidArgumentError(
                f"The model has no input {name!r}{did_you_mean(name, known)}; it takes {_listed(known)}"
            )
    missing = [name for name in known if name in model.required and name not in found]
    if missing:
        raise InvalidArgumentError(
            f"The data has no {_listed(missing)}; the model takes {_listed(known)}"
        )
    return {name: _array(name, value) for name, value in found.items()}


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


def fitted(values: Mapping[str, Any], model: MappedModel) -> dict[str, Array]:
    """Arrays of the names and types that the model takes.

    Raises:
        InvalidArgumentError: as `named` does, or an array has another type or shape.
    """
    return {
        name: _fitted(name, array, model.inputs[name])
        for name, array in named(values, model).items()
    }


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
