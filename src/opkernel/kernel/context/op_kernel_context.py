"""OpKernelContext: one computation of a kernel, its inputs, its outputs, its step.

Its parts stand in modules beside this one: `inputs`, `outputs` and `services`.

Source: TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.errors import InternalError, OpError, as_op_error
from opkernel.kernel.context.construction import StatusReporting
from opkernel.kernel.context.inputs import ContextParams
from opkernel.kernel.context.outputs import ContextForwarding
from opkernel.kernel.node_properties import by_arg
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.services.step import Step
from opkernel.records import replace

if TYPE_CHECKING:
    from opkernel.kernel.context.memory_record import MemoryRecord

_PARAMS = ContextParams()
_new = object.__new__


class OpKernelContext(ContextForwarding, StatusReporting):
    """The argument of `OpKernel.compute`.

    Inputs are arrays (NumPy scalars for rank 0) and are never written to, but for those that were
    forwarded. An argument is named by its flat index, or by its name in the OpDef.

    Attributes:
        kernel: The kernel that computes.
        inputs: The input tensors, flat.
        outputs: The output tensors, flat; None where they are not set yet.
        step: The step that the computation belongs to.
        params: What the executor says of this computation alone.
        memory: The record of what is allocated, where the step tracks that.
    """

    __slots__ = ("inputs", "kernel", "memory", "outputs", "params", "step")
    kernel: OpKernel

    def __init__(
        self,
        kernel: OpKernel,
        inputs: Sequence[Any],
        step: Step,
        params: ContextParams = _PARAMS,
    ) -> None:
        self.kernel = kernel
        self.inputs = inputs
        self.step = step
        self.outputs: list[Any] = [*kernel.unset_outputs]
        self.params = params
        self.memory = _new_record() if step.track_allocations or step.log_memory else None
        self.status: OpError | None = None

    @property
    def op_kernel(self) -> OpKernel:
        """The kernel that computes."""
        return self.kernel

    def run(self) -> list[Any]:
        """Compute the kernel and return its outputs, flat.

        Raises:
            OpError: as the kernel raised or recorded it.
            InternalError: the kernel left an output unset that is required.
        """
        self.kernel.compute(self)
        return self.finish()

    def finish(self) -> list[Any]:
        """The outputs of a computation that is over; raises as `run` does."""
        if self.status is not None:
            raise self.status
        for index, output in enumerate(self.outputs):
            if output is None and self.output_required(index):
                raise InternalError(f"the kernel did not set output {index}")
        return self.outputs

    def scoped_outputs(self) -> dict[int, np.ndarray[Any, Any]]:
        """The outputs that were allocated in scopes, by scope_id; those of further ones are added."""
        scoped = self.params.scoped
        if scoped is None:
            scoped = {}
            self.params = replace(self.params, scoped=scoped)
        return scoped

    def set_record_memory_consumption(self, record: bool) -> None:
        """Record temporary and persistent memory, though the step does not ask for it; or do not."""
        if record and self.memory is None:
            self.memory = _new_record()
        elif not record and not self.step.track_allocations:
            self.memory = None

    def inputs_by_arg(self) -> list[Any]:
        """The inputs, one entry an argument: a tensor, or a list of them."""
        return by_arg(self.inputs, self.kernel.properties.input_args)

    def set_outputs_by_arg(self, values: Sequence[Any]) -> None:
        """Set all outputs, one entry an argument: a tensor, or a list of them."""
        args = self.kernel.properties.output_args
        if len(values) != len(args):
            raise InternalError(f"{len(args)} outputs expected, the kernel gave {len(values)}")
        for arg, value in zip(args, values, strict=True):
            if arg.is_list:
                self.set_output_list(arg.name, value)
            else:
                self.set_output(arg.start, value)

    def match_signature(
        self, expected_inputs: Sequence[Any], expected_outputs: Sequence[Any]
    ) -> None:
        """Raise InvalidArgumentError unless the node has exactly these input and output types."""
        self.kernel.properties.match_signature(expected_inputs, expected_outputs)

    def _reports_by_callback(self) -> bool:
        return self.kernel.reports_by_callback


def _new_record() -> MemoryRecord:
    from opkernel.kernel.context.memory_record import MemoryRecord  # few steps look at memory

    return MemoryRecord()


def function_of_step(
    kernel: OpKernel,
    compute: Callable[[OpKernelContext], object] | None = None,
    params: ContextParams = _PARAMS,
) -> Callable[[Step, Sequence[Any]], list[Any]]:
    """A kernel as a function of the step and the flat inputs, which gives the outputs.

    It does what `OpKernelContext(kernel, inputs, step, params).run()` does. The constructor and `finish` are
    written out, since calling them would take a third of the time that a small kernel takes.
    `compute` stands in for the kernel's own where given.
    """
    is_own, unset_outputs = compute is None, kernel.unset_outputs
    compute = compute or kernel.compute

    def run(step: Step, inputs: Sequence[Any]) -> list[Any]:
        ctx = _new(OpKernelContext)
        ctx.kernel = kernel
        ctx.inputs = inputs
        ctx.step = step
        ctx.outputs = outputs = [*unset_outputs]
        ctx.params = params
        ctx.memory = _new_record() if step.track_allocations or step.log_memory else None
        ctx.status = None
        compute(ctx)
        if ctx.status is None:
            for output in outputs:
                if output is None:
                    break
            else:
                return outputs
        return ctx.finish()

    return kernel.shortcut(run) if is_own and kernel.contract.outputs_as_declared else run


def compute_and(
    ctx: OpKernelContext,
    compute: Callable[..., object],
    end: Callable[[], object],
    *done: Callable[[], None],
) -> None:
    """Compute, and call `end` then. With `done` it is asynchronous: an error of `end` is its status."""
    if not done:
        compute(ctx)
        end()
        return

    def finished() -> None:
        try:
            end()
        except Exception as error:  # belongs to the step
            ctx.set_status(as_op_error(error))
        done[0]()

    compute(ctx, finished)
