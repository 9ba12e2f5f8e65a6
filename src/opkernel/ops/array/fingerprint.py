"""Fingerprint: a hash of each row of a tensor.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/fingerprint_op.cc.
"""

import math
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.input_checks import require_rank_at_least, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.hashes import fingerprints, row_fingerprints
from opkernel.types import DataType

_METHOD, _SIZE = b"farmhash64", 8


def fingerprint_shape(c: InferenceContext) -> None:
    """The bytes of a hash for each row of the input."""
    c.with_rank_at_least(c.input(0), 1)
    c.with_rank(c.input(1), 0)
    method = c.input_tensor(1)
    if method is not None and method.item() != _METHOD:
        raise InvalidArgumentError(f"Unsupported method: {_text(method)}")
    size = c.unknown_dim() if method is None else c.make_dim(_SIZE)
    c.set_output(0, c.matrix(c.dim(c.input(0), 0), size))


def _text(method: Any) -> str:
    text: str = method.item().decode("utf-8", "surrogateescape")
    return text


FINGERPRINT = register_op(
    "Fingerprint",
    inputs=["data: T", "method: string"],
    outputs=["fingerprint: uint8"],
    attrs=["T: type"],
    shape_fn=fingerprint_shape,
    doc="The hash of each row of `data` by `method`, which is farmhash64, as bytes.",
)


@register_kernel(FINGERPRINT)
def fingerprint(data: Any, method: Any, *, T: DataType) -> Any:
    require_rank_at_least(data, 1, "`data` should have at least one dimension: []")
    require_scalar(method, "`method` should be a scalar string: {}")
    if method.item() != _METHOD:
        raise InvalidArgumentError(f"Unsupported fingerprint method: {_text(method)}")
    if not (T.can_memcpy or T is DataType.DT_STRING):
        raise InvalidArgumentError(f"Data type not supported: {T.string}")
    if T is not DataType.DT_STRING:
        return _as_bytes(_row_hashes(data))
    hashes = _as_bytes(fingerprints(data.reshape(-1)))
    if data.size == len(data):
        return hashes
    return _as_bytes(_row_hashes(hashes.reshape(*data.shape, _SIZE)))


def _row_hashes(data: Any) -> Any:
    """The fingerprint of the bytes of each row."""
    size = math.prod(data.shape[1:])
    if not data.size:
        return row_fingerprints(np.empty((len(data), 0), np.uint8))
    return row_fingerprints(np.ascontiguousarray(data).reshape(len(data), size).view(np.uint8))


def _as_bytes(hashes: Any) -> Any:
    """Little-endian, a row each."""
    return hashes.astype("<u8").view(np.uint8).reshape(-1, _SIZE)
