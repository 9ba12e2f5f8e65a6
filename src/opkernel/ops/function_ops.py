"""The ends of a function's body: its arguments and results; and calls of functions elsewhere.

Arguments and results are kernels that use the call frame of the step. Plans feed the arguments of a
function and fetch its results, and so run none of these kernels.
For calls a function once for each number of a range.

Source: TensorFlow core/ops/function_ops.cc, core/kernels/function_ops.cc, core/ops/functional_ops.cc,
core/kernels/functional_ops.cc (ForOp).
"""

import threading
import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import (
    FunctionRunOptions,
    FunctionRuntime,
    InstantiateOptions,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
)
from opkernel.opdef import (
    InferenceContext,
    ShapeAndType,
    no_outputs,
    register_op,
    unknown_shape,
)
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import ASKS_FOR_CALL, FLOAT8, POD, QUANTIZED, register_kernel
from opkernel.proto import NameAttrList
from opkernel.types import DataType, natural_dtype

_Value = TypeVar("_Value")


def _first(values: Sequence[_Value], attr: str) -> _Value:
    if not values:
        raise InvalidArgumentError(f'Invalid "{attr}" attribute value for _Arg node: it is empty')
    return values[0]


def arg_shape(c: InferenceContext) -> None:
    """The shape and the content of a resource, by attrs that are not declared."""
    attrs = c.node_def.attr
    unknown_shape(c)
    if "_output_shapes" in attrs and attrs["_output_shapes"].HasField("list"):
        shape = _first(attrs["_output_shapes"].list.shape, "_output_shapes")
        c.set_output(0, c.make_shape_from_shape_proto(shape))
    is_resource = c.get_attr("T") == DataType.DT_RESOURCE
    if is_resource and "_handle_dtypes" in attrs and "_handle_shapes" in attrs:
        dtype = _first(attrs["_handle_dtypes"].list.type, "_handle_dtypes")
        shape = _first(attrs["_handle_shapes"].list.shape, "_handle_shapes")
        held = ShapeAndType(c.make_shape_from_shape_proto(shape), DataType(dtype))
        c.set_output_handle_shapes_and_types(0, [held])


for _name, _shape_fn in (("_Arg", arg_shape), ("_DeviceArg", unknown_shape)):
    register_op(
        f"{_name}() -> output: T",
        attrs=["T: type", "index: int >= 0"],
        shape_fn=_shape_fn,
        is_stateful=True,
        system=True,
        doc="The argument number `index` of a function.",
    )

for _name in ("_Retval", "_DeviceRetval"):
    register_op(
        f"{_name}(input: T)",
        attrs=["T: type", "index: int >= 0"],
        shape_fn=no_outputs,
        is_stateful=True,
        system=True,
        doc="The result number `index` of a function.",
    )


class _EndOfFunction(OpKernel):
    """A kernel of the argument or result of number `index`."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.index: int = construction.get_attr("index")


class Arg(_EndOfFunction):
    """Gives the argument number `index` of the function that the step runs."""

    def compute(self, ctx: OpKernelContext) -> None:
        value = _call_frame(ctx).get_arg(self.index)
        if getattr(value, "dtype", None) not in (self.output_dtypes[0], None):
            raise InvalidArgumentError(
                f"Type mismatch: actual {natural_dtype(value).string} vs. expect "
                f"{self.output_types[0].string}"
            )
        ctx.set_output(0, value)


class Retval(_EndOfFunction):
    """Takes the result number `index` of the function that the step runs."""

    def compute(self, ctx: OpKernelContext) -> None:
        _call_frame(ctx).set_retval(self.index, ctx.input(0))


def _call_frame(ctx: OpKernelContext) -> Any:
    if ctx.call_frame is None:
        raise InternalError("no call frame: the node is not run as part of a function")
    return ctx.call_frame


class PassOn(OpKernel):
    """Gives its inputs: a list as an array, or an array as a list."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        if self.input_types != self.output_types:
            raise InternalError(
                f"Input and output types do not match: {_texts(self.input_types)} vs. "
                f"{_texts(self.output_types)}"
            )

    def compute(self, ctx: OpKernelContext) -> None:
        for index, value in enumerate(ctx.inputs):
            ctx.set_output(index, value)


class CalledFunction:
    """The function of an attr of a kernel, instantiated once for each device."""

    def __init__(self, function: NameAttrList) -> None:
        self._function = function
        self._handles: weakref.WeakKeyDictionary[FunctionRuntime, dict[str, Any]]
        self._handles = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def found(self, ctx: OpKernelContext, device: str = "") -> tuple[FunctionRuntime, Any]:
        """What runs functions, and the function on a device, or on that of the step."""
        library: FunctionRuntime | None = ctx.function_library
        if library is None:
            raise InternalError("No function library is provided.")
        with self._lock:
            handles = self._handles.setdefault(library, {})
            if device not in handles:
                function, options = self._function, InstantiateOptions(target=device)
                handles[device] = library.instantiate(function.name, function.attr, options)
            return library, handles[device]


class CallingKernel(OpKernel):
    """Calls the function of an attr; `called` finds it."""

    def __init__(self, construction: OpKernelConstruction, attr: str) -> None:
        super().__init__(construction)
        self.called = CalledFunction(construction.get_attr(attr)).found


class RemoteCall(CallingKernel):
    """Calls a function on the device that its first input names, in a rendezvous of its own."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction, "f")

    def compute(self, ctx: OpKernelContext) -> None:
        target = np.asarray(ctx.input("target"))
        require_scalar(target, "target must be a scalar, got shape {}")
        library, handle = self.called(ctx, target.item().decode("utf-8", "surrogateescape"))
        options = FunctionRunOptions(step=ctx.step, create_rendezvous=True)
        ctx.set_output_list("output", library.run(options, handle, ctx.inputs[1:]))


def _texts(types: Iterable[DataType]) -> str:
    return ", ".join(dtype.string for dtype in types)


_ON_HOST = (DataType.DT_INT32, DataType.DT_STRING, DataType.DT_RESOURCE)
_INT4 = (DataType.DT_INT4, DataType.DT_UINT4)
_QUANTIZED_16 = (DataType.DT_QINT16, DataType.DT_QUINT16)
_PLAIN = (*(dtype for dtype in POD if dtype not in _ON_HOST), DataType.DT_VARIANT)

for _name, _kernel, _types, _arg in (
    ("_Arg", Arg, (*_PLAIN, *QUANTIZED, *FLOAT8, *_INT4), "output"),
    ("_Retval", Retval, (*_PLAIN, *QUANTIZED, *_QUANTIZED_16, *FLOAT8, *_INT4), "input"),
):
    _register = partial(register_kernel, contract=ASKS_FOR_CALL, system=True)
    _of_device = _name.replace("_", "_Device")
    for _op in (_name, _of_device):
        _register(_op)(_kernel)
    _register(_name, device="DEFAULT", types={"T": _types})(_kernel)
    _register(_name, device="DEFAULT", types={"T": _ON_HOST}, host_memory=[_arg])(_kernel)
    _register(_of_device, device="DEFAULT", types={"T": DataType.DT_INT32})(_kernel)

register_op(
    "_ListToArray(input: Tin) -> output: N * T",
    attrs=["Tin: list(type)", "T: type", "N: int >= 1"],
    shape_fn=unknown_shape,
    system=True,
    doc="Passes on tensors that are listed by type as `N` tensors of one type.",
)
register_op(
    "_ArrayToList(input: N * T) -> output: out_types",
    attrs=["T: type", "N: int >= 1", "out_types: list(type)"],
    shape_fn=unknown_shape,
    system=True,
    doc="Passes on `N` tensors of one type as tensors that are listed by type.",
)
for _name in ("_ListToArray", "_ArrayToList"):
    register_kernel(_name, system=True)(PassOn)

register_op(
    "RemoteCall(target: string, args: Tin) -> output: Tout",
    attrs=["Tin: list(type)", "Tout: list(type)", "f: func"],
    shape_fn=unknown_shape,
    is_stateful=True,
    doc="""
    Calls `f` with `args` on another device, here one of this process.

    target: the name of the device, in whole or in part.
    args: the arguments of the function.
    output: its results.
    """,
    traits="uses_network",
)
register_kernel("RemoteCall", host_memory=["target"])(RemoteCall)


_RANGE = ("start", "limit", "delta")

FOR = register_op(
    "For(start: int32, limit: int32, delta: int32, input: T) -> output: T",
    attrs=["T: list(type) >= 0", "body: func"],
    shape_fn=unknown_shape,
    doc="""
    Calls `body` for each number from `start` up to, not including, `limit` in steps of `delta`.

    input: the loop variables at the beginning. `body` takes the number and them, and gives them for the next turn.
    output: the loop variables at the end.
    """,
)


@register_kernel(FOR)
@register_kernel(FOR, device="DEFAULT", host_memory=_RANGE)
class For(CallingKernel):
    """Calls its function on the device that it runs on."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction, "body")

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the loop.

        Raises:
            InvalidArgumentError: the steps lead away from the limit, or `body` gives other variables.
        """
        numbers = _numbers(*[_scalar(name, ctx.input(name)) for name in _RANGE])
        library, handle = self.called(ctx)
        options = FunctionRunOptions(step=ctx.step)
        variables = ctx.inputs[len(_RANGE) :]
        for number in numbers:
            ctx.step.check()
            variables = library.run(options, handle, [np.array(number, np.int32), *variables])
            if [one.dtype for one in variables] != [*self.output_dtypes]:
                wanted, got = _texts(self.output_types), _texts(map(natural_dtype, variables))
                raise InvalidArgumentError(
                    f"For loop body returned tensors of other types: expected {wanted}, got {got}"
                )
        ctx.set_output_list("output", variables)


def _scalar(name: str, value: Any) -> int:
    require_scalar(value, f"{name} must be a scalar, got shape {{}}")
    return int(value)


def _numbers(start: int, limit: int, delta: int) -> range:
    if start == limit:
        return range(0)
    if delta == 0 or (delta > 0) != (start < limit):
        raise InvalidArgumentError(
            f"Invalid start/limit/delta: {start}/{limit}/{delta}; the steps must lead to the limit"
        )
    return range(start, limit, delta)
