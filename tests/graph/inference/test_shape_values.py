"""Values of shape tensors are followed element by element; what is not known stays a dimension."""

import numpy as np
import pytest
from tests.graph.shape_builders import constant, element, known_dims, op, placeholder

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Tensor
from opkernel.types import DataType, float32, int32, int64, uint8


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def shape(graph: Graph) -> Tensor:
    """The shape of an image batch: [?, 6, 4]."""
    return op(graph, "Shape", placeholder(graph, [None, 6, 4]))


def filled(graph: Graph, sizes: Tensor) -> list[int | None] | None:
    """What is known of the shape of Fill(sizes)."""
    found = op(graph, "Fill", sizes, 1.0).shape
    return None if found.rank is None else found.as_list()


def flat(graph: Graph, tensor: Tensor) -> Tensor:
    return op(graph, "Reshape", tensor, [-1])


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda g, s: op(g, "Mul", s, [1, 2, 3]), [None, 12, 12]),
        (lambda g, s: op(g, "Mul", s, 0), [0, 0, 0]),
        (lambda g, s: op(g, "AddV2", s, [0, 1, 1]), [None, 7, 5]),
        (lambda g, s: op(g, "Sub", s, [1, 2, 3]), [None, 4, 1]),
        (lambda g, s: op(g, "FloorDiv", s, 4), [None, 1, 1]),
        (lambda g, s: op(g, "FloorMod", s, [1, 4, 4]), [0, 2, 0]),
        (lambda g, s: op(g, "Neg", op(g, "Neg", s)), [None, 6, 4]),
        (lambda g, s: op(g, "Maximum", s, 5), [None, 6, 5]),
        (lambda g, s: op(g, "Minimum", s, [0, 5, 5]), [0, 5, 4]),
        (lambda g, s: op(g, "SelectV2", op(g, "Equal", s, [6, 6, 6]), 1, s), [None, 1, 4]),
        (lambda g, s: op(g, "Slice", s, [1], [2]), [6, 4]),
        (lambda g, s: op(g, "Slice", s, [0], [-1]), [None, 6, 4]),
        (lambda g, s: op(g, "GatherV2", s, [2, 0], 0), [4, None]),
        (lambda g, s: op(g, "ReverseV2", s, [0]), [4, 6, None]),
        (lambda g, s: op(g, "Tile", s, [2]), [None, 6, 4, None, 6, 4]),
        (lambda g, s: op(g, "Split", 0, s, num_split=3), [None]),
        (lambda g, s: op(g, "ExpandDims", op(g, "Prod", s, 0), 0), [None]),
        (lambda g, s: op(g, "Pack", [op(g, "Prod", op(g, "Slice", s, [1], [2]), 0)]), [24]),
        (lambda g, s: op(g, "Pack", [op(g, "Sum", op(g, "Slice", s, [1], [2]), [0])]), [10]),
        (lambda g, s: op(g, "Reshape", op(g, "Reshape", s, [3, 1]), [-1]), [None, 6, 4]),
        (lambda g, s: op(g, "Squeeze", op(g, "ExpandDims", s, 0)), [None, 6, 4]),
        (lambda g, s: op(g, "Fill", [2], element(g, s, 1)), [6, 6]),
        (lambda g, s: op(g, "Range", 1, element(g, s, 2), 1), [1, 2, 3]),
        (lambda g, s: op(g, "BroadcastArgs", s, [2, 6, 1]), [2, 6, 4]),
        (lambda g, s: op(g, "Cast", op(g, "Cast", s, DstT=int64), DstT=int32), [None, 6, 4]),
        (lambda g, s: op(g, "StridedSlice", s, [-2], [9], [1]), [6, 4]),
        (lambda g, s: op(g, "StridedSlice", s, [0], [0], [2], end_mask=1), [None, 4]),
        (
            lambda g, s: op(g, "ConcatV2", [s, op(g, "Pack", [op(g, "Rank", s)])], 0),
            [None, 6, 4, 1],
        ),
        (lambda g, s: op(g, "Identity", op(g, "StopGradient", s)), [None, 6, 4]),
        (lambda g, s: op(g, "Slice", s, [1], [-1]), [6, 4]),
        (lambda g, s: op(g, "Gather", s, [2, 0]), [4, None]),
        (lambda g, s: op(g, "Reshape", op(g, "GatherV2", [[1, 2], [3, 4]], [1], 1), [-1]), [2, 4]),
        (lambda g, s: flat(g, op(g, "StridedSlice", [[1, 2, 3], [4, 5, 6]], [0, 1], [0, 3], [1, 1],
                                 ellipsis_mask=1)), [2, 3, 5, 6]),
        (lambda g, s: flat(g, op(g, "StridedSlice", [[1, 2], [3, 4]], [1, 0, 0], [0, 0, 2],
                                 [1, 1, 1], shrink_axis_mask=1, new_axis_mask=2)), [3, 4]),
        (lambda g, s: op(g, "StridedSlice", s, [2], [0], [-1]), [4, 6]),
        (lambda g, s: op(g, "StridedSlice", s, [2], [0], [-1], end_mask=1), [4, 6, None]),
        (lambda g, s: op(g, "StridedSlice", s, [2], [0], [-1], begin_mask=1), [4, 6]),
        (lambda g, s: flat(g, op(g, "Split", 1, [[1, 2], [3, 4]], num_split=2)), [1, 3]),
        (lambda g, s: flat(g, op(g, "Pack", [[1, 2], [3, 4]], axis=1)), [1, 3, 2, 4]),
        (lambda g, s: flat(g, op(g, "ConcatV2", [[[1, 2]], [[3, 4]]], -1)), [1, 2, 3, 4]),
        (lambda g, s: flat(g, op(g, "Concat", 0, [[[1, 2]], [[3, 4]]])), [1, 2, 3, 4]),
        (lambda g, s: flat(g, op(g, "Transpose", [[1, 2], [3, 4]], [1, 0])), [1, 3, 2, 4]),
        (lambda g, s: flat(g, op(g, "ReverseV2", [[1, 2], [3, 4]], [1])), [2, 1, 4, 3]),
        (lambda g, s: flat(g, op(g, "BroadcastTo", s, [2, 3])), [None, 6, 4] * 2),
        (lambda g, s: op(g, "Sum", [[1, 2], [3, 4]], [0]), [4, 6]),
        (lambda g, s: op(g, "Sum", [[1, 2], [3, 4]], [-1]), [3, 7]),
        (lambda g, s: flat(g, op(g, "Max", [[1, 5], [3, 4]], [1], keep_dims=True)), [5, 4]),
        (lambda g, s: op(g, "Pack", [op(g, "Min", s, [0])]), [None]),
        (lambda g, s: op(g, "Pack", [op(g, "Prod", op(g, "Slice", s, [0], [0]), 0)]), [1]),
        (lambda g, s: op(g, "Pack", [op(g, "Sum", op(g, "Slice", s, [0], [0]), 0)]), [0]),
        (lambda g, s: op(g, "Cast", op(g, "Less", s, [7, 7, 3]), DstT=int32), [None, 1, 0]),
        (lambda g, s: op(g, "Cast", op(g, "LessEqual", s, [7, 6, 3]), DstT=int32), [None, 1, 0]),
        (lambda g, s: op(g, "Cast", op(g, "Greater", s, [7, 6, 3]), DstT=int32), [None, 0, 1]),
        (lambda g, s: op(g, "Cast", op(g, "GreaterEqual", s, [7, 6, 3]), DstT=int32), [None, 1, 1]),
        (lambda g, s: op(g, "Cast", op(g, "LogicalNot", op(g, "NotEqual", s, [7, 6, 3])), DstT=int32),
         [None, 1, 0]),
        (lambda g, s: op(g, "ZerosLike", s), [0, 0, 0]),
        (lambda g, s: op(g, "OnesLike", s), [1, 1, 1]),
        (lambda g, s: op(g, "Select", op(g, "Equal", s, s), s, [7, 8, 9]), [None, 6, 4]),
        (lambda g, s: op(g, "Pack", [op(g, "Size", placeholder(g, [2, 3])),
                                     op(g, "Size", placeholder(g, [2, None])),
                                     op(g, "Size", placeholder(g, [0, None]))]), [6, None, 0]),
        (lambda g, s: op(g, "Range", 5, 0, -2), [5, 3, 1]),
        (lambda g, s: op(g, "Merge", [s, s]), [None, 6, 4]),
        (lambda g, s: op(g, "Merge", [[6, 4], [6, 5]]), [6, None]),
        (lambda g, s: op(g, "Merge", [[6, 4], [6, 4, 3]]), None),
        (lambda g, s: op(g, "BroadcastArgs", [7, 1], op(g, "Slice", s, [1], [1])), [7, 6]),
    ],
)  # fmt: skip
def test_what_ops_make_of_a_shape(graph: Graph, shape: Tensor, compute, expected) -> None:
    assert filled(graph, compute(graph, shape)) == expected


def test_through_floats_by_the_runtime(graph: Graph, shape: Tensor) -> None:
    """The way in which images are scaled: sizes as floats, times a factor, and back."""
    sizes = op(graph, "Cast", op(graph, "Slice", shape, [1], [2]), DstT=float32)
    scaled = op(graph, "Mul", sizes, constant(graph, [1.5, 0.5], float32))
    assert filled(graph, op(graph, "Cast", scaled, DstT=int32)) == [9, 2]


def test_a_dimension_stays_itself(graph: Graph) -> None:
    """A size that went through Shape, StridedSlice and Pack is known to be that of the input."""
    x = placeholder(graph, [None, 6, 4])
    batch = element(graph, op(graph, "Shape", x), 0)
    flat = op(graph, "Reshape", x, op(graph, "Pack", [batch, constant(graph, 24)]))
    before, after = known_dims(graph, x, flat)
    assert after[0] is before[0]
    assert after[1].value == 24


def test_the_difference_of_a_size_from_itself(graph: Graph) -> None:
    batch = element(graph, op(graph, "Shape", placeholder(graph, [None, 6])), 0)
    assert filled(graph, op(graph, "Pack", [op(graph, "Sub", batch, batch)])) == [0]
    other = element(graph, op(graph, "Shape", placeholder(graph, [None, 6])), 0)
    assert filled(graph, op(graph, "Pack", [op(graph, "Sub", batch, other)])) == [None]


def test_what_does_not_fit_the_type_is_not_known(graph: Graph) -> None:
    large = op(graph, "Mul", constant(graph, [2**20]), constant(graph, [2**20]))
    assert filled(graph, large) == [None]
    small = op(graph, "Cast", constant(graph, [300]), DstT=uint8)
    assert filled(graph, op(graph, "Cast", small, DstT=int32)) == [None]


def test_division_by_zero_is_not_known(graph: Graph, shape: Tensor) -> None:
    assert filled(graph, op(graph, "FloorDiv", shape, [0, 0, 1])) == [None, None, 4]


def test_truncated_and_rounded_quotients(graph: Graph) -> None:
    quotients = [
        op(graph, name, constant(graph, -7), constant(graph, 2)) for name in ("FloorDiv", "Div")
    ]
    assert [filled(graph, op(graph, "Pack", [op(graph, "Neg", q)])) for q in quotients] == [
        [4],
        [3],
    ]


def test_a_vector_that_selects_rows(graph: Graph) -> None:
    condition = constant(graph, [True, False], DataType.DT_BOOL)
    rows = op(graph, "Select", condition, [[1, 2], [3, 4]], [[5, 6], [7, 8]])
    assert filled(graph, op(graph, "Reshape", rows, [-1])) in ([1, 2, 7, 8], [None] * 4)


def test_paddings_made_of_sizes(graph: Graph) -> None:
    x = placeholder(graph, [2, 6], float32)
    rows = element(graph, op(graph, "Shape", x), 1)
    paddings = op(graph, "Pack", [constant(graph, [0, 0]), op(graph, "Pack", [0, rows])])
    assert op(graph, "Pad", x, paddings).shape.as_list() == [2, 12]


def test_a_long_chain_is_followed_to_its_start(graph: Graph, shape: Tensor) -> None:
    for _ in range(2000):
        shape = op(graph, "AddV2", op(graph, "Sub", shape, 1), 1)
    assert filled(graph, shape) == [None, 6, 4]


def test_large_tensors_are_left_to_the_runtime(graph: Graph) -> None:
    ones = constant(graph, np.ones([5000], np.int32))
    assert filled(graph, op(graph, "Pack", [op(graph, "Sum", ones, 0)])) == [5000]


def test_sizes_of_several_outputs(graph: Graph) -> None:
    inputs = [placeholder(graph, [2]), placeholder(graph, [None, 3])]
    shapes = graph.create_op("ShapeN", [inputs]).outputs
    assert [filled(graph, one) for one in shapes] == [[2], [None, 3]]
    parts = graph.create_op("Unpack", [shapes[1]], attrs={"num": 2}).outputs
    assert filled(graph, op(graph, "Pack", list(reversed(parts)))) == [3, None]
    pieces = graph.create_op("SplitV", [shapes[1], [1, 1], 0], attrs={"num_split": 2}).outputs
    assert filled(graph, pieces[1]) == [3]


@pytest.mark.parametrize(
    "compute",
    [
        lambda g, s: op(g, "Slice", s, [2], [2]),
        lambda g, s: op(g, "Slice", s, [-1], [1]),
        lambda g, s: op(g, "GatherV2", s, [-1], 0),
        lambda g, s: op(g, "GatherV2", s, [3], 0),
        lambda g, s: op(g, "Sum", [[1, 2], [3, 4]], [0, 0]),
        lambda g, s: op(g, "Tile", s, [-1]),
        lambda g, s: op(g, "Pack", [op(g, "Max", op(g, "Slice", s, [0], [0]), 0)]),
    ],
    ids=["slice", "start", "negative index", "index", "axes", "repeats", "largest of none"],
)
def test_what_kernels_refuse_is_not_known(graph: Graph, shape: Tensor, compute) -> None:
    """The step tells the error; nothing is made up of the value."""
    try:
        tensor = compute(graph, shape)
    except InvalidArgumentError:
        return
    value = graph.refiner.values.partial_value_of((tensor.op, 0))
    assert value is None or all(one is None for one in value.flat)


@pytest.mark.parametrize("count", [1024, 1025])
@pytest.mark.parametrize(
    "make",
    [
        lambda g, n: op(g, "Range", 0, n, 1),
        lambda g, n: op(g, "Fill", [n], 3),
        lambda g, n: op(g, "BroadcastTo", 3, [n]),
        lambda g, n: op(g, "Tile", [3], [n]),
        lambda g, n: op(g, "Tile", [[3]], [1, n]),
    ],
    ids=["range", "fill", "broadcast", "tile", "tile of a matrix"],
)
def test_only_small_tensors_are_followed(graph: Graph, make, count: int) -> None:
    tensor = make(graph, count)
    value = graph.refiner.values.partial_value_of((tensor.op, 0))
    assert (value is None) == (count > 1024)


def test_what_would_fill_the_memory_is_not_even_begun(graph: Graph) -> None:
    for tensor in (
        op(graph, "Fill", [2**20, 2**10], 3),
        op(graph, "Tile", op(graph, "Fill", [2**5, 2**5], 3), [2**20, 2**10]),
        op(graph, "Range", 0, 2**30, 1),
    ):
        assert graph.refiner.values.partial_value_of((tensor.op, 0)) is None
