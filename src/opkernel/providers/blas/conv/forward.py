"""Which algorithm computes a convolution: the first that pays for the sizes of the call."""

from collections.abc import Callable

import numpy as np

from opkernel.ops.nn.epilogue import Epilogue
from opkernel.ops.nn.windows import Array, Geometry
from opkernel.providers.blas.conv import by_lines, by_panels, im2col, winograd
from opkernel.providers.blas.conv.depthwise import depthwise
from opkernel.providers.blas.epilogue import finish

_Choice = Callable[[Array, Array, Geometry], Array | None]
"""The filters of a call in the form that an algorithm wants; None where it does not pay."""

_Compute = Callable[[Array, Array, Geometry, Epilogue | None], Array | None]
"""The convolution, then the epilogue; None where the result would be wrong."""

_ALGORITHMS: tuple[tuple[_Choice, _Compute], ...] = (
    (winograd.weights_for, winograd.convolve),
    (by_panels.weights_for, by_panels.convolve),
    (by_lines.weights_for, by_lines.convolve),
)


def convolve(
    x: Array, filters: Array, geometry: Geometry, epilogue: Epilogue | None = None, /
) -> Array:
    """The convolution `[batch, *output, out]`, in groups where the filters have fewer channels."""
    if x.shape[-1] != filters.shape[-2]:
        return _convolve_groups(x, filters, geometry, epilogue)
    for weights_for, compute in _ALGORITHMS:
        weights = weights_for(x, filters, geometry)
        if weights is not None:
            result = compute(x, weights, geometry, epilogue)
            if result is not None:
                return result
    return im2col.convolve(x, filters, geometry, epilogue)


def _convolve_groups(
    x: Array, filters: Array, geometry: Geometry, epilogue: Epilogue | None
) -> Array:
    """As many convolutions as the filters' channels fit into the input; of one channel as `depthwise`."""
    *window, depth, out_depth = filters.shape
    groups = x.shape[-1] // depth
    if depth == 1 and len(window) == 2:
        by_channel = filters.reshape(*window, groups, out_depth // groups)
        return depthwise(x, by_channel, geometry, epilogue)
    pairs = zip(np.split(x, groups, axis=-1), np.split(filters, groups, axis=-1), strict=True)
    result = np.concatenate([convolve(i, f, geometry) for i, f in pairs], axis=-1)
    finish(result, (slice(None),) * result.ndim, epilogue)
    return result
