"""ObjectGraph: which keys of a checkpoint belong to which objects, in checkpoints of TF2.

Source: TensorFlow core/protobuf/trackable_object_graph.proto, python/checkpoint/checkpoint.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from opkernel.errors import DataLossError, NotFoundError
from opkernel.messages import did_you_mean
from opkernel.proto import DecodeError, TrackableObjectGraph

if TYPE_CHECKING:
    from opkernel.checkpoint.checkpoint_reader import CheckpointReader

OBJECT_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
VARIABLE_VALUE = "VARIABLE_VALUE"


def _references(node: TrackableObjectGraph.TrackableObject) -> Iterator[tuple[str, int]]:
    """What an object calls others, and their numbers."""
    for child in node.children:
        yield child.local_name, child.node_id
    for slot in node.slot_variables:
        yield f"the variable of {slot.slot_name}", slot.original_variable_node_id
        yield slot.slot_name, slot.slot_variable_node_id


class ObjectGraph:
    """The objects that a checkpoint was saved from.

        graph = ObjectGraph.of(checkpoint)
        kernel = checkpoint.get(graph.key("model/dense/kernel"))
        momentum = checkpoint.get(graph.slot_key("model/dense/kernel", "momentum"))

    Attributes:
        proto: The message: objects refer to each other by their numbers; the root is number 0.

    Raises:
        DataLossError: an object refers to one that is not there.
    """

    def __init__(self, proto: TrackableObjectGraph, what: str = "The object graph") -> None:
        self.proto = proto
        self._what = what
        count = len(proto.nodes)
        if not count:
            raise DataLossError(f"{what} is damaged: it has no object, not even the root")
        for number, node in enumerate(proto.nodes):
            for name, other in _references(node):
                if not 0 <= other < count:
                    raise DataLossError(
                        f"{what} is damaged: object {number} refers to {other} as {name!r}, and there "
                        f"are {count} objects"
                    )

    @classmethod
    def of(cls, checkpoint: CheckpointReader) -> ObjectGraph:
        """The object graph of a checkpoint.

        Raises:
            NotFoundError: the checkpoint has none: it is of TF1.
            DataLossError: it is damaged.
        """
        data = checkpoint.get(OBJECT_GRAPH_KEY)
        what = f"The object graph of checkpoint {checkpoint.path}"
        try:
            return cls(TrackableObjectGraph.FromString(data.item()), what)
        except (DecodeError, TypeError, ValueError) as error:
            raise DataLossError(f"{what} is damaged") from error

    def child(self, number: int, name: str) -> int | None:
        """The number of a child of an object; None where there is no such child."""
        children = self.proto.nodes[number].children
        return next((child.node_id for child in children if child.local_name == name), None)

    def find(self, path: str) -> int:
        """The number of the object at a path, such as `model/layers/0/kernel`.

        Raises:
            NotFoundError: there is none.
        """
        number = 0
        for name in path.split("/") if path else ():
            found = self.child(number, name)
            if found is None:
                names = [child.local_name for child in self.proto.nodes[number].children]
                raise NotFoundError(
                    f"{self._what} has no {path!r}: no {name!r}{did_you_mean(name, names)}"
                )
            number = found
        return number

    def key_of(self, number: int, attribute: str = VARIABLE_VALUE) -> str | None:
        """The key of an attribute of an object; None where it was not saved."""
        saved = self.proto.nodes[number].attributes
        return next((one.checkpoint_key for one in saved if one.name == attribute), None)

    def key(self, path: str, attribute: str = VARIABLE_VALUE) -> str:
        """The key of an attribute of the object at a path.

        Raises:
            NotFoundError: there is none.
        """
        found = self.key_of(self.find(path), attribute)
        if found is None:
            raise NotFoundError(f"{self._what} has no value {attribute} of {path!r}")
        return found

    def slot_key(self, path: str, slot: str) -> str:
        """The key of the slot that an optimiser has for the variable at a path.

        Raises:
            NotFoundError: there is none.
        """
        variable = self.find(path)
        for node in self.proto.nodes:
            for reference in node.slot_variables:
                if (reference.original_variable_node_id, reference.slot_name) == (variable, slot):
                    found = self.key_of(reference.slot_variable_node_id)
                    if found is not None:
                        return found
        raise NotFoundError(f"{self._what} has no slot {slot!r} of {path!r}")

    def paired(self, children: Callable[[int], Iterable[tuple[str, int]]]) -> dict[int, int]:
        """The numbers of objects elsewhere with those of the same objects here.

        The same names, from the root on, lead to the same objects.

        Args:
            children: Gives the names and numbers of the children of an object elsewhere.
        """
        found = {0: 0}
        queue = deque([0])
        while queue:
            number = queue.popleft()
            theirs = self.children(found[number])
            for name, child in children(number):
                if name in theirs and child not in found:
                    found[child] = theirs[name]
                    queue.append(child)
        return found

    def children(self, number: int) -> dict[str, int]:
        """The numbers of the children of an object, by name."""
        return {child.local_name: child.node_id for child in self.proto.nodes[number].children}

    def paths(self) -> Iterator[tuple[str, int]]:
        """A shortest path of each object that can be reached from the root, and its number."""
        seen = {0}
        queue = deque([("", 0)])
        while queue:
            path, number = queue.popleft()
            yield path, number
            for child in self.proto.nodes[number].children:
                if child.node_id not in seen:
                    seen.add(child.node_id)
                    queue.append((f"{path}/{child.local_name}".lstrip("/"), child.node_id))
