"""Runs the trees of plans as they are, without their text: what every back end of them has to do."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from opkernel.runtime.plan import tree

__all__ = ["interpret"]

_OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&": operator.and_,
    "|": operator.or_,
}
_RELATIONS = {
    "": lambda value, other: bool(value),
    "not": lambda value, other: not value,
    "==": operator.eq,
    "is": operator.is_,
    "is not": operator.is_not,
}


def interpret(
    plan: tree.PlanTree, step: Any, feeds: Sequence[Any], replaced: dict[str, Any] | None = None
) -> list[Any]:
    """What a plan gives for feeds; `replaced` are other functions for some of its globals."""
    run = _Run(plan, {name: bound.value for name, bound in plan.globals.items()} | (replaced or {}))
    run.locals.update(zip(plan.parameters, [step, *feeds], strict=True))
    run.block(plan.block)
    unread = {*plan.parameters} - {*tree.names_in(plan.block)}
    assert set(run.locals) <= {*plan.results, *unread, "step"}  # everything else was let go
    return [run.value(name) for name in plan.results]


class _Run:
    """One run; what a statement lets go of is gone, so that whoever reads it later fails."""

    def __init__(self, plan: tree.PlanTree, values: dict[str, Any]) -> None:
        self.locals: dict[str, Any] = {}
        self._globals = plan.globals
        self._values = values

    def value(self, expression: Any) -> Any:
        match expression:
            case str():
                found = self.locals if expression in self.locals else self._values
                return found[expression]
            case list() | tuple():
                return type(expression)(map(self.value, expression))
            case tree.Plain(value):
                return value
            case tree.Apply(function, arguments):
                return self.value(function)(*map(self.value, arguments))
            case tree.Condition(value, relation, other, check):
                found = self.value(value)
                found = self.value(check)(found) if check else found
                return _RELATIONS[relation](found, self.value(other) if other else None)
            case tree.Select(tests, value, otherwise):
                holds = all(self.value(test) for test in tests)
                return self.value(value if holds else otherwise)
        raise TypeError(expression)

    def block(self, block: tree.Block) -> None:
        for item in block:
            if isinstance(item, tree.Statement):
                self._statement(item)
            elif isinstance(item, tree.Branches):
                self._branches(item)
            else:
                self._while(item)
            self._release(item.releases)

    def _statement(self, item: tree.Statement) -> None:
        before = set(self.locals)
        match item:
            case tree.Call():
                self._assign(item.results, self._called(item))
            case tree.OperatorCall():
                operands = map(self.value, item.operands)
                self._assign(item.sets[0], _OPERATORS[item.operator](*operands))
            case tree.Assign():
                self._assign(tuple(item.sets), [self.value(one) for one in item.values])
            case tree.CheckScalar():
                self.value(item.check)(self.value(item.name))
        if isinstance(item, tree.ForwardingCall):
            self.locals[item.box] = None
        assert set(self.locals) - before <= set(item.sets)

    def _called(self, item: tree.Call) -> Any:
        if isinstance(item, tree.TiledCall):
            return None if isinstance(item.results, str) else [None] * len(item.results)
        function = item.function
        if isinstance(item, tree.FunctionCall) and item.test and not self.value(item.test):
            function = item.otherwise
        called = self.value(function)
        if isinstance(item, tree.FunctionCall) and item.index:
            called = called(self.value(item.index))
        return called(*map(self.value, item.arguments))

    def _assign(self, names: Any, value: Any) -> None:
        if isinstance(names, str):
            self.locals[names] = value
        elif names:
            for name, one in zip(names, value, strict=True):
                self._assign(name, one)

    def _branches(self, item: tree.Branches) -> None:
        for branch in item.branches:
            if branch.test is None or self.value(branch.test):
                self._release(branch.releases)
                self.block(branch.block)
                return

    def _while(self, item: tree.While) -> None:
        while True:
            self.block(item.condition)
            if not self.value(item.test):
                return
            self._release(item.body_releases)
            self.block(item.body)

    def _release(self, names: Sequence[str]) -> None:
        for name in names:
            del self.locals[name]
