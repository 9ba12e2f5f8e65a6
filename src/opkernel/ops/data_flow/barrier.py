"""Barrier: values of one key, which come one by one, leave together.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/barrier_ops.cc.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import InferenceContext, register_op, unknown_shape
from opkernel.opdef.common_shapes.rules import (
    check_inputs,
    checked_no_outputs,
    checked_scalar,
    defined_shape,
    shape_rule,
)
from opkernel.ops.data_flow.queues import UNBOUNDED, PriorityQueue
from opkernel.ops.data_flow.waiting import Done, WaitingKernel
from opkernel.ops.input_checks import require, require_scalar
from opkernel.ops.registration import ALL, register_kernel
from opkernel.ops.resource_op_kernel import (
    InexpensiveKernel,
    ResourceOpKernel,
    register_fact,
    resource_of_handle,
)
from opkernel.types import DataType, PartialTensorShape, TensorShape

# What the ops are


def insert_many_shape(c: InferenceContext) -> None:
    """As many keys as there are values."""
    check_inputs(c, "h")
    keys = c.with_rank(c.input(1), 1)
    values = c.with_rank_at_least(c.input(2), 1)
    c.merge(keys, c.vector(c.dim(values, 0)))


register_op(
    "Barrier() -> handle: Ref(string)",
    attrs=[
        "component_types: list(type) >= 1",
        "shapes: list(shape) >= 0 = []",
        "capacity: int = -1",
        "container: string = ''",
        "shared_name: string = ''",
    ],
    shape_fn=shape_rule("-> [2]"),
    is_stateful=True,
    doc="A barrier, which keeps the components of a key until all have come.",
)
register_op(
    "BarrierInsertMany(handle: Ref(string), keys: string, values: T)",
    attrs=["T: type", "component_index: int"],
    shape_fn=insert_many_shape,
    doc="Gives each key its value of one component.",
)
register_op(
    "BarrierTakeMany(handle: Ref(string), num_elements: int32) "
    "-> indices: int64, keys: string, values: component_types",
    attrs=[
        "component_types: list(type) >= 1",
        "allow_small_batch: bool = false",
        "wait_for_incomplete: bool = false",
        "timeout_ms: int = -1",
    ],
    shape_fn=unknown_shape,
    doc="Takes out keys whose components are complete, those that came first before others.",
)
register_op(
    "BarrierClose(handle: Ref(string))",
    attrs=["cancel_pending_enqueues: bool = false"],
    shape_fn=checked_no_outputs("h"),
    doc="Lets no new keys in, and with `cancel_pending_enqueues` no more values.",
)
for _name, _doc in (
    ("BarrierReadySize", "The number of complete keys."),
    ("BarrierIncompleteSize", "The number of keys that lack values."),
):
    register_op(
        f"{_name}(handle: Ref(string)) -> size: int32", shape_fn=checked_scalar("h"), doc=_doc
    )

# The resource

_OF_KEY = 1 << 10
"""The bytes of an element beside its values."""


class Barrier(PriorityQueue):
    """Keys with their values: those that lack some, and a queue of the complete ones.

    An element of the queue is the number of the insertion that brought the key, the key, and the
    values. The number is the priority.

    Args:
        dtypes: The types of the values.
        shapes: Their shapes.
        name: The name, for messages.
    """

    def __init__(
        self, dtypes: Sequence[DataType], shapes: Sequence[PartialTensorShape], name: str
    ) -> None:
        scalar = PartialTensorShape([])
        of_elements = [DataType.DT_INT64, DataType.DT_STRING, *dtypes]
        super().__init__(UNBOUNDED, of_elements, [scalar, scalar, *shapes], f"{name}_queue")
        self.barrier_name = name
        self.num_values = len(dtypes)
        self._incomplete: dict[bytes, list[Any]] = {}
        self._refuses_keys = False
        self._refuses_values = False
        self._insertion = -(2**63)

    def debug_string(self) -> str:
        """A description."""
        return "A barrier"

    @property
    def incomplete_size(self) -> int:
        """The number of keys that lack values."""
        return len(self._incomplete)

    def insert_many(self, keys: Any, values: Any, component: int) -> None:
        """Give keys their values of a component.

        Raises:
            CancelledError: the barrier is closed for these keys.
            InvalidArgumentError: a key has such a value, or a value has the wrong shape.
        """
        with self._changing():
            self._check_open(keys)
            before = set(self._incomplete)
            check_bytes(_OF_KEY * len(keys), "elements of a barrier")
            for i, key in enumerate(in_time(keys)):
                self._insert(i, key, keys[i, ...], values[i, ...], component)
            if not before.issuperset(keys):
                self._insertion += 1
            self._close_if_complete()

    def take_many(
        self, count: int, ctx: OpKernelContext, done: Done, *, allow_small_batch: bool
    ) -> None:
        """Take complete keys out, as a batch, which the outputs are set to."""

        def deliver(batch: tuple[Any, ...]) -> None:
            indices, keys, *values = batch
            ctx.set_output("indices", indices)
            ctx.set_output("keys", keys)
            ctx.set_output_list("values", values)

        if self._refuses_keys:
            count = self._deliverable(count, allow_small_batch)
        self.dequeue_many(count, ctx, done, deliver, allow_fewer=allow_small_batch)

    def close_for(self, *, cancel_pending: bool) -> None:
        """Let no new keys in, and no values either with `cancel_pending`.

        Raises:
            CancelledError: it is closed like this already.
        """
        with self._changing():
            if self._refuses_keys and (self._refuses_values or not cancel_pending):
                raise CancelledError(f"Barrier '{self.barrier_name}' is already closed.")
            self._refuses_keys, self._refuses_values = True, cancel_pending
            if cancel_pending:
                self._incomplete.clear()
            self._close_if_complete()

    def _check_open(self, keys: Any) -> None:
        if self._refuses_keys and (self._refuses_values or (len(keys) and not self._incomplete)):
            raise CancelledError(
                f"Barrier {self.barrier_name} is closed.  Pending enqueues cancelled: "
                f"{int(self._refuses_values)}.  Number of new insertions: {len(keys)}.  "
                f"Number of incomplete keys: {self.incomplete_size}."
            )

    def _insert(self, i: int, key: bytes, key_tensor: Any, value: Any, component: int) -> None:
        if self._refuses_keys and key not in self._incomplete:
            raise CancelledError(
                f"Barrier {self.barrier_name} is closed, but attempted to insert a brand new key: "
                f"{key.decode(errors='backslashreplace')}.  Pending enqueues cancelled: "
                f"{int(self._refuses_values)}.  Insertion index: {i}.  "
                f"Number of incomplete keys: {self.incomplete_size}."
            )
        new = [np.array(self._insertion, np.int64), key_tensor, *[None] * self.num_values]
        element = self._incomplete.setdefault(key, new)
        if element[component + 2] is not None:
            raise InvalidArgumentError(
                f"Key {key.decode(errors='backslashreplace')} already has a value for component "
                f"{component} in barrier {self.barrier_name}"
            )
        element[component + 2] = value
        if all(part is not None for part in element):
            del self._incomplete[key]
            self.validate(tuple(element))
            self._put(tuple(element))

    def _deliverable(self, count: int, allow_small_batch: bool) -> int:
        """How many keys a closed barrier can give of `count`.

        Raises:
            OutOfRangeError: it never will have as many.
        """
        with self._lock:
            available = self.size
            if allow_small_batch:
                count = min(count, available)
            else:
                available += self.incomplete_size
        if available < max(count, 1):
            raise OutOfRangeError(
                f"Barrier '{self.barrier_name}' is closed and has insufficient elements "
                f"(requested {count}, total size {available})"
            )
        return count

    def _close_if_complete(self) -> None:
        if self._refuses_keys and not self._incomplete:
            self.is_closed = True


# The kernels


@register_kernel("Barrier")
class BarrierOp(ResourceOpKernel):
    """Makes a barrier."""

    resource_type = Barrier

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtypes: list[DataType] = construction.get_attr("component_types")
        self.shapes = [defined_shape(shape) for shape in construction.get_attr("shapes")]
        if len(self.shapes) != len(self.dtypes):
            raise InvalidArgumentError("All of the component shapes must be specified")
        if construction.get_attr("capacity", "int32") != -1:
            raise InvalidArgumentError(
                "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a "
                "queue to enforce a limited capacity."
            )

    def create_resource(self, ctx: OpKernelContext) -> Barrier:
        return Barrier(self.dtypes, self.shapes, self.info.name)

    def verify_resource(self, resource: Barrier) -> None:
        have = resource.component_dtypes[2:], resource.component_shapes[2:]
        wanted = tuple(self.dtypes), tuple(self.shapes)
        if have != wanted:
            raise InvalidArgumentError(
                f"Shared barrier '{resource.barrier_name}' has component types and shapes "
                f"{_described(*have)} but requested were {_described(*wanted)}"
            )


def _described(dtypes: Sequence[DataType], shapes: Sequence[PartialTensorShape]) -> str:
    components = zip(dtypes, shapes, strict=True)
    return ", ".join(f"{dtype.string} {shape}" for dtype, shape in components)


@register_kernel("BarrierInsertMany", types={"T": ALL})
class BarrierInsertMany(OpKernel):
    """Gives keys their values of one component."""

    forwards_inputs = True

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.component: int = construction.get_attr("component_index", "int32")

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, Barrier) as barrier:
            if not 0 <= self.component < barrier.num_values:
                raise InvalidArgumentError(
                    f"The component ID is out of range {self.component} > num_components "
                    f"(= {barrier.num_values})"
                )
            dtype = barrier.component_dtypes[self.component + 2]
            ctx.match_signature([self.input_types[0], DataType.DT_STRING, dtype], [])
            self._check_shapes(barrier, ctx)
            keys, values = ctx.own_input(1), ctx.own_input(2)
            barrier.insert_many(keys, values, self.component)

    def _check_shapes(self, barrier: Barrier, ctx: OpKernelContext) -> None:
        keys, values = ctx.input(1).shape, ctx.input(2).shape
        if len(keys) != 1 or len(values) == 0 or keys[0] != values[0]:
            raise InvalidArgumentError(
                f"The number of values must equal that of keys, got keys of shape {TensorShape(keys)} "
                f"and values of shape {TensorShape(values)}"
            )
        if keys[0] and 0 in values:
            raise InvalidArgumentError(
                f"Tensors with no elements are not supported {barrier.barrier_name}: received "
                f"shape {TensorShape(values)}"
            )


@register_kernel("BarrierTakeMany")
class BarrierTakeMany(WaitingKernel[Barrier]):
    """Takes complete keys out."""

    resource_type = Barrier

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        construction.requires(
            construction.get_attr("timeout_ms") == -1, "Timeout not supported yet."
        )
        self.allow_small_batch: bool = construction.get_attr("allow_small_batch")

    def access(self, barrier: Barrier, ctx: OpKernelContext, done: Done) -> None:
        count = ctx.input(1)
        require_scalar(count, "num_elements must be a scalar.")
        require(count >= 0, f"num_elements must not be negative, got {count}")
        ctx.match_signature(self.input_types, barrier.component_dtypes)
        barrier.take_many(int(count), ctx, done, allow_small_batch=self.allow_small_batch)


@register_kernel("BarrierClose")
class BarrierClose(InexpensiveKernel):
    """Closes the barrier."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.cancel_pending: bool = construction.get_attr("cancel_pending_enqueues")

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, Barrier) as barrier:
            barrier.close_for(cancel_pending=self.cancel_pending)


register_fact("BarrierReadySize", of=Barrier, fact=lambda barrier: barrier.size)
register_fact("BarrierIncompleteSize", of=Barrier, fact=lambda barrier: barrier.incomplete_size)
