"""Run one op on one device with given inputs, as TensorFlow's OpsTestBase does.

    result = run_op("ZeroOut", [np.array([1, 2], np.int32)])
    assert_outputs(result, [1, 0])

`make_kernel` and `run_kernel` are its two halves, for kernels that are run more than once.

`infer_shapes` gives the results of an op's shape function, for tests of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel import Device, KernelRegistry, OpKernel, OpKernelContext, create_op_kernel
from opkernel.kernel.context.inputs import ContextParams, TensorRef
from opkernel.kernel.context.memory_record import MemoryRecord
from opkernel.kernel.services.step import Step
from opkernel.opdef import (
    GRAPH_DEF_VERSION,
    CallInputs,
    InferenceContext,
    OpRegistry,
    add_defaults_to_node_def,
    attr_from_python,
    find_attr,
    global_op_registry,
    infer_attr_from_python,
    is_list_arg,
    run_shape_fn,
)
from opkernel.opdef.shapes.shape_handles import ShapeHandle
from opkernel.proto import NodeDef, OpDef
from opkernel.runtime import CPU, LocalDevice
from opkernel.runtime.program.error_report import at_node
from opkernel.runtime.program.feeds_and_fetches import string_array
from opkernel.runtime.program.run_step import RunStep
from opkernel.types import DataType, PartialTensorShape, array_from_python, dtype_of_array

Inputs = Mapping[str, Any] | Sequence[Any]
"""One value an input argument, by name or in order; a sequence of values for a list argument."""

_DEVICES: dict[str, Device] = {CPU.device_type: CPU}


@dataclass(frozen=True, slots=True)
class OpResult:
    """One computation of a kernel that is over.

    Attributes:
        outputs: The output tensors, flat.
        context: The context that the kernel computed in.
        kernel: The kernel; `run_kernel` runs it again.
    """

    outputs: list[Any]
    context: OpKernelContext
    kernel: OpKernel

    @property
    def by_name(self) -> dict[str, Any]:
        """The outputs by argument; the outputs of a list argument are a list."""
        return {
            arg.name: self.outputs[arg.start : arg.stop] if arg.is_list else self.outputs[arg.start]
            for arg in self.kernel.properties.output_args
        }

    @property
    def memory(self) -> MemoryRecord | None:
        """The temporary and persistent memory that the kernel allocated."""
        return self.context.memory


def run_op(
    op: str,
    inputs: Inputs = (),
    *,
    attrs: Mapping[str, Any] | None = None,
    device: str | Device = CPU,
    step: Step | None = None,
    params: ContextParams | None = None,
    node_def: NodeDef | None = None,
    registry: KernelRegistry | None = None,
    op_registry: OpRegistry | None = None,
) -> OpResult:
    """Build one node, make its kernel, and compute it; asynchronous kernels are waited for.

    Args:
        op: The op's name.
        inputs: The inputs. An input by reference is a TensorRef, or a tensor for one to refer to.
        attrs: Attrs that do not follow from the inputs, `_kernel` for a label.
        device: The type of a device of this process, or a device.
        step: The step that the kernel sees; one that tracks allocations if None.
        params: The executor's particulars of the computation.
        node_def: A whole node to use instead of `op` and `attrs`.
        registry: Where the kernel is found; the global registry if None.
        op_registry: Where the op is found; the global registry if None.

    Raises:
        NotFoundError: There is no such op, device, or kernel.
        InvalidArgumentError: Inputs or attrs do not fit the op.
        OpError: The error that the kernel raised or recorded; other exceptions become one.
    """
    kernel = make_kernel(
        op,
        inputs,
        attrs=attrs,
        device=device,
        node_def=node_def,
        registry=registry,
        op_registry=op_registry,
    )
    return run_kernel(kernel, inputs, step=step, params=params)


def make_kernel(
    op: str,
    inputs: Inputs = (),
    *,
    attrs: Mapping[str, Any] | None = None,
    device: str | Device = CPU,
    node_def: NodeDef | None = None,
    registry: KernelRegistry | None = None,
    op_registry: OpRegistry | None = None,
) -> OpKernel:
    """The kernel that `run_op` would compute; `inputs` only tell types and numbers."""
    ops = global_op_registry() if op_registry is None else op_registry
    op_def = ops.look_up_op_def(op if node_def is None else node_def.op)
    if node_def is None:
        node_def = node_of(op_def, all_attrs(op_def, inputs, attrs or {}))
    return create_op_kernel(
        local_device(device) if isinstance(device, str) else device,
        node_def,
        op_registry=ops,
        registry=registry,
        graph_def_version=graph_def_version_for(op_def),
    )


def run_kernel(
    kernel: OpKernel,
    inputs: Inputs = (),
    *,
    step: Step | None = None,
    params: ContextParams | None = None,
) -> OpResult:
    """Compute a kernel; raises as `run_op` does."""
    tensors = list(_flat(kernel, inputs))
    ctx = OpKernelContext(kernel, tensors, step or _tracking_step(), params or ContextParams())
    try:
        with np.errstate(all="ignore"):  # as in a session
            outputs = ctx.run()
    except Exception as error:
        op_def = kernel.properties.op_def
        raised = at_node(error, kernel.name, kernel.type_string, tensors, op_def=op_def)
        raise raised from (error.__cause__ if raised is error else error)
    return OpResult(outputs, ctx, kernel)


def local_device(device_type: str) -> Device:
    """The device of this process of a type; NotFoundError if the process has none."""
    device = _DEVICES.get(device_type)
    if device is None:
        raise NotFoundError(f"there is no {device_type} here; there is {', '.join(_DEVICES)}")
    return device


def new_device(device_type: str) -> Device:
    """A device like `local_device`, without resources: variables of other calls are not there."""
    return LocalDevice(device_type, local_device(device_type).array_namespace)


def local_device_types() -> list[str]:
    """The types of the devices that this process has."""
    return list(_DEVICES)


def node_of(op_def: OpDef, attrs: Mapping[str, Any], name: str = "node") -> NodeDef:
    """A node by itself, with an input named after its argument for each tensor.

    Args:
        op_def: The op.
        attrs: All attrs without a default, as Python values.
        name: The node's name.
    """
    node = NodeDef(name=name, op=op_def.name)
    for attr, value in attrs.items():
        declared = find_attr(op_def, attr)
        if declared is not None:
            node.attr[attr].CopyFrom(attr_from_python(value, declared.type))
        elif attr.startswith("_"):
            node.attr[attr].CopyFrom(infer_attr_from_python(value))
        else:
            raise InvalidArgumentError(f"'{op_def.name}' Op has no attr named '{attr}'")
    add_defaults_to_node_def(node, op_def)
    for arg in op_def.input_arg:
        if arg.number_attr:
            count = node.attr[arg.number_attr].i
        elif arg.type_list_attr:
            count = len(node.attr[arg.type_list_attr].list.type)
        else:
            node.input.append(arg.name)
            continue
        node.input.extend(f"{arg.name}_{number}" for number in range(count))
    return node


def graph_def_version_for(op_def: OpDef) -> int:
    """The latest version of GraphDef whose graphs may use an op."""
    if not op_def.HasField("deprecation"):
        return GRAPH_DEF_VERSION
    return min(GRAPH_DEF_VERSION, op_def.deprecation.version - 1)


def all_attrs(op_def: OpDef, inputs: Inputs, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The given attrs, and the attrs that the inputs determine."""
    found = dict(attrs)
    CallInputs(op_def, by_argument(op_def, inputs), found, _dtype)
    return found


def by_argument(op_def: OpDef, inputs: Inputs) -> Mapping[str, Any]:
    """The inputs by the name of their argument.

    Raises:
        InvalidArgumentError: they are not the inputs that the op takes.
    """
    names = [arg.name for arg in op_def.input_arg]
    if not isinstance(inputs, Mapping):
        if len(inputs) != len(names):
            raise InvalidArgumentError(
                f"{op_def.name} takes {len(names)} input arguments "
                f"({', '.join(names) or 'none'}), {len(inputs)} are given"
            )
        return dict(zip(names, inputs, strict=True))
    if set(inputs) != set(names):
        raise InvalidArgumentError(
            f"{op_def.name} takes the inputs {', '.join(names) or 'none'}; "
            f"given are {', '.join(inputs) or 'none'}"
        )
    return inputs


def _dtype(value: Any) -> DataType | None:
    return dtype_of_array(value.tensor if isinstance(value, TensorRef) else value)


def _flat(kernel: OpKernel, inputs: Inputs) -> Iterator[Any]:
    """The inputs as tensors of the types that the kernel takes."""
    values = by_argument(kernel.properties.op_def, inputs)
    for arg in kernel.properties.input_args:
        given = values[arg.name] if arg.is_list else [values[arg.name]]
        dtypes = kernel.input_types[arg.start : arg.stop]
        if len(given) != len(dtypes):
            raise InvalidArgumentError(
                f"input '{arg.name}' takes {len(dtypes)} tensors, {len(given)} are given"
            )
        for value, dtype in zip(given, dtypes, strict=True):
            yield _tensor(value, dtype, arg.name)


def _tensor(value: Any, dtype: DataType, name: str) -> Any:
    if dtype.is_ref:
        is_ref = isinstance(value, TensorRef)
        return value if is_ref else TensorRef(np.array(_tensor(value, dtype.base, name)))
    if dtype == DataType.DT_STRING:
        return string_array(value)
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype != dtype.numpy_dtype:
            raise InvalidArgumentError(
                f"input '{name}' takes {dtype.string}, an array of {value.dtype} is given"
            )
        return value
    return array_from_python(value, dtype)


def _tracking_step() -> RunStep:
    step = RunStep()
    step.track_allocations = True
    return step


Shape = PartialTensorShape | Sequence[int | None] | None
"""Sizes, None for one that is not known; None by itself for a shape of unknown rank."""


def infer_shapes(
    op: str,
    shapes: Sequence[Shape] = (),
    *,
    attrs: Mapping[str, Any] | None = None,
    values: Mapping[int, Any] | None = None,
    op_registry: OpRegistry | None = None,
) -> list[PartialTensorShape]:
    """The shapes of the outputs of an op for inputs of some shapes.

    Args:
        op: The op's name.
        shapes: The shape of each input tensor, flat.
        attrs: Attrs. Types that are neither given nor have a default are the first that the op
            allows; the length of the one list argument follows from `shapes`.
        values: The values of inputs that are constant, by flat index.
        op_registry: Where the op is found; the global registry if None.

    Raises:
        InvalidArgumentError: The shape function refuses these shapes, values or attrs.
    """
    ops = global_op_registry() if op_registry is None else op_registry
    registration = ops.look_up(op)
    op_def = registration.op_def
    node = node_of(op_def, _with_some_types(op_def, dict(attrs or {}), len(shapes)))
    constants = {index: np.asarray(value) for index, value in (values or {}).items()}
    given = [PartialTensorShape(shape) for shape in shapes]
    known = [constants.get(index) for index in range(len(shapes))]
    version = graph_def_version_for(op_def)
    context = InferenceContext(op_def, node, given, known, graph_def_version=version)
    run_shape_fn(registration, context)
    return [PartialTensorShape(known_sizes(shape)) for shape in context.outputs()]


def expect_shapes(
    op: str,
    shapes: Sequence[Shape],
    expected: Sequence[Shape],
    *,
    attrs: Mapping[str, Any] | None = None,
    values: Mapping[int, Any] | None = None,
    op_registry: OpRegistry | None = None,
) -> None:
    """Assert the output shapes of an op's shape function; arguments are as for `infer_shapes`.

    expect_shapes("MatMul", [[2, None], [None, 3]], [[2, 3]])
    """
    found = infer_shapes(op, shapes, attrs=attrs, values=values, op_registry=op_registry)
    wanted = [PartialTensorShape(shape) for shape in expected]
    if [str(shape) for shape in found] != [str(shape) for shape in wanted]:
        raise AssertionError(
            f"{op} gives {', '.join(map(str, found)) or 'no shapes'}; "
            f"expected {', '.join(map(str, wanted)) or 'none'}"
        )


def _with_some_types(op_def: OpDef, attrs: dict[str, Any], num_inputs: int) -> dict[str, Any]:
    """The attrs, with the ones filled in that no shape depends on."""
    lists = [arg for arg in op_def.input_arg if is_list_arg(arg)]
    length = num_inputs - (len(op_def.input_arg) - len(lists))
    for attr in op_def.attr:
        if attr.name in attrs or attr.HasField("default_value"):
            continue
        some_type = next(iter(attr.allowed_values.list.type), DataType.DT_FLOAT)
        if attr.type == "type":
            attrs[attr.name] = some_type
        elif attr.name in {arg.number_attr for arg in lists}:
            attrs[attr.name] = length
        elif attr.name in {arg.type_list_attr for arg in lists}:
            attrs[attr.name] = [some_type] * length
    return attrs


def known_sizes(shape: ShapeHandle | None) -> tuple[int, ...] | None:
    """The sizes of an output in a shape function, -1 where unknown; None for unknown rank."""
    return None if shape is None or shape.dims is None else tuple(d.value for d in shape.dims)
