"""Identifiers: unique names in the text of a plan or program, made from the names of nodes and ops.

Nothing of a model becomes code: a name is cut down to ASCII letters, digits and underscores.
"""

import builtins
import keyword
import re
from collections.abc import Iterable

NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]+")
_MAX_NAME = 60
_is_identifier = re.compile(rf"[A-Za-z](?:[A-Za-z0-9_]{{0,{_MAX_NAME - 2}}}[A-Za-z0-9])?").fullmatch


class Identifiers:
    """Unique identifiers made from the names of nodes and ops.

    Attributes:
        taken: The names in use.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.taken = {*reserved, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
        self._next: dict[str, int] = {}

    def unique(self, hint: str) -> str:
        """An identifier like `hint` that was not given out before."""
        name, taken = hint, self.taken
        if not _is_identifier(hint):
            name = NOT_IDENTIFIER.sub("_", hint)[-_MAX_NAME:].strip("_") or "t"
            if name[0].isdigit():
                name = "t" + name
        if name in taken:
            base, count = name, self._next.get(name, 0)
            while name in taken:
                count += 1
                name = f"{base}_{count}"
            self._next[base] = count
        taken.add(name)
        return name
