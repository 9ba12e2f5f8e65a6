"""save: a module, or a model that was loaded, as a SavedModel that TensorFlow loads.

The directory appears whole, or not at all: it is written beside its place and then takes it in one step. On Linux the old
directory and the new one are exchanged (renameat2), so that at any moment one of them is there.

Source: TensorFlow python/saved_model/save.py.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from opkernel.checkpoint import ObjectGraph, load_checkpoint
from opkernel.checkpoint.object_graph import OBJECT_GRAPH_KEY
from opkernel.device.opened_files import copy_file
from opkernel.device.permissions import Permissions
from opkernel.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from opkernel.file_errors import checked_path, file_errors
from opkernel.files import Directory
from opkernel.interop.loaded_model import LoadedModel
from opkernel.interop.module_writer import write_module
from opkernel.interop.session_model import SessionModel
from opkernel.interrupts import contextmanager
from opkernel.training import Module
from opkernel.training.checkpoint import write_values

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_MODEL_FILES = {"saved_model.pb", "saved_model.pbtxt"}
_CONTENTS = {
    *_MODEL_FILES,
    "assets",
    "assets.extra",
    "debug",
    "fingerprint.pb",
    "keras_metadata.pb",
    "variables",
}


@contextmanager
def written_directory(path: str) -> Iterator[str]:
    """A new directory to write to, which becomes `path` when the block ends without an error.

    Raises:
        InvalidArgumentError: no directory can have that path.
        AlreadyExistsError: `path` is something else than a SavedModel or an empty directory, or holds more.
        NotFoundError, PermissionDeniedError, UnavailableError: it cannot be written.
    """
    target = os.path.realpath(checked_path(path))  # a link stays a link
    with file_errors(target):
        _check_replaceable(target)
        folder, name = os.path.split(target)
        made = os.path.join(folder, f".{name}-{secrets.token_hex(8)}")
        try:
            os.makedirs(made)
            yield made
            _flush(made)
            _put_in_place(made, target)
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _check_replaceable(target: str) -> None:
    if not os.path.lexists(target):
        return
    names = os.listdir(target) if os.path.isdir(target) else [""]
    if names and not _MODEL_FILES & {*names}:
        raise AlreadyExistsError(f"{target} exists and is no SavedModel: it is not replaced")
    others = sorted({*names} - _CONTENTS)
    if others:
        raise AlreadyExistsError(
            f"{target} has {others[0]!r} beside a SavedModel, which would be lost: it is not replaced"
        )


def _flush(directory: str) -> None:
    """Bring what is in a directory to the disk."""
    for folder, _, files in os.walk(directory):
        for name in files:
            with open(os.path.join(folder, name), "rb+") as file:
                os.fsync(file.fileno())
        with Directory(folder) as place:
            place.flush()


def _put_in_place(made: str, target: str) -> None:
    """Give a directory its name; what had the name before has that of the new one then."""
    if os.path.isdir(target) and not _exchanged(made, target):
        old = f"{made}-old"
        try:
            os.rename(target, old)
            os.rename(made, target)
        except BaseException:
            os.rename(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    elif not os.path.isdir(target):
        os.rename(made, target)
    with Directory(os.path.dirname(target)) as place:
        place.flush()


def _exchanged(one: str, other: str) -> bool:
    """Exchange two directories; False where the system cannot."""
    with suppress(OSError, AttributeError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        paths = os.fsencode(one), os.fsencode(other)
        return bool(rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0)
    return False


_COPIED = ("saved_model.pb", "saved_model.pbtxt", "assets", "assets.extra", "debug")


def save(
    model: Module | LoadedModel | SessionModel,
    directory: str | os.PathLike[str],
    *,
    signatures: Mapping[str, Any] | Any = None,
) -> None:
    """Save a model; a SavedModel that the directory holds is replaced, at once and whole.

    Of a Module all variables and tables, the functions that were traced or have an input signature, the loaded models
    that it holds and parts of them, and the signatures are saved. A loaded model keeps what it was loaded with, and its variables are saved as they are now.

    Args:
        model: The model.
        directory: Where to save it.
        signatures: For a Module: functions by the names of signatures, or one function for `serving_default`. Each
            is a concrete function or has an input signature; it takes tensors, and gives a tensor, several, or a
            dict of them. Without any, the only function with an input signature is taken.

    Raises:
        InvalidArgumentError: a function or a signature cannot be saved.
        AlreadyExistsError: the directory holds something else, or something beside a SavedModel.
        NotFoundError, PermissionDeniedError, UnavailableError: the directory cannot be written, or an asset read.
        UnimplementedError: signatures for a loaded model, or a Module with something that cannot be saved.
    """
    if isinstance(model, Module):
        with written_directory(os.fspath(directory)) as place:
            write_module(model, place, signatures)
        return
    if not isinstance(model, LoadedModel | SessionModel):
        raise InvalidArgumentError(
            f"Modules and loaded models can be saved, not {type(model).__name__}"
        )
    if signatures is not None:
        raise UnimplementedError("A loaded model is saved with the signatures that it has")
    with written_directory(os.fspath(directory)) as place:
        _copy(model, place)
        if isinstance(model, LoadedModel):
            _write_variables(model, place)
        else:
            _run_saver(model, place)


def _copy(model: LoadedModel | SessionModel, place: str) -> None:
    """Copy all but the values."""
    source = model.path
    if not os.path.isdir(source):
        raise UnimplementedError(f"{source} is no SavedModel: its Saver saves the values alone")
    for name in _COPIED:
        path = os.path.join(source, name)
        if os.path.isdir(path):
            if os.path.islink(path):
                model.permissions.check_read(path)
            _copy_folder(model.permissions, path, os.path.join(place, name))
        elif os.path.exists(path):
            shutil.copyfile(path, os.path.join(place, name))
    os.mkdir(os.path.join(place, "variables"))


def _copy_folder(permissions: Permissions, source: str, target: str) -> None:
    """Copy a folder; a link in it is copied as the file that it leads to, if the model may read that.

    Raises:
        PermissionDeniedError: it may not.
    """
    os.mkdir(target)
    with os.scandir(source) as entries:
        for entry in entries:
            copy = os.path.join(target, entry.name)
            if entry.is_symlink():
                copy_file(permissions, entry.path, copy)
            elif entry.is_dir():
                _copy_folder(permissions, entry.path, copy)
            else:
                shutil.copyfile(entry.path, copy)


def _write_variables(model: LoadedModel, place: str) -> None:
    """Write the values of now, under the keys that they were loaded from."""
    objects = model.saved_objects
    prefix = objects.files.variables_prefix
    if prefix is None:
        os.rmdir(os.path.join(place, "variables"))
        return
    with load_checkpoint(prefix, open_file=model.permissions.open_to_read) as reader:
        values: dict[str, Any] = {key: reader.get(key) for key in reader if key != OBJECT_GRAPH_KEY}
        graph = ObjectGraph.of(reader)
    values |= objects.current_values()
    write_values(os.path.join(place, "variables", "variables"), values, graph.proto)


def _run_saver(model: SessionModel, place: str) -> None:
    """Have the Saver of the graph write the values."""
    saver = model.meta_graph.saver_def
    if not saver.save_tensor_name:
        if model.variables:
            raise FailedPreconditionError(f"{model.path} has variables, and no Saver to save them")
        os.rmdir(os.path.join(place, "variables"))
        return
    prefix = os.path.join(place, "variables", "variables")
    feeds = {saver.filename_tensor_name: prefix.encode()}
    model.session.run_saver(saver.save_tensor_name, feeds, saves=prefix)
