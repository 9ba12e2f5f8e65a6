"""Nested lists, tuples and mappings as trees of leaves."""

from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import pytest

from opkernel.graph.tracing.nested_structure import (
    flatten,
    flatten_up_to,
    map_structure,
    packer,
    structure_of,
)


class Pair(NamedTuple):
    first: Any
    second: Any


NESTED: dict[str, Any] = {"b": [1, (2, None)], "a": Pair(3, {"x": 4})}


def test_leaves_come_in_the_order_of_sorted_keys() -> None:
    assert flatten(NESTED) == [3, 4, 1, 2, None]
    assert flatten({1: "a", "x": "b"}) == ["a", "b"]  # keys that cannot be sorted
    assert flatten(()) == []


def test_mapping_keeps_types_and_the_order_of_keys() -> None:
    doubled = map_structure(lambda leaf: leaf and 2 * leaf, NESTED)
    assert doubled == {"b": [2, (4, None)], "a": Pair(6, {"x": 8})}
    assert list(doubled) == ["b", "a"]
    assert type(doubled["a"]) is Pair
    assert type(map_structure(str, OrderedDict(a=1))) is OrderedDict


def test_mappings_that_want_more_than_pairs_become_dicts() -> None:
    assert map_structure(str, defaultdict(int, a=1)) == {"a": "1"}


def test_a_packer_fills_in_values_and_keeps_none() -> None:
    assert packer(NESTED)([30, 40, 10, 20]) == {"b": [10, (20, None)], "a": Pair(30, {"x": 40})}
    assert packer(None)([]) is None
    assert packer("leaf")([7]) == 7


def test_structures_are_equal_where_only_leaves_differ() -> None:
    assert structure_of([1, (2,)]) == structure_of(["a", (None,)])
    assert structure_of([1]) != structure_of((1,))
    assert structure_of({"a": 1, "b": 2}) == structure_of({"b": 0, "a": 0})
    assert structure_of(Pair(1, 2)) != structure_of((1, 2))
    hash(structure_of(NESTED))


def test_flattening_up_to_a_form_leaves_what_is_deeper() -> None:
    assert flatten_up_to([0, {"k": 0}], [[1, 2], {"k": (3, 4)}]) == [[1, 2], (3, 4)]
    with pytest.raises(ValueError, match="is no list of 2"):
        flatten_up_to([0, 0], [1])
    with pytest.raises(ValueError, match="keys"):
        flatten_up_to({"a": 0}, {"b": 0})


class Tagged:
    """An object that says what it is made of."""

    def __init__(self, tag: str, *parts: Any) -> None:
        self.tag, self.parts = tag, parts

    def __tf_flatten__(self) -> tuple[str, tuple[Any, ...]]:
        return self.tag, self.parts

    @classmethod
    def __tf_unflatten__(cls, tag: str, parts: tuple[Any, ...]) -> "Tagged":
        return cls(tag, *parts)


def test_objects_with_parts() -> None:
    value = Tagged("a", 1, [2, 3])
    assert flatten([value, 4]) == [1, 2, 3, 4]
    doubled = map_structure(lambda leaf: 2 * leaf, value)
    assert (type(doubled), doubled.tag, doubled.parts) == (Tagged, "a", (2, [4, 6]))
    packed = packer(value)([7, 8, 9])
    assert (packed.tag, packed.parts) == ("a", (7, [8, 9]))
    assert structure_of(value) == structure_of(Tagged("a", 0, [0, 0]))
    assert structure_of(value) != structure_of(Tagged("b", 1, [2, 3]))
    assert flatten(Tagged) == [Tagged]  # the class itself is a leaf


def test_objects_with_parts_as_forms() -> None:
    form = Tagged("a", 0, 0)
    assert flatten_up_to(form, Tagged("a", [1], 2)) == [[1], 2]
    with pytest.raises(ValueError, match="is no Tagged"):
        flatten_up_to(form, [1, 2])
    with pytest.raises(ValueError, match="is no list of 2"):
        flatten_up_to(form, Tagged("a", 1))


def test_a_list_takes_the_place_of_a_tuple_and_nothing_else_does() -> None:
    assert flatten_up_to((0, 0), [1, 2]) == [1, 2]
    assert flatten_up_to(Pair(0, 0), (1, 2)) == [1, 2]
    for value in ({"a": 1, "b": 2}, 3, "ab", Tagged("a", 1, 2)):
        with pytest.raises(ValueError, match="is no list of 2"):
            flatten_up_to((0, 0), value)
    with pytest.raises(ValueError, match="keys"):
        flatten_up_to({"a": 0}, [1])
