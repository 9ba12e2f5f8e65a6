"""Arrays whose elements never change, and the forms that kernels have made of them.

The kernel of Const notes its value (`note_lasting`). An array is known by its identity, so the note goes with the
array wherever the graph takes it: through Identity, into functions, branches and loops, to other threads. A form
made of an array (`LastingValue.made`) goes with the array.

Values of variables are not noted. A form may round differently, so a variable would give other results from the step
on that makes the form. Where variables keep their values, programs have constants in their place.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any

from opkernel.state.keyed_lock import KeyedLock

_MOST_FORMS = 4
"""The most forms of one value; the oldest goes when another one is made."""

_MISSING = object()
_making = KeyedLock()


class LastingValue(weakref.ref[Any]):
    """A reference to an array that keeps its elements; it does not keep the array alive."""

    __slots__ = ("_forms", "key")

    key: int
    _forms: dict[Hashable, Any]

    @classmethod
    def of(cls, array: Any) -> LastingValue:
        """The record of an array, found by its `id` (`key`) until the array is dead."""
        self = cls(array, _forget)
        viewed = None if array.base is None else lasting_value(array)
        self.key = id(array)
        # What was made of the viewed array is made of this one.
        self._forms = {} if viewed is None else viewed._forms
        return self

    def made(self, form: Hashable, make: Callable[[], Any]) -> Any:
        """The result of `make` for a form of the value; `make` is called once."""
        forms = self._forms
        known = forms.get(form, _MISSING)
        if known is not _MISSING:
            return known
        with _making.hold((self.key, form)):
            if form not in forms:
                _keep(forms, form, make())
            return forms[form]


_known: dict[int, LastingValue] = {}


def note_lasting(array: Any) -> None:
    """Note that nobody will write to an array."""
    known = _known.get(id(array))
    if known is None or known() is not array:
        _known[id(array)] = LastingValue.of(array)


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
