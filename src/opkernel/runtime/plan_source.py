"""The text of a compiled plan: names, lines, lifetimes.

Nothing of a model becomes code: names of nodes enter the text as identifiers cut down to ASCII
letters, digits and underscores, or through `repr`; kernels and constants are bound as globals.
"""

import builtins
import keyword
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Names", "Part", "Statement", "write_parts"]

_NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]+")
_MAX_NAME = 60
_STATEMENTS_A_PART = 2000  # compiling time and memory grow faster than linearly beyond


class Names:
    """Unique identifiers made from the names of nodes and ops."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {*reserved, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
        self._next: dict[str, int] = {}

    def unique(self, hint: str) -> str:
        """An identifier like `hint` that was not given out before."""
        name = _NOT_IDENTIFIER.sub("_", hint)[-_MAX_NAME:].strip("_") or "t"
        if name[0].isdigit():
            name = "t" + name
        base, count = name, self._next.get(name, 0)
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._next[base] = count
        self._taken.add(name)
        return name


@dataclass(slots=True)
class Statement:
    """One statement of the plan: its text, the locals it reads and sets, the node it computes.

    The last line of `text` may be followed by a deletion and the comment. Where there is a
    `before`, the locals that die are deleted between it and the text.
    """

    text: str
    reads: Sequence[str]
    sets: Sequence[str]
    node: int
    comment: str = ""
    before: str = ""


@dataclass(slots=True)
class Part:
    """One function of the plan; `line_nodes[i]` is the node of line `i + 1`, or -1."""

    name: str
    text: str
    line_nodes: list[int]


def write_parts(
    statements: Sequence[Statement], parameters: Sequence[str], results: Sequence[str]
) -> list[Part]:
    """The functions that run the statements; the last is the one to call.

    Every local is deleted right after its last use. A long plan is cut into several functions,
    which hand their live locals on to one another.
    """
    last_read = {name: i for i, s in enumerate(statements) for name in s.reads}
    kept = set(results)
    if len(statements) <= _STATEMENTS_A_PART:
        body = [(_with_deletions(s, i, last_read, kept), s.node) for i, s in enumerate(statements)]
        return [_function("plan", parameters, body, _tuple(results))]
    parts, calls = [], []
    for start in range(0, len(statements), _STATEMENTS_A_PART):
        part, call = _write_part(statements, start, last_read, kept)
        parts.append(part)
        calls.append((call, -1))
    return [*parts, _function("plan", parameters, calls, _tuple(results))]


def _write_part(
    statements: Sequence[Statement], start: int, last_read: dict[str, int], kept: set[str]
) -> tuple[Part, str]:
    """One function for the statements from `start`, and the line of `plan` that calls it."""
    stop = min(start + _STATEMENTS_A_PART, len(statements))
    own: dict[str, None] = {}
    taken: dict[str, None] = {}
    for statement in statements[start:stop]:
        taken.update((name, None) for name in statement.reads if name not in own)
        own.update((name, None) for name in statement.sets)
    given = [name for name in own if name in kept or last_read.get(name, -1) >= stop]
    stay = kept | set(given) | set(taken)
    body = [
        (_with_deletions(statements[i], i, last_read, stay), statements[i].node)
        for i in range(start, stop)
    ]
    name = f"part_{start // _STATEMENTS_A_PART}"
    call = f"{name}({', '.join(['step', *taken])})"
    call = f"{_tuple(given)} = {call}" if given else call
    dead = [name for name in taken if start <= last_read[name] < stop and name not in kept]
    return (
        _function(name, list(taken), body, _tuple(given)),
        call + (f"; del {', '.join(dead)}" if dead else ""),
    )


def _with_deletions(
    statement: Statement, index: int, last_read: dict[str, int], kept: set[str]
) -> str:
    """The statement's text, followed by the deletion of what nothing reads after it."""
    read = dict.fromkeys(n for n in statement.reads if last_read[n] == index and n not in kept)
    unread = dict.fromkeys(n for n in statement.sets if n not in last_read and n not in kept)
    text = statement.text
    if statement.before:
        text = "; ".join([statement.before, *_deletion(read), text])
        dead = unread
    else:
        dead = read | unread
    if dead:
        text += ("\n" if "\n" in text else "; ") + _deletion(dead)[0]
    return f"{text}  # {statement.comment}" if statement.comment else text


def _deletion(names: Iterable[str]) -> list[str]:
    """The statement that deletes locals, if there are any."""
    return [f"del {', '.join(names)}"] if names else []


def _function(
    name: str, parameters: Sequence[str], body: Sequence[tuple[str, int]], result: str
) -> Part:
    lines = [f"def {name}({', '.join(['step', *parameters])}):"]
    line_nodes = [-1]
    for text, node in body:
        for line in text.split("\n"):
            lines.append("    " + line)
            line_nodes.append(node)
    lines.append(f"    return {result}")
    line_nodes.append(-1)
    return Part(name, "\n".join(lines) + "\n", line_nodes)


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"
