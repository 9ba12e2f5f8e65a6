"""Ops on tables.

Source: TensorFlow core/ops/lookup_ops.cc, core/kernels/lookup_table_op.cc,
lookup_table_init_op.cc.
"""

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelContext
from opkernel.opdef import InferenceContext, ShapeHandle, register_op, unknown_shape
from opkernel.opdef.common_shapes.rules import (
    check_inputs,
    checked,
    checked_no_outputs,
    checked_scalar,
    checked_unknown,
)
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_equal, require_vector
from opkernel.ops.lookup.lookup_table import LookupInterface
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import resource_of_handle

# What the ops are


def _key_and_value(
    c: InferenceContext, key_attr: str, value_attr: str
) -> tuple[ShapeHandle, ShapeHandle] | None:
    """The key and value types that the handle at input 0 knows, if any.

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


def find_shape(c: InferenceContext) -> None:
    """[batch..., value...]."""
    check_inputs(c, "0")
    known = _key_and_value(c, "Tin", "Tout")
    c.set_output(0, c.unknown_shape() if known is None else _found(c, c.input(1), *known))


def export_shape(c: InferenceContext) -> None:
    """Nothing is known."""
    check_inputs(c, "0")
    _key_and_value(c, "Tkeys", "Tvalues")
    unknown_shape(c)


def import_shape(c: InferenceContext) -> None:
    """As many values as keys."""
    check_inputs(c, "01+")
    c.merge(c.dim(c.input(1), 0), c.dim(c.input(2), 0))


def initialize_shape(c: InferenceContext) -> None:
    """A value for each key."""
    c.merge(c.with_rank(c.input(1), 1), c.input(2))


_FROM_TO = ("Tin: type", "Tout: type")
_KEYS_AND_VALUES = ("keys: Tin", "values: Tout")
_FILLING = ("InitializeTable", "LookupTableImport")

for _name, _inputs, _outputs, _attrs, _shape_fn, _shape_fn_v2, _doc in (
    (
        "InitializeTable",
        ("keys: Tkey", "values: Tval"),
        (),
        ("Tkey: type", "Tval: type"),
        checked("h", initialize_shape),
        checked("0", initialize_shape),
        "Fills a table.",
    ),
    (
        "LookupTableFind",
        ("keys: Tin", "default_value: Tout"),
        ("values: Tout",),
        _FROM_TO,
        checked_unknown("h.?"),
        find_shape,
        "The values of keys; `default_value` for those that the table lacks.",
    ),
    (
        "LookupTableInsert",
        _KEYS_AND_VALUES,
        (),
        _FROM_TO,
        checked_no_outputs("h"),
        checked_no_outputs("0"),
        "Sets the values of keys.",
    ),
    (
        "LookupTableRemove",
        ("keys: Tin",),
        (),
        ("Tin: type",),
        None,
        checked_no_outputs("0+"),
        "Takes keys out.",
    ),
    (
        "LookupTableSize",
        (),
        ("size: int64",),
        (),
        checked_scalar("h"),
        checked_scalar("0"),
        "The number of keys.",
    ),
    (
        "LookupTableExport",
        (),
        ("keys: Tkeys", "values: Tvalues"),
        ("Tkeys: type", "Tvalues: type"),
        checked("h", shape_rule("-> [?]")),
        export_shape,
        "All keys and values.",
    ),
    (
        "LookupTableImport",
        _KEYS_AND_VALUES,
        (),
        _FROM_TO,
        checked_no_outputs("h"),
        import_shape,
        "Replaces all keys and values.",
    ),
):
    for _version, _handle, _fn in (
        ("", "Ref(string)", _shape_fn),
        ("V2", "resource", _shape_fn_v2),
    ):
        if _fn is None:
            continue  # there is no such op
        register_op(
            f"{_name}{_version}",
            inputs=[f"table_handle: {_handle}", *_inputs],
            outputs=_outputs,
            attrs=_attrs,
            shape_fn=_fn,
            traits="only_reads_state" * bool(_outputs) + "initializes_table" * (_name in _FILLING),
            is_stateful=_version == "V2",
            doc=_doc,
        )

# The kernels


class _TableKernel(OpKernel):
    """A kernel that is given a table."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, LookupInterface) as table:
            self.use(table, ctx)

    def use(self, table: LookupInterface, ctx: OpKernelContext) -> None:
        """Compute."""
        raise NotImplementedError


@register_kernel("InitializeTable", "InitializeTableV2")
class InitializeTable(_TableKernel):
    """Fills a table."""

    def use(self, table: LookupInterface, ctx: OpKernelContext) -> None:
        if not table.is_initializable:
            raise InvalidArgumentError("The table is not initializable")
        ctx.match_signature([self.input_types[0], table.key_dtype, table.value_dtype], [])
        keys, values = ctx.input("keys"), ctx.input("values")
        for what, tensor in (("Keys", keys), ("Values", values)):
            require_vector(tensor, f"{what} must be a vector, but received shape {{}}")
        require_equal(len(keys), len(values), "Keys and values must have the same size {} vs {}")
        table.import_values(keys, values)


@register_kernel("LookupTableFind", "LookupTableFindV2")
class LookupTableFind(_TableKernel):
    """Looks keys up."""

    def use(self, table: LookupInterface, ctx: OpKernelContext) -> None:
        handle, key, value = self.input_types[0], table.key_dtype, table.value_dtype
        ctx.match_signature([handle, key, value], [value])
        keys, default = ctx.input(1), ctx.input(2)
        table.check_find(keys, default)
        ctx.set_output(0, table.find(keys, default))


@register_kernel("LookupTableInsert", "LookupTableInsertV2")
class LookupTableInsert(_TableKernel):
    """Sets the values of keys."""

    def use(self, table: LookupInterface, ctx: OpKernelContext) -> None:
        ctx.match_signature([self.input_types[0], table.key_dtype, table.value_dtype], [])
        keys, values = ctx.input(1), ctx.input(2)
        table.check_insert(keys, values)
        table.insert(keys, values)


@register_kernel("LookupTableRemoveV2")
class LookupTableRemove(_TableKernel):
    """Takes keys out."""

    def use(self, table: LookupInterface, ctx: OpKernelContext) -> None:
        ctx.match_signature([self.input_types[0], table.key_dtype], [])
        table.check_keys(ctx.input(1))
        table.remove(ctx.input(1))


@register_kernel("LookupTableSize", "LookupTableSizeV2")
class LookupTableSize(_TableKernel):
    """The number of keys."""

    def use(self, table: LookupInterface, ctx: OpKernelContext) -> None:
        ctx.set_output(0, np.int64(table.size))


@register_kernel("LookupTableExport", "LookupTableExportV2")
class LookupTableExport(_TableKernel):
    """All keys and values."""

    def use(self, table: LookupInterface, ctx: OpKernelContext) -> None:
        ctx.match_signature(self.input_types, [table.key_dtype, table.value_dtype])
        keys, values = table.export_values()
        ctx.set_output("keys", keys)
        ctx.set_output("values", values)


@register_kernel("LookupTableImport", "LookupTableImportV2")
class LookupTableImport(_TableKernel):
    """Replaces all keys and values."""

    def use(self, table: LookupInterface, ctx: OpKernelContext) -> None:
        ctx.match_signature([self.input_types[0], table.key_dtype, table.value_dtype], [])
        keys, values = ctx.input(1), ctx.input(2)
        table.check_import(keys, values)
        table.import_values(keys, values)
