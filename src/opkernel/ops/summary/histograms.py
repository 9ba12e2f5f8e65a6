"""Histograms as TensorFlow's summaries have them: buckets that grow by a tenth, from 1e-12 to 1e20 to both sides of 0.

Source: TensorFlow core/lib/histogram/histogram.cc.
"""

import functools
import sys
from typing import Any

import numpy as np

from opkernel.device.work_clock import array_work, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.proto import HistogramProto

_AT_ONCE = 1 << 16
"""So many values are counted together."""


@functools.cache
def _limits() -> Any:
    """The upper limits of the buckets; the values of a bucket are below its limit."""
    limits, limit = [], 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    limits.append(sys.float_info.max)
    return np.array([*[-limit for limit in reversed(limits)], 0.0, *limits])


def histogram_proto(values: Any, name: str) -> bytes:
    """The serialized HistogramProto of real numbers of any shape. Empty buckets one after the other are one bucket.

    Args:
        values: The numbers.
        name: The name for messages.

    Raises:
        InvalidArgumentError: a number is NaN or infinite.
    """
    limits, flat = _limits(), values.reshape(-1)
    counts = np.zeros(len(limits), np.int64)
    proto = HistogramProto(min=limits[-1], max=-limits[-1], num=flat.size)
    sums = np.zeros(2)
    with np.errstate(over="ignore"):
        for start in in_time(range(0, flat.size, _AT_ONCE), array_work(_AT_ONCE)):
            piece = flat[start : start + _AT_ONCE].astype(np.float64)
            _check_finite(piece, name)
            places = np.searchsorted(limits, piece, side="right")
            counts += np.bincount(np.minimum(places, len(limits) - 1), minlength=len(limits))
            proto.min = min(proto.min, piece[piece.argmin()])  # of equal zeros the first
            proto.max = max(proto.max, piece[piece.argmax()])
            terms = np.stack([piece, piece * piece])
            terms[:, 0] += sums
            sums = np.cumsum(terms, axis=1)[:, -1]  # one after the other, as TensorFlow adds
    proto.sum, proto.sum_squares = sums.tolist()
    is_last = np.append(counts[1:] > 0, True)
    kept = (counts > 0) | is_last
    proto.bucket_limit.extend(limits[kept].tolist())
    proto.bucket.extend(counts[kept].tolist())
    return proto.SerializeToString()


def _check_finite(values: Any, name: str) -> None:
    wrong = values[~np.isfinite(values)]
    if wrong.size:
        what = "Nan" if np.isnan(wrong[0]) else "Infinity"
        raise InvalidArgumentError(f"{what} in summary histogram for: {name}")
