"""Kernels whose outputs are slices of a scoped allocator's array, or stay in the memory of an input.

Attrs of nodes ask for it. TensorFlow's ScopedAllocatorOptimizer sets them: `_scoped_allocator` has pairs of an
output and a scope_id, `_forward_input` pairs of an input and an output. An output that its kernel does not
allocate in this place is copied there, so that any kernel will do.

Source: TensorFlow core/common_runtime/graph_view.cc, OpKernelContext::set_output in
core/framework/op_kernel.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opkernel.device.allocator_attributes import AllocatorAttributes
from opkernel.errors import InvalidArgumentError, as_op_error
from opkernel.kernel.context.op_kernel_context import OpKernelContext
from opkernel.kernel.context.params import NEVER_FORWARD, NO_RESERVATION
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry.memory_types import MemoryType
from opkernel.kernel.stand_in import AsyncStandIn, StandIn
from opkernel.proto import NodeDef
from opkernel.records import replace


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
    places = _Places(kernel, scopes, kept)
    is_async = kernel.as_async() is not None
    return (_AsyncScoped if is_async else _Scoped)(kernel, places)


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


class _Scoped(StandIn):
    def __init__(self, kernel: OpKernel, places: _Places) -> None:
        super().__init__(kernel)
        self._places = places

    @property
    def const_tensor(self) -> Any:
        """None: the tensor is to be in its place at each step."""
        return None

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.kernel = self.kernel
        self._places.tell(ctx)
        self.kernel.compute(ctx)
        self._places.put(ctx)


class _AsyncScoped(AsyncStandIn):
    def __init__(self, kernel: OpKernel, places: _Places) -> None:
        super().__init__(kernel)
        self._places = places

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        ctx.kernel = self.kernel
        self._places.tell(ctx)

        def finish() -> None:
            try:
                self._places.put(ctx)
            except Exception as error:  # belongs to the step
                ctx.set_status(as_op_error(error))
            done()

        self.kernel.compute_async(ctx, finish)
