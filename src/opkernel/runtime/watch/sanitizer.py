"""Sanitizer: runs the kernels of a session in such a way that it finds and names their forbidden deeds.

Kernels get read-only inputs, and memory that is filled with a poison and stands between canaries. After a
kernel has run, the sanitizer checks its inputs, the canaries, its node, and the types and shapes of its
outputs. At the end of the step it checks that the outputs have not changed. Buffers of inputs are never
forwarded, since the executor keeps them.

A session without sanitizer runs none of this: the runner of each kernel is chosen when the plan is
compiled.
"""

import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.allocator import CpuAllocator
from opkernel.errors import InternalError, OpError
from opkernel.graph import Operation
from opkernel.interrupts import contextmanager
from opkernel.kernel import (
    ContextParams,
    FunctionKernel,
    OpKernel,
    OpKernelContext,
    PersistentTensor,
    Step,
    allocating_from,
    check_allocation,
)
from opkernel.kernel.context.declared_outputs import check_shape
from opkernel.kernel.context.inputs import TensorRef
from opkernel.kernel.verification import CallCheck, broken_claims, fault_of, kernel_deed, read_only
from opkernel.runtime.plan.keys import dereferenced
from opkernel.runtime.watch.kernel_watcher import KernelWatcher, Runner
from opkernel.types import Array, DataType, PartialTensorShape

POISON = 0xCB
"""The byte that fills memory before a kernel gets it; floats of it are NaN."""

_CANARY = 0x5E
_CANARY_BYTES = 64  # keeps the alignment of the memory behind it


class GuardedMemory(CpuAllocator):
    """Gives arrays that are filled with a poison, and knows when somebody wrote beside them."""

    name = "sanitizer"

    def __init__(self, poison: int = POISON) -> None:
        super().__init__()
        self._poison = poison
        self._blocks: list[tuple[Array, str]] = []

    def allocate(self, shape: Sequence[int], dtype: DataType) -> Array:
        """A poisoned array between canaries; arrays of objects hold None."""
        sizes = check_allocation(shape, dtype)
        kind = dtype.numpy_dtype
        if kind.hasobject:
            return np.empty(sizes, kind)
        size = math.prod(sizes) * kind.itemsize
        block = np.full(size + 2 * _CANARY_BYTES, _CANARY, np.uint8)
        inside = block[_CANARY_BYTES : _CANARY_BYTES + size]
        inside[:] = self._poison & 1 if kind == np.bool_ else self._poison
        self._blocks.append((block, f"{dtype.string}{list(sizes)}"))
        return inside.view(kind).reshape(sizes)

    def damage(self) -> str | None:
        """The side of an array on which something was written beside it; None without damage."""
        for block, what in self._blocks:
            ends = {"before": block[:_CANARY_BYTES], "behind": block[-_CANARY_BYTES:]}
            for place, canary in ends.items():
                if np.any(canary != _CANARY):
                    return f"the memory {place} its array {what}"
        return None


class _Returned(NamedTuple):
    """The arrays that a kernel returned, for a second check when the step ends."""

    op: Operation
    kernel: OpKernel
    outputs: Sequence[Any]
    fingerprints: Sequence[int | None]
    memory: GuardedMemory


class Sanitizer(KernelWatcher):
    """Watches the kernels of one session; used from any thread.

    What it finds is raised as InternalError, from the plan, so that it names the node.
    """

    reads_arrays = True

    def __init__(self) -> None:
        self._steps: dict[int, list[_Returned]] = {}

    def runner(self, op: Operation, kernel: OpKernel, params: ContextParams) -> Runner:
        """The function that runs the kernel of a node under watch."""
        shapes = [tensor.shape for tensor in op.outputs]
        registration, check = op.signature.registration, None
        if registration is not None and kernel.contract.outputs_as_declared:
            check = CallCheck(kernel, registration)  # of a kernel that does not check itself
        node = kernel.node_def.SerializeToString(deterministic=True)

        def run(step: Step, *inputs: Any) -> Sequence[Any]:
            memory = GuardedMemory()
            inputs = tuple(dereferenced(kernel, inputs))
            before = [fingerprint(value) for value in inputs]
            ctx = _SanitizedContext(kernel, [*map(read_only, inputs)], step, params, memory)
            with _naming(kernel), allocating_from(memory):
                kernel.compute(ctx)
                _check_inputs(kernel, inputs, before)
                if ctx.status is None and check is not None:
                    check(kernel, inputs, ctx.outputs)
                _check_shapes(kernel, ctx.outputs, shapes)
                outputs = ctx.finish()
            for what in _findings(kernel, outputs):
                raise _found(kernel, what)
            for what in broken_claims(kernel, inputs, outputs):
                raise _found(kernel, what)
            _check_memory(kernel, memory)
            if node != kernel.node_def.SerializeToString(deterministic=True):
                raise _found(kernel, "changed the attrs of its node")
            record = self._steps.get(step.step_id)
            if record is not None:
                record.append(_Returned(op, kernel, outputs, [*map(fingerprint, outputs)], memory))
            return outputs

        return run

    def watched(self, run: Runner) -> Runner:
        """The function of a plan, with a check of all outputs at the end of the step."""

        def watch(step: Step, *values: Any) -> Sequence[Any]:
            record = self._steps[step.step_id] = []
            try:
                results = run(step, *values)
                for returned in record:
                    _check_returned(returned)
            finally:
                del self._steps[step.step_id]
            return results

        return watch


class _SanitizedContext(OpKernelContext):
    """A context whose memory is guarded on any thread; `allocating_from` by itself is for one."""

    __slots__ = ("_memory",)

    def __init__(
        self,
        kernel: OpKernel,
        inputs: Sequence[Any],
        step: Step,
        params: ContextParams,
        memory: GuardedMemory,
    ) -> None:
        super().__init__(kernel, inputs, step, params)
        self._memory = memory

    def allocate_output(self, *args: Any, **options: Any) -> Array:
        with allocating_from(self._memory):
            return super().allocate_output(*args, **options)

    def allocate_temp(self, *args: Any, **options: Any) -> Array:
        with allocating_from(self._memory):
            return super().allocate_temp(*args, **options)

    def allocate_persistent(self, *args: Any, **options: Any) -> PersistentTensor:
        with allocating_from(self._memory):
            return super().allocate_persistent(*args, **options)


def wrong_elements(kernel: OpKernel, index: int, value: Any) -> str | None:
    """The fault in the elements of an output of the declared type; None without one."""
    if kernel.output_types[index] == DataType.DT_STRING:
        kinds = set(map(type, _elements(value)))
        if type(None) in kinds:
            return f"leaves elements of output {index} unwritten"
        if kinds - {bytes}:
            return f"gives output {index} with elements that are not bytes"
    return None


def fingerprint(value: Any) -> int | None:
    """A number that changes when a tensor is written to; None for a value that is no array."""
    if not isinstance(value, np.ndarray | np.generic):
        return None
    if value.dtype.hasobject:
        items = _elements(value)
        return hash(tuple(v if isinstance(v, bytes) else id(v) for v in items))
    return zlib.crc32(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)


def kernel_name(kernel: OpKernel) -> str:
    """The function or class that a kernel is made from, for messages."""
    if not isinstance(kernel, FunctionKernel):
        return type(kernel).__name__
    function = getattr(kernel.function, "func", kernel.function)
    return str(getattr(function, "__name__", kernel.type_string))


def _check_inputs(kernel: OpKernel, inputs: Sequence[Any], before: Sequence[int | None]) -> None:
    """Raise where inputs were written to that were given to be read."""
    for index, value in enumerate(inputs):
        if fingerprint(value) != before[index]:
            raise _found(kernel, f"writes to input {index}")


def _check_shapes(
    kernel: OpKernel, outputs: Sequence[Any], shapes: Sequence[PartialTensorShape]
) -> None:
    """Raise where an output is not of the shape that the graph knows of."""
    for index, (value, shape) in enumerate(zip(outputs, shapes, strict=True)):
        if value is not None and kernel.output_types[index] != DataType.DT_RESOURCE:
            check_shape(index, value, None if shape.rank is None else shape.as_list())


def _findings(kernel: OpKernel, outputs: Sequence[Any]) -> Iterator[str]:
    """The faults in the elements of outputs."""
    for index, value in enumerate(outputs):
        if value is None or isinstance(value, TensorRef):
            continue
        wrong = wrong_elements(kernel, index, value)
        if wrong is not None:
            yield wrong
        else:
            yield from _unwritten(index, value)


def _unwritten(index: int, value: Any) -> Iterator[str]:
    """The elements of an output that still hold the poison.

    What is of few bits may do so by chance, and is believed.
    """
    kind = value.dtype
    if kind.hasobject or kind.itemsize < 2 or (kind.itemsize == 2 and kind.kind in "iu"):
        return
    content = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    is_poison = np.all(content.reshape(-1, kind.itemsize) == POISON, axis=-1)
    places = np.argwhere(is_poison.reshape(np.shape(value)))
    if len(places):
        yield (
            f"leaves {len(places)} of {value.size} elements of output {index} unwritten, "
            f"the first at {places[0].tolist()}"
        )


@contextmanager
def _naming(kernel: OpKernel) -> Iterator[None]:
    """Within the block errors that say what no kernel may do name the kernel."""
    try:
        yield
    except Exception as error:
        fault = fault_of(error)
        if fault is None:
            raise
        raise _found(kernel, fault) from error


def _check_memory(kernel: OpKernel, memory: GuardedMemory) -> None:
    damage = memory.damage()
    if damage is not None:
        raise _found(kernel, f"writes to {damage}")


def _check_returned(returned: _Returned) -> None:
    """Raise unless outputs and canaries are at the end of a step as the kernel left them."""
    try:
        for index, value in enumerate(returned.outputs):
            if fingerprint(value) != returned.fingerprints[index]:
                raise _found(
                    returned.kernel,
                    f"returned output {index}, and it was written to before the step ended",
                )
        _check_memory(returned.kernel, returned.memory)
    except OpError as error:
        error.add_node(returned.op.name, returned.op.type)
        raise


def _elements(value: Any) -> list[Any]:
    return np.asarray(value).reshape(-1).tolist()


def _found(kernel: OpKernel, what: str) -> InternalError:
    return InternalError(f"sanitizer: {kernel_deed(kernel_name(kernel), what)}")
