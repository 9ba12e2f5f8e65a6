"""Calls of the ops on checkpoint files, and what TensorFlow 2.21 answers: values, or the status code."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["CALLS", "Call", "outcome_of", "write_files"]

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Call = tuple[str, dict[str, Any], Any]
"""The op, its inputs and attrs (`@` begins the names of files), and the outputs or the name of the error."""


def text(*values: str) -> Any:
    return np.array([value.encode() for value in values], object)


def scalar(value: str) -> Any:
    return np.array(value.encode(), object)


def save(prefix: str, names: list[str], slices: list[str], *tensors: Any) -> dict[str, Any]:
    named = {"prefix": scalar(prefix), "tensor_names": text(*names)}
    return {**named, "shape_and_slices": text(*slices), "tensors": [*tensors]}


def restore(
    names: list[str], slices: list[str], dtypes: list[str], prefix: str = "@c"
) -> dict[str, Any]:
    named = {"prefix": scalar(prefix), "tensor_names": text(*names)}
    return {**named, "shape_and_slices": text(*slices), "dtypes": dtypes}


def save_slices(file: str, names: list[str], slices: list[str], *data: Any) -> dict[str, Any]:
    named = {"filename": scalar(file), "tensor_names": text(*names)}
    return {**named, "shapes_and_slices": text(*slices), "data": [*data]}


def restore_v1(pattern: str, name: str, dtype: str = "float32", **more: Any) -> dict[str, Any]:
    return {"file_pattern": scalar(pattern), "tensor_name": scalar(name), "dt": dtype, **more}


def merge(sources: list[str], target: str, **attrs: bool) -> dict[str, Any]:
    prefixes = text(*sources)
    return {"checkpoint_prefixes": prefixes, "destination_prefix": scalar(target), **attrs}


FILES: list[tuple[str, dict[str, Any]]] = [
    ("SaveV2", save("@c", ["a", "b"], ["", "4 3 0,2:-"], X, X)),
    ("SaveV2", save("@p/one", ["x", "b"], ["", "4 3 0,2:-"], X, X)),
    ("SaveV2", save("@q/two", ["y", "b"], ["", "4 3 2,2:-"], X, X + 1)),
    ("SaveV2", save("@same", ["x"], [""], X)),
    ("SaveV2", save("@overlap", ["b", "b"], ["4 3 0,2:-", "4 3 1,2:-"], X, X)),
    ("SaveSlices", save_slices("@v1", ["a", "i"], ["", ""], X, np.array([1, 2], np.int32))),
    ("SaveSlices", save_slices("@s-00000-of-00002", ["a"], ["4 3 0,2:-"], X)),
    ("SaveSlices", save_slices("@s-00001-of-00002", ["a"], ["4 3 2,2:-"], X + 1)),
]
MATRIX = X.tolist()
JOINED = [*MATRIX, *(X + 1).tolist()]
F = "float32"

CALLS: dict[str, Call] = {
    "a tensor": ("RestoreV2", restore(["a"], [""], [F]), [MATRIX]),
    "twice": ("RestoreV2", restore(["a", "a"], ["", "2 3 1,1:-"], [F, F]), [MATRIX, MATRIX[1:]]),
    "part of a tensor": ("RestoreV2", restore(["a"], ["2 3 0,1:1,2"], [F]), [[[2, 3]]]),
    "a colon too many": ("RestoreV2", restore(["a"], ["2 3 0,1:-:"], [F]), [MATRIX[:1]]),
    "a slice that is stored": ("RestoreV2", restore(["b"], ["4 3 0,2:-"], [F]), [MATRIX]),
    "part of a slice": ("RestoreV2", restore(["b"], ["4 3 1,1:-"], [F]), [MATRIX[1:]]),
    "a slice with a gap": ("RestoreV2", restore(["b"], [""], [F]), "InvalidArgumentError"),
    "a gap": ("RestoreV2", restore(["b"], ["4 3 2,1:-"], [F]), "InvalidArgumentError"),
    "slices that overlap": (
        "RestoreV2",
        restore(["b"], ["4 3 0,3:-"], [F], "@overlap"),
        "InternalError",
    ),
    "another type": ("RestoreV2", restore(["a"], [""], ["int32"]), "InvalidArgumentError"),
    "another shape": ("RestoreV2", restore(["a"], ["2 4 -:-"], [F]), "InvalidArgumentError"),
    "another rank": ("RestoreV2", restore(["a"], ["2 3 -"], [F]), "InternalError"),
    "beyond the shape": ("RestoreV2", restore(["a"], ["2 3 1,2:-"], [F]), "InternalError"),
    "no slice": ("RestoreV2", restore(["a"], ["2 3 0,0:-"], [F]), "InvalidArgumentError"),
    "no numbers": ("RestoreV2", restore(["a"], ["2 x -:-"], [F]), "InvalidArgumentError"),
    "a huge number": ("RestoreV2", restore(["a"], [f"{9**30} 3 -:-"], [F]), "InvalidArgumentError"),
    "a word": ("RestoreV2", restore(["a"], ["x"], [F]), "InvalidArgumentError"),
    "no key": ("RestoreV2", restore(["zz"], [""], [F]), "NotFoundError"),
    "no key, after a wrong type": (
        "RestoreV2",
        restore(["a", "zz"], ["", ""], ["int32", F]),
        "NotFoundError",
    ),
    "no file": ("RestoreV2", restore(["a"], [""], [F], "@none"), "NotFoundError"),
    "no directory": ("RestoreV2", restore(["a"], [""], [F], "@none/c"), "NotFoundError"),
    "an index as the prefix": ("RestoreV2", restore(["a"], [""], [F], "@c.index"), "NotFoundError"),
    "fewer slices": ("RestoreV2", restore(["a", "a"], [""], [F]), "InvalidArgumentError"),
    "fewer types": ("RestoreV2", restore(["a", "a"], ["", ""], [F]), "InvalidArgumentError"),
    "a file of V1": ("RestoreV2", restore(["a"], ["2 3 1,1:-"], [F], "@v1"), [MATRIX[1:]]),
    "files of V1": ("RestoreV2", restore(["a"], [""], [F], "@s-?????-of-00002"), [JOINED]),
    "V1, another type": ("RestoreV2", restore(["i"], [""], [F], "@v1"), "InvalidArgumentError"),
    "V1, no key": ("RestoreV2", restore(["zz"], [""], [F], "@v1"), "NotFoundError"),
    "save: a name twice": (
        "SaveV2",
        save("@d", ["a", "a"], ["", ""], X, X),
        "InvalidArgumentError",
    ),
    "save: a slice of another shape": (
        "SaveV2",
        save("@d", ["a"], ["4 3 0,1:-"], X),
        "InvalidArgumentError",
    ),
    "save: a slice beyond": ("SaveV2", save("@d", ["a"], ["4 3 3,2:-"], X), "InternalError"),
    "save: names and tensors": ("SaveV2", save("@d", ["a"], [""], X, X), "InvalidArgumentError"),
    "save: names and slices": ("SaveV2", save("@d", ["a"], ["", ""], X), "InvalidArgumentError"),
    "save: no directories": ("SaveV2", save("@d/e/f", ["a"], [""], X), "NotFoundError"),
    "save: a new directory": ("SaveV2", save("@d/e", ["a"], [""], X), []),
    "save: in the place of a directory": (
        "SaveV2",
        save("@folder", ["a"], [""], X),
        "FailedPreconditionError",
    ),
    "merge": ("MergeV2Checkpoints", merge(["@p/one", "@q/two"], "@whole"), []),
    "merge into a source": ("MergeV2Checkpoints", merge(["@same"], "@same"), []),
    "merge: one is missing": (
        "MergeV2Checkpoints",
        merge(["@p/one", "@none"], "@whole"),
        "InvalidArgumentError",
    ),
    "merge: one may be missing": (
        "MergeV2Checkpoints",
        merge(["@p/one", "@none"], "@whole", allow_missing_files=True),
        [],
    ),
    "merge: all are missing": (
        "MergeV2Checkpoints",
        merge(["@none"], "@whole", allow_missing_files=True),
        "InvalidArgumentError",
    ),
    "merge: a key twice": (
        "MergeV2Checkpoints",
        merge(["@same", "@p/one"], "@whole"),
        "InvalidArgumentError",
    ),
    "V1: a tensor": ("Restore", restore_v1("@v1", "a"), [MATRIX]),
    "V1: a pattern": ("Restore", restore_v1("@v?", "a"), [MATRIX]),
    "V1: files": ("Restore", restore_v1("@s-*", "a"), [JOINED]),
    "V1: one of two files": (
        "Restore",
        restore_v1("@s-00000-of-00002", "a"),
        "InvalidArgumentError",
    ),
    "V1: files of different tensors": ("Restore", restore_v1("@[sv][-1]*", "a"), "InternalError"),
    "V1: not of V2": ("Restore", restore_v1("@c", "a"), "NotFoundError"),
    "V1: a data file of V2": ("Restore", restore_v1("@c.data*", "a"), "DataLossError"),
    "V1: an index of V2": ("Restore", restore_v1("@c.index", "a"), "NotFoundError"),
    "V1: wrong type": ("Restore", restore_v1("@v1", "a", "int32"), "InvalidArgumentError"),
    "V1: a wrong key": ("Restore", restore_v1("@v1", "zz"), "NotFoundError"),
    "V1: a slice": (
        "RestoreSlice",
        restore_v1("@v1", "a", shape_and_slice=scalar("2 3 1,1:0,2")),
        [[[4, 5]]],
    ),
    "V1: a slice of slices": (
        "RestoreSlice",
        restore_v1("@s-*", "a", shape_and_slice=scalar("4 3 1,2:-")),
        [[MATRIX[1], [2, 3, 4]]],
    ),
    "V1: a slice of another shape": (
        "RestoreSlice",
        restore_v1("@v1", "a", shape_and_slice=scalar("5 3 1,2:-")),
        "InvalidArgumentError",
    ),
    "V1: save": ("Save", {"filename": scalar("@n"), "tensor_names": text("a"), "data": [X]}, []),
    "V1: save uint64": (
        "SaveSlices",
        save_slices("@n", ["a"], [""], np.array([1], np.uint64)),
        "InvalidArgumentError",
    ),
    "V1: save other types": (
        "SaveSlices",
        save_slices("@n", ["a", "a"], ["4 3 0,2:-", "4 3 2,2:-"], X, X.astype(np.int32)),
        "InternalError",
    ),
    "V1: save more than names": (
        "Save",
        {"filename": scalar("@n"), "tensor_names": text("a"), "data": [X, X]},
        "InvalidArgumentError",
    ),
    "the name of a part": (
        "ShardedFilename",
        {"basename": scalar("m"), "shard": np.int32(3), "num_shards": np.int32(12)},
        [b"m-00003-of-00012"],
    ),
    "the name of a part, of many": (
        "ShardedFilename",
        {"basename": scalar("m"), "shard": np.int32(-3), "num_shards": np.int32(1234567)},
        [b"m--0003-of-1234567"],
    ),
    "the pattern of the parts": (
        "ShardedFilespec",
        {"basename": scalar("m"), "num_shards": np.int32(12)},
        [b"m-?????-of-00012"],
    ),
}


def write_files(raw_ops: Any, folder: Path) -> None:
    """Write the files that the calls read."""
    for op, inputs in FILES:
        getattr(raw_ops, op)(**_in_folder(inputs, folder))
    (folder / "folder.index").mkdir()


def outcome_of(raw_ops: Any, call: Call, folder: Path, dtype: Callable[[str], Any]) -> Any:
    """The outputs of a call as lists, or the name of the error's class."""
    op, inputs, _ = call
    given = _in_folder(inputs, folder)
    for attr in ("dt", "dtypes"):
        if attr in given:
            names = given[attr]
            given[attr] = [*map(dtype, names)] if attr == "dtypes" else dtype(names)
    try:
        found = getattr(raw_ops, op)(**given)
    except Exception as error:
        return type(error).__name__
    outputs = [] if found is None else [*found] if isinstance(found, list | tuple) else [found]
    return [np.asarray(one).tolist() for one in outputs]


def _in_folder(inputs: dict[str, Any], folder: Path) -> dict[str, Any]:
    return {name: _with_folder(value, folder) for name, value in inputs.items()}


def _with_folder(value: Any, folder: Path) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "O":
        return value
    result = np.empty(value.shape, object)
    for place in np.ndindex(value.shape):
        name: Any = value[place]
        result[place] = name.replace(b"@", os.fsencode(f"{folder}/"))
    return result
