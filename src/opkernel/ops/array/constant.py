"""Tensors that are part of the graph, and tensors that the caller feeds.

Constants of graphs that TensorFlow rewrites: HostConst, FakeParam.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/constant_op.cc, functional_ops.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    check_allocation,
    forward_input,
)
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import explicit_shape, unknown_shape
from opkernel.ops.registration import register_kernel
from opkernel.state.lasting_values import note_lasting
from opkernel.types import TensorShape

_LAST_VERSION_WITH_SCALAR_AS_UNKNOWN = 21
"""Up to this GraphDef version the shape of a Placeholder could not say "scalar"."""


def const_shape(c: InferenceContext) -> None:
    """The shape of the attr `value`."""
    proto = c.node_def.attr["value"].tensor.tensor_shape
    c.set_output(0, c.make_shape_from_tensor_shape(TensorShape.from_proto(proto)))


CONST = register_op(
    "Const() -> output: dtype",
    attrs=["value: tensor", "dtype: type"],
    shape_fn=const_shape,
    doc="The tensor `value`.",
    traits="int32_on_host function_gradient=none",
)


@register_kernel(CONST)
class ConstantOp(OpKernel):
    """Decodes its value once; every step gets the same read-only array."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        value = np.asarray(construction.get_attr("value"))
        expected = self.output_types[0]
        if value.dtype != expected.numpy_dtype:
            raise InvalidArgumentError(
                f"Type mismatch between value ({value.dtype}) and dtype ({expected.string})"
            )
        self._value = _unchangeable(value)
        if not value.dtype.hasobject:
            note_lasting(self._value)

    @property
    def const_tensor(self) -> Any:
        """The value."""
        return self._value

    def compute(self, ctx: OpKernelContext) -> None:
        """Set the value as the output."""
        ctx.set_output(0, self._value)


def _unchangeable(value: Any) -> Any:
    """The value in memory that nobody can write to, so that kernels can remember what they make of it."""
    if value.size and not value.dtype.hasobject and _may_be_writable(value):
        value = np.frombuffer(value.tobytes(), value.dtype).reshape(value.shape)
    value.flags.writeable = False
    return value


def _may_be_writable(value: Any) -> bool:
    """Whether anybody might write to an array, or make it writable: its memory belongs to no bytes object."""
    try:
        value.flags.writeable = True
    except ValueError:
        return False
    return True


def placeholder_shape(c: InferenceContext) -> None:
    """The attr `shape`; in old graphs a scalar shape stands for any shape."""
    shape = c.get_attr("shape")
    is_any = c.graph_def_version <= _LAST_VERSION_WITH_SCALAR_AS_UNKNOWN and not shape.rank
    c.set_output(0, c.unknown_shape() if is_any else c.make_shape_from_partial_shape(shape))


PLACEHOLDER = register_op(
    "Placeholder() -> output: dtype",
    attrs=["dtype: type", "shape: shape = { unknown_rank: true }"],
    shape_fn=placeholder_shape,
    doc="A tensor that the caller feeds; computing it is an error.",
)

PLACEHOLDER_V2 = register_op(
    "PlaceholderV2() -> output: dtype",
    attrs=["dtype: type", "shape: shape"],
    shape_fn=explicit_shape,
    deprecated=(23, "Placeholder now behaves the same as PlaceholderV2."),
    doc="A tensor of the given shape that the caller feeds; computing it is an error.",
)


@register_kernel(PLACEHOLDER, PLACEHOLDER_V2, device="DEFAULT")
@register_kernel(PLACEHOLDER, PLACEHOLDER_V2)
class PlaceholderOp(OpKernel):
    """Computed only where the caller fed nothing, and says so."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._shape = construction.get_attr("shape")

    def compute(self, ctx: OpKernelContext) -> None:
        """Raise InvalidArgumentError: a value must be fed."""
        shape = f" and shape {self._shape}" if self._shape.rank else ""
        raise InvalidArgumentError(
            f"You must feed a value for placeholder tensor '{self.name}' with dtype "
            f"{self.output_types[0].string}{shape}"
        )


def placeholder_with_default_shape(c: InferenceContext) -> None:
    """The attr `shape`, with which the default must agree; it may be less precise."""
    shape = c.make_shape_from_partial_shape(c.get_attr("shape"))
    c.merge(c.input(0), shape)
    c.set_output(0, shape)


PLACEHOLDER_WITH_DEFAULT = register_op(
    "PlaceholderWithDefault(input: dtype) -> output: dtype",
    attrs=["dtype: type", "shape: shape"],
    shape_fn=placeholder_with_default_shape,
    doc="`input`, unless the caller feeds another tensor in its place.",
    traits="int32_on_host",
)

register_kernel(PLACEHOLDER_WITH_DEFAULT, kind="view")(forward_input)


g.register_gradient("PlaceholderWithDefault")(lambda op, grad: grad)


HOST_CONST = register_op(
    "HostConst() -> output: dtype",
    attrs=["value: tensor", "dtype: type"],
    shape_fn=unknown_shape,
    doc="The tensor `value`, in host memory.",
)

register_kernel(HOST_CONST)(ConstantOp)
register_kernel(HOST_CONST, device="DEFAULT", host_memory=["output"])(ConstantOp)

FAKE_PARAM = register_op(
    "FakeParam() -> output: dtype",
    attrs=["dtype: type", "shape: shape"],
    shape_fn=explicit_shape,
    doc="A tensor that nobody looks at, of a shape; unknown dimensions are 0.",
)


@register_kernel(FAKE_PARAM)
@register_kernel(FAKE_PARAM, device="DEFAULT")
class FakeParam(OpKernel):
    """Gives every step the same zeros."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        shape, dtype = construction.get_attr("shape"), self.output_types[0]
        sizes = [] if shape.rank is None else [size or 0 for size in shape.as_list()]
        # few graphs have such nodes, and all have constants
        from opkernel.ops.array.fill import zeros

        self._value = zeros(check_allocation(sizes, dtype), dtype)
        self._value.flags.writeable = False

    def compute(self, ctx: OpKernelContext) -> None:
        """Set the zeros as the output."""
        ctx.set_output(0, self._value)
