"""`opkernel checkpoint`: the tensors of a checkpoint of TensorFlow, listed, printed, compared, exported."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from opkernel.cli.options import CommandGroup, output_option
from opkernel.cli.output import (
    WrongUse,
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
from opkernel.cli.results import Result, write_arrays
from opkernel.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError
from opkernel.escaping import archive_name, json_text
from opkernel.messages import did_you_mean
from opkernel.types import Array, DataType

if TYPE_CHECKING:
    from opkernel.checkpoint import CheckpointReader

__all__ = ["checkpoint"]

_ENDINGS = (".npz", ".safetensors")
_SLICES_SHOWN = 20

path_argument = click.argument("path", metavar="PATH")
keys_argument = click.argument("keys", nargs=-1, metavar="[KEY]...")


@click.group(cls=CommandGroup)
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
        entries = [_entry(reader, key) for key in reader if name in key]
    if as_json:
        print_json(entries)
        return
    rows = [
        (
            one["key"],
            one["dtype"],
            one["shape"],
            "" if one["dtype"] == "string" else size_text(one["bytes"]),
            one["slices"] if one["slices"] > 1 else "",
        )
        for one in entries
    ]
    columns = ("key", "type", "shape", "size", "slices")
    print_table(counted(len(rows), "tensor"), columns, rows, numbers=("size", "slices"))
    echo(f"{size_text(sum(one['bytes'] for one in entries))} in all")


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
            print_text(f"{name.replace('_', ' ')}: {_text(value)}")


@checkpoint.command("get")
@path_argument
@click.argument("key")
@output_option("-o", "--output", metavar="FILE.npy", writable=False, help="Write the tensor here.")
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
@output_option("-o", "--output", required=True, writable=False, help="A .npz or .safetensors file.")
def export(path: str, keys: tuple[str, ...], output: str) -> None:
    """Write the tensors of a checkpoint, or those of the keys, to an .npz or .safetensors file.

    Strings go to .npz files as bytes of fixed width. A .safetensors file has no strings.
    """
    if not output.endswith(_ENDINGS):
        raise WrongUse(f"--output {output}: tensors are written as {' or '.join(_ENDINGS)}")
    with open_checkpoint(path) as reader:
        chosen = [_known(reader, key) for key in keys] or _exported(reader, output)
        if output.endswith(".safetensors"):
            _write_safetensors(output, reader, chosen)
        else:
            write_arrays(output, {archive_name(k): _stored(_result(reader, k)) for k in chosen})
    echo(f"{counted(len(chosen), 'tensor')} written to {one_line(output)}")


def open_checkpoint(path: str) -> CheckpointReader:
    """The reader of the checkpoint at PATH.

    Raises:
        NotFoundError: there is no checkpoint.
        InvalidArgumentError: it is a model.
        DataLossError: the checkpoint is damaged.
    """
    from opkernel.checkpoint import load_checkpoint  # `opkernel checkpoint --help` needs none

    try:
        return load_checkpoint(path)
    except (DataLossError, NotFoundError) as error:
        _refuse_model(path, error)
        raise


def _refuse_model(path: str, error: OpError) -> None:
    """Raise InvalidArgumentError for a model that is taken for a checkpoint."""
    from opkernel.graph.io.file_kind import FileKind, file_kind  # for errors alone

    if not os.path.exists(path):
        return
    kind = file_kind(path)
    if kind in (FileKind.ZIP, FileKind.GZIP, FileKind.TAR):
        hint = "unpack it: a SavedModel has its checkpoint in the folder variables"
    elif kind in (FileKind.GRAPH_DEF, FileKind.GRAPH_DEF_TEXT) or kind.may_be_saved:
        hint = f"opkernel show {path} shows what is in it"
    else:
        return
    raise InvalidArgumentError(f"{path} is {kind}, not a checkpoint; {hint}") from error


def _entry(reader: CheckpointReader, key: str) -> dict[str, Any]:
    """A tensor, as the list of tensors has it; of strings no size is known before they are read."""
    dtype, shape = reader.dtype(key), reader.shape(key)
    return {
        "key": key,
        "dtype": dtype.tf_name,
        "shape": shape,
        "bytes": 0 if dtype is DataType.DT_STRING else dtype.size * shape.num_elements(),
        "slices": len(reader.slices(key)),
    }


def _facts(reader: CheckpointReader) -> dict[str, Any]:
    """The facts of a checkpoint as a whole."""
    entries = [_entry(reader, key) for key in reader]
    by_type = Counter(one["dtype"] for one in entries)
    return {
        "checkpoint": os.fspath(reader.path),
        "tensors": len(entries),
        "bytes": sum(one["bytes"] for one in entries),
        "types": ", ".join(f"{count} {name}" for name, count in sorted(by_type.items())),
        "partitioned": sum(one["slices"] > 1 for one in entries),
        "object_graph": "yes" if "_CHECKPOINTABLE_OBJECT_GRAPH" in reader else "no",
    }


def _facts_of_tensor(reader: CheckpointReader, key: str) -> dict[str, Any]:
    facts = _entry(reader, key)
    facts["slices"] = [str(one) for one in reader.slices(key)[:_SLICES_SHOWN]]
    if not facts["slices"]:
        del facts["slices"]
    result = _result(reader, key)
    if result.dtype is DataType.DT_STRING:
        facts["bytes"] = sum(map(len, result.array.ravel().tolist()))
    elif facts["bytes"]:
        facts |= _statistics(result.stored())
    return facts


def _statistics(values: Array) -> dict[str, Any]:
    """The smallest, largest and mean number that is finite; of complex ones their sizes."""
    with np.errstate(all="ignore"):
        numbers = np.abs(values) if values.dtype.kind == "c" else values.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
    facts: dict[str, Any] = {}
    if finite.size:
        mean = float(finite.mean(dtype=np.float64))
        facts = {"smallest": float(finite.min()), "largest": float(finite.max()), "mean": mean}
    if finite.size < numbers.size:
        facts["not_finite"] = int(numbers.size - finite.size)
    return facts


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "; ".join(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _result(reader: CheckpointReader, key: str) -> Result:
    return Result(key, reader.dtype(key), reader.get(key))


def _stored(result: Result) -> Array:
    """The values as .npy files have them.

    Raises:
        InvalidArgumentError: a string ends with a zero byte, which NumPy's bytes of fixed width lose.
    """
    if result.ends_in_zero_byte:
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
        if key in first and key in second:
            what = _difference(first, second, key, atol, rtol)
        else:
            what = f"only in {(first if key in first else second).path}"
        if what:
            yield key, what


def _difference(
    first: CheckpointReader, second: CheckpointReader, key: str, atol: float, rtol: float
) -> str:
    one, other = _entry(first, key), _entry(second, key)
    for fact in ("dtype", "shape"):
        if one[fact] != other[fact]:
            return f"{one[fact]} and {other[fact]}"
    mine, theirs = _result(first, key), _result(second, key)
    if mine.dtype is DataType.DT_STRING:
        differing = int(np.count_nonzero(mine.array != theirs.array))
        return f"{counted(differing, 'string')} of {mine.array.size:,}" if differing else ""
    return _numeric_difference(mine.stored(), theirs.stored(), atol, rtol)


def _numeric_difference(one: Array, other: Array, atol: float, rtol: float) -> str:
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
    left_out = [
        key
        for key in reader
        if key.startswith("_CHECKPOINTABLE")
        or (reader.dtype(key) is DataType.DT_STRING and not output.endswith(".npz"))
    ]
    if left_out:
        names = ", ".join([*map(one_line, left_out[:3]), *(["..."] if len(left_out) > 3 else [])])
        echo(f"Left out: {counted(len(left_out), 'tensor')} of strings ({names})", err=True)
    return [key for key in reader if key not in left_out]


def _write_safetensors(output: str, reader: CheckpointReader, keys: Sequence[str]) -> None:
    """Write a .safetensors file: the length of a header, the header in JSON, then the elements.

    Source: https://github.com/huggingface/safetensors (Format).

    Raises:
        InvalidArgumentError: a tensor is of a type that the format lacks.
    """
    from opkernel.checkpoint.atomic_files import opened_place, replaced_file

    header: dict[str, Any] = {}
    end = 0
    for key in sorted(keys, key=lambda key: -reader.dtype(key).size):  # so that all are aligned
        entry = _entry(reader, key)
        if entry["dtype"] not in _SAFETENSORS_TYPES:
            raise InvalidArgumentError(
                f"{key} is of type {entry['dtype']}, which .safetensors files cannot hold; name the keys to "
                f"export, or write an .npz file"
            )
        begin, end = end, end + entry["bytes"]
        name, shape = _SAFETENSORS_TYPES[entry["dtype"]], entry["shape"]
        header[key] = {"dtype": name, "shape": shape, "data_offsets": [begin, end]}
    text = json_text(header).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    directory, name = opened_place(output)
    with directory, replaced_file(directory, name) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for key in header:
            file.write(np.ascontiguousarray(reader.get(key)).tobytes())


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
