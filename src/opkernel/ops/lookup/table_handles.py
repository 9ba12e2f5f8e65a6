"""Ops that make tables.

Source: TensorFlow core/ops/lookup_ops.cc, core/kernels/lookup_table_op.{h,cc}.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    OpKernelConstruction,
    OpKernelContext,
)
from opkernel.opdef import InferenceContext, ShapeAndType, register_op, scalar_shape
from opkernel.opdef.common_shapes.rules import defined_shape, shape_rule
from opkernel.ops.input_checks import require
from opkernel.ops.lookup.dense_hash_table import MutableDenseHashTable
from opkernel.ops.lookup.hash_tables import HashTable, LookupInterface, MutableHashTable
from opkernel.ops.registration import WIDE_FLOATS, register_kernel
from opkernel.ops.resource_op_kernel import RefCountingHandleOp, ResourceOpKernel
from opkernel.types import DataType, PartialTensorShape, TensorShape

# What the ops are


def mutable_shape(c: InferenceContext) -> None:
    """A handle to a table that changes, which knows what a key and a value are.

    A key is as `empty_key`, a value is of the attr `value_shape`; without these they are scalars.
    """
    scalar_shape(c)
    key = c.with_rank_at_most(c.input(0), 1) if c.num_inputs() else c.scalar()
    value = c.make_shape_from_partial_shape(c.find_attr("value_shape", PartialTensorShape([])))
    key_dtype, value_dtype = c.get_attr("key_dtype"), c.get_attr("value_dtype")
    held = [ShapeAndType(key, key_dtype), ShapeAndType(value, value_dtype)]
    c.set_output_handle_shapes_and_types(0, held)


_NAMES = (
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
)
_DTYPES = ("key_dtype: type", "value_dtype: type")
_VALUE_SHAPE = "value_shape: shape = {}"
_BUCKETS = ("initial_num_buckets: int = 131072", "max_load_factor: float = 0.8")

_TABLES: dict[str, tuple[tuple[str, ...], str]] = {
    "HashTable": ((), "A table that is filled once."),
    "MutableHashTable": ((), "A table that changes."),
    "MutableHashTableOfTensors": ((_VALUE_SHAPE,), "A table that changes, of vectors."),
    "MutableDenseHashTable": (
        (_VALUE_SHAPE, *_BUCKETS),
        "A table that changes, kept in arrays; two keys mark what is not in use.",
    ),
}

for _name, (_attrs, _doc) in _TABLES.items():
    _shape_fn = scalar_shape if _name == "HashTable" else mutable_shape
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


def _new_table(
    kind: str, construction: OpKernelConstruction, ctx: OpKernelContext
) -> LookupInterface:
    """A table of a kind, which is the op's name without its version, by the attrs and inputs of a node."""
    dtypes = _dtypes(construction)
    if kind == "HashTable":
        return HashTable(*dtypes)
    if kind == "MutableHashTable":
        return MutableHashTable(*dtypes)
    is_dense = kind == "MutableDenseHashTable"
    require(not is_dense or ctx.num_inputs >= 2, "MutableDenseHashTable has no deleted_key; V2 has")
    shape = tuple(defined_shape(construction.get_attr("value_shape")).as_tensor_shape())
    if is_dense:
        return MutableDenseHashTable(
            *dtypes,
            shape,
            empty_key=ctx.input("empty_key"),
            deleted_key=ctx.input("deleted_key"),
            num_buckets=construction.get_attr("initial_num_buckets"),
            max_load_factor=construction.get_attr("max_load_factor"),
        )
    if len(shape) != 1:
        raise InvalidArgumentError(
            f"Default value must be a vector, got shape {TensorShape(shape)}"
        )
    return MutableHashTable(*dtypes, shape)


def _dtypes(construction: OpKernelConstruction) -> tuple[DataType, DataType]:
    return construction.get_attr("key_dtype"), construction.get_attr("value_dtype")


class LookupTableOp(ResourceOpKernel):
    """Makes a table, or finds that of its shared name."""

    resource_type = LookupInterface

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.use_node_name = construction.get_attr("use_node_name_sharing")
        self._construction = construction

    def create_resource(self, ctx: OpKernelContext) -> LookupInterface:
        return _new_table(self.type_string.removesuffix("V2"), self._construction, ctx)

    def verify_resource(self, resource: LookupInterface) -> None:
        key, value = _dtypes(self._construction)
        if (key, value) != (resource.key_dtype, resource.value_dtype):
            raise InvalidArgumentError(
                f"Conflicting key/value dtypes {key.string}->{value.string} with "
                f"{resource.key_dtype.string}-{resource.value_dtype.string} for table "
                f"{self.info.name}"
            )


class AnonymousLookupTableOp(RefCountingHandleOp):
    """Makes a new table at each computation, which its handle owns."""

    resource_type = LookupInterface

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._construction = construction

    def create_resource(self, ctx: OpKernelContext) -> LookupInterface:
        return _new_table(self.type_string.removeprefix("Anonymous"), self._construction, ctx)


for _name, _value_types in _VALUE_TYPES.items():
    for _key_type, _types in _value_types.items():
        for _op, _kernel in (
            (_name, LookupTableOp),
            (f"{_name}V2", LookupTableOp),
            (f"Anonymous{_name}", AnonymousLookupTableOp),
        ):
            register_kernel(_op, types={"key_dtype": _key_type, "value_dtype": _types})(_kernel)
