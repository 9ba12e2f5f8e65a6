"""DecodeCompressed: strings that are compressed.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/decode_compressed_op.cc.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Any

from opkernel.device.string_tensors import gather_bytes, map_strings
from opkernel.device.work_clock import in_time, string_work
from opkernel.errors import DataLossError, InvalidArgumentError, UnimplementedError
from opkernel.opdef import register_op, unchanged_shape
from opkernel.ops.registration import register_kernel

DECODE_COMPRESSED = register_op(
    "DecodeCompressed",
    inputs=["bytes: string"],
    outputs=["output: string"],
    attrs=["compression_type: string = ''"],
    shape_fn=unchanged_shape,
    doc="Each string decompressed: ZLIB, GZIP, or as it is.",
)

_WINDOW_BITS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}
_TAKEN, _MADE = 1 << 12, 1 << 20
"""So many bytes are taken, and made, at a time."""


@register_kernel(DECODE_COMPRESSED, device="CPU", factory=True)
def decode_compressed(*, compression_type: str) -> Callable[[Any], Any]:
    if compression_type == "ZSTD":
        raise UnimplementedError("DecodeCompressed of ZSTD is not supported; use ZLIB or GZIP")
    if compression_type not in ("", *_WINDOW_BITS):
        raise InvalidArgumentError("Only ZLIB, ZSTD, GZIP or NONE are supported compressions")
    if not compression_type:
        return lambda tensor: tensor.copy()
    bits = _WINDOW_BITS[compression_type]

    def decompressed(text: bytes) -> bytes:
        return gather_bytes(in_time(_pieces(text, bits), string_work), "a decompressed string")

    return lambda tensor: map_strings(decompressed, tensor)


def _pieces(text: bytes, window_bits: int) -> Iterator[bytes]:
    """What all members of a string hold, piece by piece.

    As in TensorFlow, a string that ends too early gives what it has.
    """
    view, at = memoryview(text), 0
    while at < len(text):
        stream, given = zlib.decompressobj(window_bits), b""
        while not stream.eof:
            if not given:
                given = bytes(view[at : at + _TAKEN])
                at += len(given)
            try:
                piece, is_over = stream.decompress(given, _MADE), not given
            except zlib.error as error:
                raise DataLossError(f"The compressed string is damaged: {error}") from error
            if is_over and not piece and not stream.eof:
                return
            given = stream.unconsumed_tail
            yield piece
        if window_bits == zlib.MAX_WBITS:
            return
        at -= len(stream.unused_data)
