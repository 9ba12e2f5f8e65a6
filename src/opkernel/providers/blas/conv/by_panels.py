"""Convolution of few windows, with filters that stay: all windows at once, times panels of the filters."""

import math

from opkernel.kernel import allocate, shard
from opkernel.ops.nn.epilogue import Epilogue
from opkernel.ops.nn.windows import Array, Geometry
from opkernel.providers.blas.conv.im2col import COST, rows_of_windows
from opkernel.providers.blas.epilogue import finish
from opkernel.providers.blas.panels import multiply_by_panels, panels_of, parts_of_panels
from opkernel.providers.blas.products import threads_for
from opkernel.types import as_dtype


def weights_for(x: Array, filters: Array, geometry: Geometry) -> Array | None:
    """The filters as panels; None where these do not pay, or the filters may be others in each step."""
    return panels_of(filters, len(x) * math.prod(geometry.output))


def convolve(x: Array, weights: Array, geometry: Geometry, epilogue: Epilogue | None) -> Array:
    """The convolution with filters as panels; threads share out the panels."""
    depth = weights.shape[-3] * weights.shape[-1]
    out = allocate((len(x), *geometry.output, depth), as_dtype(x.dtype))
    matrix, everywhere = out.reshape(-1, depth), (slice(None),) * (out.ndim - 1)
    rows = rows_of_windows(x, geometry, (slice(None),))

    def compute(part: tuple[Array, slice]) -> None:
        panels, channels = part
        multiply_by_panels(rows, panels, matrix[:, channels])
        finish(out[..., channels], (*everywhere, channels), epilogue)

    copied = 0 if geometry.is_pointwise else rows.size
    multiplications = out.size * (rows.shape[1] + COST) + copied * COST
    shard(compute, parts_of_panels(weights, threads_for(multiplications)))
    return out
