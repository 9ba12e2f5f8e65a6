"""Options and attrs that say how a function is instantiated.

Source: TensorFlow core/common_runtime/function_def_utils.cc, instantiate_options checks of
core/common_runtime/partitioning_utils.cc, core/kernels/partitioned_function_ops.cc.
"""

from collections.abc import Iterable, Mapping

from google.protobuf.message import DecodeError

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import canonical_function_name
from opkernel.kernel import InstantiateOptions
from opkernel.opdef.text.escaping import c_escape
from opkernel.proto import AttrValue, ConfigProto, FunctionDef, NodeDef, OpDef

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
    _check_config(config_proto)
    executor_type = attrs["executor_type"].s.decode("utf-8", "surrogateescape")
    return InstantiateOptions(executor_type=executor_type) if executor_type else _NO_OPTIONS


def _check_config(serialized: bytes) -> None:
    try:
        ConfigProto.FromString(serialized)
    except DecodeError as error:
        raise InvalidArgumentError(
            f"Unable to parse config_proto string as tensorflow::ConfigProto proto: {error}"
        ) from error


def check_multi_device(function: FunctionDef, options: InstantiateOptions) -> None:
    """Check the options of functions whose nodes may be on several devices.

    Raises:
        InvalidArgumentError: an argument is a list, or devices are not given for all.
        UnimplementedError: the function wants its integers on the device.
    """
    signature = function.signature
    _check_no_lists(signature.input_arg, "input", signature.name)
    _check_no_lists(signature.output_arg, "output", signature.name)
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


def _check_no_lists(args: Iterable[OpDef.ArgDef], what: str, function: str) -> None:
    for arg in args:
        if arg.number_attr or arg.type_list_attr:
            raise InvalidArgumentError(
                f'Function {function} has an {what} named "{arg.name}" that is a list of tensors. '
                "Multi-device functions support only single-tensor inputs and outputs"
            )
