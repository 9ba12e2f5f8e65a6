"""Merging, cutting and joining shapes; which handle a result is matters as much as its sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import UNKNOWN_DIM, DimensionHandle, ShapeHandle
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra as A
from opkernel.proto import TensorShapeProto
from opkernel.types import PartialTensorShape, TensorShape

MAX = 2**63 - 1


def shape(*sizes):
    return A.make_shape(sizes)


sizes = st.one_of(st.none(), st.integers(0, 4))
known_sizes = st.lists(st.integers(0, 4), max_size=4)
shapes = st.one_of(
    st.builds(ShapeHandle), st.lists(sizes, max_size=4).map(lambda dims: A.make_shape(dims))
)


def test_handles_compare_by_identity():
    assert DimensionHandle(3) != DimensionHandle(3)
    assert not A.unknown_dim().same_handle(A.unknown_dim())
    dim = A.make_dim(3)
    assert A.make_dim(dim) is dim
    assert A.dim(A.vector(dim), 0) is dim
    assert A.matrix(dim, dim).dims == (dim, dim)
    assert shape(2) != shape(2)


def test_debug_string_shows_what_is_known():
    assert A.debug_string(shape(1, None, 3)) == "[1,?,3]"
    assert A.debug_string(A.scalar()) == "[]"
    assert A.debug_string(A.unknown_shape()) == "?"
    assert A.debug_string(A.unknown_shape_of_rank(2)) == "[?,?]"
    assert A.debug_string(A.unknown_shape_of_rank(-1)) == "?"
    assert A.debug_string(A.unknown_dim()) == "?"


def test_dim_and_rank_of_shapes_of_known_and_unknown_rank():
    known, unknown = shape(1, None, 3), A.unknown_shape()
    assert (A.rank(known), A.rank(unknown)) == (3, -1)
    assert (A.rank_known(known), A.rank_known(unknown)) == (True, False)
    assert A.value(A.dim(known, -1)) == 3
    assert A.value(A.dim(known, 1)) == UNKNOWN_DIM
    assert A.dim(unknown, 5) is not A.dim(unknown, 5)
    assert not A.value_known(A.dim(unknown, 5))
    assert (A.fully_defined(shape(1, 2)), A.fully_defined(known)) == (True, False)
    assert not A.fully_defined(unknown)


@pytest.mark.parametrize(
    ("dims", "count"),
    [((), 1), ((2, 3), 6), ((None, 2), -1), ((None, 0), 0), ((0, None), 0), ((2**32, 2**32), -1)],
)
def test_num_elements(dims, count):
    assert A.num_elements(shape(*dims)).value == count


def test_num_elements_of_unknown_rank_is_unknown():
    assert A.num_elements(A.unknown_shape()).value == UNKNOWN_DIM


def test_a_size_that_no_dimension_can_have_is_refused():
    for size in (-2, 2**63):
        with pytest.raises(InvalidArgumentError, match=str(size)):
            A.make_dim(size)


def test_with_rank_keeps_the_handle_or_refines_an_unknown_one():
    known = shape(1, None)
    assert A.with_rank(known, 2) is known
    assert A.debug_string(A.with_rank(A.unknown_shape(), 2)) == "[?,?]"
    with pytest.raises(InvalidArgumentError, match=r"^Shape must be rank 1 but is rank 2$"):
        A.with_rank(known, 1)
    with pytest.raises(InvalidArgumentError, match="Shape must be rank -1 but is rank 2"):
        A.with_rank(known, -1)
    unknown = A.unknown_shape()
    assert A.with_rank(unknown, -1) is unknown
    with pytest.raises(InvalidArgumentError, match="Rank cannot exceed kint32max"):
        A.with_rank(A.unknown_shape(), 2**31)


def test_with_rank_at_least_and_at_most_never_make_a_new_shape():
    known, unknown = shape(1, None), A.unknown_shape()
    for check in (A.with_rank_at_least, A.with_rank_at_most):
        assert check(known, 2) is known
        assert check(unknown, 2) is unknown
        with pytest.raises(InvalidArgumentError, match="Rank cannot exceed kint32max"):
            check(known, 2**31)
    with pytest.raises(InvalidArgumentError, match="must be at least rank 3 but is rank 2"):
        A.with_rank_at_least(known, 3)
    with pytest.raises(InvalidArgumentError, match="must be at most rank 1 but is rank 2"):
        A.with_rank_at_most(known, 1)


def test_with_value():
    dim = A.make_dim(1)
    assert A.with_value(dim, 1) is dim
    assert A.with_value(A.unknown_dim(), 5).value == 5
    with pytest.raises(InvalidArgumentError, match=r"^Dimension must be 0 but is 1$"):
        A.with_value(dim, 0)


def test_merge_dims_returns_the_argument_that_knows_more_or_the_first():
    two, other_two, unknown, other_unknown = (A.make_dim(d) for d in (2, 2, None, None))
    assert A.merge(two, other_two) is two
    assert A.merge(two, unknown) is two
    assert A.merge(unknown, two) is two
    assert A.merge(unknown, other_unknown) is unknown
    with pytest.raises(InvalidArgumentError, match=r"^Dimensions must be equal, but are 2 and 1$"):
        A.merge(two, A.make_dim(1))


def test_merge_shapes_returns_an_argument_where_it_can():
    unknown, first, second = A.unknown_shape(), shape(1, None), shape(1, 2)
    assert A.merge(unknown, first) is first
    assert A.merge(first, unknown) is first
    assert A.merge(unknown, A.unknown_shape()) is unknown
    assert A.merge(first, second) is second
    assert A.merge(second, first) is second
    assert A.merge(first, shape(None, None)) is first
    third = shape(None, 2)
    merged = A.merge(first, third)
    assert merged.dims == (A.dim(first, 0), A.dim(third, 1))


def test_merge_shapes_that_differ_says_where():
    with pytest.raises(InvalidArgumentError, match="must be equal rank, but are 1 and 2"):
        A.merge(shape(1), shape(1, 2))
    with pytest.raises(InvalidArgumentError) as error:
        A.merge(shape(2, 3), shape(2, 4))
    assert str(error.value) == (
        "Dimension 1 in both shapes must be equal, but are 3 and 4. Shapes are [2,3] and [2,4]."
    )


def known_part(handle):
    return None if handle.dims is None else [dim.value for dim in handle.dims]


@given(shapes, shapes)
def test_merge_commutes_but_for_identity(first, second):
    try:
        merged = A.merge(first, second)
    except InvalidArgumentError:
        with pytest.raises(InvalidArgumentError):
            A.merge(second, first)
    else:
        assert known_part(merged) == known_part(A.merge(second, first))
        assert A.merge(merged, first) is merged
        assert A.merge(merged, merged) is merged


@given(shapes, shapes)
def test_what_is_left_by_relax_agrees_with_both(first, second):
    relaxed = A.relax(first, second)
    A.merge(relaxed, first)
    A.merge(relaxed, second)
    assert known_part(relaxed) == known_part(A.relax(second, first))


def test_relax_keeps_what_both_say():
    one = shape(2, None)
    for same in (one, shape(2, None)):
        assert known_part(A.relax(one, same)) == [2, -1]
    assert A.relax(one, one) is one
    old, unknown = shape(2, 3), A.unknown_shape()
    assert A.relax(old, shape(2, 3)) is old
    assert known_part(A.relax(old, shape(2, 4))) == [2, -1]
    assert A.relax(old, unknown) is unknown
    assert known_part(A.relax(unknown, old)) is None
    assert known_part(A.relax(old, shape(2))) is None
    other = shape(2, None)
    assert A.dim(A.relax(old, other), 1) is A.dim(other, 1)


def test_a_rank_is_none_that_no_shape_can_have():
    for check in (A.with_rank, A.with_rank_at_least, A.with_rank_at_most):
        for rank, message in (
            (-2, "Rank must be >= 0, got -2"),
            (2**31, "cannot exceed kint32max"),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                check(A.unknown_shape(), rank)
        assert A.rank_known(check(A.unknown_shape(), 0)) == (check is A.with_rank)
    unknown = A.unknown_shape()
    assert A.with_rank(unknown, -1) is unknown


def test_merge_prefix():
    first, prefix = shape(1, None, 3), shape(None, 2)
    merged, merged_prefix = A.merge_prefix(first, prefix)
    assert merged.dims == (first.dims[0], prefix.dims[1], first.dims[2])
    assert merged_prefix.dims == (first.dims[0], prefix.dims[1])
    unknown = A.unknown_shape()
    assert A.merge_prefix(unknown, prefix) == (unknown, prefix)
    assert A.merge_prefix(first, unknown) == (first, unknown)
    with pytest.raises(InvalidArgumentError, match="at least rank 2 but is rank 1"):
        A.merge_prefix(shape(1), prefix)
    with pytest.raises(InvalidArgumentError, match="Dimensions must be equal, but are 1 and 2"):
        A.merge_prefix(first, shape(2))


@given(st.lists(sizes, max_size=5), st.integers(-6, 6), st.integers(-6, 6))
def test_subshape_slices_like_a_list_where_it_is_allowed(dims, start, end):
    whole = A.make_shape(dims)
    rank = len(dims)
    try:
        part = A.subshape(whole, start, end)
    except InvalidArgumentError:
        first, last = (min(i, rank) + (rank if i < 0 else 0) for i in (start, end))
        assert first < 0 or last < 0 or first > last
    else:
        assert part.dims == tuple([A.dim(whole, i) for i in range(rank)[start:end]])


def test_subshape_of_everything_is_the_shape_itself():
    whole, unknown = shape(1, 2, 3, None, 5), A.unknown_shape()
    assert A.subshape(whole, 0) is whole
    assert A.subshape(whole, 0, 5) is whole
    assert A.subshape(whole, 0, 100) is whole
    assert A.subshape(whole, 1) is not whole
    assert A.subshape(unknown, 0) is unknown
    assert A.subshape(unknown, 0, MAX) is unknown
    assert A.subshape(unknown, 1) is not unknown
    assert A.subshape(unknown, 0, 1) is not unknown


def test_subshape_with_stride():
    whole = shape(1, 2, 3, None, 5)
    assert A.debug_string(A.subshape(whole, 0, 5, 2)) == "[1,3,5]"
    assert A.debug_string(A.subshape(whole, 1, 4, 3)) == "[2]"
    assert A.debug_string(A.subshape(whole, 4, 0, -1)) == "[5,?,3,2]"
    assert A.debug_string(A.subshape(whole, MAX, 1, -2)) == "[5,3]"
    assert A.debug_string(A.subshape(whole, 0, 2, 0)) == "[]"


@pytest.mark.parametrize(
    ("args", "facts"),
    [
        ((-6,), ["-6", "5"]),
        ((0, -6), ["-6", "5"]),
        ((6, -3), ["5 and 2", "start 6", "end -3", "rank 5"]),
        ((0, 5, -1), ["0 and 5", "negative", "-1"]),
    ],
)
def test_subshape_out_of_bounds(args, facts):
    with pytest.raises(InvalidArgumentError) as error:
        A.subshape(shape(1, 2, 3, None, 5), *args)
    for fact in facts:
        assert fact in str(error.value)


def test_concatenate_keeps_the_dims():
    first, second = shape(1, None), shape(3)
    assert A.concatenate(first, second).dims == first.dims + second.dims
    assert A.debug_string(A.concatenate(A.unknown_shape(), second)) == "?"
    assert A.debug_string(A.concatenate(first, A.unknown_shape())) == "?"


def test_replace_dim():
    whole, dim = shape(1, 2), A.unknown_dim()
    assert A.replace_dim(whole, -1, dim).dims == (whole.dims[0], dim)
    assert A.debug_string(A.replace_dim(whole, 0, 7)) == "[7,2]"
    assert A.debug_string(A.replace_dim(A.unknown_shape(), 0, 7)) == "?"
    for index in (2, -3):
        with pytest.raises(InvalidArgumentError, match=f"dim_index {index} for shape with 2"):
            A.replace_dim(whole, index, 7)


def test_shapes_from_values_and_messages_and_back():
    assert repr(A.make_shape_from_partial_shape(PartialTensorShape([2, None]))) == "[2,?]"
    assert repr(A.make_shape_from_partial_shape(PartialTensorShape(None))) == "?"
    assert repr(A.make_shape_from_partial_shape(TensorShape([2, 3]))) == "[2,3]"
    message = TensorShapeProto(dim=[TensorShapeProto.Dim(size=s) for s in (2, -1)])
    assert repr(A.make_shape_from_shape_proto(message)) == "[2,?]"
    assert A.shape_handle_to_proto(shape(2, None)) == message
    unknown = TensorShapeProto(unknown_rank=True)
    assert A.shape_handle_to_proto(A.unknown_shape()) == unknown
    assert repr(A.make_shape_from_shape_proto(unknown)) == "?"
    assert A.as_partial_shape(shape(2, None)) == PartialTensorShape([2, None])
    unknown.dim.add(size=1)
    with pytest.raises(InvalidArgumentError, match="unknown shape must not have any dimensions"):
        A.make_shape_from_shape_proto(unknown)
    with pytest.raises(InvalidArgumentError):
        A.make_shape_from_shape_proto(TensorShapeProto(dim=[TensorShapeProto.Dim(size=-2)]))


@pytest.mark.parametrize("rank", [-2, 255, 2**31 - 1, 2**62])
def test_no_shape_has_a_rank_that_no_tensor_has(rank):
    """2**31 dimensions, which an attr may ask for, would fill the memory."""
    with pytest.raises(InvalidArgumentError):
        A.unknown_shape_of_rank(rank)
