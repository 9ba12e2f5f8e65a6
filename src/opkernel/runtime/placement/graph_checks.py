"""TensorFlow's checks of a whole graph before any of it runs: devices, functions, kernels.

Source: TensorFlow core/common_runtime/placer.cc, colocation_graph.cc, inspecting_placer.cc.
"""

from collections.abc import Collection, Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Operation
from opkernel.kernel import (
    get_registered_kernels_for_op,
    supported_device_types_for_node,
)
from opkernel.kernel.registry.lookup import no_supported_device_error
from opkernel.runtime.placement.device_set import DeviceSet
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS

_PARTITIONED_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall", "TPUPartitionedCall"})


def check_placement(ops: Collection[Operation], devices: DeviceSet) -> None:
    """Raise InvalidArgumentError where a node lacks its device, its function or its kernel."""
    devices.include(ops)
    for op in ops:
        devices.candidates(op)
        if op.type in _PARTITIONED_CALLS or _is_lowered(op):
            _check_functions(op)
        elif op.type not in RUN_BY_EXECUTORS:
            _check_kernel(op, devices.types_by_priority)


def _is_lowered(op: Operation) -> bool:
    """Whether TensorFlow puts Switch and Merge in the place of a node before it places the graph."""
    attrs = op.node_def.attr
    return "_lower_using_switch_merge" in attrs and attrs["_lower_using_switch_merge"].b


def _check_functions(op: Operation) -> None:
    library = op.graph.function_library
    for value in op.node_def.attr.values():
        for function in (value.func, *value.list.func):
            if function.name and function.name not in library:
                known = ", ".join(one.signature.name for one in library.to_proto().function)
                raise InvalidArgumentError(
                    f'Failed to find function "{function.name}" in function library: {known}',
                    node=op.name,
                    op=op.type,
                )


def _check_kernel(op: Operation, types: Sequence[str]) -> None:
    """Refuse a node that no kernel of its op on devices of some types fits.

    An op without any kernel is refused by the steps that need it: TensorFlow may have one.
    """
    if op.type in op.graph.function_library or not get_registered_kernels_for_op(op.type).kernel:
        return
    registry = op.graph.op_registry
    if not supported_device_types_for_node(types, op.node_def, op_registry=registry):
        raise no_supported_device_error(op.node_def, types)
