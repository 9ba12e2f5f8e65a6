"""The inputs and outputs of a signature, each with the tensor that it stands for.

A sparse tensor and other values of several parts have an entry for each part: `x.indices`, `x.0`.

Source: TensorFlow core/protobuf/meta_graph.proto (SignatureDef, TensorInfo).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.messages import did_you_mean
from opkernel.proto import MetaGraphDef, TensorInfo, TensorShapeProto
from opkernel.types import DataType, PartialTensorShape

DEFAULT_SIGNATURE = "serving_default"
_NO_SIGNATURES = ("__saved_model_init_op", "__saved_model_train_op")
_MAX_NAMED = 10


class SignaturePort(NamedTuple):
    """An input or output.

    Attributes:
        name: how callers name it.
        tensor: the tensor of the graph, as `x:0`.
        dtype: TensorFlow's name of its type.
        shape: its shape; None where nothing is known of it.
    """

    name: str
    tensor: str
    dtype: str
    shape: list[int | None] | None

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return self._asdict()

    @property
    def text(self) -> str:
        """Its name and type: `x float32[?,3]`."""
        sizes = "..." if self.shape is None else ",".join("?" if n is None else str(n) for n in self.shape)  # fmt: skip
        return f"{self.name} {self.dtype}[{sizes}]"


def signature_names(meta_graph: MetaGraphDef) -> list[str]:
    """The signatures of a MetaGraph, without those that initialise it or train it."""
    return sorted(name for name in meta_graph.signature_def if name not in _NO_SIGNATURES)


def choose_signature(meta_graph: MetaGraphDef, name: str | None) -> str | None:
    """The signature that is meant: that of the name, or serving_default, or the only one.

    None where the model has no signatures, and none was named.

    Raises:
        NotFoundError: there is none of this name.
        InvalidArgumentError: none was named, and there are several.
    """
    known = signature_names(meta_graph)
    if name is not None:
        if name not in known:
            raise NotFoundError(
                f"the model has no signature {name!r}; it has {_listed(known)}{did_you_mean(name, known)}"
            )
        return name
    if DEFAULT_SIGNATURE in known or not known:
        return DEFAULT_SIGNATURE if known else None
    if len(known) > 1:
        raise InvalidArgumentError(
            f"the model has several signatures: choose one with --signature_def, of {_listed(known)}"
        )
    return known[0]


def _listed(names: list[str]) -> str:
    more = f", {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more or "none"


def ports_of(infos: Mapping[str, TensorInfo]) -> list[SignaturePort]:
    """The inputs or outputs of a signature, in the order of their names."""
    return [port for key in sorted(infos) for port in _ports(key, infos[key])]


def _ports(key: str, info: TensorInfo) -> Iterator[SignaturePort]:
    encoding = info.WhichOneof("encoding")
    if encoding == "composite_tensor":
        for number, part in enumerate(info.composite_tensor.components):
            yield from _ports(f"{key}.{number}", part)
    elif encoding == "coo_sparse":
        sparse, shape = info.coo_sparse, _shape(info.tensor_shape)
        rank = None if shape is None else len(shape)
        int64 = DataType.DT_INT64.tf_name
        yield SignaturePort(f"{key}.indices", sparse.indices_tensor_name, int64, [None, rank])
        yield SignaturePort(f"{key}.values", sparse.values_tensor_name, _dtype(info.dtype), [None])
        yield SignaturePort(f"{key}.dense_shape", sparse.dense_shape_tensor_name, int64, [rank])
    else:
        yield SignaturePort(key, info.name, _dtype(info.dtype), _shape(info.tensor_shape))


def _dtype(number: int) -> str:
    try:
        return DataType(number).tf_name
    except ValueError:
        return f"type {number}"


def _shape(proto: TensorShapeProto) -> list[int | None] | None:
    try:
        shape = PartialTensorShape.from_proto(proto)
    except (OpError, ValueError):
        return None
    return None if shape.rank is None else [*shape.as_list()]
