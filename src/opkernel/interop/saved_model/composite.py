"""Values of several tensors: sparse and ragged tensors, as arguments and results of loaded functions.

Source: TensorFlow core/protobuf/struct.proto (TypeSpecProto), python/framework/type_spec.py,
python/ops/ragged/ragged_tensor.py, python/framework/sparse_tensor.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opkernel.errors import DataLossError, UnimplementedError
from opkernel.graph import TensorSpec
from opkernel.proto import TypeSpecProto
from opkernel.types import DataType, PartialTensorShape

_MAX_RAGGED_RANK = 254  # as many as a tensor may have
_KINDS = TypeSpecProto.DESCRIPTOR.enum_types_by_name["TypeSpecClass"].values_by_number


class CompositeSpec:
    """What is known of a value of several tensors.

    Attributes:
        kind: Its class, such as `RAGGED_TENSOR_SPEC`.
        names: What its parts are called.
        components: The specs of the parts, in order.
    """

    def __init__(self, kind: str, names: Sequence[str], components: Sequence[TensorSpec]) -> None:
        self.kind = kind
        self.names = tuple(names)
        self.components = tuple(components)

    @classmethod
    def of(cls, proto: TypeSpecProto, state: Any) -> CompositeSpec:
        """The spec of a message, whose state is decoded.

        Raises:
            UnimplementedError: values of this class are not known.
            DataLossError: the state is not that of the class.
        """
        known = _KINDS.get(proto.type_spec_class)
        kind = "?" if known is None else known.name
        make = _PARTS.get(kind)
        if make is None:
            raise UnimplementedError(
                f"Values of {proto.type_spec_class_name or kind} are not supported as arguments or "
                f"results of loaded functions"
            )
        try:
            names, components = make(_fields(state))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise DataLossError(f"A {kind} of the SavedModel is damaged: {error!r}") from error
        return cls(kind, names, components)

    def parts(self, value: Any) -> Sequence[Any] | None:
        """The tensors of a value; None where it has not as many."""
        if isinstance(value, CompositeValue):
            return value.parts if value.spec.kind == self.kind else None
        if isinstance(value, list | tuple) and len(value) == len(self.components):
            return value
        return None

    def __repr__(self) -> str:
        parts = zip(self.names, self.components, strict=True)
        return f"{self.kind}({', '.join(f'{name}: {spec}' for name, spec in parts)})"


class CompositeValue:
    """A value of several tensors, such as a ragged tensor: `value.flat_values`, `value.row_splits`.

    Attributes:
        spec: What it is.
        parts: Its tensors, in the order of the names of the spec.
    """

    def __init__(self, spec: CompositeSpec, parts: Sequence[Any]) -> None:
        self.spec = spec
        self.parts = tuple(parts)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("spec", CompositeSpec("", (), ())).names:
            return self.parts[self.spec.names.index(name)]
        raise AttributeError(f"{self.spec.kind} has no part {name!r}: {', '.join(self.spec.names)}")

    def __tf_flatten__(self) -> tuple[CompositeSpec, tuple[Any, ...]]:
        return self.spec, self.parts

    @classmethod
    def __tf_unflatten__(cls, spec: CompositeSpec, parts: Sequence[Any]) -> CompositeValue:
        return cls(spec, parts)

    def __repr__(self) -> str:
        parts = zip(self.spec.names, self.parts, strict=True)
        return f"<{self.spec.kind} {', '.join(f'{name}={part!r}' for name, part in parts)}>"


def _fields(state: Any) -> list[Any]:
    return [*state.values()] if isinstance(state, Mapping) else [*state]


def _sparse(fields: list[Any]) -> tuple[list[str], list[TensorSpec]]:
    shape, dtype = PartialTensorShape(fields[0]), DataType(fields[1])
    specs = [
        TensorSpec([None, shape.rank], DataType.DT_INT64),
        TensorSpec([None], dtype),
        TensorSpec([shape.rank], DataType.DT_INT64),
    ]
    return ["indices", "values", "dense_shape"], specs


def _ragged(fields: list[Any]) -> tuple[list[str], list[TensorSpec]]:
    shape, dtype = PartialTensorShape(fields[0]), DataType(fields[1])
    rank, splits_dtype = int(fields[2]), DataType(fields[3])
    if not 0 <= rank <= _MAX_RAGGED_RANK:
        raise ValueError(f"it has {rank} ragged dimensions")
    inner = None if shape.dims is None else [None, *shape.as_list()[rank + 1 :]]
    names = ["flat_values", *[f"row_splits_{i}" if rank > 1 else "row_splits" for i in range(rank)]]
    return names, [TensorSpec(inner, dtype), *[TensorSpec([None], splits_dtype)] * rank]


def _slices(fields: list[Any]) -> tuple[list[str], list[TensorSpec]]:
    shape, dtype, indices_dtype = PartialTensorShape(fields[0]), DataType(fields[1]), fields[2]
    rows = None if shape.dims is None else [None, *shape.as_list()[1:]]
    names = ["values", "indices"]
    specs = [TensorSpec(rows, dtype), TensorSpec([None], DataType(indices_dtype))]
    if len(fields) > 3 and fields[3] is not None:
        names.append("dense_shape")
        specs.append(TensorSpec([shape.rank], DataType(fields[3])))
    return names, specs


def _variable(fields: list[Any]) -> tuple[list[str], list[TensorSpec]]:
    return ["handle"], [TensorSpec([], DataType.DT_RESOURCE)]


_PARTS = {
    "SPARSE_TENSOR_SPEC": _sparse,
    "RAGGED_TENSOR_SPEC": _ragged,
    "INDEXED_SLICES_SPEC": _slices,
    "VARIABLE_SPEC": _variable,
}
