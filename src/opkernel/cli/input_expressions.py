"""`--input_exprs NAME=EXPRESSION`: values written as Python literals and calls of NumPy's constructors.

An expression is walked as a syntax tree, and never evaluated by Python. It may hold numbers, strings, lists,
tuples, signs, the four kinds of arithmetic, powers, names of NumPy's types, and calls of the functions in
`_FUNCTIONS`, whose results are bounded before they are made.

Source: TensorFlow python/tools/saved_model_cli.py, which evaluates the expressions as Python.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opkernel.cli.exit_status import WrongUse
from opkernel.device.allocation import check_allocation
from opkernel.errors import DeadlineExceededError, OpError, ResourceExhaustedError
from opkernel.types import DataType

_MAX_CHARACTERS = 1 << 20
_MAX_BITS = 1 << 10
"""The size of a whole number; no type of a tensor has more than 64."""

_TYPES: Mapping[str, type] = {
    name: getattr(np, name)
    for name in (
        "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "complex64", "complex128", "bytes_", "str_",
    )
}  # fmt: skip
_BUILTIN_TYPES: Mapping[str, type] = {"bool": bool, "int": int, "float": float, "complex": complex}
_NUMBERS = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None}

_BINARY: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: Mapping[type, Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}


def expression_value(text: str) -> Any:
    """The value of an expression such as `[[1, 2], [3, 4]]` or `np.ones((2, 3), dtype=np.float32)`.

    Raises:
        WrongUse: the expression does not parse, or has a part that is not allowed; the message names the part.
        ResourceExhaustedError: an array would take more memory than is allowed.
    """
    if len(text) > _MAX_CHARACTERS:
        raise WrongUse(f"--input_exprs: an expression has at most {_MAX_CHARACTERS} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", None) or "it cannot be parsed"
        raise WrongUse(f"--input_exprs: {text!r} is no expression: {reason}") from error
    try:
        return _Expression(text.strip()).value(tree.body)
    except (ResourceExhaustedError, DeadlineExceededError):
        raise
    except (OpError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise WrongUse(f"--input_exprs: {text!r}: {error}") from error


class _Expression:
    """A walk over the syntax tree of an expression."""

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, node: ast.expr) -> Any:
        """The value of a part."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.List(elts=parts):
                return [self.value(part) for part in parts]
            case ast.Tuple(elts=parts):
                return tuple([self.value(part) for part in parts])
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                return _UNARY[type(op)](self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self._arithmetic(node, op, self.value(left), self.value(right))
            case ast.Call(func=func, args=args, keywords=keywords):
                return self._call(func, args, keywords)
            case ast.Name(id=name) if name in _BUILTIN_TYPES:
                return _BUILTIN_TYPES[name]
            case ast.Attribute():
                return self._of_numpy(node)
        raise self._refusal(node)

    def _arithmetic(self, node: ast.expr, op: ast.operator, left: Any, right: Any) -> Any:
        """The result of arithmetic on numbers and arrays; lists and strings are not multiplied."""
        if not all(
            isinstance(x, int | float | complex | np.ndarray | np.generic) for x in (left, right)
        ):
            raise self._refusal(node)
        _check(np.broadcast_shapes(np.shape(left), np.shape(right)), complex)
        if isinstance(op, ast.Pow) and _is_small_power(left, right):
            return left**right
        if type(op) not in _BINARY:
            raise self._refusal(node)
        result = _BINARY[type(op)](left, right)
        if isinstance(result, int) and result.bit_length() > _MAX_BITS:
            raise self._refusal(node)
        return result

    def _of_numpy(self, node: ast.Attribute) -> Any:
        """The type or number that `np.NAME` names."""
        name = _dotted(node).removeprefix("numpy.").removeprefix("np.")
        if name in _TYPES:
            return _TYPES[name]
        if name in _NUMBERS:
            return _NUMBERS[name]
        raise self._refusal(node)

    def _call(self, func: ast.expr, args: list[ast.expr], keywords: list[ast.keyword]) -> Any:
        dotted = _dotted(func)
        name = dotted.removeprefix("numpy.").removeprefix("np.")
        if name == dotted or name not in _FUNCTIONS or any(k.arg is None for k in keywords):
            raise self._refusal(func)
        values = [self.value(arg) for arg in args]
        return _FUNCTIONS[name](*values, **{str(k.arg): self.value(k.value) for k in keywords})

    def _refusal(self, node: ast.expr) -> WrongUse:
        part = ast.get_source_segment(self._text, node) or self._text
        return WrongUse(
            f"--input_exprs: {part!r} is not allowed; an expression holds literals, arithmetic and "
            f"np.{', np.'.join(_FUNCTIONS)}"
        )


def _dotted(node: ast.expr) -> str:
    """The name `a.b.c` of a chain of attributes; nothing for other parts."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _is_small_power(left: Any, right: Any) -> bool:
    """Whether a power is no whole number of many digits."""
    if not (isinstance(left, int) and isinstance(right, int)):
        return True
    return abs(right) * left.bit_length() <= _MAX_BITS


def _check(shape: Any, dtype: Any) -> None:
    """Raise ResourceExhaustedError for an array that would be too large."""
    widest = DataType.DT_COMPLEX128 if np.dtype(dtype).kind == "c" else DataType.DT_INT64
    check_allocation((shape,) if isinstance(shape, int) else shape, widest)


def _filled(make: Callable[..., Any]) -> Callable[..., Any]:
    """A constructor of an array of a shape."""

    def made(shape: Any, dtype: Any = float) -> Any:
        _check(shape, dtype)
        return make(shape, dtype)

    return made


def _full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    _check(shape, dtype or np.asarray(fill_value).dtype)
    return np.full(shape, fill_value, dtype)


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    start, stop = (0, start) if stop is None else (start, stop)
    _check(max(math.ceil((stop - start) / step), 0), dtype or np.result_type(start, stop, step))
    arange: Any = np.arange
    return arange(start, stop, step, dtype)


def _linspace(
    start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None
) -> Any:
    _check(num, dtype or float)
    return np.linspace(start, stop, num, endpoint, dtype=dtype)


def _eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:  # noqa: N803 - NumPy's names
    _check((N, N if M is None else M), dtype)
    return np.eye(N, M, k, dtype)


def _random(*sizes: int) -> Any:
    _check(sizes, float)
    return np.random.default_rng().random(sizes)


def _array(object: Any, dtype: Any = None) -> Any:
    return np.array(object, dtype)


def _reshape(a: Any, shape: Any) -> Any:
    return np.reshape(a, shape)


def _expand_dims(a: Any, axis: Any) -> Any:
    return np.expand_dims(a, axis)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "array": _array,
    "asarray": _array,
    "zeros": _filled(np.zeros),
    "ones": _filled(np.ones),
    "full": _full,
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    "identity": _eye,
    "reshape": _reshape,
    "expand_dims": _expand_dims,
    "random.rand": _random,
    **{name: _TYPES[name] for name in _TYPES if name not in ("bytes_", "str_")},
}
