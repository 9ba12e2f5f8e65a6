"""The Python objects that a SavedModel is made of: modules, lists, dicts.

An object makes its children when they are asked for, so that a graph of any size and with any cycles loads.

Source: TensorFlow python/saved_model/load.py, revived_types.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opkernel.errors import DataLossError
from opkernel.messages import did_you_mean
from opkernel.proto import SavedUserObject
from opkernel.training.resource import Constant, Resource
from opkernel.types import DataType, PartialTensorShape

if TYPE_CHECKING:
    from opkernel.interop.saved_objects import SavedObjects


class _Loaded:
    """An object of a SavedModel that is none of TensorFlow's.

    Args:
        source: What makes the objects of the model.
        number: Its number there.
    """

    def __init__(self, source: SavedObjects, number: int) -> None:
        self._source, self._number = source, number

    def saved_kind(self) -> SavedUserObject:
        """What the SavedModel says that it is."""
        return self._source.kind(self._number)


class LoadedObject(_Loaded):
    """An object of a SavedModel, with what was saved of its attributes: functions, variables, other objects."""

    def __init__(self, source: SavedObjects, number: int, kind: str) -> None:
        super().__init__(source, number)
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        source = self.__dict__.get("_source")
        if source is None:
            raise AttributeError(name)
        children = source.children(self._number)
        if name not in children:
            hint = "" if name.startswith("__") else did_you_mean(name, children)
            raise AttributeError(f"{self!r} has no attribute {name!r}{hint}", name=name)
        return source.get(children[name])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the object did when it was called.

        Raises:
            TypeError: no such function was saved.
            DataLossError: what was saved leads back to the object.
        """
        one: Any = self  # or the object that was saved as its `__call__`, and so on
        met = set()
        while isinstance(one, LoadedObject):
            children = one._source.children(one._number)
            if "__call__" not in children:
                functions = ", ".join(sorted(children)) or "nothing"
                raise TypeError(f"{one!r} was saved without __call__; it has {functions}")
            if one._number in met:
                raise DataLossError(f"{self!r} is damaged: its __call__ leads back to itself")
            met.add(one._number)
            one = one._source.get(children["__call__"])
        return one(*args, **kwargs)

    @property
    def saved_attributes(self) -> LoadedDict:
        """All that was saved of its attributes, by name; those too whose names this class has for something else."""
        return LoadedDict(self._source, self._number)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._source.children(self._number)})

    def _tracked_children(self) -> dict[str, Any]:
        """Its children, by the names by which they were saved."""
        own = {name: value for name, value in vars(self).items() if name not in _PRIVATE}
        numbers = self._source.children(self._number)
        return {**{name: self._source.get(number) for name, number in numbers.items()}, **own}

    def __repr__(self) -> str:
        return f"<opkernel.{type(self).__name__} {self._kind}>"


_PLACE = re.compile("[0-9]{1,10}")
_PRIVATE = frozenset(
    {
        "_source",
        "_number",
        "_kind",
        "saved_objects",
        "path",
        "tags",
        "meta_graph",
        "permissions",
        "signatures",
    }
)


class LoadedList(_Loaded, Sequence[Any]):
    """A list or tuple of a SavedModel."""

    def __init__(self, source: SavedObjects, number: int) -> None:
        super().__init__(source, number)
        children = source.children(number)
        places = sorted([int(name) for name in children if _PLACE.fullmatch(name)])
        self._numbers = [children[str(place)] for place in places]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._source.get(number) for number in self._numbers[index]]
        return self._source.get(self._numbers[index])

    def __iter__(self) -> Iterator[Any]:
        return map(self._source.get, self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def _tracked_children(self) -> dict[str, Any]:
        return {str(i): self._source.get(number) for i, number in enumerate(self._numbers)}

    def __repr__(self) -> str:
        return f"<opkernel.LoadedList of {len(self)}>"


class LoadedDict(_Loaded, Mapping[str, Any]):
    """A dict of a SavedModel."""

    def __init__(self, source: SavedObjects, number: int) -> None:
        super().__init__(source, number)
        self._numbers = dict(source.children(number))

    def __getitem__(self, key: str) -> Any:
        return self._source.get(self._numbers[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def _tracked_children(self) -> dict[str, Any]:
        return dict(self)

    def __repr__(self) -> str:
        return f"<opkernel.LoadedDict of {', '.join(self._numbers)}>"


class LoadedResource(Resource):
    """A table, a dataset or another resource: created and filled by the functions of its model at first use.

    Args:
        source: What makes the objects of the model.
        number: Its number there.
        name: What to call it.
        create: Creates the resource; gives its handle, or a dataset.
        fill: Called once, when there is a handle.
    """

    def __init__(
        self,
        source: SavedObjects,
        number: int,
        name: str,
        create: Callable[[], Any],
        fill: Callable[[], object],
    ) -> None:
        super().__init__(name, create, fill)
        self._source, self._number = source, number

    @cached_property
    def captured_spec(self) -> tuple[DataType, PartialTensorShape]:  # type: ignore[override]  # known to its model
        """Its type and shape, as its function gives it."""
        return self._source.type_of_resource(self._number), PartialTensorShape([])

    def saveables(self) -> Mapping[str, tuple[Any, Any]]:
        """The functions that save and restore its content, by the attributes of checkpoints."""
        return {
            name: (self._source.get(saved.save_function), self._source.get(saved.restore_function))
            for name, saved in self._source.nodes[self._number].saveable_objects.items()
        }

    def content_types(self, attribute: str) -> dict[str, DataType]:
        """The types of the keys and values of an attribute, as ops name them."""
        return self._source.types_of_table(self._number, attribute)

    def _tracked_children(self) -> dict[str, Any]:
        numbers = self._source.children(self._number)
        return {name: self._source.get(number) for name, number in numbers.items()}


class LoadedConstant(Constant):
    """A constant that functions share."""

    def __repr__(self) -> str:
        return f"<opkernel.LoadedConstant {self.name!r}>"


class Again:
    """The same value, where a function takes it twice."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.name = value.name
        self.captured_spec = value.captured_spec
        self.handle_facts = value.handle_facts

    @property
    def captured_value(self) -> Any:
        """The value."""
        return self.value.captured_value
