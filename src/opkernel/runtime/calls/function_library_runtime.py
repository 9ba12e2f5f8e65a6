"""FunctionLibraryRuntime: the functions of a library, instantiated and run on one device.

A handle is an InstantiatedFunction. Plans hold the same handles and call them directly; `CalledFunctions`
gives plans the handles for their nodes. `run` is for all other callers: it checks the arguments, and sees to
the step.

A runtime says how functions are compiled, and never changes. All runtimes that are derived from it are made by
`replace`: for other kinds of steps (`for_steps`), for the library, device or state that options ask for, and
so for the functions that a function calls, and clones.

State: the FunctionCache, which the runtimes for all kinds of steps share, and the functions that passes add.

Source: TensorFlow core/common_runtime/function.cc, process_function_library_runtime.cc,
lower_functional_ops.cc, graph_execution_state.cc.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from opkernel import kernel
from opkernel.device.local_device import CPU, LocalDevice
from opkernel.errors import InternalError, InvalidArgumentError, NotFoundError
from opkernel.graph import FunctionLibraryDefinition, Graph, Operation
from opkernel.graph.functions.calls import is_lowered, is_part_of_graph
from opkernel.graph.functions.function_library import GRADIENT_OP
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.kernel import KernelProvider, OpKernel, create_op_kernel
from opkernel.opdef import GRAPH_DEF_VERSION, canonicalize_device_name
from opkernel.proto import AttrValue, NameAttrList, NodeDef
from opkernel.records import dataclass, field, replace
from opkernel.runtime import calls  # loaded where there are functions
from opkernel.runtime.placement.placer import OneDevice
from opkernel.runtime.program.call_frame import FunctionCallFrame, check_args
from opkernel.runtime.program.kernels import (
    AnyVersion,
    KernelCache,
    SessionSegment,
    has_state,
    version_of,
)
from opkernel.runtime.program.request import NO_JIT, Jit, Passes, ProgramRequest, Subgraph, Variant
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.graph import FunctionBody
    from opkernel.kernel import CallFrame, FunctionDone, FunctionRunOptions, InstantiateOptions
    from opkernel.runtime.calls.instantiated_function import FunctionInstance, InstantiatedFunction
    from opkernel.runtime.program.inter_op_pool import InterOpPool
    from opkernel.runtime.watch.kernel_watcher import KernelWatcher

__all__ = ["FunctionLibraryRuntime"]


_PARTITIONED = ("PartitionedCall", "StatefulPartitionedCall")
"""The ops for which an unknown function is an invalid argument, and not a missing one, as in TensorFlow."""


class CalledFunctions:
    """Gives the functions that nodes call.

    Attributes:
        runtime: Has the functions.
        lowers: Whether If, Case and While are lowered in the graph of the nodes.
    """

    def __init__(self, runtime: FunctionLibraryRuntime, *, lowers: bool = False) -> None:
        self.runtime = runtime
        self.lowers = lowers

    def functions(self, op: Operation, attr: str) -> list[InstantiatedFunction]:
        """The functions of an attr of type `func` or `list(func)` of a node."""
        value = op.node_def.attr[attr]
        references = value.list.func if value.HasField("list") else [value.func]
        options = calls.options_of_call(op.node_def)
        return [self._called(op, one, options, attr) for one in references]

    def function_of(self, op: Operation) -> InstantiatedFunction | None:
        """The function that a node calls by having its name as op; None for all other nodes.

        A SymbolicGradient calls the gradient of the function in its attr `f`.
        """
        is_gradient, runtime = op.type == GRADIENT_OP, self.runtime
        if not is_gradient and op.type not in runtime.library_with(op.type):
            return None
        reference = NameAttrList(name=op.type, attr=op.node_def.attr)
        if is_gradient:
            return calls.handle_of(runtime, reference, kernel.InstantiateOptions())
        return self._called(op, reference, kernel.InstantiateOptions())

    def add_functions(self, library: FunctionLibraryDefinition) -> None:
        """Know the functions, too, that a pass has added to a copy of the library."""
        self.runtime.add_functions(library)

    def _called(
        self, op: Operation, reference: NameAttrList, options: InstantiateOptions, attr: str = ""
    ) -> InstantiatedFunction:
        """The handle of a function that a node calls; it refuses calls with other types than its own."""
        from opkernel.graph.functions.calls import misfit

        is_pruned = is_part_of_graph(op) or self._is_inlined(op, reference.name, attr)
        try:
            function = calls.handle_of(self.runtime, reference, options, is_pruned=is_pruned)
        except NotFoundError as missing:
            kind = InvalidArgumentError if op.type in _PARTITIONED else NotFoundError
            raise kind(missing.message, node=op.name, op=op.type) from None
        error = misfit(op, attr, function.name, function.instance.types)
        return function if error is None else function.refusing(error)

    def _is_inlined(self, op: Operation, name: str, attr: str) -> bool:
        """Whether lowering a node puts the function of one of its attrs into the graph."""
        if not (self.lowers and attr and is_lowered(op)):
            return False
        noinline = self.runtime.library_with(name).get_attr(NodeDef(op=name), "_noinline")
        return noinline is None or not noinline.b


class FunctionCache:
    """What is instantiated for one library, device and state.

    Attributes:
        instances: The functions, by name, attrs and options.
        runtimes: Who instantiates them, by the kind of steps.
        derived: The caches for other libraries, devices and states; their handles keep them alive.
        lock: Held while any of these changes, or a function is added to the library.
    """

    def __init__(self) -> None:
        self.instances: dict[Hashable, FunctionInstance] = {}
        self.runtimes: dict[Variant, FunctionLibraryRuntime] = {}
        self.derived = weakref.WeakValueDictionary[Hashable, FunctionCache]()
        self.lock = threading.Lock()

    @property
    def plain(self) -> FunctionLibraryRuntime:
        """The runtime for plain steps, which makes the kernels for all kinds of steps."""
        return self.runtimes[""]


@dataclass(frozen=True, eq=False, repr=False)
class FunctionLibraryRuntime:
    """Instantiates functions, once for equal names, attrs and options, and runs them.

        runtime = FunctionLibraryRuntime(graph.function_library)
        handle = runtime.instantiate("XTimesTwo", {"T": AttrValue(type=DT_FLOAT)})
        (y,) = runtime.run(FunctionRunOptions(), handle, [x])

    Once a registered kernel has changed, functions are compiled anew; the kernels that have not
    changed stay, with their state.

    Attributes:
        library: the functions.
        graph_def_version: the version of GraphDef whose rules count, or a function that gives it.
        device: where they run.
        watcher: watches the kernels, where given.
        executor_type: the executor of functions that name none.
        inter_op_pool: threads for expensive kernels, where given.
        devices: all devices that functions may be instantiated on; `device` alone if empty.
        optimize: the optimisation passes that run on bodies before they are compiled.
        providers: the providers that are asked for kernels; `default_providers` if None.
        jit: the engines that compile parts of bodies.
        state_handle: names the state that kernels share.
        steps: the kind of steps that run the functions.
        origin: the runtime that a user made, where options have asked it for this one.
        added: functions that passes have added. They are known to the runtime alone: the library is the user's.
        cache: what is instantiated.
    """

    library: FunctionLibraryDefinition
    graph_def_version: AnyVersion = GRAPH_DEF_VERSION
    device: LocalDevice = CPU
    watcher: KernelWatcher | None = None
    executor_type: str = ""
    inter_op_pool: InterOpPool | None = None
    devices: Sequence[LocalDevice] = ()
    optimize: Passes = False
    providers: Sequence[KernelProvider] | None = None
    jit: Jit = NO_JIT
    state_handle: str = ""
    steps: Variant = ""
    origin: FunctionLibraryRuntime | None = None
    added: FunctionLibraryDefinition = field(default_factory=FunctionLibraryDefinition)
    cache: FunctionCache = field(default_factory=FunctionCache)

    def __post_init__(self) -> None:
        self.cache.runtimes[self.steps] = self

    # Handles.

    def instantiate(
        self,
        name: str,
        attrs: Mapping[str, AttrValue] | None = None,
        options: InstantiateOptions | None = None,
    ) -> InstantiatedFunction:
        """The handle of a function with attrs; to be given back with `release_handle`.

        Raises:
            NotFoundError: there is no such function, an attr is missing, an op is not registered,
                or, where kernels are made eagerly, a kernel or the executor.
            InvalidArgumentError: a node of the function breaks a rule, or an option does not fit.
            InternalError: the target is no device of this process.
        """
        options = kernel.InstantiateOptions() if options is None else options
        runtime = self._derived(options)
        handle = calls.handle_of(runtime, NameAttrList(name=name, attr=attrs or {}), options)
        try:
            body = handle.body
            if options.is_multi_device_function:
                calls.check_multi_device(body.function_def, options)
            if options.graph_collector is not None:
                handle.collect_graphs(options.graph_collector)
            if options.create_kernels_eagerly:
                _ = handle.plan
        except BaseException:
            runtime.release_handle(handle)
            raise
        return handle

    def release_handle(self, handle: InstantiatedFunction) -> None:
        """Undo a call of `instantiate`; with the last the function, and its kernels' state, go.

        Raises:
            NotFoundError: the handle was released before.
        """
        handle.instance.check_alive()
        handle.give_back()

    def get_function_body(self, handle: InstantiatedFunction) -> FunctionBody:
        """The function as a graph; NotFoundError where the handle was released."""
        return handle.body

    def get_ret_types(self, handle: InstantiatedFunction) -> tuple[DataType, ...]:
        """The types of the results; NotFoundError where the handle was released."""
        return handle.body.ret_types

    def debug_string(self, handle: InstantiatedFunction) -> str:
        """The function as text that people can read; NotFoundError where it was released."""
        from opkernel.graph import print_instantiated  # of functions alone

        return print_instantiated([op.node_def for op in handle.body.graph.get_operations()])

    # Running.

    def run(
        self, options: FunctionRunOptions, handle: InstantiatedFunction, args: Sequence[Any]
    ) -> list[Any]:
        """Run a function to its end, on the thread that calls.

        Args:
            options: how; its `step` is that of the kernel that calls, where one does.
            handle: the function.
            args: an array for each argument.

        Returns:
            The results, flat; where `allow_dead_tensors` says so, None for those that are dead.

        Raises:
            NotFoundError: the handle was released, or a needed node has no kernel.
            InvalidArgumentError: the number of arguments, or the type of one, is wrong.
            OpError: as a kernel raised it.
        """
        body = handle.body
        if options.allow_dead_tensors:
            frame = FunctionCallFrame(body.arg_types, body.ret_types)
            frame.set_args(args)
            self.run_with_frame(options, handle, frame)
            return frame.consume_retvals(allow_dead_tensors=True)
        check_args(body.arg_types, args)
        return list(calls.run_in_step(lambda step: handle(step, *args), options, handle.runtime))

    def run_with_frame(
        self, options: FunctionRunOptions, handle: InstantiatedFunction, frame: CallFrame
    ) -> None:
        """Run a function that takes its arguments from, and puts its results into, a call frame."""
        handle.instance.check_alive()
        calls.run_in_step(handle.run_with_frame, options, handle.runtime, frame)

    def run_async(
        self,
        options: FunctionRunOptions,
        handle: InstantiatedFunction,
        args: Sequence[Any],
        done: FunctionDone,
    ) -> None:
        """Run a function on another thread: one that the runner of the options chooses, or a new one.

        The threads of a pool are not for it: functions may wait for each other.

        `done` is called there with None and the results, or with what `run` raises as an OpError.
        """
        calls.call_async(partial(self.run, options, handle, args), options.runner, done)

    # Reading the library.

    @property
    def services(self) -> dict[str, Any]:
        """The services that steps of its functions get, by the names of the attributes of steps."""
        services: dict[str, Any] = {"function_library": self}
        if self.origin is not None and self.origin.device is not self.device:
            services["resource_manager"] = self.device.resource_manager
        return services

    def get_function_library_definition(self) -> FunctionLibraryDefinition:
        """The functions that are found where no other library is given."""
        return self.library

    def known_functions(self) -> FunctionLibraryDefinition:
        """The functions of the library, and those added by passes; not to be changed."""
        return self.library.joined_with(self.added) if self.added else self.library

    def add_functions(self, library: FunctionLibraryDefinition) -> None:
        """Know the functions, too, that a pass has added to a copy of the library.

        Raises:
            InvalidArgumentError: another one of such a name was added before.
        """
        with self.cache.lock:
            for name in library.keys() - self.library.keys():
                self.added.add_function(library[name])

    def library_with(self, name: str) -> FunctionLibraryDefinition:
        """Where a function that passes have added stands; for all other names the user's library."""
        return self.added if name in self.added else self.library

    def is_stateful(self, name: str) -> bool:
        """Whether the function, or op, of a name has state; false where there is none."""
        return has_state(self.library_with(name), name)

    def create_kernel(self, node_def: NodeDef) -> OpKernel:
        """The kernel of a node: its op's kernel, or one that calls the function of this name.

        Raises:
            NotFoundError: there is neither function nor kernel.
            InvalidArgumentError: the node, or the function, breaks a rule.
        """
        if node_def.op in self.library_with(node_def.op):
            return calls.create_call_op(self.instantiate(node_def.op, node_def.attr), node_def)
        return create_op_kernel(
            self.device,
            node_def,
            op_registry=self.library.op_registry,
            graph_def_version=version_of(self.graph_def_version),
            function_library=self,
            providers=self.providers,
        )

    def clone(self, *, skip_library: bool = False) -> FunctionLibraryRuntime:
        """A runtime like this one, with no function instantiated and a copy of the library.

        With `skip_library` the library is empty.
        """
        registry = self.library.op_registry
        return self.with_library(
            FunctionLibraryDefinition(registry) if skip_library else self.library.copy()
        )

    def with_library(self, library: FunctionLibraryDefinition) -> FunctionLibraryRuntime:
        """A runtime like this one, with the functions of a library, none of them instantiated."""
        added = FunctionLibraryDefinition(library.op_registry)
        other = replace(
            self.cache.plain, library=library, origin=None, added=added, cache=FunctionCache()
        )
        return other.for_steps(self.steps)

    # For programs.

    def for_steps(self, steps: Variant) -> FunctionLibraryRuntime:
        """The runtime with plans for a kind of steps. It shares the kernels and state of this runtime."""
        if steps == "partial":
            return self
        cache = self.cache
        known = cache.runtimes.get(steps)
        if known is None:
            from opkernel.runtime.watch.watched_computation import watcher_of_steps

            watcher = watcher_of_steps(steps, self.watcher)
            with cache.lock:
                known = cache.runtimes.get(steps) or replace(self, watcher=watcher, steps=steps)
        return known

    def kernels_of(self, graph: Graph, op_segment: SessionSegment | None = None) -> KernelCache:
        """The kernels of a graph whose nodes call functions of this runtime, on its device.

        Those with state are in the segment, where given, for all graphs that have them in it.
        """
        return KernelCache(
            self.graph_def_version, graph.op_registry, self.device, self, self.providers, op_segment
        )

    def request(
        self,
        part: Subgraph,
        kernels: KernelCache,
        feed_facts: Sequence[TensorFacts] | None = None,
        *,
        lowers: bool = False,
    ) -> ProgramRequest:
        """The request for a program that calls functions of this runtime, on its device."""
        return ProgramRequest(
            part,
            kernels,
            CalledFunctions(self, lowers=lowers),
            OneDevice(self.device),
            passes=self.optimize,
            executor_type=self.executor_type,
            watcher=self.watcher,
            pool=self.inter_op_pool,
            feed_facts=feed_facts,
            jit=self.jit,
        )

    def _derived(self, options: InstantiateOptions) -> FunctionLibraryRuntime:
        """The runtime with the library, device and state that the options ask for."""
        library = self.library if options.lib_def is None else options.lib_def
        device = self._target_device(options.target)
        state_handle = options.state_handle or self.state_handle
        origin = self.cache.plain if self.origin is None else self.origin
        for known in (self, origin):
            is_same = known.library is library and known.device is device
            if is_same and known.state_handle == state_handle:
                return known.for_steps(self.steps)
        key = id(library), device.name, state_handle
        with origin.cache.lock:
            cache = origin.cache.derived.get(key)
            if cache is None:
                derived = replace(
                    origin,
                    library=library,
                    device=device,
                    state_handle=state_handle,
                    origin=origin,
                    cache=FunctionCache(),
                )
                cache = origin.cache.derived[key] = derived.cache
        return cache.plain.for_steps(self.steps)

    def _target_device(self, target: str) -> LocalDevice:
        if not target:
            return self.device
        name = canonicalize_device_name(target, self.device.name)
        origin = self if self.origin is None else self.origin
        for device in (origin.device, *self.devices):
            if device.name == name:
                return device
        raise InternalError(f"Currently don't support instantiating functions on device: {name}")
