"""QuantizedRelu and QuantizedRelu6: integers no lower than the one of 0, and no higher than that of 6.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/quantized_activation_ops.cc.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opkernel.opdef import OpHandle, register_op
from opkernel.ops.quantized.conversion import QUANTIZED_ATTR, level_of, scalar_range
from opkernel.ops.quantized.shapes import unchanged_with_range
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


def _declare(name: str, doc: str) -> OpHandle:
    return register_op(
        name,
        inputs=["features: Tinput", "min_features: float", "max_features: float"],
        outputs=["activations: out_type", "min_activations: float", "max_activations: float"],
        attrs=[f"Tinput: {QUANTIZED_ATTR}", f"out_type: {QUANTIZED_ATTR} = DT_QUINT8"],
        shape_fn=partial(unchanged_with_range, scalars=(1, 2)),
        doc=doc,
    )


QUANTIZED_RELU = _declare(
    "QuantizedRelu", "max(features, 0), in integers of the range [min_features, max_features]."
)
QUANTIZED_RELU6 = _declare(
    "QuantizedRelu6",
    "min(max(features, 0), 6), in integers of the range [min_features, max_features].",
)
_TYPE_PAIRS = (DataType.DT_QUINT8, DataType.DT_QINT32)


def _between(features: Any, low: Any, high: Any, most: float | None) -> Any:
    given = scalar_range("min_input", low, "max_input", high)
    with np.errstate(all="ignore"):
        output = np.maximum(features, level_of(0.0, given, features.dtype))
        if most is not None:
            output = np.minimum(output, level_of(most, given, features.dtype))
    return output, given.low, given.high


for _type in _TYPE_PAIRS:
    for _op, _most in ((QUANTIZED_RELU, None), (QUANTIZED_RELU6, 6.0)):
        register_kernel(_op, device="CPU", types={"Tinput": (_type,), "out_type": (_type,)})(
            partial(_between, most=_most)
        )
