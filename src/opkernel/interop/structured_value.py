"""Structures of Python values and TensorSpecs, as SavedModels write the signatures of functions.

Sparse and ragged tensors are values of several tensors: arguments and results of loaded functions.

Source: TensorFlow core/protobuf/struct.proto, python/saved_model/nested_structure_coder.py, python/framework/type_spec.py,
sparse_tensor.py, python/ops/ragged/ragged_tensor.py.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np

from opkernel.data.component_specs import RaggedTensorSpec, SparseTensorSpec
from opkernel.data.composite_values import map_components
from opkernel.endpoints.ragged.tensor import RaggedTensor
from opkernel.endpoints.sparse.tensor import SparseTensor
from opkernel.errors import DataLossError, UnimplementedError
from opkernel.graph import TensorSpec
from opkernel.proto import StructuredValue, TypeSpecProto
from opkernel.types import DataType, PartialTensorShape, tensor_from_proto, tensor_to_proto

_RAGGED, _SPARSE = "RAGGED_TENSOR_SPEC", "SPARSE_TENSOR_SPEC"
_MAX_RAGGED_RANK = 254  # as many as a tensor may have
_CLASSES = TypeSpecProto.DESCRIPTOR.enum_types_by_name["TypeSpecClass"]
_KINDS = _CLASSES.values_by_number


class CompositeSpec:
    """What is known of a value of several tensors.

    Attributes:
        kind: Its class, such as `RAGGED_TENSOR_SPEC`.
        names: What its parts are called.
        components: The specs of the parts, in order.
        state: What its class knows of it: shape, type and others.
    """

    def __init__(
        self,
        kind: str,
        names: Sequence[str],
        components: Sequence[TensorSpec],
        state: Sequence[Any] = (),
    ) -> None:
        self.kind, self.state = kind, tuple(state)
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
            fields = [*(state.values() if isinstance(state, Mapping) else state)]
            names, components = make(fields)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise DataLossError(f"A {kind} of the SavedModel is damaged: {error!r}") from error
        return cls(kind, names, components, fields)

    def parts(self, value: Any) -> Sequence[Any] | None:
        """The tensors of a value: as `value` makes them, a list of them, or an object with attributes of these names.

        None where it has not as many, or is another kind of value.
        """
        kind = _kind_of(value)
        given = parts_of(value) if kind else value
        if isinstance(given, list | tuple):
            fits = kind in ("", self.kind) and len(given) == len(self.components)
            return given if fits else None
        if self.names == ("flat_values",):
            return [value]
        if not all(hasattr(value, name) for name in self.names):
            return None
        return [getattr(value, name) for name in self.names]

    def value(self, parts: Sequence[Any]) -> Any:
        """The value of some tensors: a RaggedTensor, a SparseTensor, a tensor without ragged rows, a CompositeValue."""
        if self.kind == _RAGGED:
            return RaggedTensor.from_nested_row_splits(parts[0], parts[1:])
        return SparseTensor(*parts) if self.kind == _SPARSE else CompositeValue(self, parts)

    @property
    def text(self) -> str:
        """What messages call it: "ragged tensor"."""
        return self.kind.removesuffix("_SPEC").replace("_", " ").lower()

    def __tf_flatten__(self) -> tuple[CompositeSpec, tuple[TensorSpec, ...]]:
        return self, self.components

    @classmethod
    def __tf_unflatten__(cls, spec: CompositeSpec, parts: Sequence[Any]) -> Any:
        return spec.value(parts)

    def __repr__(self) -> str:
        parts = zip(self.names, self.components, strict=True)
        return f"{self.kind}({', '.join(f'{name}: {spec}' for name, spec in parts)})"


class CompositeValue(tuple[Any, ...]):  # noqa: SLOT001  # a tuple cannot have slots beside its items
    """A value of several tensors that is neither ragged nor sparse: a tuple of these, which also have names.

    Attributes:
        spec: What it is.
    """

    spec: CompositeSpec

    def __new__(cls, spec: CompositeSpec, parts: Sequence[Any]) -> Self:
        """The value of a spec, from its tensors in the order of the spec's names."""
        value = super().__new__(cls, parts)
        value.spec = spec
        return value

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.spec, tuple(self)

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        known = dict(zip(self.spec.names, self, strict=True))
        if name in known:
            return known[name]
        raise AttributeError(f"{self.spec.text} has no {name!r}, but {', '.join(known)}", name=name)

    def __tf_flatten__(self) -> tuple[CompositeSpec, tuple[Any, ...]]:
        return self.spec, tuple(self)

    @classmethod
    def __tf_unflatten__(cls, spec: CompositeSpec, parts: Sequence[Any]) -> CompositeValue:
        return cls(spec, parts)

    def __repr__(self) -> str:
        parts = zip(self.spec.names, self, strict=True)
        return f"<{self.spec.text} {', '.join(f'{name}={part!r}' for name, part in parts)}>"


def _kind_of(value: Any) -> str:
    """The kind of the spec of a value; empty for what says none."""
    if isinstance(value, CompositeValue):
        return value.spec.kind
    if isinstance(value, RaggedTensor):
        return _RAGGED
    return _SPARSE if isinstance(value, SparseTensor) else ""


def parts_of(value: Any) -> tuple[Any, ...]:
    """The tensors of a ragged, sparse or composite value, in the order of a spec; none of other values."""
    if isinstance(value, RaggedTensor):
        return value.flat_values, *value.nested_row_splits
    return tuple(value) if _kind_of(value) else ()


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
    return _ragged_names(rank), [
        TensorSpec(inner, dtype),
        *[TensorSpec([None], splits_dtype)] * rank,
    ]


def _ragged_names(rank: int) -> list[str]:
    return ["flat_values", *[f"row_splits_{i}" if rank > 1 else "row_splits" for i in range(rank)]]


def _slices(fields: list[Any]) -> tuple[list[str], list[TensorSpec]]:
    shape, dtype, indices_dtype = PartialTensorShape(fields[0]), DataType(fields[1]), fields[2]
    rows = None if shape.dims is None else [None, *shape.as_list()[1:]]
    names = ["values", "indices"]
    specs = [TensorSpec(rows, dtype), TensorSpec([None], DataType(indices_dtype))]
    if len(fields) > 3 and fields[3] is not None:
        names.append("dense_shape")
        specs.append(TensorSpec([shape.rank], DataType(fields[3])))
    return names, specs


def sparse_spec(shape: PartialTensorShape, dtype: DataType) -> CompositeSpec:
    """The spec of a sparse tensor."""
    return CompositeSpec(_SPARSE, *_sparse([shape, dtype]))


def _variable(fields: list[Any]) -> tuple[list[str], list[TensorSpec]]:
    return ["handle"], [TensorSpec([], DataType.DT_RESOURCE)]


_PARTS = {
    _SPARSE: _sparse,
    _RAGGED: _ragged,
    "INDEXED_SLICES_SPEC": _slices,
    "VARIABLE_SPEC": _variable,
}


_MAX_DEPTH = 100


def decoded(value: StructuredValue, depth: int = 0) -> Any:
    """The Python value of a message: specs become TensorSpecs and CompositeSpecs.

    Raises:
        DataLossError: the message is damaged.
        UnimplementedError: it has values of an unknown class.
    """
    kind = str(value.WhichOneof("kind"))
    if kind in _FIELDS.values():
        return getattr(value, kind)
    decode = _DECODERS.get(kind)
    if decode is None or depth > _MAX_DEPTH:
        raise DataLossError(f"A structured value of the SavedModel is damaged: {kind}")
    try:
        return decode(value, depth + 1)
    except (TypeError, ValueError) as error:
        raise DataLossError(f"A {kind} of the SavedModel is damaged: {error}") from error


def element_spec(value: StructuredValue) -> Any:
    """The spec of the elements of a saved dataset; errors as of `decoded`."""
    return map_components(_component_spec, decoded(value))


def _component_spec(spec: Any) -> Any:
    if isinstance(spec, CompositeSpec) and spec.kind in _COMPONENTS:
        return _COMPONENTS[spec.kind](*spec.state)
    return spec


_COMPONENTS: dict[str, Callable[..., SparseTensorSpec | RaggedTensorSpec]] = {
    _SPARSE: SparseTensorSpec,
    _RAGGED: RaggedTensorSpec,
}


def _encode_component(spec: SparseTensorSpec | RaggedTensorSpec, proto: TypeSpecProto) -> None:
    state: tuple[Any, ...] = (spec.shape, spec.dtype)
    kind, count = _SPARSE, 3
    if isinstance(spec, RaggedTensorSpec):
        state += (spec.ragged_rank, spec.row_splits_dtype)
        kind, count = _RAGGED, max(spec.ragged_rank, 0) + 1
    proto.type_spec_class = _CLASSES.values_by_name[kind].number
    proto.type_spec_class_name = type(spec).__name__
    proto.num_flat_components = count
    proto.type_state.CopyFrom(encoded(state))


def encoded(value: Any) -> StructuredValue:
    """The message of a Python value: of tuples, lists, dicts with text for keys, specs, arrays, types, shapes.

    Raises:
        TypeError: it has something else in it.
    """
    proto = StructuredValue()
    if value is None:
        proto.none_value.SetInParent()
    elif isinstance(value, DataType):
        proto.tensor_dtype_value = value
    elif isinstance(value, np.ndarray | np.generic):
        proto.numpy_value.CopyFrom(tensor_to_proto(value))
    elif (field := _FIELDS.get(type(value))) is not None:
        setattr(proto, field, value)
    elif isinstance(value, TensorSpec):
        proto.tensor_spec_value.name = value.name or ""
        proto.tensor_spec_value.shape.CopyFrom(value.shape.to_proto())
        proto.tensor_spec_value.dtype = value.dtype
    elif isinstance(value, SparseTensorSpec | RaggedTensorSpec):
        _encode_component(value, proto.type_spec_value)
    elif isinstance(value, PartialTensorShape):
        proto.tensor_shape_value.CopyFrom(value.to_proto())
    elif isinstance(value, dict | list | tuple):
        _encode_parts(value, proto)
    else:
        raise TypeError(
            f"{type(value).__name__} cannot be a part of the signature of a saved function"
        )
    return proto


_FIELDS = {
    bool: "bool_value",
    int: "int64_value",
    float: "float64_value",
    str: "string_value",
}


def _encode_parts(value: Any, proto: StructuredValue) -> None:
    if isinstance(value, dict):
        proto.dict_value.SetInParent()
        for key, one in value.items():
            if not isinstance(key, str):
                raise TypeError(f"a dict with the key {key!r} cannot be saved")
            proto.dict_value.fields[key].CopyFrom(encoded(one))
    elif hasattr(value, "_fields"):
        proto.named_tuple_value.name = type(value).__name__
        for key, one in zip(value._fields, value, strict=True):
            proto.named_tuple_value.values.add(key=key, value=encoded(one))
    else:
        target = proto.list_value if isinstance(value, list) else proto.tuple_value
        target.SetInParent()
        target.values.extend([encoded(one) for one in value])


@lru_cache(1000)
def _named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields, rename=True)  # noqa: PYI024  # its fields are those of the file


def _pairs(value: StructuredValue, depth: int) -> Any:
    pairs = value.named_tuple_value.values
    make = _named_tuple(value.named_tuple_value.name, tuple([pair.key for pair in pairs]))
    return make(*[decoded(pair.value, depth) for pair in pairs])


def _spec(proto: Any) -> TensorSpec:
    return TensorSpec(
        PartialTensorShape.from_proto(proto.shape), DataType(proto.dtype), proto.name or None
    )


_DECODERS: dict[str, Callable[[StructuredValue, int], Any]] = {
    "none_value": lambda value, depth: None,
    "tensor_shape_value": lambda value, depth: PartialTensorShape.from_proto(
        value.tensor_shape_value
    ),
    "tensor_dtype_value": lambda value, depth: DataType(value.tensor_dtype_value),
    "tensor_spec_value": lambda value, depth: _spec(value.tensor_spec_value),
    "bounded_tensor_spec_value": lambda value, depth: _spec(value.bounded_tensor_spec_value),
    "type_spec_value": lambda value, depth: CompositeSpec.of(
        value.type_spec_value, decoded(value.type_spec_value.type_state, depth)
    ),
    "list_value": lambda value, depth: [decoded(one, depth) for one in value.list_value.values],
    "tuple_value": lambda value, depth: tuple(
        [decoded(one, depth) for one in value.tuple_value.values]
    ),
    "dict_value": lambda value, depth: {
        key: decoded(one, depth) for key, one in sorted(value.dict_value.fields.items())
    },
    "named_tuple_value": _pairs,
    "tensor_value": lambda value, depth: tensor_from_proto(value.tensor_value),
    "numpy_value": lambda value, depth: tensor_from_proto(value.numpy_value),
}
