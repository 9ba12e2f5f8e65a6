"""VariableSpecializer: the strategy for variables: while they keep their values, a separate program for these values.

The first step of a program that only reads variables makes another program: that of the graph with constants for
the variables, as `freeze_graph` makes it (`VariablesOfProgram`). Passes see the values, and kernels prepare the
weights. The program runs as long as each variable has the very array that it was made for. A variable is written
to in place only while nobody else has its array (`device/ownership.py`), and the program has it; so each
assignment, whoever makes it, brings another array.

A program for values may round differently than the general one, so it is made at the first step with these values,
or never: the same values give the same bits at each step. After a few changes no more programs are made.

Steps are not told apart by what they are fed, but by what a look at each variable shows. So this strategy has a way
to find what runs a step that is cheaper than that of `Adaptive`.

State of a VariableSpecializer: `_special` is that program with what it was made for, `_left` counts the programs that
may still be made.

Source: TensorFlow python/framework/convert_to_constants.py.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opkernel.errors import FailedPreconditionError, OpError, UnimplementedError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.structural_ops import PLACEHOLDER_OPS
from opkernel.graph.freezing.body import HeldValue, declared_value
from opkernel.graph.freezing.counterparts import READING
from opkernel.graph.freezing.freeze_graph import ReadingPart
from opkernel.interrupts import trying
from opkernel.kernel import (
    OpKernelContext,
    ResourceBase,
    TensorRef,
    handle_from_input,
    lookup_resource,
)
from opkernel.proto import TensorProto
from opkernel.records import dataclass, replace
from opkernel.runtime.adaptive.adaptive import Finding, note
from opkernel.runtime.calls.function_library_runtime import CalledFunctions, FunctionLibraryRuntime
from opkernel.runtime.plan.keys import tensor_of
from opkernel.runtime.program.builder import StepProgram, build_program
from opkernel.runtime.program.executable import Executable
from opkernel.runtime.program.request import ProgramRequest, Subgraph
from opkernel.runtime.program.run_step import RunStep
from opkernel.state.resource_mgr import ResourceMgr
from opkernel.types import DataType, PartialTensorShape, ResourceHandle, tensor_to_proto
from opkernel.types.tensor_tokens import LEAST_HELD_BYTES, held_proto

_MOST_PROGRAMS = 6
_MOST_FAILURES = 3


class VariableSpecializer:
    """Finds the program for the values that variables have; used from any thread.

    Args:
        general: the program that reads them.
        runtime: gives the functions that it calls.
        finish: makes an executable of a program, given the feeds that it takes of the general one's.
        captured: gives the handles that are fed at every step, by the operations that are fed.
    """

    def __init__(
        self,
        general: StepProgram,
        runtime: FunctionLibraryRuntime,
        finish: Callable[[StepProgram, Sequence[int]], Executable],
        captured: Callable[[], Mapping[Operation, Any]] = dict,
    ) -> None:
        self._general, self._runtime = general, runtime
        self._finish, self._captured = finish, captured
        self._variables: VariablesOfProgram | None = None
        self._special: SpecializedProgram | None = None
        self._left = _MOST_PROGRAMS
        self._failures = 0
        self._lock = threading.RLock()  # folding constants may run functions

    def current(self, *, may_make: bool = True) -> Executable | None:
        """What runs the program for the values of now; None where the general one is to run.

        Args:
            may_make: Whether the program may be made, if there is none for these values.
        """
        special = self._special
        if special is not None and (
            special.manager.removals == special.removals or self._are_still_there(special)
        ):
            for reference, array in special.kept:
                if reference.tensor is not array:
                    break
            else:
                return special.executable
            del reference, array
        if not may_make or (special is None and not self._left):
            return None
        del special  # or it would not be freed
        return self._look()

    def settled(self) -> StepProgram | None:
        """The program for the values of now; None where a variable has no value or a node assigns to most of them.

        If no step has needed the program yet, it is made for the caller only.
        """
        special = self._special
        if special is not None and all(one.tensor is array for one, array in special.kept):
            return special.executable.program
        try:
            variables = VariablesOfProgram(self._general, self._runtime, self._captured())
            return variables.program(self._finish, lambda: None).executable.program
        except OpError:
            return None

    @property
    def special(self) -> Executable | None:
        """What runs the program for values of variables, where there is one."""
        special = self._special
        return None if special is None else special.executable

    @property
    def is_settled(self) -> bool:
        """Whether there is such a program, or will not be one."""
        return self._special is not None or not self._left

    def _drop(self) -> None:
        """Let go of the program: a variable is gone."""
        self._special = None

    def _are_still_there(self, special: SpecializedProgram) -> bool:
        """Whether the names of variables stand for those of a program, though others were taken out."""
        assert self._variables is not None
        removals = special.manager.removals
        try:
            references = self._variables.references()
        except OpError:
            return False
        if references != [reference for reference, _ in special.kept]:
            return False
        special.removals = removals
        return True

    def _look(self) -> Executable | None:
        """Make the program for the values of now; other threads wait for it, as they would round differently."""
        with trying(self._lock, blocking=True):
            try:
                return self.current(may_make=False) or self._made()
            except Exception as error:  # the general program needs none of this
                self._left = 0
                self._note("plan", str(error))
        return None

    def _made(self) -> Executable | None:
        """The program for the values of now; None where the general one is not to have others beside it."""
        if self._special is not None:
            self._special = None
            gc.collect()  # plans refer to themselves; old values take memory
        if not self._left:
            self._note("plan", f"they were assigned to after each of {_MOST_PROGRAMS} programs")
            return None
        if not self._general.request.is_current():
            self._left = 0
            return None
        if self._variables is None:
            self._variables = VariablesOfProgram(self._general, self._runtime, self._captured())
        if not self._variables.have_values:  # as the step that reads them will say
            self._failures += 1
            if self._failures == _MOST_FAILURES:
                self._left = 0
            return None
        self._left -= 1
        special = self._special = self._variables.program(self._finish, self._drop)
        self._note("program for their values")
        return special.executable

    def _note(self, chosen: str, error: str = "") -> None:
        request, variables = self._general.request, self._variables
        count = 0 if variables is None else variables.count
        steps = f"with the same values of {count} variables"
        found = Finding("variables", request.part.names, steps, {chosen: None}, chosen, 1, error)
        note(request.findings, found)


def with_selected_values(
    run: Callable[..., Sequence[Any]], taken: Sequence[int], count: int, more: Sequence[Any] = ()
) -> Callable[..., Sequence[Any]]:
    """A function of a step and `count` values that runs a program which takes some of these, and of `more`.

    Args:
        run: runs the program.
        taken: which values it takes; those of `more` have the numbers from `count` on.
        count: how many values come.
        more: further values, the same at each step.
    """
    if [*taken] == [*range(count)]:
        return run

    def run_chosen(step: Any, *values: Any) -> Sequence[Any]:
        every = (*values, *more)
        return run(step, *[every[i] for i in taken])

    return run_chosen


@dataclass(slots=True, eq=False)
class SpecializedProgram:
    """A program for certain values of variables, to whose arrays nobody writes as long as this is kept.

    Attributes:
        executable: Runs the steps of the program.
        kept: The variables, each with the array that it must have.
        owners: The resources of those that have handles; they may go.
        manager: Has the variables that have names.
        removals: How often it had lost something when the variables were looked up.
    """

    executable: Executable
    kept: Sequence[tuple[TensorRef, Any]]
    owners: Sequence[weakref.ref[ResourceBase]]
    manager: ResourceMgr
    removals: int


class VariablesOfProgram:
    """The variables that a program reads.

    Args:
        general: the program.
        runtime: gives the functions that it calls.
        captured: the handles that are fed at every step, by the operations that are fed.
    """

    def __init__(
        self,
        general: StepProgram,
        runtime: FunctionLibraryRuntime,
        captured: Mapping[Operation, Any],
    ) -> None:
        self._request, self._runtime = general.request, runtime
        for tensor in self._request.part.feeds:
            if tensor.dtype is DataType.DT_RESOURCE and tensor.op not in captured:
                raise UnimplementedError(f"{tensor.name!r} may be fed the handle of any variable")
        handles = [(op, tensor) for op, tensor in captured.items() if _is_variable(tensor)]
        self._captured = {op: handle_from_input(tensor) for op, tensor in handles}
        self._constants = {op: one for op, one in captured.items() if one.dtype != object}
        self._part = self._reading_part()
        self._kernels = runtime.kernels_of(self._graph)
        self._check_worth()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._variables())

    @property
    def have_values(self) -> bool:
        """Whether each has a value."""
        try:
            return bool(self.references())
        except OpError:
            return False

    def references(self) -> list[TensorRef]:
        """The variables.

        Raises:
            OpError: one is not there, or has no value.
        """
        return [one if isinstance(one, TensorRef) else one.tensor_ref for one in self._resources()]

    def program(
        self, finish: Callable[[StepProgram, Sequence[int]], Executable], drop: Callable[[], None]
    ) -> SpecializedProgram:
        """A program for the values that the variables have now.

        Args:
            finish: Makes an executable of it, given the feeds that it takes of the general program's.
            drop: Is called when a variable is gone.

        Raises:
            FailedPreconditionError, UnimplementedError, InvalidArgumentError: as `ReadingPart.frozen`.
        """
        manager = self._runtime.device.resource_manager
        removals = manager.removals
        part = self._part = self._reading_part()
        references = self.references()
        resources = [one for one in self._resources() if isinstance(one, ResourceBase)]
        owners = [weakref.ref(one, lambda _: drop()) for one in resources]
        kept = [(reference, tensor_of(reference)) for reference in references]
        known = {op: array for op, (_, array) in zip(self._variables(), kept, strict=True)}
        nodes = part.by_name
        known |= {nodes[op.name]: v for op, v in self._constants.items() if op.name in nodes}
        frozen = part.frozen(lambda op, held: _proto(held, known[op]))
        request, feeds = self._request_of(frozen)
        program = build_program(request)
        if request.kernels.asks_for_call:
            raise UnimplementedError("A kernel asks for the call that it is in")
        return SpecializedProgram(finish(program, feeds), kept, owners, manager, removals)

    @property
    def _graph(self) -> Graph:
        graph = self._request.part.graph
        assert graph is not None
        return graph

    def _reading_part(self) -> ReadingPart:
        part = self._request.part
        elements: list[Tensor | Operation] = [*part.fetches, *part.targets]
        held = {op: _held(op, handle) for op, handle in self._captured.items()}
        held |= {op: _held_array(op, array) for op, array in self._constants.items()}
        feeds = [tensor for tensor in part.feeds if tensor.op not in held]
        found = ReadingPart(self._graph, elements, feeds, held)
        assigned = {
            id(handle.resource) for op, handle in self._captured.items() if op.name in found.kept
        }
        for op, handle in self._captured.items():
            if op.name not in found.kept and id(handle.resource) in assigned:
                raise UnimplementedError(f"{op.name!r} is assigned to by another name")
        return found

    def _variables(self) -> list[Operation]:
        """The operations of the part that stand for variables, not for constants."""
        names, variables = {op.name for op in self._constants}, self._part.variables
        return [op for op in variables if op.type not in PLACEHOLDER_OPS or op.name not in names]

    def _check_worth(self) -> None:
        """Raise UnimplementedError unless most of what variables hold is read and not assigned."""
        held = [_held(op, handle) for op, handle in self._captured.items()]
        if not self._variables() or not self._part.is_mostly_read(held):
            raise UnimplementedError("The variables are assigned to, or there are none")

    def _resources(self) -> list[Any]:
        """What the operations stand for: a reference, or the resource that has one."""
        return [self._resource(op) for op in self._variables()]

    def _resource(self, op: Operation) -> Any:
        """The variable of an operation, whose handle it is fed or makes."""
        if op.type in PLACEHOLDER_OPS:
            return _of_handle(self._runtime, self._captured[self._graph.by_name[op.name]], op)
        (made,) = OpKernelContext(self._kernels.kernel(op), (), RunStep()).run()
        if not isinstance(made, TensorRef):
            return _of_handle(self._runtime, handle_from_input(made), op)
        if not made.is_initialized:
            raise FailedPreconditionError(f"Variable {op.name!r} has no value", node=op.name)
        return made

    def _request_of(self, frozen: Graph) -> tuple[ProgramRequest, list[int]]:
        """The request for the program of the frozen graph, and the numbers of the feeds that it takes."""
        general = self._request
        part, feeds = frozen_part(general.part, frozen)
        runtime = self._runtime.with_library(frozen.function_library)
        lowers = isinstance(general.library, CalledFunctions) and general.library.lowers
        own = runtime.request(part, runtime.kernels_of(frozen), lowers=lowers)
        for op in part.operations:
            if op.op_def.is_stateful and not op.inputs:  # a handle, of what the kernel may own
                own.kernels.share(op, general.kernels.kernel(self._graph.by_name[op.name]))
        return replace(general, part=part, kernels=own.kernels, library=own.library), feeds


def frozen_part(part: Subgraph, frozen: Graph) -> tuple[Subgraph, list[int]]:
    """A part in the graph with constants for its variables, and the numbers of the feeds that it takes there."""
    by_name = frozen.by_name
    feeds = [
        (number, by_name[tensor.op.name].outputs[0])
        for number, tensor in enumerate(part.feeds)
        if tensor.op.name in by_name and by_name[tensor.op.name].type != "Const"
    ]
    targets = part.targets
    if part.fetches:  # what only reads a variable need not run
        targets = [op for op in targets if op.type not in READING]
    found = Subgraph(
        [tensor for _, tensor in feeds],
        [by_name[t.op.name].outputs[t.value_index] for t in part.fetches],
        [by_name[op.name] for op in targets],
    )
    return found, [number for number, _ in feeds]


def _is_variable(tensor: Any) -> bool:
    if tensor.dtype != object or not tensor.size:
        return False
    handle = tensor.flat[0]
    return isinstance(handle, ResourceHandle) and hasattr(handle.resource, "tensor_ref")


def _held(op: Operation, handle: ResourceHandle) -> HeldValue:
    """What takes the place of the handle of a variable."""
    resource: Any = handle.resource
    shape = PartialTensorShape(resource.tensor_ref.tensor.shape)
    return HeldValue(resource.dtype, shape, op.name)


def _held_array(op: Operation, array: Any) -> HeldValue:
    """What takes the place of a constant that is captured."""
    return HeldValue(op.output_types[0].base, PartialTensorShape(array.shape), op.name)


def _of_handle(runtime: FunctionLibraryRuntime, handle: ResourceHandle, op: Operation) -> Any:
    """The resource of the handle of a variable."""
    resource: Any = lookup_resource(_ResourcePlace(runtime), handle)
    with resource:
        if not isinstance(getattr(resource, "tensor_ref", None), TensorRef):
            raise UnimplementedError(f"{handle.name!r} is no variable", node=op.name)
        if not resource.is_initialized:
            raise FailedPreconditionError(f"Variable {handle.name!r} has no value", node=op.name)
        declared = declared_value(op).dtype if op.type == "VarHandleOp" else resource.dtype
        if resource.dtype != declared:
            raise UnimplementedError(f"Variable {handle.name!r} has another type", node=op.name)
        return resource


class _ResourcePlace:
    """The device whose resources are looked up."""

    def __init__(self, runtime: FunctionLibraryRuntime) -> None:
        self.device = runtime.device
        self.resource_manager = runtime.device.resource_manager


def _proto(held: HeldValue, array: Any) -> TensorProto:
    """The value of a variable as a message, which stands for the array itself if that is large.

    Raises:
        UnimplementedError: it holds handles or variants.
        InvalidArgumentError: it is of another type.
    """
    if held.dtype in (DataType.DT_RESOURCE, DataType.DT_VARIANT):
        raise UnimplementedError(f"Variable {held.variable!r} holds {held.dtype.tf_name}")
    is_plain = held.dtype.can_memcpy and array.nbytes == array.size * held.dtype.size
    if is_plain and array.nbytes >= LEAST_HELD_BYTES:
        return held_proto(array, held.dtype)
    return tensor_to_proto(array, held.dtype)
