"""The differences between versions of the ops on tensor arrays.

The handle of the first version is a reference to a vector of two strings. The second version has the
vector itself. The third version has a resource, which knows the shape of all elements.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from opkernel.kernel import OpKernelContext, Step, TensorRef
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    ShapeHandle,
    register_op,
    unknown_shape,
)
from opkernel.opdef.common_shapes.rules import check_handle
from opkernel.ops.step_resources import InexpensiveKernel, resource_of_step
from opkernel.ops.tensor_array.tensor_array import TensorArray

_Run = Callable[[Step, Sequence[Any]], list[Any]]

_HANDLES = {"": "handle: Ref(string)", "V2": "handle: string", "V3": "handle: resource"}


def declare(
    method: str,
    version: str,
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    attrs: Sequence[str],
    shape_fn: OpShapeInferenceFn,
    doc: str,
    gone_from: int | None = None,
) -> str:
    """Declare an op on tensor arrays; the handle is the first of its inputs.

    Args:
        method: the work of the op.
        version: its version.
        inputs: the other inputs.
        outputs: the outputs.
        attrs: the attrs.
        shape_fn: the shape function; the first version says nothing of shapes.
        doc: what the op does.
        gone_from: the version of GraphDefs from which on there is no such op.

    Returns:
        The name of the op.
    """
    name = f"TensorArray{method}{version}"
    register_op(
        name,
        inputs=[_HANDLES[version], *inputs],
        outputs=outputs,
        attrs=attrs,
        shape_fn=shape_fn if version else unknown_shape,
        traits="state_of_step clustering=tensor_array",
        is_stateful=version == "V3",
        deprecated=None if gone_from is None else (gone_from, f"Use TensorArray{method}V3"),
        doc=doc,
    )
    return name


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
