"""Several tensors as slices of one array, so that the next op takes them all at once.

`_ScopedAllocator` makes the array. The nodes that wait for it, and name a scope_id in their attr
`_scoped_allocator`, put their outputs into it (`opkernel.kernel.stand_in`). `_ScopedAllocatorConcat` gives them
as one tensor without a copy, `_ScopedAllocatorSplit` each by itself.

Source: TensorFlow core/ops/scoped_allocator_ops.cc, core/kernels/scoped_allocator_ops.cc.
"""

import math

import numpy as np

from opkernel.device.scoped_allocator import (
    ScopedAllocatorContainer,
    lies_within,
    populate_fields,
)
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import explicit_shape, explicit_shapes, register_op
from opkernel.ops.input_checks import require
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import InexpensiveKernel, resource_manager, step_container
from opkernel.types import PartialTensorShape

__all__ = ["SCOPED_ALLOCATOR", "SCOPED_ALLOCATOR_CONCAT", "SCOPED_ALLOCATOR_SPLIT"]

_NAMED = ("sa_name: string", "id: int")

SCOPED_ALLOCATOR = register_op(
    "_ScopedAllocator() -> output: T",
    attrs=["shapes: list(shape)", "shape: shape", "T: type", *_NAMED, "expected_call_count: int"],
    shape_fn=explicit_shape,
    is_stateful=True,
    doc="An array for tensors of `shapes`, which the scope ids from `id` + 1 on name.",
)
SCOPED_ALLOCATOR_CONCAT = register_op(
    "_ScopedAllocatorConcat(backing: T, inputs: N * T) -> output: T",
    attrs=["shape: shape", "T: type", "reshape: bool = false", *_NAMED, "N: int >= 2"],
    shape_fn=explicit_shape,
    is_stateful=True,
    doc="The array `backing`, in which `inputs` must lie; reshaped to `shape` if `reshape`.",
)
SCOPED_ALLOCATOR_SPLIT = register_op(
    "_ScopedAllocatorSplit(concat: T, split: N * T) -> output: N * T",
    attrs=["T: type", *_NAMED, "N: int >= 2", "shapes: list(shape)"],
    shape_fn=explicit_shapes,
    is_stateful=True,
    doc="The tensors `split`, which must lie in the array `concat`.",
)


@register_kernel(SCOPED_ALLOCATOR)
class ScopedAllocatorOp(OpKernel):
    """Allocates the array and announces its fields."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        dtype, self._id = construction.get_attr("T"), construction.get_attr("id")
        shapes = [shape.as_tensor_shape() for shape in construction.get_attr("shapes")]
        self._name = construction.get_attr("sa_name")
        self._calls = construction.get_attr("expected_call_count")
        if dtype.numpy_dtype.hasobject:
            raise InvalidArgumentError(f"a scoped allocator cannot hold {dtype.string} tensors")
        require(shapes, "shapes must not be empty")
        self._fields = populate_fields(self._id, shapes, dtype)
        num_bytes = sum(field.bytes_allocated for field in self._fields)
        size = dtype.numpy_dtype.itemsize
        if num_bytes % size:
            raise InvalidArgumentError(
                f"Number of bytes {num_bytes} must be divisible by size of datatype {size}"
            )
        self._num_elements = num_bytes // size
        declared = construction.get_attr("shape")
        if not declared.is_compatible_with(PartialTensorShape([self._num_elements])):
            raise InvalidArgumentError(
                f"shape is {declared}, and the fields take [{self._num_elements}] with their padding"
            )

    def compute(self, ctx: OpKernelContext) -> None:
        mgr = ctx.device.scoped_allocator_mgr
        if mgr is None:
            raise InternalError(f"ScopedAllocatorMgr not supported on device {ctx.device.name}")
        backing = ctx.allocate_output(0, (self._num_elements,))
        backing[...] = 0  # code that reads the array whole reads the padding, too
        with step_container(ctx).lookup_or_create(
            resource_manager(ctx),
            f"scoped_allocators_{ctx.step_id}",
            ScopedAllocatorContainer,
            lambda: mgr.get_container(ctx.step_id),
        ) as container:
            container.add_scoped_allocator(backing, self._id, self._name, self._fields, self._calls)


@register_kernel(SCOPED_ALLOCATOR_CONCAT)
class ScopedAllocatorConcatOp(InexpensiveKernel):
    """Gives the array that its inputs lie in."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._shape = construction.get_attr("shape").as_tensor_shape().dims
        self._reshapes = construction.get_attr("reshape")

    def compute(self, ctx: OpKernelContext) -> None:
        backing, wanted = ctx.input(0), math.prod(self._shape)
        if backing.size < wanted:
            raise InvalidArgumentError(
                f"Backing tensor num elements {backing.size} is not >= to expected {wanted}"
            )
        if backing.size != wanted or not (self._reshapes or backing.shape == self._shape):
            raise InvalidArgumentError(
                f"Backing tensor has shape {[*backing.shape]}, and the attr shape is "
                f"{[*self._shape]}{'' if self._reshapes else ', without reshape'}"
            )
        _check_bounds(ctx, backing)
        ctx.set_output(0, backing.reshape(self._shape) if self._reshapes else backing)


@register_kernel(SCOPED_ALLOCATOR_SPLIT)
class ScopedAllocatorSplitOp(InexpensiveKernel):
    """Gives the tensors that lie in an array."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._shapes = construction.get_attr("shapes")

    def compute(self, ctx: OpKernelContext) -> None:
        _check_bounds(ctx, ctx.input(0))
        for index, (tensor, shape) in enumerate(zip(ctx.inputs[1:], self._shapes, strict=True)):
            if not shape.is_compatible_with(PartialTensorShape(tensor.shape)):
                raise InvalidArgumentError(
                    f"Input {index + 1} has shape {[*tensor.shape]}, and the attr shapes says {shape}"
                )
            ctx.set_output(index, tensor)


def _check_bounds(ctx: OpKernelContext, backing: np.ndarray) -> None:
    """Raise InvalidArgumentError unless all inputs but the first lie in an array."""
    for index, tensor in enumerate(ctx.inputs[1:], 1):
        if not lies_within(np.asarray(tensor), backing):
            kernel = ctx.op_kernel
            raise InvalidArgumentError(
                f"Bounds check fail for input {index} from node {kernel.requested_input(index)} to "
                f"node {kernel.name}: the input does not lie in the array of input 0; "
                "_scoped_allocator of its node must name the scope_id"
            )
