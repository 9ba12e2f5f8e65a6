"""Endpoints that are ops under other names: `table.txt` says which, and this module makes their functions.

A line `math.argsum(input, axis: dimension=0) = ArgSum` makes the function `opkernel.math.argsum`. Its parameters stand
in TensorFlow's order with TensorFlow's defaults. An annotation gives the input's or attr's name where the op has another.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from opkernel.lazy_exports import lazy_exports
from opkernel.messages import did_you_mean

_TABLE = Path(__file__).with_name("table.txt")


class EndpointParameter(NamedTuple):
    """A parameter of an endpoint, and the input or attr of the op that takes it."""

    name: str
    declared: str
    default: Any


class Endpoint(NamedTuple):
    """A line of the table: `text` is the signature, `target` the op or, for an alias, another endpoint."""

    module: str
    name: str
    text: str
    target: str

    @property
    def is_alias(self) -> bool:
        """Whether the endpoint is another endpoint under a second name."""
        return not self.text

    @property
    def parameters(self) -> list[EndpointParameter]:
        """The parameters in their order, the node's name among them."""
        tree = ast.parse(f"def endpoint({self.text}): ...").body[0]
        assert isinstance(tree, ast.FunctionDef)
        given = tree.args.args
        empty = [inspect.Parameter.empty] * (len(given) - len(tree.args.defaults))
        defaults = [*empty, *map(_value, tree.args.defaults)]
        found = [
            EndpointParameter(arg.arg, ast.unparse(arg.annotation or ast.Name(arg.arg)), default)
            for arg, default in zip(given, defaults, strict=True)
        ]
        if "name" not in [parameter.name for parameter in found]:
            found.append(EndpointParameter("name", "name", None))
        return found


def _value(node: ast.expr) -> Any:
    """A default: a literal, `-inf`, or the name of a type."""
    from opkernel.types import as_dtype

    text = ast.unparse(node)
    if text == "-inf":
        return float("-inf")
    return as_dtype(text) if isinstance(node, ast.Name) else ast.literal_eval(node)


def table() -> Iterator[Endpoint]:
    """All lines of the table."""
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            head, _, target = line.rpartition(" = ")
            path, _, rest = head.partition("(")
            module, _, name = path.rpartition(".")
            yield Endpoint(module, name, rest.removesuffix(")"), target)


def endpoints(
    package: str,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a module: the functions of its files and of the table."""
    load_export, list_exports, exports = lazy_exports(package)
    module = package.rpartition(".")[2]
    lines = {row.name: row for row in table() if row.module == module and row.name not in exports}

    @functools.cache
    def load(name: str) -> Any:
        if name in exports:
            return load_export(name)
        row = lines.get(name)
        if row is None:
            hint = "" if name.startswith("_") else did_you_mean(name, [*exports, *lines])
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}", name=name)
        return load(row.target.rpartition(".")[2]) if row.is_alias else endpoint_function(row)

    return load, lambda: sorted([*list_exports(), *lines]), sorted([*exports, *lines])


def endpoint_function(endpoint: Endpoint) -> Callable[..., Any]:
    """The function of a line of the table."""
    from opkernel import raw_ops
    from opkernel.opdef import global_op_registry, op_docstring
    from opkernel.ops.api_defs import python_api_def

    parameters = endpoint.parameters
    declared = {parameter.name: parameter.declared for parameter in parameters}
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter(p.name, positional, default=p.default) for p in parameters]
    )

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{endpoint.module}.{endpoint.name}(): {error}") from None
        bound.apply_defaults()
        op = getattr(raw_ops, endpoint.target)
        return op(**{declared[name]: value for name, value in bound.arguments.items()})

    op_def = global_op_registry().look_up_op_def(endpoint.target)
    function.__signature__ = signature  # type: ignore[attr-defined]  # as `inspect` asks
    function.__name__ = function.__qualname__ = endpoint.name
    function.__module__ = f"opkernel.endpoints.{endpoint.module}"
    names = {p.declared: p.name for p in parameters}
    function.__doc__ = op_docstring(op_def, python_api_def(endpoint.target), names)
    return function
