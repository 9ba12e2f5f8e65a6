"""For each pass graphs that it changes, in few words: `CHANGED_BY`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel.graph import Tensor
from opkernel.types import DataType, PartialTensorShape

__all__ = ["CHANGED_BY", "SPECIALIZED", "Changed"]

Changed = Callable[[Builder], tuple[Tensor, Mapping[Tensor, Any]]]
"""Makes a graph; gives a tensor to be fetched and what is to be fed."""

MATRIX = (np.arange(6, dtype=np.float32).reshape(2, 3) + 1) / 7
IMAGE = np.random.default_rng(0).normal(size=(1, 4, 4, 3)).astype(np.float32)


def of(
    value: np.ndarray[Any, Any], build: Callable[[Builder, Tensor], Tensor], known: bool = True
) -> Changed:
    """`build` of a fed value, whose shape is `known`."""

    def changed(b: Builder) -> tuple[Tensor, Mapping[Tensor, Any]]:
        shape = PartialTensorShape(value.shape if known else [None] * value.ndim)
        x = b.op("Placeholder", name="x", dtype=FLOAT, shape=shape)
        return b.op("Identity", build(b, x), name="y"), {x: value}

    return changed


def of_matrix(build: Callable[[Builder, Tensor], Tensor]) -> Changed:
    return of(MATRIX, build)


def of_image(build: Callable[[Builder, Tensor], Tensor]) -> Changed:
    return of(IMAGE, build)


def ints(b: Builder, *values: Any) -> Tensor:
    return b.constant(np.array(values, np.int32))


def floats(b: Builder, *shape: int) -> Tensor:
    return b.constant(np.random.default_rng(1).uniform(0.5, 1, shape).astype(np.float32))


def reductions(b: Builder, x: Tensor) -> Tensor:
    """The sum of two reductions of a group of one."""
    attrs: Any = {"group_size": 1, "group_key": 1, "merge_op": "Add", "final_op": "Id"}
    node = partial(b.op, "CollectiveReduce", subdiv_offsets=[0], **attrs)
    return b.op("Add", node(b.op("Exp", x), instance_key=1), node(x, instance_key=2))


def cast(b: Builder, x: Tensor, dtype: DataType) -> Tensor:
    return b.op("Cast", x, SrcT=x.dtype, DstT=dtype)


def first_of(b: Builder, shape: Tensor) -> Tensor:
    """The first element of a vector."""
    return b.op("StridedSlice", shape, ints(b, 0), ints(b, 1), ints(b, 1), shrink_axis_mask=1)


def conv(b: Builder, x: Tensor, filters: Tensor, **attrs: Any) -> Tensor:
    return b.op("Conv2D", x, filters, **({"strides": [1, 1, 1, 1], "padding": "VALID"} | attrs))


ARITHMETIC = {
    "neutral": lambda b, x: b.op("Mul", b.op("AddV2", x, b.constant(-0.0)), b.constant(1.0)),
    "involution": lambda b, x: b.op("Neg", b.op("Neg", x)),
    "idempotent": lambda b, x: b.op("Relu", b.op("Relu", x)),
    "even": lambda b, x: b.op("Abs", b.op("Neg", x)),
    "opposite": lambda b, x: cast(b, b.op("LogicalNot", b.op("Equal", x, b.op("Exp", x))), FLOAT),
    "largest": lambda b, x: b.op("Max", b.op("Exp", x), ints(b, 0)),
    "factor": lambda b, x: b.op("AddV2", b.op("Mul", x, x), b.op("Mul", b.op("Exp", x), x)),
    "terms": lambda b, x: b.op("AddN", [x, x]),
    "negated": lambda b, x: b.op("AddV2", x, b.op("Neg", x)),
    "log1p": lambda b, x: b.op("Log", b.op("AddV2", x, b.constant(1.0))),
    "expm1": lambda b, x: b.op("Sub", b.op("Exp", x), b.constant(1.0)),
    "factors": lambda b, x: b.op("Mul", b.op("Mul", x, b.constant(3.0)), b.constant(0.5)),
    "power": lambda b, x: b.op("Pow", b.op("Pow", x, b.constant(3.0)), b.constant(2.0)),
    "product": lambda b, x: b.op("MatMul", x, b.op("Transpose", x, ints(b, 1, 0))),
    "bitcast": lambda b, x: b.op("Bitcast", b.op("Bitcast", x, type=INT32), type=FLOAT),
    "cast": lambda b, x: cast(b, cast(b, x, DataType.DT_DOUBLE), FLOAT),
    "concat": lambda b, x: b.op(
        "ConcatV2", [b.op("ConcatV2", [x, b.op("Neg", x)], b.constant(0)), x], b.constant(0)
    ),
    "reshapes": lambda b, x: b.op(
        "Reshape", b.op("Reshape", x, b.op("Neg", ints(b, -6))), ints(b, 3, 2)
    ),
    "same shape": lambda b, x: b.op("Reshape", x, b.op("Neg", ints(b, -2, -3))),
    "broadcast": lambda b, x: b.op("BroadcastTo", x, b.op("Neg", ints(b, -2, -3))),
    "slice": lambda b, x: b.op("Slice", x, ints(b, 0, 0), b.op("Neg", ints(b, -2, -3))),
    "whole": lambda b, x: b.op("Tile", b.op("Pad", x, ints(b, [0, 0], [0, 0])), ints(b, 1, 1)),
    "no axes": lambda b, x: b.op("Sum", x, b.constant(np.zeros(0, np.int32))),
    "choice": lambda b, x: b.op("SelectV2", b.constant(True), x, b.op("Neg", x)),
    "only part": lambda b, x: b.op("Split", b.constant(0), x, num_split=1),
    "unpacked": lambda b, x: b.op("Unpack", b.op("Pack", [x, b.op("Neg", x)]), num=2),
    "packed": lambda b, x: first_of(b, b.op("Pack", [x, b.op("Neg", x)])),
    "repacked": lambda b, x: b.op("Pack", list(b.operation("Unpack", x, num=2).outputs)),
    "size": lambda b, x: b.op("Prod", b.op("Shape", x), ints(b, 0)),
}


def gelu(b: Builder, x: Tensor) -> Tensor:
    x = b.op("BiasAdd", b.op("MatMul", x, floats(b, 3, 5)), floats(b, 5))
    erf = b.op("Erf", b.op("Mul", x, b.constant(0.5**0.5)))
    half = b.op("Mul", b.constant(0.5), x)
    return b.op("Mul", half, b.op("AddV2", b.constant(1.0), erf))


def scaled_and_shifted(b: Builder, x: Tensor) -> Tensor:
    y = b.op("Mul", b.op("MatMul", x, floats(b, 3, 4)), floats(b, 4))
    return b.op("AddV2", b.op("Sub", y, b.constant(0.5)), floats(b, 4))


def batch_norm(b: Builder, x: Tensor) -> Tensor:
    stats = [floats(b, 5) for _ in range(4)]
    y = conv(b, x, floats(b, 2, 2, 3, 5))
    return b.op("FusedBatchNormV3", y, *stats, is_training=False)


def padded(b: Builder, x: Tensor) -> Tensor:
    x = b.op("Pad", x, ints(b, [0, 0], [1, 0], [0, 2], [0, 0]))
    return conv(b, x, floats(b, 2, 2, 3, 5))


def channels_first(b: Builder, x: Tensor) -> Tensor:
    x = b.op("Transpose", x, ints(b, 0, 3, 1, 2))
    return conv(b, x, floats(b, 2, 2, 3, 5), data_format="NCHW")


def turned(b: Builder, x: Tensor) -> Tensor:
    """A unary op, a sum with a constant and a reduction between transposes."""
    y = b.op("Relu", b.op("Transpose", x, ints(b, 0, 3, 1, 2)))
    y = b.op("AddV2", y, floats(b, 4))
    y = b.op("Mean", y, ints(b, 1), keep_dims=True)
    return b.op("Transpose", y, ints(b, 0, 2, 3, 1))


def branch(kind: str, predicate: Callable[[Builder, Tensor], Tensor]) -> Changed:
    def build(b: Builder, x: Tensor) -> Tensor:
        twice = define(b, "twice", [FLOAT], lambda g, x: [g.op("AddV2", x, x)])
        minus = define(b, "minus", [FLOAT], lambda g, x: [g.op("Neg", x)])
        chosen = predicate(b, x)
        if kind == "cond":
            return b.cond(
                chosen, lambda x: [b.op("Neg", x)], lambda x: [b.op("Exp", b.op("Neg", x))], [x]
            )[0]
        if kind.endswith("Case"):
            index = cast(b, chosen, INT32)
            return b.op(kind, index, [x], branches=[minus, twice], Tout=[FLOAT])
        return b.op(kind, chosen, [x], then_branch=twice, else_branch=minus, Tout=[FLOAT])

    return of_matrix(build)


def is_small(b: Builder, x: Tensor) -> Tensor:
    return b.op("Less", b.op("Size", b.op("Neg", x)), b.constant(100))


def low_loop(body: Callable[[Builder, Tensor, Tensor], Tensor], is_constant: bool) -> Changed:
    """`for i in range(3): x = body(x, w)`, where w is a constant or fed."""

    def build(b: Builder, x: Tensor) -> Tensor:
        w = b.constant(2.0) if is_constant else b.op("Exp", x)
        return b.while_loop(
            lambda i, x, w: b.op("Less", i, b.constant(3)),
            lambda i, x, w: [b.op("AddV2", i, b.constant(1)), body(b, x, w)],
            [b.constant(0), x],
            [w],
        )[1]

    return of_matrix(build)


def loop(b: Builder, turn: Any, *variables: Tensor) -> list[Tensor]:
    """Three turns of a StatelessWhile."""
    types = [INT32, *(v.dtype for v in variables)]
    less = define(b, "less", types, lambda g, i, *rest: [g.op("Less", i, g.constant(3))])
    body = define(
        b, "turn", types, lambda g, i, *rest: [g.op("AddV2", i, g.constant(1)), *turn(g, *rest)]
    )
    inputs = [b.constant(0), *variables]
    return list(b.operation("StatelessWhile", inputs, cond=less, body=body, T=types).outputs)


def same_in_every_turn(b: Builder, x: Tensor) -> Tensor:
    def turn(g: Builder, y: Tensor, w: Tensor) -> list[Tensor]:
        return [g.op("AddV2", y, g.op("Tanh", g.op("Neg", w))), w]

    return loop(b, turn, x, b.op("Exp", x))[1]


def needless_variable(b: Builder, x: Tensor) -> Tensor:
    def turn(g: Builder, y: Tensor, z: Tensor) -> list[Tensor]:
        return [g.op("Tanh", y), g.op("AddV2", y, z)]

    return b.op("Neg", loop(b, turn, x, b.op("Exp", x))[1])


def list_item(b: Builder, x: Tensor) -> Tensor:
    """A shape that was put into a list and is taken out again."""
    items = b.op("TensorListReserve", ints(b, 2), b.constant(1), element_dtype=INT32)
    items = b.op("TensorListSetItem", items, b.constant(0), b.op("Shape", x), element_dtype=INT32)
    return b.op("TensorListGetItem", items, b.constant(0), ints(b, 2), element_dtype=INT32)


def popped_item(b: Builder, x: Tensor) -> Tensor:
    items = b.op("EmptyTensorList", ints(b, 2), b.constant(3), element_dtype=INT32)
    items = b.op("TensorListPushBack", items, b.op("Shape", x), element_dtype=INT32)
    return b.operation("TensorListPopBack", items, ints(b, 2), element_dtype=INT32).outputs[1]


def sizes(b: Builder, x: Tensor) -> Tensor:
    """Computed from a shape: Rank, Size, ShapeN, arithmetic."""
    negated = b.op("Neg", x)
    first, second = b.operation("ShapeN", [negated, b.op("Exp", x)], N=2).outputs
    total = b.op("Mul", first_of(b, first), b.op("Size", negated))
    return b.op("AddV2", b.op("AddV2", total, b.op("Rank", negated)), second)


def reshaped(b: Builder, x: Tensor) -> Tensor:
    target = b.op("Pack", [first_of(b, b.op("Shape", b.op("Neg", x))), b.constant(3)])
    return b.op("Reshape", x, target)


def called(b: Builder, x: Tensor) -> Tensor:
    function = define(b, "f", [FLOAT], lambda g, x: [g.op("Mul", g.op("Neg", x), g.constant(2.0))])
    y = b.op("PartitionedCall", [x], f=function, Tout=[FLOAT])
    return b.operation("Neg", b.op("f", x), after=[y.op]).outputs[0]


def gates(b: Builder, x: Tensor) -> Tensor:
    parts = b.operation("Split", b.constant(1), x, num_split=3).outputs
    return b.op("AddN", [b.op("Sigmoid", part) for part in parts])


def waits(b: Builder, x: Tensor) -> Tensor:
    """Behind a NoOp, a constant and an Identity of one."""
    group = b.operation("NoOp", after=[b.op("Identity", b.constant(1.0)).op, b.constant(2.0).op])
    return b.operation("Neg", x, after=[group]).outputs[0]


def watched(b: Builder, x: Tensor) -> Tensor:
    is_right = b.op("All", b.op("Greater", b.op("Exp", x), b.constant(0.0)), ints(b, 0, 1))
    message = b.constant(np.array(b"negative", object))
    asserted = b.operation("Assert", is_right, [message], T=[opkernel.string])
    checked = b.op("CheckNumerics", b.op("Exp", x), message="no number")
    return b.operation("Neg", checked, after=[asserted]).outputs[0]


def twice_the_same(b: Builder, x: Tensor) -> Tensor:
    return b.op("Mul", b.op("Tanh", b.op("Neg", x)), b.op("Tanh", b.op("Neg", x)))


def entered(b: Builder, x: Tensor, w: Tensor) -> Tensor:
    return b.op("Mul", x, b.op("Neg", b.op("Exp", w)))


def moved(b: Builder, x: Tensor, w: Tensor) -> Tensor:
    return b.op("AddV2", x, b.op("Tanh", b.op("Neg", w)))


def sum_of_a_sum(b: Builder, x: Tensor) -> Tensor:
    return b.op("AddN", [b.op("AddN", [x, b.op("Neg", x)]), b.op("Exp", x)])


CHANGED_BY: dict[str, dict[str, Changed]] = {
    "aggregates": {"sum of a sum": of_matrix(sum_of_a_sum)},
    "arithmetic": {name: of_matrix(build) for name, build in ARITHMETIC.items()},
    "batch_norm_folding": {
        "arithmetic": of_matrix(scaled_and_shifted),
        "batch norm": of_image(batch_norm),
    },
    "common_subexpressions": {"twice": of_matrix(twice_the_same)},
    "constant_folding": {
        "sum": of_matrix(
            lambda b, x: b.op(
                "Mul", x, b.op("AddV2", b.op("Neg", b.constant(1.0)), b.constant(3.0))
            )
        ),
        "parts": of_matrix(
            lambda b, x: b.op("AddV2", x, b.op("Unpack", b.op("Neg", b.constant(MATRIX)), num=2))
        ),
    },
    "control_edges": {"group": of_matrix(waits)},
    "dead_branches": {
        f"{kind} {name}": branch(kind, predicate)
        for kind in ("If", "StatelessIf", "Case", "StatelessCase", "cond")
        for name, predicate in (("constant", lambda b, x: b.constant(True)), ("shape", is_small))
    },
    "debug_stripper": {"assertion": of_matrix(watched)},
    "scoped_allocator": {"side by side": of_matrix(reductions)},
    "constants_into_loops": {"loop": low_loop(entered, True)},
    "function_inlining": {"call": of_matrix(called)},
    "hoist_unary_over_split": {"gates": of_matrix(gates)},
    "fusion": {
        "product": of_matrix(
            lambda b, x: b.op(
                "Relu", b.op("BiasAdd", b.op("MatMul", x, floats(b, 3, 5)), floats(b, 5))
            )
        ),
        "convolution": of_image(
            lambda b, x: b.op(
                "LeakyRelu", b.op("BiasAdd", conv(b, x, floats(b, 2, 2, 3, 5)), floats(b, 5))
            )
        ),
    },
    "fusion_onednn": {
        "gelu": of_matrix(gelu),
        "addition": of_matrix(
            lambda b, x: b.op(
                "AddV2", b.op("BiasAdd", b.op("MatMul", x, floats(b, 3, 3)), floats(b, 3)), x
            )
        ),
    },
    "identities": {
        "chain": of_matrix(
            lambda b, x: b.op("Neg", b.op("StopGradient", b.op("Identity", b.op("Exp", x))))
        )
    },
    "input_folding": {
        "scale": of_matrix(
            lambda b, x: b.op("MatMul", b.op("Mul", x, floats(b, 3)), floats(b, 3, 4))
        ),
        "padding": of_image(padded),
    },
    "layout": {"convolution": of_image(channels_first)},
    "loop_invariants": {"loop": low_loop(moved, False)},
    "shape_materialization": {"sizes": of_matrix(sizes), "target": of_matrix(reshaped)},
    "shape_specialization": {
        "item": of_matrix(list_item),
        "popped": of_matrix(popped_item),
        "variable": of_matrix(needless_variable),
    },
    "transposes": {"between": of_image(turned)},
    "while_invariants": {"loop": of_matrix(same_in_every_turn)},
}
"""By pass and name; with each graph the pass changes something."""

SPECIALIZED: dict[str, Changed] = {
    name: of(MATRIX, build, known=False)
    for name, build in {
        "element": lambda b, x: b.op("Mul", first_of(b, b.op("Shape", x)), b.constant(2)),
        "sizes": sizes,
        "item": list_item,
        "popped": popped_item,
        "variable": lambda b, x: b.op(
            "Mul", needless_variable(b, x), cast(b, b.op("Size", x), FLOAT)
        ),
        "broadcast": lambda b, x: b.op("BroadcastTo", x, b.op("Shape", b.op("Neg", x))),
    }.items()
}
"""Graphs that ask for the shape of what is fed, of which nothing is known before."""
