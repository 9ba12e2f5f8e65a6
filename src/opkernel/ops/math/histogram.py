"""Histograms of equal bins.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/histogram_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.kernel_types import INDEX, REAL_NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


def histogram_fixed_width_shape(c: InferenceContext) -> None:
    """[nbins], which is input 2."""
    value_range = c.with_rank(c.input(1), 1)
    c.with_rank(c.input(2), 0)
    c.with_value(c.dim(value_range, 0), 2)
    nbins = c.input_tensor(2)
    if nbins is None:
        c.set_output(0, c.unknown_shape_of_rank(1))
        return
    if int(nbins) <= 0:
        raise InvalidArgumentError(f"Requires nbins > 0: {int(nbins)}")
    c.set_output(0, c.vector(int(nbins)))


HISTOGRAM_FIXED_WIDTH = register_op(
    "HistogramFixedWidth",
    inputs=["values: T", "value_range: T", "nbins: int32"],
    outputs=["out: dtype"],
    attrs=["T: {int32, int64, float, double}", "dtype: {int32, int64} = DT_INT32"],
    shape_fn=histogram_fixed_width_shape,
    doc="""How many `values` lie in each of `nbins` equal parts of `value_range`, [2].

Values outside the range count in the first or in the last part.
""",
)


@register_kernel(HISTOGRAM_FIXED_WIDTH, device="CPU", types={"T": REAL_NUMBERS, "dtype": INDEX})
def histogram_fixed_width(values: Any, value_range: Any, nbins: Any, *, dtype: DataType) -> Any:
    _check(values, value_range, nbins)
    low, high = value_range.astype(np.float64)  # first, as integers may overflow
    (size,) = check_allocation((int(nbins),), dtype)
    places = (np.ravel(values).astype(np.float64) - low) / ((high - low) / size)
    bins = np.fmin(np.fmax(places, 0), size - 1)
    return np.bincount(bins.astype(np.int32), minlength=size).astype(dtype.numpy_dtype)


def _check(values: Any, value_range: Any, nbins: Any) -> None:
    if value_range.ndim != 1:
        raise InvalidArgumentError("value_range should be a vector.")
    if value_range.shape[0] != 2:
        raise InvalidArgumentError("value_range should be a vector of 2 elements.")
    if nbins.ndim != 0:
        raise InvalidArgumentError("nbins should be a scalar.")
    low, high = value_range
    if not low < high:
        raise InvalidArgumentError(
            "value_range should satisfy value_range[0] < value_range[1], but got "
            f"'[{low:g}, {high:g}]'"
        )
    if nbins <= 0:
        raise InvalidArgumentError(f"nbins should be a positive number, but got '{nbins}'")
    if np.isnan(values).any():
        raise InvalidArgumentError("Histogram values must not contain NaN")
