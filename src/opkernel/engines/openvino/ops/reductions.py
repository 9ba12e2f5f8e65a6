"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import BOOL, openvino_op
from opkernel.engines.openvino.tensors import ints, shape_of
from opkernel.ops.math.reductions import reduction_axes

_REDUCTIONS = {
    "Max": "reduce_max",
    "Mean": "reduce_mean",
    "Min": "reduce_min",
    "Prod": "reduce_prod",
    "Sum": "reduce_sum",
    "EuclideanNorm": "reduce_l2",
}


def _reduces(name: str) -> Callable[..., Any]:
    def build(x: Any, axes: Any, *, keep_dims: bool) -> Any:
        found = reduction_axes(axes, len(shape_of(x)))
        return getattr(opset(), name)(x, ints(found), keep_dims) if found else x

    return build


for _op, _name in _REDUCTIONS.items():
    openvino_op(_op, constants=["reduction_indices"])(_reduces(_name))
for _op, _name in {"All": "reduce_logical_and", "Any": "reduce_logical_or"}.items():
    openvino_op(_op, constants=["reduction_indices"], types={"input": BOOL, "output": BOOL})(
        _reduces(_name)
    )


@openvino_op("L2Loss")
def l2_loss(t: Any) -> Any:
    axes = ints(range(len(shape_of(t))))
    return opset().multiply(opset().reduce_sum(opset().multiply(t, t), axes), 0.5)
