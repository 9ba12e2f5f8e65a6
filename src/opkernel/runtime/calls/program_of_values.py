"""The program for the values that the variables of another program have: with constants for variables.

Source: TensorFlow python/framework/convert_to_constants.py.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opkernel.errors import FailedPreconditionError, UnimplementedError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.structural_ops import PLACEHOLDER_OPS
from opkernel.graph.freezing.held_values import VARIABLES, HeldValue, declared_value
from opkernel.graph.freezing.reading_part import ReadingPart
from opkernel.graph.freezing.reads import READING
from opkernel.kernel import (
    OpKernelContext,
    ResourceBase,
    TensorRef,
    handle_from_input,
    lookup_resource,
)
from opkernel.proto import TensorProto
from opkernel.records import replace
from opkernel.runtime.calls.called_functions import CalledFunctions
from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
from opkernel.runtime.program.builder import Program, build_program
from opkernel.runtime.program.request import ProgramRequest
from opkernel.runtime.program.subgraph import Subgraph
from opkernel.runtime.step.run_step import RunStep
from opkernel.state.resource_mgr import ResourceMgr
from opkernel.types import (
    DataType,
    PartialTensorShape,
    ResourceHandle,
    tensor_to_proto,
)
from opkernel.types.tensor_tokens import LEAST_HELD_BYTES, held_proto


class MadeProgram(NamedTuple):
    """A program for certain values of variables, to whose arrays nobody writes as long as this is kept.

    Attributes:
        program: the program.
        feeds: which feeds of the general program it takes, in order.
        kept: the variables with their arrays.
        owners: the resources of those that have handles; they may go.
        manager: has the variables that have names.
        removals: how often it had lost something when the variables were looked up.
    """

    program: Program
    feeds: Sequence[int]
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
        general: Program,
        runtime: FunctionLibraryRuntime,
        captured: Mapping[Operation, Any],
    ) -> None:
        self._request = general.request
        self._runtime = runtime
        for tensor in self._request.part.feeds:
            if tensor.dtype is DataType.DT_RESOURCE and tensor.op not in captured:
                raise UnimplementedError(f"{tensor.name!r} may be fed the handle of any variable")
        handles = [(op, tensor) for op, tensor in captured.items() if _is_variable(tensor)]
        self._captured = {op: handle_from_input(tensor) for op, tensor in handles}
        self._constants = {op: one for op, one in captured.items() if one.dtype != object}
        self._part = self._reading_part()
        self._kernels = runtime.kernels_of(self._graph)
        self._check_worth()

    def references(self) -> list[TensorRef]:
        """The variables.

        Raises:
            OpError: one is not there, or has no value.
        """
        return [one if isinstance(one, TensorRef) else one.tensor_ref for one in self._resources()]

    def program(self) -> MadeProgram:
        """A program for the values that the variables have now.

        Raises:
            FailedPreconditionError, UnimplementedError, InvalidArgumentError: as `ReadingPart.frozen`.
        """
        manager = self._runtime.device.resource_manager
        removals = manager.removals
        part = self._part = self._reading_part()
        references = self.references()
        owners = [weakref.ref(one) for one in self._resources() if isinstance(one, ResourceBase)]
        kept = [(reference, _kept(reference)) for reference in references]
        known = {op: array for op, (_, array) in zip(self._variables(), kept, strict=True)}
        known |= {
            part.by_name[op.name]: value
            for op, value in self._constants.items()
            if op.name in part.by_name
        }
        frozen = part.frozen(lambda op, held: _proto(held, known[op]))
        request, feeds = self._request_of(frozen)
        program = build_program(request)
        if request.kernels.asks_for_call:
            raise UnimplementedError("A kernel asks for the call that it is in")
        return MadeProgram(program, feeds, kept, owners, manager, removals)

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
        names = {op.name for op in self._constants}
        return [
            op
            for op in self._part.variables
            if op.type not in PLACEHOLDER_OPS or op.name not in names
        ]

    def _check_worth(self) -> None:
        """Raise UnimplementedError unless most of what variables hold is read and not assigned."""
        kept = self._part.kept
        sizes = {
            one.variable: one.shape.num_elements() or 0
            for one in [
                *[_held(op, handle) for op, handle in self._captured.items()],
                *[declared_value(op) for op in self._part.by_name.values() if op.type in VARIABLES],
            ]
        }
        assigned = sum(size for name, size in sizes.items() if name in kept)
        if not self._variables() or 2 * assigned > sum(sizes.values()):
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
        general, by_name = self._request, frozen.by_name
        feeds = [
            (number, by_name[tensor.op.name].outputs[0])
            for number, tensor in enumerate(general.part.feeds)
            if tensor.op.name in by_name and by_name[tensor.op.name].type != "Const"
        ]
        targets = general.part.targets
        if general.part.fetches:  # what only reads a variable need not run
            targets = [op for op in targets if op.type not in READING]
        part = Subgraph(
            [tensor for _, tensor in feeds],
            [by_name[t.op.name].outputs[t.value_index] for t in general.part.fetches],
            [by_name[op.name] for op in targets],
        )
        runtime = self._runtime.with_library(frozen.function_library)
        lowers = isinstance(general.library, CalledFunctions) and general.library.lowers
        own = runtime.request(part, runtime.kernels_of(frozen), lowers=lowers)
        for op in part.operations:
            if op.op_def.is_stateful and not op.inputs:  # a handle, of what the kernel may own
                own.kernels.share(op, general.kernels.kernel(self._graph.by_name[op.name]))
        return replace(general, part=part, kernels=own.kernels, library=own.library), [
            number for number, _ in feeds
        ]


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
    resource: Any = lookup_resource(_Place(runtime), handle)
    with resource:
        if not isinstance(getattr(resource, "tensor_ref", None), TensorRef):
            raise UnimplementedError(f"{handle.name!r} is no variable", node=op.name)
        if not resource.is_initialized:
            raise FailedPreconditionError(f"Variable {handle.name!r} has no value", node=op.name)
        declared = declared_value(op).dtype if op.type == "VarHandleOp" else resource.dtype
        if resource.dtype != declared:
            raise UnimplementedError(f"Variable {handle.name!r} has another type", node=op.name)
        return resource


class _Place:
    """The device whose resources are looked up."""

    def __init__(self, runtime: FunctionLibraryRuntime) -> None:
        self.device = runtime.device
        self.resource_manager = runtime.device.resource_manager


def _kept(reference: TensorRef) -> Any:
    """The array of a variable, to which nobody writes any more while it is kept."""
    with reference.mutex:  # somebody may be writing to it
        return reference.tensor


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
