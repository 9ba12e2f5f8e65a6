"""Values that are known at compile time: operations on constants, computed by the kernels of the CPU.

Source: TensorFlow compiler/tf2xla/const_analysis.h, which finds what must be constant; common_runtime/constant_folding.cc
for the limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.local_device import eager_device
from opkernel.errors import NotFoundError
from opkernel.graph import Operation
from opkernel.kernel import create_op_kernel
from opkernel.kernel.context.declared_outputs import flat_outputs
from opkernel.kernel.function_kernel import FunctionKernel
from opkernel.kernel.node_properties import by_arg
from opkernel.opdef.shapes.run_shape_fn import infer_call
from opkernel.types import DataType

_MOST_BYTES = 10 << 20
"""No constant that is computed is larger, as in TensorFlow."""
_SMALL = 1 << 16
_HANDLES = frozenset({DataType.DT_RESOURCE, DataType.DT_VARIANT})


def fold(op: Operation, inputs: Sequence[Any]) -> list[Any] | None:
    """The outputs of an operation on constants; None where the program has to compute them.

    Raises:
        OpError: the kernel refuses the inputs.
    """
    if not inputs or not all(isinstance(value, np.ndarray) for value in inputs):
        return None
    is_of_numbers = all(dtype not in _HANDLES for dtype in op.signature.output_types)
    if op.op_def.is_stateful or not is_of_numbers or not _is_small(op, inputs):
        return None
    try:
        kernel = create_op_kernel(eager_device(), op.node_def)
    except NotFoundError:
        return None
    if not isinstance(kernel, FunctionKernel):
        return None
    with np.errstate(all="ignore"):
        found = kernel.function(*by_arg(inputs, kernel.properties.input_args))
    return [np.asarray(value) for value in flat_outputs(kernel, found)]


def _is_small(op: Operation, inputs: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Whether the outputs are no larger than a constant may be."""
    taken = sum(value.nbytes for value in inputs)
    registration = op.graph.function_library.look_up(op.type)
    shapes = [value.shape for value in inputs]
    version = op.graph.graph_def_versions.producer
    context = infer_call(registration, op.node_def, shapes, inputs, version)
    for shape, dtype in zip(context.reliable_outputs(), op.signature.output_types, strict=True):
        if shape is None or not context.fully_defined(shape):
            if taken > _SMALL:
                return False
        elif (
            math.prod(dim.value for dim in shape.dims or ()) * dtype.numpy_dtype.itemsize
            > _MOST_BYTES
        ):
            return False
    return taken <= _MOST_BYTES
