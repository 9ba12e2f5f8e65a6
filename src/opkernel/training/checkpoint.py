"""Checkpoint: saves and restores the variables of objects, by where they stand in them.

Source: TensorFlow python/checkpoint/checkpoint.py.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from opkernel.checkpoint import (
    BundleWriter,
    CheckpointReader,
    ObjectGraph,
    load_checkpoint,
    update_checkpoint_state,
)
from opkernel.checkpoint.atomic_files import make_directory
from opkernel.checkpoint.checkpoint_state import checked_prefix
from opkernel.checkpoint.object_graph import OBJECT_GRAPH_KEY
from opkernel.errors import InvalidArgumentError
from opkernel.file_errors import checked_path
from opkernel.training.matched_objects import matched_values
from opkernel.training.module import Module, children_of
from opkernel.training.resource import PARTS_OF_TABLE
from opkernel.training.tracked_objects import TrackedObjects
from opkernel.training.variable import Variable
from opkernel.types import DataType, PartialTensorShape


class Checkpoint(Module):
    """Objects whose variables are saved and restored together; TensorFlow's `tf.train.Checkpoint` reads them.

        checkpoint = opkernel.Checkpoint(model=model, optimizer=optimizer)
        path = checkpoint.save("run/ckpt")
        checkpoint.restore(path)

    Args:
        root: An object whose parts are saved under their own names.
        objects: Variables, modules, optimisers, lists and dicts of them, by the names to save them under.

    Attributes:
        save_counter: How often `save` was called; from the first `save` or `restore` on.

    Raises:
        InvalidArgumentError: one of them has nothing that could be saved.
    """

    def __init__(self, root: Any = None, **objects: Any) -> None:
        self._root = root
        for name, one in sorted(objects.items()):
            setattr(self, name, one)
        tracked = dict(children_of(self))
        for name, one in objects.items():
            if name not in tracked:
                raise InvalidArgumentError(
                    f"{name!r} cannot be saved: {type(one).__name__} is no variable, module, optimiser, list or dict"
                )

    def _tracked_children(self) -> dict[str, Any]:
        own = {name: value for name, value in vars(self).items() if name != "_root"}
        if self._root is None:
            return own
        return {**dict(children_of(self._root)), "root": self._root, **own}

    def write(self, prefix: str | os.PathLike[str]) -> str:
        """Write the values; a checkpoint of this prefix is replaced, whole. Its directory is made if it is missing.

        Returns:
            The prefix.

        Raises:
            InvalidArgumentError: an object cannot be saved, or no file can have that prefix.
            NotFoundError, PermissionDeniedError: the files cannot be written.
        """
        tracked, path = TrackedObjects(self, self._root), checked_path(prefix)
        make_directory(os.path.dirname(path))
        write_variables(path, tracked)
        return path

    def save(self, prefix: str | os.PathLike[str]) -> str:
        """Write the values under `prefix-NUMBER`, and name it in the directory's file `checkpoint`.

        Returns:
            The prefix with its number, which is counted up at each save.

        Raises:
            InvalidArgumentError: an object cannot be saved, or no file in `checkpoint` can have that prefix.
            NotFoundError, PermissionDeniedError: the files cannot be written.
        """
        start = checked_prefix(prefix)
        self._count_saves()
        before = self.save_counter.numpy()
        try:
            self.save_counter.assign_add(np.int64(1))
            path = self.write(f"{start}-{int(self.save_counter)}")
        except BaseException:
            self.save_counter.assign(before)
            raise
        update_checkpoint_state(os.path.dirname(path) or ".", path)
        return path

    def restore(self, path: str | os.PathLike[str]) -> list[str]:
        """Give the variables the values that a checkpoint has for objects of the same names.

        Objects that the checkpoint lacks stay as they are, and so does everything on an error. An optimiser that
        has not taken a step yet gets its slots, if its variables are restored, too.

        Args:
            path: The prefix, or a directory with a `checkpoint` file.

        Returns:
            The paths of the variables that the checkpoint has no values for.

        Raises:
            NotFoundError: there is no checkpoint, or it is one of TF1.
            InvalidArgumentError: a value has another type or shape than its variable, or the checkpoint has no
                value for any of them.
            FailedPreconditionError: an optimiser has no slots, and its variables are not restored.
            DataLossError: the checkpoint is damaged.
        """
        with load_checkpoint(path) as reader:
            graph = ObjectGraph.of(reader)
            self._count_saves()
            found, tables = matched_values(self, self._root, graph)
            values = [(variable, reader.get(key)) for variable, key in found.items()]
            contents = [(restore, _parts(reader, key)) for restore, key in tables]
        missing = [name for name, one in self.named_variables.items() if one not in found]
        if not values and not contents and missing != ["save_counter"]:
            raise InvalidArgumentError(f"{path} has values for none of the objects")
        for variable, value in values:
            _check(variable, value)
        for variable, value in values:
            variable.assign(value)
        for restore, parts in contents:
            restore(*parts)
        return [name for name in missing if name != "save_counter"]

    def _count_saves(self) -> None:
        if not hasattr(self, "save_counter"):
            self.save_counter = Variable(np.int64(0), trainable=False, name="save_counter")


def _parts(reader: CheckpointReader, key: str) -> list[Any]:
    """The tensors of a table."""
    return [reader.get(f"{key}{end}") for end in PARTS_OF_TABLE]


def _check(variable: Variable, value: Any) -> None:
    shape = PartialTensorShape(value.shape)
    if value.dtype != variable.dtype.numpy_dtype or not variable.shape.is_compatible_with(shape):
        raise InvalidArgumentError(
            f"Variable {variable.name!r} is {variable.dtype.tf_name}{variable.shape}, and the checkpoint has "
            f"{value.dtype}{shape}"
        )


def write_variables(prefix: str | os.PathLike[str], tracked: TrackedObjects) -> None:
    """Write the variables and tables of objects as a checkpoint with their object graph.

    Raises:
        NotFoundError, PermissionDeniedError: the files cannot be written.
        FailedPreconditionError: a variable has no value.
    """
    graph = np.empty((), object)
    graph[()] = tracked.to_proto().SerializeToString(deterministic=True)
    with BundleWriter(prefix) as writer:
        for key, variable in tracked.variables().items():
            writer.add(key, variable.numpy(), variable.dtype)
        for key, (table, attribute) in tracked.tables().items():
            for end, tensor in table.saved_parts(attribute).items():
                writer.add(key + end, tensor)
        writer.add(OBJECT_GRAPH_KEY, graph, DataType.DT_STRING)
