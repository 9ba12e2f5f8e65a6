"""Arithmetic on elements of which some are unknown: never wrong, and no less than what is certain."""

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from opkernel.graph.inference import partial_elements as elements
from opkernel.opdef import DimensionHandle, InferenceContext, ShapeHandle
from opkernel.types import DataType

M, N = DimensionHandle(), DimensionHandle()
"""Dimensions of unknown sizes."""
NEW = "some size"


def truncated(a: int, b: int) -> int:
    return int(np.trunc(a / b))


ARITHMETIC: dict[str, Callable[[int, int], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": operator.floordiv,
    "truncate_divide": truncated,
    "floor_mod": operator.mod,
    "maximum": max,
    "minimum": min,
    "equal": operator.eq,
    "not_equal": operator.ne,
}


def worlds(*arguments: Any) -> Iterator[dict[Any, int]]:
    """What unknown elements may be: dimensions have sizes, of others nothing is known."""
    dims = [one for one in dict.fromkeys(arguments) if isinstance(one, DimensionHandle)]
    for sizes in itertools.product([0, 1, 2, 3, 7], repeat=len(dims)):
        yield dict(zip(dims, sizes, strict=True))


def meanings(argument: Any, world: dict[Any, int]) -> list[int]:
    if argument is None:
        return [-5, -1, 0, 1, 2, 6]
    return [world[argument]] if isinstance(argument, DimensionHandle) else [argument]


@pytest.mark.parametrize("name", ARITHMETIC)
def test_what_is_known_of_a_result_holds_whatever_is_unknown(name: str) -> None:
    compute, partial = ARITHMETIC[name], getattr(elements, name)
    for a, b in itertools.product([-7, -2, -1, 0, 1, 2, 5, M, N, None], repeat=2):
        found = partial(a, b)
        for world in worlds(a, b):
            for x, y in itertools.product(meanings(a, world), meanings(b, world)):
                if y == 0 and name in ("floor_divide", "truncate_divide", "floor_mod"):
                    continue
                value = compute(x, y)
                if isinstance(found, DimensionHandle):
                    assert value >= 0, (a, b)
                    assert value == world.get(found, value), (a, b)
                elif found is not None:
                    assert value == found, (a, b)


@pytest.mark.parametrize(
    ("name", "a", "b", "result"),
    [
        ("add", 2, 3, 5),
        ("add", 0, M, M),
        ("add", M, 0, M),
        ("add", M, N, NEW),
        ("add", M, 1, NEW),
        ("add", M, -1, None),
        ("add", M, None, None),
        ("subtract", 2, 3, -1),
        ("subtract", M, 0, M),
        ("subtract", M, M, 0),
        ("subtract", M, N, None),
        ("subtract", None, None, None),
        ("multiply", 2, 3, 6),
        ("multiply", 0, None, 0),
        ("multiply", None, 0, 0),
        ("multiply", 1, M, M),
        ("multiply", M, 1, M),
        ("multiply", M, N, NEW),
        ("multiply", M, -1, None),
        ("floor_divide", -7, 2, -4),
        ("floor_divide", 7, 0, None),
        ("floor_divide", M, 1, M),
        ("floor_divide", M, 2, NEW),
        ("floor_divide", M, -2, None),
        ("floor_divide", None, 2, None),
        ("floor_divide", 6, M, None),
        ("truncate_divide", -7, 2, -3),
        ("truncate_divide", 7, -2, -3),
        ("truncate_divide", -7, -2, 3),
        ("truncate_divide", 7, 2, 3),
        ("truncate_divide", 7, 0, None),
        ("truncate_divide", -7, 0, None),
        ("truncate_divide", M, 2, NEW),
        ("floor_mod", -7, 2, 1),
        ("floor_mod", 7, 0, None),
        ("floor_mod", None, 1, 0),
        ("floor_mod", None, 2, NEW),
        ("floor_mod", M, -2, None),
        ("floor_mod", 7, M, None),
        ("maximum", 2, 3, 3),
        ("maximum", M, M, M),
        ("maximum", M, 0, M),
        ("maximum", -1, M, M),
        ("maximum", M, 1, NEW),
        ("maximum", None, 1, NEW),
        ("maximum", None, -1, None),
        ("maximum", M, N, NEW),
        ("minimum", 2, 3, 2),
        ("minimum", M, M, M),
        ("minimum", M, 0, 0),
        ("minimum", -1, M, -1),
        ("minimum", M, 1, NEW),
        ("minimum", None, 1, None),
        ("equal", 2, 2, True),
        ("equal", 2, 3, False),
        ("equal", M, M, True),
        ("equal", M, N, None),
        ("equal", None, None, None),
        ("not_equal", 2, 3, True),
        ("not_equal", M, M, False),
        ("not_equal", M, 2, None),
        ("logical_and", True, True, True),
        ("logical_and", True, False, False),
        ("logical_and", None, False, False),
        ("logical_and", False, None, False),
        ("logical_and", True, None, None),
        ("logical_or", False, False, False),
        ("logical_or", False, True, True),
        ("logical_or", None, True, True),
        ("logical_or", True, None, True),
        ("logical_or", None, False, None),
        ("broadcast_size", 1, M, M),
        ("broadcast_size", M, 1, M),
        ("broadcast_size", 3, 3, 3),
        ("broadcast_size", 3, M, 3),
        ("broadcast_size", None, 3, 3),
        ("broadcast_size", M, M, M),
        ("broadcast_size", M, N, None),
    ],
)
def test_what_is_known_of_a_result(name: str, a: Any, b: Any, result: Any) -> None:
    found = getattr(elements, name)(a, b)
    if result is NEW:
        assert isinstance(found, DimensionHandle)
        assert found not in (M, N)
    else:
        assert found is result or (type(found) is type(result) and found == result)


def test_sizes_that_do_not_broadcast() -> None:
    with pytest.raises(ValueError, match="3"):
        elements.broadcast_size(2, 3)


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ((True, M, N), M),
        ((False, M, N), N),
        ((None, M, M), M),
        ((None, 3, 3), 3),
        ((None, 3, 4), None),
        ((None, M, N), None),
        ((None, M, 3), None),
    ],
)
def test_one_of_two(arguments: tuple[Any, Any, Any], result: Any) -> None:
    assert elements.select(*arguments) is result


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ([], ()),
        ([2, 3], (2, 3)),
        ([0], (0,)),
        ([1024], (1024,)),
        ([1025], None),
        ([32, 33], None),
        ([2, None], None),
    ],
)
def test_an_unknown_tensor_has_elements_where_its_shape_is_known_and_small(
    shape: list[int | None], expected: tuple[int, ...] | None
) -> None:
    found = elements.unknown_elements(InferenceContext.make_shape(shape))
    assert (None if found is None else found.shape) == expected
    assert found is None or all(one is None for one in found.flat)
    assert elements.unknown_elements(ShapeHandle()) is None


def test_elements_are_known_within_the_range_of_their_type() -> None:
    value = elements.array_of([-129, -128, 127, 128, M, None])
    assert list(elements.within_type(value, DataType.DT_INT8)) == [None, -128, 127, None, M, None]
    assert elements.within_type(value, DataType.DT_INT32) is value
    flags = elements.array_of([True, False, None])
    assert elements.within_type(flags, DataType.DT_BOOL) is flags


def test_arrays_of_elements() -> None:
    assert elements.array_of([[1, M], [None, 2]]).shape == (2, 2)
    assert elements.array_of(np.array([1, 2])).dtype == object
    assert elements.array_of(3).shape == ()
    assert elements.is_complete(elements.array_of([1, 2]))
    assert not elements.is_complete(elements.array_of([1, M]))
    assert not elements.is_complete(elements.array_of([None]))


def test_only_integers_and_bools_are_followed() -> None:
    followed = {one for one in DataType if not one.is_ref and elements.is_tracked(one)}
    assert followed >= {DataType.DT_INT32, DataType.DT_UINT8, DataType.DT_BOOL}
    assert followed.isdisjoint({DataType.DT_FLOAT, DataType.DT_STRING, DataType.DT_RESOURCE})
