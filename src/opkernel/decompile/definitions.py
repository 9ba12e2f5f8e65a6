"""Globals of plans in the text of a program: expressions, and the definitions that they need."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from opkernel.decompile.expressions import Names, argument, is_plain, literal, number
from opkernel.decompile.numpy_functions import BY_NAME
from opkernel.decompile.numpy_kernels import NumpyKernel, name_in_numpy
from opkernel.errors import UnimplementedError
from opkernel.kernel import OpKernel
from opkernel.opdef import attr_to_python
from opkernel.proto import AttrValue
from opkernel.runtime.plan.services import DEAD
from opkernel.types import Array, DataType, PartialTensorShape, as_dtype


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
        self.weights: dict[str, Array] = {}
        self._names = names
        self._defined: dict[str, str] = {}
        self._helped: set[Callable[..., Any]] = set()

    def array(self, value: Any, name: str) -> None:
        """A global of the program for an array.

        Raises:
            UnimplementedError: there is no file for arrays of this type.
        """
        text = literal(value)
        if text is None:
            self.weights[name], view = self._stored(np.asarray(value))
            text = f'WEIGHTS["{name}"]{view}'
        self.lines.append(f"{name} = {text}")

    def _stored(self, value: Array) -> tuple[Array, str]:
        """An array as the file has it, and the expression that restores it."""
        if value.dtype.hasobject or not is_plain(value.dtype):
            raise UnimplementedError(f"There is no source for constants of type {value.dtype}")
        return value, ""

    def kernel(self, function: Any, kernel: OpKernel) -> str:
        """The expression of the function of a kernel."""
        name = name_in_numpy(function)
        return f"np.{name}" if name else self._kernel(kernel)

    def service(self, value: Any, name: str) -> str:
        """The expression of a service that plans need beside kernels."""
        raise NotImplementedError

    def _kernel(self, kernel: OpKernel) -> str:
        raise NotImplementedError

    def _define(self, hint: str, expression: str) -> str:
        """A global of this value; there is one for each expression."""
        if expression not in self._defined:
            self._defined[expression] = name = self._names.unique(hint)
            self.lines.append(f"{name} = {expression}")
        return self._defined[expression]


class KernelDefinitions(Definitions):
    """Definitions of programs that call opkernel's kernels."""

    def _stored(self, value: Array) -> tuple[Array, str]:
        if is_plain(value.dtype):
            return super()._stored(value)
        self.imports.add("import opkernel")
        dtype = f"opkernel.DataType.{as_dtype(value.dtype).name}.numpy_dtype"
        return value.view(f"u{value.dtype.itemsize}"), f".view({dtype})"

    def service(self, value: Any, name: str) -> str:
        """Import it."""
        self.imports.add(f"from {value.__module__} import {name}")
        return name

    def _kernel(self, kernel: OpKernel) -> str:
        """The kernel of a node, with those of its attrs that the op declares.

        Raises:
            UnimplementedError: it calls functions of the graph, which the program has none of.
        """
        self.imports.add("from opkernel import kernel_function")
        declared = sorted(kernel.properties.op_def.attr, key=lambda attr: attr.name)
        op, attrs = kernel.type_string, kernel.node_def.attr
        if any(attr.type in ("func", "list(func)") for attr in declared):
            raise UnimplementedError(
                f"There is no source for op {op}, whose kernel calls functions"
            )
        arguments = [
            argument(attr.name, self._attr(attr.type, attrs[attr.name]))
            for attr in declared
            if attr.name in attrs
        ]
        given = ", ".join([repr(op), *arguments])
        return self._define(_snake_case(op), f"kernel_function({given})")

    def _attr(self, attr_type: str, value: AttrValue) -> str:
        """An attr as an expression."""
        if attr_type in ("tensor", "list(tensor)"):
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
    """Definitions of programs that need NumPy only."""

    def service(self, value: Any, name: str) -> str:
        """Copy our function of that name, if there is one; dead values are None."""
        if name in BY_NAME:
            return self._help(BY_NAME[name])
        return "None" if value is DEAD else ""

    def _kernel(self, kernel: OpKernel) -> str:
        assert isinstance(kernel, NumpyKernel)
        return self._help(kernel.registered.function)

    def _help(self, function: Callable[..., Any]) -> str:
        """Copy a function, and the functions that it calls, to the program; returns its name."""
        if function not in self._helped:
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
        return function.__name__


def _snake_case(op: str) -> str:
    """The name of an op as a Python function has it: `batch_mat_mul_v2` of BatchMatMulV2."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])", "_", op).lower()
