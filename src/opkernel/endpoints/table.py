"""Endpoints that are ops under other names: `table.txt` says which, and this module makes their functions.

A line `math.argsum(input, axis: dimension=0) = ArgSum` makes the function `opkernel.math.argsum`. Its parameters stand
in TensorFlow's order with TensorFlow's defaults. An annotation gives the input's or attr's name where the op has another.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from opkernel.lazy_exports import lazy_exports
from opkernel.tracebacks import hide_frames, hides_frames

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
    module = package.rpartition(".")[2]
    rows = {row.name: row for row in table() if row.module == module}
    load, public, names = lazy_exports(
        package, {name: functools.partial(_made, package, row) for name, row in rows.items()}
    )
    return load, public, sorted(names)


def _made(package: str, row: Endpoint) -> Any:
    """The function of a line; the other endpoint for an alias."""
    if row.is_alias:
        return getattr(sys.modules[package], row.target.rpartition(".")[2])
    return endpoint_function(row)


def endpoint_function(endpoint: Endpoint) -> Callable[..., Any]:
    """The function of a line of the table.

    Its text is compiled, as `collections.namedtuple` does, so that Python binds the arguments of calls.
    """
    from opkernel import raw_ops
    from opkernel.opdef import global_op_registry, op_docstring
    from opkernel.ops.api_defs import python_api_def

    parameters = endpoint.parameters
    given = ", ".join(f"{p.declared}={p.name}" for p in parameters)
    text = f"""def {endpoint.name}({", ".join(p.name for p in parameters)}):
    try:
        return raw_ops.{endpoint.target}({given})
    except Exception as error:
        hide_frames(error)
        raise
"""
    scope: dict[str, Any] = {"raw_ops": raw_ops, "hide_frames": hide_frames}
    scope["__name__"] = f"opkernel.endpoints.{endpoint.module}"
    file = f"<opkernel {endpoint.module}.{endpoint.name}>"
    exec(compile(text, file, "exec"), scope)  # text is of the table
    function: Any = scope[endpoint.name]
    empty = inspect.Parameter.empty
    function.__defaults__ = tuple(p.default for p in parameters if p.default is not empty)
    op_def = global_op_registry().look_up_op_def(endpoint.target)
    names = {p.declared: p.name for p in parameters}
    function.__doc__ = op_docstring(op_def, python_api_def(endpoint.target), names)
    made: Callable[..., Any] = hides_frames(function)
    return made
