"""CustomAggregator. Expected values are TensorFlow's."""

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import AbortedError, InvalidArgumentError

INF = np.inf


@pytest.mark.parametrize(
    ("values", "bins", "expected"),
    [
        ([1, 2, 3.5, -7, 0], 16, (-7, 3.5, [1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0])),
        ([1, 2, 3.5, -7, 0], 0, (-7, 3.5, [])),
        ([[0, 1], [2, 4]], 4, (0, 4, [1, 1, 1, 1])),
        ([3, 3], 4, (3, 3, [2, 0, 0, 0])),
        ([1, INF, 2], 4, (1, INF, [3, 0, 0, 0])),
        ([-INF, 0], 4, (-INF, 0, [2, 0, 0, 0])),
        ([], 2, (INF, -INF, [0, 0])),
    ],
)
def test_range_and_histogram(values: list[float], bins: int, expected: object) -> None:
    x = np.array(values, np.float32)
    found = raw_ops.CustomAggregator(input=x, id="a", calibration_method=3, num_bins=bins)
    assert found.output.tolist() == x.tolist()
    assert (found.min, found.max, found.histogram.tolist()) == expected


def test_what_is_refused() -> None:
    with pytest.raises(AbortedError, match="must be specified"):
        raw_ops.CustomAggregator(input=[1.0], id="a")
    with pytest.raises(InvalidArgumentError, match="num_bins"):
        raw_ops.CustomAggregator(input=[1.0], id="a", calibration_method=1, num_bins=-1)
