"""Functions as lines of text that are no wider than they should be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opkernel.runtime.plan import tree
from opkernel.runtime.plan.text import Line, Writer, comment_of, text_of, tuple_text, value_text
from opkernel.runtime.plan.tree import Name, Statement

_WIDTH = 100
_NARROW = _WIDTH - 12  # the width of text that may be indented by so much
_LONG = 40  # the width of text that may be broken: longer lists stand in brackets
_OPERATORS = "+-*/%&|<>="
_TOKEN = re.compile(r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|.)""", re.DOTALL)


def function_text(function: tree.PlanFunction, doc: str = "") -> str:
    """The text of a function."""
    writer = _Writer(function)
    (head, _), *body = writer.lines()
    docstring = [f'    """{doc}."""'] if doc else []
    return "\n".join([*wrapped(head, ""), *docstring, *_laid_out(writer, body)])


def _laid_out(writer: _Writer, body: Sequence[Line]) -> Iterator[str]:
    """The lines of a function.

    The name of a statement's node stands behind it where it fits. Else its scope stands above it, but
    below what is of the same scope.
    """
    scope = ""
    for text, item in body:
        line = text.lstrip()
        indent = text.removesuffix(line)
        texts = [line]
        name = ""
        if isinstance(item, Statement):
            texts, name = writer.statements(item), comment_of(item).strip("'")
            line = "; ".join(texts)
        before, scope = scope, name.rpartition("/")[0] or scope
        if name and len(indent) + len(line) + len(name) + 4 <= _WIDTH:
            yield f"{indent}{line}  # {name}"
            continue
        if scope != before:
            yield f"{indent}# {scope}/"
        for one in texts if len(indent) + len(line) > _WIDTH else [line]:
            yield from wrapped(one, indent)


class _Writer(Writer):
    """Writes functions as programs have them: brackets stand where they are needed, or may be broken."""

    def loop(self, item: tree.While) -> list[Line]:
        test, body = text_of(item.test), self.deleting(item.body_releases)
        if item.condition:
            leave: list[Line] = [(f"if not {test}:", None), ("    break", None)]
            test, body = "True", [*self.block(item.condition), *leave, *body]
        body += self.block(item.body)
        return [(f"while {test}:", None), *((f"    {text}", inner) for text, inner in body)]

    def text(self, item: Statement) -> str:
        value = value_text(item)
        if isinstance(item, tree.OperatorCall):
            text = f"{item.sets[0]} = {value}"
            return f"{item.sets[0]} = ({value})" if len(text) > _NARROW else text
        if isinstance(item, tree.Assign) and len(item.sets) > 1:
            return f"{_side(item.sets)} = {_side([*map(text_of, item.values)])}"
        if isinstance(item, tree.Call) and isinstance(item.results, tuple) and item.results:
            return f"{_side(item.results)} = {value}"
        return super().text(item)

    def deletions(self, names: Sequence[Name]) -> list[str]:
        texts = super().deletions(names)
        if texts and len(texts[0]) > _LONG:
            texts[0] = f"del ({texts[0].removeprefix('del ')})"
        return texts


def _side(names: Sequence[Name | Sequence[Name]]) -> str:
    """One side of an assignment, without brackets if it is short."""
    text = tuple_text(names)
    return text[1:-1] if len(names) > 1 and len(text) <= _LONG + 2 else text


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
