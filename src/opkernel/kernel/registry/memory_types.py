"""Where the inputs and outputs of a node live: in the device's memory or in the host's.

Source: TensorFlow core/framework/memory_types.cc.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from opkernel.errors import InvalidArgumentError
from opkernel.kernel.node_properties import Arg, NodeProperties
from opkernel.opdef import text as summaries
from opkernel.proto import KernelDef, NodeDef
from opkernel.types import DataType


class MemoryType(IntEnum):
    """The memory of a tensor that passes between kernels."""

    DEVICE_MEMORY = 0
    HOST_MEMORY = 1


class MemoryTypes(NamedTuple):
    """The memory types of the flat lists of a node's inputs and outputs."""

    inputs: tuple[MemoryType, ...]
    outputs: tuple[MemoryType, ...]


_FUNCTION_CALL_OPS = frozenset(
    {"SymbolicGradient", "PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile"}
)
"""Ops that run a function: its body, not their kernel, decides where integers live."""


def mtype_from_dtype(dtype: DataType, *, int32_on_device: bool = False) -> MemoryType:
    """Where tensors of a type live unless a kernel says otherwise.

    Strings and resources live on the host for every device. So does int32, which mostly holds
    shapes and indices, unless `int32_on_device`.
    """
    on_host = dtype.always_on_host or (dtype is DataType.DT_INT32 and not int32_on_device)
    return MemoryType.HOST_MEMORY if on_host else MemoryType.DEVICE_MEMORY


def memory_types(
    node: NodeProperties, device_type: str, kernel_def: KernelDef | None
) -> MemoryTypes:
    """The memory types of a node on a device, given its kernel.

    The kernel's HostMemory arguments, types that always live on the host, and the indices in the
    attrs `_input_hostmem` and `_output_hostmem` are in host memory; all else is in the device's.
    A node without a kernel, and a function call, is judged by its types alone.

    Raises:
        InvalidArgumentError: the kernel names HostMemory arguments that the op does not have.
    """
    node_def = node.node_def
    if node_def.op in _FUNCTION_CALL_OPS:
        kernel_def = None
    named = () if kernel_def is None else kernel_def.host_memory_arg
    known = {arg.name for arg in (*node.input_args, *node.output_args)}
    unknown = [name for name in named if name not in known]
    if unknown:
        raise InvalidArgumentError(
            f"HostMemory args {', '.join(map(repr, unknown))} not found in OpDef: "
            f"{summaries.summarize_op_def(node.op_def)}"
        )
    int32_on_device = kernel_def is not None or device_type == "TPU" or _must_compile(node_def)

    def of(types: Iterable[DataType], args: Iterable[Arg], attr: str) -> tuple[MemoryType, ...]:
        on_host = {*node_def.attr[attr].list.i} if attr in node_def.attr else set()
        for arg in args:
            if arg.name in named:
                on_host.update(range(arg.start, arg.stop))
        return tuple(
            [
                MemoryType.HOST_MEMORY
                if index in on_host
                else mtype_from_dtype(dtype, int32_on_device=int32_on_device)
                for index, dtype in enumerate(types)
            ]
        )

    inputs = of(node.input_types, node.input_args, "_input_hostmem")
    return MemoryTypes(inputs, of(node.output_types, node.output_args, "_output_hostmem"))


def _must_compile(node_def: NodeDef) -> bool:
    """Whether the node asks to be compiled by XLA."""
    return "_XlaMustCompile" in node_def.attr and node_def.attr["_XlaMustCompile"].b
