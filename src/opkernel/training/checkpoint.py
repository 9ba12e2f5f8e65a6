"""Checkpoint: saves and restores the variables of objects, by where they stand in them.

Source: TensorFlow python/checkpoint/checkpoint.py.
"""

from __future__ import annotations

import os
from collections import deque
from typing import Any

import numpy as np

from opkernel.checkpoint import (
    BundleWriter,
    ObjectGraph,
    load_checkpoint,
    update_checkpoint_state,
)
from opkernel.checkpoint.object_graph import OBJECT_GRAPH_KEY
from opkernel.errors import InvalidArgumentError
from opkernel.training.module import Module, children_of
from opkernel.training.tracked_objects import TrackedObjects
from opkernel.training.variable import Variable
from opkernel.types import DataType

__all__ = ["Checkpoint", "write_variables"]


class Checkpoint(Module):
    """Objects whose variables are saved and restored together; TensorFlow's `tf.train.Checkpoint` reads them.

        checkpoint = opkernel.Checkpoint(model=model, optimizer=optimizer)
        path = checkpoint.save("run/ckpt")
        checkpoint.restore(path)

    Args:
        objects: Variables, modules, optimisers, lists and dicts of them, by the names to save them under.
    """

    def __init__(self, **objects: Any) -> None:
        for name, one in sorted(objects.items()):
            setattr(self, name, one)

    def write(self, prefix: str | os.PathLike[str]) -> str:
        """Write the values; a checkpoint of this prefix is replaced, whole.

        Returns:
            The prefix.

        Raises:
            NotFoundError, PermissionDeniedError: the files cannot be written.
        """
        write_variables(prefix, TrackedObjects(self))
        return os.fspath(prefix)

    def save(self, prefix: str | os.PathLike[str]) -> str:
        """Write the values under `prefix-NUMBER`, and name it in the directory's file `checkpoint`.

        Returns:
            The prefix with its number, which is counted up at each save.
        """
        if not hasattr(self, "save_counter"):
            self.save_counter = Variable(np.int64(0), trainable=False, name="save_counter")
        self.save_counter.assign_add(np.int64(1))
        path = self.write(f"{os.fspath(prefix)}-{int(self.save_counter)}")
        directory = os.path.dirname(path) or "."
        update_checkpoint_state(directory, path)
        return path

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Give the variables the values that a checkpoint has for objects of the same names.

        Objects that the checkpoint lacks stay as they are, and so does everything on an error.

        Args:
            path: The prefix, or a directory with a `checkpoint` file.

        Raises:
            NotFoundError: there is no checkpoint, or it is one of TF1.
            InvalidArgumentError: a value has another type or shape than its variable, or the checkpoint has no
                value for any of them.
            DataLossError: the checkpoint is damaged.
        """
        with load_checkpoint(path) as reader:
            graph = ObjectGraph.of(reader)
            found = _matched(self, graph)
            values = [(variable, reader.get(key)) for variable, key in found]
        if not values and TrackedObjects(self).variables():
            raise InvalidArgumentError(f"{path} has values for none of the objects")
        for variable, value in values:
            _check(variable, value)
        for variable, value in values:
            variable.assign(value)


def _matched(root: Any, graph: ObjectGraph) -> list[tuple[Variable, str]]:
    """The variables under a root with their keys; the same names lead to both."""
    found: list[tuple[Variable, str]] = []
    seen = {id(root)}
    queue = deque([(root, 0)])
    while queue:
        one, number = queue.popleft()
        if isinstance(one, Variable):
            key = graph.key_of(number)
            if key is not None:
                found.append((one, key))
            continue
        for name, child in children_of(one):
            match = graph.child(number, name)
            if match is not None and id(child) not in seen:
                seen.add(id(child))
                queue.append((child, match))
    return found


def _check(variable: Variable, value: Any) -> None:
    fits = value.dtype == variable.dtype.numpy_dtype and variable.shape.is_compatible_with(
        type(variable.shape)(value.shape)
    )
    if not fits:
        raise InvalidArgumentError(
            f"Variable {variable.name!r} is {variable.dtype.tf_name}{variable.shape}, and the checkpoint has "
            f"{value.dtype}{list(value.shape)}"
        )


def write_variables(prefix: str | os.PathLike[str], tracked: TrackedObjects) -> None:
    """Write the variables of objects as a checkpoint with their object graph.

    Raises:
        NotFoundError, PermissionDeniedError: the files cannot be written.
        FailedPreconditionError: a variable has no value.
    """
    graph = np.empty((), object)
    graph[()] = tracked.to_proto().SerializeToString(deterministic=True)
    with BundleWriter(prefix) as writer:
        for key, variable in tracked.variables().items():
            writer.add(key, variable.numpy(), variable.dtype)
        writer.add(OBJECT_GRAPH_KEY, graph, DataType.DT_STRING)
