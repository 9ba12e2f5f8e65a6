"""CustomAggregator: what the quantizer of models wants to know of a tensor that passes by.

Source: TensorFlow compiler/mlir/quantization/tensorflow/calibrator/custom_aggregator_op.cc,
compiler/mlir/quantization/stablehlo/cc/calibration/calibration_parameters.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import AbortedError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.quantized import shape_with_range
from opkernel.ops.input_checks import require
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_PIECE = 1 << 18
"""So many elements are counted between two looks at the clock."""

_UNSPECIFIED = 0
"""The number of CALIBRATION_METHOD_UNSPECIFIED."""


def custom_aggregator_shape(c: InferenceContext) -> None:
    """Input 0, its range and a histogram."""
    shape_with_range(c)
    c.set_output(3, c.vector(c.get_attr("num_bins")))


CUSTOM_AGGREGATOR = register_op(
    "CustomAggregator(input: float) -> output: float, min: float, max: float, histogram: int64",
    attrs=[
        "id: string",
        "calibration_method: int = 0",
        "num_bins: int = 0",
        "min_percentile: float = 0.0",
        "max_percentile: float = 0.0",
    ],
    shape_fn=custom_aggregator_shape,
    doc="""
    `input`, and statistics of it.

    min, max: Its range.
    histogram: How many of its numbers are in each of `num_bins` bins, whose width is a power of 2.
    """,
)


@register_kernel(CUSTOM_AGGREGATOR, kind="view", factory=True)
def custom_aggregator(
    *, calibration_method: int, num_bins: int
) -> Callable[[Any], tuple[Any, Any, Any, Any]]:
    if calibration_method == _UNSPECIFIED:
        raise AbortedError("The calibration method must be specified.")
    require(num_bins >= 0, f"num_bins must not be negative, but is {num_bins}")

    def kernel(tensor: Any) -> tuple[Any, Any, Any, Any]:
        low = np.min(tensor, initial=np.float32(np.inf))
        high = np.max(tensor, initial=np.float32(-np.inf))
        histogram = np.zeros(check_allocation((num_bins,), DataType.DT_INT64), np.int64)
        if num_bins:
            flat = tensor.reshape(-1)
            for start in in_time(range(0, flat.size, _PIECE), SLOW):
                bins = _bins(flat[start : start + _PIECE], low, high, num_bins)
                histogram += np.bincount(bins, minlength=num_bins)
        return tensor, low, high, histogram

    return kernel


def _bins(numbers: Any, low: Any, high: Any, num_bins: int) -> Any:
    """The number of the bin of each number; what has no bin is counted in the first."""
    with np.errstate(all="ignore"):
        width = np.float32(np.exp2(np.ceil(np.log2((high - low) / np.float32(num_bins)))))
        first = np.floor(low / width) * width
        places = np.floor((numbers - first) / width)
        places[~(np.abs(places) < 2**31)] = 0
    return np.clip(places.astype(np.int64), 0, num_bins - 1)
