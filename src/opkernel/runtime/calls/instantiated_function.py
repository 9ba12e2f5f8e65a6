"""InstantiatedFunction: a function with its attrs, ready to be called; the handle of a library.

Plans call it as `function(step, *arguments)` with nothing between them and the function's own plan. A `CallOp` is
for callers that ask for the kernel of any node.

State: a call runs `_run`. At first `_run` compiles the body, then it is the plan, and after the release of
the handle it refuses. A FunctionInstance has what all plans of a function share: the body, with its kernels and
their state. It gives each runtime one handle, and other ones once a kernel has changed.

Source: InstantiatedFunction, CallOp in TensorFlow core/common_runtime/function.cc.
"""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opkernel.errors import NotFoundError, OpError
from opkernel.graph import FunctionBody, Operation, instantiate_function
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.functions.calls import CallTypes, declared_types
from opkernel.graph.functions.function_library import GRADIENT_OP
from opkernel.graph.inference.tensor_facts import FactsKey, TensorFacts, key_of_facts
from opkernel.kernel import (
    AsyncOpKernel,
    FunctionRunOptions,
    InstantiateOptions,
    NodeProperties,
    OpKernelConstruction,
    OpKernelContext,
    Step,
    global_kernel_registry,
)
from opkernel.kernel.node_properties import MemoryTypes, mtype_from_dtype
from opkernel.proto import FunctionDef, NameAttrList, NodeDef
from opkernel.records import dataclass, field, replace
from opkernel.runtime.calls.function_options import FunctionStep, bound_to, executor_type_of
from opkernel.runtime.program.builder import build_program, prepare
from opkernel.runtime.program.call_frame import CallStep, CallSteps
from opkernel.runtime.program.executors import Executor
from opkernel.runtime.program.kernels import KernelCache, version_of
from opkernel.runtime.program.request import ProgramRequest, Subgraph

if TYPE_CHECKING:
    from opkernel.kernel import GraphCollector
    from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
    from opkernel.types import DataType


_numbers = itertools.count()
_NO_RUN_OPTIONS = FunctionRunOptions()
_MAX_VARIANTS = 8
"""A function that calls itself on ever larger arguments has no more plans of its own for them."""


_NO_FUNCTION = FunctionDef()
"""The stand-in for a definition, of the gradient of a single op."""


def handle_of(
    runtime: FunctionLibraryRuntime,
    reference: NameAttrList,
    options: InstantiateOptions,
    *,
    is_pruned: bool = False,
) -> InstantiatedFunction:
    """The handle of a function in a runtime; one for equal names, attrs and options.

    The first use of the handle makes the body, and tells errors in it.

    Raises:
        NotFoundError: there is no such function.
    """
    definition = _definition(runtime, reference)
    executor_type = executor_type_of(reference.attr, options)
    key = (
        reference.SerializeToString(deterministic=True),
        executor_type,
        options.is_multi_device_function,
        options.input_devices,
        options.output_devices,
        options.config_proto,
        is_pruned,
    )
    cache = runtime.cache
    with cache.lock:
        instance = cache.instances.get(key)
        if instance is None or instance.definition is not definition:
            instance = cache.instances[key] = FunctionInstance(
                cache.plain, key, definition, reference, executor_type, is_pruned
            )
        return instance.handle(runtime)


def _definition(runtime: FunctionLibraryRuntime, reference: NameAttrList) -> FunctionDef:
    """The function of a name; that which a gradient is of, or made by, for a gradient."""
    name, library = reference.name, runtime.library
    if name == GRADIENT_OP:
        forward = reference.attr["f"].func.name
        name = library.find_gradient(forward) or forward
        if name not in library:
            return _NO_FUNCTION
    return runtime.library_with(name).get_function(name)


@dataclass(eq=False, repr=False)
class FunctionInstance:
    """A function with its attrs, on a device and with a state.

    Attributes:
        runtime: Has the functions that it calls, and makes its kernels.
        key: The name, attrs and options that it was instantiated with.
        definition: The function, as it is in the library.
        reference: Its name and attrs.
        executor_type: The registered name of its executor; empty for that of the runtime.
        is_pruned: Whether what neither a result nor a control output needs does not run.
        references: How many calls of `instantiate` have not been undone.
        number: A number that no other instance of the process has.
        lock: Held while the body or a plan is made: two plans would have two kernels for one stateful node.
    """

    runtime: FunctionLibraryRuntime
    key: Hashable
    definition: FunctionDef
    reference: NameAttrList
    executor_type: str
    is_pruned: bool
    references: int = 0
    number: int = field(default_factory=_numbers.__next__)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _is_released: bool = False
    _made: tuple[FunctionBody, KernelCache] | None = None
    _handles: dict[FunctionLibraryRuntime, InstantiatedFunction] = field(default_factory=dict)
    _version: int = 0

    @cached_property
    def types(self) -> CallTypes | None:
        """Its declared input and output types; None where it cannot be instantiated."""
        return declared_types(self.definition.signature, self.reference.attr)

    def handle(self, runtime: FunctionLibraryRuntime) -> InstantiatedFunction:
        """One more reference to the handle of a runtime, with plans for the kernels as they are now."""
        version = global_kernel_registry().version
        if self._version != version:
            self._handles, self._version = {}, version
        handle = self._handles.get(runtime)
        if handle is None:
            handle = self._handles[runtime] = InstantiatedFunction(self, runtime)
        self.references += 1
        return handle

    def made(self) -> tuple[FunctionBody, KernelCache]:
        """The body and its kernels; raises as `InstantiatedFunction.body` does."""
        with self.lock:
            if self._made is None:
                self.check_alive()
                library, reference = self.runtime.known_functions(), self.reference
                if reference.name == GRADIENT_OP:
                    from opkernel.gradients import symbolic_gradient_body  # seldom needed

                    body = symbolic_gradient_body(library, reference)
                else:
                    body = instantiate_function(library, self.definition, reference.attr)
                self._made = body, self.runtime.kernels_of(body.graph)
            return self._made

    def check_alive(self) -> None:
        """Raise NotFoundError where it was released."""
        if self._is_released:
            self.refuse()

    def refuse(self, *_: Any) -> Sequence[Any]:
        """Raise NotFoundError: it was released."""
        name = self.reference.name
        raise NotFoundError(f"Handle {self.number} not found: it was released ({name})")

    def release(self, handle: InstantiatedFunction) -> None:
        """Let go of body, kernels and their state; this handle and those of now refuse calls from now on."""
        with self.lock:
            self._is_released = True
            self._made = None
            for one in (handle, *self._handles.values()):  # others, where a kernel has changed
                one.forget_plans()


class InstantiatedFunction:
    """A function with its attrs on a device.

    Body and plan are made when they are first needed, so that functions may call each other, or
    themselves. Functions with equal kernels share their state.

    Args:
        instance: What it shares with other plans of the function.
        runtime: Gives the functions that it calls.
        facts: What is known of its arguments, if anything is.
        error: What body, plan and calls raise instead, where given.

    Attributes:
        name: The name of the FunctionDef.
        number: The number of the instance.
        definition: The function, as it is in the library.
        is_pruned: Whether what neither a result nor a control output needs does not run.
        call_steps: Gives calls of the plan a step that knows the call; None where no kernel may ask.
    """

    def __init__(
        self,
        instance: FunctionInstance,
        runtime: FunctionLibraryRuntime,
        facts: Sequence[TensorFacts] = (),
        error: OpError | None = None,
    ) -> None:
        self.instance, self.runtime = instance, runtime
        self.name, self.number = instance.reference.name, instance.number
        self.definition, self.is_pruned = instance.definition, instance.is_pruned
        self.call_steps: CallSteps | None = None
        self._facts, self._error = facts, error
        self._variants: dict[FactsKey, InstantiatedFunction] = {}
        self._plan: Executor | None = None
        self._frame_plan: Executor | None = None
        self._run: Callable[..., Sequence[Any]] = self._compile_and_run

    def __repr__(self) -> str:
        return f"<function {self.name!r}, handle {self.number}>"

    def __call__(self, step: Step, *arguments: Any) -> Sequence[Any]:
        """Run the function; the results are its outputs, flat."""
        if self.call_steps is not None:
            step = CallStep(step, self.call_steps, arguments)
        return self._run(step, *arguments)

    def run_with_frame(self, step: Step) -> None:
        """Run the function; arguments come from, and results go to, the step's call frame."""
        with self.instance.lock:
            plan = self._frame_plan
            if plan is None:
                targets = [*self.body.ret_nodes, *self.targets]
                plan = self._frame_plan = self._new_executor(Subgraph([], [], targets))
        plan.run(step)

    @property
    def body(self) -> FunctionBody:
        """The function as a graph.

        Raises:
            NotFoundError: an attr is missing, or an op is not registered.
            InvalidArgumentError: a node of the function breaks a rule.
        OpError: the error given to `refusing`.
        """
        return self._body_and_kernels()[0]

    @property
    def call_types(self) -> tuple[tuple[DataType, ...], tuple[DataType, ...]]:
        """The types of the arguments and of the results; raises as `body` does."""
        return self.body.arg_types, self.body.ret_types

    def bound(self, step: Step) -> Callable[..., Sequence[Any]]:
        """The function of the arguments that calls it within a step; it raises as `FunctionLibraryRuntime.run`."""
        return bound_to(self, step, self.runtime)

    @property
    def targets(self) -> tuple[Operation, ...]:
        """The operations of the body that always run; raises as `body` does."""
        return self.body.control_ret_nodes if self.is_pruned else self.body.targets

    @property
    def plan(self) -> Executor:
        """The executor of the body; raises as `body` and `new_executor` do."""
        with self.instance.lock:
            if self._plan is None:
                self._plan = self._new_executor(self._part)
                body, kernels = self._body_and_kernels()
                if kernels.asks_for_call:
                    executor_type = self.instance.executor_type or self.runtime.executor_type
                    self.call_steps = CallSteps(body.arg_types, body.ret_types, executor_type)
            return self._plan

    def give_back(self) -> None:
        """Undo one `handle_of`; with the last, the function and its kernels' state go."""
        instance, cache = self.instance, self.runtime.cache
        with cache.lock:
            instance.references -= 1
            if instance.references > 0:
                return
            if cache.instances.get(instance.key) is instance:  # it was not defined anew since
                del cache.instances[instance.key]
        instance.release(self)

    def forget_plans(self) -> None:
        """Let go of the plans; calls are refused from now on."""
        self._plan = self._frame_plan = None
        self._run = self.instance.refuse

    def refusing(self, error: OpError) -> InstantiatedFunction:
        """The same handle for a call that does not fit: body, plan and calls raise the error."""
        return InstantiatedFunction(self.instance, self.runtime, error=error)

    def for_arguments(self, facts: Sequence[TensorFacts]) -> InstantiatedFunction:
        """The function with a plan for arguments with these known facts, and the same kernels.

        It is the function itself where nothing is known, there are enough such plans, or a plan of its
        own would start state anew.
        """
        if all(one.are_empty for one in facts) or self._makes_functions_of_state:
            return self
        key, _ = key_of_facts(facts)
        variant = self._variants.get(key)
        if variant is None and len(self._variants) < _MAX_VARIANTS:
            made = InstantiatedFunction(self.instance, self.runtime, facts, self._error)
            variant = self._variants.setdefault(key, made)
        return variant or self

    @property
    def _makes_functions_of_state(self) -> bool:
        """Whether passes make functions, other ones for each plan, of what may have kernels with state."""
        ops = {node.op for node in self.definition.node_def}
        if ops.isdisjoint(LOW_LEVEL_CONTROL_FLOW) or not self.runtime.is_stateful(self.name):
            return False
        return self.runtime.jit.options_for(self._part) is not None

    def _compile_and_run(self, step: Step, *arguments: Any) -> Sequence[Any]:
        with self.instance.lock:
            self.instance.check_alive()
            run = self.plan.run
            self._run = self._within_runtime(run) if self.runtime.origin else run
        return self(step, *arguments)

    def _within_runtime(self, run: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
        """Has kernels find the functions of this runtime, which are not those of the step."""
        runtime = self.runtime

        def run_within(step: Step, *arguments: Any) -> Sequence[Any]:
            if step.function_library is not runtime:
                step = FunctionStep(step, _NO_RUN_OPTIONS, **runtime.services)
            return run(step, *arguments)

        return run_within

    def _body_and_kernels(self) -> tuple[FunctionBody, KernelCache]:
        if self._error is not None:
            raise copy.copy(self._error)
        return self.instance.made()

    @property
    def _part(self) -> Subgraph:
        return Subgraph(self.body.inputs, self.body.outputs, self.targets)

    def collect_graphs(self, collector: GraphCollector) -> None:
        """Have a collector take the graphs that are made of it; raises as `plan` does."""
        from opkernel.runtime.placement.partition_graphs import collect_graphs  # seldom asked for

        part = self._part
        if part.fetches or part.targets:
            collect_graphs(self.body.graph, self._request(part), collector)

    def _new_executor(self, part: Subgraph) -> Executor:
        return build_program(self._request(part)).executor

    def _request(self, part: Subgraph) -> ProgramRequest:
        runtime, facts = self.runtime, self._facts
        if len(facts) != len(part.feeds):
            facts = [TensorFacts() for _ in part.feeds]
        kernels = self._body_and_kernels()[1]
        request = runtime.request(part, kernels, facts, lowers=self.is_pruned)
        if self.instance.executor_type:
            request = replace(request, executor_type=self.instance.executor_type)
        if self._facts and request.jit_options() is None:  # the bits of the function without facts
            plain, _ = prepare(replace(request, feed_facts=[TensorFacts() for _ in facts]))
            request = replace(request, part=plain, keeps_bits=True)
        return request


class CallOp(AsyncOpKernel):
    """Runs a function as part of the step that it is computed in."""

    def __init__(self, construction: OpKernelConstruction, handle: InstantiatedFunction) -> None:
        super().__init__(construction)
        self._handle = handle

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the function on the thread that calls."""
        ctx.outputs[:] = self._handle(ctx.step, *ctx.inputs)

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        """Run the function on another thread."""

        def finish(error: OpError | None, results: Sequence[Any]) -> None:
            if error is not None:
                ctx.set_status(error)
            else:
                ctx.outputs[:] = results
            done()

        options = FunctionRunOptions(step=ctx.step)
        self._handle.runtime.run_async(options, self._handle, ctx.inputs, finish)


def create_call_op(handle: InstantiatedFunction, node_def: NodeDef) -> CallOp:
    """The kernel that calls a function for a node of its name."""
    runtime, body = handle.runtime, handle.body
    properties = NodeProperties.of(
        node_def, body.function_def.signature, body.arg_types, body.ret_types
    )
    # Functions take and give int32 tensors, and tensors that no device can hold, on the host.
    memory = [tuple(map(mtype_from_dtype, types)) for types in (body.arg_types, body.ret_types)]
    construction = OpKernelConstruction(
        runtime.device,
        properties,
        MemoryTypes(*memory),
        version_of(runtime.graph_def_version),
        runtime,
    )
    return CallOp(construction, handle)
