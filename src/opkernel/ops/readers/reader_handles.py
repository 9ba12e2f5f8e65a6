"""Ops that make readers.

Source: TensorFlow core/ops/io_ops.cc, core/framework/reader_op_kernel.h, core/kernels/*_reader_op.cc,
whole_file_read_ops.cc.
"""

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import OpKernelConstruction, OpKernelContext
from opkernel.opdef import register_op, scalar_shape
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.readers.formats import (
    FixedLengthRecordReader,
    IdentityReader,
    TextLineReader,
    TFRecordReader,
    WholeFileReader,
)
from opkernel.ops.readers.reader_base import ReaderBase
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import ResourceOpKernel

_NAMES = ("container: string = ''", "shared_name: string = ''")
_LENGTHS = (
    "header_bytes: int = 0",
    "record_bytes: int",
    "footer_bytes: int = 0",
    "hop_bytes: int = 0",
)
_COMPRESSION = "compression_type: string = ''"

_ATTRS = {
    "FixedLengthRecordReader": (*_LENGTHS, *_NAMES),
    "FixedLengthRecordReaderV2": (*_LENGTHS, *_NAMES, "encoding: string = ''"),
    "IdentityReader": _NAMES,
    "IdentityReaderV2": _NAMES,
    "TFRecordReader": (*_NAMES, _COMPRESSION),
    "TFRecordReaderV2": (*_NAMES, _COMPRESSION),
    "TextLineReader": ("skip_header_lines: int = 0", *_NAMES),
    "TextLineReaderV2": ("skip_header_lines: int = 0", *_NAMES),
    "WholeFileReader": _NAMES,
    "WholeFileReaderV2": _NAMES,
}
_DOCS = {
    "FixedLengthRecordReader": (
        "A reader of records of `record_bytes`, each `hop_bytes` after the one before; keys are FILE:NUMBER, from 0 on."
    ),
    "IdentityReader": "A reader whose records are the names in the queue themselves.",
    "TFRecordReader": "A reader of TFRecords; keys are FILE:POSITION.",
    "TextLineReader": "A reader of lines, without their ends; keys are FILE:NUMBER, from 1 on.",
    "WholeFileReader": "A reader whose records are the contents of files; keys are the names.",
}

for _name, _attrs in _ATTRS.items():
    _is_v2 = _name.endswith("V2")
    _is_deprecated = not _is_v2 and _name != "WholeFileReader"
    register_op(
        _name,
        outputs=[f"reader_handle: {'resource' if _is_v2 else 'Ref(string)'}"],
        attrs=_attrs,
        shape_fn=scalar_shape if _is_v2 else shape_rule("-> [2]"),
        is_stateful=True,
        deprecated=(26, f"Use {_name}V2") if _is_deprecated else None,
        doc=_DOCS[_name.removesuffix("V2")],
    )


class ReaderOp(ResourceOpKernel):
    """Makes a reader. One that another op made under its shared name is taken as it is."""

    resource_type = ReaderBase

    def at_least_zero(self, construction: OpKernelConstruction, name: str, kind: str) -> int:
        """The value of an attr that is a number of lines or bytes.

        Raises:
            InvalidArgumentError: it is negative, or beyond its kind.
        """
        value: int = construction.get_attr(name, kind)
        if value < 0:
            raise InvalidArgumentError(f"{name} must be >= 0 not {value}")
        return value


@register_kernel("IdentityReader", "IdentityReaderV2")
class IdentityReaderOp(ReaderOp):
    """Makes an IdentityReader."""

    def create_resource(self, ctx: OpKernelContext) -> ReaderBase:
        return IdentityReader(self.name)


@register_kernel("WholeFileReader", "WholeFileReaderV2")
class WholeFileReaderOp(ReaderOp):
    """Makes a WholeFileReader."""

    def create_resource(self, ctx: OpKernelContext) -> ReaderBase:
        return WholeFileReader(self.name)


@register_kernel("TextLineReader", "TextLineReaderV2")
class TextLineReaderOp(ReaderOp):
    """Makes a TextLineReader."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.skip_header_lines = self.at_least_zero(construction, "skip_header_lines", "int32")

    def create_resource(self, ctx: OpKernelContext) -> ReaderBase:
        return TextLineReader(self.skip_header_lines, self.name)


@register_kernel("TFRecordReader", "TFRecordReaderV2")
class TFRecordReaderOp(ReaderOp):
    """Makes a TFRecordReader."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.compression: str = construction.get_attr("compression_type")
        if self.compression == "SNAPPY":
            raise UnimplementedError("TFRecordReader of SNAPPY is not supported; use ZLIB or GZIP")

    def create_resource(self, ctx: OpKernelContext) -> ReaderBase:
        return TFRecordReader(self.compression, self.name)


@register_kernel("FixedLengthRecordReader", "FixedLengthRecordReaderV2")
class FixedLengthRecordReaderOp(ReaderOp):
    """Makes a FixedLengthRecordReader."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        names = ("header_bytes", "record_bytes", "footer_bytes", "hop_bytes")
        self.lengths = [self.at_least_zero(construction, name, "int") for name in names]
        is_v2 = self.type_string.endswith("V2")
        self.encoding: str = construction.get_attr("encoding") if is_v2 else ""

    def create_resource(self, ctx: OpKernelContext) -> ReaderBase:
        header, record, footer, hop = self.lengths
        return FixedLengthRecordReader(header, record, footer, hop, self.encoding, self.name)
