"""Kernels that are functions of arrays: the form of most kernels.

    @register_kernel(MATMUL, device="CPU")
    def matmul(a, b, *, transpose_a, transpose_b): ...

Positional parameters are the op's inputs in order; a list argument is one list. Keyword-only parameters
are attrs by name, which are read once, when the kernel is constructed. Two further keywords are filled
in: `xp`, the array namespace of the device, and `construction`, the OpKernelConstruction itself. The
result is the one output, or a tuple with an entry for each output argument; a list argument is a list.

`from_attrs` is for keywords that several attrs make together:

    @register_kernel(CONV2D, device="CPU", factory=True)
    @from_attrs(windows=conv2d_windows)
    def conv2d(*, windows): ...

The kernel asks for the attrs that are parameters of `conv2d_windows`, and gets what that function makes of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, partial, wraps
from types import FunctionType, MethodType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel.context.construction import OpKernelConstruction
from opkernel.kernel.context.declared_outputs import check_output, flat_outputs, is_as_declared
from opkernel.kernel.context.op_kernel_context import OpKernelContext
from opkernel.kernel.op_kernel import OpKernel
from opkernel.opdef import attr_to_python
from opkernel.proto import OpDef
from opkernel.records import dataclass, field, replace
from opkernel.tracebacks import hides_frames

_R = TypeVar("_R")
_FILLED_IN = frozenset({"xp", "construction"})
_OF_ONE_NODE = frozenset({"func", "list(func)", "list(tensor)", "tensor"})
"""The types of attrs that may differ between nodes of one form, or of which kernels make objects with state."""
_VARIADIC = 0x04 | 0x08  # CO_VARARGS | CO_VARKEYWORDS


@hides_frames  # it is known by its identity: there is no second function for users
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
        names = keywords_of(self.function)
        return tuple([k for k in names if not (self.takes_out and k == "out")])

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


def from_attrs(**makers: Callable[..., Any]) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Have the decorated function take attrs in place of some of its keywords.

    Args:
        makers: Functions and classes by keyword, called in order. Their parameters without a default are attrs; those
            that a `partial` fills in are not. A keyword of the decorated function may be such an attr, too.
    """
    attrs = {keyword: _attrs_of(maker) for keyword, maker in makers.items()}

    def decorate(function: Callable[..., _R]) -> Callable[..., _R]:
        own = [name for name in keywords_of(function) if name not in makers]
        asked = {name for names in attrs.values() for name in names if name not in own}

        @wraps(function)
        def from_values(*inputs: Any, **values: Any) -> _R:
            for keyword, maker in makers.items():
                values[keyword] = maker(**{name: values[name] for name in attrs[keyword]})
            for name in asked:
                del values[name]
            return function(*inputs, **values)

        from_values.kernel_keywords = (*own, *sorted(asked))  # type: ignore[attr-defined]  # for keywords_of
        return from_values

    return decorate


def _attrs_of(maker: Callable[..., Any]) -> tuple[str, ...]:
    if isinstance(maker, partial):
        names = _attrs_of(maker.func)[len(maker.args) :]
        return tuple([name for name in names if name not in maker.keywords])
    if isinstance(maker, FunctionType):  # `inspect` takes longer, and many start with some of these
        code = maker.__code__
        return code.co_varnames[: code.co_argcount - len(maker.__defaults__ or ())]
    parameters = inspect.signature(maker).parameters.values()
    return tuple([one.name for one in parameters if one.default is one.empty])


def callable_name(function: Callable[..., Any]) -> str:
    """The name of a function, ufunc or class, for messages."""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", function)
    return str(name)


class _Parameters(NamedTuple):
    """The names of a function's parameters, and whether it takes any number of others."""

    positional: tuple[str, ...]
    keywords: tuple[str, ...]
    is_variadic: bool


def keywords_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's keyword-only parameters, which are attrs; none for what is no Python function."""
    parameters = _parameters(function)
    return () if parameters is None else parameters.keywords


def _parameters(function: Callable[..., Any]) -> _Parameters | None:
    """The parameters of a Python function or method, behind its decorators; None for others.

    Its keywords are those that `from_attrs` says, if it decorates the function.
    """
    inner: Any = inspect.unwrap(function)
    num_bound = isinstance(function, MethodType) or isinstance(inner, MethodType)
    if isinstance(inner, MethodType):
        inner = inspect.unwrap(inner.__func__)
    if not isinstance(inner, FunctionType):
        return None
    code = inner.__code__
    names, start = code.co_varnames, code.co_argcount
    keywords = names[start : start + code.co_kwonlyargcount]
    return _Parameters(
        names[num_bound:start],
        getattr(function, "kernel_keywords", keywords),
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
            that its outputs are as declared, it checks them (`verification`), so that callers need
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

    @cached_property
    def serves_form(self) -> bool:
        """Whether it may compute all nodes of its device that differ in nothing but names and tensors.

        To be asked once it is ready, with its guards. The function that a maker makes may keep something from
        call to call, unless it is element-wise.
        """
        if self.is_chosen_by_node or self.function is not self.unchecked:
            return False
        if self.registered.is_maker and not self.contract.elementwise:
            return False
        op_def = self.properties.op_def
        known = {attr.name for attr in op_def.attr if attr.type not in _OF_ONE_NODE}
        keywords = self.registered.keywords
        return not op_def.is_stateful and all(name == "xp" or name in known for name in keywords)

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the function on the inputs and set its results as the outputs."""
        ctx.outputs[:] = outputs = flat_outputs(self, self.function(*ctx.inputs_by_arg()))
        for index, value in enumerate(outputs):
            if value is None:
                check_output(self, index, value)
