"""Host and device memory in a graph: where they meet, and the copies between them.

On devices with memory of their own, a kernel that wants a tensor in the device's memory cannot use a
tensor in host memory; nor the other way round. `ensure_memory_types` puts a pair of nodes between: one
sends the tensor from its memory, the other receives the tensor in the wanted memory.

Functions take the kernel registry to look in; None stands for the global one.
Source: TensorFlow core/common_runtime/memory_types.cc.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from opkernel.device.device_factory import has_own_memory
from opkernel.errors import InternalError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.kernel import KernelRegistry, MemoryType, memory_types_for_node
from opkernel.opdef import format_node_def_for_error

_FIRST_NODE_ID = 2  # TensorFlow numbers the nodes of a graph after its source and its sink
_tensor_numbers = itertools.count()


class _Mismatch(NamedTuple):
    """An input that is wanted in other memory than its tensor is in."""

    op: Operation
    input_index: int
    tensor: Tensor
    is_in: MemoryType
    wanted_in: MemoryType


def memory_type_for_output(
    device_type: str, op: Operation, index: int, *, registry: KernelRegistry | None = None
) -> MemoryType:
    """The memory that an output of an operation is in, on a device of a type.

    Raises:
        InternalError: there is no such output.
        InvalidArgumentError: as `memory_types_for_node` does.
    """
    _, outputs = memory_types_on(device_type, op, registry)
    if not 0 <= index < len(outputs):
        raise InternalError(
            f"Trying to get the memory type for {index}'th output of node "
            f"{format_node_def_for_error(op.node_def)} that has only {len(outputs)} outputs"
        )
    return outputs[index]


def validate_memory_types(
    device_type: str, graph: Graph, *, registry: KernelRegistry | None = None
) -> None:
    """Check that each tensor of a graph is in the memory in which it is wanted.

    Raises:
        InternalError: one is not.
        InvalidArgumentError: as `memory_types_for_node` does.
    """
    for op, index, tensor, is_in, wanted_in in _mismatches(device_type, graph, registry):
        ids = {o: i for i, o in enumerate(graph.get_operations(), _FIRST_NODE_ID)}
        raise InternalError(
            f"Memory type mismatch ({is_in:d} {wanted_in:d}) between "
            f":{ids[tensor.op]}:{tensor.value_index} and {ids[op]}:{index} : "
            f"from {format_node_def_for_error(tensor.op.node_def)} "
            f"to {format_node_def_for_error(op.node_def)}"
        )


def ensure_memory_types(
    device_type: str,
    device_name: str,
    graph: Graph,
    *,
    registry: KernelRegistry | None = None,
    tensor_numbers: Iterator[int] = _tensor_numbers,
) -> None:
    """Copy tensors of a graph to where they are wanted, so that `validate_memory_types` passes.

    A tensor is copied once however many inputs want it.

    Args:
        device_type: the type of the device that runs the graph.
        device_name: its name.
        graph: gets the nodes that send and receive.
        registry: the kernels.
        tensor_numbers: gives each copy a number that is part of its key in the rendezvous; by
            default one that no other has in this process.

    Raises:
        InternalError: a node that sends or receives wants its tensor elsewhere.
        InvalidArgumentError: a reference would have to be sent; or as `memory_types_for_node` does.
        FailedPreconditionError: the graph is finalized.
    """
    received: dict[Tensor, Tensor] = {}
    for mismatch in list(_mismatches(device_type, graph, registry)):
        tensor = mismatch.tensor
        copy = received.get(tensor)
        if copy is None:
            key = f"memtype_{next(tensor_numbers)}_{tensor.op.name}"
            copy = received[tensor] = _send_and_receive(graph, mismatch, key, device_name)
        mismatch.op.update_input(mismatch.input_index, copy)
    validate_memory_types(device_type, graph, registry=registry)


def memory_types_on(
    device_type: str, op: Operation, registry: KernelRegistry | None = None
) -> tuple[list[MemoryType], list[MemoryType]]:
    """The memory that the inputs and the outputs of an operation are in, on a device of a type."""
    library = op.graph.function_library
    return memory_types_for_node(library, device_type, op.node_def, registry=registry)


def _mismatches(
    device_type: str, graph: Graph, registry: KernelRegistry | None
) -> Iterator[_Mismatch]:
    """The inputs that are wanted in other memory than their tensors are in."""
    if not has_own_memory(device_type):
        return
    operations = graph.get_operations()
    types = {op: memory_types_on(device_type, op, registry) for op in operations}
    for op in operations:
        for index, (tensor, wanted_in) in enumerate(zip(op.inputs, types[op][0], strict=True)):
            is_in = types[tensor.op][1][tensor.value_index]
            if is_in != wanted_in:
                yield _Mismatch(op, index, tensor, is_in, wanted_in)


def _send_and_receive(graph: Graph, mismatch: _Mismatch, key: str, device_name: str) -> Tensor:
    """The copy of a tensor in the wanted memory; two new nodes make the copy."""
    tensor = mismatch.tensor
    attrs = {
        "tensor_name": key,
        "send_device": device_name,
        "send_device_incarnation": 0,
        "recv_device": device_name,
        "_hostmem_sendrecv": True,
        "_src": tensor.op.name,
        "_dst": mismatch.op.name,
    }
    # The caller's scopes are not for these nodes.
    with graph.name_scope(None), graph.device(None), graph.control_dependencies(None):
        send = graph.create_op(
            "_HostSend" if mismatch.is_in == MemoryType.HOST_MEMORY else "_Send",
            [tensor],
            name=_new_name(graph),
            attrs=attrs,
        )
        receive = graph.create_op(
            "_HostRecv" if mismatch.wanted_in == MemoryType.HOST_MEMORY else "_Recv",
            name=_new_name(graph),
            attrs={**attrs, "tensor_type": tensor.dtype},
            control_inputs=[send],
        )
    return receive.outputs[0]


def _new_name(graph: Graph) -> str:
    """The first of `n/_0`, `n/_1`, ... that is free, as the name of an operation in full."""
    taken = {op.name for op in graph.get_operations()}
    return next(name for i in itertools.count() if (name := f"n/_{i}") not in taken) + "/"
