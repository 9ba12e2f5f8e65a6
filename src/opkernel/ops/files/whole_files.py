"""Whole files: ReadFile, WriteFile, MatchingFiles.

Source: TensorFlow core/ops/io_ops.cc, core/kernels/io.cc, matching_files_op.cc.
"""

import glob
import os
from typing import Any

import numpy as np

from opkernel.checkpoint.atomic_files import file_error
from opkernel.device.budget import current_budget
from opkernel.errors import (
    InvalidArgumentError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from opkernel.kernel import OpKernel, OpKernelContext
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.declared.rules import scalar_inputs_and_outputs
from opkernel.ops.registration import register_kernel
from opkernel.types import TensorShape


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
    if value.ndim:
        raise InvalidArgumentError(
            f"Input {what} tensor must be scalar, but had shape: {TensorShape(value.shape)}"
        )
    text: bytes = value.item()
    return text


@register_kernel(READ_FILE, device="CPU")
class ReadFile(OpKernel):
    """Reads a file."""

    def compute(self, ctx: OpKernelContext) -> None:
        path = ctx.permissions.check_read(scalar_text("filename", ctx.input(0)))
        result = np.empty((), object)
        result[()] = read_whole(path)
        ctx.set_output(0, result)


def read_whole(path: str) -> bytes:
    """The content of a file; its size counts as memory of the step.

    Raises:
        NotFoundError, PermissionDeniedError, UnavailableError: it cannot be read.
        ResourceExhaustedError: it is larger than the memory limit.
    """
    try:
        with open(path, "rb") as file:
            budget = current_budget()
            if budget is not None:
                budget.check_memory(os.fstat(file.fileno()).st_size, f"the content of {path}")
            return file.read()
    except OSError as error:
        raise file_error(path, error) from error
    except ResourceExhaustedError:  # is a MemoryError, too
        raise
    except (MemoryError, OverflowError) as error:
        raise OutOfRangeError(f"{path} is too large to be read") from error


@register_kernel(WRITE_FILE, device="CPU")
class WriteFile(OpKernel):
    """Writes a file."""

    def compute(self, ctx: OpKernelContext) -> None:
        name, contents = (
            scalar_text(what, ctx.input(i)) for i, what in enumerate(("filename", "contents"))
        )
        path = ctx.permissions.check_write(name)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(contents)
        except OSError as error:
            raise file_error(path, error) from error


@register_kernel(MATCHING_FILES, device="CPU")
class MatchingFiles(OpKernel):
    """Finds files."""

    def compute(self, ctx: OpKernelContext) -> None:
        patterns = ctx.input(0)
        if patterns.ndim > 1:
            raise InvalidArgumentError(
                f"Input patterns tensor must be scalar or vector, but had shape: "
                f"{TensorShape(patterns.shape)}"
            )
        found: set[bytes] = set()
        for pattern in patterns.reshape(-1).tolist():
            found |= set(glob.glob(_checked(ctx, pattern), include_hidden=True))
        result = np.empty(len(found), object)
        result[:] = sorted(found)
        ctx.set_output(0, result)


def _checked(ctx: OpKernelContext, pattern: bytes) -> bytes:
    """A pattern whose directory may be read. Matches behind links count as matches in that directory.

    Raises:
        PermissionDeniedError: the directory may not be read, or the pattern has `..` after a wildcard.
    """
    fixed = pattern
    while glob.has_magic(fixed):
        fixed = os.path.dirname(fixed)
    ctx.permissions.check_read(fixed or b".")
    if b".." in pattern[len(fixed) :].split(b"/"):
        raise PermissionDeniedError(f"{os.fsdecode(pattern)!r}: `..` must not follow a wildcard")
    return pattern
