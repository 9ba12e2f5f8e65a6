"""Random graphs full of shape arithmetic give the same whether or not shapes that repeat have plans.

Steps feed shapes that repeat, change, come back, are empty or of another rank, and may not fit at all:
then the error is the same.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel.errors import OpError
from opkernel.graph import Tensor
from opkernel.optimization import optimization_passes
from opkernel.types import PartialTensorShape

GENERAL = {one.name for one in optimization_passes()} - {"shape_specialization"}
SHAPES = [(2, 3), (4, 3), (1, 3), (0, 3), (3, 2), (2, 2), (1, 1), (3,), (2, 1, 3), ()]
KNOWN = [None, [None, None], [None, 3], [2, None]]


class RandomGraph:
    """Grows a graph of floats and sizes.

    State: `floats` and `sizes` (vectors of int32) made so far.
    """

    def __init__(self, data: st.DataObject) -> None:
        self.b = Builder()
        self.draw = data.draw
        self.x, self.y = (
            self.b.op("Placeholder", dtype=FLOAT, shape=PartialTensorShape(self.pick(KNOWN)))
            for _ in range(2)
        )
        self.floats = [self.x, self.y]
        self.sizes = [self.b.op("Shape", self.x)]
        types = [INT32, FLOAT]
        self.less = define(self.b, "less", types, lambda g, i, x: [g.op("Less", i, g.constant(2))])
        self.turn = define(
            self.b, "turn", types, lambda g, i, x: [_next(g, i), self.measured(g, x)]
        )
        self.wide = define(self.b, "wide", [FLOAT], lambda g, x: [self.measured(g, x)])
        self.narrow = define(self.b, "narrow", [FLOAT], lambda g, x: [g.op("Neg", x)])

    def pick(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def value(self) -> Tensor:
        return self.pick(self.floats[-4:])

    def size(self) -> Tensor:
        return self.pick(self.sizes[-4:])

    def grow(self) -> None:
        of_sizes = "shape shape_n part product join reversed broadcast popped"
        of_floats = "binary reshape flat fill tile total ranged gradient like slice"
        if self.draw(st.booleans()):
            self._add(self.sizes, of_sizes)
        else:
            self._add(self.floats, f"{of_floats} cond loop branch call listed")

    def _add(self, made: list[Tensor], kinds: str) -> None:
        make = getattr(self, f"_{self.pick(kinds.split())}")
        with suppress(OpError):  # the ranks that are known do not fit
            made.append(make())

    @staticmethod
    def measured(b: Builder, x: Tensor) -> Tensor:
        """A tensor with its number of elements and its rank added."""
        total = b.op("AddV2", b.op("Size", x), b.op("Rank", x))
        return b.op("AddV2", x, b.op("Cast", total, SrcT=INT32, DstT=FLOAT))

    # Sizes.

    def _shape(self) -> Tensor:
        return self.b.op("Shape", self.value())

    def _shape_n(self) -> Tensor:
        return self.b.operation("ShapeN", [self.value(), self.value()]).outputs[1]

    def _part(self) -> Tensor:
        start = self.b.constant([self.pick([0, 1, -1])], "i4")
        stop, one = self.b.constant([self.pick([1, 2, 9])], "i4"), self.b.constant([1], "i4")
        return self.b.op("StridedSlice", self.size(), start, stop, one, end_mask=self.pick([0, 1]))

    def _product(self) -> Tensor:
        every = self.b.constant([0], "i4")
        return self.b.op("Prod", self.size(), every, keep_dims=True)

    def _join(self) -> Tensor:
        return self.b.op("ConcatV2", [self.size(), self.size()], self.b.constant(0))

    def _reversed(self) -> Tensor:
        return self.b.op("ReverseV2", self.size(), self.b.constant([0], "i4"))

    def _broadcast(self) -> Tensor:
        return self.b.op("BroadcastArgs", self.size(), self.size())

    def _popped(self) -> Tensor:
        """The last of the shapes that a loop puts into a list; they may differ."""
        b, value = self.b, self.value()
        grows = self.draw(st.booleans())

        def turn(i: Tensor, shapes: Tensor, x: Tensor) -> list[Tensor]:
            shapes = b.op("TensorListPushBack", shapes, b.op("Shape", x), element_dtype=INT32)
            return [_next(b, i), shapes, b.op("ExpandDims", x, b.constant(0)) if grows else x]

        empty = b.op("EmptyTensorList", b.constant(-1), b.constant(-1), element_dtype=INT32)
        variables = [b.constant(0), empty, value]
        less = b.constant(2)
        shapes = b.while_loop(lambda i, *_: b.op("Less", i, b.constant(2)), turn, variables)[1]
        pop = b.operation("TensorListPopBack", shapes, b.constant(-1), element_dtype=INT32)
        return b.op("Minimum", pop.outputs[1], less)

    # Floats.

    def _binary(self) -> Tensor:
        return self.b.op(self.pick(["AddV2", "Mul", "Maximum"]), self.value(), self.value())

    def _reshape(self) -> Tensor:
        return self.b.op("Reshape", self.value(), self.size())

    def _flat(self) -> Tensor:
        first = self.b.op("Reshape", self.value(), self.b.constant([-1], "i4"))
        return self.b.op("Reshape", first, self.b.op("Shape", self.value()))

    def _fill(self) -> Tensor:
        return self.b.op("Fill", self.size(), self.b.constant(0.5))

    def _tile(self) -> Tensor:
        few = self.b.op("Minimum", self.size(), self.b.constant(2))
        return self.b.op("Tile", self.value(), few)

    def _total(self) -> Tensor:
        value = self.value()
        axes = self.b.op("Range", self.b.constant(0), self.b.op("Rank", value), self.b.constant(1))
        return self.b.op("Sum", value, axes, keep_dims=self.draw(st.booleans()))

    def _ranged(self) -> Tensor:
        count = self.b.op("Cast", self.b.op("Size", self.value()), SrcT=INT32, DstT=FLOAT)
        mean = self.b.op("RealDiv", self.value(), self.b.op("Maximum", count, self.b.constant(1.0)))
        return self.b.op("AddV2", mean, count)

    def _gradient(self) -> Tensor:
        """What the gradient of a broadcast operand is made with."""
        x, y = self.value(), self.value()
        shapes = [self.b.op("Shape", tensor) for tensor in (x, y)]
        axes = self.b.operation("BroadcastGradientArgs", *shapes).outputs[0]
        total = self.b.op("Sum", self.b.op("Mul", x, y), axes, keep_dims=True)
        return self.b.op("Reshape", total, shapes[0])

    def _like(self) -> Tensor:
        op = self.pick(["ZerosLike", "OnesLike"])
        return self.b.op("AddV2", self.value(), self.b.op(op, self.value()))

    def _slice(self) -> Tensor:
        value = self.value()
        shape = self.b.op("Shape", value)
        start = self.b.op("Minimum", self.b.constant(1), shape)
        return self.b.op("Slice", value, start, self.b.op("Sub", shape, start))

    def _is_large(self, value: Tensor) -> Tensor:
        return self.b.op("Greater", self.b.op("Size", value), self.b.constant(3))

    def _cond(self) -> Tensor:
        b, value = self.b, self.value()
        return b.cond(
            self._is_large(value),
            lambda x: [self.measured(b, x)],
            lambda x: [b.op("Neg", x)],
            [value],
        )[0]

    def _loop(self) -> Tensor:
        b = self.b
        return b.while_loop(
            lambda i, x: b.op("Less", i, b.constant(2)),
            lambda i, x: [_next(b, i), self.measured(b, x)],
            [b.constant(0), self.value()],
        )[1]

    def _listed(self) -> Tensor:
        """A tensor of a list, of which one branch or the other sets the first."""
        b, any_shape = self.b, self.b.constant(-1)
        x, y = self.value(), self.value()
        count = b.constant(2)
        handle = b.op("TensorListReserve", any_shape, count, element_dtype=FLOAT)

        def put(handle: Tensor, item: Tensor) -> list[Tensor]:
            index = b.constant(0)
            return [b.op("TensorListSetItem", handle, index, item, element_dtype=FLOAT)]

        handle = b.cond(
            self._is_large(x),
            lambda handle, x, y: put(handle, x),
            lambda handle, x, y: put(handle, y),
            [handle, x, y],
        )[0]
        index = b.constant(self.pick([0, 0, 1]))
        return b.op("TensorListGetItem", handle, index, any_shape, element_dtype=FLOAT)

    def _branch(self) -> Tensor:
        b, value = self.b, self.value()
        return b.op(
            self.pick(["If", "StatelessIf"]),
            self._is_large(value),
            [value],
            Tout=[FLOAT],
            then_branch=self.wide,
            else_branch=self.narrow,
        )

    def _call(self) -> Tensor:
        if self.draw(st.booleans()):
            op = self.pick(["PartitionedCall", "StatefulPartitionedCall"])
            return self.b.op(op, [self.value()], f=self.wide, Tout=[FLOAT])
        inputs, types = [self.b.constant(0), self.value()], [INT32, FLOAT]
        loop = self.b.operation("While", inputs, cond=self.less, body=self.turn, T=types)
        return loop.outputs[1]


def _next(b: Builder, i: Tensor) -> Tensor:
    return b.op("AddV2", i, b.constant(1))


def outcome(call: Any, *values: Any) -> Any:
    """What a step gives: types, shapes and values, or the error with its node."""
    try:
        results = [np.asarray(value) for value in call(*values)]
    except OpError as error:
        return type(error), error.node, error.op, error.message
    return [(value.dtype.str, value.shape, value.round(3).tolist()) for value in results]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_graphs_give_the_same_and_fail_alike(data):
    random = RandomGraph(data)
    for _ in range(data.draw(st.integers(3, 14))):
        random.grow()
    fetches = list(dict.fromkeys([random.floats[-1], random.pick(random.floats), random.sizes[-1]]))
    shapes = st.tuples(st.sampled_from(SHAPES), st.sampled_from(SHAPES))
    steps = data.draw(st.lists(shapes, min_size=1, max_size=3))
    feeds = [random.x, random.y]
    general = opkernel.Session(random.b.graph, optimize=GENERAL)
    with opkernel.Session(random.b.graph) as session, general:
        call, expected = (one.make_callable(fetches, feeds) for one in (session, general))
        for _ in range(7):
            for number, step in enumerate(steps):
                values = [np.full(shape, 1.5 + number, "f4") for shape in step]
                assert outcome(call, *values) == outcome(expected, *values)
