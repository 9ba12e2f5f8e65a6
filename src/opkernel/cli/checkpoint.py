"""`opkernel checkpoint`: the tensors of a checkpoint of TensorFlow, listed, printed, compared, exported."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.output import (
    bad,
    counted,
    echo,
    json_option,
    one_line,
    print_json,
    print_table,
    print_text,
    size_text,
)
from opkernel.cli.output_path import OutputPath
from opkernel.cli.results import Result, write_arrays
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.escaping import archive_name, json_text
from opkernel.messages import did_you_mean
from opkernel.records import dataclass
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.checkpoint import CheckpointReader

__all__ = ["checkpoint"]

_ENDINGS = (".npz", ".safetensors")
_SLICES_SHOWN = 20

path_argument = click.argument("path", metavar="PATH")
keys_argument = click.argument("keys", nargs=-1, metavar="[KEY]...")


@click.group()
def checkpoint() -> None:
    """Look into checkpoints of TensorFlow, V1 and V2.

    PATH is the prefix of a checkpoint (model.ckpt-100) or one of its files, a directory with a
    `checkpoint` file, whose latest one is taken, a SavedModel directory, or its folder `variables`.
    """


@checkpoint.command("ls")
@path_argument
@click.option("--name", default="", metavar="TEXT", help="List the keys with this text in them.")
@json_option
def list_keys(path: str, name: str, as_json: bool) -> None:
    """List the tensors of a checkpoint: key, type, shape and size."""
    with open_checkpoint(path) as reader:
        entries = [_Entry.of(reader, key) for key in reader if name in key]
    if as_json:
        print_json([entry.as_json() for entry in entries])
        return
    rows = [(e.key, e.dtype.tf_name, e.shape_text, e.size_text, e.parts_text) for e in entries]
    columns = ("key", "type", "shape", "size", "slices")
    print_table(counted(len(rows), "tensor"), columns, rows, numbers=("size", "slices"))
    echo(f"{size_text(sum(entry.size for entry in entries))} in all")


@checkpoint.command("show")
@path_argument
@keys_argument
@json_option
def show(path: str, keys: tuple[str, ...], as_json: bool) -> None:
    """Show what a checkpoint is, or tensors: type, shape, slices, smallest, largest and mean value."""
    with open_checkpoint(path) as reader:
        if keys:
            found = [_facts_of_tensor(reader, _known(reader, key)) for key in keys]
        else:
            found = [_facts(reader)]
    if as_json:
        print_json(found if keys else found[0])
        return
    for number, facts in enumerate(found):
        echo("\n" if number else "", nl=False)
        for name, value in facts.items():
            print_text(
                f"{name.replace('_', ' ')}: {value if isinstance(value, str) else _text(value)}"
            )


@checkpoint.command("get")
@path_argument
@click.argument("key")
@click.option(
    "-o",
    "--output",
    type=OutputPath(dir_okay=False),
    metavar="FILE.npy",
    help="Write the tensor here.",
)
@json_option
def get(path: str, key: str, output: str | None, as_json: bool) -> None:
    """Print one tensor of a checkpoint, or write it to a .npy file."""
    if output is not None and not output.endswith(".npy"):
        raise WrongUse(f"--output {output}: a tensor is written as .npy")
    with open_checkpoint(path) as reader:
        result = _result(reader, _known(reader, key))
        if output is not None:
            np.save(output, _stored(result), allow_pickle=False)
        if as_json:
            print_json(result.as_json())
            return
        print_text(result.heading, bold=True)
        echo(result.text() if output is None else f"written to {one_line(output)}")


@checkpoint.command("diff")
@path_argument
@click.argument("other", metavar="OTHER")
@click.option("--atol", default=0.0, metavar="X", help="Values may differ by so much.")
@click.option(
    "--rtol", default=0.0, metavar="X", help="Values may differ by this part of the larger."
)
@json_option
def diff(path: str, other: str, atol: float, rtol: float, as_json: bool) -> None:
    """Compare two checkpoints: keys, types, shapes and values. The exit status is 1 if they differ."""
    with open_checkpoint(path) as first, open_checkpoint(other) as second:
        found = [*_differences(first, second, atol, rtol)]
        compared = sum(key in second for key in first)
    if as_json:
        print_json([{"key": key, "difference": what} for key, what in found])
    elif found:
        rows = [(key, bad(what)) for key, what in found]
        print_table(counted(len(rows), "difference"), ("key", "difference"), rows)
    else:
        echo(f"{counted(compared, 'tensor')}, all equal.")
    if found:
        raise click.exceptions.Exit(1)


@checkpoint.command("export")
@path_argument
@keys_argument
@click.option(
    "-o",
    "--output",
    required=True,
    type=OutputPath(dir_okay=False),
    metavar="FILE",
    help="A .npz or .safetensors file.",
)
def export(path: str, keys: tuple[str, ...], output: str) -> None:
    """Write the tensors of a checkpoint, or those of the keys, to an .npz or .safetensors file.

    Strings go to .npz files as bytes of fixed width. A .safetensors file has no strings.
    """
    if not output.endswith(_ENDINGS):
        raise WrongUse(f"--output {output}: tensors are written as {' or '.join(_ENDINGS)}")
    with open_checkpoint(path) as reader:
        chosen = [_known(reader, key) for key in keys] or _exported(reader, output)
        write = _write_safetensors if output.endswith(".safetensors") else _write_npz
        write(output, reader, chosen)
    echo(f"{counted(len(chosen), 'tensor')} written to {one_line(output)}")


def open_checkpoint(path: str) -> CheckpointReader:
    """The reader of the checkpoint at PATH.

    Raises:
        NotFoundError: there is no checkpoint.
        DataLossError: the checkpoint is damaged.
    """
    from opkernel.checkpoint import load_checkpoint  # `opkernel checkpoint --help` needs none

    return load_checkpoint(path)


@dataclass(frozen=True)
class _Entry:
    """A line of the list of tensors."""

    key: str
    dtype: DataType
    shape: tuple[int, ...]
    num_slices: int

    @staticmethod
    def of(reader: CheckpointReader, key: str) -> _Entry:
        shape = tuple(reader.shape(key).as_list())
        return _Entry(key, reader.dtype(key), shape, len(reader.slices(key)))

    @property
    def size(self) -> int:
        """The bytes of its elements; of strings nothing is known before they are read."""
        is_string = self.dtype is DataType.DT_STRING
        return 0 if is_string else self.dtype.size * int(np.prod(self.shape, dtype=np.int64))

    @property
    def size_text(self) -> str:
        return "" if self.dtype is DataType.DT_STRING else size_text(self.size)

    @property
    def shape_text(self) -> str:
        return f"[{','.join(map(str, self.shape))}]"

    @property
    def parts_text(self) -> str:
        return str(self.num_slices) if self.num_slices > 1 else ""

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "dtype": self.dtype.tf_name,
            "shape": [*self.shape],
            "bytes": self.size,
            "slices": self.num_slices,
        }


def _facts(reader: CheckpointReader) -> dict[str, Any]:
    """The facts of a checkpoint as a whole."""
    entries = [_Entry.of(reader, key) for key in reader]
    by_type: dict[str, int] = {}
    for entry in entries:
        by_type[entry.dtype.tf_name] = by_type.get(entry.dtype.tf_name, 0) + 1
    return {
        "checkpoint": os.fspath(reader.path),
        "tensors": len(entries),
        "bytes": sum(entry.size for entry in entries),
        "types": ", ".join(f"{count} {name}" for name, count in sorted(by_type.items())),
        "partitioned": sum(entry.num_slices > 1 for entry in entries),
        "object_graph": "yes" if "_CHECKPOINTABLE_OBJECT_GRAPH" in reader else "no",
    }


def _facts_of_tensor(reader: CheckpointReader, key: str) -> dict[str, Any]:
    entry = _Entry.of(reader, key)
    facts = entry.as_json()
    facts["slices"] = [str(one) for one in reader.slices(key)[:_SLICES_SHOWN]]
    if not facts["slices"]:
        del facts["slices"]
    result = _result(reader, key)
    if entry.dtype is DataType.DT_STRING:
        facts["bytes"] = sum(map(len, result.array.ravel().tolist()))
    elif entry.size:
        facts |= _statistics(result.stored())
    return facts


def _statistics(values: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The smallest, largest and mean number that is finite; of complex ones their sizes."""
    with np.errstate(all="ignore"):
        numbers = np.abs(values) if values.dtype.kind == "c" else values.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
    facts: dict[str, Any] = {}
    if finite.size:
        facts = {"smallest": float(finite.min()), "largest": float(finite.max())}
        facts["mean"] = float(finite.mean(dtype=np.float64))
    if finite.size < numbers.size:
        facts["not_finite"] = int(numbers.size - finite.size)
    return facts


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        is_shape = all(isinstance(one, int) for one in value)
        return f"[{','.join(map(str, value))}]" if is_shape else "; ".join(value)
    return f"{value:,}"


def _result(reader: CheckpointReader, key: str) -> Result:
    return Result(key, reader.dtype(key), reader.get(key))


def _stored(result: Result) -> np.ndarray[Any, Any]:
    """The values as .npy files have them.

    Raises:
        InvalidArgumentError: a string ends with a zero byte, which NumPy's bytes of fixed width lose.
    """
    is_string = result.dtype is DataType.DT_STRING
    if is_string and any(one.endswith(b"\0") for one in result.array.ravel().tolist()):
        raise InvalidArgumentError(
            f"{result.name} has a string that ends with a zero byte, which .npy and .npz files lose; "
            f"read it with opkernel.load_checkpoint"
        )
    return result.stored()


def _known(reader: CheckpointReader, key: str) -> str:
    """The key, if the checkpoint has it.

    Raises:
        NotFoundError: the checkpoint has no such key.
    """
    if key in reader:
        return key
    raise NotFoundError(f"{reader.path} has no tensor {key!r}{did_you_mean(key, reader.keys())}")


def _differences(
    first: CheckpointReader, second: CheckpointReader, atol: float, rtol: float
) -> Iterator[tuple[str, str]]:
    """Each key in which two checkpoints differ, and how."""
    for key in sorted({*first.keys(), *second.keys()}):
        if key not in second:
            yield key, f"only in {first.path}"
        elif key not in first:
            yield key, f"only in {second.path}"
        else:
            what = _difference(first, second, key, atol, rtol)
            if what:
                yield key, what


def _difference(
    first: CheckpointReader, second: CheckpointReader, key: str, atol: float, rtol: float
) -> str:
    one, other = _Entry.of(first, key), _Entry.of(second, key)
    if one.dtype is not other.dtype:
        return f"{one.dtype.tf_name} and {other.dtype.tf_name}"
    if one.shape != other.shape:
        return f"{one.shape_text} and {other.shape_text}"
    results = [_result(reader, key) for reader in (first, second)]
    if one.dtype is DataType.DT_STRING:
        differing = int(np.count_nonzero(results[0].array != results[1].array))
        return f"{counted(differing, 'string')} of {results[0].array.size:,}" if differing else ""
    return _numeric_difference(results[0].stored(), results[1].stored(), atol, rtol)


def _numeric_difference(
    one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], atol: float, rtol: float
) -> str:
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        equal = (one == other) | ((one != one) & (other != other))
        distance = np.abs(np.asarray(one, wide) - np.asarray(other, wide))
        largest = np.maximum(np.abs(np.asarray(one, wide)), np.abs(np.asarray(other, wide)))
        differing = ~(equal | (distance <= atol + rtol * largest))
    if not differing.any():
        return ""
    most = float(np.max(distance[differing]))
    return f"{np.count_nonzero(differing):,} of {one.size:,} values, by up to {most:.6g}"


def _exported(reader: CheckpointReader, output: str) -> list[str]:
    """The keys of all tensors that a file can hold; a line tells of the others."""
    keys: list[str] = []
    left_out: list[str] = []
    for key in reader:
        is_held = reader.dtype(key) is not DataType.DT_STRING or output.endswith(".npz")
        (keys if is_held and not key.startswith("_CHECKPOINTABLE") else left_out).append(key)
    if left_out:
        print_note = ", ".join(map(one_line, left_out[:3])) + (", ..." if len(left_out) > 3 else "")
        echo(f"Left out: {counted(len(left_out), 'tensor')} of strings ({print_note})", err=True)
    return keys


def _write_npz(output: str, reader: CheckpointReader, keys: Sequence[str]) -> None:
    arrays = {archive_name(key): _stored(_result(reader, key)) for key in keys}
    write_arrays(output, arrays)


def _write_safetensors(output: str, reader: CheckpointReader, keys: Sequence[str]) -> None:
    """Write a .safetensors file: the length of a header, the header in JSON, then the elements.

    Source: https://github.com/huggingface/safetensors (Format).

    Raises:
        InvalidArgumentError: a tensor is of a type that the format lacks.
    """
    from opkernel.checkpoint.atomic_files import opened_place, replaced_file

    header: dict[str, Any] = {}
    end = 0
    for key in sorted(
        keys, key=lambda key: -reader.dtype(key).size
    ):  # the widest types first, aligned
        entry = _Entry.of(reader, key)
        begin, end = end, end + entry.size
        name = _safetensors_type(key, entry.dtype)
        header[key] = {"dtype": name, "shape": [*entry.shape], "data_offsets": [begin, end]}
    text = json_text(header).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    directory, name = opened_place(output)
    with directory, replaced_file(directory, name) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for key in header:
            file.write(np.ascontiguousarray(reader.get(key)).tobytes())


def _safetensors_type(key: str, dtype: DataType) -> str:
    name = _SAFETENSORS_TYPES.get(dtype.tf_name)
    if name is None:
        raise InvalidArgumentError(
            f"{key} is of type {dtype.tf_name}, which .safetensors files cannot hold; name the keys to "
            f"export, or write an .npz file"
        )
    return name


_SAFETENSORS_TYPES = {
    "bool": "BOOL",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "complex64": "C64",
    **{f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)},
}
