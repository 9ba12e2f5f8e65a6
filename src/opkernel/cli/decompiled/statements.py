"""The statements of a plan as those of a program.

Calls of If, Case and While become statements of these kinds, names the program's, and what only a
session needs goes.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.cli.decompiled.definitions import Reference
from opkernel.cli.decompiled.functions import Choice, Loop, called
from opkernel.cli.decompiled.literals import attr_literal
from opkernel.runtime.instantiated_function import InstantiatedFunction

__all__ = ["LEFT_OUT", "Rewriter", "uses_step", "without_step"]

LEFT_OUT = ("scalar_of", "one_blas_thread")
"""Globals of plans that programs do without."""

_OPERATORS: dict[str, Any] = {
    "add": ast.Add(),
    "subtract": ast.Sub(),
    "multiply": ast.Mult(),
    "divide": ast.Div(),
    "floor_divide": ast.FloorDiv(),
    "remainder": ast.Mod(),
    "power": ast.Pow(),
    "less": ast.Lt(),
    "less_equal": ast.LtE(),
    "greater": ast.Gt(),
    "greater_equal": ast.GtE(),
    "equal": ast.Eq(),
    "not_equal": ast.NotEq(),
    "negative": ast.USub(),
}


class Rewriter(ast.NodeTransformer):
    """Rewrites the functions of a plan.

    Args:
        values: the globals of the plan.
        references: what stands for these in the program.
        functions: the names of the functions that stand for those of the graph.
        locals_: the names of the locals.
        with_numpy_only: whether ufuncs are written as operators, and nothing is deleted.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        references: Mapping[str, Reference],
        functions: Mapping[InstantiatedFunction, str],
        locals_: Mapping[str, str],
        *,
        with_numpy_only: bool,
    ) -> None:
        self._values = values
        self._references = references
        self._functions = functions
        self._locals = locals_
        self._with_numpy_only = with_numpy_only

    # Statements.

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Leave out checks of scalars and of the deadline."""
        text = ast.unparse(node)
        if text == "step.check()" or (text.endswith(")") and ".ndim and scalar_of(" in text):
            return None
        return self._call_statement(node, [], node.value) or self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> Any:
        """Programs of NumPy alone are there to be read: their values live to the end."""
        return None if self._with_numpy_only else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:
        """Keep branches that there is nothing left to do on."""
        self.generic_visit(node)
        node.body = node.body or [ast.Pass(lineno=node.lineno)]
        return node

    def visit_With(self, node: ast.With) -> Any:
        """Leave out what BLAS is told."""
        return [self.visit(one) for one in node.body]

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Write calls of several functions as statements."""
        target = node.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        return self._call_statement(node, names, node.value) or self.generic_visit(node)

    def _call_statement(
        self, node: ast.stmt, targets: Sequence[ast.expr], value: ast.expr
    ) -> list[ast.stmt] | None:
        """What stands for a call of a Loop, a Choice, or one of two functions."""
        if not isinstance(value, ast.Call):
            return None
        names = [self.visit(target) for target in targets]
        written = self._branches_or_loop(names, value.func, value.args)
        for one in written or ():
            for inner in ast.walk(one):
                inner.lineno = 0  # type: ignore[attr-defined]  # statements have it
            one.lineno = node.lineno
        return written

    def _branches_or_loop(
        self, targets: list[ast.expr], function: ast.expr, arguments: Sequence[ast.expr]
    ) -> list[ast.stmt] | None:
        match function:
            case ast.IfExp(test, first, second):
                branches = [[self._assign(targets, one, arguments)] for one in (first, second)]
                return [ast.If(self.visit(test), *branches)]
            case ast.Call(ast.Name(name), [index]):
                choice = called(self._values.get(name))
                assert isinstance(choice, Choice)
                return self._choice(choice, index, targets, arguments)
            case ast.Name(name) if isinstance(loop := called(self._values.get(name)), Loop):
                return self._loop(loop, targets, arguments)
        return None

    def _loop(
        self, loop: Loop, variables: list[ast.expr], arguments: Sequence[ast.expr]
    ) -> list[ast.stmt]:
        step, *starts = [self.visit(argument) for argument in arguments]
        arguments = [step, *[_loaded(variable) for variable in variables]]
        first = ast.Subscript(
            self._call(self._functions[loop.condition], arguments), ast.Constant(0), ast.Load()
        )
        start = ast.Assign([_tuple(variables, ast.Store())], _tuple(starts, ast.Load()))
        turn = ast.Assign(
            [_tuple(variables, ast.Store())],
            self._call(self._functions[loop.body], arguments),
        )
        test = ast.Call(ast.Name("truth", ast.Load()), [first], [])
        return [start, ast.While(test, [turn], [])]

    def _choice(
        self,
        choice: Choice,
        index: ast.expr,
        targets: list[ast.expr],
        arguments: Sequence[ast.expr],
    ) -> list[ast.stmt]:
        index = self.visit(index)
        calls: list[ast.stmt] = []
        for function in choice.branches:
            name = ast.Name(self._functions[function], ast.Load())
            calls.append(self._assign(targets, name, arguments))
        written = [calls[-1]]
        for number in reversed(range(len(calls) - 1)):
            test = ast.Compare(index, [ast.Eq()], [ast.Constant(number)])
            written = [ast.If(test, [calls[number]], written)]
        return written

    def _assign(
        self, targets: list[ast.expr], function: ast.expr, arguments: Sequence[ast.expr]
    ) -> ast.stmt:
        call = ast.Call(self.visit(function), [self.visit(one) for one in arguments], [])
        return ast.Assign([_tuple(targets, ast.Store())], call) if targets else ast.Expr(call)

    # Expressions.

    def _call(self, function: str, arguments: Sequence[ast.expr]) -> ast.expr:
        return ast.Call(ast.Name(function, ast.Load()), list(arguments), [])

    def visit_Call(self, node: ast.Call) -> Any:
        """Give functions the attrs that they want; write ufuncs as operators."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "scalar_of":
            return self.visit(node.args[0])
        value = self._values.get(name)
        if self._with_numpy_only and isinstance(value, np.ufunc):
            return self._ufunc(value, [self.visit(one) for one in node.args[: value.nin]])
        node = self.generic_visit(node)  # type: ignore[assignment]  # it is the node itself
        if name in self._references:
            keywords = self._references[name].keywords
            node.keywords += [
                ast.keyword(key, ast.parse(attr_literal(item), mode="eval").body)
                for key, item in keywords.items()
            ]
        return node

    def _ufunc(self, ufunc: np.ufunc, operands: list[ast.expr]) -> ast.expr:
        operator = _OPERATORS.get(ufunc.__name__)
        if isinstance(operator, ast.operator):
            return ast.BinOp(operands[0], operator, operands[1])
        if isinstance(operator, ast.cmpop):
            return ast.Compare(operands[0], [operator], operands[1:])
        if isinstance(operator, ast.unaryop):
            return ast.UnaryOp(operator, operands[0])
        return self._call(f"np.{ufunc.__name__}", operands)

    def visit_Name(self, node: ast.Name) -> Any:
        """Put the program's name, or expression, in the place of a plan's."""
        function = called(self._values.get(node.id))
        if isinstance(function, InstantiatedFunction):
            return ast.Name(self._functions[function], node.ctx)
        if node.id in self._references:
            return ast.parse(self._references[node.id].expression, mode="eval").body
        return ast.Name(self._locals.get(node.id, node.id), node.ctx)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Rename the function and its parameters."""
        node.name = self._locals.get(node.name, node.name)
        for parameter in node.args.args:
            parameter.arg = self._locals.get(parameter.arg, parameter.arg)
        return self.generic_visit(node)


def uses_step(function: ast.FunctionDef, functions: Collection[str]) -> bool:
    """Whether a function gives the step to anything but these functions."""
    return any(
        isinstance(node, ast.Call)
        and any(isinstance(one, ast.Name) and one.id == "step" for one in node.args)
        and not (isinstance(node.func, ast.Name) and node.func.id in functions)
        for node in ast.walk(function)
    )


def without_step(function: ast.FunctionDef) -> None:
    """Take the step from all calls and parameters."""
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef):
            node.args.args = [one for one in node.args.args if one.arg != "step"]
        elif isinstance(node, ast.Call):
            node.args = [
                one for one in node.args if not (isinstance(one, ast.Name) and one.id == "step")
            ]


def _tuple(items: Sequence[ast.expr], context: ast.expr_context) -> ast.expr:
    return ast.Tuple([*items], context)


def _loaded(name: ast.expr) -> ast.expr:
    assert isinstance(name, ast.Name)
    return ast.Name(name.id, ast.Load())
