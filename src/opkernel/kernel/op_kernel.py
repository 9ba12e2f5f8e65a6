"""OpKernel: the implementation of an op for one node on one device.

Source: TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel.node_properties import Arg, OfNode
from opkernel.kernel.registry.memory_types import MemoryType
from opkernel.messages import shown
from opkernel.proto import NodeDef
from opkernel.records import replace
from opkernel.types import DataType, TensorShape

if TYPE_CHECKING:
    from opkernel.device.device import Device
    from opkernel.kernel.async_op_kernel import AsyncOpKernel
    from opkernel.kernel.context.construction import OpKernelConstruction
    from opkernel.kernel.context.op_kernel_context import OpKernelContext
    from opkernel.kernel.contract import KernelContract
    from opkernel.kernel.services.step import Step

__all__ = ["OpKernel"]


class OpKernel(OfNode):
    """A kernel: constructed once for a node, then computed once a step, from many threads.

    Subclasses take an OpKernelConstruction, read their attrs from it, and override `compute`, which
    may be `async def`. A synchronous kernel never blocks on the work of another kernel: threads
    may be few, and all of them may be waiting; kernels that wait are AsyncOpKernels.

    Args:
        construction: the node, device and services that the kernel is made from.
        custom_def: a node to go by instead of the graph's, for kernels that rewrite theirs.
        is_deferred: the kernel's work goes on after `compute` has returned.

    Attributes:
        forwards_inputs: The claim of that name in the contracts of all kernels of the class.
        reports_by_callback: Whether errors go through a callback, as in `compute_async`.
        leaves_outputs: Whether outputs may stay unset; an eager call then gives empty tensors for them.
        contract: The claims of the kernel.
        provider: The name of the provider that it comes from.
        node_traceback: Tells where the node was defined, if that is known.
    """

    forwards_inputs: ClassVar[bool] = False
    reports_by_callback: ClassVar[bool] = False
    leaves_outputs: ClassVar[bool] = False
    provider: str = "numpy"
    node_traceback: Callable[[], Any] | None = None

    def __init__(
        self,
        construction: OpKernelConstruction,
        *,
        custom_def: NodeDef | None = None,
        is_deferred: bool = False,
    ) -> None:
        self.properties = construction.properties
        if custom_def is not None:
            self.properties = replace(self.properties, node_def=custom_def)
        self.device: Device = construction.device
        self.input_memory_types: tuple[MemoryType, ...] = construction.input_memory_types
        self.output_memory_types: tuple[MemoryType, ...] = construction.output_memory_types
        self.graph_def_version = construction.graph_def_version
        self.contract: KernelContract = construction.contract
        if self.forwards_inputs and not self.contract.forwards_inputs:
            self.contract = replace(self.contract, forwards_inputs=True)
        self.is_deferred = is_deferred
        self.num_inputs = len(self.properties.input_types)
        self.num_outputs = len(self.properties.output_types)
        self.output_dtypes = _numpy_dtypes(self.properties.output_types)
        self.unset_outputs = _unset_outputs(self.num_outputs)

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
    def const_tensor(self) -> Any:
        """The value of a kernel that always gives the same tensor; None for all others."""
        return None

    @property
    def name(self) -> str:
        """The node's name."""
        return self.properties.node_def.name

    @property
    def type_string(self) -> str:
        """The op's name."""
        return self.properties.node_def.op

    @property
    def requested_device(self) -> str:
        """The device that the node asks for; may be partial or empty."""
        return self.properties.node_def.device

    def requested_input(self, index: int) -> str:
        """The name of the input at `index` as the node gives it."""
        return self.properties.node_def.input[index]

    def input_range(self, name: str) -> tuple[int, int]:
        """The range `[start, stop)` of the input argument `name` in the flat list of inputs."""
        return _range(self, name, self.properties.input_args, "input")

    def output_range(self, name: str) -> tuple[int, int]:
        """The range `[start, stop)` of the output argument `name` in the flat list of outputs."""
        return _range(self, name, self.properties.output_args, "output")

    def make_shape(self, value: Any) -> TensorShape:
        """The shape that a vector of int32 or int64 holds (OpKernel::MakeShape).

        Raises:
            InvalidArgumentError: the value is no such vector, or holds a negative size.
        """
        array = np.asarray(value)
        if array.ndim != 1:
            raise InvalidArgumentError(
                f"shape must be a vector of {{int32,int64}}, got {shown(array)}"
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


@lru_cache
def _numpy_dtypes(types: tuple[DataType, ...]) -> tuple[np.dtype[Any], ...]:
    return tuple([dtype.base.numpy_dtype for dtype in types])


@lru_cache
def _unset_outputs(count: int) -> tuple[None, ...]:
    return (None,) * count


def _range(kernel: OpKernel, name: str, args: tuple[Arg, ...], what: str) -> tuple[int, int]:
    for arg in args:
        if arg.name == name:
            return arg.start, arg.stop
    raise InvalidArgumentError(
        f"{kernel.type_string}: unknown {what} name {name!r}; "
        f"has {[arg.name for arg in args]} (node {kernel.name!r})",
        node=kernel.name,
        op=kernel.type_string,
    )
