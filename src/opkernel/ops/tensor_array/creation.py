"""New tensor arrays, arrays for the gradients of their elements, their size and end, and the versions of the ops.

The handle of the first version is a reference to a vector of two strings. The second version has the
vector itself. The third version has a resource, which knows the shape of all elements.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/tensor_array_ops.cc, python/ops/tensor_array_grad.py.
"""

import itertools
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.graph import get_default_graph
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    Step,
    TensorRef,
    handle_from_input,
)
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    ShapeAndType,
    ShapeHandle,
    register_op,
    unknown_shape,
)
from opkernel.opdef.common_shapes.elementwise import keep_contents
from opkernel.opdef.common_shapes.rules import (
    check_handle,
    checked,
    checked_no_outputs,
    checked_scalar,
    shape_rule,
)
from opkernel.ops.input_checks import require, require_equal, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import (
    InexpensiveKernel,
    resource_manager,
    resource_of_step,
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
_from_size, _from_handle = (checked(rank, shape_rule("-> [2], []")) for rank in "0h")
"""Shape functions: a handle and a flow, of a new array and of one for the gradients of another."""


def tensor_array_shape(c: InferenceContext) -> None:
    """A handle and a flow; the handle knows a shape of which all elements are."""
    _from_size(c)
    shape = c.make_shape_from_partial_shape(c.get_attr("element_shape"))
    if c.fully_defined(shape) or c.get_attr("identical_element_shapes"):
        c.set_output_handle_shapes_and_types(0, [ShapeAndType(shape, c.get_attr("dtype"))])


def gradient_shape(c: InferenceContext) -> None:
    """The array of gradients has elements like the array."""
    _from_handle(c)
    keep_contents(c)


def gradient_with_shape_shape(c: InferenceContext) -> None:
    """As `gradient_shape`, where input 2 holds dimensions that the elements have before theirs."""
    _from_handle(c)
    held = c.input_handle_shapes_and_types(0)
    if not held:
        return
    added = c.dim(c.input(2), 0)
    shape = c.unknown_shape()
    if c.rank_known(held[0].shape) and c.value_known(added):
        shape = c.concatenate(c.unknown_shape_of_rank(added.value), held[0].shape)
    c.set_output_handle_shapes_and_types(0, [ShapeAndType(shape, held[0].dtype)])


_ATTRS = ("dynamic_size: bool = false", "clear_after_read: bool = true")
_NAME = "tensor_array_name: string = ''"
_declare = partial(register_op, traits="state_of_step clustering=tensor_array", is_stateful=True)

_declare(
    "TensorArrayV3(size: int32) -> handle: resource, flow: float",
    attrs=["dtype: type", _ANY_SHAPE, *_ATTRS, "identical_element_shapes: bool = false", _NAME],
    shape_fn=tensor_array_shape,
    doc="A new array of `size` tensors, for this step. The flow orders the ops on the array.",
)
_declare(
    "TensorArrayV2(size: int32) -> handle: string",
    attrs=["dtype: type", _ANY_SHAPE, *_ATTRS, _NAME],
    shape_fn=checked("0", shape_rule("-> [2]")),
    deprecated=(26, "Use TensorArrayV3"),
    doc="As TensorArrayV3, where the handle is a vector of two strings.",
)
_declare(
    "TensorArray(size: int32) -> handle: Ref(string)",
    attrs=["dtype: type", *_ATTRS, _NAME, _ANY_SHAPE],
    shape_fn=unknown_shape,
    deprecated=(16, "Use TensorArrayV3"),
    doc="As TensorArrayV3, where the handle is a reference to a vector of two strings.",
)

_GRADIENT_DOC = "The array for the gradients of an array's elements; one for each `source`."

_declare(
    "TensorArrayGradV3(handle: resource, flow_in: float) -> grad_handle: resource, flow_out: float",
    attrs=["source: string"],
    shape_fn=gradient_shape,
    doc=_GRADIENT_DOC,
)
_declare(
    "TensorArrayGradWithShape(handle: resource, flow_in: float, shape_to_prepend: int32) "
    "-> grad_handle: resource, flow_out: float",
    attrs=["source: string"],
    shape_fn=gradient_with_shape_shape,
    doc="As TensorArrayGradV3, where gradients have `shape_to_prepend` before their shapes.",
)
for _version, _handle, _shapes, _gone in (
    ("V2", "string", checked("h", shape_rule("-> [2]")), 26),
    ("", "Ref(string)", unknown_shape, 16),
):
    _declare(
        f"TensorArrayGrad{_version}(handle: string, flow_in: float) -> grad_handle: {_handle}",
        attrs=["source: string"],
        shape_fn=_shapes,
        deprecated=(_gone, "Use TensorArrayGradV3"),
        doc=_GRADIENT_DOC,
    )


@register_kernel("TensorArray", "TensorArrayV2", "TensorArrayV3")
class TensorArrayOp(OpKernel):
    """Makes an array at each computation."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr
        self._array_name: str = get("tensor_array_name") or self.name
        names = ["dtype", "element_shape", "dynamic_size", "clear_after_read"]
        if construction.has_attr("identical_element_shapes"):
            names.append("identical_element_shapes")
        self._attrs = {name: get(name) for name in names}

    def compute(self, ctx: OpKernelContext) -> None:
        size = ctx.input(0)
        require_scalar(size, "TensorArray size must be scalar, but had shape: {}")
        require(size >= 0, "Size should be >= 0.")
        name = f"{self._array_name}_{next(_numbers)}"
        array = TensorArray(name, size=int(size), **self._attrs)
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


_Run = Callable[[Step, Sequence[Any]], list[Any]]
_HANDLES = {"": "Ref(string)", "V2": "string", "V3": "resource"}


def declare(
    signature: str,
    *,
    attrs: Sequence[str] = (),
    shape_fn: OpShapeInferenceFn,
    shape_fn_v2: OpShapeInferenceFn | None = None,
    doc: str,
    gone_from: Sequence[int | None] = (16, 26, None),
) -> list[str]:
    """Declare the versions of an op on tensor arrays.

    Args:
        signature: of the first version, with `{}` for the type of the handle.
        attrs: the attrs.
        shape_fn: the shape function; the first version says nothing of shapes.
        shape_fn_v2: that of the second version, if it has another.
        doc: what the op does.
        gone_from: for each version there is, the version of GraphDefs from which on there is no such op.

    Returns:
        The names of the versions.
    """
    name, _, arguments = signature.partition("(")
    shape_fns = (unknown_shape, shape_fn_v2 or shape_fn, shape_fn)
    names = []
    for version, shapes, gone in zip(_HANDLES, shape_fns, gone_from, strict=False):
        names.append(f"{name}{version}")
        register_op(
            f"{name}{version}({arguments.replace('{}', _HANDLES[version])}",
            attrs=attrs,
            shape_fn=shapes,
            traits="state_of_step clustering=tensor_array",
            is_stateful=version == "V3",
            deprecated=None if gone is None else (gone, f"Use {name}V3"),
            doc=doc,
        )
    return names


def check_handle_and_indices(c: InferenceContext, flow: int) -> ShapeHandle:
    """The shape of the indices at input 1, after a check of the handle and the flow."""
    c.with_rank(c.input(0), 1)
    indices = c.with_rank(c.input(1), 1)
    check_handle(c, c.input(0))
    c.with_rank(c.input(flow), 0)
    return indices


def element_shape_of(c: InferenceContext) -> ShapeHandle | None:
    """The shape of the elements, if the handle knows it."""
    held = c.input_handle_shapes_and_types(0)
    return held[0].shape if held else None


def array_of(ctx: OpKernelContext) -> TensorArray:
    """The array whose handle is input 0, with one more reference; raises as `resource_of_step`."""
    return resource_of_step(ctx, TensorArray)


class ElementKernel(InexpensiveKernel):
    """Works on one element of an array, mostly of the one that it worked on last."""

    _last: tuple[weakref.ref[Any], weakref.ref[TensorArray]] | None = None

    def array(self, ctx: OpKernelContext) -> TensorArray:
        """The array whose handle is input 0; raises as `resource_of_step`."""
        handle, last = ctx.inputs[0], self._last
        if last is not None and last[0]() is handle:
            known = last[1]()
            if known is not None and known.ref_count:
                return known
        with array_of(ctx) as array:
            if not isinstance(handle, TensorRef):
                self._last = weakref.ref(handle), weakref.ref(array)
        return array

    def access(self, array: TensorArray, inputs: Sequence[Any]) -> Any:
        """Do the work, given the array; what output 0 is.

        Raises:
            InvalidArgumentError: it cannot be done.
        """
        raise NotImplementedError

    def compute(self, ctx: OpKernelContext) -> None:
        """Do the work on the array whose handle is input 0."""
        ctx.set_output(0, self.access(self.array(ctx), ctx.inputs))

    def shortcut(self, run: _Run) -> _Run:
        """Without a context where the array is that of the last time."""

        def access(step: Step, inputs: Sequence[Any]) -> list[Any]:
            last = self._last
            if last is None or last[0]() is not inputs[0] or step.track_allocations:
                return run(step, inputs)
            array = last[1]()
            if array is None or not array.ref_count:
                return run(step, inputs)
            return [self.access(array, inputs)]

        return access


_SIZES = declare(
    "TensorArraySize(handle: {}, flow_in: float) -> size: int32",
    shape_fn=checked_scalar("h"),
    doc="The number of elements.",
)
_CLOSES = declare(
    "TensorArrayClose(handle: {})",
    shape_fn=checked_no_outputs("h"),
    doc="Gives up the elements before the step ends.",
)


@register_kernel(*_SIZES)
class Size(InexpensiveKernel):
    """Tells how many elements there are."""

    def compute(self, ctx: OpKernelContext) -> None:
        with array_of(ctx) as array:
            ctx.set_output(0, np.int32(array.size()))


@register_kernel(*_CLOSES)
class Close(InexpensiveKernel):
    """Closes the array."""

    def compute(self, ctx: OpKernelContext) -> None:
        with array_of(ctx) as array:
            array.close()


def on_gradients(op: g.Operation, flow: g.Tensor, method: str, *inputs: Any, **attrs: Any) -> Any:
    """A node of an op on the gradient array of an operation's array.

    Args:
        op: the operation, whose version the nodes have, too.
        flow: the tensor that the users of the gradient array have to wait for.
        method: the op on the gradient array, without prefix and version.
        inputs: its inputs between the handle and the flow.
        attrs: its attrs.
    """
    version = op.type[-2:] if op.type.endswith(("V2", "V3")) else ""
    made = getattr(g.nodes, f"TensorArrayGrad{version}")(
        op.inputs[0], flow, source=g.gradient_source()
    )
    handle = made.grad_handle if version == "V3" else made
    with get_default_graph().control_dependencies([handle]):
        flow = g.nodes.Identity(flow, name="gradient_flow")
    return getattr(g.nodes, f"TensorArray{method}{version}")(handle, *inputs, flow, **attrs)


def after_forward(op: g.Operation, flow: g.Tensor) -> Any:
    """The flow of gradients, once the operation itself has run."""
    written = g.nodes.Identity(op.outputs[0], name="flow_out")
    with get_default_graph().control_dependencies([written]):
        return g.nodes.Identity(flow, name="write_barrier")
