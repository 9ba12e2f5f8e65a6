"""Nested lists, tuples and dicts.

Source: TensorFlow python/util/nest.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from opkernel.graph.tracing import nested_structure


def is_nested(seq: Any) -> bool:
    """Whether a value is a list, a tuple or a mapping."""
    return isinstance(seq, list | tuple | Mapping)


def _items(structure: Any) -> list[Any]:
    """The parts of a structure, those of a mapping by their keys in order."""
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted(structure)]
    return [*structure]


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The values in a structure as one list; those of a dict in the order of its keys.

    Args:
        structure: nested lists, tuples and dicts, or a value, which gives a list of one.
        expand_composites: ignored: sparse and ragged tensors are tuples here, and always flattened.
    """
    return nested_structure.flatten(structure)


def _packed(structure: Any, values: Iterator[Any]) -> Any:
    """A structure with other values, taken in the order of `flatten`."""
    return nested_structure.map_structure(lambda _: next(values), structure)


def pack_sequence_as(
    structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False
) -> Any:
    """The values of a list in a structure: the inverse of `flatten`.

    Raises:
        ValueError: there are more or fewer values than the structure has.
        TypeError: the values are not in a list or tuple.
    """
    if not is_nested(flat_sequence):
        raise TypeError(f"flat_sequence is a list, and not {type(flat_sequence).__name__}")
    if not is_nested(structure):
        if len(flat_sequence) != 1:
            raise ValueError(f"The structure is one value, and {len(flat_sequence)} are given")
        return flat_sequence[0]
    wanted = len(flatten(structure))
    if wanted != len(flat_sequence):
        raise ValueError(f"The structure has {wanted} values, and {len(flat_sequence)} are given")
    return _packed(structure, iter(flat_sequence))


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raise an error unless two structures differ in values only.

    Args:
        nest1: a structure.
        nest2: another one.
        check_types: whether lists and tuples are told apart.
        expand_composites: ignored; see `flatten`.

    Raises:
        ValueError: they have other parts.
        TypeError: they have other types.
    """
    if is_nested(nest1) != is_nested(nest2):
        raise ValueError(f"The structures differ: {nest1!r} and {nest2!r}")
    if not is_nested(nest1):
        return
    are_mappings = isinstance(nest1, Mapping), isinstance(nest2, Mapping)
    is_alike = type(nest1) is type(nest2) or are_mappings == (True, True)
    if (check_types and not is_alike) or are_mappings[0] != are_mappings[1]:
        raise TypeError(
            f"The structures have the types {type(nest1).__name__} and {type(nest2).__name__}"
        )
    if are_mappings[0] and {*nest1} != {*nest2}:
        raise ValueError(f"The structures have the keys {[*nest1]} and {[*nest2]}")
    if len(nest1) != len(nest2):
        raise ValueError(f"The structures have {len(nest1)} and {len(nest2)} parts")
    for one, two in zip(_items(nest1), _items(nest2), strict=True):
        assert_same_structure(one, two, check_types)


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """A structure with the results of a function of the values at each place of one or more structures.

    Args:
        func: the function.
        structure: the structures, which differ in values only.
        kwargs: `check_types`, whether lists and tuples are told apart; `expand_composites`, ignored.

    Raises:
        TypeError: `func` cannot be called, or there is another keyword.
        ValueError: there is no structure, or they differ.
    """
    if not callable(func):
        raise TypeError(f"func is a function, and not {type(func).__name__}")
    if not structure:
        raise ValueError("map_structure takes a structure or more")
    check_types = kwargs.pop("check_types", True)
    kwargs.pop("expand_composites", None)
    if kwargs:
        raise ValueError(f"map_structure has no keywords {', '.join(sorted(kwargs))}")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    parts = zip(*map(flatten, structure), strict=True)
    return _packed(structure[0], iter([func(*values) for values in parts]))
