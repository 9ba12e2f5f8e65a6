"""Inputs of a signature as TensorFlow's saved_model_cli takes them: files, expressions, Examples.

Source: TensorFlow python/tools/saved_model_cli.py (load_inputs_from_input_arg_string and its kin).
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from opkernel.cli.output import WrongUse
from opkernel.device.allocation import check_allocation
from opkernel.errors import DeadlineExceededError, OpError, ResourceExhaustedError
from opkernel.proto import Example, Feature
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
    "reshape": lambda a, shape: np.reshape(a, shape),
    "expand_dims": lambda a, axis: np.expand_dims(a, axis),
    "random.rand": _random,
    **{name: _TYPES[name] for name in _TYPES if name not in ("bytes_", "str_")},
}


_FILE = re.compile(r"([^=\[\]]+)=([^\[\]]+)(?:\[([^\[\]]+)\])?")
_NAMED = re.compile(r"\s*([^=]+?)\s*=\s*(.+)", re.DOTALL)


def files_given(text: str) -> list[tuple[str, str]]:
    """The inputs of `--inputs`, as the pairs that `--input` has: `x=a.npz[k];y=b.npy`.

    Raises:
        WrongUse: a part has another form.
    """
    pairs = []
    for part in filter(None, map(str.strip, text.split(";"))):
        match = _FILE.fullmatch(part)
        if match is None:
            raise WrongUse(f"--inputs {part!r}: expected NAME=FILE.npy or NAME=FILE.npz[KEY]")
        name, path, key = match.groups()
        pairs.append((name, f"@{path}:{key}" if key else f"@{path}"))
    return pairs


def expressions_given(text: str) -> dict[str, Any]:
    """The inputs of `--input_exprs`: `x=np.ones((2, 3));y=[1, 2]`.

    Raises:
        WrongUse: a part has another form, or holds what is not allowed.
        ResourceExhaustedError: an array would be too large.
    """
    found: dict[str, Any] = {}
    for part in _parts(text):
        match = _NAMED.fullmatch(part)
        if match is None:
            raise WrongUse(f"--input_exprs {part!r}: expected NAME=EXPRESSION")
        found[match[1]] = expression_value(match[2])
    return found


def examples_given(text: str) -> dict[str, Any]:
    """The inputs of `--input_examples`: lists of dicts, each an Example: `x=[{"age": [22], "name": ["a"]}]`.

    Raises:
        WrongUse: a part is no list of dicts of lists of numbers or strings.
    """
    found: dict[str, Any] = {}
    for part in _parts(text):
        match = _NAMED.fullmatch(part)
        rows: Any = None
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            rows = ast.literal_eval(match[2]) if match else None
        is_list = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
        if match is None or not is_list:
            raise WrongUse(
                f"--input_examples {part!r}: expected NAME=[{{FEATURE: [VALUE, ...]}}, ...]"
            )
        serialized = np.empty(len(rows), object)
        serialized[:] = [_example(row).SerializeToString(deterministic=True) for row in rows]
        found[match[1]] = serialized
    return found


def _parts(text: str) -> list[str]:
    """The parts of a text between semicolons that are in no string."""
    quoted = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""
    pieces = re.findall(rf"(?:{quoted}|[^;])+", text)
    return [piece.strip() for piece in pieces if piece.strip()]


def _example(row: Mapping[Any, Any]) -> Example:
    """A tf.train.Example of a dict of lists."""
    example = Example()
    for name, values in row.items():
        if not isinstance(name, str) or not isinstance(values, list) or not values:
            raise WrongUse(f"--input_examples: feature {name!r} must be a list of values")
        try:
            _fill(example.features.feature[name], values)
        except (TypeError, ValueError) as error:
            raise WrongUse(f"--input_examples: feature {name!r}: {error}") from error
    return example


def _fill(feature: Feature, values: list[Any]) -> None:
    """Put values into a feature of their kind."""
    if all(isinstance(value, str | bytes) for value in values):
        data = [value.encode() if isinstance(value, str) else value for value in values]
        feature.bytes_list.value.extend(data)
    elif any(isinstance(value, float) for value in values):
        feature.float_list.value.extend(values)
    else:
        feature.int64_list.value.extend(values)
