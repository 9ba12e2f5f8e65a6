"""The functions of plans as functions of a program: first still as trees, then as lines of text that are not too wide.

Names are the program's. Calls of If, Case and While become statements of these kinds, and what only a
session needs goes: checks, and in programs of NumPy alone what makes memory free.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from opkernel.decompile.expressions import attr_literal
from opkernel.decompile.numpy_kernels import NumpyKernel
from opkernel.runtime.plan import tree
from opkernel.runtime.plan.functional_ops import Choice, LibraryFunction, WhileLoop
from opkernel.runtime.plan.pointwise import ARITHMETIC
from opkernel.runtime.plan.text import INDENT, Writer, comment_of, text_of, tuple_text, value_text
from opkernel.runtime.plan.tree import Block, Expression, Item, Name, Statement, renamed

_OPERATORS: dict[Any, str] = {
    **ARITHMETIC,
    np.divide: "/",
    np.floor_divide: "//",
    np.remainder: "%",
    np.power: "**",
    np.negative: "-",
}


@dataclass(frozen=True)
class Rewriter:
    """Rewrites the functions of a plan.

    Attributes:
        globals: the globals of the plan.
        names: the program's names for the names of the plan; nothing for names that are left out.
        functions: the names of the functions that stand for those of the graph.
        uses_step: whether the functions of the program have the step.
        with_numpy_only: whether ufuncs are written as operators, and nothing is deleted.
    """

    globals: Mapping[Name, tree.Global]
    names: Mapping[Name, str]
    functions: Mapping[LibraryFunction, str]
    uses_step: bool
    with_numpy_only: bool

    def function(self, function: tree.PlanFunction) -> tree.PlanFunction:
        """A function of the plan."""
        new = renamed(function, self.names)
        new.block = self._block(function.block, new.block)
        new.parameters = new.parameters[not self.uses_step :]
        return new

    def _block(self, block: Block, new: Block) -> Block:
        """The statements for a block whose names are those of the program."""
        return [
            one for item, of_it in zip(block, new, strict=True) for one in self._item(item, of_it)
        ]

    def _item(self, item: Item, new: Item) -> Block:
        if self.with_numpy_only:
            new.releases = ()
        if isinstance(item, tree.CheckScalar):
            return []
        if isinstance(item, tree.Call) and isinstance(new, tree.Call):
            return self._call(item, new)
        if isinstance(item, tree.Branches) and isinstance(new, tree.Branches):
            for branch, of_it in zip(item.branches, new.branches, strict=True):
                of_it.block = self._block(branch.block, of_it.block)
                of_it.releases = () if self.with_numpy_only else of_it.releases
        elif isinstance(item, tree.While) and isinstance(new, tree.While):
            new.condition = self._block(item.condition, new.condition)
            new.body = self._block(item.body, new.body)
            new.body_releases = () if self.with_numpy_only else new.body_releases
        return [new]

    def _call(self, item: tree.Call, new: tree.Call) -> Block:
        bound = self.globals.get(item.function)
        new.arguments = [
            tuple_text([*map(text_of, one)]) if isinstance(one, tuple) else one
            for one in new.arguments
            if self.uses_step or one != "step"
        ]
        if bound is not None and isinstance(new, tree.FunctionCall):
            written = self._function_call(bound.value, new)
            written[-1].releases = new.releases
            return written
        if not self.with_numpy_only or bound is None:
            return [new]
        if bound.value in _OPERATORS:
            operator = _OPERATORS[bound.value]
            return [tree.OperatorCall(new.op, (), new.sets, operator, new.arguments)]
        attrs = bound.kernel.attrs if isinstance(bound.kernel, NumpyKernel) else {}
        return [_called(new, more=[f"{key}={attr_literal(attrs[key])}" for key in attrs])]

    def _function_call(self, function: Any, new: tree.FunctionCall) -> Block:
        """The expression for a call of functions of the graph."""
        if new.test:
            return [_branches(new, [new.test], [new.function, new.otherwise])]
        if isinstance(function, Choice):
            names = [self.functions[branch] for branch in function.branches]
            tests = [tree.Condition(new.index, "==", tree.Plain(n)) for n in range(len(names) - 1)]
            return [_branches(new, tests, names) if tests else _called(new, names[0])]
        return self._loop(function, new) if isinstance(function, WhileLoop) else [_called(new)]

    def _loop(self, loop: WhileLoop, new: tree.Call) -> Block:
        step = [*new.arguments[:1]] if self.uses_step else []
        variables, starts = new.sets, new.arguments[len(step) :]
        start = tree.Assign(new.op, (), variables, starts)
        new.op, new.arguments = None, [*step, *variables]
        going_on = tree.Apply(self.functions[loop.condition], new.arguments)
        turn = _called(new, self.functions[loop.body])
        test = f"truth({text_of(going_on)}[0])"
        return [start, tree.While(None, (), test, [], [turn], frozenset())]


def _called(call: tree.Call, function: Name = "", more: Sequence[Expression] = ()) -> tree.Call:
    """A plain call that sets the names that another sets; `more` are further arguments."""
    function = function or call.function
    return tree.Call(call.op, (), call.sets, function, [*call.arguments, *more], call.results)


def _branches(
    call: tree.Call, tests: Sequence[Expression], functions: Sequence[Name]
) -> tree.Branches:
    """Calls of several functions; each but the last has a test."""
    branches = [
        tree.Branch(test, frozenset(), [_called(call, function)])
        for test, function in zip_longest(tests, functions)
    ]
    return tree.Branches(None, (), branches)


_WIDTH = 100
_NARROW = _WIDTH - 12  # the width of text that may be indented by so much
_LONG = 40  # the width of text that may be broken: longer lists stand in brackets
_BROKEN_AFTER = frozenset(",+-*/%&|<>=")  # in brackets
_TOKEN = re.compile(r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|.)""", re.DOTALL)


def function_text(function: tree.PlanFunction, doc: str = "") -> str:
    """The text of a function."""
    writer = _Writer(function)
    docstring = [f'    """{doc}."""'] if doc else []
    return "\n".join([*wrapped(writer.texts[0], ""), *docstring, *_laid_out(writer)])


def _laid_out(writer: _Writer) -> Iterator[str]:
    """The lines of a function behind its head.

    The name of a statement's node stands behind it where it fits. Else its scope stands above it, but
    below what is of the same scope.
    """
    scope = ""
    for text, item in zip(writer.texts[1:], writer.items[1:], strict=True):
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

    def loop(self, item: tree.While, indent: str) -> None:
        test, inner = text_of(item.test), indent + INDENT
        self.line(f"{indent}while {'True' if item.condition else test}:")
        if item.condition:
            self.block(item.condition, inner)
            self.line(f"{inner}if not {test}:")
            self.line(f"{inner}{INDENT}break")
        self.deleting(item.body_releases, inner)
        self.block(item.body, inner)

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
            token == " " and depth and piece[-2:-1] in _BROKEN_AFTER
        ):
            yield piece
            piece = ""
    yield piece
