import numpy as np
import pytest

from opkernel import raw_ops

INT32, INT64 = np.iinfo(np.int32), np.iinfo(np.int64)


@pytest.mark.parametrize(
    ("dtype", "values", "low", "high", "counts"),
    [
        (np.int32, [INT32.max, INT32.min, 0, 5], INT32.min, INT32.max, [1, 2, 1]),
        (np.int32, [INT32.max, INT32.min, 0, 5], -1, 1, [1, 1, 2]),
        (np.int64, [2**62, -(2**62), INT64.min, INT64.max, 0], -1, 1, [2, 1, 2]),
        (np.int64, [2**62, -(2**62), INT64.min, INT64.max, 0], INT64.min, INT64.max, [2, 1, 2]),
        (np.float32, [-np.inf, -1, 0.5, np.inf], -1, 1, [2, 0, 2]),
    ],
)
def test_values_and_ranges_that_overflow_their_type(dtype, values, low, high, counts):
    result = raw_ops.HistogramFixedWidth(
        values=np.array(values, dtype), value_range=np.array([low, high], dtype), nbins=3
    )
    assert result.tolist() == counts
