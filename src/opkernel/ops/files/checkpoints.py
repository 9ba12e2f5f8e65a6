"""Checkpoints of both formats: Save, SaveSlices, Restore, RestoreSlice, SaveV2, RestoreV2, MergeV2Checkpoints, and names of shards.

Source: TensorFlow core/ops/io_ops.cc, core/kernels/save_op.cc, restore_op.cc, save_restore_tensor.cc,
core/kernels/save_restore_v2_ops.cc.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from opkernel.checkpoint import BundleWriter, TensorSlice, merge_bundles, parse_shape_and_slice
from opkernel.checkpoint.slices_writer import SlicesWriter
from opkernel.device.permissions import Permissions
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import InferenceContext, ShapeHandle, register_op, unknown_shape
from opkernel.opdef.common_shapes.rules import (
    check_input_ranks,
    check_scalars,
    scalar_inputs_and_outputs,
    set_outputs,
)
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.files.saved_tensors import (
    check_names,
    open_checkpoint,
    restored,
    single_text,
    slice_of,
)
from opkernel.ops.input_checks import require_scalar, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

__all__ = ["restored_shape", "save_shape"]


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
    "ShardedFilename",
    inputs=["basename: string", "shard: int32", "num_shards: int32"],
    outputs=["filename: string"],
    shape_fn=scalar_inputs_and_outputs,
    doc="The name of one part: `basename-00003-of-00010`.",
)

SHARDED_FILESPEC = register_op(
    "ShardedFilespec",
    inputs=["basename: string", "num_shards: int32"],
    outputs=["filename: string"],
    shape_fn=scalar_inputs_and_outputs,
    doc="The pattern of the names of all parts: `basename-?????-of-00010`.",
)


def _scalar(what: str, value: Any) -> Any:
    require_scalar(value, f"{what} must be a scalar, not {{}}")
    return value.item()


def _text(name: bytes, part: str, count: int) -> Any:
    result = np.empty((), object)
    result[()] = name + f"-{part}-of-{count:05d}".encode()
    return result


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

SAVE = register_op(
    "Save",
    inputs=["filename: string", "tensor_names: string", "data: T"],
    attrs=["T: list(type) >= 1"],
    is_stateful=True,
    shape_fn=save_shape(1),
    traits="writes_files",
    doc="Saves tensors in the format V1.",
)

SAVE_SLICES = register_op(
    "SaveSlices",
    inputs=["filename: string", "tensor_names: string", "shapes_and_slices: string", "data: T"],
    attrs=["T: list(type) >= 1"],
    is_stateful=True,
    shape_fn=save_shape(2),
    traits="writes_files",
    doc="Saves slices of tensors in the format V1.",
)

RESTORE = register_op(
    "Restore",
    inputs=["file_pattern: string", "tensor_name: string"],
    outputs=["tensor: dt"],
    attrs=_RESTORE_ATTRS,
    is_stateful=True,
    shape_fn=shape_rule("[], [] ->"),
    traits="only_reads_state reads_files",
    doc="Restores a tensor from a checkpoint of format V1.",
)

RESTORE_SLICE = register_op(
    "RestoreSlice",
    inputs=["file_pattern: string", "tensor_name: string", "shape_and_slice: string"],
    outputs=["tensor: dt"],
    attrs=_RESTORE_ATTRS,
    is_stateful=True,
    shape_fn=_restore_slice_shape,
    traits="only_reads_state reads_files",
    doc="Restores a slice of a tensor from a checkpoint of format V1.",
)


@register_kernel(SAVE)
class Save(OpKernel):
    """Saves tensors."""

    def compute(self, ctx: OpKernelContext) -> None:
        names = ctx.input(1)
        tensors = [ctx.input(i) for i in range(2, ctx.num_inputs)]
        _save_v1(ctx, names, [b""] * names.size, tensors, self.input_types[2:])


@register_kernel(SAVE_SLICES)
class SaveSlices(OpKernel):
    """Saves slices."""

    def compute(self, ctx: OpKernelContext) -> None:
        names, slices = ctx.input(1), ctx.input(2)
        tensors = [ctx.input(i) for i in range(3, ctx.num_inputs)]
        check_names(names, slices, len(tensors))
        _save_v1(ctx, names, slices.tolist(), tensors, self.input_types[3:])


def _save_v1(
    ctx: OpKernelContext,
    names: Any,
    slices: Sequence[bytes],
    tensors: list[Any],
    dtypes: Sequence[DataType],
) -> None:
    """Write the tensors in the order of their names."""
    if names.ndim != 1 or len(names) != len(tensors):
        raise InvalidArgumentError(
            f"Got {TensorShape(names.shape)} tensor names but {len(tensors)} tensors."
        )
    permissions = ctx.permissions.for_checkpoints()
    path = permissions.check_write(single_text("filename", ctx.input(0)))
    writer = SlicesWriter(path, open_place=permissions.place_to_write)
    order = sorted(range(len(tensors)), key=lambda i: names[i])
    for i in order:
        tensor, part = tensors[i], slice_of(slices[i])
        shape, tensor_slice = part or (tensor.shape, TensorSlice.whole(tensor.ndim))
        if tensor_slice.shape_of(shape) != tensor.shape:
            raise InvalidArgumentError(
                f"Slice in shape_and_slice specification does not match the shape of the tensor to "
                f"save: {slices[i].decode(errors='replace')}, tensor: {TensorShape(tensor.shape)}"
            )
        name = names[i].decode("utf-8", "surrogateescape")
        writer.add(name, shape, tensor_slice, tensor, dtypes[i])
    writer.finish()


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


_NAMES = ("prefix: string", "tensor_names: string", "shape_and_slices: string")

SAVE_V2 = register_op(
    "SaveV2",
    inputs=[*_NAMES, "tensors: dtypes"],
    attrs=["dtypes: list(type) >= 1"],
    is_stateful=True,
    shape_fn=save_shape(2),
    traits="writes_files",
    doc="Saves tensors, or slices of larger ones, in the format V2.",
)

RESTORE_V2 = register_op(
    "RestoreV2",
    inputs=_NAMES,
    outputs=["tensors: dtypes"],
    attrs=["dtypes: list(type) >= 1"],
    is_stateful=True,
    shape_fn=_restore_v2_shape,
    traits="only_reads_state reads_files",
    doc="Restores tensors, or slices of them, from a checkpoint of format V2 or V1.",
)

MERGE_V2_CHECKPOINTS = register_op(
    "MergeV2Checkpoints",
    inputs=["checkpoint_prefixes: string", "destination_prefix: string"],
    attrs=["delete_old_dirs: bool = true", "allow_missing_files: bool = false"],
    is_stateful=True,
    shape_fn=shape_rule("[?], [] ->"),
    traits="writes_files",
    doc="Makes one checkpoint of several, whose files it takes over.",
)


@register_kernel(SAVE_V2)
class SaveV2(OpKernel):
    """Saves tensors."""

    def compute(self, ctx: OpKernelContext) -> None:
        names, slices = ctx.input(1), ctx.input(2)
        tensors = [ctx.input(i) for i in range(3, ctx.num_inputs)]
        prefix = single_text("prefix", ctx.input(0))
        check_names(names, slices, len(tensors))
        permissions = ctx.permissions.for_checkpoints()
        path = permissions.check_write(prefix)
        open_place = partial(permissions.place_to_write, makes=1)
        with BundleWriter(path, open_place=open_place) as writer:
            for i, (name, text, tensor) in enumerate(zip(names, slices, tensors, strict=True)):
                _save(writer, name, text, tensor, self.input_types[3 + i])


def _save(writer: BundleWriter, name: bytes, text: bytes, tensor: Any, dtype: DataType) -> None:
    """Add a tensor, or the slice of one that `text` means."""
    key, part = name.decode("utf-8", "surrogateescape"), slice_of(text)
    if part is None:
        writer.add(key, tensor, dtype)
        return
    shape, tensor_slice = part
    if tensor_slice.shape_of(shape) != tensor.shape:
        raise InvalidArgumentError(
            f"Slice in shape_and_slice specification does not match the shape of the tensor to save: "
            f"{text.decode(errors='replace')}, tensor: {TensorShape(tensor.shape)}"
        )
    writer.add_slice(key, shape, tensor_slice, tensor, dtype)


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
