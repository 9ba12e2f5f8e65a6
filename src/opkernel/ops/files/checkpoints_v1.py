"""Checkpoints of format V1: Save, SaveSlices, Restore, RestoreSlice.

Source: TensorFlow core/ops/io_ops.cc, core/kernels/save_op.cc, restore_op.cc, save_restore_tensor.cc.
"""

from collections.abc import Sequence
from typing import Any

from opkernel.checkpoint import TensorSlice
from opkernel.checkpoint.slices_writer import SlicesWriter
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelContext
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.declared.rules import check_scalars, fixed_shapes
from opkernel.ops.files.saved_tensors import check_names, opened, restored, single_text, slice_of
from opkernel.ops.files.shapes import restored_shape, save_shape
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape


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
    shape_fn=fixed_shapes(input_ranks=(0, 0)),
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


@register_kernel(SAVE, device="CPU")
class Save(OpKernel):
    """Saves tensors."""

    def compute(self, ctx: OpKernelContext) -> None:
        names = ctx.input(1)
        tensors = [ctx.input(i) for i in range(2, ctx.num_inputs)]
        _save(ctx, names, [b""] * names.size, tensors, self.input_types[2:])


@register_kernel(SAVE_SLICES, device="CPU")
class SaveSlices(OpKernel):
    """Saves slices."""

    def compute(self, ctx: OpKernelContext) -> None:
        names, slices = ctx.input(1), ctx.input(2)
        tensors = [ctx.input(i) for i in range(3, ctx.num_inputs)]
        check_names(names, slices, len(tensors))
        _save(ctx, names, slices.tolist(), tensors, self.input_types[3:])


def _save(
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


@register_kernel(RESTORE, device="CPU")
@register_kernel(RESTORE_SLICE, device="CPU")
class Restore(OpKernel):
    """Restores a tensor, or a slice of it."""

    def compute(self, ctx: OpKernelContext) -> None:
        texts = [ctx.input(i) for i in range(ctx.num_inputs)]
        pattern = single_text("file_pattern", texts[0])
        name = single_text("tensor_name", texts[1])
        text = single_text("shape_and_slice", texts[2]) if len(texts) > 2 else b""
        reader = opened(ctx, pattern, only_v1=True)
        ctx.set_output(0, restored(reader, name, text, self.output_types[0]))
