"""Facts that an executor tells one computation beyond its inputs and its step; mostly none.

Source: OpKernelContext::Params in TensorFlow core/framework/op_kernel.h.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.device.allocator_attributes import AllocatorAttributes
from opkernel.records import dataclass

NEVER_FORWARD = -2
"""In `forward_from`: the output is always allocated."""

NO_RESERVATION = -1
"""In `forward_from`: no input is reserved for the output."""


@dataclass(frozen=True, slots=True)
class FrameAndIter:
    """Where in the loops of a graph a computation stands.

    Attributes:
        frame_id: The frame: one execution of one loop.
        iter_id: The iteration of the loop.
    """

    frame_id: int = 0
    iter_id: int = 0


@dataclass(slots=True)
class ContextParams:
    """The particulars of one computation.

    Attributes:
        frame_iter: Where in the graph's loops it stands.
        is_input_dead: An input is dead; only ops of control flow are run then.
        input_alloc_attrs: Where the inputs were allocated.
        output_attr_array: Where the outputs are to be allocated.
        forward_from: For each output the input that is reserved for it, `NO_RESERVATION`, or
            `NEVER_FORWARD`.
        scoped: The outputs that were allocated in scopes, by scope_id.
        outputs_required: For each output whether it must be set; all must if None.
        op_device_context: The device's own data for running the kernel, if not the device's default.
        input_device_contexts: The device context of each input's producer; the kernel's own if None.
        stack_trace: Where the node was defined.
        inc_num_deferred_ops_function: Called by deferred kernels before their work begins.
        dec_num_deferred_ops_function: Called by deferred kernels when their work is done.
    """

    frame_iter: FrameAndIter = FrameAndIter()
    is_input_dead: bool = False
    input_alloc_attrs: Sequence[AllocatorAttributes] | None = None
    output_attr_array: Sequence[AllocatorAttributes] | None = None
    forward_from: Sequence[int] | None = None
    scoped: dict[int, np.ndarray[Any, Any]] | None = None
    outputs_required: Sequence[bool] | None = None
    op_device_context: Any = None
    input_device_contexts: Sequence[Any] | None = None
    stack_trace: Any = None
    inc_num_deferred_ops_function: Callable[[], None] | None = None
    dec_num_deferred_ops_function: Callable[[], None] | None = None
