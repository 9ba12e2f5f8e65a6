"""The kernels of a graph's nodes, made once and kept for all its plans."""

import threading

from opkernel.graph import Operation
from opkernel.kernel import Device, OpKernel, create_op_kernel
from opkernel.opdef import GRAPH_DEF_VERSION, OpRegistry
from opkernel.runtime.device import CPU

__all__ = ["KernelCache"]


class KernelCache:
    """Makes each node's kernel when it is first asked for (fulfils `plan.KernelProvider`)."""

    def __init__(
        self,
        graph_def_version: int = GRAPH_DEF_VERSION,
        op_registry: OpRegistry | None = None,
        device: Device = CPU,
    ) -> None:
        self._version = graph_def_version
        self._op_registry = op_registry
        self._device = device
        self._kernels: dict[str, OpKernel] = {}
        self._lock = threading.Lock()

    def kernel(self, op: Operation) -> OpKernel:
        """The kernel of a node.

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
