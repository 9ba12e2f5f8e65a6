"""The kernels of a graph's nodes, made once and kept for all its plans."""

import threading
from collections.abc import Callable
from typing import Any

from opkernel.graph import Operation
from opkernel.kernel import Device, OpKernel, create_op_kernel, global_kernel_registry
from opkernel.opdef import OpRegistry
from opkernel.runtime.device import CPU

__all__ = ["KernelCache"]


class KernelCache:
    """Makes each node's kernel when it is first asked for, anew where a kernel of its op changed.

    The lock is held while a kernel is made, so that there is one for each node; it may be taken
    again by the same thread.

    Args:
        graph_def_version: The version of GraphDef whose rules count.
        op_registry: The ops.
        device: Where the nodes run.
        function_library: What kernels that call functions are given.
        device_of: Where a node runs, if not all do on `device`.
    """

    def __init__(
        self,
        graph_def_version: int,
        op_registry: OpRegistry,
        device: Device = CPU,
        function_library: Any = None,
        device_of: Callable[[Operation], Device] | None = None,
    ) -> None:
        self._function_library = function_library
        self._version = graph_def_version
        self._op_registry = op_registry
        self._device_of = (lambda op: device) if device_of is None else device_of
        self._kernels: dict[str, OpKernel] = {}
        self._made_at: dict[str, int] = {}  # versions other than 0
        self._lock = threading.RLock()

    def kernel(self, op: Operation) -> OpKernel:
        """The kernel of a node; the same one for the same node.

        Raises:
            NotFoundError: no kernel is registered for the node.
        """
        version = global_kernel_registry().version_of(op.type)
        kernel = self._kernels.get(op.name)
        if not version and kernel is not None and kernel.properties.node_def is op.node_def:
            return kernel
        with self._lock:
            kernel = self._kernels.get(op.name)
            made_at = self._made_at.get(op.name, 0)
            if kernel is None or made_at != version or not _is_of(kernel, op):
                # The kernel was registered anew, or an attr was set.
                kernel = self._kernels[op.name] = self._make(op)
                if made_at != version:
                    self._made_at[op.name] = version
        return kernel

    def _make(self, op: Operation) -> OpKernel:
        node_def, registration = op.node_def, op._signature.registration
        is_plain = registration is not None and len(node_def.attr) == len(registration.op_def.attr)
        kernel = create_op_kernel(
            self._device_of(op),
            node_def,
            op_registry=self._op_registry,
            graph_def_version=self._version,
            function_library=self._function_library,
            signature=op._signature if is_plain else None,
        )
        if op._site is not None:
            kernel.node_traceback = lambda: op.traceback
        return kernel

    def made(self) -> dict[str, OpKernel]:
        """The kernels that were made, by the names of their nodes."""
        with self._lock:
            return dict(self._kernels)


def _is_of(kernel: OpKernel, op: Operation) -> bool:
    """Whether a kernel was made for a node, or for one that differs in nothing but its inputs."""
    made_for, node = kernel.node_def, op.node_def
    return made_for is node or (
        made_for.op == node.op
        and made_for.device == node.device
        and dict(made_for.attr) == dict(node.attr)
    )
