"""Batch normalisation: each channel brought to a mean and a variance.

In training these are the batch's own, which are also returned, averaged with the given ones where
`exponential_avg_factor` is not 1; in inference they are given. Batches of half and bfloat16 are
normalised in float, and all that there is one of for each channel is float.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/fused_batch_norm_op.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import from_attrs
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import (
    fused_batch_norm_ex_shape,
    fused_batch_norm_shape,
    fused_batch_norm_v3_shape,
)
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.ops.input_checks import require_equal, require_vector
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
    doc: str,
    *,
    types: Sequence[str] = T_AND_U,
    data_format: str = IMAGES,
    extra_inputs: Sequence[str] = (),
    extra_attrs: Sequence[str] = (),
) -> OpHandle:
    u = "U" if len(types) == 2 else "T"
    has_third = name.endswith(("V3", "Ex"))
    shape_fn = fused_batch_norm_v3_shape if has_third else fused_batch_norm_shape
    outputs = ["batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"]
    return register_op(
        name,
        inputs=[
            "x: T",
            *(f"{arg}: {u}" for arg in ("scale", "offset", "mean", "variance")),
            *extra_inputs,
        ],
        outputs=[
            "y: T",
            *(f"{arg}: {u}" for arg in (*outputs, *(["reserve_space_3"] if has_third else []))),
        ],
        attrs=[
            *types,
            "epsilon: float = 0.0001",
            "exponential_avg_factor: float = 1.0",
            *extra_attrs,
            data_format,
            "is_training: bool = true",
        ],
        shape_fn=fused_batch_norm_ex_shape if name.endswith("Ex") else shape_fn,
        traits=f"cost=linear {'' if extra_inputs else 'has_data_format'}",
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

FUSED_BATCH_NORM = _declare("FusedBatchNorm", _DOC, types=["T: {float}"])
FUSED_BATCH_NORM_V2 = _declare("FusedBatchNormV2", _DOC)
FUSED_BATCH_NORM_V3 = _declare(
    "FusedBatchNormV3",
    _DOC,
    types=[T_AND_U[0], "U: {bfloat16, float}"],
    data_format=VOLUMES,
)
FUSED_BATCH_NORM_EX = _declare(
    "_FusedBatchNormEx",
    _DOC + "\nThen the side input is added and the activation applied.",
    types=["T: {half, float, bfloat16}", "U: {float}"],
    extra_inputs=["side_input: num_side_inputs * T"],
    extra_attrs=["num_side_inputs: int >= 0 = 0", "activation_mode: string = 'Identity'"],
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
    if vector.size != channels:
        raise InvalidArgumentError(
            f"{name} must have the same number of elements as the channels of x, "
            f"got {vector.size} and {channels}"
        )


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
