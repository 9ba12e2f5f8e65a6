"""Binding: how each node is computed by its kernel, by functions of the graph, or by the executor.

Source: TensorFlow core/common_runtime/immutable_executor_state.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import as_op_error
from opkernel.graph.core.structural_ops import (
    ENTER_OPS,
    EXIT_OPS,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
    TRANSFER_OPS,
)
from opkernel.kernel import (
    AsyncOpKernel,
    FunctionKernel,
    OpKernel,
    OpKernelContext,
    Step,
)
from opkernel.kernel.context.declared_outputs import flat_outputs
from opkernel.kernel.context.op_kernel_context import function_of_step
from opkernel.runtime.dataflow.computing import inputs_of
from opkernel.runtime.dataflow.node_item import (
    Kind,
    NodeItem,
    Requests,
    requests_of,
)
from opkernel.runtime.plan.functional_ops import FunctionLibrary, switch, switch_n
from opkernel.runtime.plan.keys import (
    RequiredOutputs,
    function_of_references,
)
from opkernel.runtime.program.kernels import KernelCache
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
        _find_references(item)
        item.function = switch_n(len(op.outputs)) if op.type == "_SwitchN" else switch
        item.kind = Kind.SWITCH if item.refs else Kind.CALL_MANY
        item.may_die = True
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
    if watcher is None and kernel.has_attempt and not (item.is_transfer or item.refs):
        item.attempt = kernel.attempt


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
