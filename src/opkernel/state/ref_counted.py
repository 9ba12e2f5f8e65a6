"""RefCounted: objects that end when their last owner gives them up.

Python collects memory by itself. The count says when an object is to end that holds more than
memory: a file, a thread, a queue that others wait for.

Source: TensorFlow core/lib/core/refcount.h.
"""

import threading
from typing import Any, Self

from opkernel.errors import InternalError


class RefCounted:
    """Counts its owners, the creator first; ends once, when there is none left.

    As a context manager it gives one reference up at the end of the block. An object that is
    collected while it has references ends then.
    """

    _references: int
    _references_lock: threading.RLock

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Start the count here, so that subclasses need not call `__init__`."""
        self = super().__new__(cls)
        self._references = 1
        self._references_lock = threading.RLock()  # a collection may end another object
        return self

    def on_destroy(self) -> None:
        """Give back the things that the object holds. Called once, on the thread of the last owner."""

    def ref(self) -> None:
        """Add an owner.

        Raises:
            InternalError: the object has ended.
        """
        if not self.try_ref():
            raise InternalError(f"{type(self).__name__} has no references left to share")

    def try_ref(self) -> bool:
        """Add an owner unless the object has ended."""
        with self._references_lock:
            if self._references == 0:
                return False
            self._references += 1
            return True

    def unref(self) -> bool:
        """Give up one reference; the last one ends the object, and the result is then True.

        Raises:
            InternalError: there is none to give up.
        """
        with self._references_lock:
            if self._references == 0:
                raise InternalError(f"{type(self).__name__} has no references left to give up")
            self._references -= 1
            is_last = self._references == 0
        if is_last:
            self.on_destroy()
        return is_last

    @property
    def ref_count(self) -> int:
        """How many references there are."""
        return self._references

    @property
    def ref_count_is_one(self) -> bool:
        """Whether there is one owner only."""
        return self._references == 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.unref()

    def __del__(self) -> None:
        if self._references:
            self._references = 0
            self.on_destroy()
