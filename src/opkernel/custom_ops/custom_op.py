"""`@op`: an op from a function with type hints.

    @opkernel.op
    def clip(x: Tensor["T"], low: float, high: float = 1.0) -> Tensor["T"]:
        return np.clip(x, np.asarray(low, x.dtype), np.asarray(high, x.dtype))

It stands on the verbs, `register_op`, `register_kernel` and `register_gradient`, and does nothing that they
cannot. The form is that of torch.library.custom_op.
"""

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, overload

from opkernel.custom_ops.signature import OpSignature, Types, read_signature
from opkernel.errors import AlreadyExistsError, InvalidArgumentError
from opkernel.gradients import register_gradient
from opkernel.kernel import OpKernelConstruction, register_kernel
from opkernel.opdef import (
    OpHandle,
    OpShapeInferenceFn,
    OpTraits,
    global_op_registry,
    python_name,
    register_op,
    unknown_shape,
)
from opkernel.opdef.core.op_traits import NO_TRAITS
from opkernel.proto import OpDef
from opkernel.tracebacks import past_entrances
from opkernel.types import DataType

_RETURNING = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}
_CALLING = {"CACHE", "CALL", "PRECALL", "PUSH_NULL"}
_RAISING = {"RESUME", "NOP", "LOAD_CONST", "LOAD_GLOBAL", "RAISE_VARARGS", *_CALLING}


def has_body(function: FunctionType) -> bool:
    """Whether a function does anything; not one of `...`, or that raises NotImplementedError."""
    instructions = [*dis.get_instructions(function)]  # the source need not be at hand
    names = {one.opname for one in instructions}
    if "RAISE_VARARGS" in names:
        return not (names <= _RAISING and function.__code__.co_names == ("NotImplementedError",))
    returned = [i.argval for i in instructions if i.opname in ("LOAD_CONST", "RETURN_CONST")]
    return not (names <= _RETURNING and returned == [None])


def maker_of(function: Any, op_def: OpDef) -> Callable[..., Any] | None:
    """The maker of kernels for a function with the op's own parameters; None for one of inputs alone.

    Raises:
        InvalidArgumentError: the function has a parameter that is none of the op's.
    """
    if not isinstance(function, FunctionType):
        return None
    parameters = inspect.signature(function).parameters.values()
    num_positional = sum(p.kind is not p.KEYWORD_ONLY for p in parameters)
    num_inputs = len(op_def.input_arg)
    if num_positional <= num_inputs:
        return None
    attrs = [p.name for p in parameters][num_inputs:]
    wrong = sorted({*attrs} - {attr.name for attr in op_def.attr})
    if wrong:
        raise InvalidArgumentError(
            f"{op_def.name}: the kernel {function.__qualname__} has the parameter {wrong[0]!r}, which is no "
            "attr of the op; give it the parameters of the op"
        )
    return _with_attrs(function, attrs)


def _with_attrs(function: FunctionType, attrs: Sequence[str]) -> Callable[..., Any]:
    """The maker of the function of a node's inputs: it fills in the attrs by name."""

    def make(*, construction: OpKernelConstruction) -> Callable[..., Any]:
        return partial(function, **{name: construction.get_attr(name) for name in attrs})

    make.__name__, make.__qualname__ = function.__name__, function.__qualname__
    return make


__declares_for_its_caller__ = True  # `declaring_site` asks

_P = ParamSpec("_P")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any])


class CustomOp(Generic[_P, _R]):
    """An op that `op` made of a function; a call of it is one of the op, at once or in a graph.

    Attributes:
        name: The op's name.
        handle: The result of `register_op`, for the other verbs: `no_gradient(clip.handle)`.
        __wrapped__: The function.
    """

    __name__: str
    __wrapped__: Callable[_P, _R]

    def __init__(
        self,
        function: Callable[_P, _R],
        name: str,
        signature: OpSignature,
        handle: OpHandle,
    ) -> None:
        functools.update_wrapper(self, function)
        self.name = name
        self.handle = handle
        self._op_signature = signature
        self._signature = inspect.signature(function)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> str:
        return self.__wrapped__.__qualname__  # pickles name it, as they do functions

    @property
    def op_def(self) -> OpDef:
        """The op's declaration, for reading only: it is shared."""
        return self.handle.op_def

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run the op on arrays, or add a node where `raw_ops` would.

        Raises:
            TypeError: an argument is missing, or none of the op's.
            OpError: as the functions of `raw_ops`.
        """
        try:
            given = self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None
        from opkernel import raw_ops  # declaring an op does not load the code to run it

        call = getattr(raw_ops, self.name)
        outputs: Any = call(**{python_name(name): value for name, value in given.items()})
        result = self._op_signature.result
        if result is not None:
            several = outputs if len(self._op_signature.outputs) > 1 else (outputs,)
            outputs = tuple(several) if result is tuple else result(*several)
        return outputs  # type: ignore[no-any-return]  # as the hint of the result says

    def shape_fn(self, function: _F) -> _F:
        """Give the op a shape function, in place of `unknown_shape`: `@clip.shape_fn`."""
        handle = self.handle.with_shape_fn(function)
        global_op_registry().declare(handle)
        self.handle = handle
        return function

    @overload
    def gradient(self, function: _F, /) -> _F: ...
    @overload
    def gradient(self, /, *, not_derivative: str) -> Callable[[_F], _F]: ...
    def gradient(self, function: Any = None, /, *, not_derivative: str = "") -> Any:
        """Give the op a gradient function: `@clip.gradient`, as `register_gradient`."""
        register = register_gradient(self.name, not_derivative=not_derivative)
        return register if function is None else register(function)

    def kernel(
        self,
        *,
        device: str,
        types: Mapping[str, DataType | Sequence[DataType]] | None = None,
        host_memory: Sequence[str] = (),
        label: str = "",
        priority: int = 0,
    ) -> Callable[[_F], _F]:
        """Give the op a further kernel: `@clip.kernel(device="GPU")`.

        A function takes the op's inputs and attrs in the same order. Anything else that `register_kernel`
        takes will do, too. The arguments are the same as for `register_kernel`.

        Raises:
            InvalidArgumentError: the parameters do not fit the op.
        """

        def decorate(function: _F) -> _F:
            maker = maker_of(function, self.op_def)
            register_kernel(
                self.handle,
                device=device,
                types=types,
                host_memory=host_memory,
                label=label,
                priority=priority,
                factory=maker is not None,
            )(maker or function)
            return function

        return decorate


@overload
def op(function: Callable[_P, _R], /) -> CustomOp[_P, _R]: ...
@overload
def op(
    *,
    name: str = "",
    types: Types | None = None,
    shape_fn: OpShapeInferenceFn = unknown_shape,
    is_stateful: bool = False,
    traits: str | OpTraits = NO_TRAITS,
) -> Callable[[Callable[_P, _R]], CustomOp[_P, _R]]: ...
def op(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    types: Types | None = None,
    shape_fn: OpShapeInferenceFn = unknown_shape,
    is_stateful: bool = False,
    traits: str | OpTraits = NO_TRAITS,
) -> Any:
    """Make an op of the decorated function: `@op`, or `@op(types={"T": ["float", "double"]})`.

    The hints of its parameters and of its result give the op's inputs, attrs and outputs
    (`opkernel.custom_ops.signature`): inputs first, then attrs, which have the defaults of the parameters.
    Several outputs are a NamedTuple of the user's, which names them, or a tuple. The body is the kernel for
    the CPU; a body `...`, or one that raises NotImplementedError, is none.

    Args:
        function: The function.
        name: The op's name; by default the function's name in CamelCase.
        types: The types that type attrs may be; any type if not said.
        shape_fn: Infers the shapes of the outputs; nothing is known of them by default.
        is_stateful: Calls with equal inputs may differ.
        traits: The facts that passes may assume of the op, as in `register_op`.

    Raises:
        InvalidArgumentError: a hint breaks a rule; the message says which, of which parameter, and what to
            write.
        AlreadyExistsError: there is an op of that name already.
        TypeError: the decorated object is no function.
    """
    caller = past_entrances(sys._getframe(1))

    def make(function: Callable[..., Any]) -> CustomOp[..., Any]:
        if not isinstance(function, FunctionType):
            raise TypeError(
                f"op makes an op of a function with type hints, not of {function!r}; the name of the op is "
                "given as @op(name='...')"
            )
        signature = read_signature(function, types or {}, caller.f_locals)
        op_name = name or _camel_case(function.__name__)
        handle = _declare(op_name, signature, function, shape_fn, is_stateful, traits)
        made = CustomOp(function, op_name, signature, handle)
        made.handle.build()  # raises the errors of names
        if has_body(function):
            made.kernel(device="CPU")(function)
        return made

    return make if function is None else make(function)


def _declare(
    name: str,
    signature: OpSignature,
    function: Callable[..., Any],
    shape_fn: OpShapeInferenceFn,
    is_stateful: bool,
    traits: str | OpTraits,
) -> OpHandle:
    summary, _, _ = (inspect.getdoc(function) or "").partition("\n\n")
    try:
        return register_op(
            name,
            inputs=signature.inputs,
            outputs=signature.outputs,
            attrs=signature.attrs,
            shape_fn=shape_fn,
            doc=" ".join(summary.split()),
            is_stateful=is_stateful,
            traits=traits,
        )
    except AlreadyExistsError as error:
        raise AlreadyExistsError(
            f"{error.message}: give the op its name, as in @op(name='My{name}')", op=name
        ) from None


def _camel_case(name: str) -> str:
    return "".join([part[:1].upper() + part[1:] for part in name.split("_")])
