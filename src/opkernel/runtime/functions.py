"""FunctionLibraryRuntime: the functions of a library, instantiated and run on one device.

A handle is an InstantiatedFunction. Plans hold the same handles and call them directly; `run` is for
everybody else: it checks the arguments, and sees to the step.

Options that ask for another library, device or state lead to a variant of the runtime, in which they
are the rule, so that they hold for the functions that a function calls, too.

State: `_functions` are the handles by what they were instantiated with; `_variants` are kept alive
by their handles.

Source: TensorFlow core/common_runtime/function.cc, process_function_library_runtime.cc.
"""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any

from opkernel.errors import InternalError, NotFoundError, OpError
from opkernel.graph import FunctionBody, FunctionLibraryDefinition, Operation, print_instantiated
from opkernel.graph.function_library import GRADIENT_OP
from opkernel.kernel import (
    CallFrame,
    Device,
    FunctionDone,
    FunctionRunOptions,
    InstantiateOptions,
    OpKernel,
    create_op_kernel,
    global_kernel_registry,
)
from opkernel.opdef import GRAPH_DEF_VERSION, canonicalize_device_name
from opkernel.proto import AttrValue, FunctionDef, NameAttrList, NodeDef
from opkernel.runtime.call_frame import FunctionCallFrame, check_args
from opkernel.runtime.call_op import create_call_op
from opkernel.runtime.device import CPU
from opkernel.runtime.error_report import report
from opkernel.runtime.function_options import (
    check_multi_device,
    executor_type_of,
    options_of_call,
)
from opkernel.runtime.function_step import run_in_step
from opkernel.runtime.instantiated_function import InstantiatedFunction
from opkernel.runtime.inter_op_pool import InterOpPool
from opkernel.runtime.kernel_watcher import KernelWatcher
from opkernel.runtime.optimized_args import Passes
from opkernel.types import DataType

__all__ = ["FunctionLibraryRuntime"]

_OPTIONS = InstantiateOptions()
_NO_FUNCTION = FunctionDef()
"""What stands for the definition of the gradient of a single op."""


class FunctionLibraryRuntime:
    """Instantiates functions, once for equal names, attrs and options, and runs them.

        runtime = FunctionLibraryRuntime(graph.function_library)
        handle = runtime.instantiate("XTimesTwo", {"T": AttrValue(type=DT_FLOAT)})
        (y,) = runtime.run(FunctionRunOptions(), handle, [x])

    Once a registered kernel has changed, functions are compiled anew; the kernels that have not
    changed stay, with their state.

    Args:
        library: the functions.
        graph_def_version: the version of GraphDef whose rules count.
        device: where they run.
        watcher: watches the kernels, where given.
        executor_type: the executor of functions that name none.
        inter_op_pool: threads for expensive kernels, where given.
        devices: all devices that functions may be instantiated on; `device` alone if empty.
        optimize: the optimisation passes that run on bodies before they are compiled.

    Functions that passes add are known to the runtime alone: the library is the user's.
    """

    def __init__(
        self,
        library: FunctionLibraryDefinition,
        graph_def_version: int = GRAPH_DEF_VERSION,
        device: Device = CPU,
        watcher: KernelWatcher | None = None,
        executor_type: str = "",
        inter_op_pool: InterOpPool | None = None,
        devices: Sequence[Device] = (),
        optimize: Passes = False,
    ) -> None:
        self.graph_def_version = graph_def_version
        self.device = device
        self.watcher = watcher
        self.executor_type = executor_type
        self.inter_op_pool = inter_op_pool
        self.optimize = optimize
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
        self._kernels_version = 0
        self._lock = threading.Lock()

    # Handles.

    def instantiate(
        self,
        name: str,
        attrs: Mapping[str, AttrValue] | None = None,
        options: InstantiateOptions = _OPTIONS,
    ) -> InstantiatedFunction:
        """The handle of a function with attrs; to be given back with `release_handle`.

        Raises:
            NotFoundError: there is no such function, an attr is missing, an op is not registered,
                or, where kernels are made eagerly, a kernel or the executor.
            InvalidArgumentError: a node of the function breaks a rule, or an option does not fit.
            InternalError: the target is no device of this process.
        """
        runtime = self._variant(options)
        handle = runtime._instantiate(NameAttrList(name=name, attr=attrs or {}), options)
        try:
            body = handle.body
            if options.is_multi_device_function:
                check_multi_device(body.function_def, options)
            if options.create_kernels_eagerly:
                _ = handle.plan
        except OpError:
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
        return list(run_in_step(lambda step: handle(step, *args), options, handle.runtime))

    def run_with_frame(
        self, options: FunctionRunOptions, handle: InstantiatedFunction, frame: CallFrame
    ) -> None:
        """Run a function that takes its arguments from, and puts its results into, a call frame."""
        handle.check_alive()
        run_in_step(handle.run_with_frame, options, handle.runtime, frame)

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

        def work() -> None:
            status, results = None, []
            try:
                results = self.run(options, handle, args)
            except BaseException as error:  # whatever it is, somebody waits for `done`
                status = _as_status(error)
            done(status, results)

        runner = options.runner or _on_new_thread
        runner(partial(copy_context().run, work))

    # What it knows.

    @property
    def services(self) -> dict[str, Any]:
        """What steps of its functions have of it, by the names of the attributes of steps."""
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
        """The functions of the library, and those that passes have added; not to be changed."""
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
        """The kernel of a node: that of its op, or one that calls the function of this name.

        Raises:
            NotFoundError: there is neither function nor kernel.
            InvalidArgumentError: the node, or the function, breaks a rule.
        """
        if self._is_function(node_def.op):
            return create_call_op(self.instantiate(node_def.op, node_def.attr), node_def)
        return create_op_kernel(
            self.device,
            node_def,
            op_registry=self._library.op_registry,
            graph_def_version=self.graph_def_version,
            function_library=self,
        )

    def clone(self, *, skip_library: bool = False) -> FunctionLibraryRuntime:
        """A runtime like this one, with no function instantiated and a copy of the library.

        With `skip_library` the library is empty.
        """
        registry = self._library.op_registry
        library = FunctionLibraryDefinition(registry) if skip_library else self._library.copy()
        other = copy.copy(self)
        other._library = library
        other._added = FunctionLibraryDefinition(registry)
        other._original = other
        other._forget_functions()
        return other

    # For plans.

    def functions(self, op: Operation, attr: str) -> list[InstantiatedFunction]:
        """The functions of an attr of type `func` or `list(func)` of a node."""
        value = op.node_def.attr[attr]
        references = value.list.func if value.HasField("list") else [value.func]
        options = options_of_call(op.node_def)
        return [self._instantiate(reference, options) for reference in references]

    def function_of(self, op: Operation) -> InstantiatedFunction | None:
        """The function that a node calls by having its name as op; None for all other nodes.

        A SymbolicGradient calls the gradient of the function in its attr `f`.
        """
        if not self._is_function(op.type) and op.type != GRADIENT_OP:
            return None
        return self._instantiate(NameAttrList(name=op.type, attr=op.node_def.attr), _OPTIONS)

    def _instantiate(
        self, reference: NameAttrList, options: InstantiateOptions
    ) -> InstantiatedFunction:
        """The handle of a function, whose body is made, and may be found wrong, when it is used."""
        definition = self._definition(reference)
        executor_type = executor_type_of(reference.attr, options)
        key = (
            reference.SerializeToString(deterministic=True),
            executor_type,
            options.is_multi_device_function,
            options.input_devices,
            options.output_devices,
            options.config_proto,
        )
        version = global_kernel_registry().version
        with self._lock:
            if self._kernels_version != version:
                self._kernels_version = version
                self._functions = {k: known.renewed() for k, known in self._functions.items()}
            function = self._functions.get(key)
            if function is None or function.definition is not definition:
                function = InstantiatedFunction(self, key, definition, reference, executor_type)
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

    def _target_device(self, target: str) -> Device:
        if not target:
            return self.device
        name = canonicalize_device_name(target, self.device.name)
        device = self._devices.get(name)
        if device is None:
            raise InternalError(
                f"Currently don't support instantiating functions on device: {name}"
            )
        return device


def _as_status(error: BaseException) -> OpError:
    """Whatever a function raised as an OpError."""
    if isinstance(error, Exception):
        return report(error)
    return InternalError(f"{type(error).__name__}: {error}")


def _on_new_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="opkernel function", daemon=True).start()
