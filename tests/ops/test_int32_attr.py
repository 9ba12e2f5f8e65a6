"""Int attrs are int64 in a graph; TensorFlow's kernels refuse what their int32 cannot hold."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

VECTOR = np.arange(4, dtype=np.int32)
IMAGE = np.ones((1, 4, 4, 1), np.float32)
SPEC: dict[str, Any] = {
    name: np.array([value], np.int32)
    for name, value in {"begin": 1, "end": 3, "strides": 1}.items()
}


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**62])
@pytest.mark.parametrize(
    ("op", "inputs", "attr"),
    [
        ("StridedSlice", {"input": VECTOR, **SPEC}, "begin_mask"),
        ("StridedSliceGrad", {"shape": [4], **SPEC, "dy": VECTOR[1:3]}, "shrink_axis_mask"),
        (
            "InTopK",
            {"predictions": np.ones((1, 2), np.float32), "targets": np.zeros(1, np.int32)},
            "k",
        ),
        ("Assert", {"condition": True, "data": [VECTOR]}, "summarize"),
        ("Print", {"input": VECTOR, "data": [VECTOR]}, "first_n"),
        ("Conv", {"input": IMAGE, "filter": IMAGE[:, :1, :1]}, "groups"),
    ],
)
def test_out_of_range(op: str, inputs: dict[str, Any], attr: str, value: int) -> None:
    attrs: dict[str, Any] = {attr: value}
    if op == "Conv":
        attrs |= {"strides": [1, 1, 1, 1], "padding": "SAME"}
    with pytest.raises(InvalidArgumentError, match=f"{attr} has value {value} out of range"):
        getattr(raw_ops, op)(**inputs, **attrs)
