"""Eager calls: one op on arrays, at once; and kernels as functions, for programs that call them.

Attrs that the caller leaves out are inferred from the inputs or take their defaults; Python numbers
and text become arrays of the type that the other inputs of the same type attr have.
Source: TensorFlow python/eager/execute.py, python/framework/op_def_library.py.
"""

import functools
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device import device_factory
from opkernel.device.budget import current_budget
from opkernel.device.local_device import CPU, LocalDevice, eager_device
from opkernel.device.permissions import OWN_CODE
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph.core.node import capture_site, format_site
from opkernel.kernel import (
    ContextParams,
    FunctionKernel,
    FunctionRuntime,
    OpKernel,
    OpKernelContext,
    ScopedStepContainer,
    create_op_kernel,
    global_kernel_registry,
)
from opkernel.kernel.context.declared_outputs import check_output, flat_outputs
from opkernel.kernel.context.op_kernel_context import function_of_step
from opkernel.kernel.verification import read_only
from opkernel.messages import did_you_mean
from opkernel.opdef import (
    GRAPH_DEF_VERSION,
    CallInputs,
    InputValues,
    add_defaults_to_node_def,
    attr_for_op,
    call_result,
    find_attr,
    global_op_registry,
    infer_attr_from_python,
    input_types_for_node,
    is_list_arg,
)
from opkernel.proto import NodeDef, OpDef
from opkernel.runtime.program.error_report import at_node
from opkernel.runtime.program.feeds_and_fetches import holds_bytes, owned_of, string_array
from opkernel.runtime.program.kernels import KernelCache
from opkernel.runtime.program.run_step import RunStep
from opkernel.types import (
    DataType,
    PartialTensorShape,
    array_from_python,
    dtype_of_array,
    holds_handles,
    natural_dtype,
)

if TYPE_CHECKING:
    from traceback import StackSummary

__all__ = ["execute"]


def kernel_function(op: str, /, **attrs: Any) -> Callable[..., Any]:
    """The function that computes an op on the CPU, as the plans of sessions call it.

        matmul = kernel_function("MatMul", T=opkernel.float32, transpose_b=True)
        c = matmul(a, b)

    Args:
        op: its name.
        attrs: its attrs, as Python objects or AttrValues.

    Returns:
        A function of the op's inputs, with a list for each list argument. A kernel that has state or looks
        at the step gives a function of the step and of a tuple of all inputs instead, whose result is a
        list of all outputs. A result may be an input, or show its memory.

    Raises:
        NotFoundError: there is no such op, or no kernel for these attrs.
        InvalidArgumentError: the attrs do not fit the op.
    """
    kernel = create_op_kernel(CPU, node_of(global_op_registry().look_up_op_def(op), attrs))
    return kernel.function if isinstance(kernel, FunctionKernel) else function_of_step(kernel)


def node_of(op_def: OpDef, attrs: Mapping[str, Any]) -> NodeDef:
    """A node of an op by itself, for the CPU.

    Raises:
        InvalidArgumentError: the attrs do not fit the op.
    """
    node = NodeDef(name=op_def.name, op=op_def.name, device=CPU.name)
    for name, value in attrs.items():
        declared = find_attr(op_def, name)
        if declared is None and not name.startswith("_"):
            raise InvalidArgumentError(f"{op_def.name} has no attr {name!r}", op=op_def.name)
        found = (
            infer_attr_from_python(value)
            if declared is None
            else attr_for_op(op_def.name, declared, value)
        )
        node.attr[name].CopyFrom(found)
    add_defaults_to_node_def(node, op_def)
    node.input.extend(f"input_{i}" for i in range(len(input_types_for_node(node, op_def))))
    return node


_step_container = ScopedStepContainer(0, lambda name: eager_device().resource_manager.cleanup(name))
_MAX_KERNELS = 4096
_VARIANT = DataType.DT_VARIANT


@functools.cache
def _library_of_calls() -> FunctionRuntime:
    from opkernel.graph import FunctionLibraryDefinition  # few calls need it
    from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime

    definitions = FunctionLibraryDefinition(global_op_registry())
    return FunctionLibraryRuntime(definitions, device=eager_device(), optimize=True)


class _EagerStep(RunStep):
    """The step of one call. Resources of a step outlive it: all calls share one container."""

    __slots__ = ()

    permissions = program_permissions = OWN_CODE

    @property
    def function_library(self) -> FunctionRuntime:
        """The functions of the call; a library without functions for kernels that define some."""
        return self._function_library or _library_of_calls()

    @property
    def step_container(self) -> ScopedStepContainer:  # type: ignore[override]  # as RunStep
        """The container of all calls."""
        return _step_container

    @property
    def stack_trace(self) -> "StackSummary | None":
        """Where the op was called; a kernel may ask on any thread, until the call is over."""
        for innermost in (sys._getframe(), *sys._current_frames().values()):
            frame: FrameType | None = innermost
            while frame is not None:
                if frame.f_code is _run.__code__ and frame.f_locals.get("step") is self:
                    return format_site(capture_site(frame))
                frame = frame.f_back
        return None


def execute(
    op_name: str,
    inputs: Mapping[str, Any],
    attrs: Mapping[str, Any],
    function_library: FunctionRuntime | None = None,
) -> Any:
    """Run an op on arrays.

    Args:
        op_name: the op.
        inputs: a value for each input argument, by name; a sequence for a list argument.
        attrs: values for attrs, as `attr_from_python` takes them; those that the inputs determine
            and those with defaults may be left out.
        function_library: has the functions that attrs name.

    Returns:
        The output of an op that has one, a named tuple of several, None for an op without outputs.

    Raises:
        NotFoundError: the op, or a kernel for these types, does not exist.
        InvalidArgumentError: inputs or attrs do not fit the op.
    """
    op_def = global_op_registry().look_up_op_def(op_name)
    known = {name: value for name, value in attrs.items() if value is not None}
    _check_names(op_def, inputs, known)
    call = CallInputs(op_def, inputs, known, dtype_of_array)
    values = [_converted(argument, op_name) for argument in call.arguments]
    kernels = _kernels_at.get(device_factory.version) or _current_kernels()
    if function_library is None:
        kernel = kernels.of_call(op_def, known)
    else:  # the function was traced for this call
        kernel = kernels.for_one_call(op_def, known)
    flat = [t for v in values for t in (v if isinstance(v, list) else [v])]
    with np.errstate(all="ignore"):
        try:
            return _answer(op_def, kernel, _run(kernel, values, flat, function_library))
        except Exception as error:
            raised = at_node(error, kernel.name, op_name, flat, op_def=op_def)
            raise raised from (error.__cause__ if raised is error else error)


def _check_names(op_def: OpDef, inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> None:
    """Raise InvalidArgumentError for names that the op lacks, and inputs that are missing."""
    wanted = [arg.name for arg in op_def.input_arg]
    known = [attr.name for attr in op_def.attr] if attrs else []
    wrong = attrs.keys() - known
    for name in (*(inputs.keys() - wanted), *wrong):
        raise InvalidArgumentError(
            f"{op_def.name} got an unexpected argument {name!r}{did_you_mean(name, [*wanted, *known])}"
        )
    if len(inputs) < len(wanted):
        missing = next(name for name in wanted if name not in inputs)
        raise InvalidArgumentError(f"{op_def.name} is missing its argument {missing!r}")


def _converted(argument: InputValues, op_name: str) -> Any:
    """The array of an argument, or the list of its arrays."""
    arg, values, dtypes = argument
    if is_list_arg(arg):
        given = zip(values, dtypes, strict=True)
        return [_array(value, dtype.base, arg.name, op_name) for value, dtype in given]
    return _array(values[0], dtypes[0].base, arg.name, op_name)


def _array(value: Any, dtype: DataType, name: str, op_name: str) -> Any:
    """A value as an array of `dtype`. The caller's own array is read-only; another type is refused."""
    wanted = dtype.numpy_dtype
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype == wanted and (dtype not in _HELD or _HELD[dtype](value)):
            return read_only(value)
        if dtype not in _HELD and value.dtype == dtype.as_numpy_dtype:
            return read_only(np.asarray(value).view(wanted))
        if not (dtype in _HELD and value.dtype.kind in "SUO"):
            raise InvalidArgumentError(
                f"{op_name}: input '{name}' was expected to be a {dtype.string} tensor but is a "
                f"{natural_dtype(value).string} tensor"
            )
    try:
        if dtype == DataType.DT_STRING:
            return string_array(value)
        return array_from_python(value, dtype)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InvalidArgumentError(
            f"{op_name}: cannot convert '{name}' to a {dtype.string} tensor: {error}"
        ) from error


_HELD = {DataType.DT_STRING: holds_bytes, DataType.DT_RESOURCE: holds_handles}
"""Whether an object array is a tensor of a type."""


class EagerKernels(KernelCache):
    """The kernels of calls by op and attrs; all are dropped where they become too many."""

    def of_call(self, op_def: OpDef, attrs: Mapping[str, Any]) -> OpKernel:
        """The kernel for an op with attrs; a new one each time where these cannot be compared.

        Raises:
            NotFoundError: no kernel is registered for them.
            InvalidArgumentError: the attrs do not fit the op.
        """
        budget = current_budget()
        if budget is not None and budget.memory_limit_bytes is not None and not op_def.is_stateful:
            return self._make(node_of(op_def, attrs))  # which keeps to it
        try:
            key: Hashable = (
                op_def.name,
                tuple((k, type(v), _comparable(v)) for k, v in sorted(attrs.items())),
            )
            kernel = self._kernels.get(key)
        except TypeError:  # an array, a message
            node = node_of(op_def, attrs)
            if not op_def.is_stateful:
                return self._make(node)
            # The resource of a kernel without a shared name lives as long as the kernel.
            key, kernel = node.SerializeToString(deterministic=True), None
        changes = global_kernel_registry().version_of(op_def.name)
        if kernel is not None and kernel.properties.op_def is op_def and not changes:
            return kernel
        if len(self._kernels) >= _MAX_KERNELS:
            self._kernels.clear()
        return self._kept(
            key,
            changes,
            lambda kernel: kernel.properties.op_def is op_def,  # the op may be declared anew
            lambda: self._make(node_of(op_def, attrs)),
        )

    def for_one_call(self, op_def: OpDef, attrs: Mapping[str, Any]) -> OpKernel:
        """As `of_call`, a kernel that is not kept."""
        return self._make(node_of(op_def, attrs))

    def forget(self, attr: str) -> None:
        """Drop the kernels of ops that have an attr."""
        for key, kernel in [*self._kernels.items()]:
            if find_attr(kernel.properties.op_def, attr) is not None:
                self._kernels.pop(key, None)

    def _make(
        self,
        node_def: NodeDef,
        signature: Hashable | None = None,
        shapes: Sequence[PartialTensorShape] | None = None,
    ) -> OpKernel:
        kernel = super()._make(node_def, signature, shapes)
        for arg in kernel.properties.op_def.output_arg:
            if arg.is_ref:  # to a variable of a graph
                raise UnimplementedError(
                    f"{node_def.op} does not support eager execution: its output {arg.name!r} is a "
                    "reference"
                )
        return kernel


def _comparable(value: Any) -> Hashable:
    """The value of an attr as a key; 1, 1.0 and True, which are equal, are three in a list, too."""
    if type(value) is list:
        return tuple(value), tuple(map(type, value))
    return value  # type: ignore[no-any-return]  # a dict raises TypeError where it is hashed


_kernels: dict[LocalDevice, EagerKernels] = {}
_kernels_at: dict[int, EagerKernels] = {}
"""Those of the device of eager calls, by the version of the device factories."""


def _current_kernels() -> EagerKernels:
    """The kernels of calls on the device of eager calls, once the device factories have changed."""
    version, device = device_factory.version, eager_device()
    made = EagerKernels(GRAPH_DEF_VERSION, global_op_registry(), device)
    kernels = _kernels.setdefault(device, made)
    _kernels_at.clear()
    _kernels_at[version] = kernels
    return kernels


def forget_random_kernels() -> None:
    """Let random operations of eager calls begin their streams anew."""
    for kernels in _kernels.values():
        kernels.forget("seed2")


_NOTHING = np.empty(0, np.float32)  # an unset tensor, in TensorFlow


def _run(
    kernel: OpKernel,
    values: Sequence[Any],
    flat: Sequence[Any],
    function_library: FunctionRuntime | None = None,
) -> Sequence[Any]:
    """The flat outputs of a kernel; what may outlive the call is computed from copies."""
    if not isinstance(kernel, FunctionKernel):
        step = _EagerStep(function_library=function_library)
        try:
            copies = [value.copy() for value in flat]
            given = copies if kernel.contract.forwards_inputs else [*map(read_only, copies)]
            del copies  # a buffer may be taken over whose only reference the context has
            ctx = OpKernelContext(kernel, given, step)
            if kernel.leaves_outputs:
                ctx.params = ContextParams(outputs_required=[False] * kernel.num_outputs)
            return [_NOTHING if output is None else output for output in ctx.run()]
        finally:
            step.end()  # a kernel that still waits, where the call was interrupted
    if _VARIANT in kernel.output_types:
        values = [[t.copy() for t in v] if isinstance(v, list) else v.copy() for v in values]
    return flat_outputs(kernel, kernel.function(*values))


def _answer(op_def: OpDef, kernel: OpKernel, outputs: Sequence[Any]) -> Any:
    dtypes = kernel.output_types
    try:
        tensors = [owned_of(dtype)(outputs, index) for index, dtype in enumerate(dtypes)]
    except AttributeError:  # no tensor, whatever the kernel claims
        for index, value in enumerate(outputs):
            check_output(kernel, index, value)
        raise
    args = kernel.properties.output_args
    values = [tensors[a.start : a.stop] if a.is_list else tensors[a.start] for a in args]
    return call_result(op_def, values)
