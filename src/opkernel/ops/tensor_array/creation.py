"""New tensor arrays, and arrays for the gradients of their elements.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/tensor_array_ops.cc.
"""

import itertools

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, handle_from_input
from opkernel.opdef import InferenceContext, ShapeAndType, register_op, unknown_shape
from opkernel.opdef.common_shapes.elementwise import keep_contents
from opkernel.opdef.common_shapes.rules import check_inputs, checked
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_equal, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.step_resources import (
    resource_manager,
    set_handle,
    step_container,
    string_handle,
)
from opkernel.ops.tensor_array.tensor_array import TensorArray
from opkernel.types import DataType, PartialTensorShape

_ARRAYS = "_tensor_arrays"
_GRADIENTS = "_tensor_array_grads"
_ANY_SHAPE = "element_shape: shape = { unknown_rank: true }"
_numbers = itertools.count()


def tensor_array_shape(c: InferenceContext) -> None:
    """A handle and a flow; the handle knows a shape of which all elements are."""
    check_inputs(c, "0")
    c.set_output(0, c.vector(2))
    c.set_output(1, c.scalar())
    shape = c.make_shape_from_partial_shape(c.get_attr("element_shape"))
    if c.fully_defined(shape) or c.get_attr("identical_element_shapes"):
        c.set_output_handle_shapes_and_types(0, [ShapeAndType(shape, c.get_attr("dtype"))])


def gradient_shape(c: InferenceContext) -> None:
    """The array of gradients has elements like the array."""
    check_inputs(c, "h")
    c.set_output(0, c.vector(2))
    c.set_output(1, c.scalar())
    keep_contents(c)


def gradient_with_shape_shape(c: InferenceContext) -> None:
    """As `gradient_shape`, where input 2 holds dimensions that the elements have before theirs."""
    check_inputs(c, "h")
    c.set_output(0, c.vector(2))
    c.set_output(1, c.scalar())
    held = c.input_handle_shapes_and_types(0)
    if not held:
        return
    added = c.dim(c.input(2), 0)
    shape = c.unknown_shape()
    if c.rank_known(held[0].shape) and c.value_known(added):
        shape = c.concatenate(c.unknown_shape_of_rank(added.value), held[0].shape)
    c.set_output_handle_shapes_and_types(0, [ShapeAndType(shape, held[0].dtype)])


register_op(
    "TensorArrayV3",
    inputs=["size: int32"],
    outputs=["handle: resource", "flow: float"],
    attrs=[
        "dtype: type",
        _ANY_SHAPE,
        "dynamic_size: bool = false",
        "clear_after_read: bool = true",
        "identical_element_shapes: bool = false",
        "tensor_array_name: string = ''",
    ],
    shape_fn=tensor_array_shape,
    traits="state_of_step clustering=tensor_array",
    is_stateful=True,
    doc="A new array of `size` tensors, for this step. The flow orders the ops on the array.",
)
register_op(
    "TensorArrayV2",
    inputs=["size: int32"],
    outputs=["handle: string"],
    attrs=[
        "dtype: type",
        _ANY_SHAPE,
        "dynamic_size: bool = false",
        "clear_after_read: bool = true",
        "tensor_array_name: string = ''",
    ],
    shape_fn=checked("0", shape_rule("-> [2]")),
    traits="state_of_step clustering=tensor_array",
    is_stateful=True,
    deprecated=(26, "Use TensorArrayV3"),
    doc="As TensorArrayV3, where the handle is a vector of two strings.",
)
register_op(
    "TensorArray",
    inputs=["size: int32"],
    outputs=["handle: Ref(string)"],
    attrs=[
        "dtype: type",
        "dynamic_size: bool = false",
        "clear_after_read: bool = true",
        "tensor_array_name: string = ''",
        _ANY_SHAPE,
    ],
    shape_fn=unknown_shape,
    traits="state_of_step clustering=tensor_array",
    is_stateful=True,
    deprecated=(16, "Use TensorArrayV3"),
    doc="As TensorArrayV3, where the handle is a reference to a vector of two strings.",
)

_GRADIENT_DOC = "The array for the gradients of an array's elements; one for each `source`."

register_op(
    "TensorArrayGradV3",
    inputs=["handle: resource", "flow_in: float"],
    outputs=["grad_handle: resource", "flow_out: float"],
    attrs=["source: string"],
    shape_fn=gradient_shape,
    traits="state_of_step clustering=tensor_array",
    is_stateful=True,
    doc=_GRADIENT_DOC,
)
register_op(
    "TensorArrayGradWithShape",
    inputs=["handle: resource", "flow_in: float", "shape_to_prepend: int32"],
    outputs=["grad_handle: resource", "flow_out: float"],
    attrs=["source: string"],
    shape_fn=gradient_with_shape_shape,
    traits="state_of_step clustering=tensor_array",
    is_stateful=True,
    doc="As TensorArrayGradV3, where gradients have `shape_to_prepend` before their shapes.",
)
register_op(
    "TensorArrayGradV2",
    inputs=["handle: string", "flow_in: float"],
    outputs=["grad_handle: string"],
    attrs=["source: string"],
    shape_fn=checked("h", shape_rule("-> [2]")),
    traits="state_of_step clustering=tensor_array",
    is_stateful=True,
    deprecated=(26, "Use TensorArrayGradV3"),
    doc=_GRADIENT_DOC,
)
register_op(
    "TensorArrayGrad",
    inputs=["handle: string", "flow_in: float"],
    outputs=["grad_handle: Ref(string)"],
    attrs=["source: string"],
    shape_fn=unknown_shape,
    traits="state_of_step clustering=tensor_array",
    is_stateful=True,
    deprecated=(16, "Use TensorArrayGradV3"),
    doc=_GRADIENT_DOC,
)


@register_kernel("TensorArray", "TensorArrayV2", "TensorArrayV3")
class TensorArrayOp(OpKernel):
    """Makes an array at each computation."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")
        self.element_shape: PartialTensorShape = construction.get_attr("element_shape")
        self.dynamic_size: bool = construction.get_attr("dynamic_size")
        self.clear_after_read: bool = construction.get_attr("clear_after_read")
        self.array_name: str = construction.get_attr("tensor_array_name") or self.name
        self.identical_element_shapes: bool = construction.has_attr(
            "identical_element_shapes"
        ) and construction.get_attr("identical_element_shapes")

    def compute(self, ctx: OpKernelContext) -> None:
        size = ctx.input(0)
        require_scalar(size, "TensorArray size must be scalar, but had shape: {}")
        if size < 0:
            raise InvalidArgumentError("Size should be >= 0.")
        name = f"{self.array_name}_{next(_numbers)}"
        array = TensorArray(
            name,
            self.dtype,
            int(size),
            element_shape=self.element_shape,
            identical_element_shapes=self.identical_element_shapes,
            dynamic_size=self.dynamic_size,
            clear_after_read=self.clear_after_read,
        )
        step_container(ctx).create(resource_manager(ctx), _ARRAYS + name, array)
        set_handle(ctx, _ARRAYS, name, TensorArray)
        if self.num_outputs > 1:
            ctx.set_output(1, 0.0)


@register_kernel(
    "TensorArrayGrad", "TensorArrayGradV2", "TensorArrayGradV3", "TensorArrayGradWithShape"
)
class TensorArrayGradOp(OpKernel):
    """Finds the array of gradients, or makes it; the array itself becomes no longer from then on."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.source: str = construction.get_attr("source")

    def compute(self, ctx: OpKernelContext) -> None:
        name = _array_name(ctx)
        gradient = f"{name}@{self.source}"
        container, manager = step_container(ctx), resource_manager(ctx)
        with container.lookup(manager, _ARRAYS + name, TensorArray) as array:
            array.has_dynamic_size = False
            array.size()  # fails if the array is closed
            if not array.gradients_allowed:
                raise InvalidArgumentError(
                    f"Unable to create a gradients TensorArray for {name}.  Perhaps you used the "
                    "multiple_writes_aggregate flag on a previous write?  Gradient calculation is "
                    "impossible when multiple writes are performed to the same index."
                )
            prepended = tuple(self.make_shape(ctx.input(2))) if self.num_inputs > 2 else ()
            shape = array.element_shape
            if shape.rank is not None:
                shape = PartialTensorShape([*prepended, *shape.as_list()])
            container.lookup_or_create(
                manager,
                _GRADIENTS + gradient,
                TensorArray,
                lambda: array.gradient(gradient, shape, prepended),
            ).unref()
        set_handle(ctx, _GRADIENTS, gradient, TensorArray)
        if self.num_outputs > 1:
            ctx.set_output(1, 0.0)


def _array_name(ctx: OpKernelContext) -> str:
    """The name of the array that input 0 is a handle of.

    Raises:
        InvalidArgumentError: it is no handle of an array, or one of an array of gradients.
    """
    if ctx.input_dtype(0) != DataType.DT_RESOURCE:
        container, name = string_handle(ctx, "TensorArray")
        require_equal(_ARRAYS, container, "Input container should be '{}',  but received '{}'")
        return name
    name = handle_from_input(ctx.input(0)).name
    if not name.startswith(_ARRAYS):
        raise InvalidArgumentError(f"Wrong input container. {name}")
    return name.removeprefix(_ARRAYS)
