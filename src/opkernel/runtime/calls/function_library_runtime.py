"""FunctionLibraryRuntime: the functions of a library, instantiated and run on one device.

A handle is an InstantiatedFunction. Plans hold the same handles and call them directly. `run` is for all
other callers: it checks the arguments, and sees to the step.

Options that ask for another library, device or state lead to a variant of the runtime. The options hold
for the whole variant, and so for the functions that a function calls.

State: `_functions` holds the handles by function, attrs and options. Handles keep the `_variants` alive.

Source: TensorFlow core/common_runtime/function.cc, process_function_library_runtime.cc.
"""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from opkernel import kernel
from opkernel.device.local_device import CPU, LocalDevice
from opkernel.errors import InternalError, InvalidArgumentError, NotFoundError
from opkernel.graph import FunctionLibraryDefinition, Graph, Operation
from opkernel.graph.functions.function_library import GRADIENT_OP
from opkernel.graph.functions.lowering import is_lowered, is_part_of_graph
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.kernel import (
    KernelProvider,
    OpKernel,
    create_op_kernel,
    global_kernel_registry,
)
from opkernel.opdef import GRAPH_DEF_VERSION, canonicalize_device_name
from opkernel.proto import AttrValue, FunctionDef, NameAttrList, NodeDef
from opkernel.runtime import calls  # loaded where there are functions
from opkernel.runtime.calls.lowered_functions import LoweredFunctions
from opkernel.runtime.placement.device_set import OneDevice
from opkernel.runtime.program.kernels import AnyVersion, KernelCache, version_of
from opkernel.runtime.program.request import NO_JIT, Jit, Passes, ProgramRequest, Variant
from opkernel.runtime.program.subgraph import Subgraph
from opkernel.runtime.step.call_frame import FunctionCallFrame, check_args
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.graph import FunctionBody
    from opkernel.kernel import CallFrame, FunctionDone, FunctionRunOptions, InstantiateOptions
    from opkernel.runtime.calls.instantiated_function import InstantiatedFunction
    from opkernel.runtime.program.op_segment import SessionSegment
    from opkernel.runtime.step.inter_op_pool import InterOpPool
    from opkernel.runtime.step.kernel_watcher import KernelWatcher

__all__ = ["FunctionLibraryRuntime"]

_NO_FUNCTION = FunctionDef()
_PARTITIONED = ("PartitionedCall", "StatefulPartitionedCall")
"""The ops for which an unknown function is an invalid argument, and not a missing one, as in TensorFlow."""
"""The stand-in for a definition, of the gradient of a single op."""


class FunctionLibraryRuntime:
    """Instantiates functions, once for equal names, attrs and options, and runs them.

        runtime = FunctionLibraryRuntime(graph.function_library)
        handle = runtime.instantiate("XTimesTwo", {"T": AttrValue(type=DT_FLOAT)})
        (y,) = runtime.run(FunctionRunOptions(), handle, [x])

    Once a registered kernel has changed, functions are compiled anew; the kernels that have not
    changed stay, with their state.

    Args:
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

    Functions that passes add are known to the runtime alone: the library is the user's.
    """

    def __init__(
        self,
        library: FunctionLibraryDefinition,
        graph_def_version: AnyVersion = GRAPH_DEF_VERSION,
        device: LocalDevice = CPU,
        watcher: KernelWatcher | None = None,
        executor_type: str = "",
        inter_op_pool: InterOpPool | None = None,
        devices: Sequence[LocalDevice] = (),
        optimize: Passes = False,
        providers: Sequence[KernelProvider] | None = None,
        jit: Jit = NO_JIT,
    ) -> None:
        self._version = graph_def_version
        self.device = device
        self.watcher = watcher
        self.executor_type = executor_type
        self.inter_op_pool = inter_op_pool
        self.optimize = optimize
        self.providers = providers
        self.jit = jit
        self._library = library
        self._added = FunctionLibraryDefinition(library.op_registry)
        self._devices = {one.name: one for one in (device, *devices)}
        self._state_handle = ""
        self._original = self
        self._forget_functions()

    def _forget_functions(self) -> None:
        self._functions: dict[Hashable, InstantiatedFunction] = {}
        self._variants: weakref.WeakValueDictionary[Hashable, FunctionLibraryRuntime] = (
            weakref.WeakValueDictionary()
        )
        self._for_steps: dict[Variant, FunctionLibraryRuntime] = {}
        self._kernels_version = 0
        self._lock = threading.Lock()

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
        runtime = self._variant(options)
        handle = runtime.instance(NameAttrList(name=name, attr=attrs or {}), options)
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
        handle.check_alive()
        runtime = handle.runtime
        with runtime._lock:
            known = runtime._functions.get(handle.key, handle)
            if known.number != handle.number:  # a function of this name was defined anew
                known = handle
            known.references -= 1
            if known.references > 0:
                return
            if runtime._functions.get(handle.key) is known:
                del runtime._functions[handle.key]
        for released in (handle, known):  # two, where a kernel has changed since
            released.release()

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
        handle.check_alive()
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
    def graph_def_version(self) -> int:
        """The version of GraphDef whose rules count."""
        return version_of(self._version)

    @property
    def services(self) -> dict[str, Any]:
        """The services that steps of its functions get, by the names of the attributes of steps."""
        services: dict[str, Any] = {"function_library": self}
        if self.device is not self._original.device:
            services["resource_manager"] = self.device.resource_manager
        return services

    @property
    def is_variant(self) -> bool:
        """Whether it has the library, device or state that options have asked another one for."""
        return self._original is not self

    def get_function_library_definition(self) -> FunctionLibraryDefinition:
        """The functions that are found where no other library is given."""
        return self._library

    def known_functions(self) -> FunctionLibraryDefinition:
        """The functions of the library, and those added by passes; not to be changed."""
        return self._library.joined_with(self._added) if self._added else self._library

    def add_functions(self, library: FunctionLibraryDefinition) -> None:
        """Know the functions, too, that a pass has added to a copy of the library.

        Raises:
            InvalidArgumentError: another one of such a name was added before.
        """
        with self._lock:
            for name in library.keys() - self._library.keys():
                self._added.add_function(library[name])

    def is_stateful(self, name: str) -> bool:
        """Whether the function, or op, of a name has state; false where there is none."""
        try:
            return self._library_with(name).look_up(name).op_def.is_stateful
        except NotFoundError:
            return False

    def create_kernel(self, node_def: NodeDef) -> OpKernel:
        """The kernel of a node: its op's kernel, or one that calls the function of this name.

        Raises:
            NotFoundError: there is neither function nor kernel.
            InvalidArgumentError: the node, or the function, breaks a rule.
        """
        if self._is_function(node_def.op):
            return calls.create_call_op(self.instantiate(node_def.op, node_def.attr), node_def)
        return create_op_kernel(
            self.device,
            node_def,
            op_registry=self._library.op_registry,
            graph_def_version=self.graph_def_version,
            function_library=self,
            providers=self.providers,
        )

    def clone(self, *, skip_library: bool = False) -> FunctionLibraryRuntime:
        """A runtime like this one, with no function instantiated and a copy of the library.

        With `skip_library` the library is empty.
        """
        registry = self._library.op_registry
        library = FunctionLibraryDefinition(registry) if skip_library else self._library.copy()
        return self.with_library(library)

    def with_library(self, library: FunctionLibraryDefinition) -> FunctionLibraryRuntime:
        """A runtime like this one, with the functions of a library, none of them instantiated."""
        other = copy.copy(self)
        other._library = library
        other._added = FunctionLibraryDefinition(library.op_registry)
        other._original = other
        other._forget_functions()
        return other

    # For programs.

    def for_steps(self, variant: Variant) -> FunctionLibraryRuntime:
        """The runtime with plans for steps of a kind. It shares the kernels and state of this runtime."""
        known = self if variant in ("", "partial") else self._for_steps.get(variant)
        if known is not None:
            return known
        from opkernel.runtime.watch.watched_functions import WatchedFunctions

        with self._lock:
            if variant not in self._for_steps:
                self._for_steps[variant] = WatchedFunctions(self, variant)
            return self._for_steps[variant]

    def kernels_of(self, graph: Graph, op_segment: SessionSegment | None = None) -> KernelCache:
        """The kernels of a graph whose nodes call functions of this runtime, on its device.

        Those with state are in the segment, where given, for all graphs that have them in it.
        """
        return KernelCache(
            self._version, graph.op_registry, self.device, self, self.providers, op_segment
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
            LoweredFunctions(self) if lowers else self,
            OneDevice(self.device),
            passes=self.optimize,
            executor_type=self.executor_type,
            watcher=self.watcher,
            pool=self.inter_op_pool,
            feed_facts=feed_facts,
            jit=self.jit,
        )

    def functions(
        self, op: Operation, attr: str, *, lowers: bool = False
    ) -> list[InstantiatedFunction]:
        """The functions of an attr of type `func` or `list(func)` of a node."""
        value = op.node_def.attr[attr]
        references = value.list.func if value.HasField("list") else [value.func]
        options = calls.options_of_call(op.node_def)
        return [self._called(op, attr, one, options, lowers=lowers) for one in references]

    def function_of(self, op: Operation) -> InstantiatedFunction | None:
        """The function that a node calls by having its name as op; None for all other nodes.

        A SymbolicGradient calls the gradient of the function in its attr `f`.
        """
        if op.type == GRADIENT_OP:
            reference = NameAttrList(name=op.type, attr=op.node_def.attr)
            return self.instance(reference, kernel.InstantiateOptions())
        if not self._is_function(op.type):
            return None
        reference = NameAttrList(name=op.type, attr=op.node_def.attr)
        return self._called(op, "", reference, kernel.InstantiateOptions())

    def _called(
        self,
        op: Operation,
        attr: str,
        reference: NameAttrList,
        options: InstantiateOptions,
        *,
        lowers: bool = False,
    ) -> InstantiatedFunction:
        """The handle of a function that a node calls; it refuses calls with other types than its own."""
        from opkernel.graph.functions.call_types import misfit  # of functions alone

        is_inlined = lowers and is_lowered(op) and not self._is_noinline(reference.name)
        is_pruned = is_inlined or is_part_of_graph(op)
        try:
            function = self.instance(reference, options, is_pruned=is_pruned)
        except NotFoundError as missing:
            kind = InvalidArgumentError if op.type in _PARTITIONED else NotFoundError
            raise kind(missing.message, node=op.name, op=op.type) from None
        error = misfit(op, attr, function.name, function.types)
        return function if error is None else function.refusing(error)

    def _is_noinline(self, name: str) -> bool:
        value = self._library_with(name).get_attr(NodeDef(op=name), "_noinline")
        return value is not None and value.b

    def instance(
        self, reference: NameAttrList, options: InstantiateOptions, *, is_pruned: bool = False
    ) -> InstantiatedFunction:
        """The handle of a function. Its first use makes the body, and tells errors in it."""
        definition = self._definition(reference)
        executor_type = calls.executor_type_of(reference.attr, options)
        key = (
            reference.SerializeToString(deterministic=True),
            executor_type,
            options.is_multi_device_function,
            options.input_devices,
            options.output_devices,
            options.config_proto,
            is_pruned,
        )
        version = global_kernel_registry().version
        with self._lock:
            if self._kernels_version != version:
                self._kernels_version = version
                self._functions = {k: known.renewed() for k, known in self._functions.items()}
            function = self._functions.get(key)
            if function is None or function.definition is not definition:
                function = calls.InstantiatedFunction(
                    self, key, definition, reference, executor_type, is_pruned=is_pruned
                )
                self._functions[key] = function
            function.references += 1
        return function

    def _definition(self, reference: NameAttrList) -> FunctionDef:
        """The function of a name; that which a gradient is of, or made by, for a gradient."""
        name = reference.name
        if name == GRADIENT_OP:
            forward = reference.attr["f"].func.name
            name = self._library.find_gradient(forward) or forward
            if name not in self._library:
                return _NO_FUNCTION
        return self._library_with(name).get_function(name)

    def _library_with(self, name: str) -> FunctionLibraryDefinition:
        """Where a function that passes have added stands; for all other names the user's library."""
        return self._added if name in self._added else self._library

    def _is_function(self, name: str) -> bool:
        return name in self._library or name in self._added

    # Variants.

    def _variant(self, options: InstantiateOptions) -> FunctionLibraryRuntime:
        """The runtime with the library, device and state that the options ask for."""
        library = self._library if options.lib_def is None else options.lib_def
        device = self._target_device(options.target)
        state_handle = options.state_handle or self._state_handle
        for known in (self, self._original):
            is_same = known._library is library and known.device is device
            if is_same and known._state_handle == state_handle:
                return known
        key = id(library), device.name, state_handle
        with self._original._lock:
            variant = self._original._variants.get(key)
            if variant is None:
                variant = self._original._variants[key] = copy.copy(self._original)
                variant._forget_functions()
                variant._library, variant.device = library, device
                variant._state_handle = state_handle
        return variant

    def _target_device(self, target: str) -> LocalDevice:
        if not target:
            return self.device
        name = canonicalize_device_name(target, self.device.name)
        device = self._devices.get(name)
        if device is None:
            raise InternalError(
                f"Currently don't support instantiating functions on device: {name}"
            )
        return device
