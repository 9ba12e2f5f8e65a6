"""Ops on tables: find, insert, export and import, also from a text file.

Source: TensorFlow core/ops/lookup_ops.cc, core/kernels/lookup_table_op.cc, lookup_table_init_op.cc,
lookup_util.cc.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.opened_files import read_whole
from opkernel.device.permissions import Permissions
from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import in_time
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import InferenceContext, ShapeHandle, register_op, unknown_shape
from opkernel.opdef.common_shapes.rules import (
    check_inputs,
    checked,
    checked_no_outputs,
    checked_scalar,
    checked_unknown,
    shape_rule,
)
from opkernel.ops.input_checks import require, require_equal, require_scalar, require_vector
from opkernel.ops.lookup.hash_tables import LookupInterface
from opkernel.ops.registration import INDEX, WIDE_FLOATS, register_kernel
from opkernel.ops.resource_op_kernel import declare_versions, register_fact, resource_of_handle
from opkernel.ops.strings.number_format import numbers
from opkernel.types import DataType

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

declare_versions(
    "InitializeTable(table_handle: {}, keys: Tkey, values: Tval)",
    attrs=["Tkey: type", "Tval: type"],
    shape_fn=checked("h", initialize_shape),
    shape_fn_v2=checked("0", initialize_shape),
    traits="initializes_table",
    doc="Fills a table.",
)
declare_versions(
    "LookupTableFind(table_handle: {}, keys: Tin, default_value: Tout) -> values: Tout",
    attrs=_FROM_TO,
    shape_fn=checked_unknown("h.?"),
    shape_fn_v2=find_shape,
    traits="only_reads_state",
    doc="The values of keys; `default_value` for those that the table lacks.",
)
declare_versions(
    "LookupTableInsert(table_handle: {}, keys: Tin, values: Tout)",
    attrs=_FROM_TO,
    shape_fn=checked_no_outputs("h"),
    shape_fn_v2=checked_no_outputs("0"),
    doc="Sets the values of keys.",
)
register_op(
    "LookupTableRemoveV2(table_handle: resource, keys: Tin)",
    attrs=["Tin: type"],
    shape_fn=checked_no_outputs("0+"),
    is_stateful=True,
    doc="Takes keys out.",
)
declare_versions(
    "LookupTableSize(table_handle: {}) -> size: int64",
    shape_fn=checked_scalar("h"),
    shape_fn_v2=checked_scalar("0"),
    traits="only_reads_state",
    doc="The number of keys.",
)
declare_versions(
    "LookupTableExport(table_handle: {}) -> keys: Tkeys, values: Tvalues",
    attrs=["Tkeys: type", "Tvalues: type"],
    shape_fn=checked("h", shape_rule("-> [?]")),
    shape_fn_v2=export_shape,
    traits="only_reads_state",
    doc="All keys and values.",
)
declare_versions(
    "LookupTableImport(table_handle: {}, keys: Tin, values: Tout)",
    attrs=_FROM_TO,
    shape_fn=checked_no_outputs("h"),
    shape_fn_v2=import_shape,
    traits="initializes_table",
    doc="Replaces all keys and values.",
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
        require(table.is_initializable, "The table is not initializable")
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
        try:
            ctx.set_output(0, table.find(keys, default))
        except FailedPreconditionError as error:  # it is not filled
            error.resource = next(iter(self.node_def.input), None)
            raise


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


register_fact(
    "LookupTableSize", "LookupTableSizeV2", of=LookupInterface, fact=lambda table: table.size
)


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


_OF_LINE = 41
"""The bytes that a line takes beside its content."""


def vocabulary_lines(permissions: Permissions, path: str, vocab_size: int) -> list[bytes]:
    """The lines of a file, of which there are at least one: the first `vocab_size`, or all for -1.

    Raises:
        InvalidArgumentError: there are fewer lines, or an empty one.
        OutOfRangeError: there are none.
        OpError: the file cannot be read, as `read_whole` says.
    """
    content = read_whole(permissions, path)
    content = content.replace(b"\r\n", b"\n").removesuffix(b"\r")
    with making_bytes("lines of a file", _OF_LINE * (content.count(b"\n") + 1)):
        lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    if not content or not vocab_size:
        raise OutOfRangeError(f"Finished reading 0 of lines from {path}")
    if vocab_size > 0:
        if len(lines) < vocab_size:
            raise InvalidArgumentError(
                f"Invalid vocab_size in {path}: expected {vocab_size} but got {len(lines)}"
            )
        lines = lines[:vocab_size]
    if b"" in lines:
        raise InvalidArgumentError(
            f"Invalid content in {path}: empty line found at line {lines.index(b'')}."
        )
    return lines


_WHOLE_LINE, _LINE_NUMBER = -2, -1

for _version, _handle, _ranks in (("", "Ref(string)", "h0"), ("V2", "resource", "00")):
    register_op(
        f"InitializeTableFromTextFile{_version}(table_handle: {_handle}, filename: string)",
        attrs=[
            "key_index: int >= -2",
            "value_index: int >= -2",
            "vocab_size: int >= -1 = -1",
            "delimiter: string = '\\t'",
            "offset: int = 0",
        ],
        shape_fn=checked_no_outputs(_ranks),
        is_stateful=_version == "V2",
        traits="reads_files initializes_table",
        doc="Fills a table from the lines of a file. The indexes choose the column of keys and values; "
        "-2 is the whole line, -1 its number.",
    )


@register_kernel("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")
class InitializeTableFromTextFile(OpKernel):
    """Fills a table."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr
        self._columns = get("key_index"), get("value_index")
        self._vocab_size, self._offset = get("vocab_size"), get("offset")
        self._delimiter = get("delimiter").encode("utf-8", "surrogateescape")
        require_equal(len(self._delimiter), 1, "delimiter should be only 1 char")

    def compute(self, ctx: OpKernelContext) -> None:
        name = ctx.input(1)
        require_scalar(name, "filename should be a single string, but got {}")
        path = os.fsdecode(name.item())
        ctx.permissions.check_read(path)
        with resource_of_handle(ctx, LookupInterface) as table:
            require(table.is_initializable, "The table is not initializable")
            dtypes = table.key_dtype, table.value_dtype
            for what, column, dtype in zip(("Key", "Value"), self._columns, dtypes, strict=True):
                _check_column(what, column, dtype)
            lines = vocabulary_lines(ctx.permissions, path, self._vocab_size)
            values = [
                self._values(path, column, dtype, lines)
                for column, dtype in zip(self._columns, dtypes, strict=True)
            ]
            was_filled = table.size > 0
            with suppress(*(FailedPreconditionError,) * was_filled):  # it keeps what it has
                table.import_values(*values)

    def _values(self, path: str, column: int, dtype: DataType, lines: list[bytes]) -> Any:
        """The elements of one column, as a vector."""
        if column == _LINE_NUMBER:
            return np.arange(self._offset, self._offset + len(lines), dtype=np.int64)
        texts = lines if column == _WHOLE_LINE else [*self._column(path, column, lines)]
        if dtype is DataType.DT_STRING:
            return string_tensor((len(texts),), texts)
        require(dtype in (*INDEX, *WIDE_FLOATS), f"Data type {dtype.string} not supported.")
        try:
            return numbers(texts, dtype)
        except ValueError as error:
            shown = [text.decode(errors="backslashreplace") for text in texts]
            raise InvalidArgumentError(
                f"Field {error} in line {shown.index(str(error))} is not a valid {dtype.string}."
            ) from None

    def _column(self, path: str, column: int, lines: list[bytes]) -> Iterator[bytes]:
        wanted = max(self._columns) + 1
        for number, line in enumerate(in_time(lines)):
            fields = line.split(self._delimiter)
            if len(fields) < wanted:
                raise InvalidArgumentError(
                    f"Invalid number of columns in {path} line {number} "
                    f"({line.decode(errors='backslashreplace')}) : expected at least {wanted} got "
                    f"{len(fields)}"
                )
            yield fields[column]


def _check_column(what: str, column: int, dtype: DataType) -> None:
    if column == _LINE_NUMBER and dtype is not DataType.DT_INT64:
        raise InvalidArgumentError(
            f"{what} index for line number requires table {what.lower()} dtype of int64, got "
            f"{dtype.string}"
        )
    if column == _WHOLE_LINE and dtype is not DataType.DT_STRING and not dtype.is_integer:
        raise InvalidArgumentError(
            f"{what} index for whole line requires string or integer table {what.lower()}, got "
            f"{dtype.string}"
        )
