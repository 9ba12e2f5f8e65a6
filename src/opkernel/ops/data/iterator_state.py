"""The state of a pass over a dataset as a value, in files, too: what SerializeIterator gives and DeserializeIterator takes.

A saved state has what the attributes in `DatasetIterator.state` hold: nothing, numbers, bytes, tensors, elements, lists
and dicts of these, and the states of further iterators. In files it is JSON, beside a list of tensors.

Source: IteratorStateVariant in TensorFlow core/kernels/data/iterator_ops.h; its format is another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.escaping import json_text, json_value
from opkernel.kernel import Step
from opkernel.ops.data.dataset import DatasetIterator
from opkernel.proto import VariantTensorDataProto
from opkernel.types import (
    OpaqueVariant,
    Variant,
    natural_dtype,
    register_variant_decoder,
    tensor_from_proto,
    tensor_to_proto,
)

_TYPE_NAME = "opkernel::IteratorState"
_KIND = "dataset"


class SavedIterator(dict[str, Any]):
    """The state of one iterator: the class of its dataset, and its attributes by name."""


class IteratorState(Variant):
    """The state of an iterator and of those that it has."""

    __slots__ = ("saved",)

    def __init__(self, saved: SavedIterator) -> None:
        self.saved = saved

    def __repr__(self) -> str:
        return f"<state of an iterator over {self.saved[_KIND]}>"

    def to_proto(self) -> VariantTensorDataProto:
        """The state as it stands in a file."""
        tensors: list[Any] = []
        text = json_text(_to_json(self.saved, tensors))
        protos = [tensor_to_proto(tensor, natural_dtype(tensor)) for tensor in tensors]
        return VariantTensorDataProto(type_name=_TYPE_NAME, metadata=text.encode(), tensors=protos)

    @classmethod
    def from_proto(cls, proto: VariantTensorDataProto) -> IteratorState:
        """The state that stands in a file.

        Raises:
            InvalidArgumentError: it is malformed.
        """
        tensors = [tensor_from_proto(tensor) for tensor in proto.tensors]
        try:
            saved = _from_json(json_value(proto.metadata), tensors)
        except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise InvalidArgumentError(f"The state of an iterator is malformed: {error}") from error
        if not isinstance(saved, SavedIterator):
            raise InvalidArgumentError("The state of an iterator is malformed")
        return cls(saved)


register_variant_decoder(_TYPE_NAME, IteratorState.from_proto)


def state_in(tensor: Any) -> IteratorState:
    """The state that a tensor of one element holds.

    Raises:
        InvalidArgumentError: it holds something else.
    """
    value = tensor.item() if tensor.size == 1 else None
    if (
        isinstance(value, OpaqueVariant) and value.type_name == _TYPE_NAME
    ):  # read before this module
        value = IteratorState.from_proto(value.to_proto())
    if not isinstance(value, IteratorState):
        raise InvalidArgumentError("The tensor does not hold the state of an iterator")
    return value


def save_iterator(iterator: DatasetIterator) -> SavedIterator:
    """The state of an iterator."""
    saved = SavedIterator({_KIND: type(iterator.dataset).__name__})
    with iterator.paused():
        for name in iterator.state:
            saved[name] = _saved(getattr(iterator, name))
    return saved


def _saved(value: Any) -> Any:
    if isinstance(value, OpError):
        raise UnimplementedError(f"A window with a failed element cannot be saved: {value.message}")
    if isinstance(value, DatasetIterator):
        return save_iterator(value)
    if isinstance(value, list):
        return [_saved(one) for one in value]
    if isinstance(value, dict):
        return {key: _saved(one) for key, one in value.items()}
    return value


def restore_iterator(iterator: DatasetIterator, saved: SavedIterator, step: Step) -> None:
    """Give an iterator that has just begun a state that was saved.

    Raises:
        InvalidArgumentError: the state is that of an iterator over another dataset, or damaged.
    """
    try:
        _restore_iterator(iterator, saved, step)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"The state of an iterator is damaged: {error}") from error


def _restore_iterator(iterator: DatasetIterator, saved: SavedIterator, step: Step) -> None:
    kind = type(iterator.dataset).__name__
    if saved.get(_KIND) != kind or saved.keys() != {_KIND, *iterator.state}:
        raise InvalidArgumentError(
            f"The state is one of an iterator over {saved.get(_KIND)}, not over {kind}"
        )
    for name in iterator.state:
        if not _has_iterators(saved[name]):
            setattr(iterator, name, _saved(saved[name]))  # lists and dicts are the iterator's own
    iterator.restored(step)
    for name in iterator.state:
        if saved[name] is None:
            setattr(iterator, name, None)
        elif _has_iterators(saved[name]):
            _restore(getattr(iterator, name), saved[name], step)


def _has_iterators(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_iterators, value))
    return isinstance(value, SavedIterator)


def _restore(iterator: Any, saved: Any, step: Step) -> None:
    if isinstance(saved, SavedIterator) and isinstance(iterator, DatasetIterator):
        _restore_iterator(iterator, saved, step)
    elif isinstance(saved, list) and isinstance(iterator, list) and len(saved) == len(iterator):
        for pair in zip(iterator, saved, strict=True):
            _restore(*pair, step)
    elif saved is not None:
        raise InvalidArgumentError("The state is one of an iterator over another dataset")


def _to_json(value: Any, tensors: list[Any]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        kind = "iterator" if isinstance(value, SavedIterator) else "dict"
        pairs = [[_to_json(k, tensors), _to_json(v, tensors)] for k, v in value.items()]
        return {kind: pairs}
    return {type(value).__name__: [_to_json(one, tensors) for one in value]}


_MAKERS = {"iterator": SavedIterator, "dict": dict, "list": list, "tuple": tuple}


def _from_json(value: Any, tensors: list[Any]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind in ("iterator", "dict"):
        pairs = [(_from_json(k, tensors), _from_json(v, tensors)) for k, v in content]
        return _MAKERS[kind](pairs)
    return _MAKERS[kind]([_from_json(one, tensors) for one in content])
