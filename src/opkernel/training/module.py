"""Module: an object whose variables are found by where they stand in it; and the objects that it tracks.

TrackedObjects are the objects that can be reached from one, numbered, and the keys of their values.

Source: TensorFlow python/module/module.py, python/trackable/autotrackable.py; python/checkpoint/graph_view.py, save_util.py,
saveable_compat.py.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from typing import Any

from opkernel.checkpoint.object_graph import VARIABLE_VALUE
from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.edges import reached
from opkernel.proto import TrackableObjectGraph
from opkernel.training.resource import Resource
from opkernel.training.variable import Variable


class Module:
    """A base for models: what its attributes hold is part of it.

        class Dense(opkernel.Module):
            def __init__(self, inputs: int, outputs: int) -> None:
                self.kernel = opkernel.Variable(np.zeros((inputs, outputs), np.float32))

            @opkernel.function
            def __call__(self, x):
                return x @ self.kernel

    Variables, modules, and lists, tuples and dicts of them count, however deep. Attributes whose names begin with
    `_` count too.
    """

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All its variables, each once, in the order of their paths' lengths."""
        return tuple(named_variables(self).values())

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The variables that training changes."""
        return tuple([variable for variable in self.variables if variable.trainable])

    @property
    def named_variables(self) -> dict[str, Variable]:
        """Its variables by path: `layers/0/kernel`."""
        return named_variables(self)


def named_variables(root: Any) -> dict[str, Variable]:
    """The variables that an object holds, by path; each once, under the shortest."""
    found: dict[str, Variable] = {}
    seen = {id(root): root}  # kept, so that no other object gets its id
    queue = deque([("", root)])
    while queue:
        path, one = queue.popleft()
        if isinstance(one, Variable):
            found[path] = one
            continue
        for name, child in children_of(one):
            if id(child) not in seen:
                seen[id(child)] = child
                queue.append((f"{path}/{name}" if path else name, child))
    return found


def children_of(one: Any) -> Iterator[tuple[Any, Any]]:
    """What an object holds that is tracked, with the names by which TensorFlow saves it."""
    if hasattr(one, "_tracked_children"):
        pairs: Any = one._tracked_children().items()
    elif isinstance(one, list | tuple):
        fields = getattr(one, "_fields", ())
        pairs = [*zip(fields, one, strict=False), *((str(i), child) for i, child in enumerate(one))]
    elif isinstance(one, Mapping):
        pairs = one.items()
    else:
        pairs = vars(one).items() if isinstance(one, Module) else ()
    for name, child in pairs:
        if _is_tracked(child):
            yield name, child


def _is_tracked(value: Any) -> bool:
    """Whether a value is an object of its own; lists and dicts are, though they hold nothing."""
    if isinstance(value, Variable | Module) or hasattr(value, "_tracked_children"):
        return True
    if isinstance(value, tuple):
        return any(map(_is_tracked, value))
    return type(value) in _CONTAINERS or (isinstance(value, list | dict) and len(value) > 0)


_CONTAINERS = (list, dict, OrderedDict)


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
        own = [
            number
            for number, one in enumerate(self.objects)
            if isinstance(one, Variable) or (isinstance(one, Resource) and one.saveables())
        ]
        holders = reached(own, parents.__getitem__)
        return [number in holders for number in range(len(self.objects))]


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")
