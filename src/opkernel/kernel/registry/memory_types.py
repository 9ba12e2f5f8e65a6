"""Where the inputs and outputs of a node live: in the device's memory or in the host's.

Source: TensorFlow core/framework/memory_types.cc.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from opkernel.errors import InvalidArgumentError
from opkernel.kernel.registry.kernel_registry import KernelRegistry
from opkernel.kernel.registry.lookup import kernel_def_if_available
from opkernel.opdef import OpRegistryInterface, in_out_types_for_node, name_ranges_for_node
from opkernel.opdef import text as summaries
from opkernel.proto import NodeDef
from opkernel.types import DataType

__all__ = ["MemoryType", "memory_types_for_node", "mtype_from_dtype"]


class MemoryType(IntEnum):
    """The memory of a tensor that passes between kernels."""

    DEVICE_MEMORY = 0
    HOST_MEMORY = 1


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


def memory_types_for_node(
    op_registry: OpRegistryInterface,
    device_type: str,
    node_def: NodeDef,
    *,
    registry: KernelRegistry | None = None,
) -> tuple[list[MemoryType], list[MemoryType]]:
    """The memory types of the flat lists of a node's inputs and outputs.

    The kernel's HostMemory arguments, types that always live on the host, and the indices in the
    attrs `_input_hostmem` and `_output_hostmem` are in host memory; all else is in the device's.
    A node without a kernel, and a function call, is judged by its types alone.

    Raises:
        NotFoundError: the op is not registered, or the node lacks an attr.
        InvalidArgumentError: the kernel names HostMemory arguments that the op does not have.
    """
    op_def = op_registry.look_up_op_def(node_def.op)
    dtypes = in_out_types_for_node(node_def, op_def)
    kernel_def = None
    if node_def.op not in _FUNCTION_CALL_OPS:
        kernel_def = kernel_def_if_available(device_type, node_def, registry=registry)
    int32_on_device = kernel_def is not None or device_type == "TPU" or _must_compile(node_def)
    inputs, outputs = (
        [mtype_from_dtype(dtype, int32_on_device=int32_on_device) for dtype in side]
        for side in dtypes
    )
    if kernel_def is not None and kernel_def.host_memory_arg:
        input_ranges, output_ranges = name_ranges_for_node(node_def, op_def)
        args = kernel_def.host_memory_arg
        unknown = [arg for arg in args if arg not in input_ranges and arg not in output_ranges]
        if unknown:
            raise InvalidArgumentError(
                f"HostMemory args {', '.join(map(repr, unknown))} not found in OpDef: "
                f"{summaries.summarize_op_def(op_def)}"
            )
        _put_on_host(inputs, _indices(args, input_ranges))
        _put_on_host(outputs, _indices(args, output_ranges))
    _put_on_host(inputs, _listed(node_def, "_input_hostmem"))
    _put_on_host(outputs, _listed(node_def, "_output_hostmem"))
    return inputs, outputs


def _must_compile(node_def: NodeDef) -> bool:
    """Whether the node asks to be compiled by XLA."""
    return "_XlaMustCompile" in node_def.attr and node_def.attr["_XlaMustCompile"].b


def _listed(node_def: NodeDef, attr: str) -> Sequence[int]:
    """The ints of a `list(int)` attr; none where the node lacks it or it is of another type."""
    return list(node_def.attr[attr].list.i) if attr in node_def.attr else []


def _indices(args: Iterable[str], ranges: Mapping[str, tuple[int, int]]) -> list[int]:
    """The flat indices of the arguments that are in `ranges`."""
    return [index for arg in args if arg in ranges for index in range(*ranges[arg])]


def _put_on_host(memory_types: list[MemoryType], indices: Iterable[int]) -> None:
    """Set the memory types at the indices to host memory; indices out of range are ignored."""
    for index in indices:
        if 0 <= index < len(memory_types):
            memory_types[index] = MemoryType.HOST_MEMORY
