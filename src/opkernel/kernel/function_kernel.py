"""Kernels that are functions of arrays: the form of most kernels.

    @register_kernel(MATMUL, device="CPU")
    def matmul(a, b, *, transpose_a, transpose_b): ...

Positional parameters are the op's inputs in order; a list argument is one list. Keyword-only parameters
are attrs by name, which are read once, when the kernel is constructed. Two further keywords are filled
in: `xp`, the array namespace of the device, and `construction`, the OpKernelConstruction itself. The
result is the one output, or a tuple with an entry for each output argument; a list argument is a list.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel.context.construction import OpKernelConstruction
from opkernel.kernel.context.declared_outputs import check_output, flat_outputs, is_as_declared
from opkernel.kernel.context.op_kernel_context import OpKernelContext
from opkernel.kernel.op_kernel import OpKernel
from opkernel.opdef import attr_to_python
from opkernel.proto import OpDef
from opkernel.records import dataclass, field, replace

_FILLED_IN = frozenset({"xp", "construction"})
_VARIADIC = 0x04 | 0x08  # CO_VARARGS | CO_VARKEYWORDS


def forward_input(tensor: Any) -> Any:
    """The kernel of ops that pass their input on; the plan emits no call for it."""
    return tensor


@dataclass(eq=False)
class FunctionKernelFactory:
    """Makes the kernels of a registered function.

    With `is_maker` the function is not the kernel: it takes the attrs alone and returns the
    function of the inputs, so that work on the attrs is done once. With `takes_out` its keyword
    `out` is no attr.
    """

    function: Callable[..., Any]
    is_maker: bool = False
    takes_out: bool = False
    _fits: OpDef | None = field(default=None, init=False, repr=False)  # as was found out last

    def __call__(self, construction: OpKernelConstruction) -> OpKernel:
        """The kernel for a node."""
        keywords = self.keywords_for(construction.op_def)
        return self.kernel(construction, construction.keyword_values(keywords))

    def kernel(self, construction: OpKernelConstruction, values: Mapping[str, Any]) -> OpKernel:
        """The kernel for a node, with the values of the function's keywords filled in."""
        function = self._bound(construction.device.array_namespace, values)
        if _is_coroutine(function) if self.is_maker else self.is_coroutine:
            from opkernel.kernel.async_op_kernel import CoroutineFunctionKernel  # few wait

            return CoroutineFunctionKernel(construction, function)
        return FunctionKernel(construction, function, self)

    def keywords_for(self, op_def: OpDef) -> tuple[str, ...]:
        """The names of the function's keywords; raises as `check` does."""
        if op_def is not self._fits:
            self.check(op_def)
            self._fits = op_def
        return self.keywords

    @cached_property
    def is_coroutine(self) -> bool:
        """Whether the function itself is `async def`, so that its kernels are asynchronous."""
        return _is_coroutine(self.function)

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        """The names of the function's keyword-only parameters."""
        parameters = _parameters(self.function)
        if parameters is None:
            return ()
        return tuple([k for k in parameters.keywords if not (self.takes_out and k == "out")])

    def _bound(self, namespace: Any, values: Mapping[str, Any]) -> Callable[..., Any]:
        """The function of the inputs, with the values of its keywords filled in.

        A NumPy ufunc stands for the function of its name in the device's array namespace.
        """
        if isinstance(self.function, np.ufunc) and namespace is not np:
            named: Callable[..., Any] = getattr(namespace, self.function.__name__)
            return named
        if self.is_maker:
            with np.errstate(all="ignore"):  # as kernels run: an attr may be NaN or out of range
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
            wrong = [name for name in self.keywords if name not in attrs | _FILLED_IN]
        if fits and not wrong:
            return
        inputs = ", ".join(arg.name for arg in op_def.input_arg)
        number = f"{expected} positional parameter{'' if expected == 1 else 's'}"
        raise InvalidArgumentError(
            f"{op_def.name}: the kernel {_described(self.function)} does not fit the op "
            f"{op_def.name}({inputs}; attrs {', '.join(sorted(attrs)) or 'none'}): "
            + (
                f"the op has no attr {', '.join(map(repr, wrong))}"
                if wrong
                else f"it must take {number}, one for each input"
            )
        )


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
    """Whether the caller must await the result of a call."""
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
    """A kernel made from a function.

    Attributes:
        function: Takes one positional argument an input argument. Where the kernel does not claim
            that its outputs are as declared, it checks them (`checked_kernels`), so that callers need
            not.
        unchecked: The function with its attrs filled in.
        registered: The function that it was made from by filling in `attrs`, by name.
    """

    def __init__(
        self,
        construction: OpKernelConstruction,
        function: Callable[..., Any],
        registered: FunctionKernelFactory,
    ) -> None:
        super().__init__(construction)
        self.registered = registered
        if function is forward_input:
            self.contract = replace(self.contract, elementwise=False, may_alias=True)
        self.function = self.unchecked = function
        if not self.contract.outputs_as_declared and self.num_outputs == 1:
            inputs = tuple([dtype.base.numpy_dtype for dtype in self.properties.input_types])
            if is_as_declared(function, inputs, self.output_dtypes[0]):  # NumPy tells
                self.contract = replace(self.contract, outputs_as_declared=True)

    @cached_property
    def attrs(self) -> dict[str, Any]:
        """The attrs that are filled in, by name, as Python objects."""
        types = {attr.name: attr.type for attr in self.properties.op_def.attr}
        names = [name for name in self.registered.keywords if name in types]
        return {name: attr_to_python(self.node_def.attr[name], types[name]) for name in names}

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the function on the inputs and set its results as the outputs."""
        ctx.outputs[:] = outputs = flat_outputs(self, self.function(*ctx.inputs_by_arg()))
        for index, value in enumerate(outputs):
            if value is None:
                check_output(self, index, value)
