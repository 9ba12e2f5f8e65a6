"""Identifiers for things with names of other kinds.

Nothing of a model becomes code: names of nodes enter texts as identifiers cut down to ASCII letters,
digits and underscores, or through `repr`.
"""

import builtins
import keyword
import re
from collections.abc import Iterable

NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]+")
_MAX_NAME = 60
_IDENTIFIER = re.compile(rf"[A-Za-z](?:[A-Za-z0-9_]{{0,{_MAX_NAME - 2}}}[A-Za-z0-9])?")


class Names:
    """Unique identifiers made from the names of nodes and ops.

    Attributes:
        taken: The names in use.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.taken = {*reserved, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
        self._next: dict[str, int] = {}

    def unique(self, hint: str) -> str:
        """An identifier like `hint` that was not given out before."""
        name = hint
        if not _IDENTIFIER.fullmatch(hint):
            name = NOT_IDENTIFIER.sub("_", hint)[-_MAX_NAME:].strip("_") or "t"
            if name[0].isdigit():
                name = "t" + name
        if name in self.taken:
            base, count = name, self._next.get(name, 0)
            while name in self.taken:
                count += 1
                name = f"{base}_{count}"
            self._next[base] = count
        self.taken.add(name)
        return name
