"""What is inferred of random graphs never contradicts what running them gives."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from tests.graph.shape_builders import constant, function, op, placeholder

from opkernel.errors import OpError
from opkernel.graph import Graph, Tensor
from opkernel.opdef import DimensionHandle
from opkernel.runtime import Session
from opkernel.types import TensorShape, float32, int32, int64

Draw = Callable[[st.SearchStrategy[Any]], Any]

SMALL = st.integers(0, 3)
BINARY = ["AddV2", "Sub", "Mul", "FloorDiv", "FloorMod", "Maximum", "Minimum"]
COMPARISONS = ["Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"]
REDUCTIONS = ["Sum", "Prod", "Max", "Min"]


class RandomGraph:
    """Grows a graph; `floats`, `ints` and `bools` are the tensors to go on from."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.graph = Graph()
        self.feeds: dict[Tensor, np.ndarray] = {}
        self.floats = [self.placeholder(float32) for _ in range(2)]
        self.ints = [self.placeholder(int32, rank=1), self.placeholder(int32, rank=0)]
        self.bools = [self.op("Equal", self.ints[1], self.ints[1])]

    def placeholder(self, dtype: Any, rank: int | None = None) -> Tensor:
        rank = self.draw(SMALL) if rank is None else rank
        sizes = [self.draw(st.integers(0, 4)) for _ in range(rank)]
        known = [size if self.draw(st.booleans()) else None for size in sizes]
        shape = known if self.draw(st.integers(0, 4)) else None
        attrs = {"dtype": dtype, "shape": shape}
        tensor = self.graph.create_op("Placeholder", attrs=attrs).outputs[0]
        values = [self.draw(st.integers(-2, 4)) for _ in range(int(np.prod(sizes)))]
        self.feeds[tensor] = np.array(values, dtype.numpy_dtype).reshape(sizes)
        return tensor

    def op(self, name: str, *inputs: Any, **attrs: Any) -> Tensor:
        return self.graph.create_op(name, inputs, attrs=attrs).outputs[0]

    def pick(self, tensors: list[Tensor]) -> Tensor:
        return self.draw(st.sampled_from(tensors))

    def numbers(self, low: int = -1, high: int = 3, size: int | None = None) -> np.ndarray:
        size = self.draw(SMALL) if size is None else size
        return np.array([self.draw(st.integers(low, high)) for _ in range(size)], np.int32)

    def grow(self) -> None:
        """Add an operation; nothing where its inputs break a rule that is checked at once."""
        kinds = [self.add_int, self.add_int, self.add_float, self.add_vector, self.add_bool]
        with suppress(OpError):
            self.draw(st.sampled_from(kinds))()

    def add_bool(self) -> None:
        name = self.draw(st.sampled_from(COMPARISONS))
        self.bools.append(self.op(name, self.pick(self.ints), self.pick(self.ints)))

    def add_int(self) -> None:
        a, b = self.pick(self.ints), self.pick(self.ints)
        makers: list[Callable[[], Tensor]] = [
            lambda: self.op(self.draw(st.sampled_from(BINARY)), a, b),
            lambda: self.op(self.draw(st.sampled_from(BINARY)), a, self.numbers(size=1)[0]),
            lambda: self.op("Size", self.pick(self.floats)),
            lambda: self.op("Rank", self.pick(self.floats)),
            lambda: self.op("Neg", a),
            lambda: self.op("SelectV2", self.pick(self.bools), a, b),
            lambda: self.op(
                self.draw(st.sampled_from(REDUCTIONS)), a, [0], keep_dims=self.draw(st.booleans())
            ),
            lambda: self.op("Cast", self.op("Cast", a, DstT=int64), DstT=int32),
            lambda: self.op("Cast", self.pick(self.bools), DstT=int32),
            lambda: self.op("GatherV2", a, self.numbers(size=1)[0], 0),
            lambda: self.op("Reshape", a, []),
            lambda: self.op("Shape", self.pick(self.floats)),
        ]
        self.ints.append(self.draw(st.sampled_from(makers))())

    def add_vector(self) -> None:
        a, b = self.pick(self.ints), self.pick(self.ints)
        masks = {f"{name}_mask": self.draw(SMALL) for name in ("begin", "end", "shrink_axis")}
        makers: list[Callable[[], Tensor]] = [
            lambda: self.op("Shape", self.pick(self.floats)),
            lambda: self.op("Pack", [a, b], axis=0),
            lambda: self.op("ConcatV2", [a, b], 0),
            lambda: self.op("ConcatV2", [a, self.numbers()], 0),
            lambda: self.op("StridedSlice", a, *[self.numbers(size=1) for _ in range(3)], **masks),
            lambda: self.op("Slice", a, self.numbers(size=1), self.numbers(size=1)),
            lambda: self.op("GatherV2", a, self.numbers(), 0),
            lambda: self.op("ExpandDims", a, 0),
            lambda: self.op("Squeeze", a),
            lambda: self.op("Reshape", a, [-1]),
            lambda: self.op("Fill", self.numbers(size=1), a),
            lambda: self.op("Range", 0, a, 1),
            lambda: self.op("Tile", a, self.numbers(size=1)),
            lambda: self.op("ReverseV2", a, [0]),
            lambda: self.op("BroadcastArgs", a, b),
        ]
        self.ints.append(self.draw(st.sampled_from(makers))())

    def add_float(self) -> None:
        x, y, sizes = self.pick(self.floats), self.pick(self.floats), self.pick(self.ints)
        makers: list[Callable[[], Tensor]] = [
            lambda: self.op("AddV2", x, y),
            lambda: self.op("Reshape", x, sizes),
            lambda: self.op("Reshape", x, self.numbers()),
            lambda: self.op("Fill", sizes, 1.0),
            lambda: self.op("BroadcastTo", x, sizes),
            lambda: self.op("Tile", x, sizes),
            lambda: self.op("ConcatV2", [x, y], 0),
            lambda: self.op("ExpandDims", x, self.numbers(size=1)[0]),
            lambda: self.op("Sum", x, self.numbers(size=1), keep_dims=self.draw(st.booleans())),
            lambda: self.op("Transpose", x, sizes),
            lambda: self.op("Slice", x, self.numbers(low=0), sizes),
            lambda: self.op("Cast", self.op("Where", x), DstT=float32),
            lambda: self.op("MatMul", x, y),
        ]
        self.floats.append(self.draw(st.sampled_from(makers))())


@st.composite
def random_graphs(draw: Draw) -> RandomGraph:
    graph = RandomGraph(draw)
    for _ in range(draw(st.integers(4, 16))):
        graph.grow()
    return graph


def run(graph: RandomGraph) -> dict[Tensor, np.ndarray]:
    """The values of the tensors that can be computed."""
    session = Session(graph.graph, memory_limit_bytes=1 << 20)
    values = {}
    for operation in graph.graph.get_operations():
        for tensor in operation.outputs:
            try:
                values[tensor] = np.asarray(session.run(tensor, graph.feeds))
            except OpError:
                continue
    return values


@settings(max_examples=150)
@given(random_graphs(), st.booleans())
def test_random_graphs(graph: RandomGraph, knows_inputs: bool) -> None:
    inputs = {tensor: value.shape for tensor, value in graph.feeds.items()} if knows_inputs else {}
    values = run(graph)
    try:
        shapes = graph.graph.infer_shapes(inputs)
    except OpError:
        reject()  # some kernels take more than their shape functions, as a limit of shape [1]
    sizes: dict[DimensionHandle, int] = {}
    for tensor, value in values.items():
        assert shapes[tensor].is_compatible_with(TensorShape(value.shape)), (
            tensor,
            shapes[tensor],
            value.shape,
        )
        edge = tensor.op, tensor.value_index
        handle = shapes.refiner.shape_handle(edge)
        for dim, size in zip(handle.dims or (), value.shape, strict=False):
            assert sizes.setdefault(dim, size) == size, f"{tensor} is said to be of an equal size"
        known = shapes.refiner.values.partial_value_of(edge)
        if known is None:
            continue
        assert known.shape == value.shape, tensor
        for element, actual in zip(known.flat, value.flat, strict=True):
            if isinstance(element, DimensionHandle):
                assert sizes.setdefault(element, actual) == actual, tensor
            else:
                assert element is None or element == actual, (tensor, known, value)


BODIES: list[Callable[[Graph, Tensor, Tensor], tuple[Tensor, Tensor]]] = [
    lambda g, a, b: (a, b),
    lambda g, a, b: (b, a),
    lambda g, a, b: (op(g, "Relu", a), op(g, "ConcatV2", [b, b], 0)),
    lambda g, a, b: (op(g, "Transpose", a, [1, 0]), b),
    lambda g, a, b: (op(g, "Sum", a, [0], keep_dims=True), op(g, "Relu", b)),
    lambda g, a, b: (op(g, "Reshape", a, [-1, 1]), op(g, "Reshape", b, [1, -1])),
    lambda g, a, b: (op(g, "Fill", op(g, "Shape", b), 1.0), a),
    lambda g, a, b: (op(g, "MatMul", a, b, transpose_b=True), b),
    lambda g, a, b: (a, op(g, "Slice", b, [0, 0], op(g, "Maximum", op(g, "Shape", b), 1))),
]


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(BODIES), min_size=1, max_size=3),
    st.lists(st.integers(1, 3), min_size=4, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.integers(0, 3),
)
def test_random_loops(
    bodies: list[Callable[..., tuple[Tensor, Tensor]]],
    sizes: list[int],
    known: list[bool],
    turns: int,
) -> None:
    def body(g: Graph, i: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        for step in bodies:
            a, b = step(g, a, b)
        return op(g, "AddV2", i, 1), a, b

    graph = Graph()
    declared = [size if is_known else None for size, is_known in zip(sizes, known, strict=True)]
    variables = [placeholder(graph, declared[:2]), placeholder(graph, declared[2:])]
    counter = constant(graph, 0)
    go_on = function(
        graph, "cond", [int32, float32, float32], lambda g, i, *_: op(g, "Less", i, turns)
    )
    step = function(graph, "body", [int32, float32, float32], body)
    loop = graph.create_op(
        "StatelessWhile", [[counter, *variables]], attrs={"cond": go_on, "body": step}
    )
    feeds = {
        variable: np.ones(shape, np.float32)
        for variable, shape in zip(variables, (sizes[:2], sizes[2:]), strict=True)
    }
    try:
        results = Session(graph).run(list(loop.outputs), feeds)
    except OpError:
        reject()
    for inputs in ({}, {variable: value.shape for variable, value in feeds.items()}):
        shapes = graph.infer_shapes(inputs)
        for tensor, result in zip(loop.outputs, results, strict=True):
            actual = TensorShape(np.shape(result))
            assert shapes[tensor].is_compatible_with(actual), (tensor, shapes[tensor], actual)
