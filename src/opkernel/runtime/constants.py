"""Values of tensors that depend on constants alone, for shape inference and constant folding.

Nodes are computed one by one, without a plan: most are computed once and never again. Nodes of the
same op with the same attrs share a kernel.

Source: EvaluateConstantTensor in TensorFlow core/common_runtime/eval_const_tensor.cc.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.control_flow_ops import LOOP_OPS, LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.prune import DataNeeds, prune_and_order
from opkernel.kernel import FunctionKernel, OpKernel, allocation_limit, create_op_kernel
from opkernel.kernel.context import OpKernelContext
from opkernel.runtime.control_flow import FUNCTIONAL_OPS
from opkernel.runtime.device import CPU
from opkernel.runtime.functions import FunctionLibraryRuntime
from opkernel.runtime.kernels import KernelCache
from opkernel.runtime.plan import compile_plan
from opkernel.runtime.step import RunStep
from opkernel.types import tensor_from_proto

__all__ = ["constant_values"]

Array = np.ndarray[Any, Any]

_MAX_BYTES = 10 << 20
_FAILURES = (OpError, ValueError, TypeError, IndexError, ArithmeticError, MemoryError)
"""What kernels raise; the step that runs the node will say what is wrong."""


def constant_values(
    tensors: Sequence[Tensor],
    known: Mapping[Tensor, Array],
    max_nodes: int | None = None,
) -> list[Array | None]:
    """The values of tensors that stateless nodes compute from constants and `known`.

    None for those that cannot be computed, not with `max_nodes` nodes, or not within 10 MiB for
    each tensor on the way.
    """
    if not tensors:
        return []
    graph = tensors[0].graph
    nothing: list[Array | None] = [None for _ in tensors]
    try:
        order = prune_and_order(tensors, [], list(known), DataNeeds)
    except OpError:  # a cycle
        return nothing
    if max_nodes is not None and len(order) > max_nodes:
        return nothing
    with np.errstate(all="ignore"), allocation_limit(_MAX_BYTES):
        if any(_has_functions(op, graph) for op in order):
            return _by_plan(order, tensors, known) or nothing
        evaluation = _Evaluation(graph, known)
        for op in order:
            evaluation.compute(op)
        return [evaluation.values.get((t.op, t.value_index)) for t in tensors]


def _has_functions(op: Operation, graph: Graph) -> bool:
    """Whether a node calls functions, or is of control flow."""
    return (
        op.type in FUNCTIONAL_OPS
        or op.type in LOW_LEVEL_CONTROL_FLOW
        or op.type in graph.function_library
    )


class _Evaluation:
    """Computes nodes, inputs before consumers.

    State: `values` of the outputs that were found.
    """

    def __init__(self, graph: Graph, known: Mapping[Tensor, Array]) -> None:
        self.values: dict[tuple[Operation, int], Array] = {
            (tensor.op, tensor.value_index): value for tensor, value in known.items()
        }
        self._graph = graph
        self._kernels: dict[Any, OpKernel] = {}
        self._step = RunStep()

    def compute(self, op: Operation) -> None:
        """Find the values of the outputs, where those of the inputs are known and nothing fails."""
        if op.type == "Const":
            outputs: Sequence[Any] = self._constant(op)
        else:
            edges = op._edges
            inputs = [self.values.get((edges[i], edges[i + 1])) for i in range(0, len(edges), 2)]
            if op.op_def.is_stateful or any(value is None for value in inputs):
                return
            try:
                outputs = OpKernelContext(self._kernel(op), inputs, self._step).run()
            except _FAILURES:
                return
        for index, value in enumerate(outputs):
            if value is not None:
                self.values[op, index] = np.asarray(value)

    def _constant(self, op: Operation) -> Sequence[Any]:
        try:
            return [tensor_from_proto(op._node_def.attr["value"].tensor)]
        except _FAILURES:
            return []

    def _kernel(self, op: Operation) -> OpKernel:
        """The kernel of a node; functions know nothing of it but its attrs, which the key says."""
        kernel = self._kernels.get(op._signature)
        if kernel is None:
            kernel = create_op_kernel(
                CPU,
                op.node_def,
                op_registry=self._graph.op_registry,
                graph_def_version=self._graph.graph_def_versions.producer,
            )
            has_tensors = any(attr.type.endswith("tensor") for attr in op.op_def.attr)
            if isinstance(kernel, FunctionKernel) and not has_tensors:
                self._kernels[op._signature] = kernel
        return kernel


def _by_plan(
    order: Sequence[Operation], tensors: Sequence[Tensor], known: Mapping[Tensor, Array]
) -> list[Array | None] | None:
    """The values, computed by a plan, which can do control flow; None where they cannot be."""
    if any(op.op_def.is_stateful or op.type in LOOP_OPS for op in order):
        return None  # a loop may have no end
    graph = order[0].graph
    version = graph.graph_def_versions.producer
    kernels = KernelCache(version, graph.op_registry)
    library = FunctionLibraryRuntime(graph.function_library, version, CPU)
    try:
        plan = compile_plan(order, list(known), tensors, kernels, library)
        return [np.asarray(value) for value in plan.run(RunStep(), *known.values())]
    except _FAILURES:
        return None
