"""Kernels that keep to a budget; `create_op_kernel` makes them where memory is limited.

Before such a kernel computes, the shape function of its op says how large the outputs will be, given
the shapes and values of the inputs. Outputs that are too large are refused before anything is allocated.
A kernel itself checks outputs whose size the shape function cannot tell (`check_allocation`). Outputs
are counted until they are collected. Plans call these functions instead of the kernel's own, so that
kernels without a limit pay nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial, update_wrapper
from sys import getsizeof
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.budget import Budget, current_budget, owner_of
from opkernel.device.work_clock import in_time
from opkernel.errors import DeadlineExceededError, OpError
from opkernel.kernel.context.declared_outputs import flat_outputs
from opkernel.kernel.context.op_kernel_context import OpKernelContext
from opkernel.kernel.context.tensor_ref import TensorRef
from opkernel.kernel.function_kernel import FunctionKernel, forward_input
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.pieces import may_go_in_pieces, piecewise
from opkernel.kernel.work import work_of
from opkernel.opdef import InferenceContext, ShapeHandle
from opkernel.opdef.core.op_def_builder import OpRegistrationData
from opkernel.records import replace
from opkernel.types import MAX_DIMENSIONS, TensorShape

_INT64_MAX = 2**63 - 1
_OF_OUTPUT = 1 << 12
"""The work that finding the size of an output is."""

_MOST_KNOWN = 64
"""The most combinations of input shapes whose output sizes a kernel remembers."""


def bounded(kernel: OpKernel, registration: OpRegistrationData) -> OpKernel:
    """The kernel, bound to the budget of the thread that runs it; it makes no claim that would avoid it."""
    if kernel.const_tensor is not None:
        budget = current_budget()
        if budget is not None:
            _hold(budget.lasting, [], [kernel.const_tensor])
        return kernel
    if isinstance(kernel, FunctionKernel):
        if kernel.function is not forward_input:
            _bind_function(kernel, registration)
        return kernel
    sizes = _OutputSizes(kernel, registration)
    name = "compute" if kernel.as_async() is None else "compute_async"
    compute = getattr(kernel, name)

    def compute_bounded(ctx: OpKernelContext, *done: Callable[[], None]) -> Any:
        budget = current_budget()
        if budget is None:
            return compute(ctx, *done)
        inputs = list(ctx.inputs)
        sizes.check(budget, inputs)
        if done:
            return compute(ctx, _holding(budget, inputs, ctx, *done))
        result = compute(ctx)
        _hold(budget, inputs, ctx.outputs)
        return result

    vars(kernel).update({name: compute_bounded, "shortcut": _no_shortcut})
    return kernel


class KnownOutputs(NamedTuple):
    """The known part of the new memory that the outputs of a kernel take.

    Attributes:
        num_bytes: All together.
        elements: How many elements they have.
        what: The largest of them.
    """

    num_bytes: int
    elements: int
    what: str


def known_outputs(
    kernel: OpKernel, shapes: Iterable[tuple[int, ...] | None], *, are_views: bool = True
) -> KnownOutputs:
    """The memory of outputs of these shapes; unknown ones count nothing.

    With `are_views`, outputs that may share memory with inputs count nothing, either.
    """
    claimed = kernel.contract.may_alias if are_views else None
    aliases = {output for output, _ in claimed} if isinstance(claimed, frozenset) else set()
    found: list[bool] = []
    for arg in kernel.properties.output_args:
        found += [claimed is True or arg.name in aliases] * (arg.stop - arg.start)
    num_bytes = elements = largest = 0
    what = ""
    for shape, dtype, kind, is_alias in zip(
        shapes, kernel.output_types, kernel.output_dtypes, found, strict=True
    ):
        if shape is None or dtype.is_ref:
            continue
        count = math.prod(shape)
        size = 0 if is_alias else count * kind.itemsize
        num_bytes, elements = num_bytes + size, elements + count
        if size > largest:
            largest = size
            what = f"tensor with shape{list(shape)} and type {dtype.string}"
    return KnownOutputs(num_bytes, elements, what)


_NOTHING = KnownOutputs(0, 0, "")


def _bind_function(kernel: FunctionKernel, registration: OpRegistrationData) -> None:
    sizes, args = _OutputSizes(kernel, registration), kernel.properties.input_args
    claims = kernel.contract
    kernel.contract = replace(claims, elementwise=False, same_shapes=False, takes_out=False)

    def of(function: Callable[..., Any]) -> Callable[..., Any]:
        in_pieces = None
        if may_go_in_pieces(kernel, claims):
            in_pieces = piecewise(claims, function)

        def call(*arguments: Any) -> Any:
            budget = current_budget()
            if budget is None:
                return function(*arguments)
            inputs: list[Any] = []
            for arg, argument in zip(args, arguments, strict=True):
                inputs += argument if arg.is_list else (argument,)
            sizes.check(budget, inputs)
            if in_pieces is None or budget.deadline is None:
                result = function(*arguments)
            else:
                result = in_pieces(arguments, partial(budget.check_time, "running", kernel.name))
            _hold(budget, inputs, flat_outputs(kernel, result))
            return result

        return update_wrapper(call, function)

    is_checked = kernel.function is not kernel.unchecked
    function = kernel.unchecked = of(kernel.unchecked)
    kernel.function = of(kernel.function) if is_checked else function


class _OutputSizes:
    """How much memory the outputs of a kernel will take.

    State: `_known` are the sizes by the shapes of the inputs, where values do not decide.
    """

    def __init__(self, kernel: OpKernel, registration: OpRegistrationData) -> None:
        self._kernel = kernel
        self._registration = registration
        self._known: dict[tuple[Any, ...], KnownOutputs] = {}

    def check(self, budget: Budget, inputs: Sequence[Any]) -> None:
        """Raise if no time is left, if the outputs need too much memory, or if the work is too much."""
        budget.check_time("running", self._kernel.name)
        known = self._of(inputs)
        if known.num_bytes:
            budget.check_memory(known.num_bytes, known.what)
        if budget.counts_work:
            budget.spend(work_of(self._registration.traits, inputs, known.elements))

    def _are_views(self, inputs: Sequence[Any]) -> bool:
        """Whether outputs that may be memory of inputs are."""
        traits = self._registration.traits
        if traits.mostly_copies:
            return False
        return not traits.reshapes or not inputs or inputs[0].flags.c_contiguous

    def _of(self, inputs: Sequence[Any]) -> KnownOutputs:
        shapes = tuple([getattr(value, "shape", None) for value in inputs])
        known = None if self._registration.traits.reshapes else self._known.get(shapes)
        if known is not None:
            return known
        kernel, infer = self._kernel, self._registration.shape_inference_fn
        try:
            context = InferenceContext(
                self._registration.op_def,
                kernel.node_def,
                shapes,
                input_tensors=[value if hasattr(value, "dtype") else None for value in inputs],
                graph_def_version=kernel.graph_def_version,
            )
            if infer is not None:
                infer(context)
            found = [_sizes(shape) for shape in in_time(context.outputs(), _OF_OUTPUT)]
            known = known_outputs(kernel, found, are_views=self._are_views(inputs))
        except DeadlineExceededError:
            raise
        except Exception:  # the kernel reports faults of its inputs
            return _NOTHING
        if not context.requests and len(self._known) < _MOST_KNOWN:
            self._known[shapes] = known
        return known


def _sizes(shape: ShapeHandle | None) -> tuple[int, ...] | None:
    """The sizes of a shape; None where one is not known."""
    if shape is None or shape.dims is None:
        return None
    sizes = tuple([dim.value for dim in shape.dims])
    if -1 in sizes:
        return None
    is_right = len(sizes) <= MAX_DIMENSIONS and math.prod(sizes) <= _INT64_MAX
    return sizes if is_right else tuple(TensorShape(sizes))  # the error


def _no_shortcut(run: Callable[..., Any]) -> Callable[..., Any]:
    return run


def _holding(
    budget: Budget, inputs: Sequence[Any], ctx: OpKernelContext, done: Callable[[], None]
) -> Callable[[], None]:
    """Counts the outputs of an asynchronous kernel once it is done."""

    def finished() -> None:
        try:
            _hold(budget, inputs, ctx.outputs)
        except OpError as error:  # belongs to the step
            ctx.set_status(error)
        done()

    return finished


def _hold(budget: Budget, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Count the memory of outputs beside the memory of the inputs."""
    if budget.memory_limit_bytes is None:
        return
    given = {id(owner_of(value)) for value in inputs}
    for output in outputs:
        tensor = output.tensor if isinstance(output, TensorRef) else output
        owner = owner_of(tensor)
        if owner is not None and id(owner) not in given and not budget.counts(owner):
            budget.hold(tensor, _bytes_of_strings(tensor, inputs))


def _bytes_of_strings(tensor: Any, inputs: Sequence[Any]) -> int:
    """The bytes of a tensor's strings that are not strings of the inputs."""
    if not _has_objects(tensor):
        return 0
    addresses, places = np.unique(_addresses(tensor), return_index=True)
    for value in filter(_has_objects, inputs):
        is_new = np.isin(addresses, _addresses(value), invert=True)
        addresses, places = addresses[is_new], places[is_new]
    items = tensor.reshape(-1)[places]
    return sum(getsizeof(item) for item in items if type(item) is bytes)


def _has_objects(tensor: Any) -> bool:
    return bool(getattr(getattr(tensor, "dtype", None), "hasobject", False))


def _addresses(tensor: Any) -> Any:
    return np.fromiter(map(id, tensor.flat), np.int64, tensor.size)
