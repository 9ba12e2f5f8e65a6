"""Shapes of Fourier transforms.

Source: TensorFlow core/ops/spectral_ops.cc.
"""

from functools import partial

from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import (
    unchanged_shape_with_rank_at_least,
    unknown_shape,
)

__all__ = ["SHAPE_FNS"]


def _real_transform_shape(c: InferenceContext, rank: int, forward: bool) -> None:
    """Input 0, the last `rank` dimensions as long as input 1 says.

    The last of a forward transform is only the half without negative frequencies.
    """
    shape = c.with_rank_at_least(c.input(0), rank)
    c.with_value(c.dim(c.with_rank(c.input(1), 1), 0), rank)
    lengths = c.input_tensor(1)
    sizes = [None] * rank if lengths is None else lengths.tolist()
    if forward and sizes[-1]:
        sizes[-1] = int(sizes[-1] / 2) + 1  # towards zero, as in C++
    for axis, size in enumerate(sizes, -rank):
        shape = c.replace_dim(shape, axis, size)
    c.set_output(0, shape)


def _transforms_of_rank(rank: int) -> dict[str, OpShapeInferenceFn]:
    suffix = "" if rank == 1 else f"{rank}D"
    complex_shape = unchanged_shape_with_rank_at_least(rank)
    return {
        f"FFT{suffix}": complex_shape,
        f"IFFT{suffix}": complex_shape,
        f"RFFT{suffix}": partial(_real_transform_shape, rank=rank, forward=True),
        f"IRFFT{suffix}": partial(_real_transform_shape, rank=rank, forward=False),
        f"BatchFFT{suffix}": unknown_shape,
        f"BatchIFFT{suffix}": unknown_shape,
    }


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **_transforms_of_rank(1),
    **_transforms_of_rank(2),
    **_transforms_of_rank(3),
    "FFTND": unchanged_shape_with_rank_at_least(1),
    "IFFTND": unchanged_shape_with_rank_at_least(1),
    "RFFTND": unchanged_shape_with_rank_at_least(1),
    "IRFFTND": unchanged_shape_with_rank_at_least(1),
}
