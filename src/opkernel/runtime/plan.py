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
from types import FrameType
from typing import Any

from opkernel.graph import Operation, Tensor
from opkernel.graph.control_flow_ops import (
    ENTER_OPS,
    EXIT_OPS,
    LOW_LEVEL_CONTROL_FLOW,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
)
from opkernel.kernel import FunctionKernel, OpKernel, forward_input
from opkernel.runtime.control_flow import FUNCTIONAL_OPS, FunctionLibrary
from opkernel.runtime.elementwise import PointwiseFunction, pointwise_function
from opkernel.runtime.kernel_watcher import KernelWatcher
from opkernel.runtime.kernels import KernelCache
from opkernel.runtime.plan_control_flow import ControlFlowWriter
from opkernel.runtime.plan_elementwise import NodesOfGroups
from opkernel.runtime.plan_source import Part
from opkernel.runtime.raising import ALWAYS, Arrangement, Key, arrange, key_of

__all__ = ["CompiledPlan", "compile_plan"]

_PASSING_ON = SWITCH_OPS | ENTER_OPS | EXIT_OPS | NEXT_ITERATION_OPS | {"LoopCond"}
"""Ops whose outputs are their first input."""

_NOTHING = MERGE_OPS | {"ControlTrigger", "NoOp"}
"""Ops that give no statements themselves; what becomes of a Merge, its arrangement says."""

_plan_numbers = itertools.count(1)


class CompiledPlan:
    """A graph compiled for certain feeds and fetches; `run(step, *feeds)` gives the fetches.

    Attributes:
        run: the compiled function.
        source: its text.
        uses_step: whether any node looks at the step; if none does, any step will do.
    """

    __slots__ = ("_lines", "_nodes", "run", "source", "uses_step")

    def __init__(
        self,
        parts: Sequence[Part],
        names: dict[str, Any],
        nodes: Sequence[tuple[Operation, list[str]]],
        uses_step: bool,
    ) -> None:
        self.uses_step = uses_step
        self.source = "\n".join(part.text for part in parts)
        self._nodes = nodes
        self._lines: dict[str, list[int]] = {}
        number = next(_plan_numbers)
        names["__plan__"] = self
        for part in parts:
            file = f"<opkernel plan {number} {part.name}>"
            self._lines[file] = part.line_nodes
            exec(compile(part.text, file, "exec"), names)  # text is plan_source's own
        self.run = names["plan"]

    def node_at(self, file: str, line: int) -> tuple[Operation, list[str]] | None:
        """The node that a line of the plan computes, and the names that hold its inputs."""
        index = self._lines[file][line - 1]
        return None if index < 0 else self._nodes[index]

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

    Raises:
        NotFoundError: a needed node has no kernel.
        InvalidArgumentError: a needed node is invalid.
        NotRaisedError: there is no form for the control flow of the graph.
    """
    return _Compiler(order, feeds, kernels, library, watcher, in_groups).plan(fetches)


class _Compiler:
    """Finds out how each node is computed, and writes that.

    `_write` has what writes the statements of a node, by the name of the operation; the others are
    constants, or pass their inputs on.
    """

    def __init__(
        self,
        order: Sequence[Operation],
        feeds: Sequence[Tensor],
        kernels: KernelCache,
        library: FunctionLibrary,
        watcher: KernelWatcher | None,
        in_groups: bool,
    ) -> None:
        self._in_groups = in_groups and watcher is None
        self._order, self._feeds = order, feeds
        types = {dtype for op in order for dtype in op.output_types}
        self._has_references = any(t.is_ref for t in types.union(feed.dtype for feed in feeds))
        self._kernels = kernels
        self._library = library
        self._watcher = watcher
        self._aliases: dict[Key, Tensor] = {}
        self._constants: list[tuple[Operation, Any]] = []
        self._pointwise: dict[str, PointwiseFunction] = {}
        self._write: dict[str, Callable[[ControlFlowWriter], None]] = {}
        for op in order:
            self._bind(op)

    def plan(self, fetches: Sequence[Tensor]) -> CompiledPlan:
        """The plan for certain fetches."""
        feeds = self._feeds
        arrangement = self._arrange(fetches)
        read = {key_of(tensor) for op in self._order for tensor in op.inputs}
        read.update(map(key_of, fetches))
        constants = {(op.name, 0) for op, _ in self._constants}
        groups = NodesOfGroups(
            self._order, self._pointwise, self._aliases, constants, feeds, fetches
        )
        writer = ControlFlowWriter(
            self._aliases, arrangement.predicates, read, groups, self._watcher
        )
        parameters = [writer.parameter(tensor) for tensor in feeds]
        for op, value in self._constants:
            writer.constant(op, value)
        writer.items(arrangement.items, lambda op: self._write[op.name](writer))
        parts = writer.finish(parameters, fetches, arrangement.fetched_in)
        return CompiledPlan(parts, writer.globals, writer.nodes, writer.uses_step)

    def _arrange(self, fetches: Sequence[Tensor]) -> Arrangement:
        """The operations as a program; as they are, where there is no control flow."""
        if any(op.type in LOW_LEVEL_CONTROL_FLOW for op in self._order):
            return arrange(self._order, self._feeds, fetches, self._aliases, self._is_written)
        written = [op for op in self._order if op.name in self._write]
        return Arrangement(written, [ALWAYS] * len(fetches), [])

    def _is_written(self, op: Operation) -> bool:
        return op.name in self._write

    def _bind(self, op: Operation) -> None:
        """Find out how a node is computed."""
        if op.type in FUNCTIONAL_OPS:
            emit = FUNCTIONAL_OPS[op.type]
            self._write[op.name] = lambda writer: emit(writer, op, self._library)
        elif op.type in _PASSING_ON:
            self._bind_passing_on(op)
        elif op.type in _NOTHING:
            pass
        elif (function := self._library.function_of(op)) is not None:
            self._write[op.name] = lambda writer: writer.call_function(
                op, writer.bind(function, function.name)
            )
        else:
            self._bind_kernel(op, self._kernels.kernel(op))

    def _bind_passing_on(self, op: Operation) -> None:
        if op.inputs[0].dtype.is_ref and not op.input_types[0].is_ref:
            self._write[op.name] = lambda writer: writer.dereference(op)
        else:
            for output in op.outputs:
                self._aliases[key_of(output)] = op.inputs[0]

    def _bind_kernel(self, op: Operation, kernel: OpKernel) -> None:
        is_by_value = not (
            self._has_references and any(tensor.dtype.is_ref for tensor in op.inputs)
        )
        watcher = self._watcher if kernel.const_tensor is None else None
        run = compute = None
        if watcher is not None:
            run, compute = watcher.runner(op, kernel), watcher.computer(op, kernel)
        if kernel.const_tensor is not None:
            self._constants.append((op, kernel.const_tensor))
        elif compute is not None and kernel.forwards_inputs and is_by_value:
            self._write[op.name] = lambda writer: writer.forwarding_kernel(op, kernel, compute)
        elif run is not None:
            self._write[op.name] = lambda writer: writer.call(op, writer.bind(run, op.type))
        elif (
            isinstance(kernel, FunctionKernel) and kernel.function is forward_input and is_by_value
        ):
            for output, tensor in zip(op.outputs, op.inputs, strict=True):
                self._aliases[key_of(output)] = tensor
        else:
            self._write[op.name] = lambda writer: writer.kernel(op, kernel, is_by_value=is_by_value)
            pointwise = pointwise_function(kernel) if self._in_groups else None
            if pointwise is not None and is_by_value and kernel.is_trusted:
                self._pointwise[op.name] = pointwise
