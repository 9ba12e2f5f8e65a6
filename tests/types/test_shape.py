import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from opkernel.errors import InvalidArgumentError
from opkernel.proto import TensorShapeProto
from opkernel.types import PartialTensorShape, TensorShape, shape_proto_debug_string

Dim = TensorShapeProto.Dim


def proto(*sizes, unknown_rank=False):
    return TensorShapeProto(dim=[Dim(size=size) for size in sizes], unknown_rank=unknown_rank)


partial_shapes = st.builds(
    PartialTensorShape, st.none() | st.lists(st.none() | st.integers(0, 4), max_size=4)
)


# -- fully defined ------------------------------------------------------------------------------


def test_is_a_tuple_of_its_sizes():
    shape = TensorShape([2, np.int64(3), 0])
    assert (shape.rank, len(shape), shape[1], shape[-1]) == (3, 3, 3, 0)
    assert shape.as_list() == [2, 3, 0]
    assert np.zeros(shape).shape == shape
    assert str(shape) == "[2,3,0]"
    assert repr(shape) == "TensorShape([2, 3, 0])"
    assert pickle.loads(pickle.dumps(shape)) == shape
    assert hash(shape) == hash((2, 3, 0))
    assert shape == (2, 3, 0)


@pytest.mark.parametrize(
    ("sizes", "count"), [([], 1), ([7], 7), ([2, 3], 6), ([5, 0], 0), ([2**31, 2**31], 2**62)]
)
def test_num_elements(sizes, count):
    assert TensorShape(sizes).num_elements() == count


def test_elements_are_counted_from_the_first_dimension():
    assert TensorShape([0, 2**62, 4]).num_elements() == 0
    assert PartialTensorShape([2**62, None, 4]).dims == (2**62, None, 4)


@pytest.mark.parametrize(
    "sizes", [[2**62, 4], [2**32, 2**32], [2**62, 4, 0], [2**63], [0, 2**63], [2**200]]
)
@pytest.mark.parametrize("kind", [TensorShape, PartialTensorShape])
def test_too_many_elements(kind, sizes):
    text = "[" + ",".join(map(str, sizes)) + "]"
    with pytest.raises(InvalidArgumentError, match="too large") as caught:
        kind(sizes)
    assert text in str(caught.value)


@pytest.mark.parametrize("kind", [TensorShape, PartialTensorShape])
def test_at_most_254_dimensions(kind):
    assert kind([1] * 254).rank == 254
    with pytest.raises(InvalidArgumentError, match="255 dimensions has too many dimensions"):
        kind([1] * 255)


def test_negative_sizes():
    with pytest.raises(InvalidArgumentError, match=r"non-negative size, got -2 in shape \[3,-2\]"):
        TensorShape([3, -2])
    with pytest.raises(
        InvalidArgumentError, match=r"Shape \[3,-2\] has dimensions with values below"
    ):
        PartialTensorShape([3, -2])


def test_sizes_are_integers():
    with pytest.raises((TypeError, AttributeError)):
        TensorShape([1.5])  # type: ignore[list-item]  # what is tested


@given(st.lists(st.integers(0, 100), max_size=6))
def test_proto_round_trip(sizes):
    shape = TensorShape(sizes)
    assert TensorShape.from_proto(shape.to_proto()) == shape
    assert PartialTensorShape.from_proto(shape.to_proto()) == shape


@pytest.mark.parametrize(("sizes", "text"), [((-1, 2), "[?,2]"), ((2, -5), "[2,-5]")])
def test_proto_of_a_shape_that_is_not_fully_defined(sizes, text):
    with pytest.raises(InvalidArgumentError) as caught:
        TensorShape.from_proto(proto(*sizes))
    assert str(caught.value) == f"Shape {text} is not fully defined"


def test_proto_of_unknown_rank_is_read_as_a_scalar():
    assert TensorShape.from_proto(proto(unknown_rank=True)) == ()


def test_names_of_dimensions_are_not_looked_at():
    named = TensorShapeProto(dim=[Dim(size=2, name="batch")])
    assert TensorShape.from_proto(named) == (2,)
    assert PartialTensorShape.from_proto(named) == TensorShape([2])


# -- partial ------------------------------------------------------------------------------------


def test_unknown_rank():
    shape = PartialTensorShape()
    assert (shape.rank, shape.dims, shape.num_elements()) == (None, None, None)
    assert not shape.is_fully_defined()
    assert str(shape) == "<unknown>"
    assert repr(shape) == "PartialTensorShape(None)"
    assert shape.to_proto() == proto(unknown_rank=True)
    for use in (len, list, PartialTensorShape.as_list, lambda s: s[0]):
        with pytest.raises(InvalidArgumentError, match="unknown rank"):
            use(shape)


def test_unknown_sizes():
    shape = PartialTensorShape([2, None, -1])
    assert (shape.rank, shape.dims) == (3, (2, None, None))
    assert (len(shape), shape[0], shape[2], list(shape)) == (3, 2, None, [2, None, None])
    assert shape.as_list() == [2, None, None]
    assert shape.num_elements() is None
    assert str(shape) == "[2,?,?]"
    assert shape.to_proto() == proto(2, -1, -1)
    with pytest.raises(InvalidArgumentError, match=r"Shape \[2,\?,\?\] is not fully defined"):
        shape.as_tensor_shape()


def test_fully_defined():
    shape = PartialTensorShape([2, 3])
    assert shape.is_fully_defined()
    assert shape.num_elements() == 6
    assert shape.as_tensor_shape() == TensorShape([2, 3])


def test_equality_is_of_what_is_known():
    assert PartialTensorShape([1, None]) == PartialTensorShape([1, -1])
    assert PartialTensorShape([1, None]) != PartialTensorShape([1, 2])
    assert PartialTensorShape() != PartialTensorShape([])
    assert PartialTensorShape([2]) == TensorShape([2])
    assert TensorShape([2]) == PartialTensorShape([2])
    assert len({PartialTensorShape([2]), TensorShape([2]), PartialTensorShape(None)}) == 2


def test_proto_of_unknown_rank_with_sizes():
    with pytest.raises(
        InvalidArgumentError, match=r"must not have any dimensions set.*<unknown>\[3\]"
    ):
        PartialTensorShape.from_proto(proto(3, unknown_rank=True))


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("<unknown>", None),
        ("?", None),
        ("[]", ()),
        ("[ ]", ()),
        ("[2,?]", (2, None)),
        (" [2, -1 ,3] ", (2, None, 3)),
    ],
)
def test_from_text(text, dims):
    assert PartialTensorShape.from_text(text).dims == dims


@pytest.mark.parametrize("text", ["", "[", "2,3", "[2,]", "[a]", "[1.5]", "[2,-3]", "[??]"])
def test_from_text_of_no_shape(text):
    with pytest.raises(InvalidArgumentError):
        PartialTensorShape.from_text(text)


@given(partial_shapes)
def test_text_and_proto_round_trips(shape):
    assert PartialTensorShape.from_text(str(shape)) == shape
    assert PartialTensorShape.from_proto(shape.to_proto()) == shape
    assert PartialTensorShape(shape) == shape
    assert shape_proto_debug_string(shape.to_proto()) == str(shape)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (proto(2, -1, -7), "[2,?,-7]"),
        (proto(3, unknown_rank=True), "<unknown>[3]"),
        (proto(), "[]"),
    ],
)
def test_debug_string_of_protos(message, text):
    assert shape_proto_debug_string(message) == text


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ("[2,?]", "[?,3]", "[2,3]"),
        ("<unknown>", "[?,3]", "[?,3]"),
        ("[?,3]", "<unknown>", "[?,3]"),
        ("[?]", "[?]", "[?]"),
        ("[]", "[]", "[]"),
    ],
)
def test_merge_with(first, second, merged):
    shapes = PartialTensorShape.from_text(first), PartialTensorShape.from_text(second)
    assert str(shapes[0].merge_with(shapes[1])) == merged


@pytest.mark.parametrize(
    ("first", "second", "covering"),
    [
        ("[2,3]", "[2,3]", "[2,3]"),
        ("[2,3]", "[2,4]", "[2,?]"),
        ("[2,?]", "[2,3]", "[2,?]"),
        ("[2]", "[2,3]", "<unknown>"),
        ("<unknown>", "[2]", "<unknown>"),
        ("[2]", "<unknown>", "<unknown>"),
        ("[]", "[]", "[]"),
    ],
)
def test_most_specific_compatible_shape(first, second, covering):
    shapes = PartialTensorShape.from_text(first), PartialTensorShape.from_text(second)
    assert str(shapes[0].most_specific_compatible_shape(shapes[1])) == covering


@pytest.mark.parametrize(
    ("shape", "rest"),
    [("[2,?,3]", "[?,3]"), ("[2]", "[]"), ("[]", "[]"), ("<unknown>", "<unknown>")],
)
def test_a_slice_of_a_shape_is_a_shape(shape, rest):
    assert str(PartialTensorShape.from_text(shape)[1:]) == rest


def test_merge_of_incompatible_shapes():
    shape = PartialTensorShape([2, None])
    with pytest.raises(InvalidArgumentError, match=r"Incompatible ranks during merge: 2 vs\. 3"):
        shape.merge_with(TensorShape([2, 3, 4]))
    with pytest.raises(
        InvalidArgumentError, match=r"Incompatible shapes during merge: \[2,\?\] vs\. \[3,3\]"
    ):
        shape.merge_with(TensorShape([3, 3]))


def test_merge_to_a_shape_that_is_too_large():
    with pytest.raises(InvalidArgumentError, match="too large"):
        PartialTensorShape([2**62, None]).merge_with(PartialTensorShape([None, 4]))


@given(partial_shapes, partial_shapes)
def test_merge_agrees_with_compatibility(a, b):
    assert a.is_compatible_with(b) == b.is_compatible_with(a)
    if not a.is_compatible_with(b):
        with pytest.raises(InvalidArgumentError):
            a.merge_with(b)
        return
    merged = a.merge_with(b)
    assert merged == b.merge_with(a)
    assert merged.merge_with(a) == merged.merge_with(b) == merged


@given(partial_shapes, partial_shapes, partial_shapes)
def test_merge_and_concatenation_are_associative(a, b, c):
    assert a.concatenate(b).concatenate(c) == a.concatenate(b.concatenate(c))
    assume(all(x.is_compatible_with(y) for x, y in [(a, b), (a, c), (b, c)]))
    assert a.merge_with(b).merge_with(c) == a.merge_with(b.merge_with(c))


@given(partial_shapes)
def test_neutral_elements(shape):
    assert shape.merge_with(PartialTensorShape()) == shape
    assert shape.merge_with(shape) == shape
    assert shape.concatenate(TensorShape()) == shape
    assert PartialTensorShape([]).concatenate(shape) == shape
    assert shape.concatenate(PartialTensorShape()).rank is None


def test_concatenate():
    shape = PartialTensorShape([2, None]).concatenate(TensorShape([3]))
    assert shape.dims == (2, None, 3)
    with pytest.raises(InvalidArgumentError, match="too large"):
        PartialTensorShape([2**62]).concatenate(TensorShape([4]))
