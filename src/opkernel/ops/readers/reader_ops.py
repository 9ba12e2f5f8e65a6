"""Ops on readers: read, count, reset, keep and restore the state.

Source: TensorFlow core/ops/io_ops.cc, core/kernels/reader_ops.cc.
"""

from functools import partial
from typing import Any

from opkernel.device.string_tensors import string_tensor
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelContext
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_inputs, set_outputs
from opkernel.ops.data_flow.queue_base import QueueBase
from opkernel.ops.data_flow.waiting import Done, WaitingKernel
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.readers.reader_base import ReaderBase, Records, Waits, run_waits
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import register_fact, resource_of_handle
from opkernel.types import TensorShape, object_scalar

# What the ops are


def _scalars(ranks: str, c: InferenceContext) -> None:
    check_inputs(c, ranks)
    set_outputs(c, [c.scalar() for _ in range(c.num_outputs())])


def _vectors(ranks: str, c: InferenceContext) -> None:
    check_inputs(c, ranks)
    set_outputs(c, [c.vector(None) for _ in range(c.num_outputs())])


for _name, _inputs, _outputs, _ranks, _traits, _doc in (
    (
        "ReaderRead",
        ("queue_handle: {}",),
        ("key: string", "value: string"),
        "hh",
        "reads_files",
        "The next record. At the end of a file the next one of the queue is read; waits until there is one.",
    ),
    (
        "ReaderReadUpTo",
        ("queue_handle: {}", "num_records: int64"),
        ("keys: string", "values: string"),
        "hh0",
        "reads_files",
        "Up to `num_records` records: fewer where a file ends.",
    ),
    (
        "ReaderNumRecordsProduced",
        (),
        ("records_produced: int64",),
        "h",
        "only_reads_state",
        "How many records the reader has read.",
    ),
    (
        "ReaderNumWorkUnitsCompleted",
        (),
        ("units_completed: int64",),
        "h",
        "only_reads_state",
        "How many files the reader has finished.",
    ),
    (
        "ReaderSerializeState",
        (),
        ("state: string",),
        "h",
        "only_reads_state",
        "The state of an IdentityReader or WholeFileReader.",
    ),
    (
        "ReaderRestoreState",
        ("state: string",),
        (),
        "h0",
        "",
        "Has an IdentityReader or WholeFileReader go on from a state.",
    ),
    ("ReaderReset", (), (), "h", "", "Has the reader forget its file and its counts."),
):
    for _version, _handle in (("", "Ref(string)"), ("V2", "resource")):
        register_op(
            f"{_name}{_version}",
            inputs=[f"reader_handle: {_handle}", *(one.format(_handle) for one in _inputs)],
            outputs=_outputs,
            shape_fn=partial(
                _vectors if _name == "ReaderReadUpTo" else _scalars,
                _ranks.replace("h", "0") if _version else _ranks,
            ),
            traits=_traits,
            is_stateful=_version == "V2",
            doc=_doc,
        )

# How they are computed


class ReaderVerb(WaitingKernel[ReaderBase]):
    """A kernel that waits for its turn on a reader."""

    resource_type = ReaderBase

    def waits(self, reader: ReaderBase, ctx: OpKernelContext) -> Waits:
        """The work."""
        raise NotImplementedError(f"{type(self).__name__} does not override waits")

    def access(self, reader: ReaderBase, ctx: OpKernelContext, done: Done) -> None:
        run_waits(self.waits(reader, ctx), ctx, done)


@register_kernel("ReaderRead", "ReaderReadV2")
class ReaderRead(ReaderVerb):
    """Reads one record."""

    def count(self, ctx: OpKernelContext) -> int:
        """How many records to read."""
        return 1

    def set_outputs(self, ctx: OpKernelContext, found: Records) -> None:
        """Hand the records over."""
        ctx.set_output(0, object_scalar(found[0].key))
        ctx.set_output(1, object_scalar(found[0].value))

    def access(self, reader: ReaderBase, ctx: OpKernelContext, done: Done) -> None:
        takes_long = reader.may_take_long(self.count(ctx))
        run_waits(self.waits(reader, ctx), ctx, done, takes_long=takes_long)

    def waits(self, reader: ReaderBase, ctx: OpKernelContext) -> Waits:
        found = Records()
        with resource_of_handle(ctx, QueueBase, 1) as queue:
            yield from reader.read(self.count(ctx), queue, ctx, found)
        self.set_outputs(ctx, found)


@register_kernel("ReaderReadUpTo", "ReaderReadUpToV2")
class ReaderReadUpTo(ReaderRead):
    """Reads some records."""

    def count(self, ctx: OpKernelContext) -> int:
        given = ctx.input(2)
        if given.size != 1:
            raise InvalidArgumentError(
                f"{self.type_string}: num_records must be a scalar, but has shape "
                f"{TensorShape(given.shape)}"
            )
        if given.item() < 0:
            raise InvalidArgumentError(f"{self.type_string} requested {given.item()} < 0 records")
        return int(given.item())

    def set_outputs(self, ctx: OpKernelContext, found: Records) -> None:
        for index in range(2):
            ctx.set_output(index, _vector([record[index] for record in found]))


def _vector(strings: list[bytes]) -> Any:
    return string_tensor((len(strings),), strings)


@register_kernel("ReaderReset", "ReaderResetV2")
class ReaderReset(ReaderVerb):
    """Resets the reader."""

    def waits(self, reader: ReaderBase, ctx: OpKernelContext) -> Waits:
        return reader.reset(ctx)


@register_kernel("ReaderSerializeState", "ReaderSerializeStateV2")
class ReaderSerializeState(ReaderVerb):
    """Gives the state."""

    def waits(self, reader: ReaderBase, ctx: OpKernelContext) -> Waits:
        found: list[bytes] = []
        yield from reader.serialize_state(ctx, found)
        ctx.set_output(0, object_scalar(found[0]))


@register_kernel("ReaderRestoreState", "ReaderRestoreStateV2")
class ReaderRestoreState(ReaderVerb):
    """Restores a state."""

    def waits(self, reader: ReaderBase, ctx: OpKernelContext) -> Waits:
        given = ctx.input(1)
        require_scalar(given, "Reader state must be scalar, but had shape: {}")
        return reader.restore_state(given.item(), ctx)


register_fact(
    "ReaderNumRecordsProduced",
    "ReaderNumRecordsProducedV2",
    of=ReaderBase,
    fact=lambda reader: reader.state.num_records_produced,
)
register_fact(
    "ReaderNumWorkUnitsCompleted",
    "ReaderNumWorkUnitsCompletedV2",
    of=ReaderBase,
    fact=lambda reader: reader.state.work_finished,
)
