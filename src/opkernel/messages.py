"""Parts of messages about values, and about unknown names.

Models have long names and users big arrays; a message has room for neither a whole array nor all names.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

from opkernel.escaping import terminal_text

_MOST_TOLD = 3
_MANY_NAMES = 3000
"""More names than these are first sorted out by how they begin and end: difflib takes its time."""


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """`; perhaps you mean MatMul or BatchMatMul`: the names that are like one that does not exist.

    Empty where there are none. It stands before the end of a clause.
    """
    told = like(name, names)
    return f"; perhaps you mean {told}" if told else ""


def like(name: object, names: Iterable[str]) -> str:
    """`MatMul or BatchMatMul`: at most three names like one that does not exist.

    They are spelt nearly like it, or else begin with it. Empty where there are none.
    """
    import difflib  # slow to import, and needed for errors alone

    wanted = str(name).lower()
    by_lower = {one.lower(): one for one in names if wanted[:1] == "_" or one[:1] != "_"}
    candidates: Iterable[str] = by_lower
    if len(by_lower) > _MANY_NAMES:
        import heapq

        candidates = heapq.nlargest(200, by_lower, key=lambda one: _agreement(one, wanted))
    close = difflib.get_close_matches(wanted, candidates, _MOST_TOLD)
    if not close and len(wanted) > 2:
        close = [one for one in by_lower if one.startswith(wanted)][:_MOST_TOLD]
    return " or ".join([terminal_text(by_lower[one], "") for one in close])


def _agreement(one: str, other: str) -> int:
    """How many characters two names share at their beginnings and ends, less their difference in length."""
    import os

    common = os.path.commonprefix  # despite its name, of any strings
    front = len(common([one, other]))
    back = len(common([one[front:][::-1], other[front:][::-1]]))
    return front + back - abs(len(one) - len(other))


def short_repr(value: Any) -> str:
    """A value in a few words: `repr`, with the type and shape of arrays and the beginning of long values."""
    return _SHORT.repr(value)


class _Short(reprlib.Repr):
    """`repr` without the elements of arrays, whichever library they are of."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = 4
        self.maxother = self.maxstring = 60

    def repr1(self, x: Any, level: int) -> str:
        dtype, shape = getattr(x, "dtype", None), getattr(x, "shape", None)
        if shape == () and str(dtype) == "object":
            return f"<{type(x).__name__} of {self.repr1(x[()], level - 1)}>"
        if isinstance(shape, tuple) and shape and dtype is not None:
            return f"<{type(x).__name__} {dtype}[{','.join(map(str, shape))}]>"
        return super().repr1(x, level)


_SHORT = _Short()
