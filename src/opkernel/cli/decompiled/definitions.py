"""What the globals of plans are in a program: expressions, and the definitions that these need."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from opkernel.cli.decompiled.functions import PlanOfFunction, kernel_of
from opkernel.cli.decompiled.literals import is_plain, literal, number
from opkernel.cli.decompiled.names import Names
from opkernel.cli.decompiled.numpy_kernels import name_in_numpy
from opkernel.cli.numpy_functions import BY_NAME
from opkernel.errors import UnimplementedError
from opkernel.graph import Operation
from opkernel.opdef import attr_to_python, attr_type_of, find_attr
from opkernel.proto import AttrValue
from opkernel.runtime.plan_writer import DEAD
from opkernel.types import DataType, PartialTensorShape, as_dtype

__all__ = ["Definitions", "KernelDefinitions", "NumpyDefinitions", "Reference"]


@dataclass(frozen=True)
class Reference:
    """How a program refers to something.

    Attributes:
        expression: what stands for it.
        keywords: where it is called, the arguments that it is given beside those of the plan.
    """

    expression: str
    keywords: dict[str, Any] = field(default_factory=dict)


class Definitions:
    """Collects what defines the globals of plans.

    Attributes:
        standard_imports: the imports of the program from Python's library.
        imports: the others, beside NumPy's.
        helpers: functions that stand before everything else.
        lines: the definitions.
        weights: the arrays of the file beside it.
    """

    def __init__(self, names: Names) -> None:
        self.standard_imports = {"import sys", "from pathlib import Path"}
        self.imports: set[str] = set()
        self.helpers: list[str] = []
        self.lines: list[str] = []
        self.weights: dict[str, np.ndarray[Any, Any]] = {}
        self._names = names
        self._defined: dict[str, str] = {}
        self._helped: set[Callable[..., Any]] = set()

    def array(self, value: Any, name: str) -> Reference:
        """A global of the program for an array.

        Raises:
            UnimplementedError: there is no file for arrays of this type.
        """
        text = literal(value)
        if text is None:
            if value.dtype.hasobject:
                raise UnimplementedError(f"There is no source for constants of type {value.dtype}")
            self.weights[name], view = self._stored(np.asarray(value))
            text = f'WEIGHTS["{name}"]{view}'
        self.lines.append(f"{name} = {text}")
        return Reference(name)

    def _stored(self, value: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], str]:
        """An array as the file has it, and what makes it what it was."""
        if not is_plain(value.dtype):
            raise UnimplementedError(f"There is no source for constants of type {value.dtype}")
        return value, ""

    def other(self, plan: PlanOfFunction, name: str, value: Any) -> Reference:
        """What is no array and no function of the graph.

        Raises:
            UnimplementedError: it has no source.
        """
        if isinstance(value, np.dtype):
            return Reference(f"np.dtype({value.name!r})")
        if isinstance(value, np.ufunc) and (ufunc := name_in_numpy(value)):
            return Reference(f"np.{ufunc}")
        reference = self._function(plan, name, value)
        if reference is None:
            raise UnimplementedError(f"There is no source for {type(value).__name__} {name!r}")
        return reference

    def function(self, function: Callable[..., Any]) -> None:
        """Have the program know a function that a plan might refer to by its own name."""
        raise NotImplementedError

    def _function(self, plan: PlanOfFunction, name: str, value: Any) -> Reference | None:
        raise NotImplementedError

    def _define(self, hint: str, expression: str) -> Reference:
        """A global of this value; there is one for each expression."""
        if expression not in self._defined:
            self._defined[expression] = name = self._names.unique(hint)
            self.lines.append(f"{name} = {expression}")
        return Reference(self._defined[expression])


class KernelDefinitions(Definitions):
    """Of programs that call opkernel's kernels."""

    def _stored(self, value: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], str]:
        if is_plain(value.dtype):
            return value, ""
        self.imports.add("import opkernel")
        dtype = f"opkernel.DataType.{as_dtype(value.dtype).name}.numpy_dtype"
        return value.view(f"u{value.dtype.itemsize}"), f".view({dtype})"

    def function(self, function: Callable[..., Any]) -> None:
        """Import it."""
        self.imports.add(f"from {function.__module__} import {function.__name__}")

    def _function(self, plan: PlanOfFunction, name: str, value: Any) -> Reference | None:
        op = plan.ops.get(id(value)) or plan.ops.get(id(kernel_of(value)))
        if op is not None:
            return self._kernel(op)
        module = getattr(value, "__module__", None)
        if module is None and value is DEAD:
            module = "opkernel.runtime.plan_writer"
        if getattr(sys.modules.get(module or ""), name, None) is not value:
            return None
        self.imports.add(f"from {module} import {name}")
        return Reference(name)

    def _kernel(self, op: Operation) -> Reference:
        self.imports.add("from opkernel import kernel_function")
        attrs = "".join(
            f", {attr}={self._attr(op, attr, op.node_def.attr[attr])}"
            for attr in sorted(op.node_def.attr)
            if not attr.startswith("_")
        )
        return self._define(_snake_case(op.type), f"kernel_function({op.type!r}{attrs})")

    def _attr(self, op: Operation, name: str, value: AttrValue) -> str:
        """An attr as an expression."""
        declared = find_attr(op.op_def, name)
        attr_type = attr_type_of(value) if declared is None else declared.type
        if attr_type in ("tensor", "func", "list(tensor)", "list(func)"):
            self.imports.add("from opkernel.proto import AttrValue")
            return f"AttrValue.FromString({value.SerializeToString()!r})"
        return self._expression(attr_to_python(value, attr_type))

    def _expression(self, value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(self._expression, value))}]"
        if isinstance(value, DataType):
            self.imports.add("import opkernel")
            return f"opkernel.DataType.{value.name}"
        if isinstance(value, PartialTensorShape):
            self.imports.add("from opkernel.types import PartialTensorShape")
            return f"PartialTensorShape({None if value.rank is None else value.as_list()})"
        return number(value) if isinstance(value, float) else repr(value)


class NumpyDefinitions(Definitions):
    """Of programs that need NumPy only."""

    def function(self, function: Callable[..., Any]) -> None:
        """Copy ours of that name."""
        self._help(BY_NAME[function.__name__])

    def _function(self, plan: PlanOfFunction, name: str, value: Any) -> Reference | None:
        if value is DEAD:
            return Reference("None")
        function, keywords = value, {}
        if isinstance(value, partial):
            function, keywords = value.func, value.keywords
        own = BY_NAME.get(getattr(function, "__name__", ""))
        if own is None:
            return None
        self._help(own)
        return Reference(own.__name__, keywords)

    def _help(self, function: Callable[..., Any]) -> None:
        """Copy a function, and those that it calls, to the program."""
        if function in self._helped:
            return
        self._helped.add(function)
        text = re.sub(r" +# noqa:.*", "", inspect.getsource(function))
        for node in ast.walk(ast.parse(text)):
            other = function.__globals__.get(node.id) if isinstance(node, ast.Name) else None
            if isinstance(other, FunctionType):
                self._help(other)
        self.helpers.append(text)
        self.standard_imports.add("from typing import Any")
        if "math." in text:
            self.standard_imports.add("import math")


def _snake_case(op: str) -> str:
    """The name of an op as that of a Python function: `batch_mat_mul_v2` of BatchMatMulV2."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])", "_", op)
    return re.sub(r"\W", "_", words.lower().strip("_"))
