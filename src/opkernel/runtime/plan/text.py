"""The text of a plan's tree, which CPython compiles, and the identifiers in it.

Nothing of a model becomes code: identifiers are cut down to ASCII letters, digits and underscores, and all else stands
through `repr`.
"""

import builtins
import keyword
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opkernel.runtime.plan import tree
from opkernel.runtime.plan.tree import Expression, Item, Name, Statement

INDENT = "    "


class Writer:
    """Writes a function of a plan as lines.

    Attributes:
        function: The function.
        texts: The lines.
        items: For each line, what of the tree stands there.
    """

    def __init__(self, function: tree.PlanFunction) -> None:
        self.function = function
        self.texts = [f"def {function.name}({', '.join(function.parameters)}):"]
        self.items: list[Item | None] = [None]
        if function.unset:
            self.line(INDENT + " = ".join([*function.unset, "None"]))
        self.block(function.block, INDENT)
        self.line(f"{INDENT}return {tuple_text(function.results)}")

    @property
    def source(self) -> str:
        """The function as text, with an end at each line."""
        return "\n".join([*self.texts, ""])

    def line(self, text: str, item: Item | None = None) -> None:
        """Write a line."""
        self.texts.append(text)
        self.items.append(item)

    def block(self, block: tree.Block, indent: str) -> None:
        """Write the lines of a block."""
        texts, items = self.texts, self.items
        for item in block:
            if isinstance(item, Statement):
                text = "; ".join(self.statements(item))
                comment = comment_of(item)
                texts.append(f"{indent}{text}  # {comment}" if comment else indent + text)
                items.append(item)
                continue
            if isinstance(item, tree.Branches):
                self.branches(item, indent)
            else:
                self.loop(item, indent)
            self.deleting(item.releases, indent)

    def branches(self, item: tree.Branches, indent: str) -> None:
        """Write the lines of an `if`."""
        word, inner = "if", indent + INDENT
        for branch in item.branches:
            test = "else" if branch.test is None else f"{word} {text_of(branch.test)}"
            self.line(f"{indent}{test}:", item)
            before = len(self.texts)
            self.deleting(branch.releases, inner)
            self.block(branch.block, inner)
            if len(self.texts) == before:
                self.line(f"{inner}pass")
            word = "elif"

    def loop(self, item: tree.While, indent: str) -> None:
        """Write the lines of a loop."""
        if item.within:
            self.line(f"{indent}with {item.within}():")
            indent += INDENT
        self.line(f"{indent}while True:")
        indent += INDENT
        self.block(item.condition, indent)
        self.line(f"{indent}if not {text_of(item.test)}: break", item)
        check = "; ".join(["step.check()", *self.deletions(item.body_releases)])
        self.line(indent + check, item)
        self.block(item.body, indent)

    def statements(self, item: Statement) -> list[str]:
        """The statements of Python that a statement is."""
        texts, releases = [self.text(item)], item.releases
        if isinstance(item, tree.ForwardingCall):
            read = [name for name in releases if name in item.reads]
            texts[:0] = [f"{item.box} = {text_of(item.arguments[1])}", *self.deletions(read)]
            releases = [name for name in releases if name not in item.reads]
        if releases:
            texts += self.deletions(releases)
        return texts

    def text(self, item: Statement) -> str:
        """A statement itself, without its releases."""
        target = item.results if isinstance(item, tree.Call) else ", ".join(item.sets)
        if not target:
            return value_text(item)
        return f"{target if isinstance(target, str) else tuple_text(target)} = {value_text(item)}"

    def deleting(self, names: Sequence[Name], indent: str) -> None:
        """Write lines that let go of locals."""
        for text in self.deletions(names):
            self.line(indent + text)

    def deletions(self, names: Sequence[Name]) -> list[str]:
        """Statements that let go of locals."""
        return deletions(names, self.function.cleared)


def deletions(names: Sequence[Name], cleared: frozenset[Name]) -> list[str]:
    """The statements that let go of locals; those that are cleared are set to None instead."""
    if not names:
        return []
    if cleared.isdisjoint(names):
        return [f"del {', '.join(names)}"]
    deleted = [name for name in names if name not in cleared]
    found = [f"del {', '.join(deleted)}"] if deleted else []
    return found + [f"{name} = None" for name in names if name in cleared]


def value_text(item: Statement) -> str:
    """The right side of a statement's `=`, or the whole statement if it has none."""
    return _VALUE_TEXTS[type(item)](item)


def _call(item: tree.Call) -> str:
    return _call_of(item.function, item.arguments)


def _call_of(function: str, arguments: Sequence[Expression]) -> str:
    texts = [one if isinstance(one, str) else text_of(one) for one in arguments]
    return f"{function}({', '.join(texts)})"


def _placed_call(item: tree.PlacedCall) -> str:
    for name in item.places:
        if name in item.releases:
            place = f"out={name}" if item.by_keyword else name
            return _call_of(item.function, [*item.arguments, place])
    return _call(item)


def _forwarding_call(item: tree.ForwardingCall) -> str:
    return _call_of(item.function, [*item.arguments[:1], item.box])


def _awaited_call(item: tree.AwaitedCall) -> str:
    call, ask = _forwarding_call(item), f"(yield {item.function}, {item.box})"
    return f"{call} or {ask}" if item.results else f"{call} is None and {ask}"


def _tiled_call(item: tree.TiledCall) -> str:
    size = " + ".join([f"{name}.size" for name in item.sized])
    nothing = "None" if len(item.sets) == 1 else tuple_text(["None"] * len(item.sets))
    return f"{_call(item)} if {size} >= {item.least} else {nothing}"


def _function_call(item: tree.FunctionCall) -> str:
    function = item.function
    if item.test:
        function = f"({function} if {text_of(item.test)} else {item.otherwise})"
    elif item.index:
        function = f"{function}({item.index})"
    return _call_of(f"{item.watcher}({function})" if item.watcher else function, item.arguments)


def _operator_call(item: tree.OperatorCall) -> str:
    *first, last = map(text_of, item.operands)
    return " ".join([*first, item.operator, last]) if first else item.operator + last


def _assigned(item: tree.Assign) -> str:
    return ", ".join(map(text_of, item.values))


def _scalar_check(item: tree.CheckScalar) -> str:
    return f"{item.name}.ndim and {item.check}({item.name})"


_VALUE_TEXTS: dict[type[Statement], Callable[[Any], str]] = {
    tree.Assign: _assigned,
    tree.AwaitedCall: _awaited_call,
    tree.Call: _call,
    tree.CheckScalar: _scalar_check,
    tree.ForwardingCall: _forwarding_call,
    tree.FunctionCall: _function_call,
    tree.OperatorCall: _operator_call,
    tree.PlacedCall: _placed_call,
    tree.TiledCall: _tiled_call,
}


def comment_of(item: Statement) -> str:
    """The name of the node, where the names of the results do not tell it."""
    if type(item) is tree.TiledCall:
        return f"{item.width} nodes"
    if item.op is None or (item.sets and item.sets[0] == item.op.name):
        return ""
    return repr(item.op.name)


def text_of(expression: Expression) -> str:
    """The text of an expression."""
    match expression:
        case str():
            return expression
        case tree.Plain(value):
            return repr(value)
        case tree.Apply(function, arguments):
            return f"{function}({', '.join(map(text_of, arguments))})"
        case tree.Condition(value, relation, other, check):
            text = f"{check}({text_of(value)})" if check else text_of(value)
            if relation == "not":
                return f"not {text}"
            return f"{text} {relation} {text_of(other)}" if relation else text
        case tree.Select(tests, value, otherwise):
            test = " and ".join(map(text_of, tests))
            return f"{text_of(value)} if {test} else {text_of(otherwise)}"
        case list():
            return f"[{', '.join(map(text_of, expression))}]"
        case _:
            return f"({''.join(f'{text_of(one)}, ' for one in expression)})"


def tuple_text(names: Sequence[Name | Sequence[Name]]) -> str:
    """Names, or tuples of names, as the text of a tuple."""
    texts = [name if isinstance(name, str) else tuple_text(name) for name in names]
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


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
