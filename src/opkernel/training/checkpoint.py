"""Checkpoint: saves and restores the variables of objects, by where they stand in them.

Source: TensorFlow python/checkpoint/checkpoint.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opkernel.checkpoint import BundleWriter, ObjectGraph, load_checkpoint, update_checkpoint_state
from opkernel.checkpoint.atomic_files import make_directory
from opkernel.checkpoint.checkpoint_state import checked_prefix
from opkernel.checkpoint.object_graph import OBJECT_GRAPH_KEY
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.file_errors import checked_path
from opkernel.proto import TrackableObjectGraph
from opkernel.tracebacks import entrances
from opkernel.training.module import Module, TrackedObjects, children_of
from opkernel.training.optimizer import Optimizer
from opkernel.training.resource import PARTS_OF_TABLE, Resource
from opkernel.training.variable import Variable, assign_saved
from opkernel.types import DataType

Tables = list[tuple[Callable[..., Any], str]]


def matched_values(root: Any, same: Any, graph: ObjectGraph) -> tuple[dict[Variable, str], Tables]:
    """The variables under a root with the keys of their values, and what restores tables with the keys of these.

    The same names lead to an object here and in the checkpoint.

    Args:
        root: The object.
        same: An object that it stands for, if there is one.
        graph: What the checkpoint has.

    Raises:
        FailedPreconditionError: an optimiser has no slots, and its variables are not among those matched.
    """
    tracked = TrackedObjects(root, same)
    pairs = graph.paired(tracked.children.__getitem__)
    if _build_optimizers(tracked, pairs, graph):
        tracked = TrackedObjects(root, same)
        pairs = graph.paired(tracked.children.__getitem__)
    found, tables = dict[Variable, str](), Tables()
    for number, match in pairs.items():
        one = tracked.objects[number]
        if isinstance(one, Variable):
            key = graph.key_of(match)
            found |= {} if key is None else {one: key}
        elif isinstance(one, Resource):
            for attribute, (_, restore) in one.saveables().items():
                key = graph.key_of(match, attribute)
                tables += [] if key is None else [(restore, key)]
    return found, tables


def _build_optimizers(tracked: TrackedObjects, pairs: dict[int, int], graph: ObjectGraph) -> bool:
    """Give optimisers the slots that the checkpoint has values for; whether there were such."""
    ours = {match: tracked.objects[number] for number, match in pairs.items()}
    was_built = False
    for number, match in pairs.items():
        one = tracked.objects[number]
        if isinstance(one, Optimizer) and one.saved_slots() and not one.slot_names:
            trained = graph.children(match).get("_trainable_variables")
            numbers = [] if trained is None else [*graph.children(trained).values()]
            variables = [ours.get(number) for number in numbers]
            found = [variable for variable in variables if isinstance(variable, Variable)]
            if len(found) < len(numbers):
                raise FailedPreconditionError(
                    f"{type(one).__name__} has no slots for the values of the checkpoint: restore the model in the "
                    f"same Checkpoint, or call optimizer.build(variables) before"
                )
            one.build(found)
            was_built = was_built or bool(found)
    return was_built


@entrances
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
            contents = [
                (restore, [reader.get(f"{key}{end}") for end in PARTS_OF_TABLE])
                for restore, key in tables
            ]
        missing = [name for name, one in self.named_variables.items() if one not in found]
        if not values and not contents and missing != ["save_counter"]:
            raise InvalidArgumentError(f"{path} has values for none of the objects")
        assign_saved("Variable", values)
        for restore, parts in contents:
            restore(*parts)
        return [name for name in missing if name != "save_counter"]

    def __repr__(self) -> str:
        own = {name: one for name, one in vars(self).items() if name[:1] != "_"}
        parts = ({} if self._root is None else {"root": self._root}) | own
        held = ", ".join([f"{name}={type(one).__name__}" for name, one in parts.items()])
        return f"<opkernel.Checkpoint({held}), variables: {len(self.named_variables)}>"

    def _count_saves(self) -> None:
        if not hasattr(self, "save_counter"):
            self.save_counter = Variable(np.int64(0), trainable=False, name="save_counter")


def write_variables(prefix: str | os.PathLike[str], tracked: TrackedObjects) -> None:
    """Write the variables and tables of objects as a checkpoint with their object graph.

    Raises:
        NotFoundError, PermissionDeniedError: the files cannot be written.
        FailedPreconditionError: a variable has no value.
    """
    values: dict[str, Any] = {**tracked.variables()}
    for key, (table, attribute) in tracked.tables().items():
        values |= {key + end: part for end, part in table.saved_parts(attribute).items()}
    write_values(prefix, values, tracked.to_proto())


def write_values(
    prefix: str | os.PathLike[str], values: Mapping[str, Any], objects: TrackableObjectGraph
) -> None:
    """Write variables and arrays by their keys as a checkpoint, with its object graph.

    Raises:
        NotFoundError, PermissionDeniedError: the files cannot be written.
        FailedPreconditionError: a variable has no value.
    """
    graph = np.empty((), object)
    graph[()] = objects.SerializeToString(deterministic=True)
    with BundleWriter(prefix) as writer:
        for key, value in values.items():
            if isinstance(value, Variable):
                writer.add(key, value.numpy(), value.dtype)
            else:
                writer.add(key, value)
        writer.add(OBJECT_GRAPH_KEY, graph, DataType.DT_STRING)
