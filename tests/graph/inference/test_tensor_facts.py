"""What is known of tensors: what holds of two of them, when it is the same, and of other dimensions."""

from typing import Any

import pytest

from opkernel.graph.inference.partial_elements import array_of
from opkernel.graph.inference.tensor_facts import (
    NO_ITEMS,
    ZERO_ITEMS,
    Relaxation,
    Renaming,
    TensorFacts,
    key_of_facts,
)
from opkernel.opdef import DimensionHandle, ShapeAndType, ShapeHandle
from opkernel.types import DataType

M, N = DimensionHandle(), DimensionHandle()
FLOAT, INT32 = DataType.DT_FLOAT, DataType.DT_INT32


def shape(*dims: Any) -> ShapeHandle:
    return ShapeHandle(
        tuple(d if isinstance(d, DimensionHandle) else DimensionHandle(d) for d in dims)
    )


def facts(*dims: Any, **more: Any) -> TensorFacts:
    return TensorFacts(shape(*dims), **more)


def sizes(handle: ShapeHandle) -> list[int] | None:
    return None if handle.dims is None else [dim.value for dim in handle.dims]


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        (shape(2, 3), shape(2, 3), [2, 3]),
        (shape(2, 3), shape(2, 4), [2, -1]),
        (shape(2, 3), shape(2), None),
        (shape(2, 3), ShapeHandle(), None),
        (ShapeHandle(), shape(2, 3), None),
        (shape(0), shape(0), [0]),
        (shape(M, 3), shape(M, 3), [-1, 3]),
        (shape(), shape(), []),
    ],
)
def test_a_shape_that_covers_two(old: ShapeHandle, new: ShapeHandle, result: Any) -> None:
    found = Relaxation().shape(old, new)
    assert sizes(found) == result
    assert (found is old) == (sizes(old) == result)


def test_a_dimension_stays_itself_only_where_it_is_the_same() -> None:
    relaxation = Relaxation()
    assert relaxation.shape(shape(M), shape(M)).dims == (M,)
    (other,) = relaxation.shape(shape(M), shape(N)).dims or ()
    assert other not in (M, N)
    again = shape(other)
    assert relaxation.shape(again, shape(7)) is again  # it stands for any size already


def test_what_holds_of_two_tensors() -> None:
    value = array_of([1, M, 3, None])
    old = facts(4, value=value, held=[ShapeAndType(shape(2, 3), FLOAT)])
    new = facts(4, value=array_of([1, M, 4, 5]), held=[ShapeAndType(shape(2, 5), FLOAT)])
    found = Relaxation().facts(old, new)
    assert found.value is not None
    assert list(found.value) == [1, M, None, None]
    assert found.held is not None
    assert [(sizes(one.shape), one.dtype) for one in found.held] == [([2, -1], FLOAT)]
    assert Relaxation().facts(old, old) is old
    same = facts(4, value=array_of([1, M, 3, 9]), held=[ShapeAndType(shape(2, 3), FLOAT)])
    assert Relaxation().facts(old, same) is old


@pytest.mark.parametrize(
    "new",
    [
        facts(4),
        facts(4, value=array_of([[1, 2, 3, 4]]), held=[ShapeAndType(shape(2, 3), INT32)]),
        facts(4, value=array_of([1, 2]), held=[ShapeAndType(shape(2, 3), FLOAT)] * 2),
    ],
)
def test_what_differs_in_kind_is_not_known(new: TensorFacts) -> None:
    old = facts(4, value=array_of([1, 2, 3, 4]), held=[ShapeAndType(shape(2, 3), FLOAT)])
    found = Relaxation().facts(old, new)
    assert (found.value, found.held) == (None, None)


def test_the_tensors_of_two_lists() -> None:
    relax = Relaxation().items
    one = facts(2, value=array_of([1, 2]))
    assert relax(None, one) is None
    assert relax(one, None) is None
    assert relax(one, NO_ITEMS) is one
    assert relax(NO_ITEMS, one) is one
    assert relax(NO_ITEMS, NO_ITEMS) is NO_ITEMS
    for found in (relax(one, ZERO_ITEMS), relax(ZERO_ITEMS, one)):
        assert found is not None  # some may be zeros
        assert (sizes(found.shape), found.value) == ([2], None)
    both = relax(one, facts(3))
    assert both is not None
    assert sizes(both.shape) == [-1]


def test_facts_have_one_key_whatever_unknown_dimensions_they_are_about() -> None:
    def key(a: Any, b: Any) -> Any:
        held = [ShapeAndType(shape(a, 2), FLOAT)]
        return key_of_facts([facts(a, b, held=held, value=array_of([[a, 1]]), items=facts(b))])

    (first, dims), (second, others) = key(M, N), key(N, M)
    assert first == second
    assert (dims, others) == ([M, N], [N, M])
    assert key(M, M)[0] != first
    assert key(M, 3)[0] != first


@pytest.mark.parametrize(
    "other",
    [
        facts(M, 4),
        facts(M),
        TensorFacts(ShapeHandle()),
        facts(M, 3, held=[ShapeAndType(shape(2), FLOAT)]),
        facts(M, 3, held=[ShapeAndType(shape(2), INT32)]),
        facts(M, 3, value=array_of([1])),
        facts(M, 3, value=array_of([[1]])),
        facts(M, 3, value=array_of([None])),
        facts(M, 3, items=NO_ITEMS),
        facts(M, 3, items=ZERO_ITEMS),
        facts(M, 3, items=facts(2)),
    ],
)
def test_other_facts_have_other_keys(other: TensorFacts) -> None:
    assert key_of_facts([other])[0] != key_of_facts([facts(M, 3)])[0]
    assert key_of_facts([other])[0] == key_of_facts([other])[0]


def test_facts_can_be_told_of_other_dimensions() -> None:
    new = DimensionHandle()
    renaming = Renaming([M], [new])
    told = renaming.facts(
        facts(
            M, 3, N,
            held=[ShapeAndType(shape(M), FLOAT)],
            value=array_of([[M, 1, None, N]]),
            items=facts(M),
        )
    )  # fmt: skip
    dims = told.shape.dims or ()
    assert (dims[0], dims[1].value) == (new, 3)
    assert dims[2] not in (M, N, new)
    assert told.value is not None
    assert told.value.shape == (1, 4)
    assert list(told.value.flat) == [new, 1, None, dims[2]]
    assert told.held is not None
    assert (told.held[0].shape.dims, told.held[0].dtype) == ((new,), FLOAT)
    assert told.items is not None
    assert told.items.shape.dims == (new,)


@pytest.mark.parametrize("items", [None, NO_ITEMS, ZERO_ITEMS])
def test_lists_without_facts_stay_so_under_other_dimensions(items: TensorFacts | None) -> None:
    told = Renaming([], []).facts(TensorFacts(ShapeHandle(), items=items))
    assert told.items is items
    assert (told.shape.dims, told.held, told.value) == (None, None, None)
