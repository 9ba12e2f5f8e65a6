"""The ops of optimisers: Apply and SparseApply, for references and for resources.

Variables, their slots and the gradient are of one shape. Kernels lock the variables, check the inputs, and let
the optimiser (`optimizers`) change them.

Source: TensorFlow core/ops/training_ops.cc, core/kernels/training_ops.cc, training_op_helpers.h.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
)
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    TensorRef,
    cut,
    handle_from_input,
    lookup_resource,
    shard,
)
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, ShapeHandle, register_op
from opkernel.ops.input_checks import require, require_equal, require_rank_at_least, require_vector
from opkernel.ops.optimizers import OPTIMIZERS, Optimizer
from opkernel.ops.registration import INDEX, register_kernel
from opkernel.ops.stable_order import stable_order
from opkernel.ops.variables.var import Var, change_all
from opkernel.types import DataType, TensorShape


def _held_shape(c: InferenceContext, index: int) -> ShapeHandle | None:
    """The shape of the variable that an input is a handle to, if it is known to be one."""
    held = c.input_handle_shapes_and_types(index)
    return held[0].shape if held and held[0].dtype != DataType.DT_INVALID else None


def _sparse_rows(c: InferenceContext, grad: ShapeHandle, indices: ShapeHandle) -> ShapeHandle:
    """The shape of a variable that has such a gradient for as many rows as there are indices."""
    indices = c.with_rank(indices, 1)
    require(c.rank(grad) != 0, "Argument grad must not be a scalar. Got grad with rank 0")
    c.merge(c.dim(indices, 0), c.dim(grad, 0))
    return c.replace_dim(grad, 0, None)


def step_shape(
    op: str, optimizer: Optimizer, *, resource: bool, sparse: bool
) -> OpShapeInferenceFn:
    """The shape function of a step: other inputs than variables and the gradient are scalars.

    Of a resource without handle data nothing is known. TensorFlow takes the gradients of the ops for
    resources for handles, too, so that they are never checked; but that of ApplyGradientDescent.
    """
    names = optimizer.inputs(sparse=sparse)
    if op.endswith("FtrlV2"):
        names.pop()  # TensorFlow does not check `lr_power` here
    # TensorFlow declares this one op for resources as if it were for references.
    is_handle = resource and op != "ResourceApplyProximalAdagrad"
    never_a_handle = "delta" if op.endswith("ApplyGradientDescent") else ""

    def tensor_shape(c: InferenceContext, index: int) -> ShapeHandle:
        held = _held_shape(c, index)
        if names[index] == never_a_handle or (held is None and not is_handle):
            return c.input(index)
        return c.unknown_shape() if held is None else held

    def shape_fn(c: InferenceContext) -> None:
        shape = tensor_shape(c, 0)
        for index, name in enumerate(names[1:], 1):
            if name in optimizer.variables or name in ("grad", "delta"):
                other = tensor_shape(c, index)
                if sparse and name == "grad":
                    other = _sparse_rows(c, other, c.input(index + 1))
                shape = c.merge(shape, other)
            elif name != "indices":
                c.with_rank(c.input(index), 0)
        if c.num_outputs() > 0:
            c.set_output(0, shape)

    return shape_fn


_TILE = 1 << 16
_TILED_FROM = 1 << 18
"""Elements: with smaller tiles threads wait for each other between the operations."""
_LONG_NAMES = {
    "l1": "l1 regularization strength",
    "l2": "l2 regularization strength",
    "l2_shrinkage": "l2 shrinkage regularization strength",
}


class ApplyOp(OpKernel):
    """Changes variables by the step of an optimiser, with a gradient of their shape."""

    sparse = False

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.optimizer = OPTIMIZERS[self.type_string.partition("Apply")[2]]
        self.dtype: DataType = construction.get_attr("T")
        self.names = self.optimizer.inputs(sparse=self.sparse)
        self.count = len(self.optimizer.variables)
        self.gradient = self.names.index("delta" if "delta" in self.names else "grad")
        self.bounded = self.optimizer.bounded in ("all", "sparse" if self.sparse else "all")
        self.scalars = [
            (index, name)
            for index, name in enumerate(self.names[self.count :], self.count)
            if index != self.gradient and name != "indices"
        ]
        self.attrs = {name: construction.get_attr(name) for name in self.optimizer.attrs}

    def compute(self, ctx: OpKernelContext) -> None:
        held: list[Var] = []
        try:
            refs = [self._variable(ctx, index, held) for index in range(self.count)]
            change_all(refs, lambda arrays: self._change([*arrays, *ctx.inputs[self.count :]]))
        finally:
            for variable in held:
                variable.unref()

    def _change(self, tensors: list[Any]) -> None:
        self.check(tensors)
        self.apply(tensors)

    def _variable(self, ctx: OpKernelContext, index: int, held: list[Var]) -> TensorRef:
        """The variable that an input refers to; one that is to be given up goes to `held`.

        Raises:
            FailedPreconditionError: it was not assigned a value.
            InternalError: there is no such resource.
            InvalidArgumentError: it is of another type than the gradient.
        """
        if self.input_types[index].is_ref:
            ref = ctx.input_ref(index)
            if index == 0:
                ctx.set_output_ref(0, ref)
            initialized = ref.is_initialized
        else:
            variable = self._resource(ctx, index)
            held.append(variable)
            ref, initialized = variable.tensor_ref, variable.is_initialized
        if not initialized:
            name = self.requested_input(index)
            raise FailedPreconditionError(
                f"Attempting to use uninitialized variables: {name}", resource=name
            )
        return ref

    def _resource(self, ctx: OpKernelContext, index: int) -> Var:
        handle = handle_from_input(ctx.input(index))
        try:
            variable = lookup_resource(ctx, handle, Var)
        except NotFoundError:
            raise InternalError(
                f"Invalid variable reference: {self.names[index]}", resource=handle.name
            ) from None
        if variable.dtype != self.dtype:
            variable.unref()
            raise InvalidArgumentError(
                f"{self.names[index]} is a variable of {variable.dtype.string}, the gradient is of {self.dtype.string}"
            )
        return variable

    def check(self, tensors: list[Any]) -> None:
        """Raise InvalidArgumentError unless the inputs have shapes that fit and values in bounds."""
        for index in range(1, self.count):
            self._check_same_shape(self.names[index], tensors[0], tensors[index])
        for index, name in self.scalars:
            if tensors[index].ndim:
                raise InvalidArgumentError(
                    f"{_LONG_NAMES.get(name, name)} is not a scalar: {TensorShape(tensors[index].shape)}"
                )
            if self.bounded:
                self._check_bounds(name, tensors[index])
        self.check_gradient(tensors)

    def _check_bounds(self, name: str, value: Any) -> None:
        if name == "lr_power":
            allowed, fits = "non-positive", value <= 0
        elif name != "lr" or self.attrs.get("multiply_linear_by_lr"):
            allowed, fits = "non-negative", value >= 0
        else:
            allowed, fits = "positive", value > 0
        if not fits:
            raise InvalidArgumentError(
                f"{_LONG_NAMES.get(name, name)} is not a {allowed} scalar: {value}"
            )

    def check_gradient(self, tensors: list[Any]) -> None:
        """Raise InvalidArgumentError unless the gradient is for these variables."""
        self._check_same_shape(self.names[self.gradient], tensors[0], tensors[self.gradient])

    def _check_same_shape(self, name: str, var: Any, tensor: Any) -> None:
        require_equal(
            var.shape, tensor.shape, f"var and {name} do not have the same shape{{}} {{}}"
        )

    def apply(self, tensors: list[Any]) -> None:
        """Change the variables; large ones a tile at a time, which takes no fresh memory."""
        size = tensors[0].size
        if size < _TILED_FROM or not all(
            array.flags.c_contiguous for array in tensors[: self.count]
        ):
            self.optimizer.step(*tensors, **self.attrs)
            return
        arrays = [*range(self.count), self.gradient]
        flat = [tensors[index].reshape(-1) for index in arrays]

        def step(tile: slice) -> None:
            values = [*tensors]
            for index, array in zip(arrays, flat, strict=True):
                values[index] = array[tile]
            self.optimizer.step(*values, **self.attrs)

        shard(step, cut(size, -(-size // _TILE)))


class SparseApplyOp(ApplyOp):
    """Changes rows of variables, with a gradient for the row of each index.

    A row whose index comes several times goes through so many steps.
    """

    sparse = True

    def check_gradient(self, tensors: list[Any]) -> None:
        var, grad, indices = tensors[0], tensors[self.gradient], tensors[self.gradient + 1]
        require_rank_at_least(var, 1, "var must be at least 1 dimensional")
        require_vector(indices, "indices must be one-dimensional")
        if grad.ndim != var.ndim:
            raise InvalidArgumentError(
                f"var and grad must have as many dimensions: {TensorShape(var.shape)} {TensorShape(grad.shape)}"
            )
        for axis in range(1, var.ndim):
            if var.shape[axis] != grad.shape[axis]:
                raise InvalidArgumentError(f"var and grad must match in dimension {axis}")
        require_equal(
            len(grad), len(indices), "grad must be the same size as indices in the first dimension."
        )
        if not self.optimizer.empty_rows and 0 in var.shape[1:]:
            raise InvalidArgumentError("Inner dimension should be greater than zero.")
        bad = (indices < 0) | (indices >= len(var))
        if bad.any():
            at = int(np.argmax(bad))
            raise InvalidArgumentError(
                f"Index {indices[at]} at offset {at} in indices is out of range"
            )

    def apply(self, tensors: list[Any]) -> None:
        variables, indices = tensors[: self.count], tensors.pop(self.gradient + 1)
        rows, places, rounds = _rounds(indices)
        changed, grad = [one[rows] for one in variables], tensors[self.gradient][places]
        for start, end in in_time(rounds, SLOW, "applying gradients"):
            values = [*(one[: end - start] for one in changed), *tensors[self.count :]]
            values[self.gradient] = grad[start:end]
            self.optimizer.step(*values, **self.attrs)
        for variable, new in zip(variables, changed, strict=True):
            variable[rows] = new


def _rounds(indices: Any) -> tuple[Any, Any, Iterator[tuple[int, int]]]:
    """The indices that differ; places in `indices`; and rounds, within which no index comes twice.

    The rounds are slices of the places: of those where an index comes first, then of those where one comes again.
    The indices are in falling order of how often they come, so that each round is of the first ones.
    """
    order = stable_order(indices)
    ordered = indices[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    counts = np.diff(starts, append=len(ordered))
    turns = np.arange(len(order)) - np.repeat(starts, counts)
    by_count = stable_order(-counts)
    ranks = np.empty_like(by_count)
    ranks[by_count] = np.arange(len(by_count))
    places = order[np.lexsort((np.repeat(ranks, counts), turns))]
    ends = np.cumsum(np.bincount(turns)).tolist()
    return ordered[starts[by_count]], places, pairwise([0, *ends])


_TYPES_OF_INPUTS = {"indices": "Tindices", "global_step": "int64"}


def _register(name: str, optimizer: Optimizer, *, resource: bool, sparse: bool) -> None:
    variables = optimizer.variables
    variable_type = "resource" if resource else "Ref(T)"
    types: dict[str, tuple[DataType, ...]] = {"T": optimizer.types}
    if sparse:
        types = {"T": optimizer.sparse_types, "Tindices": INDEX}
    op = f"{'Resource' * resource}{'Sparse' * sparse}Apply{name}"
    register_op(
        op,
        inputs=[
            f"{arg}: {variable_type if arg in variables else _TYPES_OF_INPUTS.get(arg, 'T')}"
            for arg in optimizer.inputs(sparse=sparse)
        ],
        outputs=[] if resource else ["out: Ref(T)"],
        attrs=[
            "T: numbertype",
            *(["Tindices: {int32, int64}"] * sparse),
            "use_locking: bool = false",
            *(f"{attr}: bool = {str(value).lower()}" for attr, value in optimizer.attrs.items()),
        ],
        shape_fn=step_shape(op, optimizer, resource=resource, sparse=sparse),
        is_stateful=resource,
        doc=f"A step of {name} {'on some rows of' * sparse or 'on'} `var` and its slots.",
    )
    register_kernel(op, types=types, host_memory=variables if resource else [])(
        SparseApplyOp if sparse else ApplyOp
    )


for _name, _optimizer in OPTIMIZERS.items():
    for _resource in (True, False) if _optimizer.references else (True,):
        _register(_name, _optimizer, resource=_resource, sparse=False)
        if _optimizer.sparse_types:
            _register(_name, _optimizer, resource=_resource, sparse=True)
