"""Values of tensors that depend on constants alone, for shape inference and constant folding.

Nodes are computed one by one, without a plan: most are computed once and never again. Nodes of the
same op with the same attrs share a kernel.

Source: EvaluateConstantTensor in TensorFlow core/common_runtime/eval_const_tensor.cc.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.device.budget import Budget, current_budget
from opkernel.device.local_device import CPU
from opkernel.errors import OpError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.structural_ops import LOOP_OPS, LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.subgraph import DataNeeds
from opkernel.kernel import Device, FunctionKernel, OpKernel, create_op_kernel, under_budget
from opkernel.kernel.context.op_kernel_context import OpKernelContext
from opkernel.proto import NodeDef
from opkernel.records import replace
from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
from opkernel.runtime.plan.functional_ops import calls_functions
from opkernel.runtime.program.builder import build_program
from opkernel.runtime.program.request import Subgraph
from opkernel.runtime.program.run_step import RunStep
from opkernel.types import Array, tensor_from_proto

_MAX_BYTES = 10 << 20
_MOST_WORK = 1 << 30
_MOST_CALLS = 10_000
"""The most calls of functions, and nodes in them, for one answer."""
_LOOPS = LOOP_OPS | {"StatelessWhile", "While"}


def constant_values(
    tensors: Sequence[Tensor],
    known: Mapping[Tensor, Array],
    max_nodes: int | None = None,
    device_of: Callable[[Operation], Device] | None = None,
) -> list[Array | None]:
    """The values of tensors that stateless nodes compute from constants and `known`.

    None for those that cannot be computed, not with `max_nodes` nodes, not within 10 MiB for each
    tensor on the way, or not with a second's work or so.

    Raises:
        DeadlineExceededError: the caller's time is up.
    """
    if not tensors:
        return []
    graph = tensors[0].graph
    nothing: list[Array | None] = [None for _ in tensors]
    try:
        part = Subgraph(list(known), tensors, kind=DataNeeds)
        order = part.operations
    except OpError:  # a cycle
        return nothing
    if max_nodes is not None and len(order) > max_nodes:
        return nothing
    budget = Budget(_MAX_BYTES, outer=current_budget(), of_each=True, work=_MOST_WORK)
    with np.errstate(all="ignore"), under_budget(budget):
        if any(op.type in LOW_LEVEL_CONTROL_FLOW or calls_functions(op) for op in order):
            return _by_plan(part, list(known.values())) or nothing
        evaluation = _Evaluation(graph, known, device_of or (lambda _: CPU))
        for op in order:
            budget.check_time("folding constants at", op.name)
            evaluation.compute(op)
        return [evaluation.values.get((t.op, t.value_index)) for t in tensors]


def evaluate_constant_tensor(
    tensor: Tensor, known: Mapping[Tensor, Array] | None = None
) -> Array | None:
    """The value of a tensor that stateless nodes compute from constants and the values of `known` tensors.

    None if the value depends on anything else, a node fails, or the computation takes more than a second or
    so, or more than 10 MiB for a tensor.

    Source: EvaluateConstantTensor in TensorFlow core/common_runtime/eval_const_tensor.cc.
    """
    return constant_values([tensor], known or {})[0]


class _Evaluation:
    """Computes nodes, inputs before consumers.

    State: `values` of the outputs that were found.
    """

    def __init__(
        self, graph: Graph, known: Mapping[Tensor, Array], device_of: Callable[[Operation], Device]
    ) -> None:
        self.values: dict[tuple[Operation, int], Array] = {
            (tensor.op, tensor.value_index): value for tensor, value in known.items()
        }
        self._graph = graph
        self._device_of = device_of
        self._kernels: dict[Any, OpKernel] = {}
        self._step = RunStep()

    def compute(self, op: Operation) -> None:
        """Find the values of the outputs, where those of the inputs are known and nothing fails."""
        if op.type == "Const":
            outputs: Sequence[Any] = self._constant(op)
        else:
            edges = op.edges
            inputs = [self.values.get((edges[i], edges[i + 1])) for i in range(0, len(edges), 2)]
            if op.op_def.is_stateful or any(value is None for value in inputs):
                return
            try:
                outputs = OpKernelContext(self._kernel(op), inputs, self._step).run()
            except Exception:  # whatever a kernel raises: the step that runs the node will tell it
                return
        for index, value in enumerate(outputs):
            if value is not None:
                self.values[op, index] = np.asarray(value)

    def _constant(self, op: Operation) -> Sequence[Any]:
        try:
            return [tensor_from_proto(op.attr["value"].tensor)]
        except (OpError, ValueError, TypeError, MemoryError):  # the step that needs it will tell it
            return []

    def _kernel(self, op: Operation) -> OpKernel:
        """The kernel of a node; functions know nothing of it but its attrs, which the key says."""
        device = self._device_of(op)
        key = device, op.signature
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = create_op_kernel(
                device,
                op.node_def,
                op_registry=self._graph.op_registry,
                graph_def_version=self._graph.graph_def_versions.producer,
            )
            has_tensors = any(attr.type.endswith("tensor") for attr in op.op_def.attr)
            if isinstance(kernel, FunctionKernel) and not has_tensors:
                self._kernels[key] = kernel
        return kernel


def _by_plan(part: Subgraph, given: Sequence[Array]) -> list[Array | None] | None:
    """The values, computed by a plan, which can do control flow; None where they cannot be."""
    if any(op.op_def.is_stateful or op.type in _LOOPS for op in part.operations):
        return None  # a loop may have no end
    graph = part.operations[0].graph
    if _num_calls(graph, part.operations) > _MOST_CALLS:
        return None
    library = FunctionLibraryRuntime(graph.function_library, graph.graph_def_versions.producer)
    request = library.request(part, library.kernels_of(graph))
    try:
        program = build_program(replace(request, executor_type="COMPILED_PLAN"))
        return [np.asarray(value) for value in program.run(RunStep(), *given)]
    except Exception:  # whatever a kernel raises, as above
        return None


def _num_calls(graph: Graph, operations: Sequence[Operation]) -> float:
    """How many nodes there would be with all calls inlined; inf for endless recursion."""
    library = graph.function_library
    known: dict[str, float] = {}

    def of_nodes(nodes: Iterable[NodeDef]) -> float:
        return sum(1 + sum(map(of_function, _called(node))) for node in nodes)

    def of_function(name: str) -> float:
        if name not in library:
            return 0
        if name not in known:
            known[name] = math.inf  # until it is known: it calls itself
            nodes = library[name].node_def
            has_loop = any(node.op in _LOOPS for node in nodes)
            known[name] = math.inf if has_loop else of_nodes(nodes)
        return known[name]

    return of_nodes([op.node_def for op in operations])


def _called(node: NodeDef) -> set[str]:
    """The functions that a node may call."""
    named = {node.op}
    for attr in node.attr.values():
        named.add(attr.func.name)
        named.update(function.name for function in attr.list.func)
    return named
