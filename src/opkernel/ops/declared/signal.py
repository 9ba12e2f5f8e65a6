"""Shapes of Fourier transforms without kernels.

Source: TensorFlow core/ops/spectral_ops.cc.
"""

from opkernel.opdef import OpShapeInferenceFn
from opkernel.opdef.common_shapes import unchanged_shape_with_rank_at_least, unknown_shape

__all__ = ["SHAPE_FNS"]

_BATCH = tuple(f"Batch{way}FFT{suffix}" for way in ("", "I") for suffix in ("", "2D", "3D"))
_ANY_AXES = ("FFTND", "IFFTND", "RFFTND", "IRFFTND")

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_BATCH, unknown_shape),
    **dict.fromkeys(_ANY_AXES, unchanged_shape_with_rank_at_least(1)),
}
