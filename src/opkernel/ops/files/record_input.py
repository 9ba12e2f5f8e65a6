"""RecordInput: records of files in random order, epoch after epoch.

The files are shuffled for each epoch, and the records in a buffer. Where a buffer of twice an epoch's records is read by
one thread, TensorFlow's order is determined; ours is that order.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/record_input_op.cc, record_yielder.cc.
"""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.permissions import Permissions
from opkernel.device.string_tensors import string_tensor
from opkernel.errors import (
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
)
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.opdef import register_op, unknown_shape
from opkernel.ops.files.reader_formats import TFRecordReader
from opkernel.ops.files.whole_files import matching_paths
from opkernel.ops.input_checks import require
from opkernel.ops.libstdcxx_random import MersenneTwister64, shuffled
from opkernel.ops.lookup.hash_map_order import hash64
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_AT_ONCE = 16
"""So many records of a reader enter the buffer together, the last one first."""
_UNBOUNDED = 1 << 62

RECORD_INPUT = register_op(
    "RecordInput() -> records: string",
    attrs=[
        "file_pattern: string",
        "file_random_seed: int = 301",
        "file_shuffle_shift_ratio: float = 0.0",
        "file_buffer_size: int = 10000",
        "file_parallelism: int = 16",
        "batch_size: int = 32",
        "compression_type: string = ''",
    ],
    shape_fn=unknown_shape,
    is_stateful=True,
    traits="reads_files file_attr=file_pattern",
    doc="""
    Gives the next `batch_size` records of the files that match patterns, which commas separate.

    file_random_seed: chooses the order of the files, and that of the records in the buffer.
    file_shuffle_shift_ratio: this part of the shuffled files comes last.
    file_buffer_size: so many records are shuffled at once.
    file_parallelism: so many readers take turns with the files.
    """,
)


class RecordYielder:
    """Gives records one by one; used by one thread at a time.

    Args:
        get_attr: The attrs of the node.
    """

    def __init__(self, get_attr: Any) -> None:
        self._patterns = get_attr("file_pattern").encode("utf-8", "surrogateescape")
        self._seed = get_attr("file_random_seed") % (1 << 64)
        self._shift = np.float32(get_attr("file_shuffle_shift_ratio"))
        size = get_attr("file_buffer_size")
        self._size = size if size >= 0 else _UNBOUNDED
        self._readers = get_attr("file_parallelism")
        self._compression = get_attr("compression_type")
        self._buffer: list[bytes] = []
        self._draw = MersenneTwister64(self._seed)
        self._is_end = False
        self._turns: Iterator[None] | None = None
        self._failure: OpError | None = None

    def next(self, permissions: Permissions) -> bytes:
        """The next record.

        Raises:
            NotFoundError: no file matches.
            PermissionDeniedError: a file may not be read.
            DataLossError: a file is damaged. This and any other error stays.
        """
        if self._failure is not None:
            raise type(self._failure)(self._failure.message)
        if self._turns is None:
            self._turns = self._epochs(permissions)
        try:
            if not self._is_end and len(self._buffer) < self._size:
                next(self._turns)
        except OpError as error:
            self._failure = error
            if isinstance(error, DeadlineExceededError):  # it was this step's
                self._failure = FailedPreconditionError(f"An earlier step ended: {error.message}")
            raise
        record = self._buffer.pop()
        if not self._buffer:
            self._is_end = False
        return record

    def _epochs(self, permissions: Permissions) -> Iterator[None]:
        """Fill the buffer; each turn ends when it is full, or has the last record of an epoch."""
        epoch = 0
        while True:
            epoch += 1
            count = 0
            for record in self._records(self._files(permissions, epoch), permissions):
                while len(self._buffer) >= self._size:
                    yield
                self._add(record)
                count += 1
            require(count, f"The files {self._patterns!r} have no records")
            if self._buffer:
                self._is_end = True
                yield

    def _add(self, record: bytes) -> None:
        """Put a record at a random place, and what was there at the end."""
        self._buffer.append(record)
        place = self._draw() % len(self._buffer)
        self._buffer[-1], self._buffer[place] = self._buffer[place], record

    def _files(self, permissions: Permissions, epoch: int) -> list[bytes]:
        files = [
            path
            for pattern in self._patterns.split(b",")
            for path in sorted(matching_paths(permissions, pattern))
        ]
        if not files:
            raise NotFoundError(f"Found no files at {self._patterns.decode(errors='replace')}")
        seed = hash64(epoch.to_bytes(8, "little"), self._seed)
        files = shuffled(files, MersenneTwister64(seed))
        shift = int(self._shift * len(files)) if 0 <= self._shift < 1 else 0
        return [*files[shift:], *files[:shift]]

    def _records(self, files: list[bytes], permissions: Permissions) -> Iterator[bytes]:
        """The records of all readers, in the order in which they enter the buffer."""
        for number in range(min(self._readers, len(files))):
            waiting: list[bytes] = []
            for path in files[number :: self._readers]:
                for record in self._records_of(path, permissions):
                    waiting.append(record)
                    if len(waiting) == _AT_ONCE:
                        yield from reversed(waiting)
                        waiting.clear()
            yield from reversed(waiting)

    def _records_of(self, path: bytes, permissions: Permissions) -> Iterator[bytes]:
        reader = TFRecordReader(self._compression, "RecordInput")
        try:
            reader.open(permissions, path)
        except (DataLossError, DeadlineExceededError, PermissionDeniedError):
            raise
        except OpError as error:
            raise InvalidArgumentError(f"Can't open {path.decode(errors='replace')}") from error
        try:
            while (found := reader.next()) is not None:
                check_time("reading records")
                yield found[1]
        finally:
            reader.finish_work()


@register_kernel(RECORD_INPUT)
class RecordInput(OpKernel):
    """Gives batches of records."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr
        self._count = get("batch_size")
        readers = get("file_parallelism")
        require(readers >= 0, f"file_parallelism should >= 0, got {readers}")
        require(self._count >= 0, f"batch_size must be non-negative but got {self._count}")
        self._yielder = RecordYielder(get)
        self._lock = threading.Lock()
        self._is_idle = not readers or not get("file_buffer_size")

    def compute(self, ctx: OpKernelContext) -> None:
        """Set the records."""
        check_allocation((self._count,), DataType.DT_STRING)
        if self._count and self._is_idle:
            raise InvalidArgumentError("file_parallelism and file_buffer_size must not be 0")
        with self._lock:
            records = [self._yielder.next(ctx.permissions) for _ in range(self._count)]
        ctx.set_output(0, string_tensor((self._count,), records))
