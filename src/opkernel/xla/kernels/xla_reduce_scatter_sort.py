"""XlaReduce, XlaReduceWindow, XlaScatter, XlaVariadicSort and their kin: what functions of scalars say is done to tensors.

Source: TensorFlow compiler/tf2xla/kernels/xla_reduce_op.cc, reduce_window_op.cc, gather_scatter_ops.cc,
select_and_scatter_op.cc, sort_ops.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.ops.declared.xla import dimension_numbers as fields_of
from opkernel.xla.context import XlaOpKernel, XlaOpKernelContext
from opkernel.xla.jax_numpy import jax, jnp, lax
from opkernel.xla.kernels.xla_slice_pad_gather import index_vectors
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.resource import XlaResource

_Function = Callable[..., tuple[Any, ...]]
_WINDOW = ("window_dimensions", "window_strides", "padding")
_WINDOW_AND_GAPS = (*_WINDOW, "base_dilations", "window_dilations")
"""Inputs that must be known at compile time, in the order of `lax.reduce_window`."""


class _OfFunctions(XlaOpKernel):
    """A kernel whose attrs are functions of scalars."""

    def function(self, ctx: XlaOpKernelContext, attr: str) -> _Function:
        """The function of an attr; it takes scalars of the program and gives a tuple of them."""
        named = self.node_def.attr[attr].func
        nowhere = XlaResource(f"generator of random numbers in {attr!r}")  # has no value
        return lambda *scalars: tuple(
            map(jnp().asarray, ctx.call_function(named, scalars, nowhere))
        )

    def numbers(self, ctx: XlaOpKernelContext, names: Sequence[str]) -> list[list[Any]]:
        """The values of inputs that must be known at compile time."""
        return [ctx.constant_input(name).tolist() for name in names]


@register_xla_kernel(["XlaReduce", "XlaVariadicReduce", "XlaVariadicReduceV2"])
class XlaReduceOp(_OfFunctions):
    """The elements along dimensions are put together, by twos."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the results, one for each tensor."""
        count, reducer = ctx.num_outputs, self.function(ctx, "reducer")
        dims = list(self.node_def.attr["dimensions_to_reduce"].list.i)
        tensors = [ctx.input(place) for place in range(2 * count)]
        for start in tensors[count:]:
            if start.ndim:
                raise InvalidArgumentError(
                    f"The value to start with must be a scalar, its shape is {list(start.shape)}"
                )
        ctx.outputs[:] = lax().reduce(
            tuple(tensors[:count]), tuple(tensors[count:]), lambda x, y: reducer(*x, *y), dims
        )


@register_xla_kernel("XlaReduceWindow", compile_time_constants=_WINDOW_AND_GAPS)
class XlaReduceWindowOp(_OfFunctions):
    """The elements of each window are put together, by twos."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the result."""
        computation = self.function(ctx, "computation")
        operand, start = ctx.input("input"), ctx.input("init_value")
        window = self.numbers(ctx, _WINDOW_AND_GAPS)
        result = lax().reduce_window(operand, start, lambda x, y: computation(x, y)[0], *window)
        ctx.set_output(0, result)


@register_xla_kernel("XlaSelectAndScatter", compile_time_constants=_WINDOW)
class XlaSelectAndScatterOp(_OfFunctions):
    """One element of each window is selected, and a number goes to its place: the gradient of pooling."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the result, which has the shape of the operand."""
        operand, source = ctx.input("operand"), ctx.input("source")
        places = self._selected(ctx, operand)
        if places.shape != source.shape:
            raise InvalidArgumentError(
                f"source must have a number for each window {list(places.shape)}, its shape is "
                f"{list(source.shape)}"
            )
        scatter, values = self.function(ctx, "scatter"), source.reshape(-1)
        places = places.reshape(-1)

        def turn(i: Any, result: Any) -> Any:
            (new,) = scatter(result[places[i]], values[i])
            return result.at[places[i]].set(new, mode="drop")

        start = jnp().full(operand.size, ctx.input("init_value"), operand.dtype)
        result = lax().fori_loop(0, len(values), turn, start)
        ctx.set_output(0, result.reshape(operand.shape))

    def _selected(self, ctx: XlaOpKernelContext, operand: Any) -> Any:
        """For each window, the place of the element that is selected among all elements; none in the padding."""
        select, nowhere = self.function(ctx, "select"), operand.size

        def better(one: Any, other: Any) -> Any:
            is_first = select(one[0], other[0])[0]
            takes_first = (other[1] == nowhere) | ((one[1] != nowhere) & is_first)
            return tuple(jnp().where(takes_first, x, y) for x, y in zip(one, other, strict=True))

        places = jnp().arange(operand.size, dtype="int32").reshape(operand.shape)
        start = jnp().zeros((), operand.dtype), jnp().int32(nowhere)
        window = self.numbers(ctx, _WINDOW)
        _, found = lax().reduce_window((operand, places), start, better, *window)
        return found


@register_xla_kernel("XlaScatter")
class XlaScatterOp(_OfFunctions):
    """Blocks of a tensor are put together with updates, one after the other; those out of bounds are left out."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the tensor with all updates."""
        serialized = self.node_def.attr["dimension_numbers"].s
        numbers = fields_of(serialized.decode("utf-8", "surrogateescape"), "dimension numbers")
        if numbers[5] or numbers[6]:
            raise UnimplementedError("XlaScatter is not compiled with dimensions that are batches")
        operand, updates = ctx.input("operand"), ctx.input("updates")
        vector_dim = numbers[4][0] if numbers[4] else 0
        vectors = index_vectors(ctx.input("scatter_indices"), vector_dim)
        windows, inserted, places = numbers[1], numbers[2], numbers[3]
        outer = [dim for dim in range(updates.ndim) if dim not in windows]
        inner = iter(updates.shape[dim] for dim in windows)
        sizes = [1 if dim in inserted else next(inner) for dim in range(operand.ndim)]
        blocks = updates.transpose([*outer, *windows]).reshape(-1, *sizes)
        starts = jnp().zeros((len(blocks), operand.ndim), vectors.dtype)
        starts = starts.at[:, jnp().asarray(places)].set(vectors.reshape(len(blocks), -1))
        ctx.set_output(0, self._with_blocks(ctx, operand, starts, blocks))

    def _with_blocks(self, ctx: XlaOpKernelContext, operand: Any, starts: Any, blocks: Any) -> Any:
        combine = jax().vmap(self.function(ctx, "update_computation"))
        sizes = blocks.shape[1:]
        room = jnp().asarray(operand.shape) - jnp().asarray(sizes)

        def turn(i: Any, result: Any) -> Any:
            start = list(starts[i])
            old = lax().dynamic_slice(result, start, sizes)
            (new,) = combine(old.reshape(-1), blocks[i].reshape(-1))
            is_inside = ((starts[i] >= 0) & (starts[i] <= room)).all()
            block = jnp().where(is_inside, new.reshape(sizes), old)
            return lax().dynamic_update_slice(result, block, start)

        return (
            lax().fori_loop(0, len(blocks), turn, operand) if math.prod(blocks.shape) else operand
        )


@register_xla_kernel("XlaSort")
def xla_sort(input: Any) -> Any:
    """Along the last dimension, the least first."""
    return lax().sort(input)


@register_xla_kernel("XlaKeyValueSort")
def xla_key_value_sort(keys: Any, values: Any) -> Any:
    """Keys along the last dimension, the least first, and the values in the order of their keys."""
    return lax().sort((keys, values), num_keys=1)


@register_xla_kernel("XlaVariadicSort", compile_time_constants=["dimension"])
class XlaVariadicSortOp(_OfFunctions):
    """Tensors along a dimension, in the order that a comparator says; equal ones keep theirs."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the tensors; each element is compared with each."""
        tensors = [ctx.input(place) for place in range(ctx.num_outputs)]
        dim = ctx.constant_input_as_int("dimension")
        rows = [jnp().moveaxis(tensor, dim, -1) for tensor in tensors]
        order = jnp().argsort(self._ranks(ctx, rows), axis=-1)
        ctx.outputs[:] = [
            jnp().moveaxis(jnp().take_along_axis(row, order, axis=-1), -1, dim) for row in rows
        ]

    def _ranks(self, ctx: XlaOpKernelContext, rows: Sequence[Any]) -> Any:
        """How many elements of its row go before each."""
        pairs = [
            side.reshape(-1)
            for row in rows
            for side in jnp().broadcast_arrays(row[..., :, None], row[..., None, :])
        ]
        shape = (*rows[0].shape, rows[0].shape[-1])
        (goes_first,) = jax().vmap(self.function(ctx, "comparator"))(*pairs)
        before = goes_first.reshape(shape)  # [..., i, j]: whether element i goes before j
        is_tie = ~before & ~before.swapaxes(-1, -2)
        earlier = jnp().arange(shape[-1])[:, None] < jnp().arange(shape[-1])
        return (before | (is_tie & earlier)).sum(axis=-2)
