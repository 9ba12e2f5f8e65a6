"""Roughly the k largest elements; on the CPU exactly those.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/topk_op.cc.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.kernel_types import REAL_NUMBERS
from opkernel.ops.math.top_k import top_k_of_rows
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_TILE_OF_VECTOR, _TILE = 1024, 128  # elements that a TPU takes at a time, by rank


def approx_top_k_shape(c: InferenceContext) -> None:
    """The axis `reduction_dimension` shrinks to k, or to the candidates of a TPU."""
    shape = c.with_rank_at_least(c.input(0), 1)
    rank, axis, k = c.rank(shape), c.get_attr("reduction_dimension"), c.get_attr("k")
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"Invalid reduction dimension: {axis}. Must be within the range of "
            f"[{-rank}, {rank - 1}]"
        )
    size = c.value(c.dim(shape, axis))
    if size < k:
        raise InvalidArgumentError(f"input must have last dimension >= k = {k} but was {size}")
    recall = c.get_attr("recall_target")
    is_used = not c.get_attr("aggregate_to_topk")  # else NaN is let pass
    if recall <= 0 or recall > 1 or (is_used and math.isnan(recall)):
        raise InvalidArgumentError(
            f"Invalid recall target: {recall:g}. Valid value range in : [0, 1.0]."
        )
    if is_used:
        k = candidates(size, k, recall, c.get_attr("reduction_input_size_override"), rank)
    shape = c.replace_dim(shape, axis, c.make_dim(k))
    c.set_output(0, shape)
    c.set_output(1, shape)
    if c.get_attr("k") == 0:  # kernels keep none
        c.doubt_output(0)
        c.doubt_output(1)


def candidates(size: int, k: int, recall: float, override: int, rank: int) -> int:
    """How many elements a TPU keeps of `size`, so that the expected recall is met."""
    logical_size = size if override < 0 else override
    tile = _TILE_OF_VECTOR if rank == 1 else _TILE
    if size <= tile or recall == 1:
        return size
    if k == 1:
        return tile
    kept = min(max((1.0 - k) / math.log(recall), tile), size)
    halvings = int(logical_size / kept).bit_length() - 1
    if halvings <= 0:
        return size
    tiles = -(-size // tile)
    halvings = min(halvings, (tiles - 1).bit_length())
    return tile * -(-tiles // (1 << halvings))


APPROX_TOP_K = register_op(
    "ApproxTopK",
    inputs=["input: T"],
    outputs=["values: T", "indices: int32"],
    attrs=[
        "k: int >= 0",
        "reduction_dimension: int = -1",
        "recall_target: float = 0.95",
        "is_max_k: bool = true",
        "reduction_input_size_override: int = -1",
        "aggregate_to_topk: bool = true",
        "T: {half, bfloat16, float}",
    ],
    shape_fn=approx_top_k_shape,
    doc="The `k` largest (or smallest) elements along an axis, with an expected recall.",
)


@register_kernel(
    APPROX_TOP_K,
    device="CPU",
    types={"T": REAL_NUMBERS},
    attrs={"reduction_dimension": [-1], "is_max_k": True},
)
def approx_top_k(input: Any, *, k: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return top_k_of_rows(input, k, True, DataType.DT_INT32)


@g.register_gradient("ApproxTopK")
def approx_top_k_gradient(op: g.Operation, grad: g.Tensor, _: Any) -> g.Gradients:
    from opkernel.ops.math.gradients.top_k import scattered

    return scattered(op, grad)
