"""Calls of convolutions and matrix products, from tiny ones to sizes that faster forms are for.

Calls that are drawn from an op's declaration alone (`op_calls`) have few elements, since most faults show
in few. Where a kernel chooses an algorithm by size, such calls find only faults of the one for small sizes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.opdef import find_attr, global_op_registry
from opkernel.testing.op_call import OpCall
from opkernel.testing.op_runs import node_of
from opkernel.types import DataType

_Case = tuple[dict[str, Any], list[Any]]
"""The attrs of a call, and the shapes of its inputs, a list for each; arrays stand for themselves."""

_MOST = 40 << 20
"""The most multiplications of a call: the reference kernels take too long for more."""
_MOST_ELEMENTS = 1 << 20
_TRIES = 20
_TYPES = [DataType.DT_FLOAT] * 4 + [DataType.DT_DOUBLE, DataType.DT_HALF]


class _Draw(random.Random):
    """Draws the particulars of a call; `number` is the number of the call."""

    number = 0


def has_product_calls(op: str) -> bool:
    """Whether `product_calls` knows an op."""
    return op in _CASES


def product_calls(op: str, count: int, seed: int = 0) -> Iterator[OpCall]:
    """About `count` calls of an op, the same ones for the same seed; none of ops of other kinds.

    Among them are all paddings, strides and dilations, transposed operands, sizes of 0, and values that
    are not finite.
    """
    make = _CASES.get(op)
    if make is None:
        return
    registration = global_op_registry().look_up(op)
    draw = _Draw(f"{op} {seed}")
    for number in range(count):
        draw.number = number
        attrs, inputs = make(draw)
        for _ in range(_TRIES):
            if not _is_moderate(inputs):
                attrs, inputs = make(draw)
        if _is_moderate(inputs):
            declared = {n: v for n, v in attrs.items() if find_attr(registration.op_def, n)}
            node = node_of(registration.op_def, declared)
            dtype = attrs["T"].numpy_dtype
            values = [
                one if isinstance(one, np.ndarray) else _values(draw, one, dtype) for one in inputs
            ]
            yield OpCall(registration, node, tuple(values))


def _is_moderate(inputs: Sequence[Any]) -> bool:
    sizes = [int(np.prod(one)) for one in inputs if not isinstance(one, np.ndarray)]
    return max(sizes) <= _MOST_ELEMENTS and _multiplications(inputs) <= _MOST


def _multiplications(inputs: Sequence[Any]) -> int:
    """About so many: each element of an input meets each column of the weights, once for each window."""
    arrays = (one.tolist() if isinstance(one, np.ndarray) else one for one in inputs)
    x, weights, *_ = (shape for shape in arrays if not any(isinstance(n, list) for n in shape))
    columns = int(np.prod(weights)) // max(int(weights[-2]), 1)
    return int(np.prod(x)) * max(columns, 1)


def _values(draw: _Draw, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
    numbers = np.random.default_rng(draw.randrange(1 << 30))
    sizes = numbers.uniform(0.25, 2, shape)  # tiny ones would be left uncompared, as extremes
    array = np.copysign(sizes, numbers.uniform(-1, 1, shape)).astype(dtype)
    if array.size and dtype.kind in "fV" and draw.randrange(8) == 0:  # complex ones differ
        place = numbers.integers(array.size)
        array.reshape(-1)[place] = draw.choice([np.nan, np.inf, -np.inf])
    return array


def _size(draw: _Draw, *sizes: int) -> int:
    return 0 if draw.randrange(40) == 0 else draw.choice(sizes)


def _matmul(draw: _Draw) -> _Case:
    rows = _size(draw, 1, 2, 7, 16, 49, 64, 65, 200, 1000)
    terms = _size(draw, 1, 3, 8, 64, 160, 512, 1024)
    columns = _size(draw, 1, 5, 10, 32, 64, 256, 512, 1000)
    transpose_a, transpose_b = draw.random() < 0.2, draw.random() < 0.2
    a = [terms, rows] if transpose_a else [rows, terms]
    b = [columns, terms] if transpose_b else [terms, columns]
    dtype = draw.choice([*_TYPES, DataType.DT_INT32, DataType.DT_COMPLEX64])
    return {"T": dtype, "transpose_a": transpose_a, "transpose_b": transpose_b}, [a, b]


def _fused_matmul(draw: _Draw) -> _Case:
    attrs, (a, b) = _matmul(draw)
    columns = b[0] if attrs["transpose_b"] else b[1]
    rows = a[1] if attrs["transpose_a"] else a[0]
    activations = ["Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid", "GeluExact"]
    fused, args = _fusion(draw, columns, [rows, columns], [*activations, "GeluApproximate"])
    dtype = draw.choice([DataType.DT_FLOAT] * 4 + [DataType.DT_HALF])
    return {**attrs, **fused, "T": dtype, "num_args": len(args)}, [a, b, *args]


def _fusion(
    draw: _Draw, depth: int, shape: Sequence[int], activations: Sequence[str]
) -> tuple[dict[str, Any], list[Any]]:
    """The attrs of the fused operations, and the shapes of their inputs."""
    adds = draw.random() < 0.4
    names = ["BiasAdd", *(["Add"] if adds else []), *draw.sample(activations, draw.randrange(2))]
    attrs = {"fused_ops": names, "leakyrelu_alpha": 0.3}
    return attrs, [[depth], *([list(shape)] if adds else [])]


def _batch_matmul(draw: _Draw) -> _Case:
    attrs, (x, y) = _matmul(draw)
    batches = [[], [1], [5], [3, 1], [3, 4], [1, 4]]
    batch = draw.choice(batches)
    names = {"T": attrs["T"], "adj_x": attrs["transpose_a"], "adj_y": attrs["transpose_b"]}
    return names, [[*batch, *x], [*draw.choice([batch, batch, []]), *y]]


def _windows(draw: _Draw, rank: int) -> dict[str, Any]:
    """Sizes, windows, strides, dilations and paddings of a convolution, one a spatial dimension.

    Each kind in turn: any, many channels, few positions, few channels.
    """
    kinds: tuple[dict[str, Any], ...] = (
        {},
        _many_channels(draw, rank),
        _few_positions(draw, rank),
        _few_channels(draw, rank),
    )
    return {**_any_windows(draw, rank), **kinds[draw.number % 4]}


def _any_windows(draw: _Draw, rank: int) -> dict[str, Any]:
    size = draw.choice([1, 5, 8, 14, 15, 28, 56] if rank == 2 else [1, 3, 4, 8])
    channels = [1, 3, 8, 32, 64, 128] if rank == 2 else [1, 3, 8, 16]
    window = draw.choice([1, 1, 2, 3, 3, 3, 3, 5])
    return {
        "sizes": [_size(draw, size, size, size + 1) for _ in range(rank)],
        "window": [window, *([draw.choice([window, window, 2])] * (rank - 1))],
        "stride": draw.choice([1, 1, 1, 2, 3]),
        "dilation": draw.choice([1, 1, 1, 2]) if window > 1 else 1,
        "padding": draw.choice(["SAME", "SAME", "VALID", "EXPLICIT"]),
        "around": [[draw.randrange(3), draw.randrange(3)] for _ in range(rank)],
        "batch": _size(draw, 1, 2, 8, 16),
        "channels": _size(draw, *channels),
        "depth": _size(draw, *channels),
        "multiplier": draw.choice([1, 1, 2]),
    }


_DENSE = {"stride": 1, "dilation": 1, "padding": "SAME"}


def _many_channels(draw: _Draw, rank: int) -> dict[str, Any]:
    """Three neighbours each way, as in the middle of a network."""
    size, channels = 15 if rank == 2 else 3, draw.choice([96, 128, 128])
    sizes = [size, *[size + 1] * (rank - 1)]
    here = {"sizes": sizes, "window": [3] * rank, "batch": 1, "channels": channels, "depth": 128}
    return {**_DENSE, **here}


def _few_positions(draw: _Draw, rank: int) -> dict[str, Any]:
    """As at the end of a network."""
    sizes, window = [7 if rank == 2 else 2] * rank, [draw.choice([1, 3])] * rank
    here = {"sizes": sizes, "window": window, "batch": 1, "channels": 128}
    return {**_DENSE, **here, "depth": draw.choice([192, 256])}


def _few_channels(draw: _Draw, rank: int) -> dict[str, Any]:
    """As at the beginning of a network, of several images."""
    size, channels = 28 if rank == 2 else 8, draw.choice([4, 8])
    here = {
        "sizes": [size] * rank,
        "window": [3] * rank,
        "batch": 4,
        "channels": channels,
        "depth": 8,
    }
    return {**_DENSE, **here}


def _output(w: Mapping[str, Any]) -> list[int]:
    """The spatial sizes of the result."""
    found = []
    for size, window, around in zip(w["sizes"], w["window"], w["around"], strict=True):
        reach = (window - 1) * w["dilation"] + 1
        padded = size + (sum(around) if w["padding"] == "EXPLICIT" else 0)
        room = size + w["stride"] - 1 if w["padding"] == "SAME" else padded - reach + w["stride"]
        found.append(max(room // w["stride"], 0))
    return found


def _attrs(draw: _Draw, w: Mapping[str, Any]) -> dict[str, Any]:
    rank = len(w["sizes"])
    explicit = [0, 0, *(n for pair in w["around"] for n in pair), 0, 0]
    return {
        "T": draw.choice(_TYPES),
        "strides": [1, *[w["stride"]] * rank, 1],
        "dilations": [1, *[w["dilation"]] * rank, 1],
        "padding": w["padding"],
        "explicit_paddings": explicit if w["padding"] == "EXPLICIT" else [],
    }


def _conv(rank: int, which: str = "forward") -> Callable[[_Draw], _Case]:
    """A convolution, or its gradient `by_input`, `by_filter`, or, given examples of both, `like_both`."""

    def make(draw: _Draw) -> _Case:
        w = _windows(draw, rank)
        if rank == 3 or which != "forward":
            w["dilation"] = 1
        if rank == 3 and w["padding"] == "EXPLICIT":
            w["padding"] = "SAME"
        groups = draw.choice([1, 1, 1, 2, 4]) if rank == 2 and which == "forward" else 1
        x = [w["batch"], *w["sizes"], w["channels"] * groups]
        filters = [*w["window"], w["channels"], w["depth"] * groups]
        gradient = [w["batch"], *_output(w), w["depth"]]
        return _attrs(draw, w), _inputs(which, x, filters, gradient)

    return make


def _inputs(which: str, x: list[int], filters: list[int], gradient: list[int]) -> list[Any]:
    cases: dict[str, list[Any]] = {
        "by_input": [np.array(x, np.int32), filters, gradient],
        "by_filter": [x, np.array(filters, np.int32), gradient],
        "like_both": [x, filters, gradient],
    }
    return cases.get(which, [x, filters])


def _depthwise(which: str = "forward") -> Callable[[_Draw], _Case]:
    def make(draw: _Draw) -> _Case:
        w = _windows(draw, 2)
        w["dilation"] = 1
        x = [w["batch"], *w["sizes"], w["channels"]]
        filters = [*w["window"], w["channels"], w["multiplier"]]
        gradient = [w["batch"], *_output(w), w["channels"] * w["multiplier"]]
        return _attrs(draw, w), _inputs(which, x, filters, gradient)

    return make


def _fused_conv(draw: _Draw) -> _Case:
    w = _windows(draw, 2)
    attrs = {**_attrs(draw, w), "T": draw.choice([DataType.DT_FLOAT] * 4 + [DataType.DT_DOUBLE])}
    shape = [w["batch"], *_output(w), w["depth"]]
    fused, args = _fusion(draw, w["depth"], shape, ["Relu", "Relu6", "Elu", "LeakyRelu"])
    if draw.random() < 0.2:
        fused, args = {"fused_ops": ["FusedBatchNorm", "Relu"], "epsilon": 10.0}, [[w["depth"]]] * 4
    attrs |= {**fused, "num_args": len(args), "TArgs": [attrs["T"]] * len(args)}
    x, filters = [w["batch"], *w["sizes"], w["channels"]], [*w["window"], w["channels"], w["depth"]]
    return attrs, [x, filters, *args]


def _fused_depthwise(draw: _Draw) -> _Case:
    attrs, (x, filters) = _depthwise()(draw)
    if attrs["padding"] == "EXPLICIT":
        attrs["padding"] = "VALID"
    depth = filters[2] * filters[3]
    activation = draw.sample(["Relu", "Relu6", "Elu"], draw.randrange(2))
    attrs |= {"fused_ops": ["BiasAdd", *activation], "num_args": 1}
    attrs["T"] = draw.choice([DataType.DT_FLOAT] * 3 + [DataType.DT_HALF])
    return attrs, [x, filters, [depth]]


def _fused_pad(draw: _Draw) -> _Case:
    w = _windows(draw, 2)
    w["padding"], w["dilation"] = draw.choice(["SAME", "VALID"]), 1
    most = max(min(w["sizes"]) - 1, 0)
    around = [[min(a, most), min(b, most)] for a, b in w["around"]]
    paddings = np.array([[0, 0], *around, [0, 0]], np.int32)
    x, filters = [w["batch"], *w["sizes"], w["channels"]], [*w["window"], w["channels"], w["depth"]]
    attrs = {**_attrs(draw, w), "mode": draw.choice(["REFLECT", "SYMMETRIC"])}
    return attrs, [x, paddings, filters]


def _einsum(draw: _Draw) -> _Case:
    m, k, n, b = (_size(draw, 1, 3, 16, 64, 100) for _ in range(4))
    equation, first, second = draw.choice(
        [
            ("mk,kn->mn", [m, k], [k, n]),
            ("bmk,kn->bmn", [b, m, k], [k, n]),
            ("bmk,bnk->bmn", [b, m, k], [b, n, k]),
            ("bmhk,bnhk->bhmn", [3, m, 4, k], [3, n, 4, k]),
        ]
    )
    return {"T": draw.choice(_TYPES), "N": 2, "equation": equation}, [first, second]


def _crop_gradient(draw: _Draw) -> _Case:
    """Boxes that reach beyond images, and a few places in each."""
    count, batch, depth = _size(draw, 1, 3, 20), draw.choice([1, 4]), draw.choice([1, 3, 20])
    rows, columns, height, width = (draw.choice([1, 2, 5, 9]) for _ in range(4))
    box_index = np.array([draw.randrange(batch) for _ in range(count)], np.int32)
    image_size = np.array([batch, height, width, depth], np.int32)
    attrs = {"T": DataType.DT_FLOAT, "method": draw.choice(["bilinear", "nearest"])}
    return attrs, [[count, rows, columns, depth], [count, 4], box_index, image_size]


_CASES: dict[str, Callable[[_Draw], _Case]] = {
    "BatchMatMulV2": _batch_matmul,
    "Conv": _conv(2),
    "Conv2D": _conv(2),
    "Conv2DBackpropFilter": _conv(2, "by_filter"),
    "Conv2DBackpropInput": _conv(2, "by_input"),
    "Conv3D": _conv(3),
    "Conv3DBackpropFilter": _conv(3, "like_both"),
    "Conv3DBackpropFilterV2": _conv(3, "by_filter"),
    "Conv3DBackpropInput": _conv(3, "like_both"),
    "Conv3DBackpropInputV2": _conv(3, "by_input"),
    "CropAndResizeGradImage": _crop_gradient,
    "DepthwiseConv2dNative": _depthwise(),
    "DepthwiseConv2dNativeBackpropFilter": _depthwise("by_filter"),
    "DepthwiseConv2dNativeBackpropInput": _depthwise("by_input"),
    "Einsum": _einsum,
    "FusedPadConv2D": _fused_pad,
    "MatMul": _matmul,
    "_FusedConv2D": _fused_conv,
    "_FusedDepthwiseConv2dNative": _fused_depthwise,
    "_FusedMatMul": _fused_matmul,
}
