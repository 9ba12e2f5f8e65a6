"""The rules that every kernel keeps, checked on one call of an op.

Each kernel of the op that takes the call is computed three times: on arrays of its own, on the same
values read-only, and on arrays whose elements do not lie side by side (of rank 0, on NumPy
scalars). The second time, the memory that it allocates is filled with another poison, so that
elements left unwritten differ. A kernel may refuse a call with an OpError; that is no failure.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.local_device import CPU
from opkernel.errors import DeadlineExceededError, InvalidArgumentError, OpError, as_op_error
from opkernel.graph.core.structural_ops import SWITCH_OPS
from opkernel.interrupts import contextmanager
from opkernel.kernel import (
    KernelRegistration,
    KernelRegistry,
    OpKernel,
    OpKernelContext,
    allocating_from,
    allocation_limit,
    create_op_kernel,
)
from opkernel.kernel.context.declared_outputs import check_shape
from opkernel.kernel.context.inputs import ContextParams, TensorRef
from opkernel.kernel.registry.registration import DEFAULT_DEVICE_TYPE, violated_constraint
from opkernel.kernel.verification import (
    CallCheck,
    broken_claims,
    fault_of,
    kernel_deed,
    raised_by_kernel,
    read_only,
)
from opkernel.opdef import OpRegistry
from opkernel.proto import NodeDef
from opkernel.runtime.program.run_step import RunStep
from opkernel.runtime.watch.sanitizer import GuardedMemory, fingerprint, wrong_elements
from opkernel.testing.op_call import (
    POISONS,
    CheckFailure,
    OpCall,
    deed_of,
    difference_in,
    first_unwritten,
    has_extremes,
    is_opaque,
    spread,
    tensor_of,
)
from opkernel.testing.op_runs import graph_def_version_for, local_device_types, new_device
from opkernel.testing.tolerance import Tolerance, difference
from opkernel.types import DataType

_MAX_BYTES = 1 << 24
_TIMEOUT_S = 5

_MESSAGES_OF_UFUNCS = ("Integers to negative integer powers",)


class _Refused(Exception):
    """The kernel does not take this call."""


@dataclass(frozen=True)
class Checker:
    """Checks all kernels of ops on calls.

    Attributes:
        op_registry: Where the ops are.
        registry: Where the kernels are.
        devices: The device types whose kernels are checked.
        tolerance: By how much results may differ; as `TOLERANCES` says if None.
    """

    op_registry: OpRegistry
    registry: KernelRegistry
    devices: Sequence[str] = tuple(local_device_types())
    tolerance: Tolerance | None = None

    def kernels(self, op: str) -> list[KernelRegistration]:
        """The kernels of an op for the devices, the one that nodes get first."""
        kernels = self.registry.registrations_for(op)
        here = (*self.devices, DEFAULT_DEVICE_TYPE)
        found = [one for one in kernels if one.kernel_def.device_type in here]
        return sorted(found, key=lambda one: (one.kernel_def.label, -one.kernel_def.priority))

    def check(self, call: OpCall) -> int:
        """Check a call; the result is the number of kernels that took it.

        It is 0 where the shape function refuses the call.

        Raises:
            CheckFailure: a rule is broken.
        """
        try:
            call.infer_shapes()
        except OpError:
            return 0
        results = list(self._results(call))
        for name, outputs in results[1:]:
            self.compare(call, results[0], (name, outputs))
        return len(results)

    def refusal(self, call: OpCall) -> str:
        """The error of the first kernel that refuses a call; empty where none does."""
        for registration in self.kernels(call.node_def.op):
            outcome = self.outcome(call, registration) if takes(registration, call) else None
            if isinstance(outcome, Exception):
                error = as_op_error(outcome)
                return f"{error.code.name}: {error.message}"
        return ""

    def outcome(self, call: OpCall, registration: KernelRegistration) -> list[Any] | BaseException:
        """The outputs of one kernel that the node may have, or the error with which it refuses the call.

        Raises:
            CheckFailure: a rule is broken.
        """
        try:
            kernel, name = self.kernel(call, registration), _name(registration)
            return _KernelCheck(call, kernel, name, self.tolerance).outputs()
        except _Refused as refusal:
            return refusal.__cause__ or refusal

    def compare(
        self, call: OpCall, first: tuple[str, Sequence[Any]], other: tuple[str, Sequence[Any]]
    ) -> None:
        """Raise CheckFailure where the outputs of two computations, with their names, disagree."""
        if has_extremes(call) or call.registration.op_def.is_stateful:
            return
        for index, (mine, theirs) in enumerate(zip(other[1], first[1], strict=True)):
            what = difference_in(call, mine, theirs, self.tolerance)
            if what is not None:
                names = f"{other[0]} and {first[0]}"
                what = f"the kernels {names} disagree on output {index}: {what}"
                raise CheckFailure(call, what)

    def _results(self, call: OpCall) -> Iterator[tuple[str, list[Any]]]:
        """The outputs of each kernel that takes the call, under the kernel's name."""
        for registration in self.kernels(call.node_def.op):
            if takes(registration, call):
                self._check_choice(call, registration)
                outcome = self.outcome(call, registration)
                if not isinstance(outcome, BaseException):
                    yield _name(registration), outcome

    def _check_choice(self, call: OpCall, registration: KernelRegistration) -> None:
        """Raise CheckFailure where the node of a call could not choose between kernels."""
        device_type = registration.kernel_def.device_type
        try:
            self.registry.choices(call.node_def.op).match(device_type, node_for(registration, call))
        except InvalidArgumentError as error:
            raise CheckFailure(call, error.message) from error

    def kernel(self, call: OpCall, registration: KernelRegistration) -> OpKernel:
        """The kernel that one registration makes for the node."""
        only = KernelRegistry()
        only.register(registration)
        device_type = registration.kernel_def.device_type
        with _naming(call, _name(registration)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the op is deprecated
            return create_op_kernel(
                new_device(CPU.device_type if device_type == DEFAULT_DEVICE_TYPE else device_type),
                node_for(registration, call),
                op_registry=self.op_registry,
                registry=only,
                graph_def_version=graph_def_version_for(call.registration.op_def),
            )


class _KernelCheck:
    """The computations of one kernel on one call."""

    def __init__(
        self, call: OpCall, kernel: OpKernel, name: str, tolerance: Tolerance | None
    ) -> None:
        self._call = call
        self._kernel = kernel
        self._name = name
        self._tolerance = tolerance
        self._may_change = call.registration.op_def.is_stateful
        self._node = kernel.node_def.SerializeToString(deterministic=True)
        is_dead = kernel.type_string in SWITCH_OPS
        required = [False] * kernel.num_outputs if is_dead else None
        self._params = ContextParams(outputs_required=required)

    def outputs(self) -> list[Any]:
        """The outputs of the kernel, if all is well; raises _Refused or CheckFailure."""
        inputs = [np.array(value, copy=True) for value in self._call.inputs]
        outputs = self._compute(inputs, POISONS[0])
        self._check_outputs(inputs, outputs)
        self._check_same(outputs)
        if not self._may_change and not has_extremes(self._call):
            self._check_layout(outputs)
        if self._node != self._kernel.node_def.SerializeToString(deterministic=True):
            self._fail("changes the attrs of its node")
        return outputs

    def _compute(self, inputs: Sequence[Any], poison: int) -> list[Any]:
        """The outputs for some inputs."""
        memory = GuardedMemory(poison)
        before = [fingerprint(value) for value in inputs]
        given = [
            TensorRef(value) if dtype.is_ref else read_only(value)
            for value, dtype in zip(inputs, self._kernel.input_types, strict=True)
        ]
        ctx = OpKernelContext(self._kernel, given, RunStep(timeout_s=_TIMEOUT_S), self._params)
        try:
            with (
                _naming(self._call, self._name, self._kernel),
                allocation_limit(_MAX_BYTES),
                allocating_from(memory),
                np.errstate(all="ignore"),
            ):
                outputs = list(ctx.run())
        finally:
            for index, value in enumerate(inputs):
                is_ref = self._kernel.input_types[index].is_ref
                if not is_ref and fingerprint(value) != before[index]:
                    self._fail(f"writes to input {index} ('{self._call.node_def.input[index]}')")
        damage = memory.damage()
        if damage is not None:
            self._fail(f"writes to {damage}")
        return outputs

    def _check_outputs(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        with _naming(self._call, self._name, self._kernel):
            if self._kernel.contract.outputs_as_declared:  # others check themselves
                CallCheck(self._kernel, self._call.registration)(self._kernel, inputs, outputs)
            shapes = self._call.infer_shapes(with_values=False)
            for index, (shape, value) in enumerate(zip(shapes, outputs, strict=True)):
                if value is not None and self._kernel.output_types[index] != DataType.DT_RESOURCE:
                    check_shape(index, value, shape, ", told the shapes of the inputs alone,")
        for index, value in enumerate(outputs):
            wrong = value is not None and wrong_elements(self._kernel, index, value)
            if wrong:
                self._fail(wrong)
        for what in broken_claims(self._kernel, inputs, outputs):
            self._fail(what)

    def _check_same(self, outputs: Sequence[Any]) -> None:
        """Check that the same values give the same outputs, and leave earlier outputs alone."""
        before = [fingerprint(tensor_of(value)) for value in outputs]
        try:
            again = self._compute([np.array(v, copy=True) for v in self._call.inputs], POISONS[1])
        except _Refused as refusal:
            if not self._may_change:
                self._fail(f"takes the call once and refuses it then: {refusal.__cause__}")
            return
        for index, value in enumerate(outputs):
            if value is not None and not self._kernel.output_types[index].is_ref:
                if fingerprint(value) != before[index]:
                    self._fail(f"changes output {index} after it returned it")
                if not self._may_change:
                    self._check_repeated(index, value, again[index])

    def _check_repeated(self, index: int, value: Any, again: Any) -> None:
        if again is None or np.shape(value) != np.shape(again):
            self._fail(
                f"gives output {index} the shape {list(np.shape(value))}, and then "
                f"{list(np.shape(again))} for the same inputs"
            )
        if is_opaque(value) or fingerprint(value) == fingerprint(again):
            return
        place = first_unwritten(value, again)
        if place is not None:
            self._fail(f"leaves output {index} unwritten at {place}")
        what = difference(again, value, tolerance=Tolerance())  # exactly
        what = what or "zeros differ in sign, or NaNs in bits"
        self._fail(f"gives output {index} other values for the same inputs: {what}")

    def _check_layout(self, outputs: Sequence[Any]) -> None:
        """How the elements of an input lie in memory makes no difference."""
        try:
            other = self._compute([spread(value) for value in self._call.inputs], POISONS[0])
        except _Refused as refusal:
            self._fail(f"refuses inputs that are no contiguous arrays: {refusal.__cause__}")
        for index, (value, expected) in enumerate(zip(other, outputs, strict=True)):
            what = difference_in(self._call, value, expected, self._tolerance)
            if what is not None:
                where = "where inputs are no contiguous arrays"
                self._fail(f"gives output {index} other values {where}: {what}")

    def _fail(self, what: str) -> None:
        raise CheckFailure(self._call, kernel_deed(self._name, what))


@contextmanager
def _naming(call: OpCall, name: str, kernel: OpKernel | None = None) -> Iterator[None]:
    """Within the block, refusals become _Refused, and other errors a CheckFailure."""
    try:
        yield
    except Exception as error:  # a kernel may raise anything
        if _is_refusal(error, kernel):
            raise _Refused from error
        where = "" if kernel else "cannot be made: "
        raise CheckFailure(call, kernel_deed(name, where + _deed(error))) from error


def _deed(error: Exception) -> str:
    fault = fault_of(error)
    if fault is not None:
        return fault
    error = raised_by_kernel(error)
    if isinstance(error, DeadlineExceededError):
        return f"is not done after {_TIMEOUT_S} seconds: {error.message}"
    return deed_of(error) + ("" if isinstance(error, OpError) else "; a refusal is an OpError")


def _is_refusal(error: Exception, kernel: OpKernel | None) -> bool:
    if isinstance(error, DeadlineExceededError):
        return False
    error = raised_by_kernel(error)
    if isinstance(error, OpError):
        return fault_of(error) is None
    is_ufunc = isinstance(getattr(kernel, "unchecked", None), np.ufunc)
    return is_ufunc and isinstance(error, ValueError) and str(error).startswith(_MESSAGES_OF_UFUNCS)


def node_for(registration: KernelRegistration, call: OpCall) -> NodeDef:
    """The node of a call, which asks for kernels with the label of this one."""
    node = NodeDef()
    node.CopyFrom(call.node_def)
    if registration.kernel_def.label:
        node.attr["_kernel"].s = registration.kernel_def.label.encode()
    return node


def takes(registration: KernelRegistration, call: OpCall) -> bool:
    """Whether a node may get a kernel."""
    try:
        return violated_constraint(registration.kernel_def, call.node_def) is None
    except OpError as error:
        what = f"the kernel {_name(registration)} can serve no node: {error.message}"
        raise CheckFailure(call, what) from error


def _name(registration: KernelRegistration) -> str:
    """The name of a kernel in messages."""
    kernel_def = registration.kernel_def
    options = [kernel_def.device_type]
    options += [f"label {kernel_def.label!r}"] if kernel_def.label else []
    options += [f"priority {kernel_def.priority}"] if kernel_def.priority else []
    return f"{registration.class_name.rpartition('.<locals>.')[2]} ({', '.join(options)})"
