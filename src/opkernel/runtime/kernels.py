"""The kernels of a graph's nodes, made once and kept for all its plans."""

import threading

from opkernel.graph import Operation
from opkernel.kernel import Device, OpKernel, create_op_kernel
from opkernel.opdef import OpRegistry
from opkernel.runtime.device import CPU

__all__ = ["KernelCache"]


class KernelCache:
    """Makes each node's kernel when it is first asked for.

    The lock is held while a kernel is made, so that there is one for each node; it may be taken
    again by the same thread.
    """

    def __init__(
        self, graph_def_version: int, op_registry: OpRegistry, device: Device = CPU
    ) -> None:
        self._version = graph_def_version
        self._op_registry = op_registry
        self._device = device
        self._kernels: dict[str, OpKernel] = {}
        self._lock = threading.RLock()

    def kernel(self, op: Operation) -> OpKernel:
        """The kernel of a node; the same one for the same node.

        Raises:
            NotFoundError: no kernel is registered for the node.
        """
        with self._lock:
            kernel = self._kernels.get(op.name)
            if kernel is None or kernel.node_def is not op.node_def:  # an attr was set since
                kernel = self._kernels[op.name] = create_op_kernel(
                    self._device,
                    op.node_def,
                    op_registry=self._op_registry,
                    graph_def_version=self._version,
                )
        return kernel
