"""A model as a Python program: the plans of its functions, and before them what these refer to.

Kernels are looked up in opkernel, or stand in the program as NumPy functions. Constants of a few
elements stand in it, too; the others are arrays in a file beside it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.cli.decompiled.definitions import (
    Definitions,
    KernelDefinitions,
    NumpyDefinitions,
    Reference,
)
from opkernel.cli.decompiled.functions import Loop, PlanOfFunction, called, plans
from opkernel.cli.decompiled.layout import lines_of, wrapped
from opkernel.cli.decompiled.literals import scalar_literal
from opkernel.cli.decompiled.names import Names, Path, identifier, paths_of
from opkernel.cli.decompiled.statements import LEFT_OUT, Rewriter, uses_step, without_step
from opkernel.cli.numpy_functions import BY_NAME
from opkernel.graph import Tensor
from opkernel.runtime.control_flow import truth
from opkernel.runtime.instantiated_function import InstantiatedFunction

__all__ = ["Program", "decompile"]

_OWN_NAMES = (
    *("np", "math", "sys", "Path", "Any", "RunStep", "kernel_function", "opkernel", "AttrValue"),
    *("PartialTensorShape", "FEEDS", "TYPES", "FETCHES", "WEIGHTS", "model", "plan", "step"),
    *("given", "results", "name", "result", "dtype", "truth", "scalar_of", "switch_index", "DEAD"),
    *("check_alive", "check_type", "first_alive", "referred_value"),
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
        UnimplementedError: it would need what has no source: state or, with NumPy alone, ops that
            have no NumPy function here.
        NotFoundError, InvalidArgumentError: the graph cannot be run.
    """
    found = plans(feeds, fetches, with_numpy_only=with_numpy_only)
    writer = _Writer(found, with_numpy_only)
    functions = writer.functions()
    parameters = ", ".join(writer.parameters)
    definitions = writer.definitions
    step = ""
    if writer.uses_step:
        step = "RunStep()"
        definitions.imports.add("from opkernel.runtime.step import RunStep")
    head = _HEAD.format(
        title=re.sub(r"[^\w. -]", "_", title),
        feeds=[tensor.name for tensor in feeds],
        fetches=[tensor.name for tensor in fetches],
        dtypes=[tensor.dtype.base.numpy_dtype.name for tensor in feeds],
        standard_imports=_lines(definitions.standard_imports),
        imports=_lines(definitions.imports),
        weights=_WEIGHTS if definitions.weights else "",
    )
    tail = _TAIL.format(
        parameters=parameters, call=", ".join(filter(None, [step, *writer.parameters]))
    )
    lines = [line for text in definitions.lines for line in wrapped(text, "")]
    blocks = [head, *definitions.helpers, "\n".join(lines), *functions, tail]
    source = "\n\n\n".join(block.strip() for block in blocks if block)
    return Program(f"{source}\n", definitions.weights)


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
{weights}'''
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


class _Writer:
    """Writes plans as functions of one program.

    Attributes:
        definitions: what the functions refer to.
        parameters: those of the program.
        uses_step: whether its functions want a step.
    """

    def __init__(self, found: Sequence[PlanOfFunction], with_numpy_only: bool) -> None:
        self._plans = found
        self._with_numpy_only = with_numpy_only
        self._names = Names([*_OWN_NAMES, *(BY_NAME if with_numpy_only else ())])
        self.definitions: Definitions = (
            NumpyDefinitions(self._names) if with_numpy_only else KernelDefinitions(self._names)
        )
        self.parameters: list[str] = []
        self.uses_step = False
        self._functions = {
            plan.function: self._names.unique(_function_name(plan.function))
            for plan in found
            if plan.function is not None
        }

    def functions(self) -> list[str]:
        """The functions of the program, what is called before what calls."""
        arrays = self._arrays()
        rewritten = [self._rewritten(plan, arrays) for plan in self._plans]
        self.parameters = [one.arg for one in rewritten[0][-1].args.args if one.arg != "step"]
        own = {function.name for functions in rewritten for function in functions}
        self.uses_step = any(uses_step(one, own) for functions in rewritten for one in functions)
        return [
            self._text(plan, function)
            for plan, functions in zip(reversed(self._plans), reversed(rewritten), strict=True)
            for function in functions
        ]

    def _arrays(self) -> dict[int, Reference]:
        """What stands for the arrays that the plans refer to, by their ids."""
        paths: dict[int, Path] = {}
        values: dict[int, Any] = {}
        for plan in self._plans:
            found = {n: v for n, v in plan.mentioned() if isinstance(v, np.ndarray | np.generic)}
            of_plan = paths_of(found, plan.hints)
            for name, value in found.items():
                values.setdefault(id(value), value)
                paths.setdefault(id(value), of_plan[name])
        numbers = {
            key: Reference(t) for key, value in values.items() if (t := scalar_literal(value))
        }
        names = self._names.short({key: path for key, path in paths.items() if key not in numbers})
        return numbers | {key: self.definitions.array(values[key], n) for key, n in names.items()}

    def _rewritten(
        self, plan: PlanOfFunction, arrays: dict[int, Reference]
    ) -> list[ast.FunctionDef]:
        """The functions of a plan as they stand in the program."""
        references = {}
        values = dict(plan.mentioned())
        for name, value in values.items():
            if id(value) in arrays:
                references[name] = arrays[id(value)]
            elif isinstance(called(value), Loop):
                self.definitions.function(truth)
            elif called(value) is None and name not in LEFT_OUT:
                references[name] = self.definitions.other(plan, name, value)
        rewriter = Rewriter(
            values,
            references,
            self._functions,
            self._locals(plan),
            with_numpy_only=self._with_numpy_only,
        )
        return [rewriter.visit(part) for part in plan.parts]

    def _locals(self, plan: PlanOfFunction) -> dict[str, str]:
        """The names of the locals of a plan, and of its parts."""
        found = {parameter.arg for part in plan.parts for parameter in part.args.args} - {"step"}
        found |= {node.id for node in plan.names() if isinstance(node.ctx, ast.Store)}
        own = "plan" if plan.function is None else self._functions[plan.function]
        *parts, whole = [part.name for part in plan.parts]
        functions = {name: self._names.unique(f"{own}_{name}") for name in parts}
        paths = paths_of(sorted(found), plan.hints)
        return {**self._names.inside().short(paths), **functions, whole: own}

    def _text(self, plan: PlanOfFunction, function: ast.FunctionDef) -> str:
        """A function of a plan."""
        if not self.uses_step:
            without_step(function)
        header = f"def {function.name}({', '.join(one.arg for one in function.args.args)}):"
        lines = wrapped(header, "")
        if plan.function is not None:
            lines.append(f'    """{identifier(plan.function.name)}."""')
        comments = dict(_comments(plan.plan.source))
        return "\n".join([*lines, *lines_of(function.body, comments, "    ")])


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.split("\n"), 1):
        _, mark, comment = line.rpartition("  # ")
        if mark:
            yield number, comment.strip("'")


def _function_name(function: InstantiatedFunction) -> str:
    """The name of a function without what TensorFlow makes it unique with."""
    name = re.sub(
        r"^__(inference|forward|backward)_|_tfg_region_specialized_.*$", "", function.name
    )
    return identifier(re.sub(r"_\d+$", "", name))


def _lines(lines: set[str]) -> str:
    return "".join(f"{line}\n" for line in sorted(lines))
