"""Kernels that keep to a budget; `create_op_kernel` makes them where memory or time is limited.

Before such a kernel computes, the shape function of its op says how large the outputs will be, given
the shapes and values of the inputs. Outputs that are too large are refused before anything is allocated.
A kernel itself checks outputs whose size the shape function cannot tell (`check_allocation`). Outputs
are counted until they are collected. Plans call these functions instead of the kernel's own, so that
kernels without a limit pay nothing.

How much a kernel has to do is estimated. `work_of` is a guess that is high rather than low; constant folding, work that
the user did not ask for, goes by it. `least_seconds` is low rather than high; steps that have little time left go by it.
Nothing interrupts NumPy, so that functions of large arrays compute piece by piece, and look at the clock between pieces.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial, update_wrapper
from sys import getsizeof
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.allocation import allocate
from opkernel.device.budget import Budget, check_time, current_budget, owner_of
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import DeadlineExceededError
from opkernel.kernel.context.declared_outputs import flat_outputs
from opkernel.kernel.context.inputs import TensorRef
from opkernel.kernel.context.op_kernel_context import OpKernelContext, compute_and
from opkernel.kernel.contract import KernelContract
from opkernel.kernel.function_kernel import FunctionKernel, forward_input
from opkernel.kernel.op_kernel import OpKernel
from opkernel.opdef import InferenceContext, OpTraits, ShapeHandle
from opkernel.opdef.core.op_def_builder import OpRegistrationData
from opkernel.records import replace
from opkernel.types import MAX_DIMENSIONS, TensorShape, as_dtype

_MOST_PER_SECOND = 1.5e11 * (os.cpu_count() or 1)
"""The most multiplications that the processors do in a second."""

_MOST_SORTED_PER_SECOND = 1e9

COSTS_WITH_LEAST_SECONDS = frozenset({"product", "sort"})
"""The costs of ops (`OpTraits.cost`) that take a time which is known to be the least."""

_OF_CALL = 1 << 14
_OF_ELEMENT = 8
_OF_ITERATION = 1000


def work_of(traits: OpTraits, inputs: Sequence[Any], outputs: int) -> int:
    """The work of an op's kernel in about a billionth of a second, for so many elements of outputs."""
    sizes = [int(np.size(value)) for value in inputs]
    elements = sum(sizes) + outputs
    if traits.cost == "series":
        work = elements * _OF_ITERATION
    elif traits.is_linear:
        work = elements * _OF_ELEMENT
    elif traits.cost == "product":
        work = math.isqrt(math.prod(sizes) * max(outputs, 1)) + elements * _OF_ELEMENT
    elif traits.cost == "convolution" and len(inputs) > 1:
        work = outputs * max(sizes[1], 1) // max(np.shape(inputs[1])[-1:] or (1,))
    else:  # it may compare all with all
        work = elements * elements
    return _OF_CALL + work


def least_seconds(traits: OpTraits, inputs: Sequence[Any]) -> float:
    """The time that a product or a sort of these inputs takes at least; 0 for other ops."""
    if traits.cost == "sort":
        return max([int(np.size(value)) for value in inputs], default=0) / _MOST_SORTED_PER_SECOND
    if traits.cost != "product" or len(inputs) != 2:
        return 0
    a, b = map(np.shape, inputs)
    shared = max({*a[-2:]} & {*b[-2:]}, default=1)  # the most that may be summed over
    number = math.prod(a) * math.prod(b) / max(shared * math.prod(a[:-2]), 1)
    return number / _MOST_PER_SECOND


_PIECE = 1 << 18
"""Elements of a piece."""


def may_go_in_pieces(kernel: FunctionKernel, claims: KernelContract) -> bool:
    """Whether a kernel with these claims may be computed piece by piece."""
    is_right = claims.elementwise and claims.outputs_as_declared and kernel.num_outputs == 1
    return is_right and not any(arg.is_list for arg in kernel.properties.input_args)


def computed_in_pieces(
    function: Callable[..., Any],
    claims: KernelContract,
    inputs: Sequence[Any],
    check: Callable[[], None],
) -> Any:
    """What the function of a kernel gives; of large inputs, piece by piece.

    Args:
        function: The function.
        claims: The claims of the kernel, which `may_go_in_pieces`.
        inputs: The inputs.
        check: Called between pieces.
    """
    shape = _common_shape([value.shape for value in inputs], claims.same_shapes)
    if shape is None:  # the kernel tells the error
        return function(*inputs)
    return _computed(function, inputs, shape, check)


def in_pieces(function: Callable[..., Any], *arrays: Any) -> Any:
    """What an element-wise function gives for arrays that are broadcast: of large ones, piece by piece.

    So the memory that the function works in stays small, and the clock is looked at.
    """
    shape = np.broadcast_shapes(*[array.shape for array in arrays])
    return _computed(function, arrays, shape, partial(check_time, "computing elements"))


def _computed(
    function: Callable[..., Any],
    arrays: Sequence[Any],
    shape: tuple[int, ...],
    check: Callable[[], None],
) -> Any:
    if math.prod(shape) <= _PIECE:
        return function(*arrays)
    whole = [np.broadcast_to(array, shape) for array in arrays]
    first, *others = _pieces(shape)
    piece = function(*[array[first] for array in whole])
    result = allocate(shape, as_dtype(piece.dtype))
    result[first] = piece
    for place in others:
        check()
        result[place] = function(*[array[place] for array in whole])
    return result


def _common_shape(shapes: Sequence[tuple[int, ...]], needs_one: bool) -> tuple[int, ...] | None:
    if len({*shapes}) == 1:
        return shapes[0]
    if needs_one:
        return None
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _pieces(shape: tuple[int, ...]) -> Sequence[tuple[slice, ...]]:
    """Parts of an array, along its longest dimension."""
    axis = max(range(len(shape)), key=shape.__getitem__)
    row = max(math.prod(shape) // max(shape[axis], 1), 1)
    rows = max(_PIECE // row, 1)
    before = (slice(None),) * axis
    return [(*before, slice(start, start + rows)) for start in range(0, shape[axis], rows)]


def by_rows(function: Callable[[Any], Any], rows: Any) -> Any:
    """What a function gives for the rows `[n, ...]` of a large array: some rows at a time.

    So the memory that the function works in stays small, and the clock is looked at.

    Args:
        function: Makes of rows one array, or several in a tuple, with as many rows.
        rows: The rows.
    """
    of_one = max(rows.size // max(len(rows), 1), 1)
    step = max(_PIECE // of_one, 1)
    if len(rows) <= 2 * step:
        return function(rows)
    starts = in_time(range(0, len(rows), step), SLOW, "computing rows")
    results: list[Any] = []
    for start in starts:
        part = function(rows[start : start + step])
        parts = part if isinstance(part, tuple) else (part,)
        if not results:
            results = [np.empty((len(rows), *one.shape[1:]), one.dtype) for one in parts]
        for result, one in zip(results, parts, strict=True):
            result[start : start + step] = one
    return tuple(results) if isinstance(part, tuple) else results[0]


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

    def compute_bounded(ctx: OpKernelContext, *done: Callable[[], None]) -> None:
        budget = current_budget()
        if budget is None:
            compute(ctx, *done)
            return
        inputs = list(ctx.inputs)
        sizes.check(budget, inputs)
        compute_and(ctx, compute, lambda: _hold(budget, inputs, ctx.outputs), *done)

    vars(kernel).update({name: compute_bounded, "shortcut": lambda run: run})
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
    goes_in_pieces = may_go_in_pieces(kernel, claims)
    kernel.contract = replace(claims, elementwise=False, same_shapes=False, takes_out=False)

    def of(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            budget = current_budget()
            if budget is None:
                return function(*arguments)
            inputs: list[Any] = []
            for arg, argument in zip(args, arguments, strict=True):
                inputs += argument if arg.is_list else (argument,)
            sizes.check(budget, inputs)
            if goes_in_pieces and budget.deadline is not None:
                check = partial(budget.check_time, "running", kernel.name)
                result = computed_in_pieces(function, claims, arguments, check)
            else:
                result = function(*arguments)
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
