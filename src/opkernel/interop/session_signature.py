"""Signatures that a session computes: SignatureDefs, which name tensors of the graph.

Source: TensorFlow core/protobuf/meta_graph.proto (SignatureDef, TensorInfo).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from opkernel.errors import InvalidArgumentError
from opkernel.graph import TensorSpec
from opkernel.interop.signature import Signature
from opkernel.proto import SignatureDef, TensorInfo
from opkernel.types import DataType, PartialTensorShape, tensor_from_proto

if TYPE_CHECKING:
    from opkernel.runtime import Session

__all__ = ["session_signature"]

_Tensors = TensorInfo | tuple[TensorInfo, ...]
"""The tensor of an input or output, or those that it has as parts."""


class SessionOwner(Protocol):
    """What has a graph and a session."""

    @property
    def session(self) -> Session:
        """The session."""

    def element(self, name: str, whose: str) -> Any:
        """The tensor of a name."""


def session_signature(name: str, definition: SignatureDef, owner: SessionOwner) -> Signature:
    """The signature that a SignatureDef describes.

    The session is asked for at the first call.
    """
    inputs = {key: _tensors(info) for key, info in sorted(definition.inputs.items())}
    outputs = {key: _tensors(info) for key, info in sorted(definition.outputs.items())}

    @cache
    def step() -> Callable[..., Any]:
        for one in _flat([*inputs.values(), *outputs.values()]):
            owner.element(one.name, f"signature {name!r}")
        fetches = {key: _names(tensors) for key, tensors in outputs.items()}
        return owner.session.make_callable(fetches, [one.name for one in _flat(inputs.values())])

    names = [*inputs]
    is_plain = not any(isinstance(tensors, tuple) for tensors in inputs.values())

    def run(values: Mapping[str, Any]) -> dict[str, Any]:
        if is_plain:
            return step()(*[values[name] for name in names])  # type: ignore[no-any-return]  # as below
        given = [v for key, tensors in inputs.items() for v in _parts(key, tensors, values[key])]
        return step()(*given)  # type: ignore[no-any-return]  # in the form of the fetches

    return Signature(
        name,
        {key: _specs(tensors) for key, tensors in inputs.items()},
        {key: _specs(tensors) for key, tensors in outputs.items()},
        run,
        method_name=definition.method_name,
        defaults={key: tensor_from_proto(value) for key, value in definition.defaults.items()},
    )


def _tensors(info: TensorInfo) -> _Tensors:
    encoding = info.WhichOneof("encoding")
    if encoding == "composite_tensor":
        return tuple(info.composite_tensor.components)
    if encoding != "coo_sparse":
        return info
    sparse, rank = info.coo_sparse, _shape(info).rank
    shapes = (
        PartialTensorShape([None, rank]),
        PartialTensorShape([None]),
        PartialTensorShape([rank]),
    )
    names = sparse.indices_tensor_name, sparse.values_tensor_name, sparse.dense_shape_tensor_name
    types = DataType.DT_INT64, info.dtype, DataType.DT_INT64
    return tuple(
        TensorInfo(name=name, dtype=dtype, tensor_shape=shape.to_proto())
        for name, dtype, shape in zip(names, types, shapes, strict=True)
    )


def _flat(tensors: Iterable[_Tensors]) -> list[TensorInfo]:
    return [one for some in tensors for one in (some if isinstance(some, tuple) else (some,))]


def _names(tensors: _Tensors) -> Any:
    if isinstance(tensors, tuple):
        return tuple([one.name for one in tensors])
    return tensors.name


def _specs(tensors: _Tensors) -> Any:
    if isinstance(tensors, tuple):
        return tuple([_specs(one) for one in tensors])
    return TensorSpec(_shape(tensors), DataType(tensors.dtype), tensors.name.partition(":")[0])


def _shape(info: TensorInfo) -> PartialTensorShape:
    return PartialTensorShape.from_proto(info.tensor_shape)


def _parts(key: str, tensors: _Tensors, value: Any) -> Sequence[Any]:
    """The values of the tensors of an input.

    Raises:
        InvalidArgumentError: the input has several parts, and the value has not as many.
    """
    if not isinstance(tensors, tuple):
        return (value,)
    if not isinstance(value, list | tuple) or len(value) != len(tensors):
        names = ", ".join([one.name for one in tensors])
        raise InvalidArgumentError(
            f"Input {key!r} has {len(tensors)} parts ({names}): give a tuple of their values"
        )
    return value
