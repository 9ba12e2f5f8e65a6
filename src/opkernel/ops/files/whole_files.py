"""Whole files: ReadFile, WriteFile, MatchingFiles.

Source: TensorFlow core/ops/io_ops.cc, core/kernels/io.cc, matching_files_op.cc.
"""

import os
from typing import Any

import numpy as np

from opkernel.device.opened_files import read_whole
from opkernel.errors import InvalidArgumentError
from opkernel.file_errors import file_errors
from opkernel.kernel import OpKernel, OpKernelContext
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.declared.rules import scalar_inputs_and_outputs
from opkernel.ops.files.matching import matching_paths
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
        result = np.empty((), object)
        result[()] = read_whole(ctx.permissions, scalar_text("filename", ctx.input(0)))
        ctx.set_output(0, result)


@register_kernel(WRITE_FILE, device="CPU")
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
            found.update(matching_paths(ctx.permissions, pattern))
        result = np.empty(len(found), object)
        result[:] = sorted(found)
        ctx.set_output(0, result)
