"""The compiled plan: a graph as the source text of one Python function.

One call a node, in topological order; kernels and constants are globals of the function, dead
values are deleted as soon as they die. A failing line number names the failing node, so that error
reports cost nothing until there is an error. `plan.source` is the model as readable Python:

    def plan(step, x):
        dense_MatMul = matmul(x, kernel); del x  # 'dense/MatMul'
        ...
        return (softmax,)

Functional control flow becomes calls of the functions' own plans (`control_flow`). Control flow of
TensorFlow 1 becomes `if` and `while` statements (`raising`); what has no such form is refused.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any

from opkernel.errors import UnimplementedError
from opkernel.graph import Operation, Tensor
from opkernel.graph.control_flow_ops import (
    ENTER_OPS,
    EXIT_OPS,
    LOW_LEVEL_CONTROL_FLOW,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
)
from opkernel.graph.operation import types_given
from opkernel.kernel import FunctionKernel, OpKernel, forward_input
from opkernel.runtime.control_flow import FUNCTIONAL_OPS, FunctionLibrary
from opkernel.runtime.elementwise import PointwiseFunction, pointwise_function
from opkernel.runtime.kernel_watcher import KernelWatcher
from opkernel.runtime.kernels import KernelCache
from opkernel.runtime.plan_control_flow import ControlFlowWriter
from opkernel.runtime.plan_elementwise import NodesOfGroups
from opkernel.runtime.plan_source import Part
from opkernel.runtime.raising import ALWAYS, Arrangement, Key, arrange, key_of, keys_of_inputs

__all__ = ["CompiledPlan", "KernelMayWaitError", "compile_plan"]

_PASSING_ON = SWITCH_OPS | ENTER_OPS | EXIT_OPS | NEXT_ITERATION_OPS | {"LoopCond"}
"""Ops whose outputs are their first input."""

_NOTHING = MERGE_OPS | {"ControlTrigger", "NoOp"}
"""Ops that give no statements themselves; what becomes of a Merge, its arrangement says."""

_plan_numbers = itertools.count(1)


class KernelMayWaitError(UnimplementedError):
    """A kernel is asynchronous: it may wait for nodes that a plan would run after it."""


class CompiledPlan:
    """A graph compiled for certain feeds and fetches; `run(step, *feeds)` gives the fetches.

    Attributes:
        run: the compiled function.
        uses_step: whether any node looks at the step; if none does, any step will do.
    """

    __slots__ = ("_inputs", "_lines", "_nodes", "_texts", "run", "uses_step")

    def __init__(
        self,
        parts: Sequence[Part],
        names: dict[str, Any],
        nodes: Sequence[Operation],
        inputs: Sequence[Sequence[str]],
        uses_step: bool,
    ) -> None:
        self.uses_step = uses_step
        self._texts = [part.text for part in parts]
        self._nodes, self._inputs = nodes, inputs
        self._lines: dict[str, list[int]] = {}
        number = next(_plan_numbers)
        names["__plan__"] = self
        for part in parts:
            file = f"<opkernel plan {number} {part.name}>"
            self._lines[file] = part.line_nodes
            exec(compile(part.text, file, "exec"), names)  # text is plan_source's own
        self.run = names["plan"]

    @property
    def source(self) -> str:
        """Its text."""
        return "\n".join(self._texts)

    def node_at(self, file: str, line: int) -> tuple[Operation, Sequence[str]] | None:
        """The node that a line of the plan computes, and the names that hold its inputs."""
        index = self._lines[file][line - 1]
        return None if index < 0 else (self._nodes[index], self._inputs[index])

    @staticmethod
    def of_frame(frame: FrameType) -> "CompiledPlan | None":
        """The plan whose code a frame is running; None for other code."""
        if not frame.f_code.co_filename.startswith("<opkernel plan"):
            return None
        plan = frame.f_globals.get("__plan__")
        return plan if isinstance(plan, CompiledPlan) else None


def compile_plan(
    order: Sequence[Operation],
    feeds: Sequence[Tensor],
    fetches: Sequence[Tensor],
    kernels: KernelCache,
    library: FunctionLibrary,
    watcher: KernelWatcher | None = None,
    *,
    in_groups: bool = True,
    may_wait: bool = True,
) -> CompiledPlan:
    """Compile what computes `fetches` by running `order`, given values for `feeds`.

    Args:
        order: The operations, inputs before consumers, as `prune_and_order` gives them.
        feeds: The parameters of the plan.
        fetches: Its results.
        kernels: The kernels of the operations.
        library: The functions that they call.
        watcher: Watches the kernels, where given.
        in_groups: Whether element-wise nodes are computed together where they are big.
        may_wait: Whether the plan may wait for asynchronous kernels.

    Raises:
        NotFoundError: a needed node has no kernel.
        InvalidArgumentError: a needed node is invalid.
        NotRaisedError: there is no form for the control flow of the graph.
        KernelMayWaitError: a kernel is asynchronous, and the plan may not wait.
    """
    return _Compiler(order, feeds, kernels, library, watcher, in_groups, may_wait).plan(fetches)


class _Compiler:
    """Finds out how each node is computed, and writes that.

    `_computed` are the kernels of nodes that are calls of them, by the names of the operations;
    `_write` has what writes the statements of other nodes. What is in neither is a constant, or passes
    its inputs on.
    """

    def __init__(
        self,
        order: Sequence[Operation],
        feeds: Sequence[Tensor],
        kernels: KernelCache,
        library: FunctionLibrary,
        watcher: KernelWatcher | None,
        in_groups: bool,
        may_wait: bool,
    ) -> None:
        self._may_wait = may_wait
        self._in_groups = in_groups and watcher is None
        self._order, self._feeds = order, feeds
        examples = {op.type: op for op in order}
        self._ops = examples.keys()
        types = types_given(order).union(feed.dtype for feed in feeds)
        self._has_references = any(dtype.is_ref for dtype in types)
        self._kernels = kernels
        self._library = library
        self._watcher = watcher
        self._aliases: dict[Key, Tensor] = {}
        self._constants: list[tuple[Operation, Any]] = []
        self._pointwise: dict[str, PointwiseFunction] = {}
        self._pointwise_of: dict[tuple[int, int, int], PointwiseFunction | None] = {}
        self._computed: dict[str, OpKernel] = {}
        self._write: dict[str, Callable[[ControlFlowWriter], None]] = {}
        binders = {name: self._binder(op) for name, op in examples.items()}
        for op in order:
            binders[op.type](op)

    def plan(self, fetches: Sequence[Tensor]) -> CompiledPlan:
        """The plan for certain fetches."""
        feeds = self._feeds
        arrangement = self._arrange(fetches)
        constants = {(op.name, 0) for op, _ in self._constants}
        groups = NodesOfGroups(
            self._order, self._pointwise, self._aliases, constants, feeds, fetches
        )
        writer = ControlFlowWriter(
            self._aliases, arrangement.predicates, self._read(fetches), groups, self._watcher
        )
        parameters = [writer.parameter(tensor) for tensor in feeds]
        for op, value in self._constants:
            writer.constant(op, value)
        writer.items(arrangement.items, partial(self._write_node, writer))
        parts = writer.finish(parameters, fetches, arrangement.fetched_in)
        return CompiledPlan(
            parts, writer.globals, writer.nodes, writer.node_inputs, writer.uses_step
        )

    def _arrange(self, fetches: Sequence[Tensor]) -> Arrangement:
        """The operations as a program; as they are, where there is no control flow."""
        if self._ops & LOW_LEVEL_CONTROL_FLOW:
            return arrange(self._order, self._feeds, fetches, self._aliases, self._is_written)
        written = [op for op in self._order if self._is_written(op)]
        return Arrangement(written, [ALWAYS] * len(fetches), [])

    def _is_written(self, op: Operation) -> bool:
        return op.name in self._computed or op.name in self._write

    def _read(self, fetches: Sequence[Tensor]) -> set[Key]:
        """The tensors that anything reads, where there are Merges, which are to know."""
        if not self._ops & MERGE_OPS:
            return set()
        return {key for op in self._order for key in keys_of_inputs(op)}.union(map(key_of, fetches))

    def _write_node(self, writer: ControlFlowWriter, op: Operation) -> None:
        """Write the statements of a node."""
        kernel = self._computed.get(op.name)
        if kernel is None:
            self._write[op.name](writer)
        else:
            writer.kernel(op, kernel, is_by_value=True)

    def _is_by_value(self, op: Operation) -> bool:
        """Whether a node is given no references."""
        return not (self._has_references and any(tensor.dtype.is_ref for tensor in op.inputs))

    def _binder(self, op: Operation) -> Callable[[Operation], None]:
        """What finds out how nodes of the op of this one are computed."""
        if op.type in FUNCTIONAL_OPS:
            return self._bind_functional
        if op.type in _PASSING_ON:
            return self._bind_passing_on
        if op.type in _NOTHING:
            return lambda op: None
        return self._bind_kernel if self._library.function_of(op) is None else self._bind_call

    def _bind_functional(self, op: Operation) -> None:
        emit = FUNCTIONAL_OPS[op.type]
        self._write[op.name] = lambda writer: emit(writer, op, self._library)

    def _bind_call(self, op: Operation) -> None:
        function = self._library.function_of(op)
        assert function is not None
        self._write[op.name] = lambda writer: writer.call_function(
            op, writer.bind(function, function.name)
        )

    def _bind_passing_on(self, op: Operation) -> None:
        if op.inputs[0].dtype.is_ref and not op.input_types[0].is_ref:
            self._write[op.name] = lambda writer: writer.dereference(op)
        else:
            for output in op.outputs:
                self._aliases[key_of(output)] = op.inputs[0]

    def _bind_kernel(self, op: Operation) -> None:
        kernel = self._kernels.kernel(op)
        if not self._may_wait and kernel.as_async() is not None:
            raise KernelMayWaitError(f"{op.type}: kernel is asynchronous", node=op.name, op=op.type)
        constant, is_by_value = kernel.const_tensor, self._is_by_value(op)
        if constant is not None:
            self._constants.append((op, constant))
        elif self._watcher is not None and self._bind_watched(op, kernel, self._watcher):
            pass
        elif (
            isinstance(kernel, FunctionKernel) and kernel.function is forward_input and is_by_value
        ):
            for output, tensor in zip(op.outputs, op.inputs, strict=True):
                self._aliases[key_of(output)] = tensor
        elif is_by_value:
            self._computed[op.name] = kernel
            if self._in_groups and kernel.is_trusted and isinstance(kernel, FunctionKernel):
                self._note_pointwise(op, kernel)
        else:
            self._write[op.name] = lambda writer: writer.kernel(op, kernel, is_by_value=False)

    def _note_pointwise(self, op: Operation, kernel: FunctionKernel) -> None:
        """Note what a kernel is on tiles, if tiles are for it; looked up once for kernels alike.

        Kernels of one form share these objects, and keep them alive.
        """
        key = id(kernel.function), id(kernel.input_types), id(kernel.output_types)
        if key not in self._pointwise_of:
            self._pointwise_of[key] = pointwise_function(kernel)
        pointwise = self._pointwise_of[key]
        if pointwise is not None:
            self._pointwise[op.name] = pointwise

    def _bind_watched(self, op: Operation, kernel: OpKernel, watcher: KernelWatcher) -> bool:
        """Whether a node is run by what watches it."""
        run, compute = watcher.runner(op, kernel), watcher.computer(op, kernel)
        if compute is not None and kernel.forwards_inputs and self._is_by_value(op):
            self._write[op.name] = lambda writer: writer.forwarding_kernel(op, kernel, compute)
        elif run is not None:
            self._write[op.name] = lambda writer: writer.call(op, writer.bind(run, op.type))
        return op.name in self._write
