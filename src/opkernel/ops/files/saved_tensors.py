"""What the ops on checkpoints have in common: their lists of names, readers, and slices.

Source: TensorFlow core/kernels/save_restore_tensor.cc, save_restore_v2_ops.cc.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from opkernel.checkpoint import CheckpointReader, TensorSlice, parse_shape_and_slice
from opkernel.checkpoint.bundle_reader import BundleReader, data_file, index_file
from opkernel.checkpoint.slices_reader import SlicesReader
from opkernel.device.permissions import Permissions
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel import OpKernelContext
from opkernel.ops.files.whole_files import matching_paths
from opkernel.ops.input_checks import require_equal, require_vector
from opkernel.types import DataType, TensorShape


def single_text(what: str, value: Any) -> bytes:
    """The string of a tensor with one element.

    Raises:
        InvalidArgumentError: it has another number of elements.
    """
    require_equal(value.size, 1, f"Input {what} should have a single element, got {{}} instead.")
    text: bytes = value.reshape(-1)[0]
    return text


def check_names(names: Any, slices: Any, count: int) -> None:
    """Raise InvalidArgumentError unless there are a name and a slice for each of `count` tensors."""
    for what, value in (("tensor_names", names), ("shape_and_slices", slices)):
        require_vector(value, f"Input {what} should be an 1-D tensor, got {{}} instead.")
    if len(names) != len(slices):
        raise InvalidArgumentError(
            f"tensor_names and shape_and_slices have different number of elements: "
            f"{len(names)} vs. {len(slices)}"
        )
    require_equal(len(names), count, "Got {} tensor names but {} tensors.")


def slice_of(text: bytes) -> tuple[tuple[int, ...], TensorSlice] | None:
    """The shape and slice that a `shape_and_slice` means; None for all of a tensor.

    Raises:
        InvalidArgumentError, InternalError: the text has another form, or does not fit.
    """
    if not text:
        return None
    shape, tensor_slice, _ = parse_shape_and_slice(text.decode("utf-8", "surrogateescape"))
    return shape, tensor_slice


def open_checkpoint(
    ctx: OpKernelContext, pattern: bytes, *, only_v1: bool = False
) -> CheckpointReader:
    """The reader of a checkpoint.

    Args:
        ctx: Has the permissions, by which each file is opened, and perhaps a cache of readers.
        pattern: The prefix of a checkpoint of V2; or the file of one of V1, or a pattern of its files.
        only_v1: Whether to look for V1 alone.

    Raises:
        PermissionDeniedError: one of its files may not be read.
        NotFoundError: there is none.
        DataLossError: it is damaged.
    """
    permissions = ctx.permissions.for_checkpoints()
    prefix = permissions.check_read(pattern) if pattern else ""
    if not only_v1 and os.path.exists(index_file(prefix)):
        files = [index_file(prefix), data_file(prefix, 0, 1)]
        make: Callable[[], CheckpointReader] = partial(
            BundleReader, prefix, permissions.open_to_read
        )
    else:
        files = _files_of_v1(permissions, prefix)
        make = partial(SlicesReader, prefix, files, permissions.open_to_read)
    if not files:
        raise NotFoundError(
            f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for "
            f"{prefix}"
        )
    if ctx.slice_reader_cache is None:
        return make()
    reader: CheckpointReader = ctx.slice_reader_cache.get((prefix, permissions), files, make)
    return reader


def _files_of_v1(permissions: Permissions, pattern: str) -> list[str]:
    if os.path.isfile(pattern):
        return [pattern]
    found = [os.fsdecode(one) for one in matching_paths(permissions, os.fsencode(pattern))]
    return sorted([one for one in found if os.path.isfile(one)])


def restored(reader: CheckpointReader, name: bytes, text: bytes, dtype: DataType) -> Any:
    """A tensor of a checkpoint, or the slice of it that a `shape_and_slice` means.

    Raises:
        NotFoundError: the checkpoint lacks it.
        InvalidArgumentError: it is of another type or shape, or is not all there.
        InternalError: the slice does not fit the shape, or stored slices overlap.
        DataLossError: the checkpoint is damaged.
    """
    key = name.decode("utf-8", "surrogateescape")
    stored = reader.dtype(key)
    if stored is not dtype:
        raise InvalidArgumentError(
            f"tensor_name = {key}; expected dtype {dtype.string} does not equal original dtype "
            f"{stored.string}"
        )
    wanted = slice_of(text)
    if wanted is None:
        return reader.get(key)
    shape, tensor_slice = wanted
    if shape != tuple(reader.shape(key)):
        raise InvalidArgumentError(
            f"tensor_name = {key}; shape in shape_and_slice spec {TensorShape(shape)} does not match "
            f"the shape stored in checkpoint: {reader.shape(key)}"
        )
    return reader.get_slice(key, tensor_slice)
