"""Functions of a graph as kernels see them: kernels instantiate and run them.

The runtime fulfils these protocols; a kernel gets at the library as `ctx.function_library`:

    handle = ctx.function_library.instantiate(self.f.name, self.f.attr)
    results = ctx.function_library.run(FunctionRunOptions(step=ctx.step), handle, ctx.inputs)

Source: TensorFlow core/framework/function.h.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from opkernel.errors import OpError
from opkernel.proto import AttrValue
from opkernel.records import dataclass

if TYPE_CHECKING:
    from opkernel.device.local_device import Device
    from opkernel.kernel.services.cancellation import CancellationManager
    from opkernel.kernel.services.collective import CollectiveExecutor
    from opkernel.kernel.services.rendezvous import Rendezvous
    from opkernel.kernel.services.step import GraphCollector, Step
    from opkernel.state.resource_mgr import ScopedStepContainer
    from opkernel.types import DataType

FunctionDone = Callable[[OpError | None, Sequence[Any]], object]
"""Called once with None and the results, or with an error; it must not raise."""


@dataclass(frozen=True, slots=True)
class InstantiateOptions:
    """How a function is instantiated; equal names, attrs and options have one handle.

    Attributes:
        target: The device to run it on, in whole or in part; the library's device if empty.
        is_multi_device_function: Its nodes may be on several devices. Where there is only one device,
            the function only has to keep the rules of multi-device functions.
        input_devices: The devices of its arguments; as many as it has, or none.
        output_devices: The devices of its results; as many as it has, or none.
        lib_def: A FunctionLibraryDefinition to look up the function, and all that it calls, instead
            of the library's own.
        state_handle: Names the state that its kernels share, and the functions that it calls. Kernels
            under another state handle, or without one, have states of their own.
        executor_type: The registered name of its executor; if empty, the value of the attr `_executor`,
            or else the library's.
        create_kernels_eagerly: Make its kernels at once, not when it is first run.
        config_proto: A serialized ConfigProto; it only tells instances apart.
        allow_small_function_optimizations: Have the single threaded executor run it, unless one is
            named.
        graph_collector: Takes the graphs that are made of it.
    """

    target: str = ""
    is_multi_device_function: bool = False
    input_devices: tuple[str, ...] = ()
    output_devices: tuple[str, ...] = ()
    lib_def: Any = None
    state_handle: str = ""
    executor_type: str = ""
    create_kernels_eagerly: bool = False
    config_proto: bytes = b""
    allow_small_function_optimizations: bool = False
    graph_collector: GraphCollector | None = None


@dataclass(frozen=True, slots=True)
class FunctionRunOptions:
    """How a function is run.

    Attributes:
        step: The step that the run is part of. The step fills in what the other options leave open;
            without a step the run is one of its own.
        step_id: The number of the step.
        deadline: The time by which the run must end, by `time.monotonic()`, if it is before the
            step's deadline.
        rendezvous: Where `_Send` and `_Recv` meet.
        create_rendezvous: Give the run a rendezvous of its own.
        cancellation_manager: Cancels the run.
        collective_executor: Where the groups of collective ops meet.
        step_container: Holds resources of the step.
        stats_collector: Takes the statistics of nodes.
        runner: Runs a closure on another thread; `run_async` begins there.
        run_all_kernels_inline: Whether all kernels run on the thread that calls.
        allow_dead_tensors: Give None for a dead result, instead of an error.
    """

    step: Step | None = None
    step_id: int | None = None
    deadline: float | None = None
    rendezvous: Rendezvous | None = None
    create_rendezvous: bool = False
    cancellation_manager: CancellationManager | None = None
    collective_executor: CollectiveExecutor | None = None
    step_container: ScopedStepContainer | None = None
    stats_collector: Any = None
    runner: Callable[[Callable[[], None]], None] | None = None
    run_all_kernels_inline: bool | None = None
    allow_dead_tensors: bool = False


class CallFrame(Protocol):
    """The arguments and results of one call, as `_Arg` and `_Retval` use them."""

    @property
    def num_args(self) -> int:
        """The number of arguments."""

    @property
    def num_retvals(self) -> int:
        """The number of results."""

    def get_arg(self, index: int) -> Any:
        """The argument of a number; InvalidArgumentError where there is none."""

    def set_retval(self, index: int, value: Any) -> None:
        """Set a result; InvalidArgumentError where it does not fit."""


class FunctionHandle(Protocol):
    """A function that was instantiated; all but this is the runtime's own affair."""

    @property
    def call_types(self) -> tuple[Sequence[DataType], Sequence[DataType]]:
        """The types of the arguments and of the results."""

    def bound(self, step: Step) -> Callable[..., Sequence[Any]]:
        """The function of the arguments, one by one, that calls it within a step: for many calls in a row.

        The caller sees to the number and types of the arguments, and to the end of the step.
        """


class FunctionRuntime(Protocol):
    """Instantiates and runs functions on one device; a handle is a FunctionHandle."""

    @property
    def device(self) -> Device:
        """The device that functions run on where no target is given."""

    def instantiate(
        self,
        name: str,
        attrs: Mapping[str, AttrValue] | None = None,
        options: InstantiateOptions = ...,
    ) -> Any:
        """The handle of a function with attrs."""

    def release_handle(self, handle: Any) -> None:
        """Give back the handle of one call of `instantiate`."""

    def run(self, options: FunctionRunOptions, handle: Any, args: Sequence[Any]) -> Sequence[Any]:
        """Run a function to its end; its results, flat."""

    def run_async(
        self, options: FunctionRunOptions, handle: Any, args: Sequence[Any], done: FunctionDone
    ) -> None:
        """Start a function; `done` is called at its end, by any thread."""

    def is_stateful(self, name: str) -> bool:
        """Whether a function, or op, of this name has state."""
