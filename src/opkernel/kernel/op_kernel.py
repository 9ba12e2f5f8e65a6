"""OpKernel: the implementation of an op for one node on one device.

Source: TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel.context.construction import KernelFacts
from opkernel.messages import short_repr
from opkernel.types import TensorShape

if TYPE_CHECKING:
    from opkernel.kernel.async_op_kernel import AsyncOpKernel
    from opkernel.kernel.context.op_kernel_context import OpKernelContext
    from opkernel.kernel.services.step import Step


class OpKernel(KernelFacts):
    """A kernel: constructed once for a node, then computed once a step, from many threads.

    Subclasses take an OpKernelConstruction, read their attrs from it, and override `compute`, which
    may be `async def`. A synchronous kernel never blocks on the work of another kernel: threads
    may be few, and all of them may be waiting; kernels that wait are AsyncOpKernels.

    Attributes:
        reports_by_callback: Whether errors go through a callback, as in `compute_async`.
        leaves_outputs: Whether outputs may stay unset; an eager call then gives empty tensors for them.
        provider: The name of the provider that it comes from.
        is_chosen_by_node: Whether its provider, or one asked before, looks at each node and its shapes.
    """

    reports_by_callback: ClassVar[bool] = False
    leaves_outputs: ClassVar[bool] = False
    provider: str = "numpy"
    is_chosen_by_node: bool = False

    def compute(self, ctx: OpKernelContext) -> Coroutine[Any, Any, None] | None:
        """Compute the outputs of one step from the inputs in `ctx`; may be `async def`."""
        raise NotImplementedError(
            f"{type(self).__name__} does not override compute; a kernel with compute_async is an "
            "AsyncOpKernel"
        )

    def as_async(self) -> AsyncOpKernel | None:
        """The kernel itself if it is asynchronous; None for all others."""
        return None

    def shortcut(
        self, run: Callable[[Step, Sequence[Any]], list[Any]]
    ) -> Callable[[Step, Sequence[Any]], list[Any]]:
        """A function that runs the kernel on inputs in a step: `run`, which makes a context.

        A small kernel that mostly needs no context may stand in front of it.
        """
        return run

    @property
    def is_expensive(self) -> bool:
        """Whether the kernel is worth a thread of its own; others run where they become ready.

        Views are not, and kernels of accelerators only start work there.
        """
        if self.contract.expensive is not None:
            return self.contract.expensive
        is_view = self.contract.may_alias is True
        return not is_view and self.device.device_type not in ("GPU", "DEFAULT")

    @property
    def serves_form(self) -> bool:
        """Whether it may compute all nodes of its device that differ in nothing but names and tensors."""
        return False

    @property
    def is_internal(self) -> bool:
        """Whether its op is one of the runtime, such as `_Send`: its name begins with an underscore."""
        return self.type_string.startswith("_")

    @property
    def const_tensor(self) -> Any:
        """The value of a kernel that always gives the same tensor; None for all others."""
        return None

    def make_shape(self, value: Any) -> TensorShape:
        """The shape that a vector of int32 or int64 holds (OpKernel::MakeShape).

        Raises:
            InvalidArgumentError: the value is no such vector, or holds a negative size.
        """
        array = np.asarray(value)
        if array.ndim != 1:
            raise InvalidArgumentError(
                f"shape must be a vector of {{int32,int64}}, got {short_repr(array)}"
            )
        if array.dtype not in (np.int32, np.int64):
            raise InvalidArgumentError(
                f"shape must be a vector of {{int32,int64}}, got elements of type {array.dtype}"
            )
        return TensorShape(array.tolist())

    def trace_string(self, ctx: OpKernelContext, *, verbose: bool = False) -> str:
        """The text for a profiler: `name:Op`, with the shapes of inputs if verbose."""
        name = f"{self.name}:{self.type_string}"
        return f"{name}#{self.shape_trace_string(ctx)}#" if verbose else name

    def shape_trace_string(self, ctx: OpKernelContext) -> str:
        """The types and shapes of the inputs: `shape=(float[2,3];int32[])`."""
        described = [
            f"{dtype.string}[{','.join(map(str, np.shape(value)))}]"
            for dtype, value in zip(self.input_types, ctx.inputs, strict=True)
        ]
        return f"shape=({';'.join(described)})"
