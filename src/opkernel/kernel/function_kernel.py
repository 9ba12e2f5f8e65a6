"""Kernels that are functions of arrays: the form of most kernels.

    @register_kernel(MATMUL, device="CPU")
    def matmul(a, b, *, transpose_a, transpose_b): ...

Positional parameters are the op's inputs in order, a list argument as one list; keyword-only ones
are the attrs that the kernel wants, by name, read once when the kernel is constructed. Two more
keywords are filled where asked for: `xp`, the array namespace of the device, and `construction`,
the OpKernelConstruction itself. The result is the one output, or a tuple with one entry an output
argument, a list argument as a list.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import FunctionType, MethodType
from typing import Any, Literal, NamedTuple

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel.async_op_kernel import CoroutineKernel
from opkernel.kernel.construction import OpKernelConstruction
from opkernel.kernel.context import OpKernelContext
from opkernel.kernel.op_kernel import OpKernel
from opkernel.proto import OpDef

__all__ = ["FunctionKernel", "FunctionKernelFactory", "Kind", "callable_name", "forward_input"]

Kind = Literal["elementwise", "view", "opaque"]
"""What the runtime may assume: `elementwise`, each output element depends on the elements at its
place only and the result is new memory; `view`, the result may share memory with an input;
`opaque`, the result is new memory and nothing else is known."""

_FILLED_IN = frozenset({"xp", "construction"})
_VARIADIC = 0x04 | 0x08  # CO_VARARGS | CO_VARKEYWORDS


def forward_input(tensor: Any) -> Any:
    """The kernel of ops that pass their input on; the plan emits no call for it."""
    return tensor


@dataclass(eq=False)
class FunctionKernelFactory:
    """Makes the kernels of a registered function.

    With `is_maker` the function is not the kernel: it takes the attrs alone and returns the
    function of the inputs, so that work on the attrs is done once.
    """

    function: Callable[..., Any]
    kind: Kind = "opaque"
    is_maker: bool = False
    _fits: OpDef | None = field(default=None, init=False, repr=False)  # as was found out last

    def __call__(self, construction: OpKernelConstruction) -> OpKernel:
        """The kernel for a node."""
        if construction.op_def is not self._fits:
            self.check(construction.op_def)
            self._fits = construction.op_def
        function = self.bind(construction)
        if _is_coroutine(function) if self.is_maker else self.is_coroutine:
            return CoroutineFunctionKernel(construction, function)
        return FunctionKernel(construction, function, self.kind)

    @cached_property
    def is_coroutine(self) -> bool:
        """Whether the function itself is `async def`, so that its kernels are asynchronous."""
        return _is_coroutine(self.function)

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """The names of the function's keyword-only parameters."""
        parameters = _parameters(self.function)
        return () if parameters is None else parameters.keywords

    def bind(self, construction: OpKernelConstruction) -> Callable[..., Any]:
        """The function of the inputs, with the node's attrs filled in.

        A NumPy ufunc stands for the function of its name in the device's array namespace.
        """
        namespace = construction.array_namespace
        if isinstance(self.function, np.ufunc) and namespace is not np:
            named: Callable[..., Any] = getattr(namespace, self.function.__name__)
            return named
        values = {name: _keyword(construction, name) for name in self.keywords}
        if self.is_maker:
            made: Callable[..., Any] = self.function(**values)
            return made
        return partial(self.function, **values) if values else self.function

    def check(self, op_def: OpDef) -> None:
        """Raise InvalidArgumentError unless the function's signature fits the op.

        Ufuncs are checked by their number of inputs; other callables that are no Python functions,
        decorated or not, and no methods cannot be checked.
        """
        attrs = {attr.name for attr in op_def.attr}
        parameters = _parameters(self.function)
        expected = 0 if self.is_maker else len(op_def.input_arg)
        fits, wrong = True, []
        if isinstance(self.function, np.ufunc):
            fits = self.function.nin == expected
        elif parameters is not None:
            fits = len(parameters.positional) == expected and not parameters.is_variadic
            wrong = [name for name in parameters.keywords if name not in attrs | _FILLED_IN]
        if fits and not wrong:
            return
        inputs = ", ".join(arg.name for arg in op_def.input_arg)
        raise InvalidArgumentError(
            f"{op_def.name}: the kernel {_described(self.function)} does not fit the op "
            f"{op_def.name}({inputs}; attrs {', '.join(sorted(attrs)) or 'none'}): "
            + (
                f"the op has no attr {', '.join(map(repr, wrong))}"
                if wrong
                else f"it must take {expected} positional parameters, one for each input"
            )
        )


def _keyword(construction: OpKernelConstruction, name: str) -> Any:
    if name == "xp":
        return construction.array_namespace
    if name == "construction":
        return construction
    return construction.get_attr(name)


def callable_name(function: Callable[..., Any]) -> str:
    """The name of a function, ufunc or class, for messages."""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", function)
    return str(name)


class _Parameters(NamedTuple):
    """The names of a function's parameters, and whether it takes any number of others."""

    positional: tuple[str, ...]
    keywords: tuple[str, ...]
    is_variadic: bool


def _parameters(function: Callable[..., Any]) -> _Parameters | None:
    """The parameters of a Python function or method, behind its decorators; None for others."""
    inner: Any = inspect.unwrap(function)
    num_bound = 0
    if isinstance(inner, MethodType):
        inner, num_bound = inspect.unwrap(inner.__func__), 1
    if not isinstance(inner, FunctionType):
        return None
    code = inner.__code__
    names, start = code.co_varnames, code.co_argcount
    return _Parameters(
        names[num_bound:start],
        names[start : start + code.co_kwonlyargcount],
        bool(code.co_flags & _VARIADIC),
    )


def _is_coroutine(function: Callable[..., Any]) -> bool:
    """Whether what a call returns is to be awaited."""
    while isinstance(function, partial):
        function = function.func
    if isinstance(function, np.ufunc):
        return False
    called = getattr(function, "__call__", None)  # noqa: B004  # of an object, its method
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def _described(function: Callable[..., Any]) -> str:
    """The name and parameters of a function, for messages."""
    name, parameters = callable_name(function), _parameters(function)
    if parameters is None:
        return name
    keywords = parameters.keywords
    return f"{name}({', '.join([*parameters.positional, *(['*'] if keywords else []), *keywords])})"


class FunctionKernel(OpKernel):
    """A kernel made from a function; `function` takes one positional argument an input argument."""

    def __init__(
        self, construction: OpKernelConstruction, function: Callable[..., Any], kind: Kind
    ) -> None:
        super().__init__(construction)
        self.function = function
        self.kind: Kind = "view" if function is forward_input else kind

    @property
    def is_expensive(self) -> bool:
        """Whether the kernel is worth a thread of its own; a view never is."""
        return self.kind != "view" and super().is_expensive

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the function on the inputs and set its results as the outputs."""
        _set_outputs(ctx, self.function(*ctx.inputs_by_arg()))


class CoroutineFunctionKernel(CoroutineKernel):
    """A kernel made from an `async def` function."""

    def __init__(self, construction: OpKernelConstruction, function: Callable[..., Any]) -> None:
        super().__init__(construction)
        self.function = function

    async def compute_coroutine(self, ctx: OpKernelContext) -> None:
        """Await the function's result on the inputs and set it as the outputs."""
        _set_outputs(ctx, await self.function(*ctx.inputs_by_arg()))


def _set_outputs(ctx: OpKernelContext, result: Any) -> None:
    """Set what a function returned as the outputs."""
    outputs = len(ctx.kernel.properties.output_args)
    if outputs == 1:
        ctx.set_outputs_by_arg([result])
    elif outputs == 0 or isinstance(result, Sequence):
        ctx.set_outputs_by_arg(() if outputs == 0 else result)
    else:
        raise InternalError(
            f"{outputs} outputs expected, the kernel gave a {type(result).__name__}"
        )
