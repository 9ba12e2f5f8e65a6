"""The text of a compiled plan: names and lines.

Nothing of a model becomes code: names of nodes enter the text as identifiers cut down to ASCII
letters, digits and underscores, or through `repr`; kernels and constants are bound as globals.
"""

import builtins
import keyword
import re
from collections.abc import Collection, Iterable, Sequence

from opkernel.runtime.plan_tree import Block, Branches, Statement, While

__all__ = ["Line", "Names", "TextWriter", "tuple_text"]

_NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]+")
_MAX_NAME = 60
_IDENTIFIER = re.compile(rf"[A-Za-z](?:[A-Za-z0-9_]{{0,{_MAX_NAME - 2}}}[A-Za-z0-9])?")

Line = tuple[str, int]
"""A line of text, and the number of its node; -1 for none."""


class Names:
    """Unique identifiers made from the names of nodes and ops."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {*reserved, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
        self._next: dict[str, int] = {}

    def unique(self, hint: str) -> str:
        """An identifier like `hint` that was not given out before."""
        name = hint
        if not _IDENTIFIER.fullmatch(hint):
            name = _NOT_IDENTIFIER.sub("_", hint)[-_MAX_NAME:].strip("_") or "t"
            if name[0].isdigit():
                name = "t" + name
        if name in self._taken:
            base, count = name, self._next.get(name, 0)
            while name in self._taken:
                count += 1
                name = f"{base}_{count}"
            self._next[base] = count
        self._taken.add(name)
        return name


class TextWriter:
    """Writes blocks as lines of text.

    Args:
        cleared: The locals that are set to None where others are deleted.
    """

    def __init__(self, cleared: Collection[str] = ()) -> None:
        self._cleared = cleared

    def block(self, block: Block) -> list[Line]:
        """The lines of a block."""
        return [line for item in block for line in self.item(item)]

    def item(self, item: Statement | Branches | While) -> list[Line]:
        """The lines of one statement."""
        if isinstance(item, Statement):
            return [(self._statement(item), item.node)]
        if isinstance(item, Branches):
            return self._branches(item)
        return self._while(item)

    def deletions(self, names: Sequence[str]) -> list[str]:
        """The statements that let go of locals, if there are any."""
        deleted = [name for name in names if name not in self._cleared]
        found = [f"del {', '.join(deleted)}"] if deleted else []
        if len(deleted) < len(names):
            found += [f"{name} = None" for name in names if name in self._cleared]
        return found

    def _statement(self, item: Statement) -> str:
        line, dies = item.text, item.dies
        for name in item.places:
            if name in dies:
                line = f"{line[:-1]}, {item.out}{name})"
                break
        if item.before:
            read = [name for name in dies if name in item.reads]
            unread = [name for name in dies if name not in item.reads]
            texts = [item.before, *self.deletions(read), line, *self.deletions(unread)]
            line = "; ".join(texts)
        elif dies:
            line = "; ".join([line, *self.deletions(dies)])
        return f"{line}  # {item.comment}" if item.comment else line

    def _branches(self, item: Branches) -> list[Line]:
        lines: list[Line] = []
        for branch in item.branches:
            word = "elif" if lines else "if"
            lines.append((f"{word} {branch.test}:" if branch.test else "else:", item.node))
            block = self._deleting(branch.dies) + self.block(branch.block)
            lines += _indented(block or [("pass", -1)])
        return lines + self._deleting(item.dies)

    def _while(self, item: While) -> list[Line]:
        condition = self.block(item.condition)
        leave: Line = (f"if not {item.test}: break", item.node)
        check: Line = ("; ".join(["step.check()", *self.deletions(item.body_dies)]), item.node)
        turn = [*condition, leave, check, *self.block(item.body)]
        loop: list[Line] = [("while True:", -1), *_indented(turn)]
        if item.within:
            loop = [(f"with {item.within}:", -1), *_indented(loop)]
        return loop + self._deleting(item.dies)

    def _deleting(self, names: Sequence[str]) -> list[Line]:
        return [(text, -1) for text in self.deletions(names)]


def _indented(lines: Iterable[Line]) -> list[Line]:
    return [("    " + text, node) for text, node in lines]


def tuple_text(names: Sequence[str]) -> str:
    """Names as the text of a tuple."""
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"
