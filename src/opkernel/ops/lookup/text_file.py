"""Tables that are filled from a text file: InitializeTableFromTextFile, and V2 of it.

Source: TensorFlow core/ops/lookup_ops.cc, core/kernels/lookup_table_init_op.cc, lookup_util.cc.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.opened_files import read_whole
from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import in_time
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import checked_no_outputs
from opkernel.ops.input_checks import require_equal, require_scalar
from opkernel.ops.lookup.lookup_table import LookupInterface
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import resource_of_handle
from opkernel.types import DataType

_HEX = re.compile(rb"\s*[+-]?0[xX][0-9a-fA-F]+\s*")
_OF_LINE = 41
"""The bytes that a line takes beside its content."""
_WHOLE_LINE, _LINE_NUMBER = -2, -1

for _version, _handle, _ranks in (("", "Ref(string)", "h0"), ("V2", "resource", "00")):
    register_op(
        f"InitializeTableFromTextFile{_version}",
        inputs=[f"table_handle: {_handle}", "filename: string"],
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
        doc=(
            "Fills a table from the lines of a file. The indexes choose the column of keys and values; "
            "-2 is the whole line, -1 its number."
        ),
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
            if not table.is_initializable:
                raise InvalidArgumentError("The table is not initializable")
            dtypes = table.key_dtype, table.value_dtype
            for what, column, dtype in zip(("Key", "Value"), self._columns, dtypes, strict=True):
                _check_column(what, column, dtype)
            lines = self._lines(path, read_whole(ctx.permissions, path))
            values = [
                self._values(path, column, dtype, lines)
                for column, dtype in zip(self._columns, dtypes, strict=True)
            ]
            was_filled = table.size > 0
            with suppress(*(FailedPreconditionError,) * was_filled):  # it keeps what it has
                table.import_values(*values)

    def _lines(self, path: str, content: bytes) -> list[bytes]:
        content = content.replace(b"\r\n", b"\n").removesuffix(b"\r")
        with making_bytes("lines of a file", _OF_LINE * (content.count(b"\n") + 1)):
            lines = content.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if not content or not self._vocab_size:
            raise OutOfRangeError(f"Finished reading 0 of lines from {path}")
        if self._vocab_size > 0:
            if len(lines) < self._vocab_size:
                raise InvalidArgumentError(
                    f"Invalid vocab_size in {path}: expected {self._vocab_size} but got {len(lines)}"
                )
            lines = lines[: self._vocab_size]
        if b"" in lines:
            raise InvalidArgumentError(
                f"Invalid content in {path}: empty line found at line {lines.index(b'')}."
            )
        return lines

    def _values(self, path: str, column: int, dtype: DataType, lines: list[bytes]) -> Any:
        """The elements of one column, as a vector."""
        if column == _LINE_NUMBER:
            return np.arange(self._offset, self._offset + len(lines), dtype=np.int64)
        texts = lines if column == _WHOLE_LINE else [*self._column(path, column, lines)]
        if dtype is DataType.DT_STRING:
            return string_tensor((len(texts),), texts)
        convert = _CONVERSIONS.get(dtype)
        if convert is None:
            raise InvalidArgumentError(f"Data type {dtype.string} not supported.")
        found = _converted(texts, convert, dtype)
        return np.fromiter(found, dtype.numpy_dtype, len(texts))

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


def _integer(bits: int) -> Callable[[bytes], int]:
    def convert(text: bytes) -> int:
        if b"_" in text:
            raise ValueError
        number = int(text)
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise ValueError
        return number

    return convert


def _float(text: bytes) -> float:
    if b"_" in text:
        raise ValueError
    return float(int(text, 16)) if _HEX.fullmatch(text) else float(text)


_CONVERSIONS: dict[DataType, Callable[[bytes], float]] = {
    DataType.DT_INT32: _integer(32),
    DataType.DT_INT64: _integer(64),
    DataType.DT_FLOAT: _float,
    DataType.DT_DOUBLE: _float,
}


def _converted(
    texts: list[bytes], convert: Callable[[bytes], float], dtype: DataType
) -> Iterator[float]:
    for number, text in enumerate(in_time(texts)):
        try:
            yield convert(text)
        except ValueError:
            raise InvalidArgumentError(
                f"Field {text.decode(errors='backslashreplace')} in line {number} is not a valid "
                f"{dtype.string}."
            ) from None
