"""ConditionalAccumulator and SparseConditionalAccumulator: the mean, or the sum, of gradients, once enough have come.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/conditional_accumulator_base.cc, conditional_accumulator.h,
sparse_conditional_accumulator.h, conditional_accumulator_base_op.h, conditional_accumulator_op.cc,
sparse_conditional_accumulator_op.cc.
"""

import logging
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import register_op, scalar_shape
from opkernel.opdef.common_shapes.rules import (
    checked_no_outputs,
    checked_unknown,
    shape_rule,
    unknown_from_scalars,
)
from opkernel.ops.data_flow.waiting import (
    Deliver,
    Done,
    Line,
    Steps,
    WaitingKernel,
    WaitingResource,
)
from opkernel.ops.input_checks import (
    require,
    require_equal,
    require_rank_at_least,
    require_scalar,
    require_vector,
)
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import (
    InexpensiveKernel,
    ResourceOpKernel,
    register_fact,
    resource_of_handle,
)
from opkernel.ops.sparse.merge import merged
from opkernel.types import DataType, PartialTensorShape, TensorShape

_OF_PAIR = 200
"""The bytes that two merged indices take as values of Python."""

_LOGGER = logging.getLogger(__name__)


class ConditionalAccumulatorBase(WaitingResource):
    """Sums gradients until somebody takes the result, which begins the next global step.

    A gradient that was computed before the present global step is stale and is dropped.

    Args:
        dtype: The type of the gradients.
        shape: Their shape, as far as it is known.
        name: The name, for messages.
        is_mean: Whether the result is the mean and not the sum.
    """

    def __init__(
        self, dtype: DataType, shape: PartialTensorShape, name: str, is_mean: bool
    ) -> None:
        self._takers = Line()
        super().__init__(self._takers)
        self.dtype = dtype
        self.shape = shape
        self.name = name
        self._is_mean = is_mean
        self._global_step = 0
        self.num_accumulated = 0

    def debug_string(self) -> str:
        """A description."""
        return "A conditional accumulator"

    def apply_gradient(self, local_step: int, gradient: Any) -> None:
        """Add a gradient that was computed at a step, unless that is over.

        Raises:
            InvalidArgumentError: its shape does not fit.
        """
        with self._changing():
            if local_step >= self._global_step:
                self._add(gradient)
                self.num_accumulated += 1

    def take_gradient(
        self, num_required: int, ctx: OpKernelContext, done: Done, deliver: Deliver
    ) -> None:
        """Take the result out, once as many gradients have come.

        Raises:
            InvalidArgumentError: none are required.
        """
        require(num_required > 0, f"Argument num_required must be positive, but was {num_required}")
        steps = self._take_steps(num_required)
        self.start(self._takers, ctx, done, steps, deliver, name="TakeGrad operation")

    def set_global_step(self, step: int) -> None:
        """Begin another global step."""
        with self._lock:
            if step < self._global_step:
                steps = self._global_step, step
                _LOGGER.warning(
                    "The global step of accumulator %s goes back from %d to %d", self.name, *steps
                )
            self._global_step = step

    def _take_steps(self, num_required: int) -> Steps:
        while self.num_accumulated < num_required:
            yield
        self._global_step += 1
        result = self._result()
        self.num_accumulated = 0
        self._changed()
        return result

    def _add(self, gradient: Any) -> None:
        """Add a gradient, the first one included; raises as `apply_gradient`."""
        raise NotImplementedError

    def _result(self) -> Any:
        """The result of the gradients that were added."""
        raise NotImplementedError


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Accumulates tensors; `_sum` is the accumulator's own array."""

    _sum: Any = None

    def _add(self, gradient: Any) -> None:
        is_first = self.num_accumulated == 0
        expected = self.shape if is_first else PartialTensorShape(self._sum.shape)
        for shape in (expected, self.shape):
            if not shape.is_compatible_with(PartialTensorShape(gradient.shape)):
                raise InvalidArgumentError(
                    f"Shape mismatch: expected {shape}, got {TensorShape(gradient.shape)}"
                )
        if is_first:
            self._sum = np.array(gradient)
        else:
            np.add(self._sum, gradient, out=self._sum)

    def _result(self) -> Any:
        total, self._sum = self._sum, None
        if self._is_mean:
            np.divide(total, total.dtype.type(self.num_accumulated), out=total)
        return total


class SparseGradient(NamedTuple):
    """Rows of a gradient.

    Attributes:
        indices: Where the rows stand, a vector; in order.
        values: The rows.
        shape: The shape of the whole gradient, a vector; None where it is unknown.
    """

    indices: Any
    values: Any
    shape: Any


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Accumulates rows of tensors. The mean of a row is taken over the gradients that have the row."""

    _indices: Any = None
    _values: Any = None
    _counts: Any = None

    def _add(self, gradient: SparseGradient) -> None:
        self._check(gradient)
        if self.num_accumulated == 0:
            self._indices, self._values = np.array(gradient.indices), np.array(gradient.values)
            self._counts = np.ones(len(gradient.indices), np.int64)
            return
        most = len(self._indices) + len(gradient.indices)
        with making_bytes("merged indices", _OF_PAIR * most):
            ours, theirs = merged(self._indices, gradient.indices)
        in_ours, in_theirs = ours >= 0, theirs >= 0
        values = np.empty((len(ours), *self._values.shape[1:]), self._values.dtype)
        indices, counts = np.empty(len(ours), np.int64), in_theirs.astype(np.int64)
        values[in_theirs] = gradient.values[theirs[in_theirs]]
        indices[in_theirs] = gradient.indices[theirs[in_theirs]]
        both, only_ours = in_ours & in_theirs, in_ours & ~in_theirs
        values[both] += self._values[ours[both]]
        values[only_ours] = self._values[ours[only_ours]]
        indices[only_ours] = self._indices[ours[only_ours]]
        counts[in_ours] += self._counts[ours[in_ours]]
        self._indices, self._values, self._counts = indices, values, counts

    def _result(self) -> SparseGradient:
        values = self._values
        if self._is_mean:
            counts = self._counts.astype(values.dtype)
            values /= counts.reshape(-1, *[1] * (values.ndim - 1))
        first = self.shape[0] if self.shape.rank else None
        shape = [-1 if first is None else first, *values.shape[1:]]
        return SparseGradient(self._indices, values, np.array(shape, np.int64))

    def _check(self, gradient: SparseGradient) -> None:
        indices, values = gradient.indices, gradient.values
        require_vector(indices, "Input indices should be vector but received shape: {}")
        require_rank_at_least(values, 1, "Values cannot be 0-dimensional.")
        require_equal(len(indices), len(values), "Expected {} non-empty input values, got {}")
        if gradient.shape is not None:
            _check_sizes("shape", self.shape.dims or (), gradient.shape.reshape(-1).tolist(), 0)
        self._check_indices(indices)
        self._check_values(values)

    def _check_indices(self, indices: Any) -> None:
        size = self.shape[0] if self.shape.rank else None
        if size is None:
            return
        wrong = np.flatnonzero(indices >= size)
        if wrong.size:
            raise InvalidArgumentError(
                f"Shape mismatch: index of slice {wrong[0]} exceeded limits of shape; index is "
                f"{indices[wrong[0]]} exceeded {size}"
            )

    def _check_values(self, values: Any) -> None:
        known: tuple[int | None, ...] = self.shape.dims or ()
        if self.num_accumulated:
            known = self._values.shape
            require_equal(
                len(known), values.ndim, "Shape mismatch: expected values rank {}, got {}"
            )
        _check_sizes("values", known, values.shape, 1)


def _check_sizes(what: str, known: tuple[int | None, ...], sizes: Any, start: int) -> None:
    if len(known) > len(sizes):
        raise InvalidArgumentError(
            f"Shape mismatch: expected {what} rank at least {len(known)}, got {len(sizes)}"
        )
    for axis in range(start, len(known)):
        if known[axis] not in (None, sizes[axis]):
            raise InvalidArgumentError(
                f"Shape mismatch: expected {what} dim {axis} to be {known[axis]}, got {sizes[axis]}"
            )


_DTYPE = "dtype: numbertype"
_TO_MAKE = (
    _DTYPE,
    "shape: shape",
    "container: string = ''",
    "shared_name: string = ''",
    "reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
)

for _name, _handle in (
    ("ConditionalAccumulator", "Ref(string)"),
    ("ResourceConditionalAccumulator", "resource"),
    ("SparseConditionalAccumulator", "Ref(string)"),
):
    register_op(
        f"{_name}() -> handle: {_handle}",
        attrs=_TO_MAKE,
        shape_fn=shape_rule("-> [2]"),
        is_stateful=True,
        doc="An accumulator of gradients.",
    )

for _prefix, _handle in (("", "Ref(string)"), ("Resource", "resource")):
    _declare = partial(register_op, is_stateful=_handle == "resource")
    _declare(
        f"{_prefix}AccumulatorNumAccumulated(handle: {_handle}) -> num_accumulated: int32",
        shape_fn=scalar_shape,
        doc="How many gradients have been added since the last were taken.",
    )
    _declare(
        f"{_prefix}AccumulatorSetGlobalStep(handle: {_handle}, new_global_step: int64)",
        shape_fn=checked_no_outputs(".0"),
        doc="Sets the step before which gradients are stale.",
    )
    _declare(
        f"{_prefix}AccumulatorApplyGradient(handle: {_handle}, local_step: int64, gradient: dtype)",
        attrs=[_DTYPE],
        shape_fn=checked_no_outputs(".0"),
        doc="Adds a gradient, unless it is stale.",
    )
    _declare(
        f"{_prefix}AccumulatorTakeGradient(handle: {_handle}, num_required: int32) "
        "-> average: dtype",
        attrs=[_DTYPE],
        shape_fn=checked_unknown(".0"),
        doc="Takes the mean, or sum, of the gradients out; waits until there are enough.",
    )
register_op(
    "SparseAccumulatorApplyGradient(handle: Ref(string), local_step: int64, "
    "gradient_indices: int64, gradient_values: dtype, gradient_shape: int64)",
    attrs=[_DTYPE, "has_known_shape: bool"],
    shape_fn=unknown_from_scalars(1),
    doc="Adds rows of a gradient, unless it is stale.",
)
register_op(
    "SparseAccumulatorTakeGradient(handle: Ref(string), num_required: int32) "
    "-> indices: int64, values: dtype, shape: int64",
    attrs=[_DTYPE],
    shape_fn=unknown_from_scalars(1),
    doc="Takes the mean, or sum, of the rows out; waits until there are enough gradients.",
)


@register_kernel(
    "ConditionalAccumulator",
    "ResourceConditionalAccumulator",
    "SparseConditionalAccumulator",
    types={"dtype": (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)},
)
class ConditionalAccumulatorOp(ResourceOpKernel):
    """Makes an accumulator of gradients, or of rows of them."""

    resource_type = ConditionalAccumulatorBase

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")
        self.shape: PartialTensorShape = construction.get_attr("shape")
        self.is_mean: bool = construction.get_attr("reduction_type") == "MEAN"

    def create_resource(self, ctx: OpKernelContext) -> ConditionalAccumulatorBase:
        return _kind_of(self)(self.dtype, self.shape, self.info.name, self.is_mean)


def _kind_of(kernel: OpKernel) -> type[ConditionalAccumulatorBase]:
    """The kind of accumulators that a kernel uses."""
    is_sparse = kernel.type_string.startswith("Sparse")
    return SparseConditionalAccumulator if is_sparse else ConditionalAccumulator


def _scalar(ctx: OpKernelContext, name: str) -> int:
    tensor = ctx.input(name)
    require_scalar(tensor, f"Argument {name} must be scalar, but had bad shape {{}}")
    return int(tensor)


def _gradient_types(
    kernel: OpKernel, accumulator: ConditionalAccumulatorBase
) -> tuple[DataType, ...]:
    """The types of the tensors that a gradient is.

    Raises:
        InvalidArgumentError: the accumulator is of another kind than that of the kernel.
    """
    kind = _kind_of(kernel)
    if not isinstance(accumulator, kind):
        raise InvalidArgumentError(
            f"The handle names a {type(accumulator).__name__}, where a {kind.__name__} is expected"
        )
    if kind is ConditionalAccumulator:
        return (accumulator.dtype,)
    return DataType.DT_INT64, accumulator.dtype, DataType.DT_INT64


register_fact(
    "AccumulatorNumAccumulated",
    "ResourceAccumulatorNumAccumulated",
    of=ConditionalAccumulatorBase,
    fact=lambda accumulator: accumulator.num_accumulated,
)


@register_kernel("AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep")
class AccumulatorSetGlobalStep(InexpensiveKernel):
    """Sets the global step."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, ConditionalAccumulatorBase) as accumulator:
            accumulator.set_global_step(_scalar(ctx, "new_global_step"))


@register_kernel(
    "AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient", "SparseAccumulatorApplyGradient"
)
class AccumulatorApplyGradient(OpKernel):
    """Adds a gradient, or rows of one."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        name = "has_known_shape"
        self._has_shape = construction.has_attr(name) and construction.get_attr(name)

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, ConditionalAccumulatorBase) as accumulator:
            types = _gradient_types(self, accumulator)
            ctx.match_signature([self.input_types[0], DataType.DT_INT64, *types], [])
            gradient, *rows = ctx.inputs[2:]
            if rows:
                values, shape = rows
                gradient = SparseGradient(gradient, values, shape if self._has_shape else None)
            accumulator.apply_gradient(_scalar(ctx, "local_step"), gradient)


@register_kernel(
    "AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient", "SparseAccumulatorTakeGradient"
)
class AccumulatorTakeGradient(WaitingKernel[ConditionalAccumulatorBase]):
    """Takes the mean or sum out, or that of the rows."""

    resource_type = ConditionalAccumulatorBase

    def access(
        self, accumulator: ConditionalAccumulatorBase, ctx: OpKernelContext, done: Done
    ) -> None:
        types = _gradient_types(self, accumulator)
        ctx.match_signature(self.input_types, types)
        deliver = ctx.set_outputs_by_arg if len(types) > 1 else partial(ctx.set_output, 0)
        accumulator.take_gradient(_scalar(ctx, "num_required"), ctx, done, deliver)
