"""Checkpoints of format V2: SaveV2, RestoreV2, MergeV2Checkpoints.

Source: TensorFlow core/ops/io_ops.cc, core/kernels/save_restore_v2_ops.cc.
"""

import os
from contextlib import suppress
from functools import partial
from typing import Any

from opkernel.checkpoint import BundleWriter, merge_bundles
from opkernel.device.permissions import Permissions
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import InferenceContext, register_op, unknown_shape
from opkernel.ops.declared.rules import check_input_ranks, fixed_shapes, set_outputs
from opkernel.ops.files.saved_tensors import check_names, opened, restored, single_text, slice_of
from opkernel.ops.files.shapes import restored_shape, save_shape
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape


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
    shape_fn=fixed_shapes(input_ranks=(1, 0)),
    traits="writes_files",
    doc="Makes one checkpoint of several, whose files it takes over.",
)


@register_kernel(SAVE_V2, device="CPU")
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


@register_kernel(RESTORE_V2, device="CPU")
class RestoreV2(OpKernel):
    """Restores tensors."""

    def compute(self, ctx: OpKernelContext) -> None:
        names, slices = ctx.input(1), ctx.input(2)
        prefix = single_text("prefix", ctx.input(0))
        check_names(names, slices, self.num_outputs)
        reader = opened(ctx, prefix)
        for name in names:
            reader.dtype(name.decode("utf-8", "surrogateescape"))  # missing keys are told first
        for i, (name, text) in enumerate(zip(names, slices, strict=True)):
            ctx.set_output(i, restored(reader, name, text, self.output_types[i]))


@register_kernel(MERGE_V2_CHECKPOINTS, device="CPU")
class MergeV2Checkpoints(OpKernel):
    """Merges checkpoints."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._deletes = construction.get_attr("delete_old_dirs")
        self._allows_missing = construction.get_attr("allow_missing_files")

    def compute(self, ctx: OpKernelContext) -> None:
        prefixes = ctx.input(0)
        if prefixes.ndim != 1:
            raise InvalidArgumentError(
                f"Input checkpoint_prefixes should be an 1-D tensor, got "
                f"{TensorShape(prefixes.shape)} instead."
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
