"""Batch normalisation with given statistics, as graphs before version 9 had it.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/batch_norm_op.cc.
"""

from __future__ import annotations

from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import DimensionHandle, InferenceContext, register_op
from opkernel.ops.input_checks import require_equal, require_rank
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_ATTRS = ["T: numbertype", "variance_epsilon: float", "scale_after_normalization: bool"]
_DEPRECATED = (9, "Use tf.nn.batch_normalization()")
_TYPES = (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)


def _channels(c: InferenceContext, vectors: range) -> DimensionHandle:
    """The last dimension of input 0 merged with the lengths of the vectors."""
    images = c.with_rank(c.input(0), 4)
    channels = c.dim(images, 3)
    for i in vectors:
        channels = c.merge(channels, c.dim(c.with_rank(c.input(i), 1), 0))
    return channels


def global_normalization_shape(c: InferenceContext) -> None:
    """Input 0, its last dimension merged with the lengths of the vectors."""
    channels = _channels(c, range(1, 5))
    c.set_output(0, c.replace_dim(c.with_rank(c.input(0), 4), 3, channels))


def global_normalization_grad_shape(c: InferenceContext) -> None:
    """The gradient of the images, and those of four vectors."""
    images = c.merge(c.with_rank(c.input(0), 4), c.input(4))
    channels = c.merge(_channels(c, range(1, 4)), c.dim(images, 3))
    c.set_output(0, c.replace_dim(images, 3, channels))
    for i in range(1, 5):
        c.set_output(i, c.vector(channels))


GLOBAL_NORMALIZATION = register_op(
    "BatchNormWithGlobalNormalization",
    inputs=["t: T", "m: T", "v: T", "beta: T", "gamma: T"],
    outputs=["result: T"],
    attrs=_ATTRS,
    shape_fn=global_normalization_shape,
    deprecated=_DEPRECATED,
    doc="""(t - m) / sqrt(v + variance_epsilon) * gamma + beta, for each channel.

    gamma: Used where `scale_after_normalization` is set.
    """,
)

GLOBAL_NORMALIZATION_GRAD = register_op(
    "BatchNormWithGlobalNormalizationGrad",
    inputs=["t: T", "m: T", "v: T", "gamma: T", "backprop: T"],
    outputs=["dx: T", "dm: T", "dv: T", "db: T", "dg: T"],
    attrs=_ATTRS,
    shape_fn=global_normalization_grad_shape,
    deprecated=_DEPRECATED,
    doc="The gradients of BatchNormWithGlobalNormalization by each of its inputs.",
)


def _check(t: Any, *vectors: Any) -> None:
    require_rank(t, 4, "input must be 4-dimensional{}")
    for vector in vectors:
        if vector.shape != t.shape[3:]:
            raise InvalidArgumentError(
                f"mean, variance, beta and gamma must be vectors with an element for each channel; "
                f"got shape {list(vector.shape)} for images of shape {list(t.shape)}"
            )


@register_kernel(GLOBAL_NORMALIZATION, types={"T": _TYPES})
def global_normalization(
    t: Any,
    m: Any,
    v: Any,
    beta: Any,
    gamma: Any,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
    xp: Any,
) -> Any:
    _check(t, m, v, beta, gamma)
    factor = 1 / xp.sqrt(v + variance_epsilon)
    return (t - m) * (factor * gamma if scale_after_normalization else factor) + beta


@register_kernel(GLOBAL_NORMALIZATION_GRAD, types={"T": _TYPES})
def global_normalization_grad(
    t: Any,
    m: Any,
    v: Any,
    gamma: Any,
    backprop: Any,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
    xp: Any,
) -> Any:
    _check(t, m, v, gamma)
    require_equal(t.shape, backprop.shape, "backprop must have the shape of the input {}, got {}")
    if not scale_after_normalization:
        gamma = xp.ones_like(gamma)
    shifted = v + variance_epsilon
    factor = 1 / xp.sqrt(shifted)
    over = (0, 1, 2)
    db = xp.sum(backprop, axis=over)
    products = xp.sum(backprop * (t - m), axis=over)
    dg = products * factor if scale_after_normalization else xp.zeros_like(db)
    dv = products * gamma * factor / shifted * -0.5
    return backprop * (gamma * factor), -db * gamma * factor, dv, db, dg


@g.register_gradient("BatchNormWithGlobalNormalization")
def batch_norm_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    t, m, v, _, gamma = op.inputs
    attrs = g.attrs_of(op, "variance_epsilon", "scale_after_normalization")
    return g.nodes.BatchNormWithGlobalNormalizationGrad(t, m, v, gamma, grad, **attrs)
