"""Slots: what a room asks of the rooms above it.

A room declares a slot, with the type of what it asks for, and uses it when it needs it:

    DRAWING: Slot[Callable[[Graph], str]] = Slot("drawing of a graph")
    html = DRAWING.get()(graph)

`wiring.py`, on top of the house, says where the thing of each slot stands. A thing is imported when it is first asked
for, and the wiring with the first of them. That is the only import of a room above, and import-linter does not see it.

Within a room, a slot serves where two things need each other: a graph, and what edits graphs.
"""

import importlib
import sys
from typing import Any, Generic, TypeVar

from opkernel.errors import UnimplementedError

_T = TypeVar("_T")


class Slot(Generic[_T]):
    """One thing of a room above: a function, or a module with functions.

    Args:
        name: Its name in the wiring, which messages say, too.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._place: tuple[Any, str] | None = None

    def get(self) -> _T:
        """The thing.

        Raises:
            UnimplementedError: this opkernel lacks the room that has it.
        """
        if self._place is None:  # looking for a module takes longer than most functions of slots
            self._place = _imported(_wiring().SLOTS[self.name], self.name)
        thing: _T = _named(*self._place)
        return thing

    def if_loaded(self) -> _T | None:
        """The thing, if its module was imported already."""
        module, _, _ = _wiring().SLOTS[self.name].partition(":")
        return self.get() if module in sys.modules else None


class NamedSlots(Generic[_T]):
    """Things of one kind of rooms above, by name: the engines that come with opkernel, for example.

    Args:
        kind: The name of their table in the wiring, which messages say, too.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def names(self) -> tuple[str, ...]:
        """The names, in the order of the wiring; nothing is imported for them."""
        return tuple(_wiring().NAMED_SLOTS[self.kind])

    def get(self, name: str) -> _T | None:
        """The thing of a name; None for a name that the wiring does not have.

        Raises:
            UnimplementedError: this opkernel lacks the room that has it.
        """
        place = _wiring().NAMED_SLOTS[self.kind].get(name)
        return None if place is None else _named(*_imported(place, f"{self.kind} {name!r}"))


def _wiring() -> Any:
    return importlib.import_module(".wiring", __package__)


def _named(module: Any, name: str) -> Any:
    """What has a name in a module; the module itself without a name."""
    return getattr(module, name) if name else module


def _imported(place: str, what: str) -> tuple[Any, str]:
    """The module of a place, `module:name`, and the name, which may be empty."""
    module, _, name = place.partition(":")
    try:
        return importlib.import_module(module), name
    except ModuleNotFoundError as error:
        if f"{module}.".startswith(f"{error.name}."):
            raise UnimplementedError(
                f"There is no {what}: this opkernel lacks {error.name}"
            ) from error
        raise
