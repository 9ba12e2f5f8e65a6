"""Arrays whose elements stay as they are, and the forms that kernels have made of them.

The value of a constant never changes; the value of a variable stays from one assignment to the next. The
holder of such an array notes it (`note_lasting`): the kernel of Const when it is made, a variable when it
is read. An array is known by its identity, so the note goes with the array wherever the graph takes it:
through Identity, into functions, branches and loops, to other threads.

A form made of an array (`LastingValue.made`) goes with the array, and with its version.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any

from opkernel.state.keyed_lock import KeyedLock

CONSTANT = 0
"""The version of a value that never changes."""

_MOST_FORMS = 4
"""The most forms of one value; the oldest goes when another one is made."""

_WANTED = object()
_making = KeyedLock()


class LastingValue(weakref.ref[Any]):
    """A reference to an array that keeps its elements; it does not keep the array alive.

    Attributes:
        version: CONSTANT, or how often the variable had been assigned when it was read.
    """

    __slots__ = ("_forms", "key", "version")

    key: int
    version: int
    _forms: dict[Hashable, Any]

    @classmethod
    def of(cls, array: Any, version: int) -> LastingValue:
        """The record of an array, found by its `id` (`key`) until the array is dead."""
        self = cls(array, _forget)
        viewed = None if array.base is None else lasting_value(array)
        self.key, self.version = id(array), version
        # What was made of the viewed array is made of this one.
        self._forms = {} if viewed is None else viewed._forms
        return self

    def made(self, form: Hashable, make: Callable[[], Any]) -> Any:
        """The result of `make` for a form of the value; `make` is called once.

        For a variable, the second request for a form calls `make`; the first one gets None. A value that
        every step assigns anew is used once, and making its form would take as long as it saves.
        """
        forms = self._forms
        known = forms.get(form, _WANTED)
        if known is not _WANTED:
            return known
        with _making.hold((self.key, form)):
            if form not in forms and self.version != CONSTANT:
                _keep(forms, form, _WANTED)
                return None
            if forms.get(form, _WANTED) is _WANTED:
                _keep(forms, form, make())
            return forms[form]


_known: dict[int, LastingValue] = {}


def note_lasting(array: Any, version: int = CONSTANT) -> None:
    """Note that an array keeps its elements; the array of a variable does until its next version.

    The array must not be written to meanwhile. A variable is written to only while it is the only
    holder of its array, and notes the array anew before giving it out.
    """
    known = _known.get(id(array))
    if known is None or known.version != version or known() is not array:
        _known[id(array)] = LastingValue.of(array, version)


def lasting_value(array: Any) -> LastingValue | None:
    """The record of an array, or of a viewed array, that keeps its elements; else None."""
    known = _known.get(id(array))
    if known is not None and known() is array:
        return known
    base = getattr(array, "base", None)
    known = _known.get(id(base))
    if known is None or known() is not base or not _shows_all(array, base):
        return None
    return known


def _shows_all(view: Any, base: Any) -> bool:
    """Whether a view shows the elements of an array as they are: a kernel that may not write has one."""
    kept = base.shape, base.strides, base.dtype
    return kept == (view.shape, view.strides, view.dtype)


def _keep(forms: dict[Hashable, Any], form: Hashable, made: Any) -> None:
    while form not in forms and len(forms) >= _MOST_FORMS:
        del forms[next(iter(forms))]
    forms[form] = made


def _forget(value: weakref.ref[Any]) -> None:
    assert isinstance(value, LastingValue)
    if _known.get(value.key) is value:
        del _known[value.key]
