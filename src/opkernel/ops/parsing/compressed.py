"""DecodeCompressed: strings that are compressed.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/decode_compressed_op.cc.
"""

import zlib
from collections.abc import Callable
from typing import Any

from opkernel.device.budget import current_budget
from opkernel.errors import DataLossError, InvalidArgumentError, UnimplementedError
from opkernel.opdef import register_op, unchanged_shape
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.elements import map_strings

DECODE_COMPRESSED = register_op(
    "DecodeCompressed",
    inputs=["bytes: string"],
    outputs=["output: string"],
    attrs=["compression_type: string = ''"],
    shape_fn=unchanged_shape,
    doc="Each string decompressed: ZLIB, GZIP, or as it is.",
)

_WINDOW_BITS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}
_STEP = 1 << 20
"""So many bytes are made before the budget is asked for more."""


@register_kernel(DECODE_COMPRESSED, device="CPU", factory=True)
def decode_compressed(*, compression_type: str) -> Callable[[Any], Any]:
    if compression_type == "ZSTD":
        raise UnimplementedError("DecodeCompressed of ZSTD is not supported; use ZLIB or GZIP")
    if compression_type not in ("", *_WINDOW_BITS):
        raise InvalidArgumentError("Only ZLIB, ZSTD, GZIP or NONE are supported compressions")
    if not compression_type:
        return lambda tensor: tensor.copy()
    bits = _WINDOW_BITS[compression_type]
    return lambda tensor: map_strings(lambda text: _decompressed(text, bits), tensor)


def _decompressed(text: bytes, window_bits: int) -> bytes:
    """All members of a string, in steps, so that a budget ends what grows too large.

    As in TensorFlow, a string that ends too early gives what it has.
    """
    pieces: list[bytes] = []
    budget, size = current_budget(), 0
    while text:
        stream = zlib.decompressobj(window_bits)
        while not stream.eof:
            try:
                piece = stream.decompress(text, _STEP)
            except zlib.error as error:
                raise DataLossError(f"The compressed string is damaged: {error}") from error
            text = stream.unconsumed_tail
            if not piece and not text and not stream.eof:
                return b"".join(pieces)
            pieces.append(piece)
            size += len(piece)
            if budget is not None:
                budget.check_memory(size, "a decompressed string")
        text = stream.unused_data if window_bits > zlib.MAX_WBITS else b""
    return b"".join(pieces)
