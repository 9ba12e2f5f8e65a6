"""save: a module, or a model that was loaded, as a SavedModel that TensorFlow loads.

Source: TensorFlow python/saved_model/save.py.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

import numpy as np

from opkernel.checkpoint import BundleWriter, ObjectGraph, load_checkpoint
from opkernel.checkpoint.object_graph import OBJECT_GRAPH_KEY
from opkernel.device.opened_files import copy_file
from opkernel.device.permissions import Permissions
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from opkernel.interop.loaded_model import LoadedModel
from opkernel.interop.module_writer import write_module
from opkernel.interop.saved_model.directory_writer import written_directory
from opkernel.interop.session_model import SessionModel
from opkernel.training import Module, Variable
from opkernel.types import DataType

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
        graph = np.empty((), object)
        graph[()] = ObjectGraph.of(reader).proto.SerializeToString(deterministic=True)
    values |= objects.current_values()
    with BundleWriter(os.path.join(place, "variables", "variables")) as writer:
        for key, value in values.items():
            if isinstance(value, Variable):
                writer.add(key, value.numpy(), value.dtype)
            else:
                writer.add(key, value)
        writer.add(OBJECT_GRAPH_KEY, graph, DataType.DT_STRING)


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
