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
    if _has_parts(value):
        return flatten(_parts(value))
    if isinstance(value, Mapping):
        return [leaf for key in _sorted_keys(value) for leaf in flatten(value[key])]
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in flatten(part)]
    return [value]


def flatten_up_to(form: Any, value: Any) -> list[Any]:
    """The parts of a value at the leaves of `form`; a part may be nested itself.

    Raises:
        ValueError: the value is not nested like `form`.
    """
    if _has_parts(form):
        if type(value) is not type(form):
            raise ValueError(f"{short_repr(value)} is no {type(form).__name__}")
        return flatten_up_to(_parts(form), _parts(value))
    if isinstance(form, Mapping):
        if not isinstance(value, Mapping) or set(value) != set(form):
            raise ValueError(f"{short_repr(value)} does not have the keys {list(form)}")
        return [p for key in _sorted_keys(form) for p in flatten_up_to(form[key], value[key])]
    if isinstance(form, list | tuple):
        if not isinstance(value, list | tuple) or len(value) != len(form):
            raise ValueError(f"{short_repr(value)} is no list of {len(form)}")
        return [p for f, v in zip(form, value, strict=True) for p in flatten_up_to(f, v)]
    return [value]


def map_structure(function: Callable[[Any], Any], value: Any) -> Any:
    """The same structure with each leaf replaced by `function(leaf)`, in the order of `flatten`."""
    if _has_parts(value):
        return _like_object(value, map_structure(function, _parts(value)))
    if isinstance(value, Mapping):
        return _like_mapping(
            value, {key: map_structure(function, value[key]) for key in _sorted_keys(value)}
        )
    if isinstance(value, list | tuple):
        return _like_sequence(value, [map_structure(function, part) for part in value])
    return function(value)


def structure_of(value: Any) -> Hashable:
    """Equal for values that differ in nothing but their leaves, and the order in mappings."""
    if _has_parts(value):
        metadata, parts = value.__tf_flatten__()
        return type(value), metadata, structure_of(tuple(parts))
    if isinstance(value, Mapping):
        return (
            type(value),
            tuple([(key, structure_of(value[key])) for key in _sorted_keys(value)]),
        )
    if isinstance(value, list | tuple):
        return type(value), tuple([structure_of(part) for part in value])
    return None


def packer(template: Any) -> Pack:
    """A function that puts values in place of a template's leaves; leaves of None stay None.

    It does once what `map_structure` would do at every call.
    """
    return _packer(template, iter(range(len(flatten(template)))))


def _packer(template: Any, positions: Iterator[int]) -> Pack:
    if _has_parts(template):
        pack = _packer(_parts(template), positions)
        return lambda values: _like_object(template, pack(values))
    if isinstance(template, Mapping):
        parts = {key: _packer(template[key], positions) for key in _sorted_keys(template)}
        return lambda values: _like_mapping(template, {k: f(values) for k, f in parts.items()})
    if isinstance(template, list | tuple):
        items = [_packer(part, positions) for part in template]
        if type(template) is tuple:
            return lambda values: tuple([item(values) for item in items])
        return lambda values: _like_sequence(template, [item(values) for item in items])
    if template is None:
        return lambda values: None
    position = next(positions)
    return lambda values: values[position]


def _has_parts(value: Any) -> bool:
    return hasattr(value, "__tf_unflatten__") and not isinstance(value, type)


def _parts(value: Any) -> tuple[Any, ...]:
    return tuple(value.__tf_flatten__()[1])


def _like_object(form: Any, parts: tuple[Any, ...]) -> Any:
    return type(form).__tf_unflatten__(form.__tf_flatten__()[0], parts)


def _sorted_keys(value: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(value)
    except TypeError:  # keys of several types
        return list(value)


def _like_mapping(form: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """The values in the order of `form`, and of its type unless a mapping of that type needs more."""
    pairs = {key: values[key] for key in form}
    make: Any = type(form)
    try:
        return pairs if make is dict else make(pairs)
    except TypeError:  # such as a defaultdict
        return pairs


def _like_sequence(form: Sequence[Any], values: list[Any]) -> Any:
    make: Any = type(form)
    return make(*values) if hasattr(form, "_fields") else make(values)
