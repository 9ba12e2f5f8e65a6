"""Values to feed: `--input NAME=VALUE`, and saved_model_cli's options for files and expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.input_file import InputFile, input_file
from opkernel.cli.signature import GraphInterface
from opkernel.errors import DataLossError, InvalidArgumentError, OpError
from opkernel.escaping import json_value
from opkernel.graph import Tensor
from opkernel.opdef import UnregisteredOpError
from opkernel.records import dataclass
from opkernel.types import DataType

_MAX_SHOWN = 40
_NPY_MAGIC = b"\x93NUMPY"


def split_feed(text: str) -> tuple[str, str]:
    """The name and the value of NAME=VALUE.

    Raises:
        WrongUse: it has not this form.
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise WrongUse(f"--input {_shortened(text)}: expected NAME=VALUE or NAME=@FILE")
    return name, value


def feed_value(text: str, tensor: Tensor, called: str = "") -> Any:
    """The value to feed for a tensor, of the tensor's type.

    Args:
        text: a value as JSON, `@file.npy`, or `@file.npz:KEY`; for a string tensor also the plain
            text, or `@file` of any other kind for its bytes. The file `-` is standard input.
        tensor: the tensor to feed.
        called: what the command line calls the tensor.

    Raises:
        WrongUse: it is neither JSON nor a file that exists.
        UnregisteredOpError: nothing is known of the tensor's type.
        InvalidArgumentError: the file holds no arrays, or the values do not fit the tensor's type.
        DataLossError: the file is damaged.
    """
    _check_type_known(tensor)
    value = (
        _from_file(text[1:], tensor, called) if text.startswith("@") else _from_json(text, tensor)
    )
    return value if _is_string(tensor) else _as_type_of(tensor, value)


def _as_fed(tensor: Tensor, value: Any) -> Any:
    """A value as one of the tensor's type.

    Raises:
        UnregisteredOpError: nothing is known of the tensor's type.
        InvalidArgumentError: the value does not fit the type.
    """
    _check_type_known(tensor)
    return value if _is_string(tensor) else _as_type_of(tensor, value)


def _check_type_known(tensor: Tensor) -> None:
    if tensor.dtype is DataType.DT_INVALID:
        raise UnregisteredOpError(
            f"Cannot feed {tensor.name!r}: its type is unknown, as op {tensor.op.type!r} is not "
            f"registered"
        )


def _is_string(tensor: Tensor) -> bool:
    return tensor.dtype.base is DataType.DT_STRING


def _from_json(text: str, tensor: Tensor) -> Any:
    """A value given as JSON; for a string tensor, all but a JSON string or list is plain text."""
    try:
        value = json_value(text)
    except ValueError as error:
        if _is_string(tensor):
            return text
        raise WrongUse(
            f"--input {tensor.name}: {_shortened(text)} is neither JSON nor @FILE"
        ) from error
    return text if _is_string(tensor) and not isinstance(value, str | list) else value


def _from_file(path: str, tensor: Tensor, called: str) -> Any:
    stem, colon, key = path.partition(".npz:")
    name = f"{stem}.npz" if colon else path
    file = input_file(name)
    if file is None:
        raise WrongUse(f"--input {tensor.name}: there is no file {name}")
    if _is_npy(file):
        return _load(file, key, tensor, called)
    from opkernel.graph import FileKind, file_kind  # for all but single arrays

    kind = file_kind(file)
    if kind is FileKind.NUMPY:
        return _load(file, key, tensor, called)
    if _is_string(tensor):
        with open(file, "rb") as stored:
            return stored.read()
    raise InvalidArgumentError(f"{file} is {kind}, not NumPy arrays (.npy or .npz)")


def _is_npy(path: InputFile) -> bool:
    with suppress(OSError), open(path, "rb") as file:
        return file.read(len(_NPY_MAGIC)) == _NPY_MAGIC
    return False


def _load(file: InputFile, key: str, tensor: Tensor, called: str) -> Any:
    try:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            names = (called, tensor.name, tensor.op.name)
            return loaded[key if key in loaded else _key_for(names, file, key, loaded.files)]
    except (OpError, WrongUse):
        raise
    except Exception as error:  # zipfile, zlib and NumPy have many for a damaged file
        raise DataLossError(f"Cannot read arrays from {file}: {error}") from error


def _key_for(names: Sequence[str], file: InputFile, key: str, keys: list[str]) -> str:
    """The key of the array to feed where none is given: the only array, or the one with the tensor's name."""
    fitting = [one for one in keys if len(keys) == 1 or one in names]
    if not key and len(fitting) == 1:
        return fitting[0]
    choice = ", ".join(keys) or "no arrays"
    asked = f"has no array {key!r}" if key else "needs a key, as in @FILE.npz:KEY"
    raise WrongUse(f"--input {names[0] or names[1]}: {file} {asked}; it holds {choice}")


def _as_type_of(tensor: Tensor, value: Any) -> np.ndarray[Any, Any]:
    """The value as an array of the tensor's type, where no more than digits of floats are lost."""
    dtype = tensor.dtype.base
    try:
        source = np.asarray(value)
        if source.dtype.kind == "V":
            return _as_raw(source, dtype.numpy_dtype)
        with np.errstate(all="ignore"):
            array = np.asarray(value, dtype.numpy_dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise _unfit(tensor, str(error)) from error
    if source.dtype == object:
        raise _unfit(tensor, "it has null among its values, or numbers too large")
    rounded = "biufc" if dtype.is_complex else "biuf" if dtype.is_floating else ""
    if source.dtype.kind in "biufc" and source.dtype.kind not in rounded:
        _check_equal(tensor, source, array)
    return array


def _as_raw(source: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Values of a type that NumPy lacks, such as bfloat16, which .npy files hold as raw bytes."""
    if dtype.isbuiltin == 1 or source.dtype.itemsize != dtype.itemsize:
        raise TypeError(f"an array of {source.dtype} has another type")
    return source.view(dtype)


def _check_equal(tensor: Tensor, source: np.ndarray[Any, Any], array: np.ndarray[Any, Any]) -> None:
    """Raise InvalidArgumentError where values changed when they were converted."""
    with np.errstate(all="ignore"):
        changed = array.astype(source.dtype) != source
    if changed.any():
        raise _unfit(tensor, f"{source[changed].flat[0]} ({source.dtype}) does not fit")


def _unfit(tensor: Tensor, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Cannot feed this value for tensor {tensor.name!r} of type {tensor.dtype.base.tf_name}: "
        f"{reason}"
    )


def _shortened(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}...")


@dataclass(frozen=True)
class GivenInput:
    """An input.

    Attributes:
        option: the option that gives it.
        name: its name.
        value: its value; text that says it, where `is_text`.
        is_text: whether the value is JSON or @FILE.
    """

    option: str
    name: str
    value: Any
    is_text: bool

    def value_for(self, tensor: Tensor) -> Any:
        """The value to feed for a tensor.

        Raises:
            WrongUse, OpError: as `feed_value` does.
        """
        if self.is_text:
            return feed_value(self.value, tensor, self.name)
        return _as_fed(tensor, self.value)


def given_inputs(
    inputs: Iterable[str], files: Iterable[str], expressions: Iterable[str], examples: Iterable[str]
) -> list[GivenInput]:
    """The inputs of `--input`, `--inputs`, `--input_exprs` and `--input_examples`.

    Raises:
        WrongUse: one has another form.
        ResourceExhaustedError: an array would be too large.
    """
    given = [GivenInput("--input", *split_feed(text), True) for text in inputs]
    if not (files or expressions or examples):
        return given
    from opkernel.cli.saved_model_inputs import examples_given, expressions_given, files_given

    for text in files:
        given += [GivenInput("--inputs", *pair, True) for pair in files_given(text)]
    for option, texts, parsed in (
        ("--input_exprs", expressions, expressions_given),
        ("--input_examples", examples, examples_given),
    ):
        for text in texts:
            given += [GivenInput(option, *pair, False) for pair in parsed(text).items()]
    return given


def feeds_of(interface: GraphInterface, given: Iterable[GivenInput]) -> dict[Tensor, Any]:
    """The values to feed by their tensors.

    Raises:
        NotFoundError: there is no input of a name.
        WrongUse: a tensor is fed twice, or a value is neither JSON nor a file.
    """
    feeds: dict[Tensor, Any] = {}
    for one in given:
        tensor = interface.input(one.name)
        if tensor in feeds:
            raise WrongUse(f"{one.option}: {tensor.name} is fed twice")
        feeds[tensor] = one.value_for(tensor)
    return feeds
