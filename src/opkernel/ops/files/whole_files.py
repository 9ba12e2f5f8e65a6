"""Whole files: ReadFile, WriteFile, MatchingFiles, ImmutableConst, and DumpTensor for TensorFlow's quantizer.

FileSystemSetConfiguration: options of file systems, of which local files have none.

Source: TensorFlow core/ops/io_ops.cc, core/kernels/io.cc, matching_files_op.cc,
core/platform/file_system_helper.cc (GetMatchingPaths), core/platform/env.cc, core/ops/array_ops.cc,
core/kernels/immutable_constant_op.cc, compiler/mlir/quantization/tensorflow/calibrator, .../ops,
.../kernels/dump_tensor_op.cc.
"""

import fnmatch
import glob
import math
import os
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.opened_files import open_file, read_whole
from opkernel.device.permissions import Permissions
from opkernel.errors import (
    InternalError,
    InvalidArgumentError,
    PermissionDeniedError,
    UnimplementedError,
)
from opkernel.file_errors import file_errors
from opkernel.io.record_format import record_parts
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.opdef import no_outputs, register_op
from opkernel.opdef.common_shapes import explicit_shape, unknown_shape
from opkernel.opdef.common_shapes.rules import (
    checked,
    defined_shape,
    scalar_inputs_and_outputs,
    shape_rule,
)
from opkernel.ops.input_checks import require_rank_at_most, require_scalar
from opkernel.ops.parsing.tensors import serialize_tensor
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, object_scalar
from opkernel.types.varints import varint

__all__ = ["matching_paths"]


def matching_paths(permissions: Permissions, pattern: bytes) -> Iterator[bytes]:
    """The paths that match a pattern (`*`, `?`, `[...]`).

    A link below a wildcard that leads out of the directories that may be read matches, and nothing behind it does.

    Raises:
        PermissionDeniedError: the directory before the wildcards may not be read, or the pattern has `..` after one.
        InvalidArgumentError: the pattern cannot be that of a path.
        DeadlineExceededError: there is no time left.
    """
    fixed = pattern
    while glob.has_magic(fixed):
        fixed = os.path.dirname(fixed)
    permissions.check_read(fixed or b".")
    if b".." in pattern[len(fixed) :].split(b"/"):
        raise PermissionDeniedError(f"{os.fsdecode(pattern)!r}: `..` must not follow a wildcard")
    return _matches(permissions, pattern)


def _matches(permissions: Permissions, pattern: bytes) -> Iterator[bytes]:
    if not glob.has_magic(pattern):
        if os.path.lexists(pattern):
            yield pattern
        return
    folder, name = os.path.split(pattern)
    for one in _matches(permissions, folder) if glob.has_magic(folder) else [folder]:
        names = [os.fsencode(name) for name in _names_in(permissions, one)]
        if glob.has_magic(name):
            names = fnmatch.filter(names, name)
        elif name:
            names = [name] if name in names else []
        elif os.path.isdir(one):
            names = [b""]
        for found in names:
            check_time("looking for files")
            yield os.path.join(one, found)


def _names_in(permissions: Permissions, folder: bytes) -> list[str]:
    """The names in a directory; none where there is no such directory, or it may not be read."""
    try:
        return permissions.names_in(folder or b".")
    except OSError:  # a PermissionDeniedError is one
        return []


READ_FILE = register_op(
    "ReadFile(filename: string) -> contents: string",
    shape_fn=scalar_inputs_and_outputs,
    traits="reads_files",
    doc="The content of a file.",
)

WRITE_FILE = register_op(
    "WriteFile(filename: string, contents: string)",
    is_stateful=True,
    shape_fn=scalar_inputs_and_outputs,
    traits="writes_files",
    doc="Writes a file, and makes the directories that it needs. A file of that name is replaced.",
)

MATCHING_FILES = register_op(
    "MatchingFiles(pattern: string) -> filenames: string",
    shape_fn=checked("?", shape_rule("-> [?]")),
    traits="reads_files",
    doc="The names of the files that match patterns (`*`, `?`, `[...]`), sorted; one for each pattern that it matches.",
)


def scalar_text(what: str, value: Any) -> bytes:
    """The string of a tensor that has to be a scalar.

    Raises:
        InvalidArgumentError: it is none.
    """
    require_scalar(value, f"Input {what} tensor must be scalar, but had shape: {{}}")
    text: bytes = value.item()
    return text


@register_kernel(READ_FILE)
class ReadFile(OpKernel):
    """Reads a file."""

    def compute(self, ctx: OpKernelContext) -> None:
        content = read_whole(ctx.permissions, scalar_text("filename", ctx.input(0)))
        ctx.set_output(0, object_scalar(content))


@register_kernel(WRITE_FILE)
class WriteFile(OpKernel):
    """Writes a file."""

    def compute(self, ctx: OpKernelContext) -> None:
        name, contents = (
            scalar_text(what, ctx.input(i)) for i, what in enumerate(("filename", "contents"))
        )
        with file_errors(os.fsdecode(name)):
            _write(ctx.permissions, name, contents)


@register_kernel(MATCHING_FILES)
class MatchingFiles(OpKernel):
    """Finds files."""

    def compute(self, ctx: OpKernelContext) -> None:
        patterns = ctx.input(0)
        require_rank_at_most(
            patterns, 1, "Input patterns tensor must be scalar or vector, but had shape: {}"
        )
        found: list[bytes] = []
        for pattern in patterns.reshape(-1).tolist():
            found.extend(matching_paths(ctx.permissions, pattern))
        result = np.empty(len(found), object)
        result[:] = sorted(found)
        ctx.set_output(0, result)


_LOCAL = ("", "file", "ram")

FILE_SYSTEM_SET_CONFIGURATION = register_op(
    "FileSystemSetConfiguration(scheme: string, key: string, value: string)",
    is_stateful=True,
    shape_fn=no_outputs,
    doc="Sets an option of a file system. It always fails: no file system has options.",
)


@register_kernel(FILE_SYSTEM_SET_CONFIGURATION)
def file_system_set_configuration(scheme: Any, key: Any, value: Any) -> None:
    for name, one in (("scheme", scheme), ("key", key), ("value", value)):
        require_scalar(one, f"{name} must be scalar, got shape {{}}")
    text = scheme.item().decode("utf-8", "surrogateescape")
    if text not in _LOCAL:
        raise UnimplementedError(f"File system scheme '{text}' not found to set configuration")
    raise UnimplementedError(f"SetOption: the file system '{text}' has no options")


IMMUTABLE_CONST = register_op(
    "ImmutableConst() -> tensor: dtype",
    attrs=["dtype: type", "shape: shape", "memory_region_name: string"],
    shape_fn=explicit_shape,
    traits="reads_files file_attr=memory_region_name",
    doc="A tensor whose elements stand in the file `memory_region_name`, as in memory.",
)


@register_kernel(IMMUTABLE_CONST)
class ImmutableConst(OpKernel):
    """Reads its file at the first run; every later step gets the same read-only array."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._path = construction.get_attr("memory_region_name")
        shape, self._dtype = construction.get_attr("shape"), self.output_types[0]
        if self._dtype in (DataType.DT_RESOURCE, DataType.DT_VARIANT):
            raise InvalidArgumentError(f"No file holds elements of type {self._dtype.string}")
        self._shape = check_allocation(defined_shape(shape).as_tensor_shape(), self._dtype)
        self._value: Any = None

    def compute(self, ctx: OpKernelContext) -> None:
        """Set the constant as the output.

        Raises:
            InternalError: the file is too short.
            UnimplementedError: the elements are strings.
            OpError: the file may not be read, or cannot.
        """
        ctx.permissions.check_read(self._path)
        if self._value is None:
            self._value = self._read(ctx.permissions)
        ctx.set_output(0, self._value)

    def _read(self, permissions: Permissions) -> Any:
        wanted, path = math.prod(self._shape) * self._dtype.numpy_dtype.itemsize, self._path
        with file_errors(path), open_file(permissions, path) as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(wanted)
        if not size:
            raise InvalidArgumentError(f"{path}; the file is empty")
        if self._dtype is DataType.DT_STRING:
            raise UnimplementedError("ImmutableConst reads numbers from files, not strings")
        if len(data) < wanted:
            raise InternalError(
                f"Readonly memory region has wrong length ({size}) when allocating {wanted}: {path}"
            )
        value = np.frombuffer(data, self._dtype.numpy_dtype).reshape(self._shape)
        return value.view(np.uint8) != 0 if self._dtype is DataType.DT_BOOL else value


DUMP_TENSOR = register_op(
    "DumpTensor(tensor_data: T)",
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
        return b"".join(record_parts(data))


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
