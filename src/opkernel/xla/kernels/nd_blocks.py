"""Tensors cut into blocks along all dimensions, and put together again: XlaSplitND, XlaConcatND, and those of variables.

Source: TensorFlow compiler/tf2xla/kernels/sharding_util_ops.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.op_kernel import XlaOpKernel
from opkernel.xla.register_kernel import register_xla_kernel


class _Grid:
    """How many blocks there are along each dimension, and how much padding lies behind all.

    Raises:
        InvalidArgumentError: the numbers make no sense.
    """

    def __init__(self, count: int, counts: Sequence[int], paddings: Sequence[int]) -> None:
        self.counts = list(counts)
        self.paddings = list(paddings) or [0] * len(self.counts)
        if min(self.counts, default=1) < 1 or math.prod(self.counts) != count:
            raise InvalidArgumentError(
                f"{self.counts} blocks along dimensions are not {count} in all"
            )
        if len(self.paddings) != len(self.counts) or min(self.paddings, default=0) < 0:
            raise InvalidArgumentError(
                f"paddings must be {len(self.counts)} numbers from 0 on, and are {self.paddings}"
            )

    def split(self, tensor: Any) -> list[Any]:
        """The blocks, row by row; the padding is zeros."""
        self._check_rank(tensor)
        pairs = list(zip(self.counts, tensor.shape, self.paddings, strict=True))
        if any((size + padding) % count for count, size, padding in pairs):
            raise InvalidArgumentError(
                f"{list(tensor.shape)} with paddings {self.paddings} cannot be cut into {self.counts}"
            )
        padded = jnp().pad(tensor, [(0, padding) for padding in self.paddings])
        sizes = [(size + padding) // count for count, size, padding in pairs]
        both = [each for pair in zip(self.counts, sizes, strict=True) for each in pair]
        rank = len(sizes)
        order = [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]
        return list(padded.reshape(both).transpose(order).reshape(-1, *sizes))

    def joined(self, blocks: Sequence[Any]) -> Any:
        """The tensor without its padding."""
        self._check_rank(blocks[0])
        shapes = {tuple(block.shape) for block in blocks}
        if len(shapes) > 1:
            raise InvalidArgumentError(f"All blocks must have one shape, not {sorted(shapes)}")
        rank, (sizes,) = len(self.counts), shapes
        order = [
            axis for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for axis in pair
        ]
        whole = [count * size for count, size in zip(self.counts, sizes, strict=True)]
        tensor = jnp().stack(blocks).reshape(*self.counts, *sizes).transpose(order).reshape(whole)
        kept = [size - padding for size, padding in zip(whole, self.paddings, strict=True)]
        if min(kept, default=0) < 0:
            raise InvalidArgumentError(f"paddings {self.paddings} are more than {whole} has")
        return tensor[tuple(map(slice, kept))]

    def _check_rank(self, tensor: Any) -> None:
        if tensor.ndim != len(self.counts):
            raise InvalidArgumentError(
                f"{self.counts} blocks do not fit a tensor of the shape {list(tensor.shape)}"
            )


@register_xla_kernel("XlaSplitND", factory=True)
def xla_split_nd(*, N: int, num_splits: list[int], paddings: list[int]) -> Callable[[Any], Any]:
    return _Grid(N, num_splits, paddings).split


@register_xla_kernel("XlaConcatND", factory=True)
def xla_concat_nd(*, N: int, num_concats: list[int], paddings: list[int]) -> Callable[[Any], Any]:
    return _Grid(N, num_concats, paddings).joined


class _GridOp(XlaOpKernel):
    """A kernel of a variable and its blocks."""

    counts: str

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        attrs = (construction.get_attr(name) for name in ("N", self.counts, "paddings"))
        self.grid = _Grid(*attrs)


@register_xla_kernel("ReadVariableXlaSplitND", resources=True)
class ReadVariableXlaSplitNDOp(_GridOp):
    """The blocks of a variable."""

    counts = "num_splits"

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set them."""
        value = ctx.resource(0).read(self.output_types[0])
        ctx.outputs[:] = self.grid.split(jnp().asarray(value))


@register_xla_kernel("AssignVariableXlaConcatND", resources=True)
class AssignVariableXlaConcatNDOp(_GridOp):
    """A variable gets the tensor that blocks make up."""

    counts = "num_concats"

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set its value."""
        ctx.resource(0).assign(self.input_types[1], self.grid.joined(ctx.input_list("inputs")))
