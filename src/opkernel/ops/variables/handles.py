"""Handles of variables: ops that make a handle, inspect it, or destroy its resource.

Pieces of the shape functions of ops on variables.

Source: TensorFlow core/ops/resource_variable_ops.cc, core/kernels/resource_variable_ops.cc.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.kernel import (
    ANONYMOUS_NAME,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    delete_resource,
    handle_from_input,
    make_ref_counting_handle,
    make_resource_handle,
    tensor_of_handle,
)
from opkernel.opdef import (
    InferenceContext,
    ShapeAndType,
    ShapeHandle,
    no_outputs,
    register_op,
    scalar_shape,
)
from opkernel.ops.input_checks import require_equal
from opkernel.ops.registration import INDEX, register_kernel
from opkernel.ops.variables.var import Var, known_variable, variable_of
from opkernel.records import replace
from opkernel.types import DataType, DtypeAndShape, PartialTensorShape

__all__ = [
    "DestroyResourceOp",
    "DisableCopyOnRead",
    "VarHandleOp",
    "VarHandlesOp",
    "VarIsInitializedOp",
    "VariableShape",
    "check_scatter",
    "check_variants",
    "set_value",
]


def set_value(c: InferenceContext, shape: ShapeHandle, held: list[ShapeAndType]) -> None:
    """The output is the value of a variable. A variant keeps the rest of the handle data."""
    c.set_output(0, shape)
    if held[0].dtype == DataType.DT_VARIANT and len(held) > 1:
        c.set_output_handle_shapes_and_types(0, held[1:])


def check_variants(c: InferenceContext, index: int, held: list[ShapeAndType]) -> None:
    """Refuse to write an input into a variable of variants that hold another number of tensors."""
    written = c.input_handle_shapes_and_types(index)
    expected = len(held) - 1
    if held[0].dtype == DataType.DT_VARIANT and expected and written is not None:
        require_equal(
            expected,
            len(written),
            "Incompatible handle variant shape_and_type size and input shape_and_type size: {} vs. {}",
        )


def check_scatter(c: InferenceContext, variable: ShapeHandle) -> None:
    """Refuse updates unless they are one scalar, or [indices..., rest of the variable...]."""
    rows = c.concatenate(c.input(1), c.subshape(variable, 1))
    if c.rank(c.input(2)) != 0:
        c.merge(c.input(2), rows)


# Making handles


def _set_handle(
    c: InferenceContext, index: int, shape: PartialTensorShape, dtype: DataType
) -> None:
    """The output is a handle to one variable."""
    c.set_output(index, c.scalar())
    held = ShapeAndType(c.make_shape_from_partial_shape(shape), dtype)
    c.set_output_handle_shapes_and_types(index, [held])


def var_handle_shape(c: InferenceContext) -> None:
    """A handle to a variable of the attrs `shape` and `dtype`."""
    _set_handle(c, 0, c.get_attr("shape"), c.get_attr("dtype"))


def var_handles_shape(c: InferenceContext) -> None:
    """Handles to variables of the attrs `shapes` and `dtypes`."""
    n, dtypes, shapes = c.get_attr("N"), c.get_attr("dtypes"), c.get_attr("shapes")
    _check_counts(n, {"dtypes": dtypes, "shapes": shapes})
    for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
        _set_handle(c, i, shape, dtype)


def _check_counts(n: int, lists: dict[str, Sequence[Any]]) -> None:
    for kind, values in lists.items():
        require_equal(n, len(values), f"Mismatched number of {kind} (n={{}}, num {kind}={{}})")


register_op(
    "VarHandleOp() -> resource: resource",
    attrs=[
        "container: string = ''",
        "shared_name: string = ''",
        "debug_name: string = ''",
        "dtype: type",
        "shape: shape",
        "allowed_devices: list(string) = []",
    ],
    shape_fn=var_handle_shape,
    is_stateful=True,
    doc="A handle to the variable of that name and container, which need not exist yet.",
)
register_op(
    "_VarHandlesOp() -> resources: N * resource",
    attrs=[
        "containers: list(string)",
        "shared_names: list(string)",
        "N: int >= 0",
        "dtypes: list(type)",
        "shapes: list(shape)",
    ],
    shape_fn=var_handles_shape,
    is_stateful=True,
    doc="Handles to variables, as VarHandleOp gives one.",
)


def _named_handle(
    construction: OpKernelConstruction, container: str, name: str, of: DtypeAndShape
) -> Any:
    """The tensor of a handle to the variable of a name."""
    manager = construction.resource_manager
    if manager is None:
        raise InvalidArgumentError(f"Device {construction.device.name} has no resource manager")
    container = container or manager.default_container
    return tensor_of_handle(make_resource_handle(container, name, construction.device, Var, [of]))


@register_kernel("VarHandleOp")
class VarHandleOp(OpKernel):
    """Gives one handle, made once; under the anonymous name a new variable at each step."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        name, container = (construction.get_attr(name) for name in ("shared_name", "container"))
        self.of = DtypeAndShape(construction.get_attr("dtype"), construction.get_attr("shape"))
        self.debug_name: str = construction.get_attr("debug_name")
        self.handle = None
        if name != ANONYMOUS_NAME:
            self.handle = _named_handle(construction, container, name, self.of)

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output(0, self._anonymous() if self.handle is None else self.handle)

    def _anonymous(self) -> Any:
        variable = Var(self.of.dtype, debug_name=self.debug_name)
        handle = make_ref_counting_handle(variable, self.device, dtypes_and_shapes=[self.of])
        return tensor_of_handle(handle)


@register_kernel("_VarHandlesOp")
class VarHandlesOp(OpKernel):
    """Gives handles that were made once."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        lists = {
            name: construction.get_attr(name)
            for name in ("containers", "shared_names", "dtypes", "shapes")
        }
        _check_counts(construction.get_attr("N"), lists)
        self.handles = [
            _named_handle(construction, container, name, DtypeAndShape(dtype, shape))
            for container, name, dtype, shape in zip(*lists.values(), strict=True)
        ]

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output_list("resources", self.handles)


# Asking


def variable_shape_shape(c: InferenceContext) -> None:
    """A vector, whose length is the rank of the variable."""
    held = c.input_handle_shapes_and_types(0)
    known = held[0].shape if held else c.unknown_shape()
    c.set_output(0, c.vector(c.rank(known) if c.rank_known(known) else None))


register_op(
    "VarIsInitializedOp(resource: resource) -> is_initialized: bool",
    shape_fn=scalar_shape,
    traits="only_reads_state",
    is_stateful=True,
    doc="Whether the variable exists and was assigned a value.",
)
register_op(
    "VariableShape(input: resource) -> output: out_type",
    attrs=["out_type: {int32, int64} = DT_INT32"],
    shape_fn=variable_shape_shape,
    traits="only_reads_state",
    is_stateful=True,
    doc="The shape of the variable's tensor.",
)


@register_kernel("VarIsInitializedOp")
class VarIsInitializedOp(OpKernel):
    """Whether there is such a variable, and it has a value."""

    def compute(self, ctx: OpKernelContext) -> None:
        try:
            variable = variable_of(ctx)
        except OpError:
            ctx.set_output(0, np.bool_(False))
            return
        with variable:
            ctx.set_output(0, np.bool_(variable.is_initialized))


@register_kernel("VariableShape", types={"out_type": INDEX})
class VariableShape(OpKernel):
    """The shape that the variable has now."""

    def compute(self, ctx: OpKernelContext) -> None:
        with variable_of(ctx) as variable:
            ctx.set_output(0, np.array(variable.tensor_ref.tensor.shape, self.output_dtypes[0]))


# Destroying

register_op(
    "DestroyResourceOp(resource: resource)",
    attrs=["ignore_lookup_error: bool = true"],
    shape_fn=no_outputs,
    is_stateful=True,
    doc="Takes the resource out of its container; one that its handles own stays.",
)
register_op(
    "MakeWeakResourceHandle(handle: resource) -> dup: resource",
    is_stateful=True,
    shape_fn=scalar_shape,
    doc="A handle of the same names, which keeps no resource alive: one that its handles own is not found by it.",
)
register_op(
    "IsResourceHandleRefCounting(handle: resource) -> result: bool",
    is_stateful=True,
    shape_fn=scalar_shape,
    doc="Whether the handle owns its resource, which ends with the last of its handles.",
)
register_op(
    "DisableCopyOnRead(resource: resource)",
    shape_fn=no_outputs,
    is_stateful=True,
    doc="Checks that the variable exists. Reads never copy here.",
)


@register_kernel("DestroyResourceOp")
class DestroyResourceOp(OpKernel):
    """Deletes the resource that the handle names."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.ignore_lookup_error: bool = construction.get_attr("ignore_lookup_error")

    def compute(self, ctx: OpKernelContext) -> None:
        try:
            delete_resource(ctx, handle_from_input(ctx.input(0)))
        except NotFoundError:
            if not self.ignore_lookup_error:
                raise


@register_kernel("MakeWeakResourceHandle")
@register_kernel("MakeWeakResourceHandle", device="DEFAULT")
def make_weak_resource_handle(handle: Any) -> Any:
    """A handle with the same names, which keeps no resource alive."""
    return tensor_of_handle(replace(handle_from_input(handle), resource=None))


@register_kernel("IsResourceHandleRefCounting")
def is_resource_handle_ref_counting(handle: Any) -> Any:
    return np.bool_(handle_from_input(handle).is_ref_counting)


@register_kernel("DisableCopyOnRead")
class DisableCopyOnRead(OpKernel):
    """TensorFlow leaves a mode here that variables of this runtime never enter."""

    def compute(self, ctx: OpKernelContext) -> None:
        known_variable(ctx).unref()
