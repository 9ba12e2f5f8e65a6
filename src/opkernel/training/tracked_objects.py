"""TrackedObjects: the objects that can be reached from one, numbered, and the keys of their values.

Source: TensorFlow python/checkpoint/graph_view.py, save_util.py, python/checkpoint/saveable_compat.py.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from opkernel.checkpoint.object_graph import VARIABLE_VALUE
from opkernel.errors import InvalidArgumentError
from opkernel.proto import TrackableObjectGraph
from opkernel.training.module import children_of
from opkernel.training.resource import Resource
from opkernel.training.variable import Variable

_ATTRIBUTES = ".ATTRIBUTES"


class TrackedObjects:
    """The objects under a root, in the order in which they are first met; nearer ones come first.

    Args:
        root: The object.
        same: An object that the root stands for, if there is one.

    Attributes:
        objects: The objects; the root is number 0.
        children: For each the names and numbers of what it holds.
        paths: For each the names that lead to it, escaped and joined.

    Raises:
        InvalidArgumentError: a dict has a key that is no text, for something that is tracked.
    """

    def __init__(self, root: Any, same: Any = None) -> None:
        self.objects: list[Any] = [root]
        self.children: list[list[tuple[str, int]]] = []
        self.paths = [""]
        self._numbers = {id(root): 0} | ({} if same is None else {id(same): 0})
        self._follow(deque([0]))

    def attach(self, name: str, one: Any) -> None:
        """Add an object below the root, after all others; what it holds keeps the shorter paths."""
        queue = deque[int]()
        self.children[0].append((name, self._number(one, 0, name, queue)))
        self._follow(queue)

    def _follow(self, queue: deque[int]) -> None:
        """Number what the objects of a queue hold, and what that holds."""
        while queue:
            number = queue.popleft()
            self.children.append(
                [
                    (name, self._number(child, number, name, queue))
                    for name, child in children_of(self.objects[number])
                ]
            )

    def number(self, one: Any) -> int | None:
        """The number of an object; None where it cannot be reached."""
        return self._numbers.get(id(one))

    def variables(self) -> dict[str, Variable]:
        """The variables by their keys in a checkpoint."""
        return {
            self.key(number): one
            for number, one in enumerate(self.objects)
            if isinstance(one, Variable)
        }

    def tables(self) -> dict[str, tuple[Resource, str]]:
        """The tables whose content is saved, and their attributes, by their keys in a checkpoint."""
        return {
            self.key(number, attribute): (one, attribute)
            for number, one in enumerate(self.objects)
            if isinstance(one, Resource)
            for attribute in one.saveables()
        }

    def key(self, number: int, attribute: str = VARIABLE_VALUE) -> str:
        """The key of the value of a variable, or of another attribute."""
        return "/".join([*filter(None, [self.paths[number]]), _ATTRIBUTES, attribute])

    def to_proto(self) -> TrackableObjectGraph:
        """The objects as checkpoints describe them."""
        proto = TrackableObjectGraph()
        has_values = self._has_values()
        for number, one in enumerate(self.objects):
            node = proto.nodes.add()
            for name, child in self.children[number]:
                node.children.add(node_id=child, local_name=name)
            if isinstance(one, Variable):
                node.attributes.add(
                    name=VARIABLE_VALUE, full_name=one.name, checkpoint_key=self.key(number)
                )
            if isinstance(one, Resource):
                for attribute in one.saveables():
                    key = self.key(number, attribute)
                    node.attributes.add(name=attribute, full_name=one.name, checkpoint_key=key)
            flag: Any = node.has_checkpoint_values
            flag.SetInParent()
            if has_values[number]:
                flag.value = True
        return proto

    def _number(self, child: Any, parent: int, name: Any, queue: deque[int]) -> int:
        if not isinstance(name, str):
            raise InvalidArgumentError(
                f"A dict with the key {name!r} cannot be saved: keys of what is saved are text"
            )
        number = self._numbers.get(id(child))
        if number is None:
            number = self._numbers[id(child)] = len(self.objects)
            self.objects.append(child)
            self.paths.append("/".join([*filter(None, [self.paths[parent]]), _escaped(name)]))
            queue.append(number)
        return number

    def _has_values(self) -> list[bool]:
        """Whether there is a value to save among an object and all that can be reached from it."""
        parents: list[list[int]] = [[] for _ in self.objects]
        for number, children in enumerate(self.children):
            for _, child in children:
                parents[child].append(number)
        found = [False] * len(self.objects)
        waiting = [
            number
            for number, one in enumerate(self.objects)
            if isinstance(one, Variable) or (isinstance(one, Resource) and one.saveables())
        ]
        while waiting:
            number = waiting.pop()
            if not found[number]:
                found[number] = True
                waiting += parents[number]
        return found


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")
