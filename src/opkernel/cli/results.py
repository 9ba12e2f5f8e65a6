"""Results as text, as JSON, and in files; and the files that traces of steps are written to."""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.cli.files import check_directory, writing
from opkernel.cli.output import WrongUse, echo, line_width, one_line
from opkernel.errors import InvalidArgumentError
from opkernel.escaping import archive_name
from opkernel.proto import StepStats
from opkernel.records import dataclass
from opkernel.types import Array, DataType, TensorShape

_MAX_SHOWN = 200
_FILE_WIDTH = 100
_MAX_EMPTY_ROWS = 1_000_000
_SEPARATORS = re.compile(r"[/\\\0]")
_NUMPY_OWN = 1
"""The value of `dtype.isbuiltin` for the types that come with NumPy."""


@dataclass(frozen=True, slots=True)
class Result:
    """The value of a fetched tensor."""

    name: str
    dtype: DataType
    array: Array

    @property
    def heading(self) -> str:
        """Its name, type and shape: `y:0  float32[4,10]`."""
        shape = ",".join(map(str, self.array.shape))
        return f"{one_line(self.name)}  {self.dtype.tf_name}[{shape}]"

    def text(self) -> str:
        """Its values, abridged where they are many."""
        array, width = self._plain(), line_width() or _FILE_WIDTH
        return np.array2string(array, threshold=_MAX_SHOWN, precision=6, max_line_width=width)

    def as_json(self) -> dict[str, Any]:
        """The type, shape and values; a value that is no number in JSON is spelled as a string.

        Raises:
            InvalidArgumentError: it has no elements, but more empty rows than a reader could take in.
        """
        shape = list(self.array.shape)
        rows = math.prod(shape[: shape.index(0)]) if 0 in shape else 0
        if rows > _MAX_EMPTY_ROWS:
            raise InvalidArgumentError(
                f"{self.name} has the shape {TensorShape(shape)}: its {rows} empty rows are too many "
                "to print as JSON"
            )
        return {"dtype": self.dtype.tf_name, "shape": shape, "value": _json(self._plain())}

    def stored(self) -> Array:
        """Its values in a type that .npz files can hold without pickle.

        Strings become fixed-width bytes; the types that NumPy lacks become float32 or int8, which
        hold all of their values.

        Raises:
            InvalidArgumentError: it holds resources or variants.
        """
        if self.dtype is DataType.DT_STRING:
            return self.array.astype(np.bytes_)
        if self.array.dtype == object:
            raise InvalidArgumentError(
                f"{self.name} is of type {self.dtype.tf_name}, which .npz files cannot hold"
            )
        return self._plain()

    @property
    def ends_in_zero_byte(self) -> bool:
        """Whether a string ends with a zero byte, which NumPy's bytes of fixed width lose."""
        is_string = self.dtype is DataType.DT_STRING
        return is_string and any(value.endswith(b"\0") for value in self.array.flat)

    def _plain(self) -> Array:
        """Its values in a type of NumPy's own.

        Raises:
            InvalidArgumentError: it has no elements, and sizes that no such array can have.
        """
        names = self.array.dtype.names  # there is one where the type is quantised
        array = self.array if names is None else self.array[names[0]]
        if array.dtype.isbuiltin == _NUMPY_OWN:
            return array
        try:
            return array.astype(np.float32 if self.dtype.is_floating else np.int8)
        except ValueError as error:
            raise InvalidArgumentError(
                f"{self.name}: {error}: {TensorShape(array.shape)}"
            ) from error


def check_writable(path: str | os.PathLike[str] | None) -> None:
    """Raise WrongUse where results could not be written, before they are computed."""
    if path is not None and os.path.splitext(path)[1] != ".npz":
        raise WrongUse(f"--output {path}: results are written as .npz")
    check_directory("--output", path)


def check_outdir(directory: str, names: Iterable[str], overwrite: bool) -> None:
    """Raise WrongUse where results of these names could not be written, before they are computed."""
    used: dict[str, str] = {}
    for name in names:
        path = _npy_path(directory, name)
        if path in used:
            raise WrongUse(f"--outdir: {used[path]} and {name} would both be written to {path}")
        used[path] = name
        if os.path.exists(path) and not overwrite:
            raise WrongUse(f"--outdir: {path} exists; --overwrite replaces it")


def write_outdir(directory: str, results: Sequence[Result]) -> list[str]:
    """Write each result to a file of its own, in a directory that is made; the result is the paths.

    Raises:
        InvalidArgumentError: a result holds resources or variants.
        UnavailableError: a file cannot be written.
    """
    stored = {_npy_path(directory, result.name): result.stored() for result in results}
    with writing(directory):
        os.makedirs(directory, exist_ok=True)
        for path, array in stored.items():
            np.save(path, array, allow_pickle=False)
    return [*stored]


def _npy_path(directory: str, name: str) -> str:
    """The file of a result; its name has nothing in it that would lead out of the directory."""
    return os.path.join(directory, f"{_SEPARATORS.sub('_', name)}.npy")


def write_npz(path: str, results: Sequence[Result]) -> None:
    """Write one array for each result, under the name of its tensor.

    Raises:
        InvalidArgumentError: a result holds resources or variants.
        UnavailableError: the file cannot be written.
    """
    arrays = {archive_name(result.name): result.stored() for result in results}
    for result in results:
        if result.ends_in_zero_byte:
            echo(
                f"Warning: {path} drops the zero bytes that end strings of {result.name}", err=True
            )
    write_arrays(path, arrays)


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Write an .npz file with arrays of any names, even the names of `np.savez`'s parameters.

    Raises:
        UnavailableError: the file cannot be written.
    """
    import zipfile  # slow to import

    with writing(path), zipfile.ZipFile(path, "w", allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def write_trace(path: str, format_name: str | None, steps: Sequence[StepStats]) -> None:
    """Write the trace of steps in the format of the name, or the one that the file's name stands for.

    Raises:
        UnavailableError: the file cannot be written.
    """
    from opkernel.runtime.traces import write_chrome_trace, write_perfetto_trace

    is_chrome = path.endswith(".json") if format_name is None else format_name == "chrome"
    with writing(path):
        (write_chrome_trace if is_chrome else write_perfetto_trace)(steps, path)


def _json(array: Array) -> Any:
    if array.dtype == object:
        return _texts(array.tolist())
    if array.dtype.kind == "c":
        return array.astype(np.str_).tolist()
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return array.tolist()
    values = array.astype(object)
    for is_special, spelling in (
        (np.isnan(array), "NaN"),
        (np.isposinf(array), "Infinity"),
        (np.isneginf(array), "-Infinity"),
    ):
        values[is_special] = spelling
    return values.tolist()


def _texts(value: Any) -> Any:
    """Strings as text, with bytes outside UTF-8 escaped; resources and variants as their repr."""
    if isinstance(value, list):
        return [_texts(item) for item in value]
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else repr(value)
