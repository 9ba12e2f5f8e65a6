"""A model as a Python program: its plan, and before it what the plan refers to.

Kernels are looked up in opkernel, or stand in the program as NumPy functions. Constants of a few
elements stand in it, too; the others are arrays in a file beside it.
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from opkernel.cli import numpy_functions
from opkernel.cli.numpy_functions import NEEDED_ATTRS, NUMPY_FUNCTIONS
from opkernel.errors import UnimplementedError
from opkernel.graph import Operation, Tensor
from opkernel.kernel import FunctionKernel, OpKernel
from opkernel.opdef import attr_to_python, attr_type_of, find_attr
from opkernel.proto import AttrValue
from opkernel.runtime.executors import ExecutorArgs
from opkernel.runtime.functions import FunctionLibraryRuntime
from opkernel.runtime.kernels import KernelCache
from opkernel.runtime.optimized_args import optimized_args
from opkernel.runtime.plan import CompiledPlan, compile_plan
from opkernel.types import DataType, PartialTensorShape

__all__ = ["Program", "decompile"]

_FEW = 16
_NAME = re.compile(r"[A-Za-z_]\w*")
_OWN_NAMES = frozenset(
    [
        "np",
        "math",
        "partial",
        "sys",
        "Path",
        "Any",
        "RunStep",
        "kernel_function",
        "opkernel",
        "model",
        "plan",
        "AttrValue",
        "PartialTensorShape",
        "FEEDS",
        "TYPES",
        "FETCHES",
        "WEIGHTS",
        "given",
        "results",
        "name",
        "result",
        "dtype",
    ]
)


@dataclass
class Program:
    """A program and the arrays that belong into the file beside it.

    Attributes:
        source: the text.
        weights: the arrays, by the names that the program has for them.
    """

    source: str
    weights: dict[str, np.ndarray[Any, Any]]


def decompile(
    feeds: Sequence[Tensor],
    fetches: Sequence[Tensor],
    title: str,
    *,
    with_numpy_only: bool = False,
) -> Program:
    """The program that computes `fetches` from `feeds`.

    Args:
        feeds: tensors of a graph: the parameters.
        fetches: tensors of the same graph: the results.
        title: what the program says of itself first.
        with_numpy_only: whether it must do without opkernel.

    Raises:
        UnimplementedError: it would need what has no source: functions of the graph, state, or, with
            NumPy alone, ops that have no NumPy function here.
        NotFoundError, InvalidArgumentError: the graph cannot be run.
    """
    plan, ops = _compiled(feeds, fetches, with_numpy_only)
    names = _Names(plan)
    writer = (_NumpyWriter if with_numpy_only else _KernelWriter)(names)
    writer.write(plan, ops)
    text = _NAME.sub(lambda match: names.new.get(match[0], match[0]), plan.source)
    step = writer.step(plan)
    head = _HEAD.format(
        title=re.sub(r"[^\w. -]", "_", title),
        feeds=[tensor.name for tensor in feeds],
        fetches=[tensor.name for tensor in fetches],
        dtypes=[tensor.dtype.base.numpy_dtype.name for tensor in feeds],
        standard_imports=_lines(writer.standard_imports),
        imports=_lines(writer.imports),
        weights=_WEIGHTS if writer.weights else "",
    )
    lines = [*writer.helpers, *writer.lines]
    parameters = ", ".join(names.parameters)
    call = ", ".join([step, *names.parameters])
    tail = _TAIL.format(parameters=parameters, call=call)
    return Program(head + "\n".join(lines) + f"\n\n\n{text.strip()}\n" + tail, writer.weights)


_HEAD = '''"""{title}

    python THIS_FILE INPUTS.npz [RESULTS.npz]

The arrays of INPUTS.npz have the names of the feeds. Written by `opkernel decompile`.
"""

{standard_imports}
import numpy as np
{imports}
FEEDS = {feeds}
TYPES = {dtypes}
FETCHES = {fetches}
{weights}
'''
_WEIGHTS = 'WEIGHTS = np.load(Path(__file__).with_suffix(".npz"))\n'
_TAIL = '''

def model({parameters}):
    """The fetches, as a tuple."""
    with np.errstate(all="ignore"):
        return plan({call})


if __name__ == "__main__":
    given = np.load(sys.argv[1])
    results = model(*[np.asarray(given[name], dtype) for name, dtype in zip(FEEDS, TYPES)])
    if len(sys.argv) > 2:
        np.savez(sys.argv[2], **dict(zip(FETCHES, results)))
    else:
        for name, result in zip(FETCHES, results):
            print(name, result, sep="\\n")
'''


def _compiled(
    feeds: Sequence[Tensor], fetches: Sequence[Tensor], with_numpy_only: bool
) -> tuple[CompiledPlan, dict[int, Operation]]:
    """The plan of a program, and a node for each kernel and each function of a kernel, by its id."""
    graph = fetches[0].op.graph
    library = FunctionLibraryRuntime(graph.function_library, graph.graph_def_versions.producer)
    kernels = KernelCache(
        graph.graph_def_versions.producer, graph.op_registry, function_library=library
    )
    args = ExecutorArgs(feeds, fetches, [], kernels, library)
    args = optimized_args(args, _passes(fused=not with_numpy_only))
    plan = compile_plan(args.order, args.feeds, args.fetches, kernels, library, in_groups=False)
    return plan, _ops_by_function(args.order, kernels)


def _passes(*, fused: bool) -> bool | list[str]:
    """The passes: all, or those that leave the ops of the model as they are."""
    if fused:
        return True
    from opkernel.optimization import optimization_passes

    return [one.name for one in optimization_passes() if "fusion" not in one.run.__module__]


class _Names:
    """The names of the program.

    Attributes:
        parameters: those of the plan, without the step.
        new: the globals of the plan that get other names.
    """

    def __init__(self, plan: CompiledPlan) -> None:
        code = plan.run.__code__
        self.parameters = code.co_varnames[1 : code.co_argcount]
        self.new: dict[str, str] = {}
        self._taken = set(_NAME.findall(plan.source))
        self._taken |= {*_OWN_NAMES, *keyword.kwlist, *dir(builtins)}
        self._taken |= {name for name, _ in inspect.getmembers(numpy_functions)}

    def rename(self, name: str, hint: str) -> str:
        """Give a global of the plan a new name like `hint`."""
        chosen, number = hint, 0
        while chosen in self._taken:
            number += 1
            chosen = f"{hint}_{number}"
        self._taken.add(chosen)
        self.new[name] = chosen
        return chosen

    def is_own(self, name: str) -> bool:
        """Whether a global has a name that the program needs for itself."""
        return name in _OWN_NAMES or hasattr(numpy_functions, name)


class _Writer:
    """Writes what defines the globals of a plan.

    Attributes:
        standard_imports: the imports of the program from Python's library.
        imports: the others, beside NumPy's.
        helpers: functions that stand before everything else.
        lines: the definitions.
        weights: the arrays of the file beside it.
    """

    def __init__(self, names: _Names) -> None:
        self.standard_imports = {"import sys", "from pathlib import Path"}
        self.imports: set[str] = set()
        self.helpers: list[str] = []
        self.lines: list[str] = []
        self.weights: dict[str, np.ndarray[Any, Any]] = {}
        self._names = names
        self._bound: dict[str, str] = {}

    def write(self, plan: CompiledPlan, ops: dict[int, Operation]) -> None:
        """Define all globals of a plan; `ops` has the nodes of kernels and functions by their ids."""
        mentioned = set(_NAME.findall(plan.source))
        functions = []
        for name, value in plan.run.__globals__.items():
            if name not in mentioned or (isinstance(value, FunctionType) and _is_part(value)):
                continue
            if isinstance(value, np.ndarray | np.generic):
                self._array(name, value)
            else:
                functions.append((name, value))
        missing = [text for name, value in functions for text in self._function(name, value, ops)]
        if missing:
            raise UnimplementedError(f"There is no source for {', '.join(dict.fromkeys(missing))}")

    def step(self, plan: CompiledPlan) -> str:
        """The expression for the step that the plan is given."""
        raise NotImplementedError

    def _function(self, name: str, value: Any, ops: dict[int, Operation]) -> Iterator[str]:
        """Define what is no array; what has no source."""
        if isinstance(value, np.dtype):
            self._define(name, name, f"np.dtype({value.name!r})")
        elif isinstance(value, np.ufunc) and (ufunc := _name_in_numpy(value)):
            self._define(name, ufunc, f"np.{ufunc}")
        else:
            op = ops.get(id(value)) or ops.get(id(_kernel_of_closure(value)))
            yield from self._other(name, value) if op is None else self._kernel(name, op)

    def _other(self, name: str, value: Any) -> Iterator[str]:
        raise NotImplementedError

    def _kernel(self, name: str, op: Operation) -> Iterator[str]:
        raise NotImplementedError

    def _define(self, name: str, hint: str, expression: str) -> None:
        """Define a global; those of the same expression have one name."""
        if expression in self._bound:
            self._names.new[name] = self._bound[expression]
            return
        self._bound[expression] = self._names.rename(name, hint)
        self.lines.append(f"{self._bound[expression]} = {expression}")

    def _array(self, name: str, value: Any) -> None:
        chosen = self._names.rename(name, name) if self._names.is_own(name) else name
        literal = _literal(value)
        if literal is None:
            if value.dtype.hasobject or value.dtype.isbuiltin != 1:
                raise UnimplementedError(f"There is no source for constants of type {value.dtype}")
            self.weights[chosen] = np.asarray(value)
            literal = f'WEIGHTS["{chosen}"]'
        self.lines.append(f"{chosen} = {literal}")


class _KernelWriter(_Writer):
    """Writes programs that call opkernel's kernels."""

    def step(self, plan: CompiledPlan) -> str:
        """A step that offers nothing."""
        if not plan.uses_step:
            return "None"
        self.imports.add("from opkernel.runtime.step import RunStep")
        return "RunStep()"

    def _other(self, name: str, value: Any) -> Iterator[str]:
        module = getattr(value, "__module__", None)
        found = getattr(sys.modules.get(module or ""), name, None)
        if module is None or found is not value:
            yield f"{type(value).__name__} {name!r}"
            return
        self.imports.add(f"from {module} import {name}")

    def _kernel(self, name: str, op: Operation) -> Iterator[str]:
        self.imports.add("from opkernel import kernel_function")
        attrs = "".join(
            f", {attr}={self._attr(op, attr, op.node_def.attr[attr])}"
            for attr in sorted(op.node_def.attr)
            if not attr.startswith("_")
        )
        self._define(name, _snake_case(op.type), f"kernel_function({op.type!r}{attrs})")
        return iter(())

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
        return _number(value) if isinstance(value, float) else repr(value)


class _NumpyWriter(_Writer):
    """Writes programs that need NumPy only."""

    def step(self, plan: CompiledPlan) -> str:
        """Nothing, for no function looks at it; loops would."""
        if "step.check()" in plan.source:
            raise UnimplementedError("There is no source for loops with NumPy alone")
        return "None"

    def _other(self, name: str, value: Any) -> Iterator[str]:
        yield f"{type(value).__name__} {name!r} with NumPy alone"

    def _kernel(self, name: str, op: Operation) -> Iterator[str]:
        function = NUMPY_FUNCTIONS.get(op.type)
        attrs = {
            attr.name: attr_to_python(op.node_def.attr[attr.name], attr.type)
            for attr in op.op_def.attr
        }
        wrong = [
            f"{attr}={attrs[attr]!r}"
            for attr, value in NEEDED_ATTRS.get(op.type, {}).items()
            if attrs.get(attr, value) != value
        ]
        if function is None or wrong:
            yield " with ".join([f"op {op.type}", *wrong, "NumPy alone"])
            return
        self._help(function)
        wanted = inspect.signature(function).parameters.values()
        keywords = "".join(
            f", {one.name}={_numpy_attr(attrs[one.name])}"
            for one in wanted
            if one.kind is one.KEYWORD_ONLY
        )
        if keywords:
            self.standard_imports.add("from functools import partial")
        expression = f"partial({function.__name__}{keywords})" if keywords else function.__name__
        self._define(name, _snake_case(op.type), expression)

    def _help(self, function: Callable[..., Any]) -> None:
        """Copy a function, and those that it calls, to the program."""
        text = inspect.getsource(function)
        if text in self.helpers:
            return
        for used in inspect.unwrap(function).__code__.co_names:
            other = getattr(numpy_functions, used, None)
            if isinstance(other, FunctionType) and other is not function:
                self._help(other)
        self.standard_imports.add("from typing import Any")
        if "math." in text:
            self.standard_imports.add("import math")
        self.helpers += [text, ""]


def _ops_by_function(ops: Sequence[Operation], kernels: KernelCache) -> dict[int, Operation]:
    found: dict[int, Operation] = {}
    made = kernels.made()
    for op in ops:
        kernel = made.get(op.name)
        if kernel is not None:
            found.setdefault(id(kernel), op)
            if isinstance(kernel, FunctionKernel):
                found.setdefault(id(kernel.function), op)
    return found


def _name_in_numpy(ufunc: np.ufunc) -> str | None:
    return ufunc.__name__ if getattr(np, ufunc.__name__, None) is ufunc else None


def _kernel_of_closure(function: Any) -> OpKernel | None:
    """The kernel that a function of the step calls."""
    if not isinstance(function, FunctionType):
        return None
    cells = inspect.getclosurevars(function).nonlocals.values()
    return next((cell for cell in cells if isinstance(cell, OpKernel)), None)


def _is_part(function: FunctionType) -> bool:
    return function.__code__.co_filename.startswith("<opkernel plan")


def _literal(value: Any) -> str | None:
    """An array of a few numbers or strings as an expression."""
    kind = value.dtype.kind
    if value.size > _FEW or value.dtype.isbuiltin != 1 or (kind != "O" and kind not in "biuf"):
        return None
    elements = value.tolist()
    if kind == "O":
        flat = elements if isinstance(elements, list) else [elements]
        is_text = value.ndim < 2 and all(isinstance(item, bytes) for item in flat)
        return f"np.array({elements!r}, object)" if is_text else None
    if value.size == 0 and value.ndim != 1:
        return f"np.zeros({value.shape}, np.{value.dtype.name})"
    text = _numbers(value) if kind == "f" else repr(elements)
    dtype = "np.bool_" if kind == "b" else f"np.{value.dtype.name}"
    return f"{dtype}({text})" if isinstance(value, np.generic) else f"np.array({text}, {dtype})"


def _numbers(value: Any) -> str:
    """Floats, in lists as in the array, as an expression."""
    if value.ndim:
        return f"[{', '.join(map(_numbers, value))}]"
    short = value.dtype.type(str(value[()]))
    return _number(float(str(value[()])) if short == value else float(value))


def _number(value: float) -> str:
    return repr(value) if np.isfinite(value) else f"float({str(value)!r})"


def _numpy_attr(value: Any) -> str:
    return repr(value.numpy_dtype.name) if isinstance(value, DataType) else repr(value)


def _snake_case(op: str) -> str:
    """The name of an op as that of a Python function: `batch_mat_mul_v2` of BatchMatMulV2."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])", "_", op)
    return re.sub(r"\W", "_", words.lower().strip("_"))


def _lines(lines: set[str]) -> str:
    return "".join(f"{line}\n" for line in sorted(lines))
