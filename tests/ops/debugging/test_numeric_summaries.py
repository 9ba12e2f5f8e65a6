"""Counts of NaNs and summaries of numbers. Expected values are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.types import DataType

INF, NAN = np.inf, np.nan
ODD = np.array([[NAN, -INF, 0, 2], [INF, NAN, -3, 4]])
DEEP = np.ones((1, 2, 1, 3, 1, 1, 2), np.int32)


def shown(found: Any) -> str:
    return " ".join(f"{value:g}" for value in np.asarray(found).tolist())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nans_are_counted(dtype: Any) -> None:
    assert raw_ops.DebugNanCount(input=ODD.astype(dtype), tensor_name="n").tolist() == [2]
    assert raw_ops.DebugNanCount(input=DEEP, tensor_name="n").tolist() == [0]


@pytest.mark.parametrize(
    ("values", "bounds", "expected"),
    [
        (ODD, (-INF, INF), "1 8 2 1 1 1 2 1 -3 4 0.75 6.6875 2 2 2 4"),
        (ODD, (-3, 2), "1 8 2 2 0 1 0 3 -3 4 0.75 6.6875 2 2 2 4"),
        (ODD, (NAN, NAN), "1 8 2 1 1 1 2 1 -3 4 0.75 6.6875 2 2 2 4"),
        (np.float32([NAN]), (-INF, INF), "1 1 1 0 0 0 0 0 inf -inf nan nan 1 1 1"),
        (np.zeros((0, 2)), (-INF, INF), "1 0 0 0 0 0 0 0 inf -inf nan nan 2 2 0 2"),
        (np.array(True), (-INF, INF), "1 1 0 0 0 0 1 0 1 1 1 0 10 0"),
        (DEEP, (2, INF), "1 12 0 12 0 0 0 0 1 1 1 0 3 7 1 2 1 3 1 1 2"),
    ],
)
def test_summaries(values: Any, bounds: tuple[float, float], expected: str) -> None:
    lower, upper = bounds
    found = raw_ops.DebugNumericSummary(
        input=values, tensor_name="n", lower_bound=lower, upper_bound=upper
    )
    assert found.dtype == np.float64
    assert shown(found) == expected


@pytest.mark.parametrize(
    ("mode", "values", "expected"),
    [
        (2, ODD, "7 1"),
        (2, DEEP, "7 0"),
        (3, ODD, "7 8 1 1 2"),
        (4, ODD, "7 -1 2 2 8 1 1 2 1 1 2"),
        (4, np.array([True, False]), "7 -1 10 1 2 0 0 0 0 1 1"),
        (5, ODD, "7 2 2 8 2 4 0 0 0 0"),
        (5, DEEP, "7 3 7 12 2 1 3 1 1 2"),
        (8, ODD, "-inf inf nan"),
        (8, ODD[0], "-inf 0 nan"),
        (8, np.zeros(0), "0 0 0"),
    ],
)
@pytest.mark.parametrize("dtype", [DataType.DT_FLOAT, DataType.DT_DOUBLE])
def test_modes(mode: int, values: Any, expected: str, dtype: DataType) -> None:
    found = raw_ops.DebugNumericSummaryV2(
        input=values, output_dtype=dtype, tensor_debug_mode=mode, tensor_id=7
    )
    assert (found.dtype, shown(found)) == (dtype.numpy_dtype, expected)


@pytest.mark.parametrize(
    ("dtype", "most"), [(DataType.DT_FLOAT, 2**24), (DataType.DT_DOUBLE, 2**53)]
)
def test_ids_that_the_output_has_no_number_for(dtype: DataType, most: int) -> None:
    def call(tensor_id: int, mode: int = 2) -> Any:
        return raw_ops.DebugNumericSummaryV2(
            input=1.0, output_dtype=dtype, tensor_debug_mode=mode, tensor_id=tensor_id
        )

    assert call(most).tolist() == [most, 0]
    with pytest.raises(InvalidArgumentError, match=f"Given tensor_id: {most + 1}"):
        call(most + 1)
    assert call(most + 1, mode=8).tolist() == [0, 0, 0]
    with pytest.raises(UnimplementedError, match="debug mode: 6"):
        call(0, mode=6)
