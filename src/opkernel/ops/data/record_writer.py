"""DatasetToTFRecord: the strings of a dataset as the records of a file.

Source: TensorFlow core/kernels/data/experimental/to_tf_record_op.cc.
"""

from __future__ import annotations

import os
from contextlib import closing

from opkernel.device.budget import check_time
from opkernel.device.permissions import Permissions
from opkernel.errors import InvalidArgumentError
from opkernel.file_errors import file_errors
from opkernel.io.record_format import COMPRESSIONS, RecordWriter, TFRecordOptions
from opkernel.kernel import OpKernelContext
from opkernel.ops.data.dataset import DatasetBase
from opkernel.ops.data.dataset_op import DatasetNode, KernelOfDatasets, declare
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

__all__ = ["DatasetToTFRecordOp"]

_NAMES = ("DatasetToTFRecord", "ExperimentalDatasetToTFRecord")

for _name in _NAMES:
    declare(
        _name, doc="Writes the strings of a dataset into a TFRecord file.", traits="writes_files"
    )


@register_kernel(*_NAMES)
class DatasetToTFRecordOp(KernelOfDatasets):
    """Writes the records. An error leaves the file with the records before it."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Write the file.

        Raises:
            PermissionDeniedError: it may not be written.
            InvalidArgumentError: the elements are not single strings.
            OpError: it cannot be written, or an element fails.
        """
        node = DatasetNode(self, ctx)
        path: bytes = node.scalar("filename")
        compression = node.scalar("compression_type").decode("utf-8", "replace")
        with closing(_writer(ctx.permissions, path, compression)) as writer:
            dataset = node.dataset()
            _check_gives_strings(dataset)
            with dataset.iterator() as iterator:
                while (element := iterator.next(ctx.step)) is not None:
                    record = element[0]
                    require_scalar(record, "A record must be a scalar, got shape {}")
                    writer.write(record.item())
                    check_time("writing records", os.fsdecode(path))


def _writer(permissions: Permissions, path: bytes, compression: str) -> RecordWriter:
    """Writes a new file. An unknown compression leaves it uncompressed, as in TensorFlow."""
    options = TFRecordOptions(compression if compression in COMPRESSIONS else None)
    name = os.fsdecode(path)
    with file_errors(name):
        file = os.fdopen(permissions.open_to_write(path, makes=0), "wb")
        file.truncate()
    return RecordWriter(file, name, options)


def _check_gives_strings(dataset: DatasetBase) -> None:
    count, dtypes = len(dataset.dtypes), dataset.dtypes
    if count != 1:
        raise InvalidArgumentError(
            f"ToTFRecordOp currently only support datasets of 1 single column, but got {count}"
        )
    if dtypes[0] != DataType.DT_STRING:
        raise InvalidArgumentError(
            f"ToTFRecordOp currently only supports DT_STRING dataypes, but got {dtypes[0].string}"
        )
