"""Checkpoints of both formats: Save, SaveSlices, Restore, RestoreSlice, SaveV2, RestoreV2, MergeV2Checkpoints, and names of shards.

Source: TensorFlow core/ops/io_ops.cc, core/kernels/save_op.cc, restore_op.cc, save_restore_tensor.cc,
core/kernels/save_restore_v2_ops.cc.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from opkernel.checkpoint import (
    BundleWriter,
    CheckpointReader,
    TensorSlice,
    merge_bundles,
    parse_shape_and_slice,
)
from opkernel.checkpoint.bundle_reader import BundleReader, data_file, index_file
from opkernel.checkpoint.slices import SlicesReader, SlicesWriter
from opkernel.device.permissions import Permissions
from opkernel.device.string_tensors import string_tensor
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import InferenceContext, ShapeHandle, register_op, unknown_shape
from opkernel.opdef.common_shapes.rules import (
    check_input_ranks,
    check_scalars,
    scalar_inputs_and_outputs,
    set_outputs,
    shape_rule,
)
from opkernel.ops.files.whole_files import matching_paths
from opkernel.ops.input_checks import require, require_equal, require_scalar, require_vector
from opkernel.ops.registration import register_kernel
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
    message = "tensor_names and shape_and_slices have different number of elements: {} vs. {}"
    require_equal(len(names), len(slices), message)
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


def save_shape(lists: int) -> Callable[[InferenceContext], None]:
    """A file name, then `lists` vectors with an element for each of the tensors that follow."""

    def check(c: InferenceContext) -> None:
        check_scalars(c, 0)
        for i in range(1, lists + 1):
            names = c.with_rank(c.input(i), 1)
            c.with_value(c.dim(names, 0), c.num_inputs() - lists - 1)

    return check


def restored_shape(c: InferenceContext, shape_and_slice: bytes | str) -> ShapeHandle:
    """The shape of a restored tensor, of which the checkpoint holds a slice; unknown if empty."""
    text = shape_and_slice
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    return c.make_shape(parse_shape_and_slice(text)[2]) if text else c.unknown_shape()


SHARDED_FILENAME = register_op(
    "ShardedFilename(basename: string, shard: int32, num_shards: int32) -> filename: string",
    shape_fn=scalar_inputs_and_outputs,
    doc="The name of one part: `basename-00003-of-00010`.",
)

SHARDED_FILESPEC = register_op(
    "ShardedFilespec(basename: string, num_shards: int32) -> filename: string",
    shape_fn=scalar_inputs_and_outputs,
    doc="The pattern of the names of all parts: `basename-?????-of-00010`.",
)


def _scalar(what: str, value: Any) -> Any:
    require_scalar(value, f"{what} must be a scalar, not {{}}")
    return value.item()


def _text(name: bytes, part: str, count: int) -> Any:
    return string_tensor((), [name + f"-{part}-of-{count:05d}".encode()])


@register_kernel(SHARDED_FILENAME)
def sharded_filename(basename: Any, shard: Any, num_shards: Any) -> Any:
    part, count = _scalar("shard", shard), _scalar("num_shards", num_shards)
    return _text(_scalar("basename", basename), f"{part:05d}", count)


@register_kernel(SHARDED_FILESPEC)
def sharded_filespec(basename: Any, num_shards: Any) -> Any:
    return _text(_scalar("basename", basename), "?????", _scalar("num_shards", num_shards))


def _restore_slice_shape(c: InferenceContext) -> None:
    check_scalars(c, 0, 1, 2)
    known = c.input_tensor(2)
    c.set_output(0, c.unknown_shape() if known is None else restored_shape(c, known.item()))


_RESTORE_ATTRS = ("dt: type", "preferred_shard: int = -1")

_saving = partial(register_op, is_stateful=True, traits="writes_files")
_restoring = partial(register_op, is_stateful=True, traits="only_reads_state reads_files")

SAVE = _saving(
    "Save(filename: string, tensor_names: string, data: T)",
    attrs=["T: list(type) >= 1"],
    shape_fn=save_shape(1),
    doc="Saves tensors in the format V1.",
)

SAVE_SLICES = _saving(
    "SaveSlices(filename: string, tensor_names: string, shapes_and_slices: string, data: T)",
    attrs=["T: list(type) >= 1"],
    shape_fn=save_shape(2),
    doc="Saves slices of tensors in the format V1.",
)

RESTORE = _restoring(
    "Restore(file_pattern: string, tensor_name: string) -> tensor: dt",
    attrs=_RESTORE_ATTRS,
    shape_fn=shape_rule("[], [] ->"),
    doc="Restores a tensor from a checkpoint of format V1.",
)

RESTORE_SLICE = _restoring(
    "RestoreSlice(file_pattern: string, tensor_name: string, shape_and_slice: string) "
    "-> tensor: dt",
    attrs=_RESTORE_ATTRS,
    shape_fn=_restore_slice_shape,
    doc="Restores a slice of a tensor from a checkpoint of format V1.",
)


@register_kernel(SAVE, SAVE_SLICES)
class Save(OpKernel):
    """Saves tensors, or slices of them, in the order of their names."""

    def compute(self, ctx: OpKernelContext) -> None:
        has_slices = self.type_string == "SaveSlices"
        first = 2 + has_slices
        names, tensors, dtypes = ctx.input(1), ctx.inputs[first:], self.input_types[first:]
        slices: list[bytes] = [b""] * names.size
        if has_slices:
            check_names(names, ctx.input(2), len(tensors))
            slices = ctx.input(2).tolist()
        message = f"Got {TensorShape(names.shape)} tensor names but {len(tensors)} tensors."
        require(names.ndim == 1 and len(names) == len(tensors), message)
        permissions = ctx.permissions.for_checkpoints()
        path = permissions.check_write(single_text("filename", ctx.input(0)))
        writer = SlicesWriter(path, open_place=permissions.place_to_write)
        for i in sorted(range(len(tensors)), key=lambda i: names[i]):
            tensor = tensors[i]
            part = _part_of(slices[i], tensor)
            shape, tensor_slice = part or (tensor.shape, TensorSlice.whole(tensor.ndim))
            name = names[i].decode("utf-8", "surrogateescape")
            writer.add(name, shape, tensor_slice, tensor, dtypes[i])
        writer.finish()


def _part_of(text: bytes, tensor: Any) -> tuple[tuple[int, ...], TensorSlice] | None:
    """As `slice_of`, for a tensor that is to be saved; InvalidArgumentError unless the slice has its shape."""
    part = slice_of(text)
    if part is not None and part[1].shape_of(part[0]) != tensor.shape:
        raise InvalidArgumentError(
            f"Slice in shape_and_slice specification does not match the shape of the tensor to "
            f"save: {text.decode(errors='replace')}, tensor: {TensorShape(tensor.shape)}"
        )
    return part


@register_kernel(RESTORE, RESTORE_SLICE)
class Restore(OpKernel):
    """Restores a tensor, or a slice of it."""

    def compute(self, ctx: OpKernelContext) -> None:
        texts = [ctx.input(i) for i in range(ctx.num_inputs)]
        pattern = single_text("file_pattern", texts[0])
        name = single_text("tensor_name", texts[1])
        text = single_text("shape_and_slice", texts[2]) if len(texts) > 2 else b""
        reader = open_checkpoint(ctx, pattern, only_v1=True)
        ctx.set_output(0, restored(reader, name, text, self.output_types[0]))


def _restore_v2_shape(c: InferenceContext) -> None:
    _, names, slices = check_input_ranks(c, 0, 1, 1)
    c.merge(names, slices)
    known = c.input_tensor(2)
    if known is None:
        unknown_shape(c)
        return
    texts = known.reshape(-1).tolist()
    if len(texts) != c.num_outputs():
        raise InvalidArgumentError("The number of shape_and_slice doesn't match tensor outputs.")
    set_outputs(c, [restored_shape(c, text) for text in texts])


_NAMES = "prefix: string, tensor_names: string, shape_and_slices: string"

SAVE_V2 = _saving(
    f"SaveV2({_NAMES}, tensors: dtypes)",
    attrs=["dtypes: list(type) >= 1"],
    shape_fn=save_shape(2),
    doc="Saves tensors, or slices of larger ones, in the format V2.",
)

RESTORE_V2 = _restoring(
    f"RestoreV2({_NAMES}) -> tensors: dtypes",
    attrs=["dtypes: list(type) >= 1"],
    shape_fn=_restore_v2_shape,
    doc="Restores tensors, or slices of them, from a checkpoint of format V2 or V1.",
)

MERGE_V2_CHECKPOINTS = _saving(
    "MergeV2Checkpoints(checkpoint_prefixes: string, destination_prefix: string)",
    attrs=["delete_old_dirs: bool = true", "allow_missing_files: bool = false"],
    shape_fn=shape_rule("[?], [] ->"),
    doc="Makes one checkpoint of several, whose files it takes over.",
)


@register_kernel(SAVE_V2)
class SaveV2(OpKernel):
    """Saves tensors."""

    def compute(self, ctx: OpKernelContext) -> None:
        names, slices = ctx.input(1), ctx.input(2)
        tensors = ctx.inputs[3:]
        prefix = single_text("prefix", ctx.input(0))
        check_names(names, slices, len(tensors))
        permissions = ctx.permissions.for_checkpoints()
        path = permissions.check_write(prefix)
        open_place = partial(permissions.place_to_write, makes=1)
        with BundleWriter(path, open_place=open_place) as writer:
            for i, (name, text, tensor) in enumerate(zip(names, slices, tensors, strict=True)):
                key, part = name.decode("utf-8", "surrogateescape"), _part_of(text, tensor)
                dtype = self.input_types[3 + i]
                if part is None:
                    writer.add(key, tensor, dtype)
                else:
                    writer.add_slice(key, *part, tensor, dtype)


@register_kernel(RESTORE_V2)
class RestoreV2(OpKernel):
    """Restores tensors."""

    def compute(self, ctx: OpKernelContext) -> None:
        names, slices = ctx.input(1), ctx.input(2)
        prefix = single_text("prefix", ctx.input(0))
        check_names(names, slices, self.num_outputs)
        reader = open_checkpoint(ctx, prefix)
        for name in names:
            reader.dtype(name.decode("utf-8", "surrogateescape"))  # missing keys are told first
        for i, (name, text) in enumerate(zip(names, slices, strict=True)):
            ctx.set_output(i, restored(reader, name, text, self.output_types[i]))


@register_kernel(MERGE_V2_CHECKPOINTS)
class MergeV2Checkpoints(OpKernel):
    """Merges checkpoints."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._deletes = construction.get_attr("delete_old_dirs")
        self._allows_missing = construction.get_attr("allow_missing_files")

    def compute(self, ctx: OpKernelContext) -> None:
        prefixes = ctx.input(0)
        require_vector(
            prefixes, "Input checkpoint_prefixes should be an 1-D tensor, got {} instead."
        )
        permissions = ctx.permissions.for_checkpoints()
        target = permissions.check_write(single_text("destination_prefix", ctx.input(1)))
        # The files are renamed: whoever may merge them may write both.
        sources = [permissions.check_write(prefix) for prefix in prefixes.tolist()]
        merge_bundles(
            sources,
            target,
            allow_missing_files=self._allows_missing,
            open_place=permissions.place_to_write,
        )
        if self._deletes:
            for folder in {os.path.dirname(source) for source in sources}:
                if folder != os.path.dirname(target):
                    _delete_empty(permissions, folder)


def _delete_empty(permissions: Permissions, folder: str) -> None:
    """Delete a directory that has nothing in it any more; others stay, as in TensorFlow."""
    with suppress(OSError):
        parent, name = permissions.place_to_write(folder)
        with parent:
            parent.remove_empty(name)
