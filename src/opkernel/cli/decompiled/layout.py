"""Statements as lines of text that are no wider than they should be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

__all__ = ["lines_of", "wrapped"]

_WIDTH = 100
_NARROW = _WIDTH - 12  # of what may be indented by so much
_LONG = 40  # of what may be broken: longer lists stand in brackets
_OPERATORS = "+-*/%&|<>="
_TOKEN = re.compile(r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|.)""", re.DOTALL)


def wrapped(text: str, indent: str) -> list[str]:
    """A statement, broken in brackets where it is too wide."""
    if len(indent) + len(text) <= _WIDTH:
        return [indent + text]
    lines, line = [], indent
    for piece in _pieces(text):
        if len(line) + len(piece.rstrip()) > _WIDTH and line.strip():
            lines.append(line.rstrip())
            line = indent + "    "
        line += piece
    return [*lines, line]


def lines_of(body: Iterable[ast.stmt], comments: Mapping[int, str], indent: str) -> Iterator[str]:
    """The lines of statements.

    The name of a statement's node stands behind it where it fits. Else its scope stands above it, but
    below what is of the same scope.

    Args:
        body: what to write; what has the same line number stands on one line where it fits.
        comments: the names of the nodes of these lines.
        indent: what each line begins with.
    """
    scope = ""
    for number, statements in groupby(body, key=lambda statement: statement.lineno):
        group = list(statements)
        name = comments.get(number, "")
        before, scope = scope, name.rpartition("/")[0] or scope
        line = _one_line(group, indent)
        if line and len(line) + len(name) + 4 <= _WIDTH:
            yield f"{line}  # {name}" if name else line
            continue
        if scope != before:
            yield f"{indent}# {scope}/"
        if line and len(line) <= _WIDTH:
            yield line
            continue
        for one in group:
            yield from _statement(one, comments, indent)


def _one_line(group: Sequence[ast.stmt], indent: str) -> str:
    """Simple statements on one line; none if others are among them."""
    if any(isinstance(one, ast.If | ast.While) for one in group):
        return ""
    return indent + "; ".join(map(_text, group))


def _statement(
    statement: ast.stmt, comments: Mapping[int, str], indent: str, word: str = "if"
) -> Iterator[str]:
    """One statement, with the blocks in it."""
    inner = indent + "    "
    if isinstance(statement, ast.While):
        yield from wrapped(f"while {ast.unparse(statement.test)}:", indent)
        yield from lines_of(statement.body, comments, inner)
    elif isinstance(statement, ast.If):
        yield from wrapped(f"{word} {ast.unparse(statement.test)}:", indent)
        yield from lines_of(statement.body, comments, inner)
        rest = statement.orelse
        if len(rest) == 1 and isinstance(rest[0], ast.If):
            yield from _statement(rest[0], comments, indent, "elif")
        elif rest:
            yield f"{indent}else:"
            yield from lines_of(rest, comments, inner)
    else:
        yield from wrapped(_text(statement), indent)


def _text(statement: ast.stmt) -> str:
    """A simple statement, with brackets in which it may be broken where it is long."""
    text = ast.unparse(statement)
    if isinstance(statement, ast.Assign):
        target, value = _tuple(statement.targets[0]), _tuple(statement.value)
        is_broken = isinstance(statement.value, ast.BinOp | ast.Compare) and len(text) > _NARROW
        return f"{target} = ({value})" if is_broken else f"{target} = {value}"
    if isinstance(statement, ast.Delete) and len(text) > _LONG:
        return f"del ({text.removeprefix('del ')})"
    return text


def _tuple(expression: ast.expr) -> str:
    """An expression, as one side of an assignment: tuples without brackets where they are short."""
    if not isinstance(expression, ast.Tuple):
        return ast.unparse(expression)
    items = [ast.unparse(one) for one in expression.elts]
    text = ", ".join(items)
    if len(items) == 1:
        return f"({text},)"
    return text if len(text) <= _LONG else f"({text})"


def _pieces(text: str) -> Iterator[str]:
    """The pieces between which a statement may be broken.

    Each ends with an outermost bracket, or in brackets with a comma or an operator.
    """
    depth, piece = 0, ""
    for token in _TOKEN.findall(text):
        depth += (token in "([{") - (token in ")]}")
        piece += token
        if (token in "([{" and depth == 1) or (
            token == " " and depth and piece[-2:-1] in (",", *_OPERATORS)
        ):
            yield piece
            piece = ""
    yield piece
