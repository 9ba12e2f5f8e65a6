"""The compiled plan: a graph as the source text of one Python function.

One call a node, in topological order; kernels and constants are globals of the function, dead
values are deleted as soon as they die. A failing line number names the failing node, so that error
reports cost nothing until there is an error. `plan.source` is the model as readable Python:

    def plan(step, x):
        dense_MatMul = matmul(x, kernel); del x  # 'dense/MatMul'
        ...
        return (softmax,)

Functional control flow becomes calls of the functions' own plans (`functional_ops`). Control flow of
TensorFlow 1 becomes `if` and `while` statements (`functionalization`); graphs without such a form are
refused. A plan that is too long or nested too deeply is cut into several functions (`parts`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import FrameType
from typing import TYPE_CHECKING, Any

from opkernel.device.budget import check_time, current_budget
from opkernel.device.work_clock import check_seconds
from opkernel.errors import UnimplementedError
from opkernel.graph import Operation, Tensor
from opkernel.graph.core.node import types_given
from opkernel.graph.core.signature import NodeSignature
from opkernel.graph.core.structural_ops import (
    ENTER_OPS,
    EXIT_OPS,
    LOW_LEVEL_CONTROL_FLOW,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
)
from opkernel.kernel import FunctionKernel, OpKernel, forward_input
from opkernel.records import dataclass
from opkernel.runtime.plan.builder import PlanBuilder
from opkernel.runtime.plan.functional_ops import FUNCTIONAL_OPS, call_by_name
from opkernel.runtime.plan.keys import Key, RequiredOutputs, key_of, runner_of_references
from opkernel.runtime.plan.pointwise import FEWEST, PointwiseFunction, pointwise_function
from opkernel.runtime.plan.text import Writer
from opkernel.runtime.plan.tree import (
    Block,
    Item,
    Name,
    PlanFunction,
    PlanTree,
    Statement,
    blocks_of,
    statements,
)
from opkernel.runtime.program.request import ExecutorArgs

if TYPE_CHECKING:
    from opkernel.runtime.watch.kernel_watcher import KernelWatcher


_PASSING_ON = SWITCH_OPS | ENTER_OPS | EXIT_OPS | NEXT_ITERATION_OPS | {"LoopCond"}
"""Ops whose outputs are their first input."""

_NOTHING = MERGE_OPS | {"ControlTrigger", "NoOp"}
"""Ops that give no statements themselves; what becomes of a Merge, its arrangement says."""

_SECONDS_A_BYTE = 2e-7
"""The time that Python takes at least to compile a byte of text."""

_plan_numbers = itertools.count(1)


class KernelMayWaitError(UnimplementedError):
    """A kernel is asynchronous: it may wait for nodes that a plan would run after it."""


class CompiledPlan:
    """A graph compiled for certain feeds and fetches; `run(step, *feeds)` gives the fetches.

    Attributes:
        run: the compiled function.
        tree: its statements; the text is made from them.
        uses_step: whether any node looks at the step; if none does, any step will do.
    """

    __slots__ = ("_lines", "run", "tree", "uses_step")

    def __init__(self, tree: PlanTree) -> None:
        self.tree = tree
        self.uses_step = tree.uses_step
        self._lines: dict[str, list[Item | None]] = {}
        number = next(_plan_numbers)
        names = {name: bound.value for name, bound in tree.globals.items()}
        names["__plan__"] = self
        for function in plan_functions(tree):
            check_time("compiling a plan")
            file = f"<opkernel plan {number} {function.name}>"
            writer = Writer(function)
            text = writer.source
            check_seconds(len(text) * _SECONDS_A_BYTE, "compiling a plan")
            self._lines[file] = writer.items
            exec(compile(text, file, "exec"), names)  # text is of identifiers and reprs
        self.run = names["plan"]

    def __repr__(self) -> str:
        count = f"{sum(1 for _ in statements(self.tree.block)):,} statements"
        return plan_repr(self, count, self.tree.parameters[1:], self.tree.results)

    @property
    def source(self) -> str:
        """Its text."""
        return "\n".join([Writer(one).source for one in plan_functions(self.tree)])

    @property
    def is_cut(self) -> bool:
        """Whether it is more than one function."""
        return len(self._lines) > 1

    def node_at(self, file: str, line: int) -> tuple[Operation, Sequence[Name]] | None:
        """The node that a line of the plan computes, and the names that hold its inputs."""
        item = self._lines[file][line - 1]
        return None if item is None or item.op is None else (item.op, item.inputs)

    @staticmethod
    def of_frame(frame: FrameType) -> CompiledPlan | None:
        """The plan whose code a frame is running; None for other code."""
        if not frame.f_code.co_filename.startswith("<opkernel plan"):
            return None
        plan = frame.f_globals.get("__plan__")
        return plan if isinstance(plan, CompiledPlan) else None


def plan_repr(plan: object, size: str, feeds: Sequence[Any], fetches: Sequence[Any]) -> str:
    """A plan by its class, its size and the numbers of its feeds and fetches."""
    of = f"<opkernel.{type(plan).__name__} of {size}"
    return f"{of}: {len(feeds):,} fed, {len(fetches):,} fetched; `.source` is its text>"


def compile_plan(
    args: ExecutorArgs, *, in_groups: bool = True, may_wait: bool = True, suspends: bool = False
) -> CompiledPlan:
    """Compile what computes the fetches, given values for the feeds.

    Args:
        args: What the plan computes, and with what; its parameters are the feeds, its results the fetches.
        in_groups: Whether element-wise nodes are computed together where they are big.
        may_wait: Whether the plan may wait for asynchronous kernels.
        suspends: Whether it yields where it would wait (`awaited_kernel`): it is a generator then, if it has such kernels.

    Raises:
        NotFoundError: a needed node has no kernel.
        InvalidArgumentError: a needed node is invalid.
        NotRaisedError: there is no form for the control flow of the graph.
        KernelMayWaitError: a kernel is asynchronous, and the plan may not wait.
    """
    return CompiledPlan(_PlanCompiler(args, in_groups, may_wait, suspends).tree(args.fetches))


@dataclass(slots=True, eq=False)
class _SharedKernel:
    """A kernel for all nodes of a signature that have no attrs but those of their op.

    Attributes:
        kernel: The kernel, which is that of the first of them.
        pointwise: Its tiled form, if nodes may be computed together and it has one.
        num_attrs: How many attrs their op has.
    """

    kernel: OpKernel
    pointwise: PointwiseFunction | None
    num_attrs: int


class _PlanCompiler:
    """Finds out how each node is computed, and builds that.

    `_computed` are the kernels of nodes that are calls of them, by the names of the operations;
    `_build` has what adds the statements of other nodes. What is in neither is a constant, or passes
    its inputs on.
    """

    def __init__(self, args: ExecutorArgs, in_groups: bool, may_wait: bool, suspends: bool) -> None:
        self._may_wait = may_wait
        self._suspends = suspends
        self._budget = current_budget()
        self._in_groups = in_groups and args.watcher is None
        order, feeds = args.order, args.feeds
        self._order, self._feeds = order, feeds
        self._required = RequiredOutputs(order, feeds, args.fetches)
        examples = {op.type: op for op in order}
        self._ops = examples.keys()
        types = types_given(order).union(feed.dtype for feed in feeds)
        self._has_references = any(dtype.is_ref for dtype in types)
        self._kernels = args.kernels
        self._library = args.library
        self._watcher = args.watcher
        self._aliases: dict[Key, Tensor] = {}
        self._constants: list[tuple[Operation, Any]] = []
        self._pointwise: dict[str, PointwiseFunction] = {}
        self._computed: dict[str, OpKernel] = {}
        self._build: dict[str, Callable[[PlanBuilder], object]] = {}
        self._bind(order, examples)

    def _bind(self, order: Sequence[Operation], examples: Mapping[str, Operation]) -> None:
        """Decide how each node is computed, with an example of each op."""
        binders = {name: self._binder(op) for name, op in examples.items()}
        budget = self._budget
        is_limited = budget is not None and budget.memory_limit_bytes is not None
        may_share = not (is_limited or self._watcher or self._has_references)
        shared: dict[NodeSignature, _SharedKernel] = {}
        for op in order:
            known = shared.get(op.signature)
            if known is not None and len(op.message.attr) == known.num_attrs:
                self._computed[op.name] = known.kernel
                if known.pointwise is not None:
                    self._pointwise[op.name] = known.pointwise
                continue
            binders[op.signature.op_type](op)
            kernel = self._computed.get(op.name)
            if not may_share or kernel is None or not kernel.serves_form:
                continue
            num_attrs = len(kernel.properties.op_def.attr)
            if len(op.message.attr) == num_attrs:
                pointwise = self._pointwise.get(op.name)
                shared[op.signature] = _SharedKernel(kernel, pointwise, num_attrs)

    def tree(self, fetches: Sequence[Tensor]) -> PlanTree:
        """The plan for certain fetches."""
        builder: PlanBuilder
        if not self._ops & LOW_LEVEL_CONTROL_FLOW and len(self._pointwise) < FEWEST:
            builder = PlanBuilder(self._aliases, self._required, self._watcher)
            parameters = self._begin(builder)
            builder.items(self._written(), partial(self._build_node, builder))
        else:
            builder, parameters = self._with_control_flow(fetches)
        return builder.finish(parameters, fetches)

    def _begin(self, builder: PlanBuilder) -> list[Name]:
        """Add the feeds, whose parameters it returns, and the constants."""
        parameters = [builder.parameter(tensor) for tensor in self._feeds]
        for op, value in self._constants:
            builder.constant(op, value)
        return parameters

    def _with_control_flow(self, fetches: Sequence[Tensor]) -> tuple[PlanBuilder, list[Name]]:
        """The builder of conditionals, loops and groups, and the parameters."""
        from opkernel.runtime.plan.control_flow import ControlFlowBuilder  # for such graphs alone
        from opkernel.runtime.plan.functionalization import arrange
        from opkernel.runtime.plan.v1_control_flow import ALWAYS, Arrangement

        order, feeds, aliases, groups = self._order, self._feeds, self._aliases, None
        if self._ops & LOW_LEVEL_CONTROL_FLOW:
            arranged = arrange(order, feeds, fetches, aliases, self._is_written)
        else:
            arranged = Arrangement(self._written(), [ALWAYS] * len(fetches), [])
        if len(self._pointwise) >= FEWEST:
            from opkernel.runtime.plan.grouping import GroupsOfPlan  # for large arrays

            constants = {(op.name, 0) for op, _ in self._constants}
            groups = GroupsOfPlan(order, self._pointwise, aliases, constants, feeds, fetches)
        builder = ControlFlowBuilder(
            aliases, arranged.predicates, self._required, groups, self._watcher
        )
        parameters = self._begin(builder)
        builder.items(arranged.items, partial(self._build_node, builder))
        builder.check_alive(fetches, arranged.fetched_in)
        return builder, parameters

    def _is_written(self, op: Operation) -> bool:
        return op.name in self._computed or op.name in self._build

    def _written(self) -> list[Operation]:
        """The nodes that have statements, in order."""
        computed, build = self._computed, self._build
        return [op for op in self._order if op.name in computed or op.name in build]

    def _build_node(self, builder: PlanBuilder, op: Operation) -> None:
        """Add the statements of a node."""
        if self._budget is not None:
            self._budget.check_time("compiling", op.name)
        kernel = self._computed.get(op.name)
        if kernel is None:
            self._build[op.name](builder)
        else:
            builder.kernel(op, kernel, is_by_value=True)

    def _is_by_value(self, op: Operation) -> bool:
        """Whether a node is given no references."""
        return not (self._has_references and any(tensor.dtype.is_ref for tensor in op.inputs))

    def _binder(self, op: Operation) -> Callable[[Operation], None]:
        """The function that decides how nodes of this node's op are computed."""
        if op.type in FUNCTIONAL_OPS:
            return self._bind_functional
        if op.type in _PASSING_ON:
            return self._bind_passing_on
        if op.type in _NOTHING:
            return lambda op: None
        return self._bind_kernel if self._library.function_of(op) is None else self._bind_functional

    def _bind_functional(self, op: Operation) -> None:
        emit = FUNCTIONAL_OPS.get(op.type, call_by_name)
        by_value = self._is_by_value(op)

        def build(builder: PlanBuilder) -> None:
            if not by_value:
                builder.read_references(op)
            emit(builder, op, self._library)

        self._build[op.name] = build

    def _bind_passing_on(self, op: Operation) -> None:
        if op.inputs[0].dtype.is_ref and not op.input_types[0].is_ref:
            self._build[op.name] = lambda builder: builder.dereference(op)
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
        elif self._suspends and (awaited := kernel.as_async()) is not None:
            self._build[op.name] = lambda builder: builder.awaited_kernel(op, awaited)
        elif self._watcher is not None and self._bind_watched(op, kernel, self._watcher):
            pass
        elif (
            isinstance(kernel, FunctionKernel) and kernel.function is forward_input and is_by_value
        ):
            for output, tensor in zip(op.outputs, op.inputs, strict=True):
                self._aliases[key_of(output)] = tensor
        elif is_by_value:
            self._computed[op.name] = kernel
            if self._in_groups and isinstance(kernel, FunctionKernel):
                pointwise = pointwise_function(kernel)
                if pointwise is not None:
                    self._pointwise[op.name] = pointwise
        else:
            self._build[op.name] = lambda builder: builder.kernel(op, kernel, is_by_value=False)

    def _bind_watched(self, op: Operation, kernel: OpKernel, watcher: KernelWatcher) -> bool:
        """Whether a watcher runs the node."""
        run = watcher.runner(op, kernel, self._required.params(op))
        compute = watcher.computer(op, kernel)
        if compute is not None and kernel.contract.forwards_inputs and self._is_by_value(op):
            self._build[op.name] = lambda builder: builder.forwarding_kernel(op, kernel, compute)
        elif run is not None:
            run = run if self._is_by_value(op) else runner_of_references(kernel, run)
            self._build[op.name] = lambda builder: builder.call(
                op, builder.bind(run, op.type, "kernel", kernel), builder.inputs(op)
            )
        return op.name in self._build


LINES_A_PART = (
    600  # compiling takes longer a line beyond: code reaches few locals by short instructions
)
MAX_DEPTH = 10  # of blocks in one function: Python allows 20 loops


def plan_functions(plan: PlanTree) -> list[PlanFunction]:
    """The functions that run a plan; the last, `plan`, is the one to call."""
    if _size(plan.block) <= LINES_A_PART and _depth(plan.block) <= MAX_DEPTH:
        return [plan]
    from opkernel.runtime.plan.parts import cut  # most plans are short

    return cut(plan)


def _size(block: Block) -> int:
    """How many statements there are in a block."""
    return len(block) + sum(map(_size, inner_blocks(block)))


def _depth(block: Block) -> int:
    """How deeply blocks are nested, this one included."""
    return 1 + max(map(_depth, inner_blocks(block)), default=0)


def inner_blocks(block: Block) -> Iterator[Block]:
    """The blocks in the items of a block."""
    return chain.from_iterable(blocks_of(i) for i in block if not isinstance(i, Statement))
