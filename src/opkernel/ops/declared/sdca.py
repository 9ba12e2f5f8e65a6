"""Shapes of ops of stochastic dual coordinate ascent.

Source: TensorFlow core/ops/sdca_ops.cc.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn, unknown_shape
from opkernel.ops.declared.rules import set_outputs


def _optimizer(c: InferenceContext) -> None:
    weights = [*c.input("sparse_weights"), *c.input("dense_weights")]
    set_outputs(c, [c.matrix(None, 4), *weights])


def _fingerprint(c: InferenceContext) -> None:
    c.set_output(0, c.concatenate(c.with_rank(c.input(0), 1), c.vector(2)))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "SdcaFprint": _fingerprint,
    "SdcaOptimizer": _optimizer,
    "SdcaOptimizerV2": _optimizer,
    "SdcaShrinkL1": unknown_shape,
}
