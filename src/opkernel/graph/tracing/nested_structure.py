"""Values nested in lists, tuples, named tuples and mappings, as arguments and results of functions.

The leaves of mappings come in the order of their sorted keys, where these can be sorted. Classes say by
`__tf_flatten__` and `__tf_unflatten__` what they are made of (tf.experimental's CustomNestProtocol).

Source: TensorFlow python/util/nest.py.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from opkernel.messages import short_repr

Pack = Callable[[Sequence[Any]], Any]


def flatten(value: Any) -> list[Any]:
    """The leaves of a value: its parts that are no list, tuple, mapping or object with parts."""
    parts = _parts(value)
    return [value] if parts is None else [leaf for part in parts for leaf in flatten(part)]


def flatten_up_to(form: Any, value: Any) -> list[Any]:
    """The parts of a value at the leaves of `form`; a part may be nested itself.

    Raises:
        ValueError: the value is not nested like `form`.
    """
    parts, others = _parts(form), _parts(value)
    if parts is None:
        return [value]
    if _has_parts(form):
        if type(value) is not type(form):
            raise ValueError(f"{short_repr(value)} is no {type(form).__name__}")
    elif isinstance(form, Mapping):
        if not isinstance(value, Mapping) or set(value) != set(form):
            raise ValueError(f"{short_repr(value)} does not have the keys {list(form)}")
    elif not isinstance(value, list | tuple):
        others = None
    if others is None or len(others) != len(parts):
        raise ValueError(f"{short_repr(value)} is no list of {len(parts)}")
    return [p for f, v in zip(parts, others, strict=True) for p in flatten_up_to(f, v)]


def map_structure(function: Callable[[Any], Any], value: Any) -> Any:
    """The same structure with each leaf replaced by `function(leaf)`, in the order of `flatten`."""
    parts = _parts(value)
    if parts is None:
        return function(value)
    return _like(value)([map_structure(function, part) for part in parts])


def structure_of(value: Any) -> Hashable:
    """Equal for values that differ in nothing but their leaves, and the order in mappings."""
    parts = _parts(value)
    if parts is None:
        return None
    known: Any = None
    if _has_parts(value):
        known = value.__tf_flatten__()[0]
    elif isinstance(value, Mapping):
        known = tuple(_sorted_keys(value))
    return type(value), known, tuple([structure_of(part) for part in parts])


def packer(template: Any) -> Pack:
    """A function that puts values in place of a template's leaves; leaves of None stay None.

    It does once what `map_structure` would do at every call.
    """
    return _packer(template, iter(range(len(flatten(template)))))


def _packer(template: Any, positions: Iterator[int]) -> Pack:
    parts = _parts(template)
    if parts is not None:
        items = [_packer(part, positions) for part in parts]
        if type(template) is tuple:
            return lambda values: tuple([item(values) for item in items])
        make = _like(template)
        return lambda values: make([item(values) for item in items])
    if template is None:
        return lambda values: None
    position = next(positions)
    return lambda values: values[position]


def _has_parts(value: Any) -> bool:
    """Whether it is an object that says what it is made of."""
    return hasattr(value, "__tf_unflatten__") and not isinstance(value, type)


def _parts(value: Any) -> Sequence[Any] | None:
    """What a value is made of, in the order of `flatten`; None for a leaf."""
    if _has_parts(value):
        return tuple(value.__tf_flatten__()[1])
    if isinstance(value, Mapping):
        return [value[key] for key in _sorted_keys(value)]
    return value if isinstance(value, list | tuple) else None


def _like(form: Any) -> Callable[[Sequence[Any]], Any]:
    """Makes a value of the type of another from other parts."""
    make: Any = type(form)
    if _has_parts(form):
        return lambda parts: make.__tf_unflatten__(form.__tf_flatten__()[0], tuple(parts))
    if isinstance(form, Mapping):
        return lambda parts: _like_mapping(form, dict(zip(_sorted_keys(form), parts, strict=True)))
    return (lambda parts: make(*parts)) if hasattr(form, "_fields") else make


def _like_mapping(form: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """The values in the order of `form`, and of its type unless a mapping of that type needs more."""
    pairs = {key: values[key] for key in form}
    make: Any = type(form)
    try:
        return pairs if make is dict else make(pairs)
    except TypeError:  # such as a defaultdict
        return pairs


def _sorted_keys(value: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(value)
    except TypeError:  # keys of several types
        return list(value)
