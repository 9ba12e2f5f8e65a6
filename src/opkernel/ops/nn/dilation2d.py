"""Dilation2D, the grayscale morphological dilation, and its gradients.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/dilation_ops.cc.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import allocate, register_kernel
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import get_windowed_output_size_from_dims, unchanged_shape
from opkernel.opdef.windowed_output import Padding, get_windowed_output_size_verbose
from opkernel.ops.kernel_types import REAL_NUMBERS
from opkernel.ops.nn.geometry import check_length, check_rank, check_shape
from opkernel.ops.nn.window_reductions import lowest
from opkernel.ops.nn.windows import Array, Geometry, overlaps
from opkernel.types import as_dtype

__all__ = ["DILATION2D"]
