"""Whole files: ReadFile, WriteFile, MatchingFiles.

The files that a pattern matches, found in the directories that a graph may read.

FileSystemSetConfiguration: options of file systems, of which local files have none.

Source: TensorFlow core/ops/io_ops.cc, core/kernels/io.cc, matching_files_op.cc,
core/platform/file_system_helper.cc (GetMatchingPaths), core/platform/env.cc.
"""

import fnmatch
import glob
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.opened_files import read_whole
from opkernel.device.permissions import Permissions
from opkernel.errors import PermissionDeniedError, UnimplementedError
from opkernel.file_errors import file_errors
from opkernel.kernel import OpKernel, OpKernelContext
from opkernel.opdef import InferenceContext, no_outputs, register_op
from opkernel.opdef.common_shapes.rules import scalar_inputs_and_outputs
from opkernel.ops.input_checks import require_rank_at_most, require_scalar
from opkernel.ops.registration import register_kernel

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


def _matching_files_shape(c: InferenceContext) -> None:
    c.with_rank_at_most(c.input(0), 1)
    c.set_output(0, c.vector(None))


READ_FILE = register_op(
    "ReadFile",
    inputs=["filename: string"],
    outputs=["contents: string"],
    shape_fn=scalar_inputs_and_outputs,
    traits="reads_files",
    doc="The content of a file.",
)

WRITE_FILE = register_op(
    "WriteFile",
    inputs=["filename: string", "contents: string"],
    is_stateful=True,
    shape_fn=scalar_inputs_and_outputs,
    traits="writes_files",
    doc="Writes a file, and makes the directories that it needs. A file of that name is replaced.",
)

MATCHING_FILES = register_op(
    "MatchingFiles",
    inputs=["pattern: string"],
    outputs=["filenames: string"],
    shape_fn=_matching_files_shape,
    traits="reads_files",
    doc="The names of the files that match patterns (`*`, `?`, `[...]`), sorted.",
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
        result = np.empty((), object)
        result[()] = read_whole(ctx.permissions, scalar_text("filename", ctx.input(0)))
        ctx.set_output(0, result)


@register_kernel(WRITE_FILE)
class WriteFile(OpKernel):
    """Writes a file."""

    def compute(self, ctx: OpKernelContext) -> None:
        name, contents = (
            scalar_text(what, ctx.input(i)) for i, what in enumerate(("filename", "contents"))
        )
        with (
            file_errors(os.fsdecode(name)),
            open(ctx.permissions.open_to_write(name), "wb") as file,
        ):
            file.truncate()
            file.write(contents)


@register_kernel(MATCHING_FILES)
class MatchingFiles(OpKernel):
    """Finds files."""

    def compute(self, ctx: OpKernelContext) -> None:
        patterns = ctx.input(0)
        require_rank_at_most(
            patterns, 1, "Input patterns tensor must be scalar or vector, but had shape: {}"
        )
        found: set[bytes] = set()
        for pattern in patterns.reshape(-1).tolist():
            found.update(matching_paths(ctx.permissions, pattern))
        result = np.empty(len(found), object)
        result[:] = sorted(found)
        ctx.set_output(0, result)


_LOCAL = ("", "file", "ram")

FILE_SYSTEM_SET_CONFIGURATION = register_op(
    "FileSystemSetConfiguration",
    inputs=["scheme: string", "key: string", "value: string"],
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
