"""Ops that make tables.

Source: TensorFlow core/ops/lookup_ops.cc, core/kernels/lookup_table_op.{h,cc}.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    make_ref_counting_handle,
    tensor_of_handle,
)
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    ShapeAndType,
    ShapeHandle,
    register_op,
    scalar_shape,
)
from opkernel.opdef.common_shapes.rules import defined_shape
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.kernel_types import WIDE_FLOATS
from opkernel.ops.lookup.dense_hash_table import MutableDenseHashTable
from opkernel.ops.lookup.hash_tables import HashTable, MutableHashTable
from opkernel.ops.lookup.lookup_table import LookupInterface
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import ResourceOpKernel
from opkernel.types import DataType, TensorShape

# What the ops are


def _set_handle(c: InferenceContext, key: ShapeHandle, value: ShapeHandle) -> None:
    """A handle that knows what a key and a value are."""
    scalar_shape(c)
    held = [
        ShapeAndType(c.with_rank_at_most(key, 1), c.get_attr("key_dtype")),
        ShapeAndType(value, c.get_attr("value_dtype")),
    ]
    c.set_output_handle_shapes_and_types(0, held)


def _value_shape(c: InferenceContext) -> ShapeHandle:
    return c.make_shape_from_partial_shape(c.get_attr("value_shape"))


def mutable_shape(c: InferenceContext) -> None:
    """A handle to a table of scalars."""
    _set_handle(c, c.scalar(), c.scalar())


def mutable_of_tensors_shape(c: InferenceContext) -> None:
    """A handle to a table of tensors of the attr `value_shape`."""
    _set_handle(c, c.scalar(), _value_shape(c))


def mutable_dense_shape(c: InferenceContext) -> None:
    """A handle to a table whose keys are as `empty_key`."""
    _set_handle(c, c.input(0), _value_shape(c))


_NAMES = (
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
)
_DTYPES = ("key_dtype: type", "value_dtype: type")
_VALUE_SHAPE = "value_shape: shape = {}"
_BUCKETS = ("initial_num_buckets: int = 131072", "max_load_factor: float = 0.8")

_TABLES: dict[str, tuple[tuple[str, ...], OpShapeInferenceFn, str]] = {
    "HashTable": ((), scalar_shape, "A table that is filled once."),
    "MutableHashTable": ((), mutable_shape, "A table that changes."),
    "MutableHashTableOfTensors": (
        (_VALUE_SHAPE,),
        mutable_of_tensors_shape,
        "A table that changes, of vectors.",
    ),
    "MutableDenseHashTable": (
        (_VALUE_SHAPE, *_BUCKETS),
        mutable_dense_shape,
        "A table that changes, kept in arrays; two keys mark what is not in use.",
    ),
}

for _name, (_attrs, _shape_fn, _doc) in _TABLES.items():
    _keys = ["empty_key: key_dtype", "deleted_key: key_dtype"] if "Dense" in _name else []
    for _op, _output, _all_attrs, _fn, _inputs in (
        (_name, "Ref(string)", (*_NAMES, *_DTYPES, *_attrs), shape_rule("-> [2]"), _keys[:1]),
        (f"{_name}V2", "resource", (*_NAMES, *_DTYPES, *_attrs), _shape_fn, _keys),
        (f"Anonymous{_name}", "resource", (*_DTYPES, *_attrs), _shape_fn, _keys),
    ):
        register_op(
            _op,
            inputs=_inputs,
            outputs=[f"table_handle: {_output}"],
            attrs=_all_attrs,
            shape_fn=_fn,
            is_stateful=True,
            doc=_doc,
        )

# The kernels

_INT32, _INT64, _STRING = DataType.DT_INT32, DataType.DT_INT64, DataType.DT_STRING
_BOOL, _VARIANT, _RESOURCE = DataType.DT_BOOL, DataType.DT_VARIANT, DataType.DT_RESOURCE

_OF_TENSORS = {
    _INT32: (_INT32, *WIDE_FLOATS),
    _INT64: (_INT32, _INT64, _STRING, *WIDE_FLOATS),
    _STRING: (_BOOL, _INT32, _INT64, *WIDE_FLOATS),
}
_VALUE_TYPES: dict[str, dict[DataType, tuple[DataType, ...]]] = {
    "HashTable": {
        _INT32: (_INT32, _STRING, *WIDE_FLOATS),
        _INT64: (_INT32, _INT64, _STRING, *WIDE_FLOATS),
        _STRING: (_BOOL, _INT32, _INT64, _STRING, *WIDE_FLOATS),
    },
    "MutableHashTable": _OF_TENSORS | {_INT64: (*_OF_TENSORS[_INT64], _VARIANT)},
    "MutableHashTableOfTensors": _OF_TENSORS,
    "MutableDenseHashTable": {
        _INT32: (_INT32, *WIDE_FLOATS),
        _INT64: (_BOOL, _INT32, _INT64, _VARIANT, *WIDE_FLOATS),
        _STRING: (_BOOL, _INT32, _INT64, _RESOURCE, *WIDE_FLOATS),
    },
}
"""The types of values by those of keys."""


def _hash_table(construction: OpKernelConstruction, ctx: OpKernelContext) -> LookupInterface:
    return HashTable(*_dtypes(construction))


def _mutable(construction: OpKernelConstruction, ctx: OpKernelContext) -> LookupInterface:
    return MutableHashTable(*_dtypes(construction))


def _mutable_of_tensors(
    construction: OpKernelConstruction, ctx: OpKernelContext
) -> LookupInterface:
    shape = _defined_value_shape(construction)
    if len(shape) != 1:
        raise InvalidArgumentError(
            f"Default value must be a vector, got shape {TensorShape(shape)}"
        )
    return MutableHashTable(*_dtypes(construction), shape)


def _mutable_dense(construction: OpKernelConstruction, ctx: OpKernelContext) -> LookupInterface:
    empty_key = ctx.input("empty_key")
    if ctx.num_inputs < 2:
        raise InvalidArgumentError("MutableDenseHashTable has no deleted_key; V2 has")
    return MutableDenseHashTable(
        *_dtypes(construction),
        _defined_value_shape(construction),
        empty_key=empty_key,
        deleted_key=ctx.input("deleted_key"),
        num_buckets=construction.get_attr("initial_num_buckets"),
        max_load_factor=construction.get_attr("max_load_factor"),
    )


def _dtypes(construction: OpKernelConstruction) -> tuple[DataType, DataType]:
    return construction.get_attr("key_dtype"), construction.get_attr("value_dtype")


def _defined_value_shape(construction: OpKernelConstruction) -> tuple[int, ...]:
    return tuple(defined_shape(construction.get_attr("value_shape")).as_tensor_shape())


_CREATORS = {
    "HashTable": _hash_table,
    "MutableHashTable": _mutable,
    "MutableHashTableOfTensors": _mutable_of_tensors,
    "MutableDenseHashTable": _mutable_dense,
}


class LookupTableOp(ResourceOpKernel):
    """Makes a table, or finds that of its shared name."""

    resource_type = LookupInterface

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.use_node_name = construction.get_attr("use_node_name_sharing")
        self._construction = construction
        self._creator = _CREATORS[self.type_string.removesuffix("V2")]

    def create_resource(self, ctx: OpKernelContext) -> LookupInterface:
        return self._creator(self._construction, ctx)

    def verify_resource(self, resource: LookupInterface) -> None:
        key, value = _dtypes(self._construction)
        if (key, value) != (resource.key_dtype, resource.value_dtype):
            raise InvalidArgumentError(
                f"Conflicting key/value dtypes {key.string}->{value.string} with "
                f"{resource.key_dtype.string}-{resource.value_dtype.string} for table "
                f"{self.info.name}"
            )


class AnonymousLookupTableOp(OpKernel):
    """Makes a new table at each computation, which its handle owns."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._construction = construction
        self._creator = _CREATORS[self.type_string.removeprefix("Anonymous")]

    def compute(self, ctx: OpKernelContext) -> None:
        table = self._creator(self._construction, ctx)
        handle = make_ref_counting_handle(table, ctx.device, LookupInterface)
        ctx.set_output(0, tensor_of_handle(handle))


for _name, _value_types in _VALUE_TYPES.items():
    for _key_type, _types in _value_types.items():
        for _op, _kernel in (
            (_name, LookupTableOp),
            (f"{_name}V2", LookupTableOp),
            (f"Anonymous{_name}", AnonymousLookupTableOp),
        ):
            register_kernel(_op, types={"key_dtype": _key_type, "value_dtype": _types})(_kernel)
