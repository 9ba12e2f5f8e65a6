"""GraphView: a graph as the dataflow executor sees it, for certain feeds and fetches.

Each node has the function that computes it: its kernel, a function of the graph, or the executor.

Source: TensorFlow core/common_runtime/graph_view.cc, immutable_executor_state.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError, as_op_error
from opkernel.graph import Tensor
from opkernel.graph.core.frame_loops import ROOT, control_flow_info, frame_name
from opkernel.graph.core.structural_ops import (
    ENTER_OPS,
    EXIT_OPS,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
    TRANSFER_OPS,
)
from opkernel.graph.edit.subgraph import Needs
from opkernel.kernel import (
    AsyncOpKernel,
    ContextParams,
    FrameAndIter,
    FunctionKernel,
    OpKernel,
    OpKernelContext,
    Step,
)
from opkernel.kernel.context.declared_outputs import flat_outputs
from opkernel.kernel.context.op_kernel_context import function_of_step
from opkernel.runtime.dataflow.frames import Iteration
from opkernel.runtime.dataflow.node_item import (
    Edge,
    FrameInfo,
    Kind,
    NodeItem,
    Requests,
    RootInfo,
    requests_of,
)
from opkernel.runtime.dataflow.parts import Part, find_parts
from opkernel.runtime.plan.functional_ops import FunctionLibrary, switch, switch_n
from opkernel.runtime.plan.keys import (
    Key,
    RequiredOutputs,
    dereferenced,
    function_of_references,
    key_of,
    referred_value,
)
from opkernel.runtime.plan.services import DEAD
from opkernel.runtime.program.kernels import KernelCache
from opkernel.runtime.program.request import ExecutorArgs
from opkernel.runtime.watch.kernel_watcher import Computer, KernelWatcher, Runner, Starter

StepFunction = Callable[[Step, Sequence[Any]], Sequence[Any]]

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(ENTER_OPS, Kind.ENTER),
    **dict.fromkeys(EXIT_OPS, Kind.EXIT),
    **dict.fromkeys(NEXT_ITERATION_OPS, Kind.NEXT_ITERATION),
    **dict.fromkeys(MERGE_OPS, Kind.MERGE),
    "ControlTrigger": Kind.CONTROL_TRIGGER,
    "NoOp": Kind.NOTHING,
}
"""The ops that the executor runs by propagating their inputs."""


def bind_node(
    item: NodeItem,
    kernels: KernelCache,
    library: FunctionLibrary,
    watcher: KernelWatcher | None,
    required: RequiredOutputs,
) -> None:
    """Set how a node is computed.

    Raises:
        NotFoundError: it has no kernel.
    """
    op = item.op
    if op.type in _KINDS:
        item.kind = _KINDS[op.type]
        _find_references(item)
        if item.kind == Kind.MERGE:
            item.function = [np.int32(index) for index in range(len(op.inputs))]
    elif op.type in SWITCH_OPS:
        item.kind = Kind.SWITCH
        _find_references(item)
        item.function = switch_n(len(op.outputs)) if op.type == "_SwitchN" else switch
    elif op.type == "LoopCond":
        item.kind, item.function = Kind.CALL, lambda tensor: tensor
    elif (requests := requests_of(op, library)) is not None:
        call_watcher = None if watcher is None else watcher.call_watcher(op)
        item.kind = Kind.CALLER
        requests = requests if call_watcher is None else call_watcher.requests(requests)
        _find_references(item)
        item.function = _of_values(item, requests) if item.refs else requests
    else:
        _bind_kernel(item, kernels.kernel(op), watcher, required)


def _bind_kernel(
    item: NodeItem, kernel: OpKernel, watcher: KernelWatcher | None, required: RequiredOutputs
) -> None:
    item.expensive = kernel.is_expensive
    if not isinstance(kernel, FunctionKernel):
        item.params = required.params(item.op)
    run = None if watcher is None else watcher.runner(item.op, kernel, item.params)
    has_references = any(tensor.dtype.is_ref for tensor in item.op.inputs)
    if kernel.const_tensor is not None:
        item.kind, item.function = Kind.CONSTANT, (kernel.const_tensor,)
        item.expensive = False
    elif (asynchronous := kernel.as_async()) is not None:
        _bind_async(item, asynchronous, watcher)
    elif not has_references and (compute := _computer(item, kernel, watcher)) is not None:
        item.kind, item.kernel, item.function = Kind.KERNEL, kernel, compute
        item.is_transfer = item.op.type in TRANSFER_OPS
    elif run is not None:
        item.kind, item.function = Kind.STEP, lambda step, flat: run(step, *flat)
    elif has_references:
        item.kind, item.function = Kind.STEP, function_of_references(kernel, item.params)
    elif isinstance(kernel, FunctionKernel):
        _bind_function(item, kernel)
    else:
        item.kind, item.function = Kind.STEP, function_of_step(kernel, params=item.params)


def _computer(item: NodeItem, kernel: OpKernel, watcher: KernelWatcher | None) -> Computer | None:
    """The function that computes a kernel in a context of the run, if it needs a context.

    The context says where in the loops the kernel is. Under watch it also keeps for itself what the
    kernel may take over.
    """
    has_place = item.frame.name and not isinstance(kernel, FunctionKernel)
    wants_place = item.op.type in TRANSFER_OPS or has_place
    if watcher is None:
        return kernel.compute if wants_place else None
    wants_own = wants_place or kernel.contract.forwards_inputs
    return watcher.computer(item.op, kernel) if wants_own else None


def _bind_async(item: NodeItem, kernel: AsyncOpKernel, watcher: KernelWatcher | None) -> None:
    op = item.op
    item.kind, item.kernel, item.function = Kind.ASYNC, kernel, kernel.start
    item.is_transfer = op.type in TRANSFER_OPS
    if watcher is not None:
        starter = watcher.starter(op, kernel)
        is_run = starter is None and not item.is_transfer
        run = watcher.runner(op, kernel, item.params) if is_run else None
        starter = starter if run is None else _on_thread(run)
        item.function = starter or item.function
    item.refs = tuple(i for i, tensor in enumerate(item.op.inputs) if tensor.dtype.is_ref)


def _bind_function(item: NodeItem, kernel: FunctionKernel) -> None:
    """Bind the function of a kernel, without a context where the arguments are no lists."""
    properties = kernel.properties
    count = len(properties.output_args)
    has_lists = any(arg.is_list for arg in (*properties.input_args, *properties.output_args))
    if has_lists or not count:
        item.kind, item.function = Kind.STEP, function_of_lists(kernel)
    else:
        item.kind, item.function = Kind.CALL if count == 1 else Kind.CALL_MANY, kernel.function


def function_of_lists(kernel: FunctionKernel) -> StepFunction:
    """A function kernel with list arguments as a function of the flat inputs."""
    function = kernel.function
    inputs = [(arg.is_list, arg.start, arg.stop) for arg in kernel.properties.input_args]

    def run(step: Step, flat: Sequence[Any]) -> Sequence[Any]:
        result = function(*[flat[a:b] if is_list else flat[a] for is_list, a, b in inputs])
        return flat_outputs(kernel, result)

    return run


def _on_thread(run: Runner) -> Starter:
    """Has a thread of its own run an asynchronous kernel to its end."""

    def start(ctx: OpKernelContext, done: Callable[[], None]) -> None:
        def work() -> None:
            try:
                ctx.outputs[:] = run(ctx.step, *ctx.inputs)
            except Exception as error:  # whatever a kernel raises belongs to the step
                ctx.set_status(as_op_error(error))
            done()

        threading.Thread(target=work, name=f"opkernel {ctx.kernel.name}", daemon=True).start()

    return start


def _of_values(
    item: NodeItem, requests: Callable[[Sequence[Any]], Requests]
) -> Callable[[Sequence[Any]], Requests]:
    """The requests of a node that calls functions, which get values where the node has references."""

    def of_values(inputs: Sequence[Any]) -> Requests:
        return (yield from requests(inputs_of(item, inputs)))

    return of_values


def _find_references(item: NodeItem) -> None:
    """Note the inputs that are references where control flow wants their values."""
    op = item.op
    item.refs = tuple(
        index
        for index, (tensor, wanted) in enumerate(zip(op.inputs, op.input_types, strict=True))
        if tensor.dtype.is_ref and not wanted.is_ref
    )


_CALL, _STEP = int(Kind.CALL), int(Kind.STEP)  # faster than the members


def call(item: NodeItem, iteration: Iteration, inputs: Sequence[Any]) -> Sequence[Any]:
    """The outputs of a node that is computed by a function.

    Raises:
        InternalError: they are not as many as the node has.
    """
    if item.kind == _CALL:
        return (item.function(*inputs),)
    outputs: Sequence[Any]
    if item.kind == _STEP:
        outputs = item.function(iteration.frame.step, inputs)
    else:
        outputs = item.function(*inputs)
    return check_number(item, outputs)


def check_number(item: NodeItem, outputs: Sequence[Any]) -> Sequence[Any]:
    """The outputs of a node.

    Raises:
        InternalError: they are not as many as the node has.
    """
    if len(outputs) != len(item.edges):
        raise InternalError(f"{len(item.edges)} outputs expected, the kernel gave {len(outputs)}")
    return outputs


def inputs_of(item: NodeItem, inputs: Sequence[Any]) -> Sequence[Any]:
    """The inputs as a kernel of its own context gets them: without references, None for dead ones."""
    if item.refs and item.kernel is not None:
        return dereferenced(item.kernel, inputs)
    if item.refs:  # of control flow, which wants their values
        inputs = list(inputs)
        for index in item.refs:
            inputs[index] = referred_value(inputs[index], item.op.inputs[index].op.name)
    return [None if value is DEAD else value for value in inputs] if item.is_transfer else inputs


def context_of(item: NodeItem, inputs: Sequence[Any], iteration: Iteration) -> OpKernelContext:
    """The context for a kernel, which says where in the loops it is."""
    assert item.kernel is not None
    frame = iteration.frame
    if frame.outer is None and not iteration.dead:
        return OpKernelContext(item.kernel, inputs, frame.step, item.params)
    params = ContextParams(
        frame_iter=FrameAndIter(frame.id, iteration.number),
        is_input_dead=item.id in iteration.dead,
        outputs_required=item.params.outputs_required,
    )
    return OpKernelContext(item.kernel, inputs, frame.step, params)


def outputs_of(item: NodeItem, ctx: OpKernelContext) -> Sequence[Any]:
    """The outputs that a kernel has set; an output that a receiver left unset is dead."""
    if not item.is_transfer:
        return ctx.finish()
    if ctx.status is not None:
        raise ctx.status
    return [DEAD if output is None else output for output in ctx.outputs]


class _Border:
    """An operation that stands for the feeds or fetches of the caller."""

    type = ""
    outputs = ()

    def __init__(self, name: str, inputs: Sequence[Tensor] = ()) -> None:
        self.name = name
        self.inputs = inputs


class GraphView:
    """The nodes that a step needs, with their edges; it does not change.

    Args:
        args: The graph.
        in_parts: Whether parts in which nothing waits are run as plans. Under watch they are not.

    Attributes:
        root: All that is in no loop.
        frames: The loops, by name, and the root frame; those that are run as plans are left out.
    """

    def __init__(self, args: ExecutorArgs, *, in_parts: bool = False) -> None:
        order, feeds, fetches = args.order, args.feeds, args.fetches
        self._needs = Needs(feeds)
        self._frame_of = control_flow_info(order, self._needs)
        self._check_fetches(fetches)
        self.root = RootInfo()
        self.frames: dict[str, FrameInfo] = {"": self.root}
        required = RequiredOutputs(order, feeds, fetches)
        self._item_of: dict[str, NodeItem] = {}
        if in_parts and args.watcher is None:
            self._add_parts(find_parts(args, self._frame_of, self._needs))
        for op in order:
            if op.name not in self._item_of:
                item = NodeItem(op, self._frame(self._frame_of[op.name].name))
                self._item_of[op.name] = item
                bind_node(item, args.kernels, args.library, args.watcher, required)
        items = [*dict.fromkeys(self._item_of.values())]
        self.root.source = self._border("the feeds")
        self.root.sink = self._border("the fetches", fetches)
        self.root.sink.kind = Kind.RETURN.value
        self.root.sink.is_transfer = True
        self._connect(items, feeds)
        self.root.roots = self._start(items)

    def _add_parts(self, parts: Sequence[Part]) -> None:
        """Add a node for each part; the frame of a loop is the one that its Enters are in."""
        for part in parts:
            enters = [op for op in part.operations if op.type in ENTER_OPS]
            frames = [self._frame_of[op.name] for op in enters or part.operations[:1]]
            outermost = min(frames, key=lambda frame: frame.depth)
            item = NodeItem(part.operations[0], self._frame(outermost.name), part)
            item.kind, item.function = Kind.STEP, part.function()
            self._item_of.update(dict.fromkeys([op.name for op in part.operations], item))

    def _border(self, name: str, inputs: Sequence[Tensor] = ()) -> NodeItem:
        return NodeItem(_Border(name, inputs), self.root)  # type: ignore[arg-type]  # what is read of it

    def _frame(self, name: str) -> FrameInfo:
        return self.frames.setdefault(name, FrameInfo(name))

    def _check_fetches(self, fetches: Sequence[Tensor]) -> None:
        for tensor in fetches:
            if self._needs.is_fed(tensor):
                continue
            op, frame = tensor.op, self._frame_of[tensor.op.name]
            inside = frame_name(op) if op.type in ENTER_OPS else frame.name
            if inside and not (op.type in EXIT_OPS and frame.parent is ROOT):
                raise InvalidArgumentError(
                    f"The tensor {tensor.name} is inside the loop '{inside}' and cannot be "
                    "fetched: fetch what an Exit leads out of it",
                    node=op.name,
                    op=op.type,
                )

    def _connect(self, items: Sequence[NodeItem], feeds: Sequence[Tensor]) -> None:
        """Set all edges, and the number of inputs that each node waits for."""
        fed: dict[Key, list[Edge]] = {key_of(tensor): [] for tensor in feeds}
        outputs: dict[Key, list[Edge]] = {key: [] for item in items for key in item.outputs}
        controls: dict[NodeItem, list[Edge]] = {item: [] for item in items}
        to = outputs | fed
        source, sink = self.root.source, self.root.sink
        for item in [*items, sink]:
            for index, tensor in enumerate(item.inputs):
                to[key_of(tensor)].append((item.start + index, item.id, item))
        for item in items:
            before = self._controls(item)
            for one in before:
                controls[one].append((-1, item.id, item))
            inputs = len(item.inputs)
            item.pending = 1 + 2 * len(before) if item.kind == Kind.MERGE else inputs + len(before)
        sink.pending = source.pending = len(sink.op.inputs) + 1
        source.edges = tuple(tuple(edges) for edges in fed.values())
        for item in items:
            item.edges = tuple(tuple(outputs[key]) for key in item.outputs)
            item.controls = tuple(controls[item])
            self._finish(item)
        for frame in self.frames.values():
            frame.pending = [item.pending for item in frame.items]

    def _controls(self, item: NodeItem) -> list[NodeItem]:
        """The nodes that a node waits for without taking a value."""
        sources = [source for op in item.operations for source in self._needs.controls(op)]
        found = dict.fromkeys(self._item_of[source.name] for source in sources)
        if item.part is not None:
            found.pop(item, None)
        return [*found]

    def _finish(self, item: NodeItem) -> None:
        consumers = [edge[2].kind for to in (*item.edges, item.controls) for edge in to]
        item.is_simple = item.kind < Kind.SWITCH and Kind.MERGE not in consumers
        if item.kind == Kind.EXIT:
            item.frame.exits += 1
        if item.kind == Kind.ENTER:
            frame = item.enters = self._frame(frame_name(item.op))
            frame.enters += 1
            frame.parallel_iterations = max(item.op.get_attr("parallel_iterations"), 1)
            item.is_constant = item.op.get_attr("is_constant")

    def _start(self, items: Iterable[NodeItem]) -> list[NodeItem]:
        """The nodes that are ready when a step begins, once the constants have been handed on."""
        waiting_for_nothing = [i for i in items if not i.pending and i.frame is self.root]
        ready = []
        for item in waiting_for_nothing:
            if item.kind == Kind.CONSTANT and item.is_simple:
                ready += self._hand_on(item)
            else:
                ready.append(item)
        return ready[::-1]  # the last is taken first

    def _hand_on(self, constant: NodeItem) -> list[NodeItem]:
        """Put a constant into the slots that every step starts with."""
        ready = []
        for slot, number, item in (*constant.edges[0], *constant.controls):
            if slot >= 0:
                (self.root.slots[slot],) = constant.function
            self.root.pending[number] -= 1
            if not self.root.pending[number]:
                ready.append(item)
        return ready
