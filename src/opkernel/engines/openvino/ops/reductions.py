"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import BOOL, openvino_op
from opkernel.engines.openvino.tensors import ints, permuted, scalar, shape_of, unpermuted
from opkernel.ops.math.reductions import reduction_axes

Shapes = list[tuple[int, ...]]


def _reduces(name: str, of_nothing: Any) -> Callable[..., Any]:
    """The builder that calls a function of the opset; and what a reduction of no elements gives."""

    def build(x: Any, axes: Any, *, keep_dims: bool, output_shapes: Shapes) -> Any:
        found = reduction_axes(axes, len(shape_of(x)))
        if 0 in shape_of(x):
            return np.full(output_shapes[0], of_nothing)
        return _reduced(getattr(opset(), name), x, found, keep_dims) if found else x

    return build


def _reduced(reduce: Callable[..., Any], x: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """The reduction of what is not turned yet, with what is left turned after it."""
    x, order = unpermuted(x)
    made = reduce(x, ints([order[axis] for axis in axes]), keep_dims).output(0)
    left = [at for axis, at in enumerate(order) if keep_dims or axis not in axes]
    return permuted(made, [sorted(left).index(at) for at in left])


def _register(op: str, name: str, of_nothing: Any, **options: Any) -> None:
    register = openvino_op(op, constants=["reduction_indices"], takes_empty=True, **options)
    register(_reduces(name, of_nothing))


_BOOLS = {"input": BOOL, "output": BOOL}

_register("All", "reduce_logical_and", np.True_, types=_BOOLS)
_register("Any", "reduce_logical_or", np.False_, types=_BOOLS)
_register("Max", "reduce_max", np.float32(-np.inf), differs_for_non_finite=True)
_register("Mean", "reduce_mean", np.float32(np.nan))
_register("Min", "reduce_min", np.float32(np.inf), differs_for_non_finite=True)
_register("Prod", "reduce_prod", np.float32(1))
_register("Sum", "reduce_sum", np.float32(0))


@openvino_op("EuclideanNorm", constants=["reduction_indices"], takes_empty=True)
def euclidean_norm(x: Any, axes: Any, *, keep_dims: bool, output_shapes: Shapes) -> Any:
    if not axes.size:
        return opset().absolute(x)
    build = _reduces("reduce_l2", np.float32(0))
    return build(x, axes, keep_dims=keep_dims, output_shapes=output_shapes)


@openvino_op("L2Loss", takes_empty=True)
def l2_loss(t: Any) -> Any:
    if 0 in shape_of(t):
        return np.zeros((), np.float32)
    axes = ints(range(len(shape_of(t))))
    return opset().multiply(opset().reduce_sum(opset().multiply(t, t), axes), scalar(0.5))
