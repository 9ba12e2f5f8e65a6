"""How much a kernel has to do.

`work_of` is a guess that is high rather than low; constant folding, work that the user did not ask for,
goes by it. `least_seconds` is low rather than high; steps that have little time left go by it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.blas_threads import MATRIX_PRODUCTS
from opkernel.kernel.op_kernel import OpKernel
from opkernel.opdef import OpTraits

__all__ = ["least_seconds", "work_of"]

_MOST_PER_SECOND = 1.5e11 * (os.cpu_count() or 1)
"""The most multiplications that the processors do in a second."""

_MOST_SORTED_PER_SECOND = 1e9
_SORTING = frozenset({"ListDiff", "TopK", "TopKV2", "Unique", "UniqueV2", "UniqueWithCounts"})

_OF_CALL = 1 << 14
_OF_ELEMENT = 8
_OF_ITERATION = 1000

_ITERATIVE = frozenset(
    {"Betainc", "Igamma", "IgammaGradA", "Igammac", "Polygamma", "RandomGammaGrad", "Zeta"}
)
"""Pointwise ops that compute a series for each element."""

_LINEAR = frozenset(
    [
        "AddN",
        "BiasAdd",
        "Bincount",
        "BroadcastArgs",
        "BroadcastTo",
        "ClipByValue",
        "Complex",
        "Concat",
        "ConcatV2",
        "Cumprod",
        "Cumsum",
        "DepthToSpace",
        "Dequantize",
        "DynamicPartition",
        "DynamicStitch",
        "Fill",
        "FusedBatchNorm",
        "FusedBatchNormV2",
        "FusedBatchNormV3",
        "Gather",
        "GatherNd",
        "GatherV2",
        "InvertPermutation",
        "LinSpace",
        "LogSoftmax",
        "MatrixBandPart",
        "MatrixDiag",
        "MatrixDiagPart",
        "MatrixDiagPartV2",
        "MatrixDiagPartV3",
        "MatrixDiagV2",
        "MatrixDiagV3",
        "MirrorPad",
        "OneHot",
        "OnesLike",
        "Pack",
        "Pad",
        "PadV2",
        "ParallelConcat",
        "ParallelDynamicStitch",
        "QuantizeV2",
        "Range",
        "Reverse",
        "ReverseSequence",
        "ReverseV2",
        "Roll",
        "ScatterNd",
        "Select",
        "SelectV2",
        "Slice",
        "Softmax",
        "SpaceToDepth",
        "SparseToDense",
        "Split",
        "SplitV",
        "StridedSlice",
        "TensorScatterUpdate",
        "Tile",
        "Transpose",
        "Unpack",
        "Where",
        "ZerosLike",
    ]
)
"""Ops without traits that take time in proportion to their inputs and outputs."""


def work_of(kernel: OpKernel, traits: OpTraits, inputs: Sequence[Any], outputs: int) -> int:
    """The work of a kernel in about a billionth of a second, for so many elements of outputs."""
    op, sizes = kernel.type_string, [int(np.size(value)) for value in inputs]
    elements = sum(sizes) + outputs
    if op in _ITERATIVE:
        work = elements * _OF_ITERATION
    elif op in _LINEAR or traits.pointwise or traits.cheap or traits.reduces or traits.reshapes:
        work = elements * _OF_ELEMENT
    elif op in MATRIX_PRODUCTS:
        work = math.isqrt(math.prod(sizes) * max(outputs, 1)) + elements * _OF_ELEMENT
    elif "Conv" in op and len(inputs) > 1:
        work = outputs * max(sizes[1], 1) // max(np.shape(inputs[1])[-1:] or (1,))
    else:  # it may compare all with all
        work = elements * elements
    return _OF_CALL + work


def least_seconds(op: str, inputs: Sequence[Any]) -> float:
    """The time that a product or a sort of these inputs takes at least; 0 for other ops."""
    if op in _SORTING:
        return max([int(np.size(value)) for value in inputs], default=0) / _MOST_SORTED_PER_SECOND
    if op not in MATRIX_PRODUCTS or len(inputs) != 2:
        return 0
    a, b = map(np.shape, inputs)
    shared = max({*a[-2:]} & {*b[-2:]}, default=1)  # the most that may be summed over
    number = math.prod(a) * math.prod(b) / max(shared * math.prod(a[:-2]), 1)
    return number / _MOST_PER_SECOND
