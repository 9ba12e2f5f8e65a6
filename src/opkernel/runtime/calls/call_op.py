"""CallOp: the kernel of a node whose op is a function.

Executors call functions themselves; this kernel is for callers that ask for the kernel of any node.

Source: CallOp in TensorFlow core/common_runtime/function.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

from opkernel.errors import OpError
from opkernel.kernel import (
    AsyncOpKernel,
    FunctionRunOptions,
    MemoryType,
    NodeProperties,
    OpKernelConstruction,
    OpKernelContext,
)
from opkernel.kernel.registry.memory_types import MemoryTypes, mtype_from_dtype
from opkernel.proto import NodeDef
from opkernel.runtime.calls.instantiated_function import InstantiatedFunction
from opkernel.runtime.program.kernels import version_of
from opkernel.types import DataType


class CallOp(AsyncOpKernel):
    """Runs a function as part of the step that it is computed in."""

    def __init__(self, construction: OpKernelConstruction, handle: InstantiatedFunction) -> None:
        super().__init__(construction)
        self._handle = handle

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the function on the thread that calls."""
        ctx.outputs[:] = self._handle(ctx.step, *ctx.inputs)

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        """Run the function on another thread."""

        def finish(error: OpError | None, results: Sequence[Any]) -> None:
            if error is not None:
                ctx.set_status(error)
            else:
                ctx.outputs[:] = results
            done()

        options = FunctionRunOptions(step=ctx.step)
        self._handle.runtime.run_async(options, self._handle, ctx.inputs, finish)


def create_call_op(handle: InstantiatedFunction, node_def: NodeDef) -> CallOp:
    """The kernel that calls a function for a node of its name."""
    runtime, body = handle.runtime, handle.body
    properties = NodeProperties.of(
        node_def, body.function_def.signature, body.arg_types, body.ret_types
    )
    construction = OpKernelConstruction(
        runtime.device,
        properties,
        MemoryTypes(_memory_types(body.arg_types), _memory_types(body.ret_types)),
        version_of(runtime.graph_def_version),
        runtime,
    )
    return CallOp(construction, handle)


def _memory_types(types: Sequence[DataType]) -> tuple[MemoryType, ...]:
    """Functions take and give int32 tensors, and tensors that no device can hold, on the host."""
    return tuple([mtype_from_dtype(dtype) for dtype in types])
