"""Variables of TensorFlow 1: their ops pass references on, which others change or read.

Source: TensorFlow core/ops/state_ops.cc, core/kernels/variable_ops.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    ContainerInfo,
    FrameAndIter,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
    TensorRef,
    check_allocation,
)
from opkernel.opdef import (
    InferenceContext,
    explicit_shape,
    register_op,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)
from opkernel.opdef.common_shapes.rules import defined_shape
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require, require_scalar
from opkernel.ops.registration import ALL, register_kernel
from opkernel.ops.resource_op_kernel import resource_manager, step_container
from opkernel.ops.variables.var import current, frozen, initialized_ref
from opkernel.types import DataType, TensorShape


def variable_shape(c: InferenceContext) -> None:
    """The attr `shape`; `Variable` says that the shape is unknown with that of a scalar."""
    if c.get_attr("shape").rank:
        explicit_shape(c)
    else:
        unknown_shape(c)


for _name, _shape_fn in (("Variable", variable_shape), ("VariableV2", explicit_shape)):
    register_op(
        f"{_name}() -> ref: Ref(dtype)",
        attrs=["shape: shape", "dtype: type", "container: string = ''", "shared_name: string = ''"],
        shape_fn=_shape_fn,
        is_stateful=True,
        doc="A reference to a tensor that outlives steps.",
    )
register_op(
    "TemporaryVariable() -> ref: Ref(dtype)",
    attrs=["shape: shape", "dtype: type", "var_name: string = ''"],
    shape_fn=explicit_shape,
    is_stateful=True,
    doc="A reference to a tensor of this step alone.",
)
register_op(
    "DestroyTemporaryVariable(ref: Ref(T)) -> value: T",
    attrs=["T: type", "var_name: string"],
    shape_fn=unchanged_shape,
    doc="The last value of the temporary variable `var_name`, which is then no more.",
)
register_op(
    "IsVariableInitialized(ref: Ref(dtype)) -> is_initialized: bool",
    attrs=["dtype: type"],
    shape_fn=scalar_shape,
    traits="only_reads_state",
    allows_uninitialized_input=True,
    doc="Whether the tensor was assigned a value.",
)


class LegacyVar(ResourceBase):
    """The target of references to a variable.

    Attributes:
        dtype: The type of the tensor.
        tensor_ref: The tensor.
    """

    def __init__(self, dtype: DataType, ref: TensorRef) -> None:
        self.dtype = dtype
        self.tensor_ref = ref

    def debug_string(self) -> str:
        """The type and shape of the tensor."""
        return f"{self.dtype.string}/{TensorShape(self.tensor_ref.shape)}"

    def memory_used(self) -> int:
        """The bytes of the tensor."""
        return 0 if self.tensor_ref.tensor is None else int(self.tensor_ref.tensor.nbytes)


@register_kernel("Variable", "VariableV2")
class VariableOp(OpKernel):
    """Gives the reference; the variable is made when it is first asked for."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.shape = tuple(defined_shape(construction.get_attr("shape")).as_tensor_shape())
        self.info = ContainerInfo.init(
            resource_manager(construction), self.node_def, use_node_name_as_default=True
        )

    def compute(self, ctx: OpKernelContext) -> None:
        info = self.info
        with info.resource_manager.lookup_or_create(
            info.container, info.name, LegacyVar, self._create
        ) as variable:
            ctx.set_output_ref(0, variable.tensor_ref)

    def _create(self) -> LegacyVar:
        return LegacyVar(self.output_types[0].base, TensorRef(declared_shape=self.shape))


@register_kernel("IsVariableInitialized")
class IsVariableInitialized(OpKernel):
    """Whether the reference has an array."""

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output(0, np.bool_(ctx.input_ref(0).is_initialized))


# Variables of one step


class TmpVar(ResourceBase):
    """The target of the reference to a temporary variable."""

    def __init__(self, tensor: Any) -> None:
        self.tensor_ref = TensorRef(tensor)


def _name_in_step(name: str, place: FrameAndIter) -> str:
    """The name of a variable: each turn of a loop has its own."""
    if place == FrameAndIter():
        return name
    return f"{name}/frame:{place.frame_id}/iter:{place.iter_id}"


@register_kernel("TemporaryVariable")
class TemporaryVariable(OpKernel):
    """Makes a variable in the container of the step. Its elements are zeros."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")
        self.shape = tuple(defined_shape(construction.get_attr("shape")).as_tensor_shape())
        self.variable_name: str = construction.get_attr("var_name") or self.name

    def compute(self, ctx: OpKernelContext) -> None:
        tensor = frozen(np.array(zeros(check_allocation(self.shape, self.dtype), self.dtype)))
        variable = TmpVar(tensor)
        name = _name_in_step(self.variable_name, ctx.frame_iter)
        step_container(ctx).create(resource_manager(ctx), name, variable)
        ctx.set_output_ref(0, variable.tensor_ref)


@register_kernel("DestroyTemporaryVariable")
class DestroyTemporaryVariable(OpKernel):
    """Deletes a variable of the step."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.variable_name: str = construction.get_attr("var_name")
        require(self.variable_name, "Missing var_name attribute")

    def compute(self, ctx: OpKernelContext) -> None:
        value = current(initialized_ref(ctx))
        name = _name_in_step(self.variable_name, ctx.frame_iter)
        step_container(ctx).delete(resource_manager(ctx), name, TmpVar)
        ctx.set_output(0, value)


# References that are passed on


def ref_select_shape(c: InferenceContext) -> None:
    """The shape of the references if all have the same and it is fully defined."""
    c.with_rank(c.input(0), 0)
    first, *others = (c.input(i) for i in range(1, c.num_inputs()))
    sizes = c.as_partial_shape(first)
    same = all(c.fully_defined(other) and c.as_partial_shape(other) == sizes for other in others)
    c.set_output(0, first if c.fully_defined(first) and same else c.unknown_shape())


for _name in ("RefIdentity", "DebugGradientRefIdentity"):
    register_op(
        f"{_name}(input: Ref(T)) -> output: Ref(T)",
        attrs=["T: type"],
        shape_fn=unchanged_shape,
        traits="has_no_effect",
        allows_uninitialized_input=True,
        doc="The same reference.",
    )
register_op(
    "RefSelect(index: int32, inputs: Ref(N * T)) -> output: Ref(T)",
    attrs=["T: type", "N: int >= 1"],
    shape_fn=ref_select_shape,
    traits="has_no_effect",
    doc="The reference of number `index`.",
)


@register_kernel("RefIdentity", "DebugGradientRefIdentity")
class RefIdentity(OpKernel):
    """Passes on a reference."""

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.forward_ref_input_to_ref_output(0, 0)


@register_kernel("RefSelect", types={"T": ALL}, host_memory=["index"])
class RefSelect(OpKernel):
    """Passes on the reference that the index says."""

    def compute(self, ctx: OpKernelContext) -> None:
        index = np.asarray(ctx.input(0))
        require_scalar(index, "Index must be a scalar, but it has shape {}")
        count = self.num_inputs - 1
        if not 0 <= index < count:
            raise InvalidArgumentError(f"Index must be in the range [0, {count}) but got {index}")
        ctx.forward_ref_input_to_ref_output(1 + int(index), 0)


@g.register_gradient("RefIdentity", "DebugGradientRefIdentity")
def ref_identity_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    return grad
