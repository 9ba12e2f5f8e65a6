"""Shapes of ops on lookup tables. Handles of mutable tables know what their keys and values are.

Source: TensorFlow core/ops/lookup_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    ShapeAndType,
    ShapeHandle,
    scalar_shape,
    unknown_shape,
)
from opkernel.ops.declared.input_ranks import (
    check_inputs,
    checked,
    checked_no_outputs,
    checked_scalar,
    checked_unknown,
)
from opkernel.ops.declared.rules import fixed_shapes

_HANDLE = fixed_shapes((2,))


def _create_mutable(c: InferenceContext, key: ShapeHandle, value: ShapeHandle) -> None:
    """A handle that knows what a key and a value are."""
    scalar_shape(c)
    key = c.with_rank_at_most(key, 1)
    held = [
        ShapeAndType(key, c.get_attr("key_dtype")),
        ShapeAndType(value, c.get_attr("value_dtype")),
    ]
    c.set_output_handle_shapes_and_types(0, held)


def _value_shape(c: InferenceContext) -> ShapeHandle:
    return c.make_shape_from_partial_shape(c.get_attr("value_shape"))


def _mutable(c: InferenceContext) -> None:
    _create_mutable(c, c.scalar(), c.scalar())


def _mutable_of_tensors(c: InferenceContext) -> None:
    _create_mutable(c, c.scalar(), _value_shape(c))


def _mutable_dense(c: InferenceContext) -> None:
    _create_mutable(c, c.input(0), _value_shape(c))


def _key_and_value(
    c: InferenceContext, key_attr: str, value_attr: str
) -> tuple[ShapeHandle, ShapeHandle] | None:
    """What the handle at input 0 knows of keys and values, if anything.

    Raises:
        InvalidArgumentError: their types are not those of the attrs.
    """
    held = c.input_handle_shapes_and_types(0)
    if held is None or len(held) != 2:
        return None
    for entry, attr in zip(held, (key_attr, value_attr), strict=True):
        dtype = c.get_attr(attr)
        if entry.dtype != dtype:
            raise InvalidArgumentError(
                "Trying to read value with wrong dtype. "
                f"Expected {entry.dtype.string} got {dtype.string}"
            )
    return held[0].shape, held[1].shape


def _found(
    c: InferenceContext, keys: ShapeHandle, key: ShapeHandle, value: ShapeHandle
) -> ShapeHandle:
    """Keys [batch..., key...] -> [batch..., value...]."""
    if not (c.rank_known(key) and c.rank_known(keys)):
        return c.unknown_shape()
    batch_rank = c.rank(keys) - c.rank(key)
    if batch_rank < 0:
        raise InvalidArgumentError(f"Expected keys to have suffix {key} but saw shape: {keys}")
    return c.concatenate(c.subshape(keys, 0, batch_rank), value)


def _find(c: InferenceContext) -> None:
    check_inputs(c, "0")
    known = _key_and_value(c, "Tin", "Tout")
    c.set_output(0, c.unknown_shape() if known is None else _found(c, c.input(1), *known))


def _export(c: InferenceContext) -> None:
    check_inputs(c, "0")
    _key_and_value(c, "Tkeys", "Tvalues")
    unknown_shape(c)


def _as_many_values_as_keys(c: InferenceContext) -> None:
    check_inputs(c, "01+")
    c.merge(c.dim(c.input(1), 0), c.dim(c.input(2), 0))


def _values_like_keys(c: InferenceContext) -> None:
    c.merge(c.with_rank(c.input(1), 1), c.input(2))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "AnonymousHashTable": scalar_shape,
    "AnonymousMutableDenseHashTable": _mutable_dense,
    "AnonymousMutableHashTable": _mutable,
    "AnonymousMutableHashTableOfTensors": _mutable_of_tensors,
    "HashTable": _HANDLE,
    "HashTableV2": scalar_shape,
    "InitializeTable": checked("h", _values_like_keys),
    "InitializeTableFromDataset": checked_no_outputs("00"),
    "InitializeTableFromTextFile": checked_no_outputs("h0"),
    "InitializeTableFromTextFileV2": checked_no_outputs("00"),
    "InitializeTableV2": checked("0", _values_like_keys),
    "LookupTableExport": checked("h", fixed_shapes((None,))),
    "LookupTableExportV2": _export,
    "LookupTableFind": checked_unknown("h.?"),
    "LookupTableFindV2": _find,
    "LookupTableImport": checked_no_outputs("h"),
    "LookupTableImportV2": _as_many_values_as_keys,
    "LookupTableInsert": checked_no_outputs("h"),
    "LookupTableInsertV2": checked_no_outputs("0"),
    "LookupTableRemoveV2": checked_no_outputs("0+"),
    "LookupTableSize": checked_scalar("h"),
    "LookupTableSizeV2": checked_scalar("0"),
    "MutableDenseHashTable": _HANDLE,
    "MutableDenseHashTableV2": _mutable_dense,
    "MutableHashTable": _HANDLE,
    "MutableHashTableOfTensors": _HANDLE,
    "MutableHashTableOfTensorsV2": _mutable_of_tensors,
    "MutableHashTableV2": _mutable,
}
