"""Bucketize: which of the intervals between boundaries each element lies in.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/bucketize_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

BUCKETIZE = register_op(
    "Bucketize",
    inputs=["input: T"],
    outputs=["output: int32"],
    attrs=["T: {int32, int64, float, double}", "boundaries: list(float)"],
    shape_fn=unchanged_shape,
    doc="For each element how many of the `boundaries`, which are sorted, are not above it.",
)


@register_kernel(
    BUCKETIZE,
    device="CPU",
    types={"T": (*INDEX, DataType.DT_FLOAT, DataType.DT_DOUBLE)},
    factory=True,
)
def bucketize(*, boundaries: list[float], xp: Any) -> Callable[[Any], Any]:
    edges = np.array(boundaries, np.float32)
    if (edges[1:] < edges[:-1]).any():
        raise InvalidArgumentError("Expected sorted boundaries")
    edges = xp.asarray(edges)

    def bucket(tensor: Any) -> Any:
        # Integers are compared as float32, as C++ converts them.
        values = tensor if tensor.dtype.kind == "f" else tensor.astype(np.float32)
        return xp.searchsorted(edges, values, side="right").astype(np.int32)

    return bucket
