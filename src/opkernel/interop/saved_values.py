"""SavedValues: what the checkpoint of a SavedModel of TF2 holds for its objects.

The object graph of the checkpoint numbers the objects in its own way: the same names, from the root on, lead to the
same objects.

Source: TensorFlow python/checkpoint/restore.py, python/saved_model/load.py.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opkernel.checkpoint import ObjectGraph, load_checkpoint
from opkernel.checkpoint.object_graph import VARIABLE_VALUE
from opkernel.device.permissions import Permissions
from opkernel.errors import DataLossError, NotFoundError
from opkernel.proto import SavedObject
from opkernel.types import DataType, PartialTensorShape

if TYPE_CHECKING:
    from opkernel.checkpoint import CheckpointReader
    from opkernel.interop.saved_model.saved_model_files import SavedModelFiles


class SavedValues:
    """The values of objects; the checkpoint is opened when the first is asked for.

    Args:
        files: The files of the model.
        nodes: The objects.
        children: Gives the numbers of the children of an object, by name.
        permissions: Which files may be read.
    """

    def __init__(
        self,
        files: SavedModelFiles,
        nodes: Sequence[SavedObject],
        children: Callable[[int], Mapping[str, int]],
        permissions: Permissions,
    ) -> None:
        self._files = files
        self._nodes = nodes
        self._children = children
        self._permissions = permissions
        self._lock = threading.Lock()

    def key(
        self, number: int, attribute: str = VARIABLE_VALUE
    ) -> tuple[CheckpointReader, str] | None:
        """The reader and key of an attribute of an object; None where it was not saved.

        Raises:
            NotFoundError: the model has no checkpoint, or parts of it are missing.
            DataLossError: the checkpoint is damaged.
        """
        with self._lock:
            reader, graph, pairs = self._checkpoint
        key = graph.key_of(pairs[number], attribute) if number in pairs else None
        return None if key is None else (reader, key)

    def variable(self, number: int, name: str, dtype: DataType, shape: PartialTensorShape) -> Any:
        """The value of a variable.

        Raises:
            NotFoundError: there is no checkpoint.
            DataLossError: the checkpoint lacks the value, or has another type or shape.
        """
        found = self.key(number)
        if found is None:
            raise self._damage(f"the value of variable {name!r} was not saved")
        reader, key = found
        stored = reader.dtype(key)
        if stored is not dtype or not shape.is_compatible_with(
            PartialTensorShape(reader.shape(key))
        ):
            raise self._damage(
                f"variable {name!r} is {dtype.tf_name}{shape}, and {key} of the checkpoint is "
                f"{stored.tf_name}{reader.shape(key)}"
            )
        return reader.get(key)

    @cached_property
    def _checkpoint(self) -> tuple[CheckpointReader, ObjectGraph, dict[int, int]]:
        """The checkpoint, its object graph, and the number there of each object here."""
        prefix = self._files.variables_prefix
        if prefix is None:
            raise NotFoundError(
                f"{self._files.path} has variables, and there is no directory "
                f"{self._files.variables_directory} with their values"
            )
        self._files.check_fingerprint()
        reader = load_checkpoint(prefix, open_file=self._permissions.open_to_read)
        graph = ObjectGraph.of(reader)
        return reader, graph, self._paired(graph)

    def _paired(self, graph: ObjectGraph) -> dict[int, int]:
        """The numbers in the checkpoint of the objects here, which the same names lead to."""
        if not graph.proto.nodes:
            return {}
        found = {0: 0}
        queue = deque([0])
        while queue:
            number = queue.popleft()
            theirs = {c.local_name: c.node_id for c in graph.proto.nodes[found[number]].children}
            for name, child in self._children(number).items():
                if name in theirs and child not in found:
                    found[child] = theirs[name]
                    queue.append(child)
            self._pair_slots(number, graph, found, queue)
        return found

    def _pair_slots(
        self, number: int, graph: ObjectGraph, found: dict[int, int], queue: deque[int]
    ) -> None:
        slots = self._nodes[number].slot_variables
        if not slots:
            return
        theirs = {
            (slot.original_variable_node_id, slot.slot_name): slot.slot_variable_node_id
            for slot in graph.proto.nodes[found[number]].slot_variables
            if 0 <= slot.slot_variable_node_id < len(graph.proto.nodes)
        }
        for slot in slots:
            original = found.get(slot.original_variable_node_id)
            match = theirs.get((original, slot.slot_name)) if original is not None else None
            if match is not None and slot.slot_variable_node_id not in found:
                found[slot.slot_variable_node_id] = match
                queue.append(slot.slot_variable_node_id)

    def _damage(self, fact: str) -> DataLossError:
        return DataLossError(f"{self._files.path} is damaged: {fact}")
