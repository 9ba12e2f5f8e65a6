"""Pooling: the largest element or the mean of windows.

Source: TensorFlow python/ops/nn_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel import raw_ops
from opkernel.endpoints.global_seed import seeds_of
from opkernel.endpoints.nn._dilated_pool import dilated_pool
from opkernel.endpoints.nn._sizes import CHANNELS_FIRST, full_sizes, padding_attrs
from opkernel.endpoints.tensors import DTypeLike, TensorLike, composed, convert, known_rank
from opkernel.types import DataType, as_dtype


def _attrs(n: int, data_format: str, ksize: Any, strides: Any, padding: Any) -> dict[str, Any]:
    is_first = data_format in CHANNELS_FIRST
    return {
        "ksize": full_sizes(ksize, n, is_first, "ksize"),
        "strides": full_sizes(strides, n, is_first, "strides"),
        "data_format": data_format,
        **padding_attrs(padding),
    }


def _pooled(
    op: Callable[..., Any], sequences: Any, form: str, sizes: tuple[Any, Any], pad: Any
) -> Any:
    """An op that pools images, applied to sequences."""
    is_first = form == "NCW"
    axis = 2 if is_first else 1
    attrs = _attrs(1, "NCHW" if is_first else "NHWC", *sizes, pad)
    for name in ("ksize", "strides"):
        attrs[name].insert(axis, 1)
    found = op(raw_ops.ExpandDims(input=convert(sequences), axis=axis), attrs)
    return raw_ops.Squeeze(input=found, axis=[axis])


def _max(x: Any, attrs: dict[str, Any]) -> Any:
    return raw_ops.MaxPool(input=x, **attrs)


def _avg(x: Any, attrs: dict[str, Any]) -> Any:
    return raw_ops.AvgPool(value=x, **attrs)


@composed
def max_pool1d(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NWC",
    name: str | None = None,
) -> Any:
    """The largest element of each window of sequences; the arguments are those of max_pool2d."""
    return _pooled(_max, input, data_format, (ksize, strides), padding)


@composed
def max_pool2d(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Any:
    """The largest element of each window of images.

    Args:
        input: [batch, height, width, channels], or channels after the batch with "NCHW".
        ksize: the size of the window: a number, one for each axis of an image, or for each of the input.
        strides: how far windows are apart, given in the same way.
        padding: "SAME", "VALID", or how much to add before and after each axis.
        data_format: "NHWC" or "NCHW".
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: a number of sizes or the padding is not one of these.
    """
    return _max(convert(input), _attrs(2, data_format or "NHWC", ksize, strides, padding))


@composed
def max_pool3d(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Any:
    """The largest element of each window of volumes; the arguments are those of max_pool2d."""
    attrs = _attrs(3, data_format or "NDHWC", ksize, strides, padding)
    return raw_ops.MaxPool3D(input=convert(input), **attrs)


@composed
def avg_pool1d(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NWC",
    name: str | None = None,
) -> Any:
    """The mean of each window of sequences; the arguments are those of max_pool2d."""
    return _pooled(_avg, input, data_format, (ksize, strides), padding)


@composed
def avg_pool2d(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Any:
    """The mean of each window of images; the arguments are those of max_pool2d."""
    return _avg(convert(input), _attrs(2, data_format or "NHWC", ksize, strides, padding))


@composed
def avg_pool3d(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Any:
    """The mean of each window of volumes; the arguments are those of max_pool2d."""
    attrs = _attrs(3, data_format or "NDHWC", ksize, strides, padding)
    return raw_ops.AvgPool3D(input=convert(input), **attrs)


_FORMS = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def _by_rank(functions: dict[int, Callable[..., Any]], x: Any, form: str | None) -> Any:
    n = known_rank(x, "Pooling") - 2
    if n not in functions:
        raise ValueError(f"Pooling takes tensors of rank 3, 4 or 5, and not {n + 2}")
    return functions[n], form or _FORMS[n]


@composed
def max_pool(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Any:
    """max_pool1d, max_pool2d or max_pool3d, by the rank of the input."""
    x = convert(input)
    function, form = _by_rank({1: max_pool1d, 2: max_pool2d, 3: max_pool3d}, x, data_format)
    return function(x, ksize, strides, padding, form)


@composed
def avg_pool(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Any:
    """avg_pool1d, avg_pool2d or avg_pool3d, by the rank of the input."""
    x = convert(input)
    function, form = _by_rank({1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}, x, data_format)
    return function(x, ksize, strides, padding, form)


@composed
def pool(
    input: TensorLike,
    window_shape: Any,
    pooling_type: str,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """Windows of sequences, images or volumes, as one element each.

    Args:
        input: a batch, with channels.
        window_shape: the size of the window along each axis.
        pooling_type: "MAX" or "AVG".
        strides: how far windows are apart; 1 if None.
        padding: "SAME" or "VALID".
        data_format: the order of axes; channels last if None.
        dilations: how far the elements of a window are apart; 1 if None.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: the type is another, strides are longer than the window, or windows with gaps have strides or the
            padding "SAME".
    """
    functions: dict[str, Callable[..., Any]] = {"MAX": max_pool, "AVG": avg_pool}
    if pooling_type not in functions:
        raise ValueError(f'pooling_type is "MAX" or "AVG", and not {pooling_type!r}')
    sizes = window_shape, 1 if strides is None else strides, 1 if dilations is None else dilations

    def pooled(part: Any, pad: Any) -> Any:
        return functions[pooling_type](part, *sizes[:2], pad, data_format)

    return dilated_pool(pooled, input, sizes, padding, data_format)


@composed
def max_pool_with_argmax(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    output_dtype: DTypeLike = DataType.DT_INT64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> Any:
    """The largest element of each window of images, and its index in the flat image.

    Raises:
        ValueError: `data_format` is not "NHWC".
    """
    if data_format != "NHWC":
        raise ValueError(f'data_format is "NHWC", and not {data_format!r}')
    mode: Any = padding
    return raw_ops.MaxPoolWithArgmax(
        input=input,
        ksize=full_sizes(ksize, 2, False, "ksize"),
        strides=full_sizes(strides, 2, False, "strides"),
        padding=mode,
        Targmax=as_dtype(output_dtype),
        include_batch_in_index=include_batch_in_index,
    )


def _fractional(op: Callable[..., Any], value: Any, ratio: Any, seed: int, **attrs: bool) -> Any:
    ratios = [float(number) for number in (ratio if isinstance(ratio, list | tuple) else [ratio])]
    if len(ratios) < 4:
        ratios = [1.0, *(ratios * 2 if len(ratios) == 1 else ratios), 1.0]
    if min(ratios) < 1:
        raise ValueError(f"pooling_ratio is 1 or more, and not {ratio}")
    seeds = {"seed": 0, "seed2": 0} if seed == 0 else seeds_of(seed, value)
    return op(value=value, pooling_ratio=ratios, deterministic=seed != 0, **attrs, **seeds)


@composed
def fractional_max_pool(
    value: TensorLike,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> Any:
    """The largest element of each of windows with sizes that are drawn.

    Args:
        value: images.
        pooling_ratio: how much smaller the result is: a number, or one for each axis of the input.
        pseudo_random: draw so that sizes are more even.
        overlapping: neighbours share an edge.
        seed: a seed; 0 for other windows in each call.
        name: a name for the scope of nodes in a graph.

    Returns:
        The result, and where windows begin along rows and columns.
    """
    attrs = {"pseudo_random": pseudo_random, "overlapping": overlapping}
    return _fractional(raw_ops.FractionalMaxPool, value, pooling_ratio, seed, **attrs)


@composed
def fractional_avg_pool(
    value: TensorLike,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> Any:
    """The mean of each of windows with sizes that are drawn; see fractional_max_pool."""
    attrs = {"pseudo_random": pseudo_random, "overlapping": overlapping}
    return _fractional(raw_ops.FractionalAvgPool, value, pooling_ratio, seed, **attrs)
