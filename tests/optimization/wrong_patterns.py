"""Further graphs for `mutated`: what each rule looks for, in shapes of which less is known."""

from __future__ import annotations

import numpy as np
from tests.optimization.what_passes_change import (
    IMAGE,
    MATRIX,
    Changed,
    conv,
    first_of,
    floats,
    ints,
    of,
)
from tests.runtime.dataflow.loop_builders import INT32

from opkernel.types import DataType

__all__ = ["PATTERNS"]

VECTOR = np.arange(6, dtype=np.float32)


def rows(b, x):
    return list(b.operation("Unpack", x, num=2).outputs)


def turned(b, x, *axes):
    return b.op("Transpose", x, ints(b, *axes))


_REDUNDANT = {
    "pad": lambda b, x: b.op("Pad", x, ints(b, [0, 0], [0, 0])),
    "pad with": lambda b, x: b.op("PadV2", x, ints(b, [0, 0], [0, 0]), b.constant(1.0)),
    "reflect": lambda b, x: b.op("MirrorPad", x, ints(b, [0, 0], [0, 0]), mode="REFLECT"),
    "mirror": lambda b, x: b.op("MirrorPad", x, ints(b, [0, 0], [0, 0]), mode="SYMMETRIC"),
    "tile": lambda b, x: b.op("Tile", x, ints(b, 1, 1)),
    "reverse": lambda b, x: b.op("ReverseV2", x, b.constant(np.zeros(0, np.int32))),
    "maximum": lambda b, x: b.op("Max", x, b.constant(np.zeros(0, np.int32))),
    "split": lambda b, x: b.op("Split", b.constant(0), x, num_split=1),
    "repack": lambda b, x: b.op("Pack", rows(b, x)),
    "unpack": lambda b, x: b.op("AddN", rows(b, b.op("Pack", [x, x]))),
    "element": lambda b, x: first_of(b, b.op("Pack", [x, x])),
    "slice": lambda b, x: b.op("Slice", x, ints(b, 0, 0), ints(b, -1, -1)),
    "strides": lambda b, x: b.op("StridedSlice", x, ints(b, 0, 0), ints(b, 2, 3), ints(b, 1, 1)),
    "squeeze": lambda b, x: b.op("Squeeze", b.op("ExpandDims", x, b.constant(0)), squeeze_dims=[0]),
    "broadcast": lambda b, x: b.op("BroadcastTo", x, ints(b, 2, 3)),
    "select": lambda b, x: b.op("Select", b.constant(np.full((2, 3), True)), x, floats(b, 2, 3)),
    "choice": lambda b, x: b.op("SelectV2", b.constant(np.full((2, 1), True)), x, floats(b, 2, 3)),
    "sum": lambda b, x: b.op("AddV2", x, b.constant(np.full((2, 3), -0.0, np.float32))),
    "power": lambda b, x: b.op("Pow", x, b.constant(np.full((1, 3), 3, np.float32))),
    "factors": lambda b, x: b.op("Mul", b.op("Mul", x, floats(b, 2, 1)), floats(b, 2, 3)),
    "log": lambda b, x: b.op("Log", b.op("AddV2", x, b.constant(np.ones((1, 3), np.float32)))),
    "concat": lambda b, x: b.op(
        "ConcatV2", [b.op("ConcatV2", [x, x], b.constant(0)), x], b.constant(0)
    ),
    "bitcast": lambda b, x: b.op("Bitcast", b.op("Bitcast", x, type=INT32), type=DataType.DT_HALF),
    "bitcast back": lambda b, x: b.op(
        "Bitcast", b.op("Bitcast", x, type=DataType.DT_UINT8), type=INT32
    ),
    "product": lambda b, x: b.op("BatchMatMulV2", x, turned(b, x, 1, 0)),
    "largest": lambda b, x: b.op("Max", b.op("Exp", x), ints(b, 0, 1)),
    "size": lambda b, x: b.op("Prod", b.op("Shape", x), ints(b, -1)),
}

_TRANSPOSES = {
    "undone": lambda b, x: b.op("Exp", turned(b, turned(b, x, 1, 0), 1, 0)),
    "padded": lambda b, x: turned(
        b, b.op("Pad", turned(b, x, 1, 0), ints(b, [0, 1], [2, 0])), 1, 0
    ),
    "joined": lambda b, x: turned(
        b, b.op("ConcatV2", [turned(b, x, 1, 0)] * 1 + [turned(b, x, 1, 0)], b.constant(1)), 1, 0
    ),
    "reduced": lambda b, x: turned(
        b, b.op("Sum", turned(b, x, 1, 0), ints(b, 1), keep_dims=True), 1, 0
    ),
    "summed": lambda b, x: turned(b, b.op("AddV2", turned(b, x, 1, 0), floats(b, 2)), 1, 0),
}

_OF_SHAPES = {
    "first": first_of,
    "gather": lambda b, s: b.op("GatherV2", s, ints(b, 1, 0), b.constant(0)),
    "product": lambda b, s: b.op("Prod", s, ints(b, 0)),
    "sum": lambda b, s: b.op("Sum", s, ints(b, 0), keep_dims=True),
    "largest": lambda b, s: b.op("Max", s, ints(b, -1)),
    "quotient": lambda b, s: b.op("FloorDiv", s, ints(b, 2, 2)),
    "rest": lambda b, s: b.op("FloorMod", s, ints(b, 2, 2)),
    "difference": lambda b, s: b.op("Sub", s, ints(b, 2, 2)),
    "concat": lambda b, s: b.op("ConcatV2", [s, ints(b, 4)], b.constant(0)),
    "pack": lambda b, s: b.op("Pack", [s, ints(b, 4, 5)], axis=1),
    "slice": lambda b, s: b.op("Slice", s, ints(b, 1), ints(b, 1)),
    "split": lambda b, s: b.op("Split", b.constant(0), s, num_split=2),
    "parts": lambda b, s: b.op("SplitV", s, ints(b, 1, 1), b.constant(0), num_split=2),
    "tile": lambda b, s: b.op("Tile", s, ints(b, 2)),
    "reshape": lambda b, s: b.op("Reshape", s, ints(b, 2, 1)),
    "expand": lambda b, s: b.op("ExpandDims", s, b.constant(1)),
    "transpose": lambda b, s: b.op("Transpose", s, ints(b, 0)),
    "reverse": lambda b, s: b.op("ReverseV2", s, ints(b, 0)),
    "fill": lambda b, s: b.op("Fill", ints(b, 2), first_of(b, s)),
    "range": lambda b, s: b.op("Range", b.constant(0), first_of(b, s), b.constant(1)),
    "broadcast": lambda b, s: b.op("BroadcastTo", s, ints(b, 3, 2)),
    "choice": lambda b, s: b.op("SelectV2", b.constant([True, False]), s, ints(b, 7, 7)),
    "cast": lambda b, s: b.op("Cast", s, SrcT=INT32, DstT=DataType.DT_INT64),
    "unpack": lambda b, s: b.op("Unpack", s, num=2),
    "arguments": lambda b, s: b.op("BroadcastArgs", s, ints(b, 4, 1, 1)),
    "target": lambda b, s: b.op(
        "Reshape", floats(b, 6), b.op("Pack", [first_of(b, s), b.constant(3)])
    ),
}

_CONVOLUTIONS = {
    "padded": lambda b, x: conv(
        b, b.op("PadV2", x, ints(b, [0, 0], [1, 1], [1, 0], [0, 0]), b.constant(0.0)),
        floats(b, 2, 2, 3, 5),
    ),
    "scaled": lambda b, x: conv(b, b.op("Mul", x, floats(b, 3)), floats(b, 2, 2, 3, 5)),
    "explicit": lambda b, x: b.op(
        "Relu",
        b.op(
            "BiasAdd",
            conv(
                b, x, floats(b, 2, 2, 3, 5),
                padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 0, 1, 0, 0],
            ),
            floats(b, 5),
        ),
    ),
    "scale and shift": lambda b, x: b.op(
        "BiasAdd", b.op("Mul", conv(b, x, floats(b, 2, 2, 3, 5)), floats(b, 5)), floats(b, 5)
    ),
}  # fmt: skip


def _of_each(value, builds, **options) -> dict[str, Changed]:
    return {name: of(value, build, **options) for name, build in builds.items()}


def _with_unknown(value, builds) -> dict[str, Changed]:
    unknown = _of_each(value, builds, known=False)
    return _of_each(value, builds) | {f"{name}, unknown": one for name, one in unknown.items()}


def _of_shape(build):
    return lambda b, x: build(b, b.op("Shape", b.op("Neg", x)))


PATTERNS: dict[str, dict[str, Changed]] = {
    "arithmetic": _with_unknown(MATRIX, _REDUNDANT),
    "transposes": _with_unknown(MATRIX, _TRANSPOSES),
    "shape_materialization": _of_each(
        MATRIX, {name: _of_shape(build) for name, build in _OF_SHAPES.items()}
    ),
    **{
        name: _with_unknown(IMAGE, _CONVOLUTIONS)
        for name in ("input_folding", "batch_norm_folding", "fusion")
    },
}
"""By pass and name."""
