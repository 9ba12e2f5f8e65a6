"""Batch and BatchFunction: the calls of several steps are joined, and computed at once.

All calls have one priority: a process has no requests of lower ones. So the attrs of low priority have no effect.

Source: TensorFlow core/ops/batch_ops.cc, core/kernels/batch_kernels.cc,
core/kernels/batching_util/batch_resource_base.cc.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from opkernel.errors import (
    CancelledError,
    InternalError,
    InvalidArgumentError,
    OpError,
    as_op_error,
)
from opkernel.kernel import (
    FunctionRunOptions,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
)
from opkernel.opdef import InferenceContext, register_op, unknown_shape
from opkernel.ops.batching.batch_scheduler import BatchScheduler, QueueOptions
from opkernel.ops.batching.batched_calls import (
    BatchedCall,
    Part,
    batched_inputs,
    joined_inputs,
    split_outputs,
)
from opkernel.ops.data_flow.waiting import Done, WaitingKernel
from opkernel.ops.function_ops import CalledFunction
from opkernel.ops.input_checks import int32_attr, require
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import container_of
from opkernel.types import DataType

_UNBOUNDED = 1 << 62
_ADAPTIVE_THREADS = 64
"""So many batches are processed at once where the attrs leave that to the system."""


def _batch_shape(c: InferenceContext) -> None:
    """All inputs with more rows; which call each row came from, and the id of the call."""
    batched = [c.replace_dim(shape, 0, None) for shape in c.input("in_tensors")]
    c.set_output("batched_tensors", batched)
    c.set_output("id", c.scalar())
    c.set_output("batch_index", c.matrix(None, 3))


_SIZES = ["num_batch_threads: int", "max_batch_size: int"]
_NAMES = ["container: string = ''", "shared_name: string = ''", "batching_queue: string = ''"]
_QUEUE = ["max_enqueued_batches: int = 10", "batch_timeout_micros: int"]

BATCH = register_op(
    "Batch(in_tensors: T) -> batched_tensors: T, batch_index: int64, id: int64",
    attrs=[
        *_SIZES,
        *_QUEUE,
        "allowed_batch_sizes: list(int) = []",
        "grad_timeout_micros: int",
        *_NAMES,
        "T: list(type) >= 1",
    ],
    shape_fn=_batch_shape,
    is_distributed_communication=True,
    doc="""
    Joins the inputs of several steps. The last step of a batch gets all rows, and the others get no rows.

    batched_tensors: the rows of the batch.
    batch_index: [n, 3]: the id of each step, and where its rows begin and end.
    id: the id of the step.
    """,
)
BATCH_FUNCTION = register_op(
    "BatchFunction(in_tensors: Tin, captured_tensors: Tcaptured) -> out_tensors: Tout",
    attrs=[
        "f: func",
        *_SIZES,
        *reversed(_QUEUE),
        "allowed_batch_sizes: list(int) = []",
        *_NAMES,
        "low_priority_max_batch_size: int = 0",
        "low_priority_batch_timeout_micros: int = 0",
        "low_priority_allowed_batch_sizes: list(int) = []",
        "low_priority_max_enqueued_batches: int = 0",
        (
            "mixed_priority_policy: {'low_priority_padding_with_max_batch_size', "
            "'low_priority_padding_with_next_allowed_batch_size', 'priority_isolation', 'priority_merge'} "
            "= 'low_priority_padding_with_max_batch_size'"
        ),
        "batch_padding_policy: {'PAD_UP', 'BATCH_DOWN', 'MINIMIZE_TPU_COST_PER_REQUEST'} = 'PAD_UP'",
        "Tin: list(type) >= 1",
        "Tcaptured: list(type) >= 0",
        "Tout: list(type) >= 1",
        "enable_large_batch_splitting: bool = false",
    ],
    shape_fn=unknown_shape,
    is_distributed_communication=True,
    doc="""
    Calls `f` with the rows of several steps, and gives each step the rows of the results that are its own.

    in_tensors: rows, which are joined.
    captured_tensors: further arguments, of which those of the last step of a batch count.
    """,
)


class BatchResource(ResourceBase):
    """The queues that nodes of one shared name share; the attrs of the first one count.

    Args:
        num_threads: So many batches are processed at once.
        options: How the queues join calls.
        allowed: The numbers of rows that batches are padded to.

    Raises:
        InvalidArgumentError: an option is out of range.
    """

    def __init__(self, num_threads: int, options: QueueOptions, allowed: Sequence[int]) -> None:
        require(num_threads > 0, f"num_batch_threads must be positive; was {num_threads}")
        limit = options.max_task_rows
        require(limit, f"input_batch_size_limit must be positive; was {limit}")
        micros = options.timeout_s * 1e6
        require(micros >= 0, f"batch_timeout_micros must be non-negative; was {micros:.0f}")
        self.allowed = allowed
        self.scheduler = BatchScheduler(num_threads, options, self.process)

    def debug_string(self) -> str:
        """A description."""
        return type(self).__name__

    def process(self, parts: list[Part]) -> None:
        """Process a batch. If the step ends under which it runs, the others run again without that step."""
        while parts := [part for part in parts if not part.call.is_over]:
            last = parts[-1].call
            try:
                last.context.copy().run(self.run, parts)
                return
            except BaseException as error:  # whatever it is, steps wait for their results
                failure = _status(error)
            if last.has_ended():
                last.fail(failure)
                continue
            for part in parts:
                part.call.fail(failure)
            return

    def run(self, parts: list[Part]) -> None:
        """Give the rows to the last call, and no rows to the others."""
        *others, last = [part.call for part in parts]
        ends = np.cumsum([part.rows for part in parts], dtype=np.int64)
        starts = [0, *ends[:-1]]
        index = np.stack([np.array([part.call.guid for part in parts]), starts, ends], axis=1)
        joined = joined_inputs(parts, self.allowed)
        if not last.finish([*joined, index.astype(np.int64), np.int64(last.guid)]):
            raise CancelledError("The step that was to get the batch was cancelled")
        for part, call in zip(parts, others, strict=False):
            none = [one[:0].copy() for one in part.inputs]
            call.finish([*none, np.zeros((0, 3), np.int64), np.int64(call.guid)])


class BatchFunctionResource(BatchResource):
    """Queues whose batches a function computes."""

    def run(self, parts: list[Part]) -> None:
        """Call the function with all rows, and give each call its own."""
        joined = joined_inputs(parts, self.allowed)
        last = parts[-1].call
        assert isinstance(last, FunctionCall)
        outputs = last.function([*joined, *last.ctx.input_list("captured_tensors")])
        if len(outputs) != last.ctx.num_outputs:
            raise InternalError("Wrong number of batched output tensors")
        split = split_outputs(outputs, parts, len(joined[0]))
        for part, rows in zip(parts, split, strict=True):
            part.report(rows)


class FunctionCall(BatchedCall):
    """A call with the function that its batch calls if it is the last one of the batch."""

    def __init__(
        self, ctx: OpKernelContext, done: Done, function: Callable[[list[Any]], Sequence[Any]]
    ) -> None:
        super().__init__(ctx, done)
        self.function = function


def _status(error: BaseException) -> OpError:
    if isinstance(error, Exception):
        return as_op_error(error)
    return InternalError(f"{type(error).__name__}: {error}")


class Batch(WaitingKernel[BatchResource]):
    """Puts its inputs into a queue."""

    resource_type: ClassVar[type[BatchResource]] = BatchResource
    splits = False

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr

        def number(name: str) -> int:
            return int32_attr(name, get(name))

        self.queue: str = get("batching_queue")
        self.num_threads = number("num_batch_threads")
        self._timeout_s = number("batch_timeout_micros") / 1e6
        self._max_rows = _limit(number("max_batch_size"))
        self._max_enqueued = _limit(number("max_enqueued_batches"))
        self._allowed: list[int] = get("allowed_batch_sizes")

    def check_allowed_sizes(self) -> None:
        """Raise InvalidArgumentError unless the allowed sizes grow, and end with that of the largest batch."""
        allowed = self._allowed
        grows = all(a < b for a, b in itertools.pairwise(allowed))
        require(grows, "allowed_batch_sizes entries must be monotonically increasing")
        if allowed and not self.splits and allowed[-1] != self._max_rows:
            raise InvalidArgumentError(
                "final entry in allowed_batch_sizes must equal max_batch_size when "
                "enable_large_batch_splitting is False"
            )

    def find(self, ctx: OpKernelContext) -> BatchResource:
        """The queues of the shared name, which are made if need be."""
        info = container_of(self, ctx)
        size = self._allowed[-1] if self.splits and self._allowed else self._max_rows
        options = QueueOptions(
            max_task_rows=self._max_rows,
            max_batch_rows=size,
            timeout_s=self._timeout_s,
            max_enqueued_batches=self._max_enqueued,
            splits=self.splits,
        )
        make = partial(self.resource_type, self.num_threads, options, self._allowed)
        manager = info.resource_manager
        return manager.lookup_or_create(info.container, info.name, self.resource_type, make)

    def access(self, resource: BatchResource, ctx: OpKernelContext, done: Done) -> None:
        """Join a batch; calls without rows get outputs without any."""
        inputs = batched_inputs(ctx)
        if not len(inputs[0]):
            for index, dtype in enumerate(self.output_types):
                ctx.set_output(index, np.zeros(0, dtype.numpy_dtype))
            done()
            return
        call = self.call(ctx, done)
        call.cancel_with_step(lambda: resource.scheduler.discard(lambda part: part.call is call))
        try:
            resource.scheduler.schedule(Part(call, inputs), self.queue)
        except OpError as error:
            call.fail(error)

    def call(self, ctx: OpKernelContext, done: Done) -> BatchedCall:
        """The call of a computation."""
        return BatchedCall(ctx, done)


def _limit(value: int) -> int:
    """A number as TensorFlow takes it: negative ones are as good as none."""
    return value if value >= 0 else _UNBOUNDED


@register_kernel(BATCH)
class PlainBatch(Batch):
    """Joins calls, which other nodes of the last step compute."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.check_allowed_sizes()


@register_kernel(BATCH_FUNCTION)
@register_kernel(
    BATCH_FUNCTION,
    device="DEFAULT",
    host_memory=["in_tensors", "captured_tensors", "out_tensors"],
)
class BatchFunction(Batch):
    """Joins calls of a function."""

    resource_type = BatchFunctionResource

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._called = CalledFunction(construction.get_attr("f"))
        self.splits = construction.get_attr("enable_large_batch_splitting")
        self.check_allowed_sizes()
        name = "_enable_adaptive_scheduler"
        is_adaptive = construction.has_attr(name) and construction.get_attr(name)
        if is_adaptive or self.num_threads <= 0:
            self.splits, self.num_threads = True, _ADAPTIVE_THREADS
            shared = construction.get_attr("shared_name")
            self.queue = f"{construction.node_def.name}/{shared}{self.queue}"
        if DataType.DT_RESOURCE in construction.get_attr("Tin"):
            raise InvalidArgumentError("BatchFunction cannot take resource inputs")

    def call(self, ctx: OpKernelContext, done: Done) -> BatchedCall:
        """The call with the function, which runs as a part of its step."""
        library, handle = self._called.found(ctx)
        options = FunctionRunOptions(step=ctx.step, create_rendezvous=True)
        return FunctionCall(ctx, done, partial(library.run, options, handle))
