"""What a function is instantiated and run with: options and attrs, and the step that they ask for.

A `FunctionStep` is a view of the caller's step. Attributes that neither options nor caller replace are those of
the caller's step. They are made, as there, when a kernel first asks for them.

Source: TensorFlow core/common_runtime/function.cc, function_def_utils.cc, instantiate_options checks of
core/common_runtime/partitioning_utils.cc, core/kernels/partitioned_function_ops.cc.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.message import DecodeError

from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    OpError,
    UnimplementedError,
)
from opkernel.graph import canonical_function_name
from opkernel.kernel import (
    CallFrame,
    FunctionDone,
    FunctionRunOptions,
    InstantiateOptions,
    LocalRendezvous,
    Step,
)
from opkernel.opdef.text.escaping import c_escape
from opkernel.proto import AttrValue, ConfigProto, FunctionDef, NodeDef
from opkernel.runtime.program.error_report import raise_reported, report
from opkernel.runtime.program.executable import Limits
from opkernel.runtime.program.run_step import RunStep, SessionServices

if TYPE_CHECKING:
    from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime

_Result = TypeVar("_Result")

_OPTIONS = (
    "step_id",
    "rendezvous",
    "cancellation_manager",
    "collective_executor",
    "step_container",
    "stats_collector",
    "runner",
    "run_all_kernels_inline",
)


class FunctionStep(Step):
    """The step of a called function.

    Args:
        caller: The step of the caller.
        options: The options that replace the caller's.
        call_frame: The arguments and results of the function, where they are not fed and fetched.
        **others: Further values that replace the caller's, by the names of Step's attributes.
    """

    def __init__(
        self,
        caller: Step,
        options: FunctionRunOptions,
        call_frame: CallFrame | None = None,
        **others: Any,
    ) -> None:
        self._caller = caller
        self._cancellation_manager = options.cancellation_manager
        given = {name: getattr(options, name) for name in _OPTIONS} | {"call_frame": call_frame}
        self._own = {name: value for name, value in given.items() if value is not None} | others
        deadlines = [d for d in (caller.deadline, options.deadline) if d is not None]
        self._own["deadline"] = min(deadlines, default=None)
        self._own_rendezvous = LocalRendezvous() if options.create_rendezvous else None
        if self._own_rendezvous is not None:
            self._own["rendezvous"] = self._own_rendezvous

    def check(self) -> None:
        """Raise where the function is to stop: it, or its caller, was cancelled or is late."""
        self._caller.check()
        manager = self._cancellation_manager
        if manager is not None and (manager.is_cancelled or manager.is_cancelling):
            raise copy.copy(manager.status) or CancelledError("The function was cancelled")
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceededError("Timed out: the function ran longer than it may")

    def detached(self) -> Any:
        """As that of the caller's step."""
        return self._caller.detached()

    def end(self) -> None:
        """End the services that the call had for itself."""
        if self._own_rendezvous is not None:
            self._own_rendezvous.start_abort(CancelledError("The function has ended"))


def run_in_step(
    run: Callable[[Step], _Result],
    options: FunctionRunOptions,
    runtime: FunctionLibraryRuntime,
    frame: CallFrame | None = None,
) -> _Result:
    """The result of `run` in the step that the options describe.

    Raises:
        CancelledError, DeadlineExceededError: the step is over before it began.
        OpError: the error of `run`, with the node that failed.
    """
    own_step = view = None
    limits = Limits(intra_op_threads=runtime.device.intra_op_threads)
    step = options.step
    if step is None:
        cleanup = runtime.device.resource_manager.cleanup
        services = SessionServices(cleanup=cleanup, function_library=runtime)
        step = own_step = RunStep(session=services)
    if frame is not None or options != FunctionRunOptions(step=options.step):
        step = view = FunctionStep(step, options, frame, **runtime.services)
    try:
        step.check()
        return limits.applied(run)(step)
    except Exception as error:
        raise_reported(error)
    finally:
        for own in (view, own_step):
            if own is not None:
                own.end()


def bound_to(
    run: Callable[..., Sequence[Any]], step: Step, runtime: FunctionLibraryRuntime
) -> Callable[..., Sequence[Any]]:
    """The function of the arguments that calls `run` within a step; its kernels find the runtime's functions."""
    if step.function_library is not runtime:
        step = FunctionStep(step, FunctionRunOptions(), **runtime.services)

    def call(*arguments: Any) -> Sequence[Any]:
        step.check()
        try:
            return run(step, *arguments)
        except Exception as error:
            raise_reported(error)

    return call


def call_async(
    run: Callable[[], list[Any]],
    runner: Callable[[Callable[[], None]], None] | None,
    done: FunctionDone,
) -> None:
    """Call `run` on a thread that a runner chooses, or a new one; `done` is told how it ended."""

    def work() -> None:
        status: OpError | None = None
        results: list[Any] = []
        try:
            results = run()
        except BaseException as error:  # whatever it is, somebody waits for `done`
            if isinstance(error, Exception):
                status = report(error)
            else:
                status = InternalError(f"{type(error).__name__}: {error}")
        done(status, results)

    (runner or _on_new_thread)(partial(copy_context().run, work))


def _on_new_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="opkernel function", daemon=True).start()


def _own_or_callers(name: str) -> property:
    def get(step: FunctionStep) -> Any:
        return step._own[name] if name in step._own else getattr(step._caller, name)

    return property(get)


for _name in Step.__annotations__:
    setattr(FunctionStep, _name, _own_or_callers(_name))


_NO_OPTIONS = InstantiateOptions()


_EXECUTOR = "_executor"


_INTS_ON_DEVICE = "experimental_ints_on_device"


def canonicalize(
    name: str, attrs: Mapping[str, AttrValue], options: InstantiateOptions = _NO_OPTIONS
) -> str:
    """A name that tells handles apart: `Square[T=float,_state_handle=mine]`."""
    texts = {
        "_target": _escaped(options.target),
        "_state_handle": options.state_handle,
        "_executor": executor_type_of(attrs, options),
        "_config_proto": c_escape(options.config_proto),
        "_lib_def": "" if options.lib_def is None else str(id(options.lib_def)),
    }
    for key, devices in (
        ("_input_dev", options.input_devices),
        ("_output_dev", options.output_devices),
    ):
        texts |= {f"{key}{index}": _escaped(device) for index, device in enumerate(devices)}
    given = {key: text for key, text in texts.items() if text or key[-1].isdigit()}
    return canonical_function_name(name, attrs, given)


def _escaped(text: str) -> str:
    return c_escape(text.encode("utf-8", "surrogateescape"))


def executor_type_of(attrs: Mapping[str, AttrValue], options: InstantiateOptions) -> str:
    """The executor that options or attrs name; empty where they name none."""
    if options.executor_type:
        return options.executor_type
    if _EXECUTOR in attrs and attrs[_EXECUTOR].s:
        return attrs[_EXECUTOR].s.decode("utf-8", "surrogateescape")
    return "SINGLE_THREADED_EXECUTOR" if options.allow_small_function_optimizations else ""


def options_of_call(node_def: NodeDef) -> InstantiateOptions:
    """The options that a PartitionedCall, or its stateful form, instantiates its function with.

    Raises:
        InvalidArgumentError: the node has two configurations, or one that cannot be read.
    """
    attrs = node_def.attr
    if "executor_type" not in attrs:
        return _NO_OPTIONS
    config = attrs["config"].s if "config" in attrs else b""
    config_proto = attrs["config_proto"].s if "config_proto" in attrs else b""
    if config and config_proto:
        raise InvalidArgumentError(
            "Provided both 'config' and 'config_proto' but only one should be provided.  Note the "
            "'config' option is deprecated."
        )
    try:
        ConfigProto.FromString(config_proto)
    except DecodeError as error:
        raise InvalidArgumentError(
            f"Unable to parse config_proto string as tensorflow::ConfigProto proto: {error}"
        ) from error
    executor_type = attrs["executor_type"].s.decode("utf-8", "surrogateescape")
    return InstantiateOptions(executor_type=executor_type) if executor_type else _NO_OPTIONS


def check_multi_device(function: FunctionDef, options: InstantiateOptions) -> None:
    """Check the options of functions whose nodes may be on several devices.

    Raises:
        InvalidArgumentError: an argument is a list, or devices are not given for all.
        UnimplementedError: the function wants its integers on the device.
    """
    signature = function.signature
    for what, args in (("input", signature.input_arg), ("output", signature.output_arg)):
        for arg in args:
            if arg.number_attr or arg.type_list_attr:
                raise InvalidArgumentError(
                    f'Function {signature.name} has an {what} named "{arg.name}" that is a list of tensors. '
                    "Multi-device functions support only single-tensor inputs and outputs"
                )
    if _INTS_ON_DEVICE in function.attr and function.attr[_INTS_ON_DEVICE].b:
        raise UnimplementedError(
            f"Function '{signature.name}' has `{_INTS_ON_DEVICE}` attribute set. This attribute is "
            "not currently supported by multi-device functions."
        )
    for what, devices, args, name in (
        ("arguments", options.input_devices, signature.input_arg, "input_devices"),
        ("outputs", options.output_devices, signature.output_arg, "output_devices"),
    ):
        if len(devices) != len(args) and (devices or what == "arguments"):
            raise InvalidArgumentError(
                f"InstantiateOptions.{name} must have the same length as the number of {what}: "
                f"{name} length = {len(devices)} number of {what} = {len(args)}"
            )
