"""DumpTensor: a tensor in a file, for TensorFlow's quantizer.

Source: TensorFlow compiler/mlir/quantization/tensorflow/calibrator, .../ops, .../kernels/dump_tensor_op.cc.
"""

import os
import struct
import threading
import zlib
from typing import Any

from opkernel.checkpoint.crc32c import masked_crc32c
from opkernel.checkpoint.varint import varint
from opkernel.device.permissions import Permissions
from opkernel.file_errors import file_errors
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unknown_shape
from opkernel.ops.parsing.tensors import serialize_tensor
from opkernel.ops.registration import register_kernel

DUMP_TENSOR = register_op(
    "DumpTensor",
    inputs=["tensor_data: T"],
    attrs=[
        "log_dir_path: string",
        "file_name: string",
        "T: type",
        "enabled: bool",
        "func_name: string",
        "node_name: string",
    ],
    is_stateful=True,
    shape_fn=unknown_shape,
    traits="writes_files",
    doc="""
    Writes a tensor as a TensorProto into `file_name` in `log_dir_path`, and beside it the names of node and function.

    The file has a record for each run, compressed by zlib; without `enabled` it has none.
    """,
)


@register_kernel(DUMP_TENSOR)
class DumpTensor(OpKernel):
    """Begins its files at the first run, as permissions are the step's."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr
        self._directory, self._name = _bytes(get("log_dir_path")), _bytes(get("file_name"))
        self._unit = _quantization_unit(_bytes(get("node_name")), _bytes(get("func_name")))
        self._is_enabled: bool = get("enabled")
        self._stream = zlib.compressobj()
        self._size = 0
        self._has_begun = False
        self._lock = threading.Lock()

    def compute(self, ctx: OpKernelContext) -> None:
        """Write the tensor.

        Raises:
            OpError: the files may not be written, or cannot.
        """
        path = os.path.join(self._directory, self._name)
        unit = os.path.join(self._directory, b"quant_unit.pb")
        for name in (path, unit):
            ctx.permissions.check_write(name)
        with self._lock, file_errors(os.fsdecode(path)):
            if not self._has_begun:
                _write(ctx.permissions, unit, self._unit)
                _write(ctx.permissions, path, b"")
                self._has_begun = True
            if self._is_enabled or not self._size:
                self._add(ctx.permissions.open_to_write(path), ctx.input(0))

    def _add(self, descriptor: int, tensor: Any) -> None:
        """Write a record over the end of the stream, and the end behind it."""
        with open(descriptor, "r+b") as file:
            record = self._record(tensor) if self._is_enabled else b""
            stream = self._stream.copy()
            compressed = stream.compress(record) + stream.flush(zlib.Z_PARTIAL_FLUSH)
            file.seek(self._size)
            file.write(compressed + stream.copy().flush())
        self._stream, self._size = stream, self._size + len(compressed)

    def _record(self, tensor: Any) -> bytes:
        """The tensor as a record of a TFRecord file."""
        data: bytes = serialize_tensor(tensor, T=self.input_types[0]).item()
        length = struct.pack("<Q", len(data))
        sums = [struct.pack("<I", masked_crc32c(part)) for part in (length, data)]
        return length + sums[0] + data + sums[1]


def _write(permissions: Permissions, path: bytes, content: bytes) -> None:
    with open(permissions.open_to_write(path), "wb") as file:
        file.truncate()
        file.write(content)


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else os.fsencode(text)


def _quantization_unit(node: bytes, function: bytes) -> bytes:
    """A UnitWiseQuantizationSpec.QuantizationUnit, whose schema the package does not have."""
    fields = ((b"\x12", node), (b"\x1a", function))
    return b"".join(tag + varint(len(text)) + text for tag, text in fields if text)
