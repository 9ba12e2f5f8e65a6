"""A model as a Python program: definitions, then the plans of the functions that refer to them.

Kernels are looked up in opkernel, or stand in the program as NumPy functions. Constants of a few
elements stand in it, too; the others are arrays in a file beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.decompile.definitions import Definitions, KernelDefinitions, NumpyDefinitions
from opkernel.decompile.expressions import Names, Path, attr_literal, literal, path_of
from opkernel.decompile.functions import PlanOfFunction, plans
from opkernel.decompile.numpy_functions import BY_NAME
from opkernel.decompile.statements import Rewriter, function_text, wrapped
from opkernel.escaping import docstring
from opkernel.graph import Tensor
from opkernel.runtime.calls.instantiated_function import InstantiatedFunction
from opkernel.runtime.plan import services, tree
from opkernel.runtime.plan.compiled_plan import plan_functions
from opkernel.runtime.plan.functional_ops import LibraryFunction, WhileLoop
from opkernel.runtime.plan.services import truth
from opkernel.runtime.plan.text import NOT_IDENTIFIER
from opkernel.runtime.plan.tree import Name

__all__ = ["Program", "decompile"]

_OWN_NAMES = (
    *("np", "math", "sys", "Path", "Any", "RunStep", "kernel_function", "opkernel", "AttrValue"),
    *("PartialTensorShape", "FEEDS", "TYPES", "FETCHES", "WEIGHTS", "model", "plan", "step"),
    *("files", "given", "results", "name", "result", "dtype", "check_type", "referred_value"),
    *("file", "args", "allow_pickle", "kwds"),  # of np.savez, which takes weights by their names
    *services.__all__,
)
_LEFT_OUT = ("scalar_of", "one_blas_thread")
"""Services that programs do without."""


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
    feeds: Sequence[Tensor], fetches: Sequence[Tensor], title: str, *, with_numpy_only: bool = False
) -> Program:
    """The program that computes `fetches` from `feeds`.

    Args:
        feeds: tensors of a graph: the parameters.
        fetches: tensors of the same graph: the results.
        title: the first line of the program's docstring.
        with_numpy_only: whether it must do without opkernel.

    Raises:
        UnimplementedError: it would need what has no source: state or, with NumPy alone, ops that
            have no NumPy function here.
        NotFoundError, InvalidArgumentError: the graph cannot be run.
    """
    found = plans(feeds, fetches, with_numpy_only=with_numpy_only)
    writer = _Writer(found, with_numpy_only)
    functions = writer.functions()
    definitions = writer.definitions
    step = ""
    if writer.uses_step:
        step = "RunStep()"
        definitions.imports.add("from opkernel.runtime import RunStep")
    head = _HEAD.format(
        usage=_usage(re.sub(r"[^\w. -]", "_", title), feeds, has_weights=bool(definitions.weights)),
        feeds=[tensor.name for tensor in feeds],
        fetches=[tensor.name for tensor in fetches],
        dtypes=[tensor.dtype.base.numpy_dtype.name for tensor in feeds],
        standard_imports=_lines(definitions.standard_imports),
        imports=_lines(definitions.imports),
        weights=_WEIGHTS if definitions.weights else "",
    )
    call = ", ".join(filter(None, [step, *writer.parameters]))
    tail = _TAIL.format(parameters=", ".join(writer.parameters), call=call)
    lines = [line for text in definitions.lines for line in wrapped(text, "")]
    blocks = [head, *definitions.helpers, "\n".join(lines), *functions, tail]
    source = "\n\n\n".join(block.strip() for block in blocks if block)
    return Program(f"{source}\n", definitions.weights)


_HEAD = """{usage}

{standard_imports}
import numpy as np
{imports}
FEEDS = {feeds}
TYPES = {dtypes}
FETCHES = {fetches}
{weights}"""
_WEIGHTS = 'WEIGHTS = np.load(Path(__file__).with_suffix(".npz"))\n'
_TAIL = '''
def model({parameters}):
    """The fetches, as a tuple of arrays of the caller's own."""
    with np.errstate(all="ignore"):
        return tuple([value.copy() for value in plan({call})])


if __name__ == "__main__":
    files = sys.argv[1:]
    if FEEDS and not files:
        sys.exit(__doc__)
    given = np.load(files.pop(0)) if FEEDS else {{}}
    results = model(*[np.asarray(given[name], dtype) for name, dtype in zip(FEEDS, TYPES)])
    if files:
        np.savez(files[0], **dict(zip(FETCHES, results)))
    else:
        for name, result in zip(FETCHES, results):
            print(name, result, sep="\\n")
'''


def _usage(title: str, feeds: Sequence[Tensor], *, has_weights: bool) -> str:
    """The docstring of a program, which it prints where it is given no inputs."""
    inputs = "INPUTS.npz " if feeds else ""
    lines = [title, "", f"    python THIS_FILE {inputs}[RESULTS.npz]"]
    if feeds:
        lines += ["", "The arrays of INPUTS.npz have the names of the feeds:", ""]
        lines += [f"    {one.name}  {one.dtype.base.tf_name} {one.shape}" for one in feeds]
    if has_weights:
        lines += ["", "Its weights are in the file beside it that ends in .npz: -o writes both."]
    return docstring("\n".join([*lines, "", "Written by `opkernel decompile`.", ""]))


class _Writer:
    """Writes plans as functions of one program.

    Attributes:
        definitions: the definitions that the functions refer to.
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
        self.parameters: Sequence[str] = ()
        self.uses_step = any(_gives_step(plan.tree) for plan in found)
        self._functions: dict[LibraryFunction, str] = {
            plan.function: self._names.unique(_function_name(plan.function))
            for plan in found
            if plan.function is not None
        }

    def functions(self) -> list[str]:
        """The functions of the program, callees before callers."""
        arrays = self._arrays()
        written = [self._written(plan, arrays) for plan in self._plans]
        return [text for texts in reversed(written) for text in texts]

    def _arrays(self) -> dict[int, str]:
        """The expressions for the arrays of plans, by their ids."""
        values: dict[int, Any] = {}
        paths: dict[int, Path] = {}
        for plan in self._plans:
            for name, bound in plan.globals.items():
                if isinstance(bound.value, np.ndarray | np.generic):
                    values[id(bound.value)] = bound.value
                    paths.setdefault(id(bound.value), path_of(plan.tree.hints.get(name, name)))
        scalars = {key: literal(value) for key, value in values.items() if not value.ndim}
        found = {key: text for key, text in scalars.items() if text}
        names = self._names.short({key: path for key, path in paths.items() if key not in found})
        for key, name in names.items():
            self.definitions.array(values[key], name)
        return found | names

    def _written(self, plan: PlanOfFunction, arrays: Mapping[int, str]) -> list[str]:
        """The functions of a plan as they stand in the program."""
        names = {
            name: arrays.get(id(bound.value)) or self._expression(plan, name, bound)
            for name, bound in plan.globals.items()
        }
        whole, functions = plan.tree, plan_functions(plan.tree)
        own = "plan" if plan.function is None else self._functions[plan.function]
        for part in functions[:-1]:
            names[part.name] = self._names.unique(f"{own}{part.name}")
        locals_ = sorted({*whole.parameters[1:], *tree.names_set(whole.block)})
        paths = {name: path_of(whole.hints.get(name, name)) for name in locals_}
        names |= {whole.name: own, **Names(self._names.taken).short(paths)}
        rewriter = Rewriter(
            plan.globals, names, self._functions, self.uses_step, self._with_numpy_only
        )
        if plan.function is None:
            self.parameters = [names[name] for name in whole.parameters[1:]]
        doc = "" if plan.function is None else NOT_IDENTIFIER.sub("_", plan.function.name)
        return [function_text(rewriter.function(one), doc) for one in functions]

    def _expression(self, plan: PlanOfFunction, name: Name, bound: tree.Global) -> str:
        """The expression for a global that is no array; empty for globals that programs omit."""
        value = bound.value
        if bound.kernel is not None:
            return self.definitions.kernel(value, bound.kernel)
        if bound.kind == "service":
            service = plan.tree.hints.get(name, name)
            return "" if service in _LEFT_OUT else self.definitions.service(value, service)
        if isinstance(value, WhileLoop):
            self.definitions.service(truth, "truth")
        if bound.kind == "function":
            return self._functions.get(value, "")
        return f"np.dtype({value.name!r})" if isinstance(value, np.dtype) else attr_literal(value)


def _gives_step(plan: tree.PlanTree) -> bool:
    """Whether a plan gives the step to anything but functions of the graph."""
    calls = [one for one in tree.statements(plan.block) if isinstance(one, tree.Call)]
    return any("step" in one.arguments for one in calls if not isinstance(one, tree.FunctionCall))


def _function_name(function: InstantiatedFunction) -> str:
    """The name of a function without the suffix that TensorFlow makes it unique with."""
    added = r"^__(inference|forward|backward)_|_tfg_region_specialized_.*$"
    return re.sub(r"_\d+$", "", re.sub(added, "", function.name))


def _lines(lines: set[str]) -> str:
    return "".join(f"{line}\n" for line in sorted(lines))
