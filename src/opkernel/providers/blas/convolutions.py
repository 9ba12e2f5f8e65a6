"""The kernels of the convolution family."""

from opkernel.ops.nn.conv.ops import register_convolutions
from opkernel.ops.nn.conv.reference import Algorithms
from opkernel.providers.blas import BLAS
from opkernel.providers.blas.conv.depthwise import (
    depthwise,
    depthwise_by_filters,
    depthwise_by_input,
)
from opkernel.providers.blas.conv.forward import convolve
from opkernel.providers.blas.conv.gradients import by_filters, by_input

ALGORITHMS = Algorithms(
    convolve,
    by_input,
    by_filters,
    depthwise,
    depthwise_by_input,
    depthwise_by_filters,
    prepares=True,
)

register_convolutions(ALGORITHMS, BLAS.kernels)
