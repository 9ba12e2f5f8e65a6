"""Batch normalisation: each channel brought to a mean and a variance.

In training these are the batch's own, which are also returned, averaged with the given ones where
`exponential_avg_factor` is not 1; in inference they are given. Batches of half and bfloat16 are
normalised in float, and all that there is one of for each channel is float. Graphs before version 9 have
BatchNormWithGlobalNormalization, whose statistics are given.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/fused_batch_norm_op.cc, batch_norm_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import from_attrs
from opkernel.opdef import OpHandle, OpShapeInferenceFn, common_shapes, register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.ops.input_checks import require_equal, require_rank, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

__all__ = [
    "IMAGES",
    "MIXED_TYPES",
    "T_AND_U",
    "VOLUMES",
    "Channels",
    "check_length",
    "check_vector",
]


IMAGES = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
VOLUMES = "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'"
T_AND_U = ("T: {half, bfloat16, float}", "U: {float}")

MIXED_TYPES: dict[str, DataType | Sequence[DataType]] = {
    "T": (DataType.DT_BFLOAT16, DataType.DT_HALF, DataType.DT_FLOAT),
    "U": DataType.DT_FLOAT,
}

# x * factor + (offset - mean * factor) is one pass less than (x - mean) * factor + offset, and
# loses as many digits as the product is larger than the results.
_MAX_SHIFT = 16.0


def _declare(
    name: str,
    types: Sequence[str],
    doc: str,
    shape_fn: OpShapeInferenceFn,
    *,
    reserved: str = "",
    side: str = "",
    attrs: Sequence[str] = (IMAGES,),
) -> OpHandle:
    """An op with further outputs and inputs; `attrs` are those between the numbers and `is_training`."""
    u = "U" if len(types) == 2 else "T"
    return register_op(
        f"{name}(x: T, scale: {u}, offset: {u}, mean: {u}, variance: {u}{side}) -> y: T, "
        f"batch_mean: {u}, batch_variance: {u}, reserve_space_1: {u}, reserve_space_2: {u}{reserved}",
        attrs=[
            *types,
            "epsilon: float = 0.0001",
            "exponential_avg_factor: float = 1.0",
            *attrs,
            "is_training: bool = true",
        ],
        shape_fn=shape_fn,
        traits=f"cost=linear {'' if side else 'images=i-:i'}",
        doc=doc,
    )


_DOC = """Batch normalisation: (x - mean) / sqrt(variance + epsilon) * scale + offset.

    x: A batch of images or volumes.
    scale: One for each channel, as all that follows.
    mean: Of the population; read in inference, and where exponential_avg_factor is not 1.
    batch_mean: That of the batch, averaged with `mean`; in inference `mean`.
    batch_variance: That of the batch, unbiased, averaged with `variance`; in inference `variance`.
    reserve_space_1: For the gradient: the mean of the batch.
    reserve_space_2: For the gradient: the biased variance of the batch.
    """

_RESERVED = ", reserve_space_3: U"

FUSED_BATCH_NORM = _declare(
    "FusedBatchNorm", ["T: {float}"], _DOC, common_shapes.fused_batch_norm_shape
)
FUSED_BATCH_NORM_V2 = _declare(
    "FusedBatchNormV2", T_AND_U, _DOC, common_shapes.fused_batch_norm_shape
)
FUSED_BATCH_NORM_V3 = _declare(
    "FusedBatchNormV3",
    [T_AND_U[0], "U: {bfloat16, float}"],
    _DOC,
    common_shapes.fused_batch_norm_v3_shape,
    reserved=_RESERVED,
    attrs=[VOLUMES],
)
FUSED_BATCH_NORM_EX = _declare(
    "_FusedBatchNormEx",
    ["T: {half, float, bfloat16}", "U: {float}"],
    _DOC + "\nThen the side input is added and the activation applied.",
    common_shapes.fused_batch_norm_ex_shape,
    reserved=_RESERVED,
    side=", side_input: num_side_inputs * T",
    attrs=["num_side_inputs: int >= 0 = 0", "activation_mode: string = 'Identity'", IMAGES],
)


class Channels:
    """How a layout is cut into channels."""

    def __init__(self, data_format: str, xp: Any) -> None:
        self.format = TensorFormat.from_string(data_format)
        self.xp = xp

    def axis(self, x: Any) -> int:
        """Where the channels are.

        Raises:
            InvalidArgumentError: the tensor holds neither images nor volumes.
        """
        if x.ndim not in (4, 5):
            raise InvalidArgumentError(f"input must be 4 or 5-dimensional{list(x.shape)}")
        return self.format.feature_index(x.ndim)

    def spread(self, vector: Any, x: Any) -> Any:
        """One value for each channel, in a shape that is broadcast against `x`."""
        after = x.ndim - 1 - self.axis(x)
        return vector.reshape(-1, *(1,) * after) if after else vector

    def sums(self, x: Any) -> Any:
        """The sum of each channel, dimension by dimension: partial sums round less."""
        channels = self.axis(x)
        for axis in reversed(range(x.ndim)):
            if axis != channels:
                x = self.xp.sum(x, axis=axis)
        return x


def check_vector(name: str, vector: Any) -> None:
    require_vector(vector, f"{name} must be 1-dimensional{{}}")


def check_length(name: str, vector: Any, channels: int) -> None:
    message = "must have the same number of elements as the channels of x, got {} and {}"
    require_equal(vector.size, channels, f"{name} {message}")


class _Normalise:
    """The kernel of a node: normalised tensor, mean, variance, and both for the gradient."""

    def __init__(
        self,
        epsilon: float,
        exponential_avg_factor: float,
        data_format: str,
        is_training: bool,
        xp: Any,
    ) -> None:
        self.epsilon = epsilon
        self.factor = exponential_avg_factor
        self.is_training = is_training
        self.channels = Channels(data_format, xp)
        self.xp = xp

    def __call__(self, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        self.check(x, scale, offset, mean, variance)
        if x.size == 0:
            undefined = (self.xp.full(scale.shape, np.nan, dtype=scale.dtype) for _ in range(2))
            zeros = (self.xp.zeros_like(scale) for _ in range(2))
            return (self.xp.zeros_like(x), *undefined, *zeros)
        wide = x.astype(scale.dtype) if x.dtype != scale.dtype else x
        compute = self.train if self.is_training else self.infer
        y, *statistics = compute(wide, scale, offset, mean, variance)
        return (y.astype(x.dtype) if wide is not x else y, *statistics)

    def check(self, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> None:
        channels = x.shape[self.channels.axis(x)]
        vectors = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
        for name, vector in vectors.items():
            check_vector(name, vector)
        check_length("scale", scale, channels)
        check_length("offset", offset, channels)
        if not self.is_training or self.factor != 1:
            why = "exponential_avg_factor != 1" if self.is_training else "is_training=false"
            check_length(f"When {why}, mean", mean, channels)
            check_length(f"When {why}, variance", variance, channels)

    def train(self, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        count = x.size // scale.size
        batch_mean = self.channels.sums(x) / count
        centered = x - self.channels.spread(batch_mean, x)
        batch_variance = self.channels.sums(centered * centered) / count
        factor = scale / self.xp.sqrt(batch_variance + self.epsilon)
        y = centered * self.channels.spread(factor, x)
        y += self.channels.spread(offset, x)
        unbiased = batch_variance * (count / max(count - 1, 1))
        return (
            y,
            self.average(batch_mean, mean),
            self.average(unbiased, variance),
            batch_mean,
            batch_variance,
        )

    def average(self, new: Any, old: Any) -> Any:
        if self.factor == 1:
            return self.xp.asarray(new, copy=True)
        return old * (1 - self.factor) + new * self.factor

    def infer(self, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        factor = scale / self.xp.sqrt(variance + self.epsilon)
        shift = mean * factor
        spread = self.channels.spread
        if self.xp is np and np.abs(shift).max() <= _MAX_SHIFT:
            y = np.multiply(x, spread(factor, x))
            y += spread(offset - shift, x)
        else:
            y = (x - spread(mean, x)) * spread(factor, x) + spread(offset, x)
        return (y, *(self.xp.asarray(v, copy=True) for v in (mean, variance, mean, variance)))


@from_attrs(normalise=_Normalise)
def _kernel(*, normalise: _Normalise) -> Callable[..., Any]:
    return normalise


register_kernel(FUSED_BATCH_NORM, types={"T": DataType.DT_FLOAT}, factory=True)(_kernel)
register_kernel(FUSED_BATCH_NORM_V2, types=MIXED_TYPES, factory=True)(_kernel)


@register_kernel(FUSED_BATCH_NORM_V3, types=MIXED_TYPES, factory=True)
@from_attrs(normalise=_Normalise)
def fused_batch_norm_v3(*, normalise: _Normalise, xp: Any) -> Callable[..., Any]:
    """The third reserve space is a scalar 0: only cuDNN has a use for it."""

    def kernel(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        results = normalise(x, scale, offset, mean, variance)
        return (*results, xp.zeros((), dtype=scale.dtype))

    return kernel


@register_kernel(
    FUSED_BATCH_NORM_EX,
    types={"T": (DataType.DT_BFLOAT16, DataType.DT_FLOAT), "U": DataType.DT_FLOAT},
    factory=True,
)
@from_attrs(normalise=_Normalise)
def fused_batch_norm_ex(
    *, normalise: _Normalise, activation_mode: str, xp: Any
) -> Callable[..., Any]:
    """TensorFlow has this on the CPU with oneDNN only, for graphs that its optimiser rewrote."""
    if activation_mode not in ("Identity", "Relu"):
        raise InvalidArgumentError(f"Unsupported activation mode: {activation_mode}")

    def kernel(
        x: Any, scale: Any, offset: Any, mean: Any, variance: Any, side_input: Sequence[Any]
    ) -> Any:
        y, *statistics = normalise(x, scale, offset, mean, variance)
        for side in side_input:
            require_equal(
                side.shape, y.shape, "side_input shape must be equal to input shape: {} != {}"
            )
            y = y + side
        if activation_mode == "Relu":
            y = xp.maximum(y, y.dtype.type(0))
        return (y, *statistics, xp.zeros((), dtype=scale.dtype))

    return kernel


_TO_CHANNELS_LAST = {b"NCHW": [0, 2, 3, 1], b"NCDHW": [0, 2, 3, 4, 1]}
_TO_CHANNELS_FIRST = {b"NCHW": [0, 3, 1, 2], b"NCDHW": [0, 4, 1, 2, 3]}
_CHANNELS_LAST = {b"NCHW": b"NHWC", b"NCDHW": b"NDHWC"}


def _by(back: str) -> g.GradientFunction:
    """The gradients of the input, the scale and the offset, by the op that gives them.

    In inference that op takes channels last alone.
    """

    def gradient(op: g.Operation, grad: g.Tensor, *unused: Any) -> g.Gradients:
        x, scale, _, mean, variance = op.inputs
        attrs = g.attrs_of(op, "epsilon", "data_format", "is_training")
        layout, normalize_back, reserved = (
            attrs["data_format"],
            getattr(g.nodes, back),
            op.outputs[5:],
        )
        if attrs["is_training"]:
            saved = op.outputs[3:5]
            found = normalize_back(grad, x, scale, *saved, *reserved, **attrs)
            return [*found[:3], None, None]
        if layout in _CHANNELS_LAST:
            attrs["data_format"] = _CHANNELS_LAST[layout]
            grad, x = (g.nodes.Transpose(tensor, _TO_CHANNELS_LAST[layout]) for tensor in (grad, x))
        for_x, *others = normalize_back(grad, x, scale, mean, variance, *reserved, **attrs)[:3]
        if layout in _CHANNELS_LAST:
            for_x = g.nodes.Transpose(for_x, _TO_CHANNELS_FIRST[layout])
        return [for_x, *others, None, None]

    return gradient


for _version in ("", "V2", "V3"):
    g.register_gradient(f"FusedBatchNorm{_version}", not_derivative="it is that of y alone")(
        _by(f"FusedBatchNormGrad{_version}")
    )


_ATTRS = ["T: numbertype", "variance_epsilon: float", "scale_after_normalization: bool"]
_DEPRECATED = (9, "Use tf.nn.batch_normalization()")
_IMAGES = "[batch, height, width, c]"
_TYPES = (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)


GLOBAL_NORMALIZATION = register_op(
    "BatchNormWithGlobalNormalization(t: T, m: T, v: T, beta: T, gamma: T) -> result: T",
    attrs=_ATTRS,
    shape_fn=shape_rule(f"{_IMAGES}, [c], [c], [c], [c] -> {_IMAGES}"),
    deprecated=_DEPRECATED,
    doc="""(t - m) / sqrt(v + variance_epsilon) * gamma + beta, for each channel.

    gamma: Used where `scale_after_normalization` is set.
    """,
)

GLOBAL_NORMALIZATION_GRAD = register_op(
    "BatchNormWithGlobalNormalizationGrad(t: T, m: T, v: T, gamma: T, backprop: T) "
    "-> dx: T, dm: T, dv: T, db: T, dg: T",
    attrs=_ATTRS,
    shape_fn=shape_rule(f"{_IMAGES}, [c], [c], [c], {_IMAGES} -> {_IMAGES}, [c], [c], [c], [c]"),
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
