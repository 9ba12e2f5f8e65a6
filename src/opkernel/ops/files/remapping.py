"""Weights of an older model for another vocabulary: GenerateVocabRemapping, LoadAndRemapMatrix.

Source: TensorFlow core/ops/checkpoint_ops.cc, core/kernels/generate_vocab_remapping_op.cc,
load_and_remap_matrix_op.cc.
"""

import os
from collections.abc import Iterator

import numpy as np

from opkernel.checkpoint import CheckpointReader, TensorSlice
from opkernel.checkpoint.tensor_slice import ALL
from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InternalError, InvalidArgumentError, UnimplementedError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.files.checkpoints import open_checkpoint
from opkernel.ops.input_checks import int32_attr, require, require_scalar, require_vector
from opkernel.ops.lookup.hash_tables import HashTable
from opkernel.ops.lookup.table_ops import vocabulary_lines
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType, TensorShape

GENERATE_VOCAB_REMAPPING = register_op(
    "GenerateVocabRemapping(new_vocab_file: string, old_vocab_file: string) "
    "-> remapping: int64, num_present: int32",
    attrs=[
        "new_vocab_offset: int >= 0",
        "num_new_vocab: int >= 0",
        "old_vocab_size: int >= -1 = -1",
    ],
    shape_fn=shape_rule("[], [] -> [{num_new_vocab}], []"),
    traits="reads_files",
    doc="""
    The number of each word of a new vocabulary, a line of its file each, in an old one; -1 for new words.

    num_present: how many words the old vocabulary has.
    """,
)
LOAD_AND_REMAP_MATRIX = register_op(
    "LoadAndRemapMatrix(ckpt_path: string, old_tensor_name: string, row_remapping: int64, "
    "col_remapping: int64, initializing_values: float) -> output_matrix: float",
    attrs=["num_rows: int >= 0", "num_cols: int >= 1", "max_rows_in_memory: int = -1"],
    shape_fn=shape_rule("_, [] -> [{num_rows}, {num_cols}]"),
    is_stateful=True,
    traits="reads_files",
    doc="""
    A matrix of a checkpoint with its rows and columns in another order.

    row_remapping: for each row of the result, the row of the matrix; a negative number for a new row.
    col_remapping: the same for columns; empty for columns as they are.
    initializing_values: the elements of new rows and columns.
    max_rows_in_memory: so many rows of the matrix are read at once; all if it is not positive.
    """,
)


@register_kernel(GENERATE_VOCAB_REMAPPING)
class GenerateVocabRemapping(OpKernel):
    """Looks up the words of one vocabulary in another."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        names = ("new_vocab_offset", "num_new_vocab", "old_vocab_size")
        values = [int32_attr(name, construction.get_attr(name)) for name in names]
        self._first, self._count, self._old_size = values

    def compute(self, ctx: OpKernelContext) -> None:
        """Set the numbers of the words."""
        lines = self._words(ctx, "new_vocab_file", -1)
        end = self._first + self._count
        message = "lookup table size must be larger than last new vocab entry's line"
        require(end <= len(lines), message)
        words = lines[self._first : end]
        old = self._words(ctx, "old_vocab_file", self._old_size)
        table = HashTable(DataType.DT_STRING, DataType.DT_INT64)
        table.import_values(string_tensor((len(old),), old), np.arange(len(old)))
        found = np.zeros(0, np.int64)
        if words:
            found = table.find(string_tensor((len(words),), words), np.array(-1))
        ctx.set_output("remapping", found)
        ctx.set_output("num_present", np.int32(np.count_nonzero(found != -1)))

    def _words(self, ctx: OpKernelContext, name: str, size: int) -> list[bytes]:
        given = ctx.input(name)
        require_scalar(given, f"{name} should be a single string, but got {{}}")
        require(given.item(), f"{name} must not be empty")
        path = os.fsdecode(given.item())
        ctx.permissions.check_read(path)
        return vocabulary_lines(ctx.permissions, path, size)


@register_kernel(LOAD_AND_REMAP_MATRIX)
class LoadAndRemapMatrix(OpKernel):
    """Reads a matrix and reorders it."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr
        self._shape = get("num_rows"), get("num_cols")
        self._most_rows = get("max_rows_in_memory")

    def compute(self, ctx: OpKernelContext) -> None:
        """Set the matrix."""
        rows = self._remapping(ctx, "row_remapping", "num_rows", self._shape[0])
        columns: Array | None = None
        if ctx.input("col_remapping").size:
            columns = self._remapping(ctx, "col_remapping", "num_cols", self._shape[1])
        path, name = ctx.input("ckpt_path"), ctx.input("old_tensor_name")
        if path.size != 1:
            raise InvalidArgumentError(
                f"The `ckpt_path` tensor must have exactly one element, got tensor of shape {TensorShape(path.shape)}"
            )
        require_scalar(name, "old_tensor_name must be a scalar, got shape {}")
        key = name.item().decode("utf-8", "surrogateescape")
        reader = open_checkpoint(ctx, path.reshape(-1)[0])
        width = self._checked_width(reader, key, columns)
        check_allocation(self._shape, DataType.DT_FLOAT)
        output = np.zeros(self._shape, np.float32)
        if columns is None:
            columns = np.arange(width)
        kept = np.flatnonzero(columns >= 0)
        for first, part in self._parts(reader, key, rows):
            chosen = np.flatnonzero((rows >= first) & (rows < first + len(part)))
            output[np.ix_(chosen, kept)] = part[np.ix_(rows[chosen] - first, columns[kept])]
        _fill(output, rows, columns, ctx.input("initializing_values").reshape(-1))
        ctx.set_output("output_matrix", output)

    def _remapping(self, ctx: OpKernelContext, name: str, attr: str, size: int) -> Array:
        """A vector of old numbers by new ones, none of them twice."""
        given: Array = ctx.input(name)
        message = f"The `{name}` tensor must be 1-D, got a tensor of shape {{}}"
        require_vector(given, message)
        if len(given) != size:
            raise InvalidArgumentError(
                f"Size of {name} is {len(given)} instead of being equal to {attr}={size}"
            )
        old, counts = np.unique(given[given >= 0], return_counts=True)
        if (counts > 1).any():
            twice = int(old[np.argmax(counts > 1)])
            raise UnimplementedError(
                f"Old ID {twice} is mapped to several new IDs, which is not supported."
            )
        return given

    def _checked_width(self, reader: CheckpointReader, key: str, columns: Array | None) -> int:
        """The number of columns of the stored matrix."""
        dtype, shape = reader.dtype(key), tuple(reader.shape(key))
        if dtype is not DataType.DT_FLOAT:
            raise InvalidArgumentError(
                f"Tensor {key} has invalid type {dtype.string} instead of expected type float"
            )
        shown = f"Tensor {key} has shape {TensorShape(shape)}"
        require(
            len(shape) == 2, f"{shown} of invalid rank {len(shape)} instead of expected rank 2."
        )
        width = shape[1]
        if columns is None:
            wanted = self._shape[1]
            message = f"{shown}, whose 2nd dimension is {width} instead of num_cols={wanted}"
            require(width == wanted, message)
        elif columns.max() >= width:
            raise InvalidArgumentError(f"{shown}, but col_remapping has {columns.max()}")
        return width

    def _parts(
        self, reader: CheckpointReader, key: str, rows: Array
    ) -> Iterator[tuple[int, Array]]:
        """The rows of the matrix that are asked for, and those between them: numbers of first rows, and rows."""
        old = rows[rows >= 0]
        if not old.size:
            return
        first, end = int(old.min()), int(old.max()) + 1
        if end > reader.shape(key)[0]:
            raise InternalError(
                f"Extent in dimension 0 out of bounds: {key} has shape {reader.shape(key)}, and row_remapping has {end - 1}"
            )
        step = self._most_rows if self._most_rows > 0 else end - first
        for start in in_time(range(first, end, step), SLOW):
            length = min(step, end - start)
            yield start, reader.get_slice(key, TensorSlice(((start, length), (0, ALL))))


def _fill(output: Array, rows: Array, columns: Array, values: Array) -> None:
    """Set the elements of new rows and columns, row by row."""
    is_new = (rows < 0)[:, None] | (columns < 0)
    missing = int(np.count_nonzero(is_new))
    have = f"initializing_values contained {values.size} elements, but"
    require(missing <= values.size, f"{have} more missing values remain.")
    require(
        missing == values.size,
        f"{have} only {missing} elements were used to fill in missing values.",
    )
    output[is_new] = values
