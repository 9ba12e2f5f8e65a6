"""Values to feed: `--input NAME=VALUE`, saved_model_cli's options for files and expressions, and `--random`; and `--input NAME:SHAPE`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from opkernel.cli.files import InputFile, input_file
from opkernel.cli.output import WrongUse
from opkernel.cli.signature import Element, GraphInterface, graph_inputs, needed_operations
from opkernel.device.allocation import check_allocation
from opkernel.errors import DataLossError, InvalidArgumentError, OpError
from opkernel.escaping import json_value
from opkernel.graph import Tensor
from opkernel.opdef import UnregisteredOpError
from opkernel.types import Array, DataType, PartialTensorShape

_MAX_SHOWN = 40
_NPY_MAGIC = b"\x93NUMPY"
_SIZE = re.compile(r"\d+|\?|-1")
_OPTIONAL = "PlaceholderWithDefault"
_WORD_LENGTH = 5


class GivenInput(NamedTuple):
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
        """The value to feed for a tensor, of the tensor's type.

        Text is a value as JSON, `@file.npy`, or `@file.npz:KEY`; for a string tensor also the plain text,
        or `@file` of any other kind for its bytes. The file `-` is standard input.

        Raises:
            WrongUse: it is neither JSON nor a file that exists.
            UnregisteredOpError: nothing is known of the tensor's type.
            InvalidArgumentError: the file holds no arrays, or the values do not fit the tensor's type.
            DataLossError: the file is damaged.
        """
        if tensor.dtype is DataType.DT_INVALID:
            raise UnregisteredOpError(
                f"Cannot feed {tensor.name!r}: its type is unknown, as op {tensor.op.type!r} is not "
                f"registered"
            )
        value = self.value
        if self.is_text and value.startswith("@"):
            value = _from_file(value[1:], tensor, self.name)
        elif self.is_text:
            value = _from_json(value, tensor)
        return value if _is_string(tensor) else _as_type_of(tensor, value)


def given_inputs(
    inputs: Iterable[str], files: Iterable[str], expressions: Iterable[str], examples: Iterable[str]
) -> list[GivenInput]:
    """The inputs of `--input`, `--inputs`, `--input_exprs` and `--input_examples`.

    Raises:
        WrongUse: one has another form.
        ResourceExhaustedError: an array would be too large.
    """
    given = [GivenInput("--input", *_split(text), True) for text in inputs]
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


def _split(text: str) -> tuple[str, str]:
    """The name and the value of NAME=VALUE; WrongUse where it has not this form."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise WrongUse(f"--input {_shortened(text)}: expected NAME=VALUE or NAME=@FILE")
    return name, value


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


def _as_type_of(tensor: Tensor, value: Any) -> Array:
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
        with np.errstate(all="ignore"):
            changed = array.astype(source.dtype) != source
        if changed.any():
            raise _unfit(tensor, f"{source[changed].flat[0]} ({source.dtype}) does not fit")
    return array


def _as_raw(source: Array, dtype: np.dtype[Any]) -> Array:
    """Values of a type that NumPy lacks, such as bfloat16, which .npy files hold as raw bytes."""
    if dtype.isbuiltin == 1 or source.dtype.itemsize != dtype.itemsize:
        raise TypeError(f"an array of {source.dtype} has another type")
    return source.view(dtype)


def _unfit(tensor: Tensor, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Cannot feed this value for tensor {tensor.name!r} of type {tensor.dtype.base.tf_name}: "
        f"{reason}"
    )


def _shortened(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}...")


def given_shapes(
    find: Callable[[str], Tensor], inputs: Iterable[str]
) -> dict[Tensor, PartialTensorShape]:
    """The shapes that `--input NAME:SHAPE` gives to tensors.

    Args:
        find: gives the tensor of a name.
        inputs: the options.

    Raises:
        WrongUse: an option has another form, or names the same tensor as another one.
        NotFoundError: there is no such tensor.
    """
    given: dict[Tensor, PartialTensorShape] = {}
    for text in inputs:
        name, shape = _split_shape(text)
        tensor = find(name)
        if tensor in given:
            raise WrongUse(f"--input gives the shape of {tensor.name} twice")
        given[tensor] = shape
    return given


def _split_shape(text: str) -> tuple[str, PartialTensorShape]:
    """The name and the shape of NAME:SHAPE; WrongUse where it has not this form."""
    name, colon, sizes = text.rpartition(":")
    parts = [part.strip() for part in sizes.split(",")] if sizes else []
    if not name or not colon or not all(map(_SIZE.fullmatch, parts)):
        raise WrongUse(f"--input {text!r}: expected NAME:SHAPE, as in x:2,224,224,3")
    try:
        dims = [None if part in ("?", "-1") else int(part) for part in parts]
        return name, PartialTensorShape(dims)
    except (InvalidArgumentError, ValueError) as error:
        raise WrongUse(f"--input {text!r} is no shape: {error}") from error


def random_feeds(
    interface: GraphInterface,
    fetches: Sequence[Element],
    feeds: Mapping[Tensor, Any],
    inputs: Iterable[str] = (),
) -> dict[Tensor, Any]:
    """Values for the inputs that fetches need and nothing feeds, and for the tensors with a shape; equal in every run.

    Numbers are between 0 and 1, integers 0 or 1, which indices mostly may be; strings are words.

    Args:
        interface: the inputs of the graph.
        fetches: the tensors and operations asked for.
        feeds: the values that are given.
        inputs: NAME:SHAPE for tensors; sizes that are unknown here and in the graph are 1.

    Raises:
        WrongUse: nothing is known of a shape, or no values of a type can be drawn.
        InvalidArgumentError: a shape does not fit its tensor.
        ResourceExhaustedError: a tensor would be larger than the limit.
    """
    shapes = given_shapes(interface.input, inputs)
    needed = needed_operations(fetches, [*feeds, *shapes])
    wanted = [
        tensor
        for tensor in graph_inputs(interface.graph)
        if tensor.op in needed and tensor not in feeds and tensor.op.type != _OPTIONAL
    ]
    random = np.random.default_rng(0)
    unknown = PartialTensorShape(None)
    return {
        tensor: _drawn(random, tensor, tensor.shape.merge_with(shapes.get(tensor, unknown)))
        for tensor in dict.fromkeys([*wanted, *shapes])
    }


def _drawn(random: np.random.Generator, tensor: Tensor, known: PartialTensorShape) -> Any:
    dtype = tensor.dtype.base
    is_text = dtype is DataType.DT_STRING
    if dtype is DataType.DT_INVALID or (dtype.numpy_dtype.kind == "O" and not is_text):
        raise WrongUse(
            f"--random: {tensor.name} is of type {dtype.tf_name}, of which no value can be drawn"
        )
    if known.rank is None:
        raise WrongUse(
            f"--random: the shape of {tensor.name} is not known; give it as "
            f"--input {tensor.name.removesuffix(':0')}:2,3"
        )
    shape = check_allocation([1 if size is None else size for size in known], tensor.dtype)
    if is_text:
        letters = random.integers(ord("a"), ord("z") + 1, (*shape, _WORD_LENGTH), np.uint8)
        return letters.view(f"S{_WORD_LENGTH}")[..., 0].astype(object)
    if dtype.is_floating or dtype.is_complex:
        return random.random(shape).astype(dtype.numpy_dtype)
    return random.integers(0, 2, shape).astype(dtype.numpy_dtype)
