"""Shapes as tensors, new tensors, and outputs whose size depends on values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.ops.array import shape as cpu
from opkernel.ops.array.broadcast import broadcast_args, broadcast_gradient_args
from opkernel.ops.array.concat import concat_offset
from opkernel.ops.array.fill import checked_count
from opkernel.ops.array.in_place import empty
from opkernel.ops.array.unique import list_diff
from opkernel.types import DataType, TensorShape
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.op_kernel import XlaOpKernel
from opkernel.xla.register_kernel import register_xla_kernel

register_xla_kernel("Shape", metadata=True, factory=True)(cpu.shape)
register_xla_kernel("ShapeN", metadata=True, factory=True)(cpu.shape_n)
register_xla_kernel("BroadcastArgs", compile_time_constants=["s0", "s1"])(broadcast_args)
register_xla_kernel("BroadcastGradientArgs", compile_time_constants=["s0", "s1"])(
    broadcast_gradient_args
)
register_xla_kernel("ConcatOffset", compile_time_constants=["concat_dim", "shape"])(concat_offset)


@register_xla_kernel("Size", metadata=True, factory=True)
def size(*, out_type: DataType) -> Callable[[Any], Any]:
    size_of = cpu.size(out_type=out_type)
    return lambda tensor: np.asarray(size_of(tensor))


@register_xla_kernel("Rank", metadata=True)
def rank(tensor: Any) -> Any:
    return np.asarray(cpu.rank(tensor))


register_xla_kernel("Empty", compile_time_constants=["shape"], factory=True)(empty)


@register_xla_kernel("LinSpace", compile_time_constants=["num"])
def lin_space(start: Any, stop: Any, num: Any, *, xp: Any) -> Any:
    for name, value in (("start", start), ("stop", stop), ("num", num)):
        if value.ndim != 0:
            raise InvalidArgumentError(
                f"{name} must be a scalar, not shape {TensorShape(value.shape)}"
            )
    size = checked_count(num)
    if size == 1:
        return start[None]
    place = xp.arange(size)
    step = (stop - start) / (size - 1)
    between = start + step * place.astype(start.dtype)
    return xp.where(place == 0, start, xp.where(place == size - 1, stop, between))


register_xla_kernel("ListDiff", compile_time_constants=["x", "y"], factory=True)(list_diff)


class DynamicSizeOp(XlaOpKernel):
    """Operations on constants are computed before they reach a kernel."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Refuse."""
        node = self.node_def
        raise UnimplementedError(
            f"XLA cannot compile {node.op} (node {node.name!r}): the size of its output depends on the values of its "
            "inputs, which are known only when the program runs"
        )


register_xla_kernel(["Unique", "Where"])(DynamicSizeOp)
register_xla_kernel("UniqueV2", compile_time_constants=["axis"])(DynamicSizeOp)
