"""Means and maxima over windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from opkernel.engines.openvino.layout import channels_first, in_layout
from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import openvino_op
from opkernel.engines.openvino.tensors import shape_of
from opkernel.kernel import from_attrs
from opkernel.ops.nn.pooling import Pool, padded_pool_in_layout, pool_in_layout


def _pooled(x: Any, pool: Pool, compute: Callable[..., Any]) -> Any:
    windows = pool.windows
    geometry = windows.geometry(windows.spatial(shape_of(x)), pool.ksize)
    before, after = zip(*geometry.padding, strict=True)
    made = compute(channels_first(x, windows), before, after)
    return in_layout(made.output(0), windows)


def _mean(x: Any, pool: Pool) -> Any:
    return _pooled(
        x,
        pool,
        lambda images, before, after: opset().avg_pool(
            images, pool.windows.strides, before, after, pool.ksize, exclude_pad=True
        ),
    )


def _largest(x: Any, pool: Pool) -> Any:
    return _pooled(
        x,
        pool,
        lambda images, before, after: opset().max_pool(
            images, pool.windows.strides, pool.windows.dilations, before, after, pool.ksize
        ),
    )


def _over_channels(*, ksize: list[int], strides: list[int], data_format: str) -> str:
    axis = data_format.index("C")
    return "its windows are over channels" if (ksize[axis], strides[axis]) != (1, 1) else ""


@openvino_op("AvgPool", refuses=_over_channels)
@from_attrs(pool=pool_in_layout)
def avg_pool(x: Any, *, pool: Pool) -> Any:
    return _mean(x, pool)


@openvino_op("AvgPool3D", refuses=_over_channels)
@from_attrs(pool=partial(pool_in_layout, rank=5))
def avg_pool_3d(x: Any, *, pool: Pool) -> Any:
    return _mean(x, pool)


@openvino_op("MaxPool", refuses=_over_channels)
@from_attrs(pool=padded_pool_in_layout)
def max_pool(x: Any, *, pool: Pool) -> Any:
    return _largest(x, pool)


@openvino_op("MaxPool3D", refuses=_over_channels, differs_for_non_finite=True)
@from_attrs(pool=partial(pool_in_layout, rank=5))
def max_pool_3d(x: Any, *, pool: Pool) -> Any:
    return _largest(x, pool)
