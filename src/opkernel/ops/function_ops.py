"""The ends of a function's body: its arguments and results, as kernels that use a call frame.

Plans do not call these kernels: a plan's parameters are its arguments.
Source: TensorFlow core/ops/function_ops.cc, core/kernels/function_ops.cc.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, register_kernel
from opkernel.opdef import (
    InferenceContext,
    ShapeAndType,
    no_outputs,
    register_op,
    unknown_shape,
)
from opkernel.ops.kernel_types import FLOAT8, POD, QUANTIZED
from opkernel.types import DataType

_Value = TypeVar("_Value")


def _first(values: Sequence[_Value], attr: str) -> _Value:
    if not values:
        raise InvalidArgumentError(f'Invalid "{attr}" attribute value for _Arg node: it is empty')
    return values[0]


def arg_shape(c: InferenceContext) -> None:
    """What attrs without declaration say: the shape, and what a resource holds."""
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
        _name,
        outputs=["output: T"],
        attrs=["T: type", "index: int >= 0"],
        shape_fn=_shape_fn,
        is_stateful=True,
        doc="The argument number `index` of a function.",
    )

for _name in ("_Retval", "_DeviceRetval"):
    register_op(
        _name,
        inputs=["input: T"],
        attrs=["T: type", "index: int >= 0"],
        shape_fn=no_outputs,
        is_stateful=True,
        doc="The result number `index` of a function.",
    )


class Arg(OpKernel):
    """Gives the argument number `index` of the function that the step runs."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.index: int = construction.get_attr("index")

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output(0, _call_frame(ctx).get_arg(self.index))


class Retval(OpKernel):
    """Takes the result number `index` of the function that the step runs."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.index: int = construction.get_attr("index")

    def compute(self, ctx: OpKernelContext) -> None:
        _call_frame(ctx).set_retval(self.index, ctx.input(0))


def _call_frame(ctx: OpKernelContext) -> Any:
    if ctx.call_frame is None:
        raise InternalError("no call frame: the node is not run as part of a function")
    return ctx.call_frame


_ON_HOST = (DataType.DT_INT32, DataType.DT_STRING, DataType.DT_RESOURCE)
_INT4 = (DataType.DT_INT4, DataType.DT_UINT4)
_QUANTIZED_16 = (DataType.DT_QINT16, DataType.DT_QUINT16)
_PLAIN = (*(dtype for dtype in POD if dtype not in _ON_HOST), DataType.DT_VARIANT)

for _name, _kernel, _types, _arg in (
    ("_Arg", Arg, (*_PLAIN, *QUANTIZED, *FLOAT8, *_INT4), "output"),
    ("_Retval", Retval, (*_PLAIN, *QUANTIZED, *_QUANTIZED_16, *FLOAT8, *_INT4), "input"),
):
    register_kernel(_name, device="CPU", system=True)(_kernel)
    register_kernel(_name, device="DEFAULT", types={"T": _types}, system=True)(_kernel)
    register_kernel(
        _name, device="DEFAULT", types={"T": _ON_HOST}, host_memory=[_arg], system=True
    )(_kernel)

for _name, _kernel in (("_DeviceArg", Arg), ("_DeviceRetval", Retval)):
    register_kernel(_name, device="CPU", system=True)(_kernel)
    register_kernel(_name, device="DEFAULT", types={"T": DataType.DT_INT32}, system=True)(_kernel)
