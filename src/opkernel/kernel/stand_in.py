"""Kernels that do more than their own computation: into memory that attrs name, or by way of their device.

`StandIn` takes the place of a kernel for executors, which then compute it in one way only: with a context. Executors call
kernels in many ways, functions directly where they can. `create_op_kernel` puts stand-ins before the kernels of devices
that override `compute`; other devices cost nothing.

Scoped outputs are slices of a scoped allocator's array, or stay in the memory of an input, as attrs of the node ask.
TensorFlow's ScopedAllocatorOptimizer sets the attrs: `_scoped_allocator` has pairs of an output and a scope_id,
`_forward_input` pairs of an input and an output. An output that its kernel does not allocate in this place is copied
there, so that any kernel will do.

Source: Device::Compute in TensorFlow core/common_runtime/device.h, graph_view.cc; OpKernelContext::set_output in
core/framework/op_kernel.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from opkernel.device.local_device import AllocatorAttributes
from opkernel.errors import InvalidArgumentError
from opkernel.kernel.async_op_kernel import AsyncOpKernel
from opkernel.kernel.context.inputs import NEVER_FORWARD, NO_RESERVATION
from opkernel.kernel.context.op_kernel_context import OpKernelContext, compute_and
from opkernel.kernel.node_properties import MemoryType
from opkernel.kernel.op_kernel import OpKernel
from opkernel.proto import NodeDef
from opkernel.records import replace


class StandIn(OpKernel):
    """A kernel that executors call in the place of another, which its device computes; the other's facts are its own.

    A stand-in has no function, so it makes no claim that only calls of functions rely on.

    Attributes:
        passes_constant_on: Whether executors may take the tensor of a kernel that always gives the same one.
    """

    passes_constant_on = True

    def __init__(self, kernel: OpKernel) -> None:
        self.kernel = kernel
        self.contract = replace(
            kernel.contract, elementwise=False, same_shapes=False, takes_out=False
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    @property
    def provider(self) -> str:  # type: ignore[override]  # the kernel's own
        """The name of the provider that the kernel comes from."""
        return self.kernel.provider

    @property
    def node_traceback(self) -> Callable[[], Any] | None:
        """Where the node was defined, if known."""
        return self.kernel.node_traceback

    @node_traceback.setter
    def node_traceback(self, find: Callable[[], Any] | None) -> None:
        self.kernel.node_traceback = find

    @property
    def is_expensive(self) -> bool:
        """Whether the kernel is worth a thread of its own."""
        return self.kernel.is_expensive

    @property
    def const_tensor(self) -> Any:
        """The value of a kernel that always gives the same tensor, without a computation."""
        return self.kernel.const_tensor if self.passes_constant_on else None

    def compute(self, ctx: OpKernelContext) -> None:
        """Have the device compute the kernel."""
        ctx.kernel = self.kernel
        self.device.compute(self.kernel, ctx)

    def trace_string(self, ctx: OpKernelContext, *, verbose: bool = False) -> str:
        """The description of a computation in a profile."""
        return self.kernel.trace_string(ctx, verbose=verbose)


class AsyncStandIn(StandIn, AsyncOpKernel):
    """A stand-in for an asynchronous kernel."""

    compute = AsyncOpKernel.compute

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        """Have the device start the kernel."""
        ctx.kernel = self.kernel
        self.device.compute_async(self.kernel, ctx, done)


def stand_in_for(kernel: OpKernel) -> StandIn:
    """A stand-in for a kernel; one that is a stand-in already is its own."""
    if isinstance(kernel, StandIn):
        return kernel
    return StandIn(kernel) if kernel.as_async() is None else AsyncStandIn(kernel)


def with_scoped_outputs(kernel: OpKernel) -> OpKernel:
    """The stand-in for a kernel whose node has one of these attrs; else the kernel itself.

    Raises:
        InvalidArgumentError: an attr holds no pairs, or names an input or output that does not exist.
    """
    node, outputs, inputs = kernel.node_def, kernel.num_outputs, kernel.num_inputs
    scopes = _pairs(node, "_scoped_allocator", outputs, None)
    kept = {to: given for given, to in _pairs(node, "_forward_input", inputs, outputs).items()}
    if not scopes and not kept:
        return kernel
    stand_in = stand_in_for(kernel)
    stand_in.passes_constant_on = False  # the tensor is to be in its place at each step
    places = _Places(kernel, scopes, kept)
    name = "compute" if kernel.as_async() is None else "compute_async"
    compute = getattr(stand_in, name)

    def compute_scoped(ctx: OpKernelContext, *done: Callable[[], None]) -> None:
        places.tell(ctx)
        compute_and(ctx, compute, partial(places.put, ctx), *done)

    vars(stand_in)[name] = compute_scoped
    return stand_in


def _pairs(node: NodeDef, attr: str, firsts: int, seconds: int | None) -> dict[int, int]:
    """The pairs that an attr holds; their parts are less than these numbers."""
    values = list(node.attr[attr].list.i) if attr in node.attr else []
    pairs = dict(zip(values[::2], values[1::2], strict=False))
    is_right = len(values) == 2 * len(pairs) and all(
        0 <= first < firsts and second >= 0 and (seconds is None or second < seconds)
        for first, second in pairs.items()
    )
    if not is_right:
        raise InvalidArgumentError(
            f"the attr {attr} must hold pairs of numbers of the node, and holds {values}",
            node=node.name,
            op=node.op,
        )
    return pairs


class _Places:
    """Where the outputs of a node are to be.

    Args:
        kernel: Its kernel.
        scopes: The scope_id of each output that is in a scope.
        kept: For each output that stays in the memory of an input, that input.
    """

    def __init__(
        self, kernel: OpKernel, scopes: Mapping[int, int], kept: Mapping[int, int]
    ) -> None:
        self._scopes, self._kept = scopes, kept
        self._attrs = [
            AllocatorAttributes(on_host=kind is MemoryType.HOST_MEMORY, scope_id=scopes.get(i, 0))
            for i, kind in enumerate(kernel.output_memory_types)
        ]
        self._forward_from = [
            NEVER_FORWARD if i in scopes else NO_RESERVATION for i in range(kernel.num_outputs)
        ]

    def tell(self, ctx: OpKernelContext) -> None:
        """Tell a computation where its outputs are to be."""
        if self._scopes:
            ctx.params = replace(
                ctx.params,
                output_attr_array=self._attrs,
                forward_from=self._forward_from,
                scoped={},
            )

    def put(self, ctx: OpKernelContext) -> None:
        """Copy the outputs that a kernel has set to their places, unless they are there already.

        Raises:
            InternalError, ResourceExhaustedError: as `allocate_output`.
        """
        if ctx.status is not None:
            return
        for index in self._scopes:
            ctx.outputs[index] = self._in_scope(ctx, index)
        for index, given in self._kept.items():
            ctx.outputs[index] = _in_place(ctx, ctx.inputs[given], ctx.outputs[index])

    def _in_scope(self, ctx: OpKernelContext, index: int) -> Any:
        output, place = ctx.outputs[index], (ctx.params.scoped or {}).get(self._scopes[index])
        if output is None or output is place:
            return output
        if place is None:
            place = ctx.allocate_output(index, np.shape(output))
        np.copyto(place, output)
        return place


def _in_place(ctx: OpKernelContext, given: Any, output: Any) -> Any:
    """An output in the memory of an input, if that is a scoped allocator's array: no other is written to."""
    mgr = ctx.device.scoped_allocator_mgr
    if mgr is None or output is None or not isinstance(given, np.ndarray):
        return output
    backing = mgr.backing_of(ctx.step_id, given)
    if backing is None or np.shape(output) != given.shape or not given.flags.c_contiguous:
        return output
    start = given.ctypes.data - backing.ctypes.data
    memory = backing.reshape(-1).view(np.uint8)[start : start + given.nbytes]
    place = memory.view(given.dtype).reshape(given.shape)
    np.copyto(place, output)
    return place
