"""Ops that make readers, and ops on them: read, count, reset, keep and restore the state.

Source: TensorFlow core/ops/io_ops.cc, core/framework/reader_op_kernel.h, core/kernels/*_reader_op.cc,
whole_file_read_ops.cc, core/kernels/reader_ops.cc.
"""

from collections.abc import Callable
from functools import partial
from operator import attrgetter

from opkernel.device.string_tensors import string_tensor
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import OpKernelConstruction, OpKernelContext
from opkernel.opdef import register_op, scalar_shape
from opkernel.opdef.common_shapes.rules import checked, shape_rule
from opkernel.ops.data_flow.queues import QueueBase
from opkernel.ops.data_flow.waiting import Done, WaitingKernel
from opkernel.ops.files.reader_base import ReaderBase, Records, Waits, run_waits
from opkernel.ops.files.reader_formats import (
    FixedLengthRecordReader,
    IdentityReader,
    TextLineReader,
    TFRecordReader,
    WholeFileReader,
)
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import (
    ResourceOpKernel,
    declare_versions,
    register_fact,
    resource_of_handle,
)
from opkernel.types import TensorShape, object_scalar

_NAMES = ("container: string = ''", "shared_name: string = ''")
_LENGTHS = (
    "header_bytes: int = 0",
    "record_bytes: int",
    "footer_bytes: int = 0",
    "hop_bytes: int = 0",
)
_ENCODING = "encoding: string = ''"
_COMPRESSION = "compression_type: string = ''"

for _name, _attrs, _doc in (
    (
        "FixedLengthRecordReader",
        (*_LENGTHS, *_NAMES),
        "A reader of records of `record_bytes`, each `hop_bytes` after the one before; keys are FILE:NUMBER, from 0 on.",
    ),
    ("IdentityReader", _NAMES, "A reader whose records are the names in the queue themselves."),
    ("TFRecordReader", (*_NAMES, _COMPRESSION), "A reader of TFRecords; keys are FILE:POSITION."),
    (
        "TextLineReader",
        ("skip_header_lines: int = 0", *_NAMES),
        "A reader of lines, without their ends; keys are FILE:NUMBER, from 1 on.",
    ),
    (
        "WholeFileReader",
        _NAMES,
        "A reader whose records are the contents of files; keys are the names.",
    ),
):
    register_op(
        f"{_name}() -> reader_handle: Ref(string)",
        attrs=_attrs,
        shape_fn=shape_rule("-> [2]"),
        is_stateful=True,
        deprecated=None if _name == "WholeFileReader" else (26, f"Use {_name}V2"),
        doc=_doc,
    )
    register_op(
        f"{_name}V2() -> reader_handle: resource",
        attrs=(*_attrs, _ENCODING) if _name == "FixedLengthRecordReader" else _attrs,
        shape_fn=scalar_shape,
        is_stateful=True,
        doc=_doc,
    )

_Create = Callable[[str], ReaderBase]
"""Makes a reader of a name."""


def _at_least_zero(construction: OpKernelConstruction, name: str, kind: str) -> int:
    """The value of an attr that is a number of lines or bytes.

    Raises:
        InvalidArgumentError: it is negative, or beyond its kind.
    """
    value: int = construction.get_attr(name, kind)
    if value < 0:
        raise InvalidArgumentError(f"{name} must be >= 0 not {value}")
    return value


def _text_line_reader(construction: OpKernelConstruction) -> _Create:
    return partial(TextLineReader, _at_least_zero(construction, "skip_header_lines", "int32"))


def _tf_record_reader(construction: OpKernelConstruction) -> _Create:
    compression = construction.get_attr("compression_type")
    if compression == "SNAPPY":
        raise UnimplementedError("TFRecordReader of SNAPPY is not supported; use ZLIB or GZIP")
    return partial(TFRecordReader, compression)


def _fixed_length_record_reader(construction: OpKernelConstruction) -> _Create:
    header, record, footer, hop = (
        _at_least_zero(construction, f"{name}_bytes", "int")
        for name in ("header", "record", "footer", "hop")
    )
    encoding = construction.get_attr("encoding") if construction.has_attr("encoding") else ""
    return partial(FixedLengthRecordReader, header, record, footer, hop, encoding)


_CREATORS: dict[str, Callable[[OpKernelConstruction], _Create]] = {
    "FixedLengthRecordReader": _fixed_length_record_reader,
    "IdentityReader": lambda _: IdentityReader,
    "TFRecordReader": _tf_record_reader,
    "TextLineReader": _text_line_reader,
    "WholeFileReader": lambda _: WholeFileReader,
}


@register_kernel(*_CREATORS, *(f"{name}V2" for name in _CREATORS))
class ReaderOp(ResourceOpKernel):
    """Makes a reader. One that another op made under its shared name is taken as it is."""

    resource_type = ReaderBase

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._create = _CREATORS[self.type_string.removesuffix("V2")](construction)

    def create_resource(self, ctx: OpKernelContext) -> ReaderBase:
        return self._create(self.name)


# What the ops are


def _declare(signature: str, ranks: str, outputs: str, *, traits: str = "", doc: str) -> None:
    declare_versions(
        signature,
        shape_fn=checked(ranks, shape_rule(f"-> {outputs}")),
        shape_fn_v2=checked(ranks.replace("h", "0"), shape_rule(f"-> {outputs}")),
        traits=traits,
        doc=doc,
    )


_declare(
    "ReaderRead(reader_handle: {}, queue_handle: {}) -> key: string, value: string",
    "hh",
    "[], []",
    traits="reads_files",
    doc="The next record. At the end of a file the next one of the queue is read; waits until there is one.",
)
_declare(
    "ReaderReadUpTo(reader_handle: {}, queue_handle: {}, num_records: int64) "
    "-> keys: string, values: string",
    "hh0",
    "[?], [?]",
    traits="reads_files",
    doc="Up to `num_records` records: fewer where a file ends.",
)
_declare_fact = partial(_declare, ranks="h", outputs="[]", traits="only_reads_state")
_declare_fact(
    "ReaderNumRecordsProduced(reader_handle: {}) -> records_produced: int64",
    doc="How many records the reader has read.",
)
_declare_fact(
    "ReaderNumWorkUnitsCompleted(reader_handle: {}) -> units_completed: int64",
    doc="How many files the reader has finished.",
)
_declare_fact(
    "ReaderSerializeState(reader_handle: {}) -> state: string",
    doc="The state of an IdentityReader or WholeFileReader.",
)
_declare(
    "ReaderRestoreState(reader_handle: {}, state: string)",
    "h0",
    "",
    doc="Has an IdentityReader or WholeFileReader go on from a state.",
)
_declare(
    "ReaderReset(reader_handle: {})", "h", "", doc="Has the reader forget its file and its counts."
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
            message = "num_records must be a scalar, but has shape"
            raise InvalidArgumentError(f"{self.type_string}: {message} {TensorShape(given.shape)}")
        if given.item() < 0:
            raise InvalidArgumentError(f"{self.type_string} requested {given.item()} < 0 records")
        return int(given.item())

    def set_outputs(self, ctx: OpKernelContext, found: Records) -> None:
        for index in range(2):
            ctx.set_output(index, string_tensor((len(found),), [one[index] for one in found]))


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


for _name, _fact in (
    ("ReaderNumRecordsProduced", attrgetter("state.num_records_produced")),
    ("ReaderNumWorkUnitsCompleted", attrgetter("state.work_finished")),
):
    register_fact(_name, f"{_name}V2", of=ReaderBase, fact=_fact)
