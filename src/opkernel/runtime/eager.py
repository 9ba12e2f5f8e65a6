"""Eager calls: one op on arrays, at once.

Attrs that the caller leaves out are inferred from the inputs or take their defaults; Python numbers
and text become arrays of the type that the other inputs of the same type attr have.
Source: TensorFlow python/eager/execute.py, python/framework/op_def_library.py.
"""

import collections
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    FunctionKernel,
    OpKernel,
    OpKernelContext,
    create_op_kernel,
    global_kernel_registry,
)
from opkernel.opdef import add_defaults_to_node_def, attr_from_python, find_attr, global_op_registry
from opkernel.proto import NodeDef, OpDef
from opkernel.runtime.device import CPU
from opkernel.runtime.error_report import at_node
from opkernel.runtime.feeds import external_of, holds_bytes, string_array
from opkernel.runtime.step import RunStep
from opkernel.types import DataType, as_dtype

__all__ = ["execute"]

_kernels: dict[Hashable, OpKernel] = {}
_MAX_KERNELS = 4096
_PYTHON_TYPES: tuple[tuple[type, DataType], ...] = (
    (bool, DataType.DT_BOOL),
    (int, DataType.DT_INT32),
    (float, DataType.DT_FLOAT),
    (complex, DataType.DT_COMPLEX128),
    (str, DataType.DT_STRING),
    (bytes, DataType.DT_STRING),
)


def execute(op_name: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> Any:
    """Run an op on arrays.

    Args:
        op_name: the op.
        inputs: a value for each input argument, by name; a sequence for a list argument.
        attrs: values for attrs, as `attr_from_python` takes them; those that the inputs determine
            and those with defaults may be left out.

    Returns:
        The output of an op that has one, a named tuple of several, None for an op without outputs.

    Raises:
        NotFoundError: the op, or a kernel for these types, does not exist.
        InvalidArgumentError: inputs or attrs do not fit the op.
    """
    op_def = global_op_registry().look_up_op_def(op_name)
    known = {name: value for name, value in attrs.items() if value is not None}
    _check_names(op_def, inputs, known)
    values = [_convert(arg, inputs[arg.name], known, op_def, inputs) for arg in op_def.input_arg]
    kernel = _kernel(op_def, known)
    flat = [t for v in values for t in (v if isinstance(v, list) else [v])]
    with np.errstate(all="ignore"):
        try:
            outputs = _run(kernel, values, flat)
        except Exception as error:
            raised = at_node(error, kernel.name, op_name, flat)
            raise raised from (None if raised is error else error)
    return _answer(op_def, kernel, outputs)


def _check_names(op_def: OpDef, inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> None:
    """Raise InvalidArgumentError for names that the op lacks, and inputs that are missing."""
    wanted = {arg.name for arg in op_def.input_arg}
    wrong = [*(set(inputs) - wanted), *(set(attrs) - {attr.name for attr in op_def.attr})]
    if wrong:
        raise InvalidArgumentError(f"{op_def.name} got an unexpected argument {wrong[0]!r}")
    missing = [arg.name for arg in op_def.input_arg if arg.name not in inputs]
    if missing:
        raise InvalidArgumentError(f"{op_def.name} is missing its argument {missing[0]!r}")


def _convert(
    arg: OpDef.ArgDef,
    value: Any,
    attrs: dict[str, Any],
    op_def: OpDef,
    inputs: Mapping[str, Any],
) -> Any:
    """An input as arrays; adds to `attrs` what the input determines."""
    if arg.type_list_attr:
        return _convert_type_list(arg, value, attrs)
    if arg.type_attr and arg.type_attr not in attrs:
        attrs[arg.type_attr] = _common_type(arg.type_attr, op_def, inputs)
    dtype = as_dtype(attrs[arg.type_attr]) if arg.type_attr else DataType(arg.type)
    if not arg.number_attr:
        return _array(value, dtype.base, arg.name)
    if not isinstance(value, list | tuple):
        raise InvalidArgumentError(f"Expected a list for '{arg.name}', got {type(value).__name__}")
    if attrs.setdefault(arg.number_attr, len(value)) != len(value):
        raise InvalidArgumentError(
            f"List argument '{arg.name}' has length {len(value)}, but attr '{arg.number_attr}' "
            f"is {attrs[arg.number_attr]}"
        )
    return [_array(item, dtype.base, arg.name) for item in value]


def _convert_type_list(arg: OpDef.ArgDef, value: Any, attrs: dict[str, Any]) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidArgumentError(f"Expected a list for '{arg.name}', got {type(value).__name__}")
    types = attrs.get(arg.type_list_attr)
    if types is None:
        types = attrs[arg.type_list_attr] = [_type_of(item) for item in value]
    if len(types) != len(value):
        raise InvalidArgumentError(
            f"List argument '{arg.name}' has length {len(value)}, but attr '{arg.type_list_attr}' "
            f"has length {len(types)}"
        )
    return [_array(v, as_dtype(t), arg.name) for v, t in zip(value, types, strict=True)]


def _common_type(attr: str, op_def: OpDef, inputs: Mapping[str, Any]) -> DataType:
    """The type of the inputs of a type attr: that of an array, else the default, else Python's."""
    values = [
        item
        for arg in op_def.input_arg
        if arg.type_attr == attr
        for item in (inputs[arg.name] if arg.number_attr else [inputs[arg.name]])
    ]
    for value in values:
        if isinstance(value, np.ndarray | np.generic):
            return _type_of(value)
    declared = find_attr(op_def, attr)
    if declared is not None and declared.HasField("default_value"):
        return DataType(declared.default_value.type)
    if not values:
        raise InvalidArgumentError(f"{op_def.name}: attr '{attr}' must be given")
    return _type_of(values[0])


def _type_of(value: Any) -> DataType:
    """The type of a tensor made from a value."""
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype == object:
            first = next(iter(np.asarray(value).flat), b"")
            return DataType.DT_STRING if isinstance(first, str | bytes) else _handle_type(first)
        return as_dtype(value.dtype)
    for kind, dtype in _PYTHON_TYPES:
        if isinstance(value, kind):
            return dtype
    if isinstance(value, list | tuple) and value:
        return _type_of(value[0])
    return _type_of(
        np.asarray(value, dtype=np.float32 if isinstance(value, list | tuple) else None)
    )


def _handle_type(value: Any) -> DataType:
    """The type of tensors of handles, which the class of the handle says."""
    dtype: DataType = getattr(type(value), "tensor_dtype", DataType.DT_VARIANT)
    return dtype


def _array(value: Any, dtype: DataType, name: str) -> Any:
    """A value as an array of `dtype`; arrays of another type are refused, as TensorFlow does."""
    wanted = dtype.numpy_dtype
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype == wanted and (dtype != DataType.DT_STRING or holds_bytes(value)):
            return value
        if dtype != DataType.DT_STRING and value.dtype == dtype.as_numpy_dtype:
            return np.asarray(value).view(wanted)
        if not (dtype == DataType.DT_STRING and value.dtype.kind in "SUO"):
            raise InvalidArgumentError(
                f"input '{name}' was expected to be a {dtype.string} tensor but is a "
                f"{_type_of(value).string} tensor"
            )
    try:
        if dtype == DataType.DT_STRING:
            return string_array(value)
        return np.asarray(value, dtype=wanted)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidArgumentError(
            f"cannot convert '{name}' to a {dtype.string} tensor: {error}"
        ) from error


def _kernel(op_def: OpDef, attrs: Mapping[str, Any]) -> OpKernel:
    """The kernel for an op with attrs, from the cache where the attrs can be compared."""
    try:
        key: Hashable = (
            op_def.name,
            global_kernel_registry().version,
            tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in sorted(attrs.items())),
        )
        kernel = _kernels.get(key)
    except TypeError:  # an array, a message
        return _new_kernel(op_def, attrs)
    if kernel is None or kernel.properties.op_def is not op_def:  # the op was declared anew
        if len(_kernels) >= _MAX_KERNELS:
            _kernels.clear()
        kernel = _kernels[key] = _new_kernel(op_def, attrs)
    return kernel


def _new_kernel(op_def: OpDef, attrs: Mapping[str, Any]) -> OpKernel:
    node = NodeDef(name=op_def.name, op=op_def.name, device=CPU.name)
    for attr in op_def.attr:
        if attr.name in attrs:
            node.attr[attr.name].CopyFrom(attr_from_python(attrs[attr.name], attr.type))
    for arg in op_def.input_arg:
        count = 1
        if arg.number_attr:
            count = int(attrs[arg.number_attr])
        elif arg.type_list_attr:
            count = len(attrs[arg.type_list_attr])
        node.input.extend(f"{arg.name}:{i}" if i else arg.name for i in range(count))
    add_defaults_to_node_def(node, op_def)
    return create_op_kernel(CPU, node)


def _run(kernel: OpKernel, values: Sequence[Any], flat: Sequence[Any]) -> Sequence[Any]:
    """The flat outputs of a kernel."""
    if not isinstance(kernel, FunctionKernel):
        return OpKernelContext(kernel, flat, RunStep()).run()
    result = kernel.function(*values)
    args = kernel.properties.output_args
    results = (result,) if len(args) == 1 else (result or ())
    outputs: list[Any] = []
    for arg, value in zip(args, results, strict=True):
        outputs.extend(value) if arg.is_list else outputs.append(value)
    return outputs


def _answer(op_def: OpDef, kernel: OpKernel, outputs: Sequence[Any]) -> Any:
    tensors = [external_of(t)(v) for v, t in zip(outputs, kernel.output_types, strict=True)]
    args = kernel.properties.output_args
    values = [tensors[a.start : a.stop] if a.is_list else tensors[a.start] for a in args]
    if len(values) <= 1:
        return values[0] if values else None
    fields = [arg.name for arg in args]
    return collections.namedtuple(op_def.name, fields, rename=True)(*values)  # noqa: PYI024  # fields known only now
